"""The record of a call: events with their times, what recall found, what the model was given, and why a
memory was or was not in the prompt (`why`).

Words are kept in the turns and in memory, not here, except for the text the model was given. The record is
stored in the user's scope and erased when the user is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, cast

from echoic.memory.records import (
    CALL,
    CONVERSATION,
    EXCHANGE,
    GIVEN,
    MEMORY,
    TURN,
    memory_of,
    reading,
    scan_all,
    turn_of,
)
from echoic.memory.user import UserMemory
from echoic.prompt.block import estimate_tokens
from echoic.session.speech_alignment import CutSource
from echoic.session.turn_recall import Fate, RecalledHit, RecallTrace
from echoic.stores.base import Put, Record, Require, Store
from echoic.types import Memory, Outcome, Scope, Turn

Stage = Literal[
    "speech_began",
    "first_partial",
    "speech_ended",
    "transcript",
    "recall_began",
    "recalled",
    "handed_over",
    "first_audio",
    "first_played",
    "barge_in",
    "generated",
]
"""Stages of an exchange, in their usual order."""
Channel = Literal["text", "voice", "phone"]
"""How the caller speaks: typing, by voice over a page or an application, or by telephone."""


@dataclass(slots=True, kw_only=True)
class Spoken:
    """One thing the agent said in an exchange."""

    turn: str
    played_ms: float
    generated_ms: float
    source: CutSource


@dataclass(slots=True, kw_only=True)
class ToolRun:
    """One call of a tool."""

    call: str
    name: str
    began_ms: float
    ended_ms: float | None = None
    outcome: str | None = None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A turn of the caller and the agent's response. Times are milliseconds since the call began."""

    number: int
    agent: str
    at: datetime
    stages: dict[str, float] = field(default_factory=dict)
    partials: int = 0
    user_turn: str = ""
    spoken: list[Spoken] = field(default_factory=list)
    tools: list[ToolRun] = field(default_factory=list)
    recall: RecallTrace | None = None

    @property
    def asked_at(self) -> datetime:
        """As of when memory answered."""
        return self.recall.at if self.recall else self.at

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from the end of the caller's words to the first audio of the reply."""
        ended = self.stages.get("speech_ended", self.stages.get("transcript"))
        first = self.stages.get("first_audio")
        return first - ended if ended is not None and first is not None else None


@dataclass(slots=True, kw_only=True)
class Given:
    """Text that the model was given, other than speech, exactly as sent."""

    exchange: int
    role: str
    """Such as "instructions", "memory", "system-prompt", "tool-return"."""
    name: str
    text: str
    tokens: int


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One call."""

    id: str
    conversation: str
    provider: str
    model: str
    channel: Channel = "voice"
    started_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None
    agents: list[str] = field(default_factory=list)
    gaps_ms: list[float] = field(default_factory=list)
    """For each transfer, the longest time a frame of the caller's audio waited."""


class CallLog:
    """Collects the events of one call; `news` returns what is not written yet, if `enabled`."""

    def __init__(self, call: CallRecord, *, enabled: bool = True, first: int = 0) -> None:
        self.call = call
        self.enabled = enabled
        self.exchanges: list[Exchange] = []
        self._first = first
        # a resumed call keeps counting from its start
        self._begun_s = time.monotonic() - self.ms_at(datetime.now(UTC)) / 1000
        self._given: list[Given] = []
        self._givens = 0
        self._changed: dict[int, Exchange] = {}
        self._call_changed = True

    @property
    def now_ms(self) -> float:
        """Milliseconds since the call began."""
        return round(1000 * (time.monotonic() - self._begun_s), 2)

    def ms_at(self, moment: datetime) -> float:
        """`moment` in milliseconds since the call began."""
        return max(0.0, round(1000 * (moment - self.call.started_at).total_seconds(), 2))

    @property
    def current(self) -> Exchange:
        """The current exchange; before the caller has said anything, that of the agent's opening."""
        return self.exchanges[-1] if self.exchanges else self.begin(self.call.agents[-1])

    def begin(self, agent: str) -> Exchange:
        number = self._first + len(self.exchanges)
        self.exchanges.append(Exchange(number=number, agent=agent, at=datetime.now(UTC)))
        return self.touched(self.exchanges[-1])

    def stamp(self, stage: Stage, exchange: Exchange | None = None, *, at: datetime | None = None) -> float:
        """Record that a stage was reached, now or `at`. Only the first time counts."""
        exchange = exchange or self.current
        if stage not in exchange.stages:  # otherwise every frame that is played would have it written again
            self.touched(exchange).stages[stage] = self.now_ms if at is None else self.ms_at(at)
        return exchange.stages[stage]

    def recalled(self, exchange: Exchange, trace: RecallTrace) -> None:
        self.touched(exchange).recall = replace(trace, turn_id=exchange.user_turn)
        self.stamp("recall_began", exchange, at=trace.at - timedelta(milliseconds=trace.delay_ms))
        self.stamp("recalled", exchange, at=trace.at)

    def touched(self, exchange: Exchange) -> Exchange:
        """Mark an exchange as changed, to be written again."""
        self._changed[exchange.number] = exchange
        return exchange

    def changed(self) -> None:
        """Mark the call itself as changed, to be written again."""
        self._call_changed = True

    def give(self, role: str, name: str, text: str) -> None:
        number = self.current.number
        self._given.append(
            Given(exchange=number, role=role, name=name, text=text, tokens=estimate_tokens(text))
        )

    def clear(self) -> None:
        self._first += len(self.exchanges)
        self.exchanges, self._given, self._changed, self._call_changed = [], [], {}, True

    def drop_given(self) -> None:
        """Drop text given to the model that is not written yet."""
        self._given.clear()

    @contextmanager
    def news(self) -> Iterator[list[Put]]:
        """Changes since the last call of `news`, to be written as a batch; if the write fails they are
        returned again.

        The conversation may have been forgotten meanwhile: write them with a `Require` on it.
        """
        given = list(self._given)
        changed, self._changed = self._changed, {}
        call_changed, self._call_changed = self._call_changed, False
        records = [
            self._record(EXCHANGE, f"{number:05d}", _exchange_data(e)) for number, e in changed.items()
        ]
        records += [
            self._record(GIVEN, f"{self._first}-{self._givens + place:05d}", asdict(each))
            for place, each in enumerate(given)
        ]
        if call_changed:
            records.append(
                Record(kind=CALL, id=self.call.id, key=self.call.conversation, data=_call_data(self.call))
            )
        try:
            yield [Put(record=record) for record in records] if self.enabled else []
        except BaseException:
            self._changed, self._call_changed = changed | self._changed, call_changed or self._call_changed
            raise
        self._givens += len(given)
        del self._given[: len(given)]

    def _record(self, kind: str, number: str, data: Mapping[str, Any]) -> Record:
        return Record(kind=kind, id=f"{self.call.id}:{number}", key=self.call.conversation, data=data)


@dataclass(slots=True, kw_only=True)
class TypedTurn:
    """The record of one turn without a session. Times are milliseconds since the turn arrived."""

    came_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    stages: dict[Stage, float] = field(default_factory=lambda: {"transcript": 0.0})
    tools: list[ToolRun] = field(default_factory=list)
    recall: RecallTrace | None = None
    """What the search for this turn found; None if there was no search."""
    given: Sequence[tuple[str, str, str]] = ()
    """The text the model was given: role, name and text of each part."""

    @property
    def now_ms(self) -> float:
        """Milliseconds since the turn arrived."""
        return 1000 * (datetime.now(UTC) - self.came_at).total_seconds()


async def note_typed(memory: UserMemory, call: CallRecord, heard: Turn, typed: TypedTurn) -> None:
    """Write the record of the typed turn `heard`; an existing record of the `call` is kept.

    Raises:
        WriteConflict: the conversation was forgotten meanwhile.
        StoreUnavailable: the record could not be written.
    """
    store, scope = memory.backing_store, memory.scope
    known = await read_call(store, scope, call.id)
    last = await store.scan(scope, EXCHANGE, key=call.conversation, newest_first=True, limit=1)
    log = CallLog(known or call, first=last[0].data["number"] + 1 if last else 0)
    exchange = log.begin(call.agents[-1])
    began_ms = log.ms_at(typed.came_at)
    exchange.user_turn, exchange.at = heard.id, typed.came_at
    exchange.stages = {stage: round(began_ms + at_ms, 2) for stage, at_ms in typed.stages.items()}
    for tool in typed.tools:
        ended_ms = None if tool.ended_ms is None else round(began_ms + tool.ended_ms, 2)
        exchange.tools.append(replace(tool, began_ms=round(began_ms + tool.began_ms, 2), ended_ms=ended_ms))
    if typed.recall is not None:
        log.recalled(exchange, typed.recall)
    for role, name, text in typed.given:
        log.give(role, name, text)
    with log.news() as news:
        await store.write(scope, [Require(kind=CONVERSATION, id=call.conversation), *news])


async def read_calls(store: Store, scope: Scope, *, newest: int | None = None) -> list[CallRecord]:
    """Every call of a user, or the `newest` ones, oldest first."""
    if newest is None:
        return [call_of(record) for record in await scan_all(store, scope, CALL)]
    records = await store.scan(scope, CALL, newest_first=True, limit=newest)
    return [call_of(record) for record in reversed(records)]


async def read_call(store: Store, scope: Scope, name: str) -> CallRecord | None:
    """The call with this id; None if there is none."""
    records = await store.read(scope, CALL, [name])
    return call_of(records[0]) if records else None


async def read_exchanges(
    store: Store, scope: Scope, conversation: str, call: str | None = None
) -> list[Exchange]:
    """The exchanges of a conversation, or of one call in it, in order."""
    records = await scan_all(store, scope, EXCHANGE, key=conversation)
    return [exchange_of(r) for r in records if call is None or r.id.startswith(f"{call}:")]


async def read_given(store: Store, scope: Scope, conversation: str, call: str) -> list[Given]:
    """Every text the model was given in one call, in order."""
    records = await scan_all(store, scope, GIVEN, key=conversation)
    return [Given(**record.data) for record in records if record.id.startswith(f"{call}:")]


def _call_data(call: CallRecord) -> dict[str, Any]:
    ended = call.ended_at.isoformat() if call.ended_at else None
    return {**asdict(call), "started_at": call.started_at.isoformat(), "ended_at": ended}


@reading
def call_of(record: Record) -> CallRecord:
    """The call in a record of kind CALL."""
    data = dict(record.data)
    ended = data.get("ended_at")
    return CallRecord(
        **{
            **data,
            "started_at": datetime.fromisoformat(data["started_at"]),
            "ended_at": datetime.fromisoformat(ended) if ended else None,
        }
    )


def _exchange_data(exchange: Exchange) -> dict[str, Any]:
    recall = exchange.recall
    # the question's words are in the turn, and what was handed over is in `Given`
    kept = asdict(recall) | {"at": recall.at.isoformat(), "query": "", "text": ""} if recall else None
    return {**asdict(exchange), "at": exchange.at.isoformat(), "recall": kept}


@reading
def exchange_of(record: Record) -> Exchange:
    """The exchange in a record of kind EXCHANGE."""
    data = dict(record.data)
    return Exchange(
        **{
            **data,
            "at": datetime.fromisoformat(data["at"]),
            "spoken": [Spoken(**each) for each in data["spoken"]],
            "tools": [ToolRun(**each) for each in data["tools"]],
            "recall": _recall_of(data["recall"]) if data["recall"] else None,
        }
    )


def _recall_of(data: Mapping[str, Any]) -> RecallTrace:
    found = [
        RecalledHit(
            id=each["id"],
            kind=cast("Literal['memory', 'turn']", each["kind"]),
            score=each["score"],
            ranks={channel: (rank[0], rank[1]) for channel, rank in each["ranks"].items()},
            fate=cast("Fate", each["fate"]),
            relevance=each.get("relevance", 1.0),
        )
        for each in data["found"]
    ]
    return RecallTrace(
        query=data["query"],
        outcome=cast("Outcome", data["outcome"]),
        text=data["text"],
        found=tuple(found),
        cut=tuple(data["cut"]),
        ready=data["ready"],
        delay_ms=data["delay_ms"],
        at=datetime.fromisoformat(data["at"]),
        turn_id=data["turn_id"],
    )


Reason = Literal[
    Fate, "superseded", "forgotten", "other_scope", "later", "not_looked", "ranked_below", "no_recall"
]
"""For what was found, its `Fate`; otherwise why it was not found, see `MEANINGS`."""
MEANINGS: Final[dict[str, str]] = {
    "shown": "found, and handed to the model for this turn",
    "in_block": "found; the model had it already",
    "repeated": "found; another hit says the same",
    "over_budget": "found, but it did not fit into the budget",
    "late": "found, but not in time to be handed over",
    "superseded": "it no longer held when the turn was spoken",
    "forgotten": "it is not known, or no longer: it was forgotten",
    "other_scope": "it is another user's",
    "later": "it was learned after the turn",
    "not_looked": "there was no time to look everywhere",
    "ranked_below": "others ranked higher",
    "no_recall": "nothing was recalled for this turn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why one memory or turn was or was not in the prompt."""

    id: str
    reason: Reason
    text: str = ""
    """Its text, if still stored."""
    rank: int | None = None
    """Its rank among everything found, from 1."""
    score: float | None = None
    relevance: float | None = None
    """Estimated probability that it answers the question, 0 to 1; None if it was not found."""
    channels: dict[str, int] | None = None
    """Its rank by channel."""

    @property
    def meaning(self) -> str:
        return MEANINGS[self.reason]


async def exchange_with(store: Store, scope: Scope, turn_id: str) -> Exchange | None:
    """The exchange in which a turn was spoken; None if none is recorded."""
    records = await store.read(scope, TURN, [turn_id])
    if not records:
        return None
    for exchange in await read_exchanges(store, scope, records[0].key or ""):
        if turn_id == exchange.user_turn or any(turn_id == spoken.turn for spoken in exchange.spoken):
            return exchange
    return None


async def found_in(store: Store, scope: Scope, exchange: Exchange) -> list[Why]:
    """Everything found for a turn and what became of it, best first."""
    found = exchange.recall.found if exchange.recall else ()
    answers: list[Why] = []
    for number, hit in enumerate(found):
        text = await _words(store, scope, hit.id)
        answers.append(
            Why(
                id=hit.id,
                reason=hit.fate if text is not None else "forgotten",
                text=text or "",
                rank=number + 1,
                score=hit.score,
                relevance=hit.relevance,
                channels={channel: rank for channel, (rank, _) in hit.ranks.items()},
            )
        )
    return answers


async def why(store: Store, scope: Scope, exchange: Exchange, name: str) -> Why:
    """Why one memory was or was not in the prompt at an exchange.

    For operators: `name`, an id or a key, is also looked up in other users' scopes, and only its existence
    there is told.
    """
    found = {answer.id: answer for answer in await found_in(store, scope, exchange)}
    if name in found:
        return found[name]
    memory = await _memory(store, scope, name, exchange)
    if memory is None:
        elsewhere = await _is_elsewhere(store, scope, name)
        return Why(id=name, reason="other_scope" if elsewhere else "forgotten")
    if memory.id in found:
        return found[memory.id]
    text = memory.statement or memory.text
    return Why(id=memory.id, reason=_absent(memory, exchange), text=text)


def _absent(memory: Memory, exchange: Exchange) -> Reason:
    recall, at = exchange.recall, exchange.asked_at
    if memory.valid_from > at:
        return "later"
    if memory.valid_until is not None and memory.valid_until <= at:
        return "superseded"
    if recall is None:
        return "no_recall"
    return "not_looked" if recall.outcome != "complete" else "ranked_below"


async def _memory(store: Store, scope: Scope, name: str, exchange: Exchange) -> Memory | None:
    """The memory with that id, or the version of that key that was valid when the turn was spoken."""
    for where in (scope, scope.everyone):
        records = await store.read(where, MEMORY, [name])
        if records:
            return memory_of(records[0])
        versions = [memory_of(r) for r in await store.scan(where, MEMORY, key=name, newest_first=True)]
        if versions:
            before = [memory for memory in versions if memory.valid_from <= exchange.asked_at]
            return before[0] if before else versions[-1]
    return None


async def _is_elsewhere(store: Store, scope: Scope, name: str) -> bool:
    for other in await store.scopes(scope.deployment):
        if other in {scope, scope.everyone}:
            continue
        if await store.read(other, MEMORY, [name]) or await store.scan(other, MEMORY, key=name, limit=1):
            return True
    return False


async def _words(store: Store, scope: Scope, name: str) -> str | None:
    for where in (scope, scope.everyone):
        memories = await store.read(where, MEMORY, [name])
        if memories:
            memory = memory_of(memories[0])
            return memory.statement or memory.text
        turns: list[Turn] = [turn_of(record) for record in await store.read(where, TURN, [name])]
        if turns:
            return turns[0].heard_text
    return None
