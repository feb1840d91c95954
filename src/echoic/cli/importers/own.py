"""What `echoic export` gave. It is checked as a whole where it is taken in, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from echoic.cli.importers.base import Exported, Item, Source
from echoic.errors import InvalidInput


def read_own(source: Source) -> Iterator[Item]:
    """The export, as one item. A JSON document that holds it as its `data` (`export --json`) does as well."""
    document = source.document
    if isinstance(document, Mapping) and document.get("command") == "export":
        document = document.get("data")
    if not isinstance(document, Mapping):
        raise InvalidInput(f"{source.name} is no export of Echoic: it is no JSON object")
    user = document.get("user")
    yield Exported(document=document, user=user if isinstance(user, str) else None)


__all__ = ["read_own"]
