"""From a `mongodb://` URL to a store. Takes our own options out and leaves the driver's to the driver."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.stores.mongodb import MongoDBStore

_OURS = {"cache_mb": 1, "narrow_above": 1, "timeout_ms": 100}
"""Our options, and the least value of each."""
_NUMBER = re.compile(r"[0-9]{1,12}")


def mongodb_store(url: str) -> MongoDBStore:
    """The store of a MongoDB URL, not yet open.

    Args:
        url: "mongodb://user:password@host/database?replicaSet=rs0" or "mongodb+srv://…", as the driver takes
            it; see https://www.mongodb.com/docs/manual/reference/connection-string/. Among its options may
            stand "cache_mb=256", how much loaded memory is kept, "narrow_above=50000", rows of a scope from
            which on the database searches, and "timeout_ms=10000", how long one verb may take.

    Raises:
        InvalidInput: one of our options has a wrong value, or the driver is not installed. The URL is not
            repeated: it may hold a password.
    """
    try:
        from echoic.stores import mongodb
    except ImportError as error:
        if error.name not in {"pymongo", "bson"}:
            raise
        raise InvalidInput("MongoDB needs its driver: pip install 'echoic[mongodb]'") from error
    place, _, query = url.partition("?")
    if "@" in place.partition("://")[2].partition("/")[2]:
        # the driver would take the user for a host, and errors name hosts
        raise InvalidInput("the mongodb:// URL cannot be read: write '/' in a user or password as '%2F'")
    theirs: list[str] = []
    ours: dict[str, int] = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name not in _OURS:
            theirs.append(part)
        elif name in ours:
            raise InvalidInput(f"the option {name!r} is there twice")
        else:
            ours[name] = _number(name, unquote_plus(value))
    plain = place + ("?" + "&".join(theirs) if theirs else "")
    _check(plain)
    return mongodb.MongoDBStore(
        plain,
        cache_bytes=ours["cache_mb"] << 20 if "cache_mb" in ours else mongodb.CACHE_BYTES,
        narrow_above=ours.get("narrow_above", mongodb.NARROW_ABOVE),
        timeout_s=ours["timeout_ms"] / 1000 if "timeout_ms" in ours else mongodb.TIMEOUT_S,
    )


def _check(url: str) -> None:
    """Refuse what the driver cannot read, as far as that can be seen without asking anybody."""
    from pymongo.errors import PyMongoError
    from pymongo.synchronous.uri_parser import parse_uri

    if not url.startswith("mongodb://"):
        return  # mongodb+srv: read when it is opened, for that asks a name server
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parse_uri(url)
    except (PyMongoError, ValueError, Warning) as error:
        # neither chained nor quoted: what cannot be read may be a piece of the password
        kind = "an option is unknown or wrong" if isinstance(error, Warning) else type(error).__name__
        raise InvalidInput(f"the mongodb:// URL cannot be read ({kind}): see docs/mongodb.md") from None


def _number(name: str, value: str) -> int:
    if not _NUMBER.fullmatch(value) or int(value) < _OURS[name]:
        raise InvalidInput(f"{name} must be a whole number from {_OURS[name]} on, not {value!r}")
    return int(value)


__all__ = ["mongodb_store"]
