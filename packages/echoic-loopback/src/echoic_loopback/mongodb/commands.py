"""The commands of a server: each takes what came over the wire and gives the answer, or refuses.

A field that a command does not have is refused, and so is a command that is not here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from echoic_loopback.mongodb.definitions import Definitions
from echoic_loopback.mongodb.faults import FailPoint
from echoic_loopback.mongodb.matching import Document
from echoic_loopback.mongodb.reads import Reads
from echoic_loopback.mongodb.refusals import BAD_VALUE, NO_COMMAND, Refusal, unknown_fields
from echoic_loopback.mongodb.search_indexes import SearchIndexes
from echoic_loopback.mongodb.sessions import Sessions
from echoic_loopback.mongodb.storage import Storage, Transaction
from echoic_loopback.mongodb.writes import Writes

_CAPITAL = re.compile("(?=[A-Z])")
_GENERIC = {
    "$db",
    "$readPreference",
    "$clusterTime",
    "lsid",
    "txnNumber",
    "startTransaction",
    "autocommit",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
}
_FIELDS: Mapping[str, set[str]] = {
    "ping": set(),
    "buildInfo": set(),
    "connectionStatus": {"showPrivileges"},
    "endSessions": set(),
    "insert": {"documents", "ordered"},
    "update": {"updates", "ordered"},
    "delete": {"deletes", "ordered"},
    "findAndModify": {"query", "update", "remove", "new", "upsert", "fields", "sort"},
    "find": {"filter", "projection", "sort", "skip", "limit", "batchSize", "singleBatch"},
    "aggregate": {"pipeline", "cursor"},
    "getMore": {"collection", "batchSize"},
    "killCursors": {"cursors"},
    "createIndexes": {"indexes"},
    "dropIndexes": {"index"},
    "listIndexes": {"cursor"},
    "listCollections": {"filter", "nameOnly", "authorizedCollections", "cursor"},
    "drop": set(),
    "dropDatabase": set(),
    "createSearchIndexes": {"indexes"},
    "updateSearchIndex": {"name", "id", "definition"},
    "dropSearchIndex": {"name", "id"},
    "commitTransaction": {"recoveryToken"},
    "abortTransaction": {"recoveryToken"},
    "configureFailPoint": {"mode", "data"},
}
_LEVELS = {"local", "available", "majority", "linearizable", "snapshot"}
_ACTIONS = {
    "insert": "insert",
    "update": "update",
    "findAndModify": "update",
    "delete": "remove",
    "find": "find",
    "aggregate": "find",
    "createIndexes": "createIndex",
    "createSearchIndexes": "createSearchIndexes",
}
"""What a user has to be allowed for a command; what is not here anybody may do."""
_RETRYABLE = {"insert", "update", "delete", "findAndModify"}


class Commands:
    """What a server answers. One event loop's.

    Args:
        replicated: whether it is a member of a replica set; else a standalone, without transactions.
        search: whether a search process stands beside it.
        version: what it says it is.
        build_looks: how often a new search index is listed as being built.
        lifetime_s: how long a transaction may take, as `transactionLifetimeLimitSeconds`.
        allowed: the actions that whoever connects may do; None: all, as without access control.
    """

    def __init__(
        self,
        *,
        replicated: bool = True,
        search: bool = True,
        version: tuple[int, int, int] = (8, 2, 0),
        build_looks: int = 1,
        lifetime_s: float = 60,
        allowed: Sequence[str] | None = None,
    ) -> None:
        self._allowed = None if allowed is None else frozenset(allowed)
        self.storage = Storage()
        self.fail_point = FailPoint()
        self.search_indexes = SearchIndexes()
        self._replicated, self._version = replicated, version
        self._sessions = Sessions(self.storage, replicated=replicated, lifetime_s=lifetime_s)
        reads = Reads(
            self.storage, self.search_indexes, replicated=replicated, search=search, version=version[:2]
        )
        definitions = Definitions(self.storage, reads, search=search, build_looks=build_looks)
        self._parts = (self, Writes(self.storage), reads, definitions)

    async def answer(self, command: Mapping[str, Any]) -> Document:
        """The answer to one command.

        Raises:
            Refusal: the server refuses it.
        """
        name = next(iter(command))
        if name not in _FIELDS:
            raise Refusal(NO_COMMAND, f"no such command: '{name}'")
        unknown_fields([key for key in command if key != name], _FIELDS[name] | _GENERIC, name)
        self._check_allowed(name, command)
        self._check_concerns(command)
        self._sessions.check(name, command)
        if name in _RETRYABLE and (before := self._sessions.repeated(command)) is not None:
            return dict(before)
        transaction = self._sessions.transaction(name, command)
        try:
            reply = await self._method(name)(command, transaction)
        except Refusal:
            if transaction is not None and name != "commitTransaction":
                self._sessions.abort(command)
            raise
        if transaction is not None and reply.get("writeErrors"):
            self._sessions.abort(command)
        if name in _RETRYABLE:
            self._sessions.answered(command, reply)
        return reply

    def _method(self, name: str) -> Callable[..., Awaitable[Document]]:
        called = _CAPITAL.sub("_", name).lower()
        found: Callable[..., Awaitable[Document]] = next(
            getattr(part, called) for part in self._parts if hasattr(part, called)
        )
        return found

    def _check_allowed(self, name: str, command: Mapping[str, Any]) -> None:
        if self._allowed is None:
            return
        action = _ACTIONS.get(name)
        if name == "aggregate" and "$changeStream" in command["pipeline"][0]:
            action = "changeStream"
        if action is not None and action not in self._allowed:
            raise Refusal(13, f"not authorized on {command['$db']} to execute command {name}")

    def _check_concerns(self, command: Mapping[str, Any]) -> None:
        concern = command.get("readConcern", {})
        unknown_fields(list(concern), {"level", "afterClusterTime", "atClusterTime"}, "readConcern")
        if concern.get("level", "local") not in _LEVELS:
            raise Refusal(
                BAD_VALUE,
                f"Enumeration value '{concern['level']}' for field 'readConcern.level' is not valid",
            )
        unknown_fields(list(command.get("writeConcern", {})), {"w", "j", "wtimeout", "fsync"}, "writeConcern")
        w = command.get("writeConcern", {}).get("w", 1)
        if not self._replicated and isinstance(w, int) and w > 1:
            raise Refusal(BAD_VALUE, "cannot use 'w' > 1 when a host is not replicated")

    async def ping(self, _command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        return {}

    async def build_info(self, _command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        return {"version": ".".join(map(str, self._version)), "versionArray": [*self._version, 0], "bits": 64}

    async def connection_status(
        self, _command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        if self._allowed is None:
            return {"authInfo": {"authenticatedUsers": [], "authenticatedUserRoles": []}}
        everywhere = {"resource": {"db": "", "collection": ""}, "actions": sorted(self._allowed)}
        return {
            "authInfo": {
                "authenticatedUsers": [{"user": "app", "db": "admin"}],
                "authenticatedUserRoles": [],
                "authenticatedUserPrivileges": [everywhere],
            }
        }

    async def end_sessions(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        self._sessions.end(command["endSessions"])
        return {}

    async def configure_fail_point(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        if command["$db"] != "admin":
            raise Refusal(13, "configureFailPoint may only be run against the admin database.")
        self.fail_point.configure(command)
        return {}

    async def commit_transaction(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        self._sessions.commit(command)
        return {}

    async def abort_transaction(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        self._sessions.abort(command)
        return {}


__all__ = ["Commands"]
