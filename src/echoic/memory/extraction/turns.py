"""The turns of a conversation as a reader sees them: those before its cursor, and those after it.

Rules decide which turns the user asked not to keep ("off the record"); this applies at once, whatever a model
would conclude. A name, number or address heard with low confidence is kept and used but marked as
unconfirmed, so that the agent reads it back; said again clearly, or affirmed, it is confirmed.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.listener import hushed
from echoic.english.sentences import (
    asks_about_another,
    hands_over,
    is_back,
    sentences,
    speaks_of_another,
    takes_over,
)
from echoic.memory.records import (
    CONVERSATION,
    TURN,
    conversation_of,
    cursor_of,
    hidden_in,
    is_unlearned,
    recalled_turn,
    record_of_conversation,
    turn_of,
)
from echoic.stores.base import Put, Record, Store
from echoic.text import fold, visible
from echoic.types import Memory, Scope, Turn

THRESHOLD: Final = 0.7
"""A recogniser's confidence below which a name, number or address is not relied on. A default, not a
measurement: set your own once you have measured your recogniser."""

_DELICATE_KEYS: Final = re.compile(
    r"name|phone|mail|number|birth|date|age|zip|postal|address|account|code", re.IGNORECASE
)
_DELICATE_TEXT: Final = re.compile(r"\d|@|(?<!^)(?<![.!?]\s)\b[A-Z]\w+")
"""Digits, addresses, and capitalised words that do not begin a sentence."""
_AFFIRMED: Final = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|right|correct|exactly|that(?:'?s| is) (?:right|it|correct)|sure)\b",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(r"\b(?:no|not|wrong|but)\b|n't\b", re.IGNORECASE)


def delicate(memory: Memory) -> bool:
    """Whether it contains something easily misheard: a name, a number, an address."""
    return bool(memory.key and _DELICATE_KEYS.search(memory.key)) or bool(_DELICATE_TEXT.search(memory.text))


def is_sure(turn: Turn, threshold: float = THRESHOLD) -> bool:
    """Whether the recogniser was confident enough, or gave no confidence."""
    return turn.confidence is None or turn.confidence >= threshold


def is_doubted(memory: Memory, cited: Iterable[Turn]) -> bool:
    """Whether a memory that cites these turns alone should not be relied on."""
    return delicate(memory) and not any(map(is_sure, cited))


def affirms(said: str) -> bool:
    """Whether a turn says yes to what precedes it and contradicts none of it. English."""
    return bool(_AFFIRMED.search(said)) and not _DENIED.search(said)


def affirmed(turns: Sequence[Turn]) -> list[tuple[str, Turn]]:
    """What the agent said, as heard, directly before a turn that says yes to it, with that turn."""
    return [
        (before.heard_text, after)
        for before, after in itertools.pairwise(turns)
        if before.speaker == "agent" and after.speaker == "user" and affirms(after.heard_text)
    ]


def mentions(text: str, memory: Memory) -> bool:
    """Whether `text` contains what the memory says, as whole words."""
    return bool(re.search(rf"(?<!\w){re.escape(memory.text.casefold())}(?!\w)", text.casefold()))


RECENT: Final = 2
"""The user's last utterances that a correction or "forget that" may refer to."""

# Every such request contains one of these; other texts need no second reading.
_MAY_ASK: Final = re.compile(
    r"forget|disregard|unlearn|delete|erase|remove|scratch|strike|scrap|ignore|remember|save|store|record|keep"
    r"|write|note|memori[sz]e|between|take (?:that|it) back|put (?:this|that|any)"
)
# Stands for any earlier statement: the rules retract it exactly when they would retract that.
_ANYTHING: Final = SelfStatement(
    key="anything", text="anything", sentence="", category="fact", confidence=1.0
)


def may_ask(text: str) -> bool:
    """Whether `text` may ask to forget, or not to keep, something."""
    return bool(_MAY_ASK.search(fold(text)))


def withheld(turns: Sequence[Turn]) -> frozenset[str]:
    """Ids of the user's turns among `turns`, in order, that must not be learned from."""
    ids: set[str] = set()
    recent: deque[str] = deque(maxlen=RECENT)
    for turn in turns:
        heard = turn.heard_text if turn.speaker == "user" else ""
        if not heard:
            continue
        asks = may_ask(heard)
        if asks and takes_back(heard):
            ids.update(recent, [turn.id])
        elif asks and hushes(heard):
            ids.add(turn.id)
        recent.append(turn.id)
    return frozenset(ids)


def of_user(turn: Turn) -> bool:
    """Whether facts may cite `turn`: the user's own words, some of which were heard."""
    return turn.speaker == "user" and bool(turn.heard_text)


def takes_back(text: str) -> bool:
    """Whether `text` asks to forget what was said directly before it."""
    if not may_ask(text):
        return False
    return any(one.retracts and one.key == _ANYTHING.key for one in listen(text, [_ANYTHING]))


def hushes(text: str) -> bool:
    """Whether `text` asks not to keep what it says."""
    return may_ask(text) and any(hushed(said) for said in sentences(text))


def of_another_voice(turns: Iterable[Turn]) -> frozenset[str]:
    """Ids of the turns under the user's name of those to whom they gave the telephone.

    From "I'll hand you over to Mei" to "me again", or until Mei gives it back. If nobody says a
    name next, the user has kept it.
    """
    ids: set[str] = set()
    given = away = False
    for turn in filter(of_user, turns):
        if given:
            away = takes_over(turn.heard_text) and not is_back(turn.heard_text)
        elif away:
            away = not is_back(turn.heard_text)
        if away:
            ids.add(turn.id)
        gives = hands_over(turn.heard_text)
        given, away = gives and not away, away and not gives
    return frozenset(ids)


def asked_in(before: Turn | None) -> str:
    """What the agent said directly before a turn, as heard."""
    return before.heard_text if before and before.speaker == "agent" else ""


def answers_about_another(turns: Iterable[Turn], *, of_another: bool = False) -> tuple[frozenset[str], bool]:
    """Ids of the user's turns that answer a question about somebody else, and whether the talk then is.

    `of_another`: whether it was before `turns`.
    """
    ids: set[str] = set()
    before: Turn | None = None
    for turn in turns:
        asked = asked_in(before)
        if of_user(turn) and asks_about_another(asked, of_another=of_another):
            ids.add(turn.id)
        if turn.speaker in {"user", "agent"}:
            agent = turn.speaker == "agent"
            of_another = speaks_of_another(
                turn.heard_text, of_another=of_another, by_agent=agent, asked=asked
            )
        before = turn
    return frozenset(ids), of_another


CONTEXT = 6
"""Turns before the cursor that are read again, for references."""
_VOICES: Final = 40
"""Turns before the cursor in which the telephone may have been given to somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Turns after a cursor, in order, with those before it."""

    turns: tuple[Turn, ...]
    seqs: tuple[int, ...]
    """By turn, the cursor position after reading it."""
    context: tuple[Turn, ...]
    unlearned: frozenset[str] = frozenset()
    """Ids of turns, here or before, that nothing is learned from: forgotten, or not the user's own."""
    recalled: Mapping[str, Turn] = field(default_factory=dict)
    """By id, the turns, here or before, with words that were taken back, without those words."""
    of_another: bool = False
    """Whether the talk was about somebody else before `context`."""

    @property
    def end(self) -> int:
        """The cursor after reading all of them."""
        return self.seqs[-1]

    def shown(self, turns: Sequence[Turn], hushed: Collection[str]) -> tuple[Turn, ...]:
        """Those of `turns` that a model may read, without the words that were taken back.

        It would state them in other words, which nothing recognises as taken back.
        """
        read = (self.recalled.get(turn.id, turn) for turn in turns if turn.id not in hushed)
        return tuple(turn for turn in read if turn.id not in self.recalled or visible(turn.heard_text))

    def within(self, characters: int) -> Stretch:
        """The first turns, with at most `characters` in total, but at least one turn."""
        total = 0
        for at, turn in enumerate(self.turns):
            total += len(turn.heard_text)
            if at and total > characters:
                return replace(self, turns=self.turns[:at], seqs=self.seqs[:at])
        return self


async def stretch_of(store: Store, scope: Scope, conversation: str, cursor: int, limit: int) -> Stretch:
    """The next turns after `cursor`, at most `limit`."""
    records = await store.scan(scope, TURN, key=conversation, after=cursor, limit=limit)
    if not records:
        return Stretch(turns=(), seqs=(), context=())
    before = await store.scan(
        scope, TURN, key=conversation, after=cursor + 1, limit=_VOICES, newest_first=True
    )
    turns = tuple(map(turn_of, records))
    earlier = tuple(turn_of(record) for record in reversed(before))
    forgotten = frozenset(record.id for record in (*records, *before) if is_unlearned(record))
    return Stretch(
        turns=turns,
        seqs=tuple(record.seq for record in records),
        context=earlier[-CONTEXT:],
        unlearned=forgotten | of_another_voice((*earlier, *turns)),
        recalled={record.id: recalled_turn(record) for record in (*records, *before) if hidden_in(record)},
        of_another=answers_about_another(earlier[:-CONTEXT])[1],
    )


async def conversation_record(store: Store, scope: Scope, conversation: str) -> Record | None:
    """The record of a conversation; None if it does not exist or was forgotten."""
    records = await store.read(scope, CONVERSATION, [conversation])
    return records[0] if records else None


def standing(record: Record) -> Put:
    """A change without effect that fails if the conversation changed since it was read."""
    return Put.over(record, record)


def is_unmarked(record: Record) -> bool:
    """Whether a conversation is completed and not yet marked as distilled."""
    conversation = conversation_of(record)
    return conversation.status == "completed" and not conversation.distilled


def marked(record: Record) -> Put | None:
    """The change that marks a completed conversation as distilled; None if it is not completed."""
    conversation = conversation_of(record)
    if not is_unmarked(record):
        return None
    done = replace(conversation, distilled=True)
    return Put.over(record, record_of_conversation(done, cursor=cursor_of(record)))
