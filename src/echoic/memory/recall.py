"""One search: embed the question, load the partitions, rank, read the hits; within a deadline."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from echoic.checks import has_members
from echoic.embedding.base import CachedEmbedder, Embedded, Embedder
from echoic.errors import EmbedderError, EmbedderMissing, InvalidInput, NotOpen, brief
from echoic.memory.concurrency import noted
from echoic.memory.guarded_store import HomeLoop
from echoic.memory.hits import as_stored, behind_successors, chosen, hit_of, relevant, rooted, told
from echoic.memory.records import CONVERSATION, memory_of, scan_all
from echoic.partition import Partition, number_of
from echoic.ranking.fusion import FUSIONS, Fusion
from echoic.ranking.layout import unembedded
from echoic.ranking.query import Query, query_of
from echoic.ranking.rank import FLOOR, LEXICAL_FLOOR, RankedRow, prepare, rank
from echoic.ranking.relevance import SILENCE
from echoic.stores.base import Narrows, Record, Store
from echoic.temporal import NOTHING, Spans, may_mean_time
from echoic.types import Cut, Hit, Memory, Outcome, Recall, Scope, checked_name

if TYPE_CHECKING:
    from echoic.memory.assurance import Visibility
    from echoic.memory.profile import TimeReader

log = logging.getLogger(__name__)

MAX_LIMIT = 1000
"""The most hits of one search."""
_LEFT_OUT = 25
"""Hits read beyond the limit if some are left out."""
_LOOKED_THROUGH = 200
"""Hits read at most where what the caller may not be told is left out; that may rank first, too."""
_NARROWED = 200
"""Rows that each search in a database returns for a scope too large to load."""
_INLINE_ROWS = 4_000
"""Up to this many rows ranking runs on the loop, above it in a thread: agents' audio runs on the loop."""
_LEAST_ROOM = 5
"""Rows ranked at least. Those beyond the limit are only used where they may replace one of the others."""
_ON_THEIR_WAY = 32
"""Rows without a vector that are not reported: new ones get it within milliseconds. More are a backlog, as
after an import, a change of model or an outage of the embedder."""
_REST_S = 0.02
"""Seconds between two preparations: an import writes all the time, without searches in between."""
_TOGETHER_S = 0.1
"""Seconds from a write to its preparation: a turn of a call is several writes, and then there is a pause."""
_LEAST_MS = 0.01
_CALLS = "recall.calls"
"""Key in a partition's scratch: a revision, and whether an agent took part in any conversation then."""

T = TypeVar("T")


def checked_deadline(after_ms: object) -> float | None:
    """`after_ms` as a deadline from now; None for none, InvalidInput if not above 0."""
    if after_ms is None:
        return None
    number = float(after_ms) if isinstance(after_ms, Real) else 0.0
    if not number > 0:  # NaN is not above 0 either
        raise InvalidInput(f"deadline_ms must be a number above 0, not {brief(after_ms)}")
    return number


class Deadline:
    """A deadline that starts when it is made. Late work goes on, so a later request finds it done."""

    def __init__(self, after_ms: float | None) -> None:
        self._at = None if after_ms is None else asyncio.get_running_loop().time() + after_ms / 1000
        self.missed = False
        """Whether anything was late."""

    @property
    def left_ms(self) -> float | None:
        """Milliseconds left, at least a few; None without a deadline."""
        if self._at is None:
            return None
        return max(1000 * (self._at - asyncio.get_running_loop().time()), _LEAST_MS)

    async def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`, started now; None, with `missed` set, if it is late."""
        if self._at is None:
            return await work  # without a task: most recalls have no deadline, and most work does not wait
        return await self.wait(asyncio.ensure_future(work))

    async def wait(self, work: asyncio.Future[T]) -> T | None:
        """The result of `work`; None, with `missed` set, if it is late. Its exception is raised."""
        if work.done():
            return work.result()
        try:
            async with asyncio.timeout_at(self._at):
                return await asyncio.shield(work)
        except TimeoutError:
            # a time-out of the store or the model is its failure, not this deadline
            if work.done():
                return work.result()
            self.missed = True
            work.add_done_callback(noted)
            return None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search; see `UserMemory.recall`."""

    limit: int = 10
    deadline_ms: float | None = None
    include_past: bool = False
    timezone: str | tzinfo | None = None
    min_relevance: float | None = None
    besides: str | Collection[str] | None = None
    meanwhile: str | None = None
    """Another text whose vector, if known, is used when that of the query is late."""
    visible: Visibility | None = None
    """What the caller may be told, if not everything."""

    def checked(self) -> Self:
        """These options; raises InvalidInput if one is not valid."""
        limit = self.limit
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {brief(limit)}")
        if self.deadline_ms is not None:
            checked_deadline(self.deadline_ms)
        checked_relevance(self.min_relevance)
        for name in self.left_out:
            checked_name(name, "an id in besides")
        return self

    @property
    def left_out(self) -> frozenset[str]:
        """The ids of `besides`."""
        given = self.besides
        if given is not None and not isinstance(given, Collection):
            raise InvalidInput(f"besides must be one id or several, not {type(given).__name__}")
        return frozenset(() if given is None else (given,) if isinstance(given, str) else given)

    @property
    def sessions(self) -> frozenset[int]:
        """The ids of `besides` as session numbers, as if all were conversations."""
        return frozenset(map(number_of, self.left_out))

    @property
    def looked_at(self) -> int:
        """How many hits to use: more if some are left out, which may rank first."""
        return min(self.limit + _LEFT_OUT, MAX_LIMIT) if self.left_out else self.limit


@dataclass(frozen=True, slots=True)
class _Ready:
    """The inputs of ranking that were ready by the deadline."""

    scope: Scope
    text: str
    works: Sequence[asyncio.Future[Embedded]]
    asked_in: Sequence[Scope]
    """The scopes to search: the user's own, the deployment's global one, and shared ones."""
    places: dict[Scope, Partition]
    newest: bool
    spans: Spans | None
    made: Embedded | None
    outcome: Outcome


class Shares:
    """The other deployments whose global memories a deployment reads. By default none.

    Shares are not transitive: what those deployments read from others is not passed on.

    Args:
        given: by deployment, the ones whose global scope it reads, in search order; also as "acme=kb,more;
            shop=kb", if no name contains "=", "," or ";".

    Raises:
        InvalidInput: a name is not valid, one is named twice, or a deployment names itself.
    """

    def __init__(self, given: str | Mapping[str, Sequence[str]] | None = None) -> None:
        given = _shares_from(given) if isinstance(given, str) else given
        self._scopes = {reader: _scopes(reader, named) for reader, named in (given or {}).items()}

    def of(self, scope: Scope) -> tuple[Scope, ...]:
        """The global scopes of other deployments that are searched for `scope`."""
        return self._scopes.get(scope.deployment, ())

    def places(self, scope: Scope) -> tuple[Scope, ...]:
        """Everything that is searched for `scope`: its own, global and shared memory."""
        everyone = scope.everyone
        return (scope, everyone, *self._scopes.get(scope.deployment, ()))


def _shares_from(text: str) -> dict[str, tuple[str, ...]]:
    given: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        reader, equals, named = (piece.strip() for piece in part.partition("="))
        if not equals or "=" in named:
            raise InvalidInput(
                f"shares must be READER=NAME,NAME;READER=NAME, not {brief(text)}: see {brief(part)}"
            )
        if reader in given:
            raise InvalidInput(
                f"shares name the reader {brief(reader)} twice: put what it reads behind one '='"
            )
        given[reader] = tuple(name.strip() for name in named.split(","))
    return given


def _scopes(reader: str, named: Sequence[str]) -> tuple[Scope, ...]:
    own = Scope(reader, None)
    if isinstance(named, str):
        raise InvalidInput(f"what {brief(reader)} reads must be several names, not one text: write (name,)")
    scopes = tuple(Scope(name, None) for name in named)
    if own in scopes:
        raise InvalidInput(f"deployment {brief(reader)} reads what is global in it anyway: leave it out")
    if len(set(scopes)) < len(scopes):
        raise InvalidInput(f"what {brief(reader)} reads names a deployment twice")
    return scopes


class Recaller:
    """Searches a user's own memory, what is global and what is shared, as one ranking.

    It reads the unwrapped `store`, so every search first checks with `home` that it is allowed.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        *,
        fusion: str | Fusion,
        shares: Shares | None = None,
        home: HomeLoop | None = None,
    ) -> None:
        self._store = store
        self._home = home or HomeLoop()
        self.shares = shares or Shares()
        # the last partial transcript is embedded again as the final one, and by tools
        self._embedder = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        self._fusion = fusion
        self._semantic = embedder.semantic
        self._floor = FLOOR if embedder.semantic else LEXICAL_FLOOR
        self._spec = embedder.spec
        self._is_shipped = self._spec.model.startswith("local:all-MiniLM-L6-v2:")
        self._tells_failure = hasattr(store, "failure")
        self._narrows = cast("Narrows", store) if has_members(store, Narrows) else None
        self._searched: WeakValueDictionary[Scope, Partition] = WeakValueDictionary()
        """Scopes that were searched and are still in memory."""
        self._stale: dict[Scope, float] = {}
        """Scopes to be prepared, and when."""
        self._preparing: asyncio.Task[None] | None = None

    def written(self, scope: Scope) -> None:
        """Load what was written and prepare it for the next search, after the write is answered.

        Only for scopes that were searched before. Several writes are prepared together.
        """
        if scope not in self._searched:
            return
        loop, task = asyncio.get_running_loop(), self._preparing
        self._stale.setdefault(scope, loop.time() + _TOGETHER_S)
        if task is None or task.done() or task.get_loop() is not loop:
            self._preparing = asyncio.create_task(self._prepare(), name="echoic-prepare")

    async def _prepare(self) -> None:
        while self._stale:
            scope, due = next(iter(self._stale.items()))
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            self._stale.pop(scope, None)
            try:
                loaded, _ = await self._load(self.shares.places(scope), Deadline(None))
                for at, partition in loaded.items():
                    await self._prepare_one(at, partition)
            except Exception as error:  # noqa: BLE001 - the outermost frame: the next question meets it, and says so
                log.debug("%s: the next question prepares what was written", type(error).__name__)
            await asyncio.sleep(_REST_S)

    async def _prepare_one(self, scope: Scope, partition: Partition) -> None:
        if partition.size > _INLINE_ROWS:
            await asyncio.to_thread(prepare, partition)
        else:
            prepare(partition)
        if _CALLS in partition.scratch:
            await self._are_calls({scope: partition})

    async def recall(
        self, scope: Scope, text: str, *, limit: int, besides: str | Collection[str] | None = None
    ) -> Recall:
        """Everything found for `text`, past or not, relevant or not, without resolving times: used to look up
        events.
        """
        asked = SearchOptions(limit, include_past=True, min_relevance=0.0, besides=besides)
        return await self.search(scope, text, asked)

    async def search(
        self, scope: Scope, text: str, asked: SearchOptions, times: Callable[[], TimeReader] | None = None
    ) -> Recall:
        """The best hits for `text`.

        Embedding, loading and resolving times run concurrently. A step that is late is left out and named in
        `Recall.cut`. Without `times`, times in the question are not resolved.
        """
        asked, asked_in = asked.checked(), self.shares.places(scope)
        self._home.check()  # before anything is started in another loop
        release = self._embedder.hold_documents()
        try:
            works = [self._embedder.begin(each) for each in (text, asked.meanwhile) if each]
            until = Deadline(asked.deadline_ms)
            places, newest = await self._load(asked_in, until)
            spans: Spans | None = NOTHING
            if times is not None and may_mean_time(text):
                known = {at: one for at, one in places.items() if newest and one.size <= _INLINE_ROWS}
                spans = await until.run(times().read(scope, text, asked.timezone, asked.besides, known))
            elif times is not None and asked.timezone is not None:
                await until.run(times().zone(scope, asked.timezone))  # one that is unknown is refused
            made, outcome = await self._wait(works, until)
            return await self._found(
                _Ready(scope, text, works, asked_in, places, newest, spans, made, outcome), asked, until
            )
        finally:
            release()

    async def search_items(
        self, scope: Scope, group: str, text: str, asked: SearchOptions, *, every: bool
    ) -> tuple[list[tuple[Record, float]], Outcome]:
        """The items of the kind `group` found by `text`, with their relevance; `every` one, or as many as
        asked for. See `Items.search`.
        """
        self._home.check()
        release = self._embedder.hold_documents()
        try:
            work = self._embedder.begin(text)
            until = Deadline(asked.deadline_ms)
            partition = await self._store.load(scope)
            made, outcome = await self._wait([work], until)
            with partition.lock:
                items = partition.items(group)
            vector, pieces = (made.vectors[0], made.pieces) if made else (None, None)
            exact = pieces[0] if pieces else None
            query = query_of(text, vector, pieces=exact, shipped=self._is_shipped)
            found, _ = await self._rank(query, [items], max(1, items.size) if every else asked.limit)
            found = as_stored(found, [items])
            records = {
                record.seq: record for record in await self._store.rows(scope, [one.row for one in found])
            }
        finally:
            release()
        there = [(records[one.row], one.relevance) for one in found if one.row in records]
        return there, "deadline" if until.missed else outcome

    async def _found(self, ready: _Ready, asked: SearchOptions, until: Deadline) -> Recall:
        """Rank what is ready, and note what is not."""
        places, spans, made = ready.places, ready.spans or NOTHING, ready.made
        vector = made.vectors[0] if made else None
        past = asked.include_past or spans.past
        if self._narrows is not None:
            await self._narrow(self._narrows, ready, until, vector=vector, include_past=past)
        own_vector = _made(ready.works[0])
        exact = made.pieces[0] if made and made.pieces and own_vector else None  # of exactly these words
        query = partial(query_of, ready.text, vector, pieces=exact, shipped=self._is_shipped)
        looked_at, left_out, every = asked.looked_at, asked.left_out, asked.min_relevance == 0
        read, waiting, withheld = await self._search(query, places, ready.scope, spans, asked)
        hits = told(
            read, ready.text, spans, ready.scope, limit=looked_at, left_out=left_out, own_phrases=every
        )
        narrowed = {at for at, partition in places.items() if partition.origin is not None}
        if narrowed and not hits:
            waiting = max(waiting, await until.run(self._waiting_in(narrowed)) or 0)
        cut = self._cut(
            ready,
            narrowed=bool(narrowed),
            newest=ready.newest and self._newest(),
            vector=own_vector,
            waiting=waiting,
        )
        outcome = ready.outcome
        if not {"newest", "date", "unembedded"}.isdisjoint(cut):
            outcome = "unavailable"
        recall = Recall(
            hits=hits[: asked.limit],
            outcome="deadline" if until.missed else outcome,
            cut=cut,
            pipeline=() if withheld else self._done(ready, asked.limit, closely=exact is not None),
            withheld=withheld and asked.visible is not None and asked.visible.hints,
        )
        return recall if asked.visible is None else asked.visible.recall(recall)

    def _cut(
        self, ready: _Ready, *, narrowed: bool, newest: bool, vector: bool, waiting: int
    ) -> tuple[Cut, ...]:
        """The steps that were left out."""
        own, everyones, *shared = ready.asked_in
        there: dict[Cut, bool] = {
            "own": own in ready.places,
            "global": everyones in ready.places,
            "shared": all(at in ready.places for at in shared),
            "newest": newest,
            "vector": vector,
            # a database finds candidates by words and meaning, of which "what did I say today" has none
            "date": (spans := ready.spans) is not None and not (spans.assumed or (spans.bare and narrowed)),
            "unembedded": waiting <= _ON_THEIR_WAY,
        }
        return tuple(name for name, is_there in there.items() if not is_there)

    def _done(self, ready: _Ready, limit: int, *, closely: bool) -> tuple[dict[str, Any], ...]:
        """The steps of a search, as JSON."""
        spec = self._spec
        embedded = {"model": spec.model, "dimensions": spec.dimensions, "embedded": ready.made is not None}
        chosen = FUSIONS.get(self._fusion) if isinstance(self._fusion, str) else self._fusion
        plan = chosen.plan if chosen is not None else ()
        own, everyones, *_ = ready.asked_in
        names = {own: "own", everyones: "global"}
        searched = {
            names.get(at) or f"shared by {at.deployment}": _looked_into(partition)
            for at, partition in ready.places.items()
        }
        fused = (step for step in plan if closely or "weighClosely" not in step)
        return ({"embed": embedded}, {"search": searched}, *fused, {"limit": limit})

    def _newest(self) -> bool:
        """Whether the store is current, rather than serving a cache of a lost database."""
        return not self._tells_failure or getattr(self._store, "failure", None) is None

    def check_loop(self) -> None:
        """See `UserMemory.check_loop`."""
        self._home.check_open()

    def forget(self) -> None:
        """Drop recent questions: they contain a user's words."""
        self._embedder.clear()

    async def aclose(self) -> None:
        """Stop waiting for embeddings and preparations, and release them."""
        self._stale.clear()
        if self._preparing is not None and not self._preparing.done():
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
        self._preparing = None
        await self._embedder.stop()

    async def partitions(self, scope: Scope) -> list[Partition | None]:
        """The searched partitions, None for one too large to load; NotOpen in another event loop."""
        self._home.check()
        return [
            None if await self._is_large(at) else await self._store.load(at)
            for at in self.shares.places(scope)
        ]

    async def _load(self, places: Sequence[Scope], until: Deadline) -> tuple[dict[Scope, Partition], bool]:
        """The loaded partitions, without those of scopes too large to load, and whether they are current."""
        loaded: dict[Scope, Partition] = {}
        newest = True

        async def load(at: Scope) -> tuple[Partition, bool] | None:
            # one piece of work: where the size is known late, nothing is loaded before it is known
            if await self._is_large(at):
                return None
            # ask at once: when the next is loaded, the database may be back
            return await self._store.load(at), self._newest()

        for at in places:
            if (found := await until.run(load(at))) is not None:
                loaded[at] = self._searched[at] = found[0]
                newest = newest and found[1]
        return loaded, newest

    async def _narrow(
        self,
        store: Narrows,
        ready: _Ready,
        until: Deadline,
        *,
        vector: NDArray[np.float32] | None,
        include_past: bool,
    ) -> None:
        """Add the candidates `store` finds in scopes too large to load, to be ranked like the rest."""
        for at in ready.asked_in:
            if at not in ready.places and await until.run(self._is_large(at)):
                found = await until.run(
                    store.narrow(at, ready.text, vector, limit=_NARROWED, include_past=include_past)
                )
                if found is not None:
                    ready.places[at] = found

    async def _waiting_in(self, narrowed: Collection[Scope]) -> int:
        """How many of the rows that have waited longest for a vector are in scopes where the database found
        nothing.

        Nothing else shows whether the rest of such a scope has vectors.
        """
        return sum(one.scope in narrowed for one in await self._store.waiting(_NARROWED))

    async def _is_large(self, scope: Scope) -> bool:
        if self._narrows is None or self._narrows.narrow_above == sys.maxsize:
            return False
        return await self._narrows.size(scope) > self._narrows.narrow_above

    async def _search(
        self,
        query_for: Callable[..., Query],
        places: Mapping[Scope, Partition],
        own: Scope,
        spans: Spans,
        asked: SearchOptions,
    ) -> tuple[Sequence[Hit], int, bool]:
        """The hits, how many rows have no vector yet, and whether hits were withheld."""
        if not places:
            return (), 0, False
        # most global scopes are empty and need not be ranked; the first is the caller's own, even if empty
        known = {own: places.get(own) or Partition()}
        known |= {at: partition for at, partition in places.items() if partition.size}
        scopes, partitions = tuple(known), tuple(known.values())
        without = asked.sessions
        looked_in = rooted(spans, partitions, without)
        past = asked.include_past or spans.past
        query = query_for(include_past=past, wants_past=spans.past, spans=looked_in.ranges)
        visible, limit = asked.visible, asked.looked_at
        least = asked.min_relevance
        if visible is not None:  # the floor is that of what may be told
            limit, least = max(limit, _LOOKED_THROUGH), 0.0
        # past versions rank far behind current ones: leave room until they are reordered
        room = limit + 20 if spans.past else max(limit, _LEAST_ROOM)
        found, waiting = await self._rank(query, partitions, room, without=without)
        if found and found[0].among_people and await self._are_calls(known):
            found, _ = await self._rank(query, partitions, room, without=without, calls=True)
        if not (spans.past or any(one.outdated for one in found[:limit])):
            found = found[:limit]
        rows = chosen(
            found,
            query,
            partitions,
            looked_in,
            limit=limit,
            min_relevance=least,
            without=without,
        )
        if not rows:
            return (), waiting, False
        if visible is None:
            return behind_successors(*await self._read(scopes, rows)), waiting, False
        floor, hits, shown = found[0].floor if found else SILENCE, tuple[Hit, ...](), list[Hit]()
        read, ended = list[Hit](), list[Sequence[Memory]]()
        while rows and len(shown) < asked.looked_at:
            # what replaces a turn is in no earlier batch than the turn, and may be in a later one
            size = max(asked.looked_at, _LEAST_ROOM) if any(one.outdated for one in rows) else asked.looked_at
            more, gone = await self._read(scopes, rows[:size])
            read, ended, rows = [*read, *more], [*ended, *gone], rows[size:]
            hits = behind_successors(read, ended)
            shown = [part for hit in hits for part in visible.shown(hit)]
        best = relevant(hits[: asked.looked_at], asked.min_relevance, floor)
        withheld = any([*visible.shown(hit)] != [hit] for hit in best)
        return relevant(shown, asked.min_relevance, floor), waiting, withheld

    async def _are_calls(self, places: Mapping[Scope, Partition]) -> bool:
        """Whether an agent takes part in any conversation here, under whatever name."""
        for at, partition in places.items():
            if not partition.size:
                continue
            revision, with_agent = partition.scratch.get(_CALLS, (None, False))
            if revision != partition.revision:
                revision = (
                    partition.revision
                )  # before the records are read, so that later writes count as new
                conversations = await scan_all(self._store, at, CONVERSATION)
                with_agent = any(record.data.get("agent") for record in conversations)
                partition.scratch[_CALLS] = revision, with_agent
            if with_agent:
                return True
        return False

    async def _wait(
        self, works: Sequence[asyncio.Future[Embedded]], until: Deadline
    ) -> tuple[Embedded | None, Outcome]:
        """The first embedding, else another one that is ready by the deadline."""
        made: Embedded | None = None
        outcome: Outcome = "complete"
        try:
            made = await until.wait(works[0])
        except asyncio.CancelledError:
            if works[0].cancelled():
                raise NotOpen("the memory was closed while a recall was under way; open it again") from None
            raise
        except (
            EmbedderError,
            InvalidInput,
        ) as error:  # the text is valid, but a provider may still refuse it
            # the warning was logged on opening
            level = logging.DEBUG if isinstance(error, EmbedderMissing) else logging.WARNING
            log.log(level, "recall without vectors: %s", type(error).__name__)
            outcome = "unavailable"
        there = [work.result() for work in works[1:] if _made(work)]
        return next((found for found in (made, *there) if found is not None), None), outcome

    async def _rank(
        self,
        query: Query,
        partitions: Sequence[Partition],
        limit: int,
        *,
        without: Collection[int] = (),
        calls: bool = False,
    ) -> tuple[list[RankedRow], int]:
        """The ranked rows, and how many rows have no vector yet."""

        def search() -> tuple[list[RankedRow], int]:
            found = rank(
                query,
                partitions,
                limit=limit,
                fusion=self._fusion,
                floor=self._floor,
                semantic=self._semantic,
                without=without,
                calls=calls,
            )
            return found, unembedded(partitions)

        if sum(partition.size for partition in partitions) > _INLINE_ROWS:
            return await asyncio.to_thread(search)
        return search()

    async def _read(
        self, scopes: Sequence[Scope], found: Sequence[RankedRow]
    ) -> tuple[list[Hit], list[Sequence[Memory]]]:
        """The hits of the rows, without those erased meanwhile, and by hit what its turn says and no longer
        holds.
        """
        records: list[dict[int, Record]] = []
        for place, scope in enumerate(scopes):
            rows = [row for f in found if f.place == place for row in (f.row, *f.beside, *f.outdated)]
            records.append({r.seq: r for r in await self._store.rows(scope, rows)} if rows else {})
        hits, ended = list[Hit](), list[Sequence[Memory]]()
        for f in found:
            known = records[f.place]
            if there := [known[row] for row in (f.row, *f.beside) if row in known]:
                hits.append(hit_of(scopes[f.place], there, f))
                ended.append([memory_of(known[row]) for row in f.outdated if row in known])
        return hits, ended


def checked_relevance(value: object) -> None:
    """Raise InvalidInput if `value` is neither None nor a number from 0 to 1."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"min_relevance must be a number from 0 to 1, or None, not {type(value).__name__}")
    if not 0 <= value <= 1:
        raise InvalidInput(f"min_relevance must be from 0 to 1, not {value:g}")


def _looked_into(partition: Partition) -> dict[str, Any]:
    """How its rows were found: all in memory, or by which query in the database."""
    if partition.origin is None:
        return {"in": "memory"}
    return {"in": "database", "pipelines": list(partition.asked)}


def _made(work: asyncio.Future[Any]) -> bool:
    return work.done() and not work.cancelled() and work.exception() is None
