"""One conversation: turns are durable before anything else happens."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein

from echoic.checks import AGENT, USER, not_ahead
from echoic.english.forget_requests import answers_to_remember, asks_off_the_record, asks_to_keep_no_more
from echoic.errors import InvalidInput, NotAllowed, NotKept, WriteConflict, brief
from echoic.memory.assurance import PROVE, Visibility, VisibleStore
from echoic.memory.concurrency import until_written
from echoic.memory.consent import REASONS, SPOKEN, Verdict, close_answer, read_answers, verdict, write_answer
from echoic.memory.records import (
    CONVERSATION,
    MEMORY,
    TURN,
    conversation_of,
    cursor_of,
    id_in,
    memory_of,
    recalled_turn,
    record_of_conversation,
    record_of_turn,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.memory.service_context import Parts
from echoic.stores.base import Put, Record, Require, Store
from echoic.text import STOP, cut, sound
from echoic.text.heard_words import heard_ends, share_ends
from echoic.text.spoken_numbers import in_figures
from echoic.types import Conversation, Receipt, Scope, Turn, checked_name, checked_text

if TYPE_CHECKING:
    from echoic.memory.extraction.reconciliation import Distilled

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A recalled conversation with its turns."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    likeness: float = 1.0
    """Similarity of the spoken and the stored key, 0 to 1 (the same words)."""


class OpenConversation:
    """A conversation to append to. Created by `UserMemory.conversation`."""

    def __init__(
        self,
        parts: Parts,
        scope: Scope,
        conversation_id: str,
        agent: str | None,
        *,
        seen: Callable[[], Store] | None = None,
    ) -> None:
        self._parts = parts
        self._seeing = seen
        self._scope = scope
        self._agent = agent
        self._noted = False
        self.id = conversation_id
        self.verdict: Verdict = "keep"
        """Whether the conversation is kept, as last read."""

    @property
    def _seen(self) -> Store:
        """The store, limited to what the holder of this handle may be told; a `step_up` applies to it."""
        return self._parts.store if self._seeing is None else self._seeing()

    @property
    def _visible(self) -> Visibility | None:
        """What the holder of this handle may be told; None if everything."""
        seen = self._seen
        return seen.visibility if isinstance(seen, VisibleStore) else None

    @property
    def silent(self) -> bool:
        """Whether nothing of it is kept, at least not yet."""
        return self.verdict != "keep"

    @property
    def asking(self) -> bool:
        """Whether the user has yet to agree. Until then turns wait in this process."""
        return self.verdict == "ask"

    async def append(self, *turns: Turn, learn: bool = True) -> tuple[Turn, ...]:
        """Store turns. Durable when it returns; appending a turn whose id exists changes nothing.

        Ids are unique within a conversation. If another conversation of the user has a turn with that id, the
        new turn is stored as "conversation:id", which is the id of the returned turn.

        If consent forbids storing, the turns are returned but not stored. A turn in which the user says
        "don't remember this call" acts as `off_the_record`, for earlier turns too; after "off the record
        from now on" nothing more is stored, and what was stays; "you may remember this call", "back on the
        record", or yes to the agent's question whether it may, acts as `remember`. A turn that was said
        before the last such answer, as one that is appended again, changes nothing about it.

        Args:
            turns: in spoken order.
            learn: False to never learn memories from them; search still finds them.

        Returns:
            the turns as stored, in the order given, with ids; for a known id, the earlier turn.

        Raises:
            InvalidInput: a turn belongs to another conversation, or this one was forgotten; none was stored.
            StoreUnavailable: none was stored, or only those before a turn that asks to keep no more; append
                them again.
        """
        for turn in turns:
            self._check(turn)
        times = not_ahead([turn.said_at for turn in turns], self._parts.clock())
        new = [
            replace(turn, id=turn.id or self._parts.new_id(), conversation=self.id, said_at=at)
            for turn, at in zip(turns, times, strict=True)
        ]
        self._note_others(new)
        kept: list[Turn] = []
        for part in _parts(new):
            kept += await self._append_part(part, learn=learn)
        return tuple(kept)

    async def _append_part(self, new: Sequence[Turn], *, learn: bool) -> tuple[Turn, ...]:
        while True:
            await self._hear_answers(new)
            if self.silent:
                return await self._unkept_turns(new, learn=learn)
            if (kept := await self._append(new, learn=learn)) is not None:
                return kept
            await self._look()  # the choice changed since it was read

    async def _append(self, new: Sequence[Turn], *, learn: bool) -> tuple[Turn, ...] | None:
        """`new` as stored; None if consent forbids it."""
        # a turn of a forgotten conversation would be found, but never learned from, listed or exported
        open_still = Require(kind=CONVERSATION, id=self.id)
        told = None if self._visible is None else self._visible.most
        wanted: dict[str, Turn] = {}
        for turn in new:
            wanted.setdefault(turn.id, turn)  # the same id twice in one call, as in two calls
        known: dict[str, Turn] = {}
        while missing := {name: turn for name, turn in wanted.items() if name not in known}:
            try:
                puts = [
                    Put(record=record_of_turn(turn, unlearned=not learn, told=told), expect=0)
                    for turn in missing.values()
                ]
                prepared = await self._parts.write_filter.prepare(self._scope, [open_still, *puts])
                await self._parts.store.write(self._scope, prepared)
            except WriteConflict:  # some were appended already, by this or another process
                await self.info()  # or their conversation is gone
                wanted |= await self._elsewhere(missing, known)
            else:
                kept = {change.record.id: change.record for change in prepared if isinstance(change, Put)}
                if any(turn.id not in kept for turn in missing.values()):
                    return None
                known |= {name: turn_of(kept[turn.id]) for name, turn in missing.items()}
                self._parts.background.poke((self._scope, self.id))
        return tuple(known[turn.id] for turn in new)

    async def off_the_record(self) -> Receipt:
        """Stop storing this conversation and destroy what was stored of it, with memories learned from it
        alone.

        The call can go on; the choice applies in every process.

        Raises:
            NotAllowed: the user's data is on legal hold, or what was kept is above the level of this handle
                and was added by a caller who is told more; nothing more is stored.
            StoreUnavailable: some of it may still be stored; call this again.
        """
        return await self._off_the_record(None)

    async def _off_the_record(self, said_at: datetime | None) -> Receipt:
        from echoic.memory.erasure import Erasing
        from echoic.memory.retention import refuse_held

        await self._answer(remember=False, said_at=said_at)
        self.verdict = "off the record"
        self._parts.pending.take(self._scope, self.id)
        await refuse_held(self._parts.store, self._scope)
        if await self._withholds():
            raise NotAllowed(f"what was kept of this conversation stays: {PROVE}")
        receipt = await Erasing(self._parts, self._scope).forget_call(self.id)
        compliance = self._parts.compliance
        if compliance is None:
            return receipt
        return await compliance.receipt(self._scope, "conversation", receipt)

    async def _withholds(self) -> bool:
        """Whether something that would be destroyed is withheld from the holder of this handle.

        What callers who were told no more added is theirs to take back, with what was learned from it.
        """
        from echoic.memory.erasure import Erasing

        visible = self._visible
        if visible is None:
            return False
        kept = await Erasing(self._parts, self._scope).said_in(self.id)
        turns = {one.id: visible.added(one) for one in kept if one.kind == TURN}

        def theirs(one: Record) -> bool:
            if one.kind not in {MEMORY, CONVERSATION}:
                return visible.added(one)
            source = memory_of(one).source if one.kind == MEMORY else turns
            return bool(source) and all(turns.get(name) for name in source)

        return not all(visible.record(self._scope, one) or theirs(one) for one in kept)

    async def remember(self) -> None:
        """Note that the user agreed: waiting turns are stored, and those that follow.

        Raises:
            NotKept: the user chose "never", which only `UserMemory.set_consent` changes.
            StoreUnavailable: the turns still wait; call this again.
        """
        await self._remember(None)

    async def _remember(self, said_at: datetime | None) -> None:
        if await self._look() == "never":
            raise NotKept(REASONS["never"], say=SPOKEN["never"])
        await self._answer(remember=True, said_at=said_at)
        await self._take_up()

    async def _answer(self, *, remember: bool, said_at: datetime | None) -> None:
        now = self._parts.clock()
        await write_answer(self._parts.store, self._scope, self.id, now, remember=remember, said_at=said_at)

    async def _look(self) -> Verdict:
        self.verdict = await verdict(self._parts.store, self._scope, self.id)
        return self.verdict

    async def _take_up(self) -> None:
        """Store the turns that waited for consent."""
        self.verdict = "keep"
        waiting = self._parts.pending.take(self._scope, self.id)
        try:
            await self.begin()
            for learn, said in itertools.groupby(waiting, lambda each: each[1]):
                await self._append([turn for turn, _ in said], learn=learn)
        except BaseException:
            for turn, learn in waiting:
                self._parts.pending.add(self._scope, self.id, [turn], learn=learn)
            raise

    async def _hear_answers(self, new: Sequence[Turn]) -> None:
        """Carry out what the user says in `new` about keeping this conversation."""
        if self.silent and await self._look() == "keep":  # answered elsewhere, such as on a page
            await self._take_up()
        waiting = self._parts.pending.turns(self._scope, self.id) if self.silent else []
        asked = next((turn for turn in reversed(waiting) if turn.speaker == AGENT), None)
        past: Callable[[Turn, bool], bool] | None = None
        for turn in new:
            if turn.speaker == AGENT:
                asked = turn
            elif turn.speaker == USER and self.verdict != "never":
                said = turn.heard_text
                question = asked.heard_text if asked is not None and self.asking else ""
                all_of_it = asks_off_the_record(said)
                unkept = all_of_it or asks_to_keep_no_more(said)
                answer = False if unkept else answers_to_remember(said, question)
                if answer is None:
                    continue
                past = past or await self._past_answers(new)
                if not past(turn, answer):
                    await self._hear_answer(answer, turn.said_at, ahead=unkept and not all_of_it)

    async def _past_answers(self, new: Sequence[Turn]) -> Callable[[Turn, bool], bool]:
        """Whether an answer in one of `new` counts no more: it is stored, or another was given since."""
        last = await read_answers(self._parts.store, self._scope, self.id)
        there = await self._parts.store.read(self._scope, TURN, [turn.id for turn in new])
        stored = {record.id for record in there if record.key == self.id}
        return lambda turn, answer: (
            turn.id in stored or any(other is not answer and turn.said_at <= at for other, at in last)
        )

    async def _hear_answer(self, answer: bool, said_at: datetime, *, ahead: bool) -> None:
        """Obey an answer; `ahead`: it is only about what is said from then on, so what was kept stays."""
        before = self.verdict
        try:
            if answer:
                if self.silent:
                    await self._remember(said_at)
            elif ahead and before == "keep":
                await self._answer(remember=False, said_at=said_at)
                self.verdict = "off the record"
            elif before != "off the record" or (not ahead and await self._kept_before()):
                await self._off_the_record(said_at)
        except NotAllowed:
            log.warning("a call is not kept any more; what was kept of it is on hold or withheld, and stays")
        except BaseException:
            self.verdict = before  # the turn was appended again
            raise

    async def _kept_before(self) -> bool:
        """Whether something is stored that was said before nothing more was to be kept."""
        return bool(await self._parts.store.read(self._scope, CONVERSATION, [self.id]))

    async def _unkept_turns(self, turns: Sequence[Turn], *, learn: bool) -> tuple[Turn, ...]:
        """`turns` as they would be kept. If the user has yet to agree, they wait."""
        masked = await self._masked(turns)
        if self.asking:
            self._parts.pending.add(self._scope, self.id, masked, learn=learn)
        return masked

    async def _masked(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        puts = [Put(record=record_of_turn(turn), expect=0) for turn in turns]
        prepared = await self._parts.write_filter.prepare(self._scope, puts)
        said = {c.record.id: c.record for c in prepared if isinstance(c, Put)}
        return tuple(turn_of(said[turn.id]) for turn in turns)

    async def _elsewhere(self, missing: Mapping[str, Turn], known: dict[str, Turn]) -> dict[str, Turn]:
        """Add existing turns to `known`; a turn whose id another conversation uses gets a new id."""
        ids = [turn.id for turn in missing.values()]
        there = {r.id: turn_of(r) for r in await self._parts.store.read(self._scope, TURN, ids)}
        told = {turn.id for turn in await self._told([*there.values()])}
        renamed = {}
        for name, turn in missing.items():
            found = there.get(turn.id)
            if found is not None and found.conversation == self.id:
                known[name] = found if found.id in told else turn
            elif found is not None and turn.id == name:
                renamed[name] = replace(turn, id=self._qualified(name))
            elif found is not None:
                raise InvalidInput(f"turn ids {brief(name)} and {brief(turn.id)} are taken: give it another")
        return renamed

    async def _told(self, turns: list[Turn]) -> list[Turn]:
        """Those of `turns` that the holder of this handle may be told."""
        if self._seen is self._parts.store or not turns:
            return turns
        told = {record.id for record in await self._seen.read(self._scope, TURN, [turn.id for turn in turns])}
        return [turn for turn in turns if turn.id in told]

    def _qualified(self, name: str) -> str:
        """The id of a turn whose own id is taken by another conversation."""
        return id_in(self.id, name)

    async def truncate(
        self,
        heard: str | None = None,
        *,
        after: str | None = None,
        fraction: float | None = None,
        words: int | None = None,
    ) -> list[Turn]:
        """Record a barge-in: only part of the agent's last answer was heard. Durable when it returns.

        For channels that store an answer before it is spoken. History, recall and learning then use what was
        heard; the full text stays in `Turn.text`. You may call it again with less. Give one of `heard`,
        `fraction` and `words`.

        Args:
            heard: the words up to the interruption, as written or as speech output reads them ("five dollars"
                for "$5.00"). A word that was cut off does not count. Empty: nothing was heard.
            after: the id of the user's turn that was being answered; None for the opening words.
            fraction: how much of the answer was played, from 0 to 1, rounded to whole words.
            words: how many words of the answer were played.

        Returns:
            the agent's turns of that answer, as stored now.

        Raises:
            InvalidInput: there is no such answer, or it does not begin with `heard`.
        """
        if (heard is not None) + (fraction is not None) + (words is not None) != 1:
            raise InvalidInput("truncate takes one of heard, fraction and words: how much was heard")

        async def attempt() -> list[Turn]:
            records = await scan_all(self._parts.store, self._scope, TURN, key=self.id)
            if not records and await self._is_unkept():
                return []
            answer = _answer([(turn_of(record), record) for record in records], after, self._qualified)
            ends = _heard_ends([turn.text for turn, _ in answer], heard, fraction, words)
            cut = [_cut(turn, end) for (turn, _), end in zip(answer, ends, strict=True)]
            changed = [
                Put.over(record, rewritten_turn(record, now))
                for now, (turn, record) in zip(cut, answer, strict=True)
                if now != turn
            ]
            if changed:
                await self._parts.store.write(self._scope, changed)
                self._parts.background.poke()
            return await self._told(cut)

        return await until_written(attempt, "conversation", self.id)

    async def turns(self) -> list[Turn]:
        """Everything said so far, in order, including turns that wait for consent in this process."""
        return await self._turns(turn_of)

    async def recalled_turns(self) -> list[Turn]:
        """As `turns`, without what the user took back: what a model may be shown."""
        return await self._turns(recalled_turn)

    async def _turns(self, read: Callable[[Record], Turn]) -> list[Turn]:
        records = await scan_all(self._seen, self._scope, TURN, key=self.id)
        waiting = self._parts.pending.turns(self._scope, self.id) if self.asking else []
        return [*map(read, records), *waiting]

    async def info(self) -> Conversation:
        """The conversation's current state."""
        records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
        if not records:
            return await self._unkept()
        kept = conversation_of(records[0])
        if self._seen is self._parts.store or await self._seen.read(self._scope, CONVERSATION, [self.id]):
            return kept
        return replace(kept, summary=None, recall_key=None)

    async def store(self, key: str, summary: str | None = None) -> Conversation:
        """Store it under a spoken key, with a summary; None keeps the existing summary.

        Raises:
            NotKept: nothing of it may be kept, or not yet.
        """
        checked_name(key, "recall key")
        if await self._is_unkept():
            raise NotKept(REASONS[self.verdict], say=SPOKEN[self.verdict])
        if summary is None:
            return await self._change(recall_key=key)
        return await self._change(recall_key=key, summary=checked_text(summary, "summary"))

    async def complete(self) -> Conversation:
        """Mark the call as over. It is distilled afterwards, here or by another worker.

        If the user was to be asked for consent and did not answer, nothing of it is kept.
        """
        if self.asking and await self._look() == "keep":
            await self._take_up()
        self._parts.pending.take(self._scope, self.id)
        await close_answer(self._parts.store, self._scope, self.id)
        done = await self._change(status="completed", distilled=False)
        self._parts.background.poke((self._scope, self.id))
        return done

    async def distil(self) -> Distilled:
        """Extract memories now from the turns since the last run."""
        distilled = await self._parts.distiller.distil(self._scope, self.id)
        self._parts.background.poke()
        return distilled

    async def learn(self) -> Distilled:
        """Extract memories now, by rules, from the turns since the last run; a model reads them later."""
        learned = await self._parts.distiller.apply_rules(self._scope, self.id)
        self._parts.background.poke()
        return learned

    async def learn_soon(self) -> None:
        """Have a model read the new turns in the background, as when an agent hands over."""
        self._parts.background.poke((self._scope, self.id), urgent=True)

    async def begin(self) -> None:
        """Create the conversation, or continue it if it exists."""
        if await self._is_unkept():
            return
        now = self._parts.clock()
        new = Conversation(id=self.id, agent=self._agent, status="active", started_at=now, updated_at=now)
        try:
            await self._parts.store.write(self._scope, [Put(record=record_of_conversation(new), expect=0)])
        except WriteConflict:
            return

    async def _is_unkept(self) -> bool:
        return self.silent or await self._look() != "keep"

    async def _unkept(self) -> Conversation:
        """The state of a conversation without stored turns; InvalidInput if it was forgotten."""
        if not await self._is_unkept():
            raise InvalidInput(f"conversation {brief(self.id)} was forgotten; open a new one")
        now = self._parts.clock()
        return Conversation(id=self.id, agent=self._agent, status="active", started_at=now, updated_at=now)

    async def _change(self, **fields: Any) -> Conversation:
        async def attempt() -> Conversation:
            records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
            if not records:
                return replace(await self._unkept(), **fields)
            changed = replace(conversation_of(records[0]), updated_at=self._parts.clock(), **fields)
            record = record_of_conversation(changed, cursor=cursor_of(records[0]))
            await self._parts.store.write(self._scope, [Put.over(records[0], record)])
            return changed

        return await until_written(attempt, "conversation", self.id)

    def _check(self, turn: Turn) -> None:
        if not isinstance(turn, Turn):
            raise InvalidInput(f"append takes Turn objects as separate arguments, not {type(turn).__name__}")
        if turn.conversation and turn.conversation != self.id:
            raise InvalidInput(
                f"turn {brief(turn.id)} belongs to conversation {brief(turn.conversation)}, "
                f"not to {brief(self.id)}"
            )

    def _note_others(self, turns: Sequence[Turn]) -> None:
        """Log once that nothing is learned from speakers other than the user, which you may not intend."""
        if not self._noted and any(turn.speaker not in {USER, AGENT} for turn in turns):
            self._noted = True
            log.warning(
                "a conversation has a speaker who is neither 'user' nor 'agent': what they say is kept and "
                "found under their name, and nothing is learned from it"
            )


async def open_conversation(
    parts: Parts,
    scope: Scope,
    conversation_id: str,
    agent: str | None,
    *,
    begin: bool,
    seen: Callable[[], Store],
) -> OpenConversation:
    """See `UserMemory.conversation`."""
    name = checked_name(conversation_id, "conversation id") if conversation_id else parts.new_id()
    if agent is not None:
        checked_name(agent, "agent")
    opened = OpenConversation(parts, scope, name, agent, seen=seen)
    await (opened.begin() if begin else opened._look())  # noqa: SLF001 - ours
    return opened


async def find_transcript(parts: Parts, scope: Scope, key: str) -> Transcript | None:
    """See `UserMemory.recall_conversation`."""
    key = parts.write_filter.text(scope, checked_name(key, "recall key"))
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


def _parts(turns: Sequence[Turn]) -> list[Sequence[Turn]]:
    """`turns`, cut before each in which the user asks to keep no more, and before what takes that back."""
    cuts, off = [0], False
    for at, turn in enumerate(turns):
        if turn.speaker != USER:
            continue
        if asks_to_keep_no_more(turn.heard_text):
            cuts.append(at)
            off = True
        elif off and answers_to_remember(turn.heard_text, ""):
            cuts.append(at)
            off = False
    return [part for a, b in itertools.pairwise([*cuts, len(turns)]) if (part := turns[a:b]) or not turns]


def _answer(
    turns: Sequence[tuple[Turn, Record]], after: str | None, qualified: Callable[[str], str]
) -> list[tuple[Turn, Record]]:
    """The agent's turns after the user's turn `after`, or before the first; InvalidInput without any."""
    begin = 0
    if after is not None:
        names = {after, qualified(after)}
        begin = next((n + 1 for n, (turn, _) in enumerate(turns) if turn.id in names), len(turns))
    answer = list(itertools.takewhile(lambda item: item[0].speaker == "agent", turns[begin:]))
    if not answer:
        what = "before the user spoke" if after is None else f"after turn {brief(after)}"
        raise InvalidInput(f"the agent said nothing {what}: `after` names the turn whose answer was cut off")
    return answer


def _heard_ends(
    said: Sequence[str], heard: str | None, fraction: float | None, words: int | None
) -> list[int]:
    """How many characters of each text were heard, by whichever argument is given."""
    if heard is not None:
        if not isinstance(heard, str):
            raise InvalidInput(f"heard must be a string, not {type(heard).__name__}")
        return heard_ends(said, heard)
    if fraction is not None and (
        isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1
    ):
        raise InvalidInput(f"fraction must be a number from 0 to 1, not {brief(fraction)}")
    if words is not None and (isinstance(words, bool) or not isinstance(words, int) or words < 0):
        raise InvalidInput(f"words must be a whole number from 0 on, not {brief(words)}")
    return share_ends(said, fraction=fraction, words=words)


def _cut(turn: Turn, end: int) -> Turn:
    """`turn` of which the first `end` characters reached the caller."""
    return replace(turn, heard=None if not turn.text[end:].strip() else turn.text[:end])


ENOUGH = 0.6
"""The share of the shorter key's words that the other must have, by spelling or sound."""


def match_keys(
    spoken: str, keys: Mapping[str, str], *, other_numbers: bool = False
) -> list[tuple[str, float]]:
    """The ids of `keys` (id -> stored key) that `spoken` may mean, best first, with similarity (0 to 1).

    A key is not meant by words with a number that is not in it. With `other_numbers` it is found too: to ask
    the caller, and never to answer from it.
    """
    said = spelled(spoken), in_digits(spoken)
    scored = [
        # a misheard number word is like the word, not like its digits
        (name, max(map(_likeness, said, (spelled(key), in_digits(key)))))
        for name, key in keys.items()
        if other_numbers or _same_numbers(said[1], in_digits(key))
    ]
    return sorted(((n, s) for n, s in scored if s >= ENOUGH), key=lambda found: -found[1])


def _same_numbers(said: list[str], key: list[str]) -> bool:
    """Whether the numbers and single letters of `said`, if any, are in `key`.

    The "one" of "the one about the garden" and an initial count only where the key has such a part.
    """
    codes = {part for part in said if len(part) == 1 or part.isdigit()}
    known = {part for part in key if len(part) == 1 or part.isdigit()}
    return codes <= known if known else not any(part.isdigit() and part != "1" for part in codes)


_PARTS = re.compile(r"[0-9]+|[^0-9\s]+")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9]) (?=[0-9])")


def spelled(key: str) -> list[str]:
    """The words of a key as they are written, without stop words; digits are words of their own."""
    words = _PARTS.findall(" ".join(cut(key)))
    return [word for word in words if word not in STOP] or words


def in_digits(key: str) -> list[str]:
    """The words of a key with its numbers in digits, however they were said or written: "order forty seven
    eleven", "order 47-11" and "order 4711" are the same.
    """
    words = cut(key)
    if words[:1] == ["oh"] and not in_figures(" ".join(words[1:2])).isdigit():
        del words[0]  # surprise, and no zero
    words = [word for word in words if word not in STOP or word in {"a", "oh"}]
    parts = _PARTS.findall(_BETWEEN_DIGITS.sub("", in_figures(" ".join(words))))
    # "flat twelve a" is 12a; any other "a" is the article
    kept = [part for before, part in itertools.pairwise(["", *parts]) if part != "a" or before.isdigit()]
    return kept or spelled(key)


def _likeness(said: list[str], key: list[str]) -> float:
    if said == key:
        return 1.0
    if not said or not key:
        return 0.0
    short, long = sorted((said, key), key=len)
    found = sum(max(_alike(a, b) for b in long) for a in short) / len(short)
    whole = fuzz.ratio("".join(said), "".join(key)) / 100  # "oven ready" heard as "ovenready"
    # part of a key may match, but a full key matches better
    return min(0.99, max(found * (0.85 + 0.15 * len(short) / len(long)), whole if whole > 0.8 else 0.0))


def _alike(a: str, b: str) -> float:
    """0 to 1: the same word, a similar spelling, or the same sound."""
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
