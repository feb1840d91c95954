"""From a PostgreSQL URL to a store: our options are taken out of it, the driver's are left in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.stores.postgres import PostgresStore

_DRIVERS = frozenset(
    """
    application_name database dbname gsslib host krbsrvname passfile password port service servicefile
    ssl_max_protocol_version ssl_min_protocol_version sslcert sslcrl sslkey sslmode sslnegotiation sslpassword
    sslrootcert target_session_attrs user
    """.split()
)
"""What asyncpg understands behind "?"; anything else it would send on as a setting of the server."""


def postgres_store(url: str) -> PostgresStore:
    """The store that `url` names, not yet open.

    Args:
        url: "postgresql://user:password@host:5432/database", and behind "?" what the driver knows, such as
            "sslmode=verify-full" or "host=/var/run/postgresql", and of ours: "schema=echoic"; "cache_mb=256",
            how much is kept loaded; "pool=10" connections; "wait_s=10" for a server that restarts;
            "stale_s=300" of answers from what is loaded meanwhile; "narrow_above=50000", rows of a user from
            which on the database searches; "rls=on"; "listen=off"; "notify=off". See `PostgresStore`.

    Raises:
        InvalidInput: an option or its value is not known, or the driver is not installed.
    """
    try:
        from echoic.stores.postgres import PostgresStore
    except ImportError as error:
        if error.name != "asyncpg":
            raise
        raise InvalidInput("PostgreSQL needs its driver: pip install 'echoic[postgres]'") from error

    place, _, query = url.partition("?")
    scheme, _, place = place.partition("://")
    ours: dict[str, Any] = {}
    drivers: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _DRIVERS:
            drivers.append((name, value))
            continue
        if "@" in name:  # what stands behind a "?" in a password
            raise InvalidInput("the PostgreSQL URL cannot be read: write '?' in a user or password as '%3F'")
        if name not in _OURS:
            raise InvalidInput(f"unknown option {name!r}: use one of {', '.join(_OURS)}, or the driver's")
        argument, read = _OURS[name]
        if argument in ours:
            raise InvalidInput(f"the option {name!r} is there twice")
        ours[argument] = read(name, value)
    dsn = f"{scheme.lower()}://{place}" + ("?" + urlencode(drivers) if drivers else "")
    return PostgresStore(dsn, **ours)


def _text(_name: str, value: str) -> str:
    return value


def _whole(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise InvalidInput(f"{name} must be a whole number above 0, not {value!r}")
    return int(value)


def _megabytes(name: str, value: str) -> int:
    return _whole(name, value) << 20


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


_OURS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "schema": ("name", _text),
    "cache_mb": ("cache_bytes", _megabytes),
    "pool": ("pool", _whole),
    "wait_s": ("wait_s", _seconds),
    "stale_s": ("stale_s", _seconds),
    "rls": ("fence", _switch),
    "listen": ("listen", _switch),
    "notify": ("notify", _switch),
    "narrow_above": ("narrow_above", _whole),
}

__all__ = ["postgres_store"]
