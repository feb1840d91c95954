"""The MongoDB server that tests run on: a real one where `ECHOIC_TEST_MONGODB_URI` names it, else the stand-in."""

from __future__ import annotations

import os
import uuid
from functools import cache

import pymongo
import pytest

from echoic_loopback.mongodb import MongoServer

URI = os.environ.get("ECHOIC_TEST_MONGODB_URI", "")
REAL = bool(URI)
stand_in_only = pytest.mark.skipif(
    REAL, reason="this looks into the stand-in; the tests run on a real server"
)

_databases: list[str] = []
_present: set[str] = set()


@cache
def shared() -> MongoServer:
    """One stand-in for all tests of a run; each has a database of its own."""
    return MongoServer().start()


def note(server: str) -> None:
    """The present test runs on `server`."""
    _present.add(f"MongoDB, {server}")


def noted() -> set[str]:
    """What was noted since this was asked last."""
    servers = set(_present)
    _present.clear()
    return servers


def url(database: str = "", options: str = "") -> str:
    """The URL of a database: a new one, or the one of that name."""
    name = database or f"echoic_test_{uuid.uuid4().hex[:12]}"
    _databases.append(name)
    note("a real server" if REAL else "the wire stand-in")
    if not REAL:
        return shared().url(name, options)
    head, _, given = URI.partition("?")
    scheme, _, rest = head.partition("://")
    joined = "&".join(part for part in (given, options) if part)
    return f"{scheme}://{rest.split('/', 1)[0]}/{name}" + (f"?{joined}" if joined else "")


def patient(url: str) -> str:
    """The same with a minute for each verb, for suites that a busy machine may run."""
    return url + ("&" if "?" in url else "?") + "timeout_ms=60000"


def drop_all() -> None:
    """Remove the databases that were made, and end the stand-in."""
    names = set(_databases)
    _databases.clear()
    if REAL and names:
        with pymongo.MongoClient(URI) as client:
            for name in names:
                client.drop_database(name)
    elif names:
        shared().stop()
        shared.cache_clear()
