"""Stores: where memory is kept. `base` defines the seam; a store is named by a URL and imported on first use.

`store_from` reads Echoic's own options and removes them from the URL; a driver's options stay in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, unquote_plus, urlencode

from echoic.checks import has_members
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.stores.base import Store
    from echoic.stores.documents import Documents

_FORMS = (
    '"sqlite:///echoic.db", "files:///folder" (four slashes for an absolute path), '
    '"postgresql://user@host/database", "mongodb://host/database" or "memory://"'
)

_ENCRYPTION = "encryption="


def store_from(url: str) -> Store:
    """The store that `url` names, not opened yet.

    With `encryption=file:PATH` or `encryption=env:NAME` after "?", it is encrypted with the keys there
    (docs/encryption.md).

    | URL | options after "?" |
    | --- | --- |
    | `sqlite:///echoic.db`, relative; absolute with four slashes | `cache_mb=256`, of loaded memory |
    | `files:///folder`, likewise | `cache_mb`, `format=json` or `markdown` |
    | `memory://` | none |
    | `postgresql://user:password@host:5432/database` | `cache_mb` and those below, and the driver's |
    | `mongodb://user:password@host/database`, `mongodb+srv://…` | `cache_mb`, `narrow_above=50000`, `timeout_ms=10000` of one operation, and the driver's |

    Percent-encode "?" and "%" in a path. PostgreSQL has `schema=echoic`; `pool=10` connections; `wait_s=10`
    for a server that restarts; `stale_s=300`, for which loaded memory answers meanwhile;
    `narrow_above=50000`, the rows of a user from which the database searches; `rls=on`; `listen=off`;
    `notify=off`. See `PostgresStore`.

    Raises:
        InvalidInput: unknown scheme, option or value, a missing path, or a driver that is not installed. The
            message does not repeat a database URL, which may hold a password.
    """  # noqa: E501
    if not isinstance(url, str):
        return _plain_store(url)
    place, _, query = url.partition("?")
    options = query.split("&") if query else []
    named = [option for option in options if option.startswith(_ENCRYPTION)]
    if not named:
        return _plain_store(url)
    if len(named) > 1:
        raise InvalidInput("the option 'encryption' is given twice")
    from echoic.stores.encryption import EncryptedStore, keys_from

    keys = keys_from(unquote_plus(named[0].removeprefix(_ENCRYPTION)))
    rest = "&".join(option for option in options if option is not named[0])
    return EncryptedStore(_plain_store(f"{place}?{rest}" if rest else place), keys)


def _plain_store(url: str) -> Store:
    """The store that `url` names, with the options of its own."""
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    scheme = scheme.lower()
    if scheme in {"postgres", "postgresql"}:
        return _postgres(f"{scheme}://{rest}")
    if scheme in {"mongodb", "mongodb+srv"}:
        return _mongodb(url)
    if not separator or scheme not in {"sqlite", "files", "memory"}:
        shown = repr(f"{scheme}://…" if separator else _without_password(url))
        raise InvalidInput(f"unknown store {shown}: use {_FORMS}")
    place, _, query = rest.partition("?")
    options, _ = _options(parse_qsl(query, keep_blank_values=True), _LOCAL.get(scheme, {}))
    if scheme == "memory":
        if place:
            shown = _without_password(place)
            raise InvalidInput(f"memory:// has no path, so {shown!r} is not valid: leave it out")
        from echoic.stores.in_memory import InMemoryStore

        return InMemoryStore()
    path = _path(scheme, place)
    if scheme == "files":
        from echoic.stores.files import FilesStore

        return FilesStore(path, **options)
    if path == ":memory:":
        raise InvalidInput("':memory:' would be lost between two connections: use memory://")
    from echoic.stores.sqlite import SQLiteStore

    return SQLiteStore(path, **options)


def store_of(given: str | Store | Documents) -> Store:
    """A store, not opened yet, from a URL, a `Store` or `Documents`, or InvalidInput."""
    if isinstance(given, str):
        return store_from(given)
    from echoic.stores.base import Store
    from echoic.stores.documents import Documents, DocumentStore

    is_store = has_members(given, Store)
    if isinstance(given, type) or not (is_store or has_members(given, Documents)):
        kind = given.__name__ if isinstance(given, type) else type(given).__name__
        raise InvalidInput(
            f"{kind!r:.80} is not a store: give a URL, or an object with the verbs of "
            "echoic.stores.base.Store or of echoic.stores.documents.Documents"
        )
    return cast("Store", given) if is_store else DocumentStore(cast("Documents", given))


def _postgres(url: str) -> Store:
    try:
        from echoic.stores.postgres import PostgresStore
    except ImportError as error:
        if error.name != "asyncpg":
            raise
        raise InvalidInput("PostgreSQL needs its driver: pip install 'echoic[postgres]'") from error
    place, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    for name, _ in given:
        if "@" in name and name not in _ASYNCPG:  # the text after a "?" in a password
            raise InvalidInput("the PostgreSQL URL cannot be read: write '?' in a user or password as '%3F'")
    ours, theirs = _options(given, _POSTGRES, _ASYNCPG)
    return PostgresStore(place + ("?" + urlencode(theirs) if theirs else ""), **ours)


def _mongodb(url: str) -> Store:
    try:
        from echoic.stores.mongodb import MongoDBStore
    except ImportError as error:
        if error.name not in {"pymongo", "bson"}:
            raise
        raise InvalidInput("MongoDB needs its driver: pip install 'echoic[mongodb]'") from error
    place, _, query = url.partition("?")
    if "@" in place.partition("://")[2].partition("/")[2]:
        # the driver would treat the user as a host, and errors name hosts
        raise InvalidInput("the mongodb:// URL cannot be read: write '/' in a user or password as '%2F'")
    parts = [part.partition("=") for part in query.split("&") if part]
    ours, _ = _options([(n, unquote_plus(v)) for n, _, v in parts if n in _MONGODB], _MONGODB)
    theirs = "&".join("".join(part) for part in parts if part[0] not in _MONGODB)  # as written
    plain = place + ("?" + theirs if theirs else "")
    _check_mongodb(plain)
    return MongoDBStore(plain, **ours)


def _check_mongodb(url: str) -> None:
    """Refuse a URL that the driver cannot parse, without contacting a server."""
    from pymongo.errors import PyMongoError
    from pymongo.synchronous.uri_parser import parse_uri

    if not url.startswith("mongodb://"):
        return  # mongodb+srv is resolved on opening, since that asks a name server
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parse_uri(url)
    except (PyMongoError, ValueError, Warning) as error:
        # neither chained nor quoted: the unreadable part may be a piece of the password
        kind = "an option is unknown or wrong" if isinstance(error, Warning) else type(error).__name__
        raise InvalidInput(f"the mongodb:// URL cannot be read ({kind}): see docs/mongodb.md") from None


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
    """`given` without a possible user and password, for messages."""
    _, at, place = str(given).rpartition("@")
    return f"…@{place}" if at else given


Options = Mapping[str, tuple[str, Callable[[str, str], Any]]]
"""By option, the argument of the store and how its value is parsed."""


def _options(
    given: list[tuple[str, str]], known: Options, drivers: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The store's arguments, and the remaining options of the driver."""
    ours: dict[str, Any] = {}
    theirs: list[tuple[str, str]] = []
    for name, value in given:
        if name in drivers:
            theirs.append((name, value))
            continue
        if name not in known:
            others = ", or the driver's" if drivers else ""
            use = f"use one of {', '.join(known)}{others}" if known else "there are none here"
            raise InvalidInput(f"unknown option {name!r}: {use}")
        argument, read = known[name]
        if argument in ours:
            first = next(other for known_as, other in given if known_as == name)
            raise InvalidInput(f"the option {name!r} is given twice, as {first!r} and {value!r}")
        ours[argument] = read(name, value)
    return ours, theirs


def _whole(name: str, value: str, least: int = 1) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 12 and int(value) >= least):
        raise InvalidInput(f"{name} must be a whole number from {least} on, not {value!r}")
    return int(value)


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InvalidInput(f"{name} must be a number of seconds, not {value!r}")
    return seconds


def _switch(name: str, value: str) -> bool:
    if value not in {"on", "off"}:
        raise InvalidInput(f"{name} must be on or off, not {value!r}")
    return value == "on"


_CACHE: Options = {"cache_mb": ("cache_bytes", lambda name, value: _whole(name, value) << 20)}
_LOCAL: Mapping[str, Options] = {
    "sqlite": _CACHE,
    "files": {"format": ("format", lambda _, value: value), **_CACHE},
}
_POSTGRES: Options = {
    "schema": ("name", lambda _, value: value),
    **_CACHE,
    "pool": ("pool", _whole),
    "wait_s": ("wait_s", _seconds),
    "stale_s": ("stale_s", _seconds),
    "rls": ("fence", _switch),
    "listen": ("listen", _switch),
    "notify": ("notify", _switch),
    "narrow_above": ("narrow_above", _whole),
}
_MONGODB: Options = {
    **_CACHE,
    "narrow_above": ("narrow_above", _whole),
    "timeout_ms": ("timeout_s", lambda name, value: _whole(name, value, 100) / 1000),
}
_ASYNCPG = frozenset(
    """
    application_name database dbname gsslib host krbsrvname passfile password port service servicefile
    ssl_max_protocol_version ssl_min_protocol_version sslcert sslcrl sslkey sslmode sslnegotiation sslpassword
    sslrootcert target_session_attrs user
    """.split()
)
"""Options that asyncpg understands; it would send any other to the server as a setting."""

__all__ = ["store_from", "store_of"]
