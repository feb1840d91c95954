"""Recall while the caller is still speaking, on interim transcripts, so that the result is ready at the end.

    listening = ana.listen()
    listening.partial("what is the name")              # as the recogniser writes
    listening.partial("what is the name of my dog")
    early = await listening.peek()                     # None, or what is found so far
    recall = await listening.final("What is the name of my dog?", deadline_ms=150)

It guesses nothing: `final` reuses a result only if it was found for the same question and nothing was written
since. Each instance serves one caller; callers share encoder and partitions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from echoic.checks import searchable
from echoic.errors import EchoicError, InvalidInput, NotOpen
from echoic.memory.recall import Deadline, SearchOptions, checked_deadline
from echoic.partition import Partition
from echoic.ranking.query import Query, query_of
from echoic.temporal import may_mean_time
from echoic.types import Hit, Recall, Scope, checked_query

log = logging.getLogger(__name__)

MAX_ALTERNATIVES = 3
"""How many of a recogniser's alternatives are searched for."""
PATIENCE_S = 0.05
"""Seconds after which a newer text is searched for beside a search in progress; longer than any local search.
"""
REFRESH_S = 0.05
"""Seconds between checks whether results are still current. The agent's words are stored, and get their
vector, after the caller has begun to answer."""
_WATCHED_S = 15.0
"""Seconds after the last new word for which results are refreshed: some utterances are never ended."""
_AT_ONCE = 2
_KEPT = 16


@dataclass(frozen=True, slots=True)
class InterimSearches:
    """The searches of one user, always with the same options."""

    find: Callable[[str, SearchOptions], Awaitable[Recall]]
    asked: SearchOptions
    partitions: Callable[[], Awaitable[list[Partition | None]]]
    """The searched partitions in their current state; None for one that is not loaded."""
    level_of_user: Callable[[], str]

    async def search(
        self, text: str, *, deadline_ms: float | None = None, meanwhile: str | None = None
    ) -> Recall:
        """The results for `text`; the vector of `meanwhile` may be used if that of `text` is late."""
        return await self.find(text, replace(self.asked, deadline_ms=deadline_ms, meanwhile=meanwhile))

    @property
    def sessions(self) -> frozenset[int]:
        """The numbers of the conversations that are left out, so that their turns change nothing."""
        return self.asked.sessions

    @property
    def level(self) -> str:
        """The assurance level at which is searched now."""
        return self.level_of_user()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningStatistics:
    """Counts since listening began."""

    partials: int = 0
    """Interim transcripts with new words."""
    searches: int = 0
    """Searches started for them."""
    spared: int = 0
    """Partials that needed no search: their new words change no result."""
    passed_over: int = 0
    """Partials replaced by a newer one before they were searched for."""
    corrections: int = 0
    """Partials that changed words of the previous one."""
    refreshed: int = 0
    """Searches repeated because something was written or forgotten meanwhile."""
    finals: int = 0
    ready: int = 0
    """Finals whose result was ready."""
    late: int = 0
    """Finals that got a partial result at their deadline."""
    added_delay_ms: float = 0.0
    """How long the last final waited for its result."""


_State = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _FoundForText:
    """The results found for one text."""

    text: str
    meaning: Query
    recall: Recall
    state: _State
    """The assurance level, and the partitions searched with their revisions."""
    stable: bool
    """Whether the previous search, which differed only in function words, found the same in the same order.
    """


class Speculation:
    """Searches on one caller's interim transcripts, in one event loop; see `UserMemory.listen`."""

    def __init__(self, searcher: InterimSearches) -> None:
        self._searcher = searcher
        self._known = OrderedDict[str, _FoundForText]()
        self._heard = ""
        self._readings: list[str] = []
        """The alternatives given last."""
        self._waiting: list[str] = []
        """What to search for next: the newest partial, then its alternatives."""
        self._running: dict[asyncio.Task[None], str] = {}
        self._begun_at = 0.0
        self._heard_at = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        self._last: _FoundForText | None = None
        self.statistics = ListeningStatistics()
        self.on_found: Callable[[Recall], None] | None = None
        """Called with each complete result for the words so far, to prepare a reply ahead of time. `final`
        returns the same object if it answers the whole utterance. Must neither wait nor raise."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def partial(self, text: str, alternatives: Sequence[str] = ()) -> None:
        """Take the interim transcript of the utterance so far. Never waits, and never fails on a text.

        If partials come faster than they can be searched for, the newest counts. A partial may change earlier
        words.

        Args:
            text: the whole utterance so far, not only what is new. Of a long one the end is searched for.
            alternatives: other hypotheses of the recogniser, likeliest first. The first three are searched
                for, if there is time. New ones count even if the text is the same.

        Raises:
            InvalidInput: `text` is not a string.
            NotOpen: after `aclose()`.
        """
        self._check_open()
        if not isinstance(text, str):
            raise InvalidInput(f"partial must be a string, not {type(text).__name__}")
        text, readings = _spoken(searchable(text)), _readings(alternatives)
        if not text:
            return
        if text == self._heard:
            self._reread(readings)
            return
        took_back = not text.casefold().startswith(self._heard.casefold())
        passed_over = self._heard in self._waiting
        self._heard, self._heard_at = text, asyncio.get_running_loop().time()
        self._count(partials=1, corrections=took_back, passed_over=passed_over)
        self._waiting = []
        if (known := self._answering(text)) is not None:
            self._count(spared=1)
            self._found(known)
        elif text not in self._running.values():
            self._waiting = [text]
        self._readings = readings
        self._waiting += self._unsearched(readings)
        self._advance()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def final(
        self, text: str, *, alternatives: Sequence[str] = (), deadline_ms: float | None = None
    ) -> Recall:
        """The results for the whole utterance; at once, if a partial transcript asked the same.

        The results for a partial are used only if words, names, times and kind of question are the same and
        nothing was written or forgotten meanwhile. The utterance itself may be appended before this call if
        its conversation is left out (`besides`); otherwise append it afterwards. If nothing is found, the
        alternatives are tried.

        Args:
            text: the final transcript.
            alternatives: other hypotheses of the recogniser, likeliest first. The first three are tried;
                those that cannot be searched for are ignored.
            deadline_ms: after this, the best result so far: the words of the whole with the vector of the
                last partial. `Recall.outcome` and `Recall.cut` say so.

        Raises:
            InvalidInput: `text` is blank or cannot be searched for.
            NotOpen: after `aclose()`.
            StoreUnavailable: the store could not be read.
        """
        self._check_open()
        self._stop_watching()
        checked_query(text)
        checked_deadline(deadline_ms)
        clock = asyncio.get_running_loop().time
        begun, until, heard = clock(), Deadline(deadline_ms), self._heard
        self._waiting = []
        if begun > self._heard_at + _WATCHED_S:
            self._drop_times()
        known = await self._fresh(self._answering(_spoken(text)), until)
        recall = known.recall if known else await self._asked(_spoken(text), until)
        for other in _readings(alternatives):
            # by words alone, while vectors are pending, an alternative may find what the text does not
            if not recall.hits and (recall.outcome == "complete" or recall.cut == ("unembedded",)):
                recall = await self._asked(other, until)
        self._count(finals=1, ready=known is not None, late=recall.outcome == "deadline")
        self.statistics = replace(self.statistics, added_delay_ms=1000 * (clock() - begun))
        if self._heard == heard:  # otherwise a new utterance has begun
            self._heard, self._last = "", None
            self._drop_times()
        return recall

    async def peek(self) -> Recall | None:
        """The results for the words so far, if they are ready; otherwise None. Never waits for a search.

        For a reply that is prepared before the utterance ends.

        Raises:
            NotOpen: after `aclose()`.
            StoreUnavailable: it could not be checked whether the results are still current.
        """
        self._check_open()
        known = self._answering(self._heard) if self._heard else None
        return known.recall if known is not None and known.state == await self._state() else None

    def reset(self) -> None:
        """Drop the utterance and its results. Its embeddings stay cached."""
        self._heard, self._last = "", None
        self._known.clear()
        self._waiting = []
        self._stop_watching()
        for task in self._running:
            task.cancel()

    async def aclose(self) -> None:
        """Stop listening and drop the results. May be called twice."""
        self._closed = True
        self.reset()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._known.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise NotOpen("listening has ended: call listen() again")

    def _reread(self, readings: list[str]) -> None:
        """Replace the alternatives of an unchanged text."""
        if not readings or readings == self._readings:
            return
        self._readings = readings
        itself = [text for text in self._waiting if text == self._heard]
        self._waiting = [*itself, *self._unsearched(readings)]
        self._advance()

    def _unsearched(self, readings: list[str]) -> list[str]:
        busy = {self._heard, *self._running.values()}
        return [reading for reading in readings if reading not in busy]

    def _advance(self) -> None:
        """Start the searches that may start now."""
        loop = asyncio.get_running_loop()
        while self._waiting and not self._closed:
            patience = self._begun_at + PATIENCE_S - loop.time()
            if len(self._running) >= _AT_ONCE or (self._running and patience > 0):
                if len(self._running) < _AT_ONCE:
                    loop.call_later(patience, self._advance)
                return
            text = self._waiting.pop(0)
            if self._answering(text) is not None:
                continue
            self._begun_at = loop.time()
            task = loop.create_task(self._search(text))
            self._running[task] = text
            task.add_done_callback(self._ended)
            self._count(searches=1)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # `final` searches again and raises; log only the type, since a message may quote a text
            log.warning("speculation: %s", type(error).__name__)
        self._advance()

    async def _search(self, text: str) -> None:
        state = await self._state()
        recall = await self._searcher.search(text)
        before, meaning = self._last, _meaning(text)
        still = before is not None and before.text != text and before.meaning == meaning
        stable = still and before is not None and _same(before.recall, recall)
        known = _FoundForText(text, meaning, recall, state, stable)
        if recall.outcome == "complete":
            self._known[text] = self._last = known
            self._known.move_to_end(text)
            if text == self._heard:
                self._found(known)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)

    # -- what was found, kept true until the end

    def _found(self, known: _FoundForText) -> None:
        """Note results for the words so far."""
        if self.on_found is not None:
            self.on_found(known.recall)

    async def _watch(self) -> None:
        """Search again after each write to the memory, until the utterance ends."""
        clock = asyncio.get_running_loop().time
        while clock() < self._heard_at + _WATCHED_S:
            await asyncio.sleep(REFRESH_S)
            text, known = self._heard, self._answering(self._heard)
            if known is None or self._running or self._waiting:
                continue  # a search is in progress
            try:
                state = await self._state()
            except EchoicError:
                continue  # `final` searches again and raises
            if known.state != state and text == self._heard:
                self._known.clear()
                self._waiting = [text]
                self._count(refreshed=1)
                self._advance()

    def _drop_times(self) -> None:
        """Drop results that depend on the day and the time zone: both may change between utterances."""
        for text in [text for text, known in self._known.items() if known.meaning.text]:
            del self._known[text]

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _asked(self, text: str, until: Deadline) -> Recall:
        """Search for `text`, or wait for its search in progress; other searches stop."""
        meanwhile = self._last.text if self._last else None
        for task, searched in list(self._running.items()):
            if searched != text:
                task.cancel()
                continue
            try:
                await until.wait(task)
            except EchoicError:
                break  # try once more and raise
            except asyncio.CancelledError:
                if not task.cancelled():
                    raise  # the caller was cancelled
                break
            if (known := await self._fresh(self._known.get(text), until)) is not None:
                return known.recall
        return await self._searcher.search(text, deadline_ms=until.left_ms, meanwhile=meanwhile)

    def _answering(self, text: str) -> _FoundForText | None:
        """The results for `text`, or for a partial that asks the same.

        The same content words, names, times and kind of question give the same ranking, apart from the
        vectors. So if other words differ, such a difference must have changed nothing once already.
        """
        if (known := self._known.get(text)) is not None:
            return known
        meaning, spelled = _meaning(text), _bare(text)
        same = [known for known in reversed(self._known.values()) if known.meaning == meaning]
        exact = [known for known in same if _bare(known.text) == spelled]
        return next(iter([*exact, *(known for known in same if known.stable)]), None)

    async def _fresh(self, known: _FoundForText | None, until: Deadline) -> _FoundForText | None:
        """`known`, unless something was written or forgotten since, or that cannot be checked in time."""
        if known is None:
            return None
        if known.state == await until.wait(asyncio.ensure_future(self._state())):
            return known
        self._known.clear()
        return None

    async def _state(self) -> _State:
        level, sessions = self._searcher.level, self._searcher.sessions
        return level, *(_state_of(at, sessions) for at in await self._searcher.partitions())

    def _count(self, **more: int) -> None:
        now = self.statistics
        self.statistics = replace(now, **{name: getattr(now, name) + count for name, count in more.items()})


def _state_of(at: Partition | None, sessions: Collection[int]) -> object:
    if at is None:
        return object()  # it may have changed: search again
    if not at.size:
        return None  # an empty partition may be a new object each time
    if not sessions:
        return (weakref.ref(at), at.revision)
    with at.lock:
        return (weakref.ref(at), at.stands_without(sessions))


def _spoken(text: str) -> str:
    return " ".join(text.split())


def _readings(alternatives: Sequence[str]) -> list[str]:
    """The text and its alternatives, without those that cannot be searched for."""
    readings = []
    for other in alternatives[:MAX_ALTERNATIVES]:
        with contextlib.suppress(InvalidInput):
            readings.append(_spoken(checked_query(other)))
    return readings


def _bare(text: str) -> str:
    """The text without the capitals and punctuation that a recogniser adds at the end."""
    return text.casefold().strip(" .,;:?!…\"'")


def _meaning(text: str) -> Query:
    """The parts of a question that determine its results, apart from its vector."""
    # times depend on function words ("before", "in"), so there every word counts
    return replace(query_of(text), text=_bare(text) if may_mean_time(text) else "", folded=())


def _same(one: Recall, other: Recall) -> bool:
    return [_name(hit) for hit in one.hits] == [_name(hit) for hit in other.hits]


def _name(hit: Hit) -> tuple[Scope, str, str]:
    return hit.scope, hit.memory.id if hit.memory else "", hit.turn.id if hit.turn else ""
