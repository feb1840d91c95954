"""What mem0's `get_all` and exports give: a list, or {"results": […]}, of {"id", "memory", "user_id", …}.

A memory counts as said when it was last updated; a time without a zone is read as UTC. Metadata, hashes and
the relations of its graph are not taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from echoic.cli.importers.base import FLAWS, Item, Known, Skipped, Source, category_of, reason_of, time_of
from echoic.errors import InvalidInput
from echoic.types import checked_name, checked_text


def read_mem0(source: Source) -> Iterator[Item]:
    """Every memory, of whichever user."""
    document = source.document
    memories = document.get("results") if isinstance(document, Mapping) else document
    if not isinstance(memories, list):
        raise InvalidInput(f"{source.name} is no export of mem0: it is no list, and has no list of results")
    for place, item in enumerate(memories):
        try:
            yield _known(item)
        except FLAWS as error:
            yield Skipped(where=f"results[{place}]", reason=reason_of(error))


def _known(item: Mapping[str, Any]) -> Known:
    user = item.get("user_id")
    return Known(
        text=checked_text(item["memory"], "memory"),
        category=_category(item),
        said_at=time_of(item.get("updated_at") or item.get("created_at"), naive_is_utc=True),
        user=None if user is None else checked_name(user, "user_id"),
    )


def _category(item: Mapping[str, Any]) -> Any:
    """The first of its categories that is one of ours; the platform's own have no meaning here."""
    metadata = item.get("metadata")
    named = [metadata.get("category")] if isinstance(metadata, Mapping) else []
    named += item["categories"] if isinstance(item.get("categories"), list) else []
    return next((name for name in named if category_of(name) == name), "fact")


__all__ = ["read_mem0"]
