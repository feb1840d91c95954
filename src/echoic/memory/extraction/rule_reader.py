"""Runs the rules of `english` over every new turn at once: what they extract is known within the call.

Its cursor is part of the conversation's record. The memories and the moved cursor are one write that expects
the conversation as it was read, so a crash, a second worker or an erasure leaves either both or neither.
`RuleExtractor` needs no model, no network and no clock.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.facts import PEOPLE
from echoic.english.phrases import WHOLE_PHONE
from echoic.english.sentences import asked_for, completed
from echoic.english.slots import INFERRED, rivals
from echoic.memory.concurrency import until_written
from echoic.memory.extraction.known_facts import KnownMemories, known_of
from echoic.memory.extraction.reconciliation import (
    Add,
    Change,
    Distilled,
    Fact,
    Reading,
    Reconciler,
    TakeBack,
    ThirdParties,
    Unlearn,
)
from echoic.memory.extraction.turns import (
    CONTEXT,
    RECENT,
    affirmed,
    conversation_record,
    marked,
    meant_by_that,
    of_user,
    stretch_of,
    takes_back,
    withheld,
)
from echoic.memory.forget_targets import obey
from echoic.memory.records import Ledger, conversation_of, cursor_of, record_of_conversation
from echoic.memory.retraction import hide_taken_back
from echoic.secrets import MARKER
from echoic.stores.base import Put, Store
from echoic.text import TAKEN_BACK, fold
from echoic.text.spoken_numbers import in_figures
from echoic.types import Scope, Turn

MASKED: Final = "maskedsecret"
"""Replaces a masked secret while a text is cut into words, which would strip the marker's brackets."""
PAUSE_S: Final = 0.001
"""Seconds for which the loop yields after each turn: otherwise threads that encode and search for a question
each wait 5 ms for the interpreter."""


class RuleExtractor:
    """Extracts plain statements in English. Cheap enough to run after each turn."""

    name = "rules"
    timeout_s = 30.0

    async def open(self) -> None:
        """Do nothing: rules need no resources."""

    async def aclose(self) -> None:
        """Do nothing: no resources are held."""

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """See `Extractor`; never fails."""
        # "actually it's Paula" corrects what was just said, not what was said an hour ago
        recent: _Recent = deque(maxlen=RECENT)
        by_turn: dict[str, list[SelfStatement]] = {}
        changes: list[Change] = []
        every = [*reading.context, *reading.turns]
        for place in range(max(0, len(reading.context) - CONTEXT), len(every)):
            turn, before = every[place], every[place - 1] if place else None
            previous = [item for _, items in recent for item in items]
            if of_user(turn) and takes_back(turn.heard_text):
                meant = meant_by_that(turn, every[:place])
                previous = [item for name in meant for item in by_turn.get(name, ())]
            heard = by_turn[turn.id] = _hear(_told(before, turn), recent, previous, _asked(before))
            whole, begun = _dictated(every[: place + 1], reading.withheld)
            heard += whole  # the next turn may correct it, too
            if place < len(reading.context):
                continue
            for item in heard:
                changes += _changes(item, turn, begun if item in whole else ())
            gone = _unlearned(turn, reading)
            changes += [Unlearn(turns=gone, source=(turn.id,))] if gone else []
            await asyncio.sleep(PAUSE_S)  # a turn takes about a millisecond, and audio runs on this loop
        return changes


_Recent = deque[tuple[str, list[SelfStatement]]]
"""The user's last utterances, and what was extracted from each."""


def told_by_user(turns: Sequence[Turn]) -> dict[str, str]:
    """The user's words in each of `turns`, by id: a bare answer as a statement, a secret or what was taken
    back as a word.
    """
    told = ((turn.id, _told(before, turn)) for before, turn in itertools.pairwise([None, *turns]) if turn)
    return {name: text for name, text in told if text is not None}


def _told(before: Turn | None, turn: Turn) -> str | None:
    """The user's words in `turn`, as in `told_by_user`; None if there are none."""
    if not of_user(turn):
        return None
    heard = MARKER.sub(MASKED, turn.heard_text).replace(TAKEN_BACK, MASKED)
    return completed(_asked(before), heard)


def _asked(before: Turn | None) -> str:
    """What the agent said directly before a turn, as heard."""
    return before.heard_text if before and before.speaker == "agent" else ""


def _hear(
    said: str | None, recent: _Recent, previous: Sequence[SelfStatement], asked: str
) -> list[SelfStatement]:
    """The new statements of the user, without other speakers' and without secrets."""
    if said is None:
        return []
    every = listen(said, previous, _since(recent), asked)
    heard = [item for item in every if MASKED not in item.text.casefold()]
    recent.append((said, heard))
    return heard


def _since(recent: _Recent) -> str:
    """The user's turns after the last one that was read."""
    behind: list[str] = []
    for text, heard in reversed(recent):
        if heard:
            _, value, rest = text.casefold().rpartition(heard[-1].text.casefold() or text.casefold())
            return "\n".join([rest if value else "", *behind])
        behind.insert(0, text)
    return "\n".join(behind)


def _changes(item: SelfStatement, turn: Turn, begun: tuple[str, ...] = ()) -> list[Change]:
    source = (turn.id,)
    if item.retracts:
        return [TakeBack(key=item.key, text=item.text, context=item.context, source=source)]
    fact = Fact(
        text=item.text,
        key=item.key,
        statement=item.sentence,
        category=item.category,
        context=item.context,
        instead=item.instead,
        ends=item.ends,
        tentative=item.key == "home" and item.confidence <= INFERRED,
    )
    gone = [TakeBack(key=key, text=text, source=source) for key, text in rivals(item.key, item.text)]
    return [*gone, Add(fact=fact, source=source, begun=begun)]


_PHONE: Final = frozenset(["my phone number is", "my number is"])
_RUN: Final = re.compile(r"[0-9]+(?:[ .,-]{1,3}[0-9]+)*")
_WORDS: Final = re.compile(r"[a-z]+(?:'[a-z]+)?")
_WAITING: Final = frozenset(
    """yes yeah yep ok okay mm mhm uh um huh right sure go on carry please and then next the rest last
    bit""".split()
)
"""Words with which one waits for the next part of a number."""
_THEIRS: Final = PEOPLE | frozenset(
    """he he's hes she she's shes his her hers him they they're their theirs them mam nan gran grandad
    grandson granddaughter ex office agency""".split()
)
_NO_OWNERS: Final = frozenset(
    "it's that's there's here's what's mine's number's mobile's landline's let's".split()
)
_DENYING: Final = frozenset("no nope nah not sorry wait nearly almost wrong hang hold".split())


def _dictated(said: Sequence[Turn], withheld: frozenset[str]) -> tuple[list[SelfStatement], tuple[str, ...]]:
    """The telephone number that the last of `said` makes whole, or lets pass as the agent reads it back.

    With the ids of the turns that say the parts before it.
    """
    if len(said) < 4 or not of_user(said[-1]) or said[-1].id in withheld:
        return [], ()
    parts = _parts(said, withheld)
    number = "".join(run for _, runs in parts for run in runs)
    words = _WORDS.findall(fold(said[-1].heard_text))
    if not WHOLE_PHONE.fullmatch(number) and of_user(said[-3]) and _DENYING.isdisjoint(words[:1]):
        parts = _parts(said[:-2], withheld)
        read = _RUN.findall(in_figures(_asked(said[-2])))
        number = next((run for run in map(_digits, read) if _says_all(run, parts)), "")
    if len(parts) < 2 or not WHOLE_PHONE.fullmatch(number):
        return [], ()
    return listen(f"my phone number is {number}"), tuple(turn.id for turn, _ in parts if turn is not said[-1])


def _parts(said: Sequence[Turn], withheld: frozenset[str]) -> list[tuple[Turn, list[str]]]:
    """The user's turns since the agent's question, with the figures in each; none if they say more."""
    parts: list[tuple[Turn, list[str]]] = []
    for turn in reversed(said):
        text = fold(in_figures(turn.heard_text))
        words, runs = _WORDS.findall(text), [_digits(run) for run in _RUN.findall(text)]
        if turn.speaker == "agent" and parts and (opening := asked_for(turn.heard_text)):
            begins = "0" if opening == "my number is" else ""  # it may be a meter's
            fits = opening in _PHONE and parts[0][1][0].startswith(begins)
            return parts if fits else []
        if of_user(turn) and runs and turn.id not in withheld and not any(map(_of_another, words)):
            parts.insert(0, (turn, runs))
        elif not parts or not (_WAITING.issuperset(words) or (runs and turn.speaker == "agent")):
            return []
    return []


def _digits(run: str) -> str:
    return re.sub("[^0-9]", "", run)


def _says_all(number: str, parts: Sequence[tuple[Turn, list[str]]]) -> bool:
    """Whether `number` begins and ends as the `parts` do, with something of each: one may be corrected."""
    every = [runs for _, runs in parts]
    return (
        bool(every)
        and number.startswith(every[0][-1])
        and number.endswith(every[-1][-1])
        and all(any(run in number for run in runs) for runs in every)
    )


def _of_another(word: str) -> bool:
    """Whether `word` says that a number is somebody else's: "hers", "dads", "Tom's"."""
    holder = word.removesuffix("'s").removesuffix("s")
    return word in _THEIRS or holder in _THEIRS or (word.endswith("'s") and word not in _NO_OWNERS)


def _unlearned(turn: Turn, reading: Reading) -> frozenset[str]:
    """The turns that the new turn `turn` asks not to keep."""
    if turn.id not in reading.withheld:
        return frozenset()
    so_far = [*reading.context, *reading.turns]
    return withheld(so_far[: so_far.index(turn) + 1])


_TURNS = 200
"""Turns read in one run: a long conversation is distilled in several writes."""


class RuleReader:
    """Learns from conversations by rules.

    If `alone`, no other reader follows, so a completed conversation it has read is marked as distilled.
    """

    def __init__(self, store: Store, *, alone: bool, third_parties: ThirdParties = "keep") -> None:
        self._store, self._third_parties = store, third_parties
        self._alone = alone
        self._extractor = RuleExtractor()

    async def read(self, scope: Scope, conversation: str) -> Distilled:
        """Learn from the unread turns of `conversation`, if there are any."""
        total = Distilled()
        # a conflict: someone else distilled, wrote the same key, or forgot the conversation; look again
        while step := await until_written(lambda: self._step(scope, conversation), "the conversation"):
            total += step
        return total

    async def _step(self, scope: Scope, conversation: str) -> Distilled | None:
        """One write; None if no turn is unread."""
        record = await conversation_record(self._store, scope, conversation)
        if record is None:
            return None
        stretch = await stretch_of(self._store, scope, conversation, cursor_of(record), _TURNS)
        if not stretch.turns:
            mark = marked(record) if self._alone else None
            if mark:
                await self._store.write(scope, [mark])
            return None
        hushed = withheld([*stretch.context, *stretch.turns]) | stretch.unlearned
        reading = Reading(turns=stretch.turns, context=stretch.earlier, withheld=hushed)
        changes = await self._extractor.extract(reading)
        needed = any(isinstance(change, (Unlearn, TakeBack)) for change in changes)
        needed = needed or bool(affirmed([*stretch.context[-1:], *stretch.turns]))
        known = await known_of(self._store, scope) if needed else KnownMemories()
        ledger = Ledger(self._store, scope)
        rule, context = self._third_parties, stretch.earlier
        reconciler = Reconciler(
            ledger,
            stretch.turns,
            hushed,
            known=known.memories,
            past=known.past,
            context=context,
            third_parties=rule,
        )
        distilled = await reconciler.take(changes)
        # before the write that ends them: after a crash in between they are hidden again
        await hide_taken_back(self._store, scope, stretch, changes, distilled.retracted, kept=distilled.kept)
        asked = await obey(self._store, scope, stretch, distilled.kept)
        at = max(turn.said_at for turn in stretch.turns)
        gone = [one for memory in asked if (one := await ledger.end(memory.id, at))]
        distilled = replace(distilled, retracted=(*distilled.retracted, *gone))
        moved = record_of_conversation(conversation_of(record), cursor=stretch.end)
        await self._store.write(scope, [*ledger.changes, Put.over(record, moved)])
        return distilled
