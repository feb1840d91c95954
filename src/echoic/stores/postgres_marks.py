"""Marks by which a process knows its own transactions again, when the answer to a commit was lost.

A transaction writes a number nobody else has into a row of this process; whether it was committed is whether
the number is there. `pg_xact_status` cannot say so after a crash: the number of a transaction that was lost
with the server may be given to another one. A row has one transaction at a time, and rows are as many as
connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from echoic.errors import StoreUnavailable
from echoic.stores.postgres_schema import Names

_MAKE = "insert into {s}.writers (id) select unnest($1::bigint[]) on conflict (id) do update set at = now()"
_DROP = "delete from {s}.writers where id = any($1::bigint[])"
_TIDY = "delete from {s}.writers where at < now() - interval '7 days'"
"""Of processes that ended without a word. One that lives on makes its rows again."""
# waits for the transaction, should it still be under way
_MARK = "select mark from {s}.writers where id = $1 for update"


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and its values."""

    sql: str
    values: tuple[object, ...] = ()


class Marks:
    """The rows of one process.

    Args:
        count: how many, which is how many transactions may be open at once.
    """

    def __init__(self, count: int) -> None:
        self._rows = [secrets.randbits(62) for _ in range(count)]
        self._free: asyncio.LifoQueue[int] = asyncio.LifoQueue()
        for row in self._rows:
            self._free.put_nowait(row)

    @contextlib.asynccontextmanager
    async def row(self, left_s: float) -> AsyncIterator[int]:
        """A row of our own, until what became of its transaction is known.

        Raises:
            StoreUnavailable: none became free in time.
        """
        try:
            async with asyncio.timeout(left_s):
                row = await self._free.get()
        except TimeoutError:
            raise StoreUnavailable("too many writes wait for PostgreSQL already. Retry.") from None
        try:
            yield row
        finally:
            self._free.put_nowait(row)

    def made(self, names: Names) -> list[Statement]:
        """What makes the rows."""
        return [Statement(names.sql(_TIDY)), Statement(names.sql(_MAKE), (self._rows,))]

    def dropped(self, names: Names) -> Statement:
        """What removes them."""
        return Statement(names.sql(_DROP), (self._rows,))

    @staticmethod
    def begun(names: Names, row: int, mark: int) -> str:
        """What begins a transaction that leaves `mark` in `row`: two statements in one round trip.

        Both numbers are made here; the driver takes no values for two statements at once.
        """
        return names.sql(
            f"BEGIN; update {{s}}.writers set mark = {mark:d}, at = now() where id = {row:d};"  # noqa: S608
        )

    @staticmethod
    def asked(names: Names, row: int) -> Statement:
        """What tells the mark that `row` has, once no transaction of it is under way."""
        return Statement(names.sql(_MARK), (row,))


def new_mark() -> int:
    """A number that nobody else has."""
    return secrets.randbits(62)


__all__ = ["Marks", "Statement", "new_mark"]
