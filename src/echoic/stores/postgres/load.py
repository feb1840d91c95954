"""From rows in the database to segments of a partition: a whole scope, or the likely rows of a large one.

Segments are read in pieces, so that the event loop gets its turns. For a scope too large to load, the
database chooses likely rows by meaning, words and sounds, and the segments that contain them are ranked as in
every store. The vector search is exact: the rows of a scope are found by their key and all of them compared,
so nothing is missed, no index has to be built, and no erased data is left in one.

Every `load` compares versions, one cheap statement, so that the next query sees what any process wrote. Other
processes also announce their writes (LISTEN), so most of the refreshing is done by then, and what was erased
elsewhere leaves this process's memory at once. While the database is unreachable, loaded scopes go on
answering, for `stale_s` since they were last known to be current; but not those this process itself has
written to since.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt, StoreError, StoreUnavailable
from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.stores.base import Record, origins
from echoic.stores.postgres.changes import RECORD, VECTOR_HEADER, packed, record_of, signed, sounds_of
from echoic.stores.postgres.database import LOST, Connection, Database, let_go
from echoic.stores.postgres.schema import Names
from echoic.stores.scope_state import Loaded, ScopeCache
from echoic.text import content_words
from echoic.types import Scope

_AT_ONCE = 32
"""Segments per statement: 1,024 rows, about 2 MB and 5 ms."""
_ROW_BYTES = 300
"""Bytes of a record besides its JSON."""
REMEMBERED = "stores.postgres.records"
"""Key of a partition's scratch under which its records are kept."""

_CHANGED = "select number from {s}.segments where scope = $1 and version > $2 order by number"
_SEGMENTS = "select number, words from {s}.segments where scope = $1 and number = any($2::int[])"
# Rows that lie together are asked for as a range, others one by one: a join with ranges is what the planner
# gets wrong, and then compares all with all.
_RANGE = "scope = $1 and seq >= $2 and seq < $3"
_EACH = "scope = $1 and seq = any($2::bigint[])"
_VECTORS = "select seq, e from {s}.searchable where {rows} and e is not null"
_TOKENS = "select seq, data from {s}.tokens where {rows}"
_RECORDS = f"select {RECORD} from {{s}}.records where {{rows}}"  # noqa: S608 - column names


@dataclass(slots=True)
class Remembered:
    """The records of a loaded scope, for when the database is unreachable."""

    by_segment: dict[int, dict[int, Sequence[Any]]] = field(default_factory=dict)
    """The database rows, by segment and row."""
    _bytes: dict[int, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Approximate memory it takes."""
        return sum(self._bytes.values())

    def put(self, number: int, rows: dict[int, Sequence[Any]]) -> None:
        """Replace the records of segment `number`."""
        self.by_segment[number] = rows
        self._bytes[number] = sum(_ROW_BYTES + len(row[5]) for row in rows.values())

    def at(self, rows: Iterable[int]) -> list[Record]:
        """The records at these rows, in the order asked."""
        found = (self.by_segment.get(row // SEGMENT_ROWS, {}).get(row) for row in rows)
        return [record_of(row) for row in found if row is not None]


Part = tuple[int, Segment, dict[int, Sequence[Any]]]
"""A segment's number and content, and the records of its rows."""


async def catch_up(
    connection: Connection, names: Names, number: int, partition: Partition, version: int
) -> None:
    """Update `partition` to `version` of scope `number`, in a transaction that sees one state."""
    changed = [row[0] for row in await connection.fetch(names.sql(_CHANGED), number, partition.version)]
    parts: list[Part] = []
    # read everything before changing the partition: a lost connection then changes nothing
    for at in range(0, len(changed), _AT_ONCE):
        parts += await read_parts(connection, names, number, changed[at : at + _AT_ONCE])
    if len(parts) > _AT_ONCE:
        await asyncio.to_thread(_put_in_place, partition, parts)
    else:
        _put_in_place(partition, parts)
    partition.version = version


def _put_in_place(partition: Partition, parts: Sequence[Part]) -> None:
    with partition.lock:
        partition.patch([(number, segment) for number, segment, _ in parts])
        remembered = partition.scratch.setdefault(REMEMBERED, Remembered())
        for number, _, records in parts:
            remembered.put(number, records)


async def read_parts(
    connection: Connection, names: Names, number: int, segments: Sequence[int], *, records: bool = True
) -> list[Part]:
    """Read `segments` of scope `number` with vectors, word pieces and `records`, in order."""

    async def rows(statement: str) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = await connection.fetch(
            names.sql(statement.replace("{rows}", where)), number, *wanted
        )
        return found

    where, wanted = _wanted(segments)
    made = {
        at: Segment.from_bytes(words)
        for at, words in await connection.fetch(names.sql(_SEGMENTS), number, segments)
    }
    kept: dict[int, dict[int, Sequence[Any]]] = {at: {} for at in made}
    for seq, vector in await rows(_VECTORS):
        _attach(made[seq // SEGMENT_ROWS], seq % SEGMENT_ROWS, vector)
    for seq, data in await rows(_TOKENS):
        made[seq // SEGMENT_ROWS].tokens[seq % SEGMENT_ROWS] = data
    for row in await rows(_RECORDS) if records else ():
        kept[row[0] // SEGMENT_ROWS][row[0]] = row
    return [(at, made[at], kept[at]) for at in sorted(made)]


def _wanted(segments: Sequence[int]) -> tuple[str, list[Any]]:
    """The SQL condition for the rows of `segments`, in order, and its values after the scope."""
    if segments and segments[-1] - segments[0] == len(segments) - 1:
        return _RANGE, [segments[0] * SEGMENT_ROWS, (segments[-1] + 1) * SEGMENT_ROWS]
    return _EACH, [[row for at in segments for row in range(at * SEGMENT_ROWS, (at + 1) * SEGMENT_ROWS)]]


def _attach(segment: Segment, slot: int, vector: bytes) -> None:
    dimensions, _ = VECTOR_HEADER.unpack_from(vector)
    if segment.vectors is None:
        segment.vectors = np.zeros((SEGMENT_ROWS, dimensions), np.float32)
    if segment.vectors.shape[1] != dimensions:
        raise StoreCorrupt(
            f"vectors of {segment.vectors.shape[1]} and of {dimensions} dimensions lie together"
        )
    segment.vectors[slot] = np.frombuffer(vector, ">f4", offset=VECTOR_HEADER.size)


_K1, _B = 1.2, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009)."""
_MAX_WORDS = 64

# One pass over the scope's rows serves words and sounds, one serves the vectors. BM25 with a word said or
# not, and with the mean length of the rows that say one, for that of all rows would be another pass. A sound
# counts for words that nobody said: `unsaid` holds the sounds of those alone.
_SEARCH = f"""with
  mine as materialized (select seq, length, terms, sounds from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and (terms && $3::int[] or sounds && $4::int[])),
  facts as (select (select next_row from {{s}}.scopes where id = $1)::float8 as n,
    greatest(avg(length), 1)::float8 as mean from mine),
  said as materialized (select seq, length, term from mine
    join unnest($3::int[]) as term on term = any(terms)),
  rare as (select term, ln(1 + greatest(n - count(*), 0) / (count(*) + 0.5)) as idf
    from said, facts group by term, n),
  worded as (select seq from said join rare using (term), facts group by seq, length, mean
    order by sum(idf) / (1 + {_K1}::float8 * ({1 - _B}::float8 + {_B}::float8 * length / mean)) desc, seq
    limit $5),
  unsaid as (select distinct sound from unnest($6::int[], $7::int[]) as u (term, sound)
    where term not in (select term from rare)),
  sounded as (select seq from mine where sounds && array(select sound from unsaid)
    order by (select count(*) from unnest(sounds) as s where s in (select sound from unsaid)) desc, seq
    limit $5),
  near as (select seq from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and e is not null and $8::{{v}}.vector is not null
    order by e operator({{v}}.<#>) $8::{{v}}.vector, seq limit $5)
  select seq from near union select seq from worded union select seq from sounded"""  # noqa: S608


def shown(vector: NDArray[np.float32] | None, limit: int) -> tuple[dict[str, object], ...]:
    """The query as JSON for people. The statement is always the same; the words are a parameter."""
    ways = {"words": "BM25", "sounds": "of words nobody said"}
    meaning = {} if vector is None else {"meaning": f"exact inner product of {len(vector)} dimensions"}
    return ({"union": {**meaning, **ways}, "limitEach": limit},)


async def likely_rows(
    connection: Connection,
    names: Names,
    number: int,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    limit: int,
    include_past: bool,
) -> list[int]:
    """At most `limit` rows by each of meaning, words, and sounds of unsaid words."""
    words = list(dict.fromkeys(content_words(text)))[:_MAX_WORDS]
    heard = [(term, sound) for word in words for term in signed([word.term]) for sound in sounds_of([word])]
    rows = await connection.fetch(
        names.sql(_SEARCH),
        number,
        int(Flag.UNHEARD if include_past else Flag.UNHEARD | Flag.PAST),
        sorted(set(signed(word.term for word in words))),
        sorted({sound for _, sound in heard}),
        limit,
        [term for term, _ in heard],
        [sound for _, sound in heard],
        None if vector is None else packed(vector / max(float(np.linalg.norm(vector)), 1e-12)),
    )
    return [row[0] for row in rows]


async def compact(
    connection: Connection, names: Names, number: int, segments: list[int], dimensions: int
) -> Partition:
    """A partition of only these segments of scope `number`, concatenated."""
    parts = await read_parts(connection, names, number, segments, records=False)
    partition = Partition(dimensions)
    placed: list[tuple[int, Segment]] = [(place, segment) for place, (_, segment, _) in enumerate(parts)]
    with partition.lock:
        partition.patch(placed)
    partition.origin = origins([number for number, _, _ in parts])
    return partition


log = logging.getLogger(__name__)

VERSION = "select id, version from {s}.scopes where deployment = $1 and usr = $2"
ERASED = -1
"""The version announced for an erased scope."""
_NOWHERE = 0
"""The number of an empty scope; PostgreSQL counts from 1."""
PATIENCE_S = 1.0
"""Seconds a call waits for the database before it uses what is loaded."""
_REST_S = 0.25
"""Seconds after a failure in which calls do not try again."""
_GATHER_S = 0.01
"""Seconds for which notifications are gathered before they are handled."""
_LISTEN_AGAIN_S = 1.0


class FreshPartitions:
    """The loaded scopes, kept up to date.

    They answer for `stale_s` without being compared with the database; `listen`: receive notifications of
    other processes' writes.
    """

    def __init__(self, database: Database, *, cache_bytes: int, stale_s: float, listen: bool) -> None:
        self._database = database
        self._cache: ScopeCache[Loaded] = ScopeCache(cache_bytes)
        self._stale_s = stale_s
        self._listen = listen
        self._dimensions = 0
        self._scopes: dict[int, Scope] = {}
        self._behind: dict[Scope, int] = {}
        """Scopes this process wrote to since they were loaded, with their version then."""
        self._turns: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._news: set[Scope] = set()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._rest_until = 0.0
        self._drops = 0
        """How many scopes were dropped because they were erased."""
        self.failure: str | None = None
        """Why the database could not be reached last time; None if it was."""
        self.listening = False

    def start(self, dimensions: int) -> None:
        """Start refreshing, for vectors of `dimensions`."""
        self._dimensions = dimensions
        self._wake = asyncio.Event()
        self._tasks = [asyncio.create_task(self._catch_up(), name="echoic-postgres-news")]
        if self._listen and self._database.direct:
            self._tasks.append(asyncio.create_task(self._keep_listening(), name="echoic-postgres-listen"))

    async def stop(self) -> None:
        """Drop everything that is loaded."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clear()

    def clear(self, dimensions: int | None = None) -> None:
        """Drop what is loaded, as when vectors change to `dimensions`."""
        self._cache.clear()
        self._scopes.clear()
        self._behind.clear()
        self._dimensions = self._dimensions if dimensions is None else dimensions

    @property
    def facts(self) -> dict[str, int]:
        return {"loaded_scopes": len(self._cache), "loaded_bytes": self._cache.nbytes}

    def size(self, scope: Scope) -> int | None:
        """Rows of the loaded `scope`, rounded up to whole segments; None if it is not loaded."""
        loaded = self._cache.get(scope)
        return loaded.partition.size if loaded is not None else None

    async def load(self, scope: Scope) -> Partition:
        """`scope` as it is now, or as last loaded; StoreUnavailable if that is not usable."""
        if self._resting(scope):
            return self._as_it_was(scope).partition
        try:
            loaded = await self._current(scope)
        except StoreUnavailable as error:
            self._missed(error)
            return self._as_it_was(scope).partition
        self._reached()
        return loaded.partition

    async def rows(
        self, scope: Scope, rows: Sequence[int], ask: Callable[[bool], Awaitable[list[Record]]]
    ) -> list[Record]:
        """The records at `rows` as they are now, or as last loaded; raises as `load`.

        `ask` queries the database; with True it does not retry, since loaded records can be used.
        """
        if self._resting(scope):
            return self._remembered(scope, rows)
        try:
            return await ask(self._cache.get(scope) is not None)
        except StoreUnavailable as error:
            self._missed(error)
            return self._remembered(scope, rows)

    def _resting(self, scope: Scope) -> bool:
        """Whether the database was unreachable a moment ago, and `scope` can be answered without it."""
        resting = time.monotonic() < self._rest_until
        return resting and self._cache.get(scope) is not None and scope not in self._behind

    def _remembered(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        kept = self._as_it_was(scope).partition.scratch.get(REMEMBERED)
        return kept.at(rows) if isinstance(kept, Remembered) else []

    def wrote(self, scope: Scope, version: int) -> None:
        """Note that this process wrote, so that what is loaded is outdated."""
        loaded = self._cache.get(scope)
        if loaded is not None:
            self._behind[scope] = max(version, self._behind.get(scope, 0))
            self._tell(scope)

    def drop(self, scope: Scope) -> None:
        """Drop an erased `scope`, and empty the partition that a caller may still hold."""
        self._drops += 1
        self._forget(scope)

    def _forget(self, scope: Scope) -> None:
        """`drop`, also where nothing was erased: then what is being loaded meanwhile may be cached."""
        loaded = self._cache.get(scope)
        self._cache.drop(scope)
        self._behind.pop(scope, None)
        if loaded is None:
            return
        self._scopes.pop(loaded.number, None)
        partition = loaded.partition
        with partition.lock:
            partition.patch([(number, Segment()) for number in range(partition.size // SEGMENT_ROWS)])
            partition.scratch.pop(REMEMBERED, None)

    async def _current(self, scope: Scope) -> Loaded:
        # wait briefly if the scope is loaded, else as long as usual
        once = self._cache.get(scope) is not None
        wait_s = PATIENCE_S if once else None
        number, version = await self._database.read(
            scope, lambda connection: self._version(connection, scope), wait_s=wait_s, once=once
        )
        loaded = self._cache.get(scope)
        if loaded is None or (loaded.number, loaded.partition.version) != (number, version):
            async with self._turns.setdefault(scope, asyncio.Lock()):
                loaded = await self._database.read(
                    scope, lambda connection: self._loaded(connection, scope), snapshot=True, once=once
                )
        loaded.seen = _now_ms()
        return loaded

    async def _version(self, connection: Connection, scope: Scope) -> tuple[int, int]:
        names = self._database.names
        found = await connection.fetchrow(names.sql(VERSION), scope.deployment, scope.user or "")
        return (found[0], found[1]) if found else (_NOWHERE, 0)

    async def _loaded(self, connection: Connection, scope: Scope) -> Loaded:
        number, version = await self._version(connection, scope)
        loaded = self._cache.get(scope)
        # ahead of the server: it failed over to one that lacks the last writes, and would never catch up
        if loaded is None or loaded.number != number or loaded.partition.version > version:
            self._forget(scope)
            loaded = Loaded(Partition(self._dimensions), number, _now_ms())
        drops = self._drops
        if loaded.partition.version < version:
            await catch_up(connection, self._database.names, number, loaded.partition, version)
        if self._drops != drops:
            return loaded  # it may have been erased meanwhile: return it to this caller, but do not cache it
        self._cache.put(scope, loaded)
        self._scopes[number] = scope
        if self._behind.get(scope, 0) <= version:
            self._behind.pop(scope, None)
        return loaded

    def _as_it_was(self, scope: Scope) -> Loaded:
        loaded = self._cache.get(scope)
        if loaded is None:
            raise StoreUnavailable("PostgreSQL cannot be reached and nothing of this user is loaded. Retry.")
        if scope in self._behind:
            raise StoreUnavailable(
                "PostgreSQL cannot be reached, and what is loaded lacks the last write. Retry."
            )
        if _now_ms() - loaded.seen > 1000 * self._stale_s:
            raise StoreUnavailable(
                f"PostgreSQL was out of reach for {self._stale_s:g} s: what is loaded is too old to use. "
                "Retry."
            )
        return loaded

    def _missed(self, error: StoreUnavailable) -> None:
        if self.failure is None:
            log.warning("PostgreSQL cannot be asked; going on with what is loaded")
        self.failure = str(error)
        self._rest_until = time.monotonic() + _REST_S

    def _reached(self) -> None:
        if self.failure is not None:
            log.warning("PostgreSQL can be asked again")
        self.failure, self._rest_until = None, 0.0

    def _tell(self, scope: Scope) -> None:
        self._news.add(scope)
        self._wake.set()

    def _heard(self, payload: str) -> None:
        number, _, version = payload.partition(" ")
        try:
            scope, told = self._scopes.get(int(number)), int(version)
        except ValueError:  # any database user may send a notification
            return
        loaded = self._cache.get(scope) if scope is not None else None
        if scope is None or loaded is None:
            return
        if told == ERASED:
            self.drop(scope)
        elif loaded.partition.version < told:
            self._tell(scope)

    async def _catch_up(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            self._wake.clear()
            scopes, self._news = self._news, set()
            for scope in scopes:
                if self._cache.get(scope) is not None:
                    with contextlib.suppress(StoreError, TimeoutError):
                        await self._current(scope)
            # numbers of scopes that were evicted
            if len(self._scopes) > 2 * len(self._cache) + 100:
                self._scopes = {n: s for n, s in self._scopes.items() if self._cache.get(s) is not None}

    async def _keep_listening(self) -> None:
        """Listen for notifications, which are optional: it also works without a spare connection."""
        while True:
            ended = asyncio.Event()
            with contextlib.suppress(StoreError, *LOST):
                connection = await self._database.listen(self._heard, ended.set)
                self.listening = True
                try:
                    await ended.wait()
                finally:
                    self.listening = False
                    await let_go(connection)
            await asyncio.sleep(_LISTEN_AGAIN_S)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
