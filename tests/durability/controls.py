"""Red controls: the mistakes that the promises of this folder would not survive, made on purpose.

A test that passes with its control applied proves nothing; each control has a test that sees it lose.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import apsw

from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_changes
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.stores.sqlite.writer import Writer, _Job, _settle

Control = Callable[[SQLiteStore], AbstractContextManager[None]]
NEXT_SCHEMA = (
    (
        "create table later (id integer primary key, note text not null)",
        "insert into later (note) select name from records",
        "alter table meta add column changed integer",
        "update meta set changed = 1",
        "create index records_by_version on records (version)",
    ),
)
"""A migration as a later version may bring one."""


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` meanwhile."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class AcknowledgesFirst(Writer):
    """Answers once the work is done, then commits."""

    def _commit(self, connection: apsw.Connection, jobs: list[_Job]) -> None:
        real = connection.execute

        class Early:
            def __getattr__(self, name: str) -> Any:
                return getattr(connection, name)

            def execute(self, sql: str, *rest: Any) -> Any:
                if sql == "commit":
                    for job in jobs:
                        _settle(job)
                    jobs.clear()
                return real(sql, *rest)

        super()._commit(Early(), jobs)  # type: ignore[arg-type]


class Swallows(Writer):
    """Takes an error of the disk for success."""

    def _sound(self) -> apsw.Connection:
        self.suspect = None
        return super()._sound()

    def _commit(self, connection: apsw.Connection, jobs: list[_Job]) -> None:
        try:
            super()._commit(connection, jobs)
        except apsw.Error:
            if connection.in_transaction:
                connection.execute("rollback")


class TwoTransactions(Writer):
    """Commits between the changes of a write."""

    def _commit(self, connection: apsw.Connection, jobs: list[_Job]) -> None:
        real = sqlite_changes.SqliteScopeChanges.finish

        def finish(changes: sqlite_changes.SqliteScopeChanges) -> None:
            connection.execute("commit")
            connection.execute("begin immediate")
            connection.execute("savepoint job")
            real(changes)

        with replaced(sqlite_changes.SqliteScopeChanges, "finish", finish):
            super()._commit(connection, jobs)


class ReopensFirst(Writer):
    """After a fault closes the file and opens it anew, and so takes in what was reported as failed."""

    def _verify(self) -> None:
        self._abandon()
        super()._verify()


class GoesOn(Writer):
    """After a fault goes on as if nothing had happened."""

    def _verify(self) -> None:
        pass


class KeepsTheLockAfterAFork(Writer):
    """Lets a forked child inherit it."""

    def let_go(self) -> None:
        pass


class NoLock(Writer):
    """Takes no turns among the processes on a file."""

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        yield


def _writer(kind: type[Writer]) -> Control:
    def apply(store: SQLiteStore) -> AbstractContextManager[None]:
        return replaced(store, "_writer", kind(str(store._path), store._vfs))

    return apply


def _settings(old: str, new: str) -> Control:
    changed = tuple(setting.replace(old, new) for setting in sqlite_schema._SETTINGS)
    assert changed != sqlite_schema._SETTINGS
    return lambda _store: replaced(sqlite_schema, "_SETTINGS", changed)


def _no_expectations(_store: SQLiteStore) -> AbstractContextManager[None]:
    real = sqlite_changes.SqliteScopeChanges._put

    def put(changes: Any, change: Any) -> None:
        real(changes, type(change)(record=change.record))

    return replaced(sqlite_changes.SqliteScopeChanges, "_put", put)


def _by_statements(_store: SQLiteStore) -> AbstractContextManager[None]:
    def migrate(connection: apsw.Connection) -> None:
        for number in range(connection.pragma("user_version"), sqlite_schema.VERSION):
            for statement in sqlite_schema.MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"pragma user_version = {number + 1}")

    return replaced(sqlite_schema, "migrate", migrate)


_CONTROLS: dict[str, Control] = {
    "acknowledge first": _writer(AcknowledgesFirst),
    "swallow errors": _writer(Swallows),
    "two transactions": _writer(TwoTransactions),
    "reopen first": _writer(ReopensFirst),
    "go on": _writer(GoesOn),
    "keep the lock after a fork": _writer(KeepsTheLockAfterAFork),
    "no lock": _writer(NoLock),
    "synchronous = normal": _settings("synchronous = full", "synchronous = normal"),
    "secure_delete = off": _settings("secure_delete = on", "secure_delete = off"),
    "migrate by statements": _by_statements,
    "no expectations": _no_expectations,
}


@contextlib.contextmanager
def applied(store: SQLiteStore, control: str | None) -> Iterator[None]:
    """Make this mistake in `store` meanwhile; None: none."""
    if control is None:
        yield
        return
    with _CONTROLS[control](store):
        yield


__all__ = ["NEXT_SCHEMA", "applied", "replaced"]
