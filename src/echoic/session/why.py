"""Why a memory was, or was not, before the model in one turn of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from echoic.memory.records import MEMORY, TURN, memory_of, turn_of
from echoic.session.call_record import Exchange, read_exchanges
from echoic.session.turn_recall import Fate
from echoic.stores.base import Store
from echoic.types import Memory, Scope, Turn

Reason = Literal[
    Fate, "superseded", "forgotten", "other_scope", "later", "not_looked", "ranked_below", "no_recall"
]
"""What became of it where it was found (see `Fate`); else: superseded or taken back before the turn;
forgotten, or never known; another user's; first known after the turn; there was no time to look; others
ranked higher; the turn had no recall at all.
"""
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
    """The answer for one memory or turn."""

    id: str
    reason: Reason
    text: str = ""
    """Its words, where they are still known."""
    rank: int | None = None
    """From 1, of all that was found."""
    score: float | None = None
    relevance: float | None = None
    """How likely it was to answer, from 0 to 1; None where it was not found."""
    channels: dict[str, int] | None = None
    """Its rank by channel."""

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return MEANINGS[self.reason]


async def exchange_with(store: Store, scope: Scope, turn_id: str) -> Exchange | None:
    """The exchange in which a turn was spoken; None: there is no record of it."""
    records = await store.read(scope, TURN, [turn_id])
    if not records:
        return None
    for exchange in await read_exchanges(store, scope, records[0].key or ""):
        if turn_id == exchange.user_turn or any(turn_id == spoken.turn for spoken in exchange.spoken):
            return exchange
    return None


async def found_in(store: Store, scope: Scope, exchange: Exchange) -> list[Why]:
    """Everything that was found for a turn, best first, and what became of it."""
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
    """Why one memory was or was not there.

    Args:
        store: where it may be.
        scope: whose call it was.
        exchange: the turn.
        name: the memory's id, or the key it is kept under. For operators: it is looked for in the scopes of
            others as well, of which no more is told than that it is there.
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
    recall = exchange.recall
    at = recall.at if recall else exchange.at
    if memory.valid_from > at:
        return "later"
    if memory.valid_until is not None and memory.valid_until <= at:
        return "superseded"
    if recall is None:
        return "no_recall"
    return "not_looked" if recall.outcome != "complete" else "ranked_below"


async def _memory(store: Store, scope: Scope, name: str, exchange: Exchange) -> Memory | None:
    """The memory of that id, or the version of that key that held when the turn was spoken."""
    for where in (scope, scope.everyone):
        records = await store.read(where, MEMORY, [name])
        if records:
            return memory_of(records[0])
        versions = [memory_of(r) for r in await store.scan(where, MEMORY, key=name, newest_first=True)]
        if versions:
            return _holding(versions, exchange)
    return None


def _holding(versions: Sequence[Memory], exchange: Exchange) -> Memory:
    at = exchange.recall.at if exchange.recall else exchange.at
    before = [memory for memory in versions if memory.valid_from <= at]
    return before[0] if before else versions[-1]


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
