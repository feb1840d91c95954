"""One conversation: what is said is durable first, everything else comes later."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein

from echoic.checks import AGENT, USER
from echoic.errors import InvalidInput, WriteConflict, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import (
    CONVERSATION,
    TURN,
    conversation_of,
    cursor_of,
    recalled_turn,
    record_of_conversation,
    record_of_turn,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.memory.service_context import Parts
from echoic.secrets import MARKER
from echoic.stores.base import Put, Record, Require
from echoic.types import Conversation, Scope, Turn, checked_name, checked_text
from echoic.words import STOP, cut, sound

if TYPE_CHECKING:
    from echoic.memory.distilling.reconcile import Distilled

log = logging.getLogger(__name__)
_KEPT = re.compile(rf"(?:{MARKER.pattern})\S*|\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that was recalled, with all that was said in it."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    likeness: float = 1.0
    """How alike the spoken key and the stored one are; 1: the same words."""


class OpenConversation:
    """A conversation to append to. Made by `UserMemory.conversation`; holds no state but its id."""

    def __init__(self, parts: Parts, scope: Scope, conversation_id: str, agent: str | None) -> None:
        self._parts = parts
        self._scope = scope
        self._agent = agent
        self._noted = False
        self.id = conversation_id

    async def append(self, *turns: Turn, learn: bool = True) -> tuple[Turn, ...]:
        """Keep what was said. Durable when it returns; a turn whose id is known already changes nothing.

        Args:
            turns: in the order they were said.
            learn: False: nothing is ever learned from them; they are found as they were said.

        Returns:
            the turns as kept, in the order given: with ids, and the earlier ones where an id was known.

        Raises:
            InvalidInput: a turn belongs to another conversation, or this one was forgotten; none was kept.
            StoreUnavailable: none was kept; append them again.
        """
        new = [self._own(turn) for turn in turns]
        self._note_others(new)
        # a turn of what was forgotten would be found, but never learned from, listed or exported
        open_still = Require(kind=CONVERSATION, id=self.id)
        first: dict[str, Turn] = {}
        for turn in new:
            first.setdefault(turn.id, turn)  # said twice in one breath, as in two
        known: dict[str, Turn] = {}
        while missing := {name: turn for name, turn in first.items() if name not in known}:
            try:
                puts = [
                    Put.over(None, record_of_turn(turn, unlearned=not learn)) for turn in missing.values()
                ]
                prepared = await self._parts.door.prepare(self._scope, [open_still, *puts])
                await self._parts.store.write(self._scope, prepared)
            except WriteConflict:  # some were appended before, by us or by another process
                await self.info()  # or what they belong to is gone
                there = await self._parts.store.read(self._scope, TURN, list(missing))
                known |= {record.id: self._known(turn_of(record)) for record in there}
            else:
                kept = [change.record for change in prepared if isinstance(change, Put)]
                known |= {record.id: turn_of(record) for record in kept if record.id in missing}
                self._parts.background.poke((self._scope, self.id))
        return tuple(known[turn.id] for turn in new)

    async def truncate(self, heard: str, *, after: str | None = None) -> list[Turn]:
        """The caller cut in: of what the agent said last, only `heard` reached them. Durable when it returns.

        For channels that keep an answer before it was spoken. From now on history, recall and what is learned
        go by what was heard; the rest stays in `Turn.text`. May be said again, and with less.

        Args:
            heard: the words up to where it was silenced; a word that was broken off does not count. Empty:
                nothing was.
            after: the id of the user's turn that was being answered; None: these are the words it began with.

        Returns:
            the agent's turns of that answer, as they are kept now.

        Raises:
            InvalidInput: there is no such answer here, or `heard` is not how it begins.
        """
        if not isinstance(heard, str):
            raise InvalidInput(f"heard must be a string, not {type(heard).__name__}")

        async def attempt() -> list[Turn]:
            records = await scan_all(self._parts.store, self._scope, TURN, key=self.id)
            answer = _answer([(turn_of(record), record) for record in records], after)
            said = [turn for turn, _ in answer]
            cut = _as_heard(said, _as_kept(said, heard))
            changed = [
                Put.over(record, rewritten_turn(record, now))
                for now, (turn, record) in zip(cut, answer, strict=True)
                if now != turn
            ]
            if changed:
                await self._parts.store.write(self._scope, changed)
                self._parts.background.poke()
            return cut

        return await until_written(attempt, f"conversation {brief(self.id)}")

    async def turns(self) -> list[Turn]:
        """Everything said so far, in order."""
        records = await scan_all(self._parts.store, self._scope, TURN, key=self.id)
        return [turn_of(record) for record in records]

    async def info(self) -> Conversation:
        """The conversation as it stands."""
        records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
        if not records:
            raise InvalidInput(f"conversation {brief(self.id)} was forgotten; open a new one")
        return conversation_of(records[0])

    async def store(self, key: str, summary: str | None = None) -> Conversation:
        """Make it recallable by a spoken key, with a summary of what it was about; None: the one it has."""
        checked_name(key, "recall key")
        if summary is None:
            return await self._change(recall_key=key)
        return await self._change(recall_key=key, summary=checked_text(summary, "summary"))

    async def complete(self) -> Conversation:
        """The call is over. It is distilled after this, here or by any worker."""
        done = await self._change(status="completed", distilled=False)
        self._parts.background.poke((self._scope, self.id))
        return done

    async def distil(self) -> Distilled:
        """Learn from what was said since the last time, now."""
        distilled = await self._parts.distiller.distil(self._scope, self.id)
        self._parts.background.poke()
        return distilled

    async def learn(self) -> Distilled:
        """Let the rules learn now from what was said since the last time; a model reads later."""
        learned = await self._parts.distiller.apply_rules(self._scope, self.id)
        self._parts.background.poke()
        return learned

    async def learn_soon(self) -> None:
        """Have a model read what is new, in the background: when an agent hands over, or a tool answered."""
        self._parts.background.poke((self._scope, self.id), urgent=True)

    async def begin(self) -> None:
        """Make the conversation exist; one that does is continued."""
        now = self._parts.clock()
        new = Conversation(id=self.id, agent=self._agent, status="active", started_at=now, updated_at=now)
        try:
            await self._parts.store.write(self._scope, [Put.over(None, record_of_conversation(new))])
        except WriteConflict:
            return

    async def _change(self, **fields: Any) -> Conversation:
        async def attempt() -> Conversation:
            records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
            if not records:
                raise InvalidInput(f"conversation {brief(self.id)} was forgotten; open a new one")
            changed = replace(conversation_of(records[0]), updated_at=self._parts.clock(), **fields)
            record = record_of_conversation(changed, cursor=cursor_of(records[0]))
            await self._parts.store.write(self._scope, [Put.over(records[0], record)])
            return changed

        return await until_written(attempt, f"conversation {brief(self.id)}")

    def _own(self, turn: Turn) -> Turn:
        if not isinstance(turn, Turn):
            raise InvalidInput(
                f"not a turn but {type(turn).__name__}: append takes one Turn or several, each by itself"
            )
        if turn.conversation and turn.conversation != self.id:
            raise InvalidInput(
                f"turn {brief(turn.id)} belongs to conversation {brief(turn.conversation)}, "
                f"not to {brief(self.id)}"
            )
        return replace(turn, id=turn.id or self._parts.new_id(), conversation=self.id)

    def _note_others(self, turns: Sequence[Turn]) -> None:
        """Say once that nothing is learned from people who are not the user: it may not have been meant."""
        if not self._noted and any(turn.speaker not in {USER, AGENT} for turn in turns):
            self._noted = True
            log.warning(
                "a conversation has a speaker who is neither 'user' nor 'agent': what they say is kept and "
                "found under their name, and nothing is learned from it"
            )

    def _known(self, turn: Turn) -> Turn:
        """A turn that was there, if it was said here: another's id would swallow what was said now."""
        if turn.conversation != self.id:
            raise InvalidInput(
                f"turn id {brief(turn.id)} is taken in conversation {brief(turn.conversation)}: "
                "give every turn of a user an id of its own, or none"
            )
        return turn


async def open_conversation(
    parts: Parts, scope: Scope, conversation_id: str, agent: str | None, *, begin: bool
) -> OpenConversation:
    """See `UserMemory.conversation`."""
    name = checked_name(conversation_id, "conversation id") if conversation_id else parts.new_id()
    if agent is not None:
        checked_name(agent, "agent")
    opened = OpenConversation(parts, scope, name, agent)
    if begin:
        await opened.begin()
    return opened


async def find_transcript(parts: Parts, scope: Scope, key: str) -> Transcript | None:
    """See `UserMemory.recall_conversation`."""
    key = parts.door.key(scope, checked_name(key, "recall key"))
    records = await scan_all(parts.store, scope, CONVERSATION)
    stored = {c.id: c for c in map(conversation_of, records) if c.recall_key}
    newest_first = dict(reversed(stored.items()))
    matches = match_keys(key, {name: c.recall_key or "" for name, c in newest_first.items()})
    if not matches:
        return None
    name, likeness = matches[0]
    turns = await scan_all(parts.store, scope, TURN, key=name)
    return Transcript(
        conversation=stored[name], turns=tuple(recalled_turn(turn) for turn in turns), likeness=likeness
    )


def _answer(turns: Sequence[tuple[Turn, Record]], after: str | None) -> list[tuple[Turn, Record]]:
    """What the agent said next after the user's turn `after`, or before any of the user's.

    Raises:
        InvalidInput: there is no such turn, or nothing was said then.
    """
    begin = 0
    if after is not None:
        begin = next((n + 1 for n, (turn, _) in enumerate(turns) if turn.id == after), len(turns))
    answer = list(itertools.takewhile(lambda item: item[0].speaker == "agent", turns[begin:]))
    if not answer:
        what = "before the user spoke" if after is None else f"after turn {brief(after)}"
        raise InvalidInput(f"the agent said nothing {what}: there is no answer that could be cut off")
    return answer


def _as_kept(turns: Sequence[Turn], heard: str) -> str:
    """`heard` with the markers that were kept of `turns` in place of what was said there.

    A secret that was heard only in part was not heard.
    """
    kept = [word for turn in turns for word in _KEPT.findall(turn.text)]
    if not any(MARKER.match(word) for word in kept):
        return heard
    left, found = heard.split(), []
    for place, word in enumerate(kept):
        if not left:
            break
        if not MARKER.match(word):
            found.append(left.pop(0))
            continue
        following = kept[place + 1] if place + 1 < len(kept) else None
        count = next((n for n, one in enumerate(left) if one == following), len(left))
        if count == len(left) and following is not None:
            left = []
            break
        found.append(word)
        del left[:count]
    return " ".join([*found, *left])


def _as_heard(turns: Sequence[Turn], heard: str) -> list[Turn]:
    """`turns` of one answer of which `heard` reached the caller.

    Raises:
        InvalidInput: the answer does not begin like that.
    """
    left = heard.split()
    found = []
    for turn in turns:
        words = list(re.finditer(r"\S+", turn.text))
        same = [word.group() == one for word, one in zip(words, left, strict=False)]
        count = same.index(False) if False in same else len(same)
        broken_off = (
            len(left) == count + 1 and count < len(words) and words[count].group().startswith(left[-1])
        )
        if count < len(same) and not broken_off:
            raise InvalidInput(
                "the agent's answer does not begin with what was heard: give the words as it said them"
            )
        whole = count == len(words)
        found.append(
            replace(turn, heard=None if whole else turn.text[: words[count - 1].end()] if count else "")
        )
        left = left[count + broken_off :]
    if left:
        raise InvalidInput(
            f"the agent's answer is {len(left)} words shorter than what was heard: give what it said"
        )
    return found


ENOUGH = 0.6
"""Of the words of the shorter key, the share that must be found in the other, by spelling or sound."""


def match_keys(spoken: str, keys: Mapping[str, str]) -> list[tuple[str, float]]:
    """The ids whose key `spoken` may mean, the likeliest first, with how alike they are (1: the same words).

    Args:
        spoken: the key as the recogniser wrote it.
        keys: id -> key as it was stored.
    """
    said = _words(spoken)
    scored = [(name, _likeness(said, _words(key))) for name, key in keys.items()]
    return sorted(((n, s) for n, s in scored if s >= ENOUGH), key=lambda found: -found[1])


def _words(key: str) -> list[str]:
    words = cut(key)
    return [word for word in words if word not in STOP] or words


def _likeness(said: list[str], key: list[str]) -> float:
    if said == key:
        return 1.0
    if not said or not key:
        return 0.0
    short, long = sorted((said, key), key=len)
    found = sum(max(_alike(a, b) for b in long) for a in short) / len(short)
    whole = fuzz.ratio("".join(said), "".join(key)) / 100  # "oven ready" heard as "ovenready"
    # a key said in part is meant, but one said in full is meant more
    return min(0.99, max(found * (0.85 + 0.15 * len(short) / len(long)), whole if whole > 0.8 else 0.0))


def _alike(a: str, b: str) -> float:
    """0 to 1: the same word, nearly the same spelling, or the same sound."""
    if a == b:
        return 1.0
    edits = DamerauLevenshtein.distance(a, b, score_cutoff=2)
    if edits == 1 and min(len(a), len(b)) >= 4:
        return 0.85
    codes_a, codes_b = sound(a), sound(b)
    if set(codes_a) & set(codes_b):
        return 0.8
    if edits == 2 and min(len(a), len(b)) >= 7:
        return 0.7
    near = any(DamerauLevenshtein.distance(x, y) <= 1 and x[0] == y[0] for x in codes_a for y in codes_b)
    return 0.6 if near and min(len(a), len(b)) >= 4 else 0.0
