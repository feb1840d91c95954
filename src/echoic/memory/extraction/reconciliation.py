"""Reconciliation: what an extractor may propose, and which proposals take effect. Writes nothing.

Every change is checked against the turns it cites, whoever proposed it: only the user's own words count,
older statements never undo newer ones, and what the user retracted does not return. A fact heard with low
recognition confidence is marked unconfirmed until it is said again clearly or affirmed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Final, Literal, Protocol, runtime_checkable

from echoic.english.corrections import similar
from echoic.english.forget_requests import forget_request
from echoic.english.lexicon import TITLES, source
from echoic.english.phrases import slug
from echoic.english.slots import beside, is_of, rivals
from echoic.errors import EchoicError
from echoic.memory.extraction.known_facts import same_words, statement_of
from echoic.memory.extraction.turns import (
    Understood,
    affirmed,
    is_doubted,
    is_sure,
    may_ask,
    mentions,
    of_user,
)
from echoic.memory.profile import remembered_zone
from echoic.memory.records import TURN, Ledger
from echoic.temporal import ZONE_KEYS, dated, mentions_a_day
from echoic.text import fold
from echoic.types import Category, Memory, Turn

ThirdParties = Literal["keep", "adults", "drop"]
"""What is kept about other people a user mentions. "keep": everything. "adults": nothing about children.
"drop": nothing."""

_YOUNG: Final = (
    "child|children|kids?|bab(?:y|ies)|toddlers?|infants?|newborns?|(?:grand|step|god)?(?:sons?|daughters?)|"
    "(?:grand|step|god)child(?:ren)?|grandkids|nieces?|nephews?|twins|triplets|"
    "(?:little|youngest|eldest|oldest) (?:boy|girl|one)s?|teenagers?|pupils?"
)


_KIN: Final = (
    "mam|mummy|daddy|auntie|aunty|nana?|gran|grandad|granddad|parents?|grandparents?|step(?:mum|mom|mother|dad|father)|"
    "missus|hubby|(?:other|better) half|siblings?|ex"
)


_ALONE: Final = re.compile(
    r"(?:\A(?:mam|mummy|mum|mom|daddy|dad|nana|nan(?! bread)|gran|granny|grandma|grandad|granddad|grandpa)"
    r"|\bthe (?:missus|wife|husband))(?:'?s|'ll|'d)?\b(?!, |! |,? (?:i|i'm|i've|we|we're|our|my)\b)"
)
"""Relatives named without "my": "Dad can't have nuts", "the wife's a nurse"; not who is spoken to."""

_OF_THEM: Final = re.compile(
    r"\As?he(?:['’]?(?:s|d|ll))?\b(?!.*\b(?:i|me|my|mine|we|us|our)\b)"
    r"|\A(?!(?:it|that|this|there|here|what|user)\b)[a-z]+(?:['’]s| is) "
    rf"{source('signs.much')}(?:{source('signs.are')})",
    re.DOTALL,
)
"""Statements about "he", "she" or a name: "she's coeliac", "Tom's vegan"; not "he's put me on statins"."""


@cache
def _about(rule: ThirdParties) -> re.Pattern[str]:
    """References to other people: "my sister", "the user's boss", "has a daughter"."""
    family = _YOUNG if rule == "adults" else f"{_YOUNG}|(?:{_KIN})s?|(?:ex-?)?(?:{source('facts.kin')})s?"
    others = family if rule == "adults" else f"{family}|(?:{source('facts.others')})s?"
    between = r"(?:(?!called|named)[\w'-]+ ){0,2}?"
    return re.compile(
        rf"(?:\b(?:(?:my|our|their|his|her|[a-z]+'s) {between}(?:{others})"
        rf"|(?<!call )(?<!calls )me (?:{family})"
        r"|(?:my|our|me) (?:little |middle )?(?:boys?|girls?|lads?|lass(?:es)?|bairns?|(?:young|eld|old)est)"
        rf"|(?:has|have|had|got|i've|we've) (?:an? |some |[0-9]+ |(?:one|two|three|four|five|six) )?"
        rf"{between}(?:{family})"
        rf"|(?:mother|father|mum|mom|dad|parent)s? (?:of|to)|pregnant|expecting twins))\b"
        r"(?! tongue|'s (?:appointment|surgery|office|note|orders))"
    )


@cache
def _keys(rule: ThirdParties) -> re.Pattern[str]:
    """The words of a key that names somebody else: "daughter_name", "child:tom"."""
    kinds = _YOUNG if rule == "adults" else f"{_YOUNG}|{_KIN}|{source('facts.kin')}|{source('facts.others')}"
    return re.compile(rf"\b(?:{kinds})\b")


def is_dropped(rule: ThirdParties, key: str | None, *texts: str | None) -> bool:
    """Whether `rule` forbids storing `texts`, under `key`, because of the people they are about."""
    if rule == "keep":
        return False
    if key and _keys(rule).search(re.sub(r"[\W_]+", " ", fold(key))):
        return True
    said = [fold(text) for text in texts if text is not None]
    # a value may be called so: "Gran Canaria", "Mum's Kitchen"
    alone = (
        key is None and rule != "adults" and any(_ALONE.search(text) or _OF_THEM.match(text) for text in said)
    )
    return alone or any(map(_about(rule).search, said))


FACT_CATEGORIES: tuple[Category, ...] = ("preference", "entity", "decision", "requirement", "fact")
"""The categories learned from speech; experience belongs to an agent and is learned elsewhere."""


class Unusable(EchoicError):
    """The extractor's result cannot be used, or would change too much. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The input of an extractor."""

    turns: tuple[Turn, ...]
    """New turns, in order. Facts may cite only the user's turns among them."""
    context: tuple[Turn, ...] = ()
    """The turns before, read again for references."""
    known: tuple[Memory, ...] = ()
    """Current memories of the user that the turns may repeat, correct or take back."""
    withheld: frozenset[str] = field(default_factory=frozenset)
    """Ids of turns that the user asked not to keep."""
    of_another: bool = False
    """Whether the talk was about somebody else before `context`."""
    understood: Mapping[str, Understood] = field(default_factory=dict)
    """See `understood`. Facts may cite the turns that gave them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement about the user."""

    text: str
    """The value where there is a key ("Lisbon"), else a sentence."""
    key: str | None = None
    """The slot it fills; a later value of the same slot supersedes it."""
    statement: str | None = None
    """A self-contained sentence, if `text` is only a value."""
    category: Category = "fact"
    context: str | None = None
    """When and under which conditions it applies."""
    instead: str | None = None
    """The value of the slot that it corrects."""
    ends: tuple[str, ...] = ()
    """Slots whose values end if this one is new."""
    introduced: bool = False
    """Whether it is a name with which a turn begins: in a call in which the user gave another one, it is that
    of somebody who has taken the telephone."""
    tentative: bool = False
    """Whether it may mean something else: beside another value it is unconfirmed, and ends nothing."""
    sure: bool = True
    """Whether it can be relied on without asking back."""

    @property
    def is_move(self) -> bool:
        """Whether it is a home that one moved to, which also ends the homes of some seasons."""
        return self.key == "home" and "address" in self.ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Add a fact. If it is known, it is confirmed; if its slot holds another value, that value ends."""

    fact: Fact
    source: tuple[str, ...]
    """Ids of the turns that say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """Replace a known memory by a new fact."""

    known: tuple[str, ...]
    """Ids of the memories that end."""
    fact: Fact
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """A known memory was said again."""

    known: str
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retract:
    """End a known memory without a replacement."""

    known: tuple[str, ...]
    source: tuple[str, ...]
    mistaken: bool = False
    """Whether it was never said: then what it replaced holds again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Known memories are marked as unconfirmed: they were perhaps not meant."""

    known: tuple[str, ...]
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack:
    """The user retracted the value of a slot."""

    key: str
    text: str
    """The retracted value; empty for any."""
    context: str | None = None
    """The condition of the retracted value; None for any."""
    deleted: bool = False
    """Whether the user asked to forget it."""
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearn:
    """The user asked not to keep these turns: what was learned from them ends, and what they ended holds."""

    turns: frozenset[str]
    source: tuple[str, ...]


Change = Add | Supersede | Confirm | Retract | Doubt | TakeBack | Unlearn


@runtime_checkable
class Extractor(Protocol):
    """Reads what was said and proposes changes.

    It may raise any exception: then nothing changes, and the same turns are read again later.
    """

    @property
    def name(self) -> str:
        """The name under which its cursor is stored; unique to each extractor."""
        ...

    @property
    def timeout_s(self) -> float:
        """Seconds one reading may take."""
        ...

    async def open(self) -> None:
        """Prepare it for use.

        Raises:
            InvalidInput: it is not set up correctly.
        """
        ...

    async def aclose(self) -> None:
        """Release what `open` acquired. May be called twice."""
        ...

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """The changes that `reading` calls for, in spoken order.

        Their ids refer to memories and turns in `reading`; whose memory it is, the extractor does not decide.
        """
        ...


class Summarizer(Protocol):
    """Summarises a call for the agent that continues it."""

    async def summarize(self, before: str | None, turns: Sequence[Turn]) -> str:
        """The summary `before` (None at first), extended by `turns`. May raise anything."""
        ...

    async def aclose(self) -> None:
        """Release its resources. May be called twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """The changes a run made."""

    turns: int = 0
    kept: tuple[Memory, ...] = ()
    """New or corrected memories, and those that hold again."""
    retracted: tuple[Memory, ...] = ()
    confirmed: tuple[Memory, ...] = ()
    """Memories that were said again."""
    superseded: tuple[str, ...] = ()
    """Ids of memories that others replaced."""

    def __add__(self, other: Distilled) -> Distilled:
        return Distilled(
            turns=self.turns + other.turns,
            kept=self.kept + other.kept,
            retracted=self.retracted + other.retracted,
            confirmed=self.confirmed + other.confirmed,
            superseded=self.superseded + other.superseded,
        )


Duplicates = Callable[[str, Sequence[Memory]], Memory | None]
"""Finds the memory that says what a statement says, among the known ones and those this run kept."""


class Reconciler:
    """Applies the changes of one run to a ledger of the user's own scope.

    A change may cite only `turns`, and a new fact those of `also`; the first of `turns` may affirm what the
    agent read back in `context`.
    `past` are ended memories that may hold again. Without `duplicates`, only the same slot can hold the same;
    without `undone`, only known slots are checked for later corrections.
    """

    def __init__(
        self,
        ledger: Ledger,
        turns: Sequence[Turn],
        withheld: frozenset[str],
        *,
        known: Sequence[Memory] = (),
        past: Sequence[Memory] = (),
        duplicates: Duplicates | None = None,
        undone: Callable[[str, datetime], bool] | None = None,
        context: Sequence[Turn] = (),
        also: Iterable[Turn] = (),
        third_parties: ThirdParties = "keep",
    ) -> None:
        self._third_parties = third_parties
        self._ledger = ledger
        self._turns = {turn.id: turn for turn in turns if of_user(turn) and turn.id not in withheld}
        self._also = {turn.id: turn for turn in also if turn.id not in withheld}
        self._all = {turn.id: turn for turn in turns}
        self._before = {turn.id: turn for turn in (*context, *turns)}
        self._known = known
        self._past = past
        self._affirmed = affirmed([*context[-1:], *turns])
        self._duplicates = duplicates
        self._undone = undone
        self._kept: list[Memory] = []
        self._retracted: list[Memory] = []
        self._confirmed: list[Memory] = []
        self._superseded: list[str] = []

    async def take(self, changes: Sequence[Change]) -> Distilled:
        """Apply `changes` to the ledger in order; returns the result."""
        for change in changes:
            if not (isinstance(change, (Add, Supersede)) and self._is_dropped(change.fact)):
                await self._take(change)
        for text, turn in self._affirmed:
            await self._affirm(text, turn)
        return Distilled(
            turns=len(self._all),
            kept=tuple(self._kept),
            retracted=tuple(self._retracted),
            confirmed=tuple(self._confirmed),
            superseded=tuple(dict.fromkeys(self._superseded)),
        )

    def _is_dropped(self, fact: Fact) -> bool:
        """Whether nothing is kept about the person in `fact`."""
        return is_dropped(self._third_parties, fact.key, fact.statement or fact.text, fact.context)

    async def _take(self, change: Change) -> None:
        if isinstance(change, Unlearn):
            await self._unlearn(change)
            return
        # retractions count even in turns that must not be kept
        ends = isinstance(change, (TakeBack, Retract))
        cited = [turn for name in change.source if (turn := self._cited(name, ends=ends))]
        if not cited or len(cited) < len(set(change.source)):
            return
        last = max(cited, key=lambda turn: turn.said_at)
        if isinstance(change, Add):
            await self._add(change.fact, cited, last)
        elif isinstance(change, Supersede):
            await self._supersede(change, cited, last)
        elif isinstance(change, Confirm):
            known = await self._changeable(change.known, last)
            if known:
                await self._confirm(known, cited)
        elif isinstance(change, TakeBack):
            await self._take_back(change, last)
        else:
            await self._retract(change, last)

    def _cited(self, name: str, *, ends: bool) -> Turn | None:
        turn = self._all.get(name) if ends else (self._turns.get(name) or self._also.get(name))
        return turn if turn and of_user(turn) else None

    async def _add(self, fact: Fact, cited: Sequence[Turn], last: Turn) -> None:
        memory = await self._memory(fact, cited, last)
        user = self._ledger.scope.user
        newest = await self._ledger.newest(memory.key, user) if memory.key else None
        if newest is not None and newest.current and fact.instead != newest.text:
            memory, newest = await self._beside(memory, fact, newest)
        if newest is not None and (_undone(newest, last) or await self._is_anothers(fact, newest, cited)):
            return
        same = newest if newest and newest.current and _same_value(newest, memory) else None
        if same and fact.instead == same.text and fold(same.text) != fold(memory.text):
            same = None  # "it's Clark, not Clarke" has the same stem
        same = same or (None if newest and newest.current else await self._duplicate(memory))
        less = newest is not None and newest.current and _only_less(memory, newest)
        less_said = (
            newest is not None and newest.current and not fact.instead and _only_begins(memory, newest)
        )
        cut = less_said and not any(_renews(memory.text, turn.heard_text) for turn in cited)
        same = newest if less or cut else same
        if same is not None and memory.context and not same.context:  # add the condition to the known memory
            new = replace(memory, key=same.key, text=same.text, statement=same.statement)
            self._keep(await self._ledger.supersede(same, new))
        elif same is not None:
            await self._confirm(same, cited, in_full=not cut)
        elif not self._is_undone(memory):
            kept = await (self._ledger.set(memory) if memory.key else self._ledger.add(memory))
            self._keep(kept)
            if kept.key == fact.key:
                await self._end_old(fact, kept, cited)

    async def _is_anothers(self, fact: Fact, newest: Memory, cited: Sequence[Turn]) -> bool:
        """Whether somebody introduces themselves in a call in which the user gave the name `newest`."""
        if not (fact.introduced and newest.current) or fact.instead or _may_be_one(fact.text, newest.text):
            return False
        calls = {turn.conversation for turn in cited}
        given = await self._ledger.store.read(self._ledger.scope, TURN, newest.source)
        return any(record.key in calls for record in given)

    async def _beside(self, memory: Memory, fact: Fact, newest: Memory) -> tuple[Memory, Memory | None]:
        """`memory` under the key where it stands beside `newest`, and the newest version of that key; both
        as they are if it replaces `newest`.
        """
        key = beside(newest.key or "", fact.instead or memory.text, memory.context, newest)
        if fact.tentative and not _same_value(newest, memory):
            key = f"{memory.key}:{slug(memory.text)}"
        if key is None:
            return memory, newest
        memory = replace(memory, key=key, confirmed=memory.confirmed and not fact.tentative)
        return memory, await self._ledger.newest(key, self._ledger.scope.user)

    async def _end_old(self, fact: Fact, new: Memory, cited: Sequence[Turn]) -> None:
        """End what the new value of a slot makes old: other slots, and itself where it was tentative.

        "I work for the NHS" ends no "I work at the hospital", and a move ends no address in the same town.
        """
        changed = fact.key == "home" or any(_NEW.search(turn.heard_text.casefold()) for turn in cited)
        ends = fact.ends if changed and not fact.tentative else ()
        if ends and fact.is_move:
            ends += tuple(key for one in self._known if (key := one.key or "").startswith("home:"))
        for key in (*ends, *([f"home:{slug(new.text)}"] if fact.key == "home" else ())):
            old = await self._ledger.current(key, self._ledger.scope.user)
            there = key == "address" and old is not None and mentions(old.text, new)
            if old is not None and old.valid_from < new.valid_from and not there:
                await self._ledger.give_way(old, new, new.valid_from)
                self._superseded.append(old.id)

    def _keep(self, kept: Memory) -> None:
        self._kept.append(kept)
        self._superseded += [kept.supersedes] if kept.supersedes else []

    async def _supersede(self, change: Supersede, cited: Sequence[Turn], last: Turn) -> None:
        known = [memory for name in change.known if (memory := await self._changeable(name, last))]
        if not known:
            return
        new = await self._memory(change.fact, cited, last)
        newest = await self._ledger.newest(new.key, self._ledger.scope.user) if new.key else None
        if self._is_undone(new) or (newest is not None and _undone(newest, last)):
            return
        has_it = [memory for memory in known if _same_value(memory, new)]
        stays = next((memory for memory in has_it if memory.key == new.key), None)
        # a memory under another key, or none, cannot replace this one: its key would be empty
        if has_it and stays is None and (new.key is None or all(memory.key != new.key for memory in known)):
            stays = has_it[0]
        if stays is not None:
            await self._stay(stays, [memory for memory in known if memory.id != stays.id], cited, last)
            return
        for memory in known:
            new = await self._ledger.supersede(memory, new)
        self._kept.append(new)
        self._superseded += [new.supersedes] if new.supersedes else []
        self._superseded += [memory.id for memory in known]

    async def _stay(self, stays: Memory, others: Sequence[Memory], cited: Sequence[Turn], last: Turn) -> None:
        """Merge several memories into one that is kept as it is: it stays current, the others end."""
        for memory in others:
            stays = await self._ledger.give_way(memory, stays, last.said_at)
        self._superseded += [memory.id for memory in others]
        await self._confirm(stays, cited)

    async def _confirm(self, known: Memory, cited: Sequence[Turn], *, in_full: bool = True) -> None:
        for turn in cited:
            sure = in_full and is_sure(turn)
            confirmed = await self._ledger.confirm(known, turn.id, turn.said_at, sure=sure)
            self._confirmed += [confirmed] if confirmed else []

    async def _affirm(self, text: str, turn: Turn) -> None:
        """Confirm what the agent read back and the user affirmed in `turn`."""
        if turn.id not in self._turns:
            return
        for memory in (*self._known, *self._kept):
            if not memory.confirmed and mentions(text, memory) and memory.author == self._ledger.scope.user:
                sure = await self._ledger.affirm(memory.id)
                if sure and sure.key and sure.key.startswith("home:") and not sure.context:
                    sure = await self._ledger.supersede(sure, replace(sure, key="home"))
                    self._superseded += [sure.supersedes] if sure.supersedes else []
                self._confirmed += [sure] if sure else []

    async def _take_back(self, change: TakeBack, last: Turn) -> None:
        user = self._ledger.scope.user
        keys = {memory.key or "" for memory in (*self._known, *self._kept)}
        keys = {key for key in keys if is_of(key, change.key)} | {change.key}
        found = [known for key in sorted(keys) if (known := await self._ledger.current(key, user))]
        # "forget that I like music at work": of several, only that one
        under = [known for known in found if change.context and known.context == change.context]
        under = under or [known for known in found if known.text.casefold() == change.text.casefold()]
        for known in under or found:
            # "I'm not Pavel" takes back Pavel, not whatever name is known; "allergy:peanuts" names its thing
            named = ":" in change.key or not change.text or change.text.casefold() == known.text.casefold()
            if named and known.valid_from <= last.said_at:
                ended = await self._ledger.end(known.id, last.said_at, deleted=change.deleted)
                self._note_retracted(ended)

    async def _retract(self, change: Retract | Doubt, last: Turn) -> None:
        found = [known for name in change.known if (known := await self._changeable(name, last))]
        asked = any(
            (turn := self._all.get(name)) and forget_request(turn.heard_text) for name in change.source
        )
        for known in found:
            if isinstance(change, Doubt):
                await self._ledger.doubt(known.id)
            else:
                deleted = asked and not change.mistaken
                self._note_retracted(await self._ledger.end(known.id, last.said_at, deleted=deleted))
        if isinstance(change, Retract) and change.mistaken:
            await self._restore_replaced(found, last.said_at)

    async def _unlearn(self, change: Unlearn) -> None:
        at = max((turn.said_at for name in change.source if (turn := self._all.get(name))), default=None)
        if at is None:
            return
        # both known memories and those of this run
        gone = [m for m in (*self._known, *self._kept) if not change.turns.isdisjoint(m.source)]
        for memory in gone:
            held = await self._ledger.holding(memory.id) or memory
            deleted = _only_from(change.turns, held)
            self._note_retracted(await self._ledger.end(memory.id, at, deleted=deleted))
        # where another turn said it too, what it replaced stays so
        unlearned = [m for m in self._past if _only_from(change.turns, m)]
        for memory in unlearned:
            await self._ledger.end(memory.id, at, deleted=True)
        never = [m for m in gone if _only_from(change.turns, m)]
        for _ in unlearned:
            names = {m.id for m in never}
            never += [m for m in unlearned if m.superseded_by in names and m.id not in names]
        await self._restore_replaced(never, at, change.turns)
        await self._restore_denied(change, at)

    async def _restore_replaced(
        self, never: Sequence[Memory], at: datetime, unlearned: frozenset[str] = frozenset()
    ) -> None:
        """Make current again what the memories `never`, which were never true, replaced."""
        names = {memory.id for memory in never}
        before = [memory for memory in self._past if memory.superseded_by in names]
        for memory in never:
            for key, _ in rivals(memory.key or "", memory.text):
                rival = await self._ledger.newest(key, self._ledger.scope.user)
                before += [rival] if rival and rival.valid_until == memory.valid_from else []
        for memory in before:
            if not _only_from(unlearned, memory):
                await self._restore(memory, at)

    async def _restore_denied(self, change: Unlearn, at: datetime) -> None:
        """Make current again what was only denied in unlearned turns: "I'm not allergic to nuts"."""
        names = change.turns - set(change.source)
        turns = [turn for name in names if (turn := self._before.get(name)) and not may_ask(turn.heard_text)]
        moments = {turn.said_at for turn in turns}
        denied = [m for m in (*self._past, *self._retracted) if m.key and m.valid_until in moments]
        for memory in denied:
            newest = await self._ledger.newest(memory.key or "", self._ledger.scope.user)
            if newest and newest.id == memory.id and not _only_from(change.turns, memory):
                await self._restore(memory, at)

    async def _restore(self, memory: Memory, at: datetime) -> None:
        again = await self._ledger.restore(memory.id, at)
        if again is not None:
            self._retracted = [gone for gone in self._retracted if gone.id != memory.id]
            self._keep(again)

    async def _changeable(self, name: str, last: Turn) -> Memory | None:
        """The named memory, if it is current, the user's own and not newer than what was said."""
        memory = await self._ledger.holding(name)
        if memory is None or memory.author != self._ledger.scope.user or memory.visibility != "private":
            return None
        return memory if memory.valid_from <= last.said_at else None

    async def _duplicate(self, memory: Memory) -> Memory | None:
        """The current memory that says the same, under whatever key."""
        found = self._duplicates(statement_of(memory), self._kept) if self._duplicates else None
        return await self._ledger.holding(found.id) if found else None

    def _is_undone(self, memory: Memory) -> bool:
        """As `_undone`, for a statement without a slot."""
        return (
            memory.key is None
            and self._undone is not None
            and self._undone(statement_of(memory), memory.valid_from)
        )

    async def _memory(self, fact: Fact, cited: Sequence[Turn], last: Turn) -> Memory:
        said = [fact.text, fact.statement or "", fact.context or ""]
        if any(map(mentions_a_day, said)):
            said = dated(said, last.said_at, await self._zone())
        text, statement, context = said
        memory = Memory(
            id="",
            key=fact.key,
            text=text,
            statement=statement or None,
            category=fact.category,
            context=context or None,
            author=self._ledger.scope.user,
            source=tuple(turn.id for turn in cited),
            valid_from=last.said_at,
        )
        doubted = not fact.sure or is_doubted(memory, cited)
        return replace(memory, confirmed=False) if doubted else memory

    async def _zone(self) -> tzinfo:
        """The user's time zone, including one just learned."""
        now = [await self._ledger.current(key, self._ledger.scope.user) for key in ZONE_KEYS]
        learned = [memory for memory in now if memory is not None]
        return await remembered_zone(self._ledger.store, self._ledger.scope, learned) or UTC

    def _note_retracted(self, memory: Memory | None) -> None:
        if memory is not None:
            self._retracted.append(memory)
            self._kept = [kept for kept in self._kept if kept.id != memory.id]


_NEW: Final = re.compile(r"\b(?:now|moved|started|joined|switched|new)\b")
"""Words that say that somebody changed jobs."""


def _renews(text: str, said: str) -> bool:
    """Whether `said` gives a shorter value as a new one: "call me Ruth", "I'm at Tesco now"."""
    value = re.escape(text.casefold())
    before = r"(?:calls? me|go(?:es)? by|now|changed to|moved to)(?: just| called| at| for| in)?"
    return bool(re.search(rf"\b{before} {value}\b|\b{value} now\b", said.casefold()))


def _may_be_one(new: str, known: str) -> bool:
    """Whether two names may be one person's: one repeats a word of the other, or sounds like it."""
    one, other = ([word for word in fold(name).split() if word not in TITLES] for name in (new, known))
    if len(one) > 1 and len(other) > 1:  # of a family all have the last name
        one, other = one[:1], other[:1]
    return not (one and other) or any(similar(word, known) for word in one for known in other)


def _only_from(turns: frozenset[str], memory: Memory) -> bool:
    """Whether nothing but `turns` says `memory`."""
    return bool(memory.source) and turns.issuperset(memory.source)


def _undone(newest: Memory, last: Turn) -> bool:
    """Whether a newer value exists or it was retracted after these words: an old call may be read late."""
    ended: datetime | None = newest.valid_until
    return newest.valid_from > last.said_at or (ended is not None and ended > last.said_at)


def _only_less(said: Memory, known: Memory) -> bool:
    """Whether `said` is the known memory from the same words, without its condition."""
    if said.context or not known.context or not set(said.source) <= set(known.source):
        return False
    return said.text.casefold() == known.text.casefold() or same_words(said.text, known.text)


def _only_begins(said: Memory, known: Memory) -> bool:
    """Whether `said` is a less precise form of the known value: "Ruth" of "Ruth Baker", "May 3"."""
    if said.category not in {"entity", "fact"} or said.context or (said.key or "note:").startswith("note:"):
        return False
    one, other = (fold(memory.text).replace(",", " ").split() for memory in (said, known))
    return len(one) < len(other) and other[: len(one)] == one


def _same_value(known: Memory, said: Memory) -> bool:
    """Whether a slot holds what was said, ignoring case and filler words."""
    alike = known.text.casefold() == said.text.casefold() or same_words(known.text, said.text)
    return alike and (known.category, known.context) == (said.category, said.context)
