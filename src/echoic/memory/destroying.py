"""What is left of records of which some words are forgotten: turns, summaries, what calls and tools kept.

Works out what is to be written in their place; `Store.erase` writes it, and destroys what stood there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from echoic.memory.claims import Claim
from echoic.memory.hiding import derived_from
from echoic.memory.mentions import Span, joined, masked, mentioned_in, said_in, said_in_text
from echoic.memory.records import (
    CALL,
    CONVERSATION,
    EXCHANGE,
    MEMORY,
    TURN,
    hidden_in,
    memory_of,
    record_of_turn,
    scan_all,
    turn_of,
)
from echoic.memory.tasks import RESULT
from echoic.stores.base import Drop, Erasable, Put, Record, Store
from echoic.types import Memory, Scope, Turn
from echoic.words import FORGOTTEN, fold


@dataclass(slots=True)
class Destroyed:
    """What an erasure writes and drops so that nothing says a memory any more."""

    changes: list[Erasable] = field(default_factory=list)
    kept: int = 0
    """Turns that hold the same value and say something else with it: they stay as they are."""


_NOTHING: Final[Mapping[str, Sequence[Span]]] = {}


async def destroyed(
    store: Store,
    scope: Scope,
    memories: Sequence[Memory],
    whole: Collection[str] = (),
    parts: Mapping[str, Sequence[Span]] = _NOTHING,
) -> Destroyed:
    """What becomes of all that says one of `memories`, themselves apart.

    Args:
        store: where it is kept.
        scope: whose.
        memories: what is forgotten.
        whole: ids of turns that are forgotten with all they say.
        parts: by turn, stretches of its heard words that are forgotten.
    """
    records = {record.id: record for record in await scan_all(store, scope, TURN)}
    turns = [turn_of(record) for record in records.values()]
    heard = said_in(turns, memories)
    # what an agent was cut off in saying is kept too
    unheard = said_in([replace(turn, heard=None) for turn in turns if turn.heard is not None], memories)
    found = Destroyed()
    left: dict[str, str] = {}
    for turn in turns:
        spans = heard.get(turn.id, [])
        all_spans = spans if turn.heard is None else unheard.get(turn.id, [])
        if turn.id in whole and turn.text != FORGOTTEN:
            spans, all_spans = [(0, len(turn.heard_text))], [(0, len(turn.text))]
        if turn.id in parts:
            spans = joined([*spans, *parts[turn.id]])
            # what was heard is where what was generated begins
            all_spans = spans if turn.heard is None else joined([*all_spans, *parts[turn.id]])
        if spans or all_spans:
            new = _without(turn, spans, all_spans)
            found.changes.append(Put.over(records[turn.id], _record(records[turn.id], new, spans)))
            left |= {turn.text: new.text, turn.heard_text: new.heard_text}
        else:
            found.kept += mentioned_in(turn, memories)
    redacting = _Redacting(memories, {old: new for old, new in left.items() if old})
    for kind in (CONVERSATION, RESULT, EXCHANGE, CALL):
        found.changes += redacting.changes(await scan_all(store, scope, kind))
    found.changes += await _derived(store, scope, memories, redacting)
    return found


def _without(turn: Turn, heard: Sequence[Span], text: Sequence[Span]) -> Turn:
    new = replace(turn, text=masked(turn.text, text, FORGOTTEN))
    return new if turn.heard is None else replace(new, heard=masked(turn.heard, heard, FORGOTTEN))


def _record(record: Record, turn: Turn, gone: Sequence[Span]) -> Record:
    hidden = [_moved(span, gone) for span in hidden_in(record) if not _within(span, gone)]
    return replace(record, data=record_of_turn(turn, unlearned=True, hidden=hidden).data)


def _within(span: Span, others: Iterable[Span]) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in others)


def _moved(span: Span, gone: Sequence[Span]) -> Span:
    """Where a stretch stands after `gone` were replaced by a marker each."""

    def moved(at: int) -> int:
        before = [(first, min(last, at)) for first, last in joined(gone) if first < at]
        return at - sum(last - first for first, last in before) + len(FORGOTTEN) * len(before)

    return moved(span[0]), moved(span[1])


async def _derived(
    store: Store, scope: Scope, memories: Sequence[Memory], redacting: _Redacting
) -> list[Erasable]:
    """Memories that repeat one of `memories`: destroyed, or what else stands under their key is left."""
    names = [memory.id for memory in await derived_from(store, scope, memories)]
    changes: list[Erasable] = []
    for record in await store.read(scope, MEMORY, names):
        rest = redacting.changes([record]) if record.key is not None else []
        said = memory_of(rest[0].record).text if rest else ""
        # an id that follows from the words would still tell them
        changes += rest if said.replace(FORGOTTEN, "").strip(" .,;") else [Drop(kind=MEMORY, id=record.id)]
    return changes


class _Redacting:
    """Takes what is forgotten out of any JSON."""

    def __init__(self, memories: Sequence[Memory], texts: Mapping[str, str]) -> None:
        self._memories = memories
        self._texts = texts
        self._values: dict[str, set[str]] = {}
        for memory in memories:
            if memory.key:
                self._values.setdefault(memory.key, set()).add(Claim.of(memory).text)

    def changes(self, records: Iterable[Record]) -> list[Put]:
        """Those of `records` that hold something of it, as they are without."""
        pairs = [(record, replace(record, data=self._of(record.data, set()))) for record in records]
        return [Put.over(old, new) for old, new in pairs if old.data != new.data]

    def _of(self, data: Any, values: set[str]) -> Any:
        if isinstance(data, str):
            return self._text(data, values)
        if isinstance(data, Mapping):
            # beside its key a value is that memory's, as in what a tool was given and gave
            here = {
                text for each in data.values() if isinstance(each, str) for text in self._values.get(each, ())
            }
            return {name: self._of(each, values | here) for name, each in data.items()}
        if isinstance(data, list | tuple):
            return [self._of(each, values) for each in data]
        return data

    def _text(self, text: str, values: set[str]) -> str:
        if text in self._texts:
            return self._texts[text]
        if fold(text).strip(" .!?") in values:
            return FORGOTTEN
        return masked(text, said_in_text(text, self._memories), FORGOTTEN)


__all__ = ["Destroyed", "destroyed"]
