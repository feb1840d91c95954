"""Where memory is kept. `base` is the seam; a store is named by a URL and imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.stores.base import Store
    from echoic.stores.documents import Documents

_FORMS = (
    '"sqlite:///echoic.db", "files:///folder" (four slashes for an absolute path), '
    '"postgresql://user@host/database", "mongodb://host/database" or "memory://"'
)


def store_from(url: str) -> Store:
    """The store that `url` names, not yet open.

    Args:
        url: "sqlite:///echoic.db" or "files:///folder", relative with three slashes, absolute with four, in
            percent-encoding where the path holds "?" or "%"; or "memory://". Behind "?" may stand
            "cache_mb=64", how much loaded memory is kept, and for files "format=markdown".
            "postgresql://user:password@host/database" has more options: `postgres_url.postgres_store`;
            likewise "mongodb://…" and "mongodb+srv://…": `mongodb_url.mongodb_store`.

    Raises:
        InvalidInput: the scheme, an option or its value is not known, or the path is missing.
    """
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    scheme = scheme.lower()
    if scheme in {"mongodb", "mongodb+srv"}:
        from echoic.stores.mongodb_url import mongodb_store

        return mongodb_store(url)
    if scheme in {"postgres", "postgresql"}:
        from echoic.stores.postgres_url import postgres_store

        return postgres_store(url)
    if not separator or scheme not in {"sqlite", "files", "memory"}:
        shown = repr(f"{scheme}://…" if separator else _without_password(url))
        raise InvalidInput(f"unknown store {shown}: use {_FORMS}")
    place, _, query = rest.partition("?")
    options = _options(query, {"sqlite": ("cache_mb",), "files": ("format", "cache_mb")}.get(scheme, ()))
    if scheme == "memory":
        if place:
            shown = _without_password(place)
            raise InvalidInput(f"memory:// has no path, so {shown!r} means nothing: leave it out")
        from echoic.stores.in_memory import InMemoryStore

        return InMemoryStore()
    return _on_disk(scheme, _path(scheme, place), options)


def store_of(given: str | Store | Documents) -> Store:
    """The store that is meant, not yet open: one that a URL names, a `Store`, or one made of `Documents`.

    Raises:
        InvalidInput: it is none of these, or a URL that `store_from` refuses.
    """
    if isinstance(given, str):
        return store_from(given)
    from echoic.stores.base import Store
    from echoic.stores.documents import Documents, DocumentStore

    if isinstance(given, type) or not isinstance(given, Store | Documents):
        kind = given.__name__ if isinstance(given, type) else type(given).__name__
        raise InvalidInput(
            f"{kind!r:.80} is no store: give a URL, or an object with the verbs of echoic.stores.base.Store "
            "or of echoic.stores.documents.Documents"
        )
    return given if isinstance(given, Store) else DocumentStore(given)


def _on_disk(scheme: str, path: str, options: Mapping[str, str]) -> Store:
    if scheme == "files":
        from echoic.stores import files

        layout = cast("files.Format", options.get("format", "json"))  # it refuses what it does not know
        return files.FilesStore(path, layout, cache_bytes=_bytes(options, files.CACHE_BYTES))
    from echoic.stores import sqlite

    if path == ":memory:":
        raise InvalidInput("':memory:' would be gone between two connections: use memory://")
    return sqlite.SQLiteStore(path, cache_bytes=_bytes(options, sqlite.CACHE_BYTES))


def _path(scheme: str, place: str) -> str:
    path = unquote(place[1:]) if place.startswith("/") else ""
    if not path.strip("/") or "\0" in path:
        shown = _without_password(place)
        raise InvalidInput(
            f"{scheme}://{shown} names no path: write three slashes and a relative one, "
            f"{scheme}:///{shown.strip('/') or 'memory'}, or four and an absolute one"
        )
    return path


def _without_password(given: str) -> str:
    """What somebody wrote who may have meant the URL of a database, as it may be shown."""
    _, at, place = str(given).rpartition("@")
    return f"…@{place}" if at else given


def _options(query: str, known: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise InvalidInput(f"unknown option {name!r}: {_known(known)}")
        if name in found:
            raise InvalidInput(f"the option {name!r} is there twice, as {found[name]!r} and {value!r}")
        found[name] = value
    return found


def _known(options: tuple[str, ...]) -> str:
    return f"use one of {', '.join(options)}" if options else "there are none here"


def _bytes(options: Mapping[str, str], otherwise: int) -> int:
    value = options.get("cache_mb")
    if value is None:
        return otherwise
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise InvalidInput(f"cache_mb must be a whole number of megabytes above 0, not {value!r}")
    return int(value) << 20


__all__ = ["store_from", "store_of"]
