"""Has nothing learned again from turns of which something was forgotten: the turns themselves stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from echoic.memory.concurrency import until_written
from echoic.memory.distilling.turns import conversation_record, standing
from echoic.memory.records import TURN, is_unlearned, scan_all, turn_of
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope
from echoic.words import content_words


async def unlearn_turns(store: Store, scope: Scope, forgotten: Sequence[Memory]) -> None:
    """Mark the turns that `forgotten` was heard in, and those that say it too: a tool may have kept it.

    A reader that is slower than the caller, as a language model is, or that is given all anew, would bring it
    back from them. What else such a turn says is not learned from it any more either.
    """
    heard_in = {turn for memory in forgotten for turn in memory.source}
    values = [said for memory in forgotten if (said := _stems(memory.text))]
    if not heard_in and not values:
        return
    chosen: dict[str, list[str]] = {}
    for record in await scan_all(store, scope, TURN):
        if not is_unlearned(record) and (record.id in heard_in or _says(record, values)):
            chosen.setdefault(record.key or "", []).append(record.id)
    for conversation, turns in chosen.items():
        await until_written(partial(_mark, store, scope, conversation, turns), "the conversation")


async def _mark(store: Store, scope: Scope, conversation: str, turns: Sequence[str]) -> None:
    whose = await conversation_record(store, scope, conversation)
    if whose is None:
        return
    there = await store.read(scope, TURN, turns)
    marked = [replace(record, data={**record.data, "unlearned": True}) for record in there]
    # with the conversation: a reader that read these turns before writes nothing of them, but looks again
    await store.write(scope, [standing(whose), *map(Put.over, there, marked)])


def _says(record: Record, values: Sequence[frozenset[str]]) -> bool:
    said = _stems(turn_of(record).heard_text)
    return any(value <= said for value in values)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in content_words(text))
