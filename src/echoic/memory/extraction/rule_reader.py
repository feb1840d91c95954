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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.facts import PEOPLE
from echoic.english.lexicon import GIVEN, PLACES, wordlike
from echoic.english.listener import belongs_to_another
from echoic.english.phrases import CODE_LENGTH, PHONE_DIGITS, WHOLE_PHONE, email
from echoic.english.sentences import asked_for, completed, names_another, sentences
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
    of_user,
    stretch_of,
    withheld,
)
from echoic.memory.forget_targets import obey
from echoic.memory.records import Ledger, conversation_of, cursor_of, record_of_conversation
from echoic.memory.retraction import hide_taken_back
from echoic.secrets import MARKER
from echoic.stores.base import Put, Store
from echoic.text import TAKEN_BACK, fold
from echoic.text.spoken_numbers import ENGLISH, is_bare, spoken_words
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
        changes: list[Change] = []
        said = [*reading.context, *reading.turns]
        for place in range(max(0, len(reading.context) - CONTEXT), len(said)):
            turn, before = said[place], said[place - 1] if place else None
            heard = _hear(_told(before, turn), recent, _asked(before))
            new = [(item, tuple[str, ...]()) for item in heard]
            # in turns read again only what the next ones may correct
            near = place >= len(reading.context) - 2 * RECENT
            so_far = said[: place + 1] if near else ()
            for statement, begun in _given(so_far, reading.withheld, {item.key for item in heard}):
                new += [(item, begun) for item in listen(statement)]
            heard[:] = [item for item, _ in new]  # they can be corrected, too
            if place < len(reading.context):
                continue
            for item, begun in new:
                changes += _changes(item, turn, begun)
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


def _hear(said: str | None, recent: _Recent, asked: str) -> list[SelfStatement]:
    """The new statements of the user, without other speakers' and without secrets."""
    if said is None:
        return []
    every = listen(said, [item for _, items in recent for item in items], _since(recent), asked)
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


def _changes(item: SelfStatement, turn: Turn, begun: tuple[str, ...]) -> list[Change]:
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
        tentative=(item.key == "home" and item.confidence <= INFERRED)
        or (item.key == "user_name" and bool(begun)),
    )
    gone = [TakeBack(key=key, text=text, source=source) for key, text in rivals(item.key, item.text)]
    return [*gone, Add(fact=fact, source=source, begun=begun)]


# -- what is given in parts: "07700", "go on", "900 118", "07700 900 118, is that right?", "that's it"

_Given = tuple[str, tuple[str, ...]]
"""A statement, and the ids of the turns before that say a part of it."""

_MOST_TURNS: Final = 14
"""Turns over which a value is given: the question, its parts, and the agent's repetitions."""
_MOST_BETWEEN: Final = 6
"""Words of an agent who only waits for the next part, besides figures: "and the last one"."""
_MOST_WORDS: Final = 24
"""Words of a value that is read back, and of the first stretch of a turn that may be a part of it."""
_NEAR: Final = 8
"""Words before a number that say whose it is."""
_ASKED: Final = re.compile(
    r"my (?:(?P<number>phone number|number)|(?P<address>address)|(?P<thing>[a-z]+) number) is"
)
_MAY_SAY: Final = re.compile(rf"[0-9]|\b(?:{'|'.join(sorted(ENGLISH.vocabulary))})\b", re.IGNORECASE)
_LEAST: Final = 9
"""Digits of a number that is a telephone number by its beginning alone."""
_ANNOUNCED: Final = re.compile(r"\bmy (?:mobile |phone |telephone |contact )?(?:number|mobile)(?:'?s| is)\b")
_ADDRESSES: Final = re.compile(
    r"\b(?:thanks|thank you|cheers|hi|hello|hiya|hey|bye|goodbye|sorry|sure thing|no problem|talk soon) "
    r"([a-z][a-z'-]+)(?= )"
)
_NO_NAMES: Final = frozenset(
    "mate pal hun hon duck bruv bro petal dear love lovey guv boss bud buddy mister missus".split()
)
_REACHING: Final = re.compile(
    r"\be-?mail\b|\b(?:reach|contact|write to|get back to|get hold of) you\b|"
    r"\bwhere (?:shall|should|can|do) (?:we|i) send\b"
)
_NO: Final = re.compile(r"(?:(?:oh|um|er|ah|well) )*(?:no|nope|nah|not|sorry|wait|hang on|hold on|wrong)\b")
_CLOSING: Final = frozenset(
    """is that right correct yes yeah okay ok did i get have got it thank you thanks lovely great perfect
    so""".split()
)
"""Words behind a value that is read back which ask for no more than a yes."""
_LETTERS: Final = {
    word: word[0]
    for word in """alpha alfa bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike
    november oscar papa quebec romeo sierra tango uniform victor whiskey whisky yankee zulu""".split()
} | {"x-ray": "x", "xray": "x"}
_MOST_LETTERS: Final = 4
"""Letters of the word that a reference may begin with: "pin 3307"."""
_OWN: Final = frozenset("i i'm i've im ive me my mine mine's mines our ours own".split())
_THEIRS: Final = (PEOPLE - {"papa"}) | frozenset(
    """he he's hes he'll she she's shes she'll his her hers him they they're theyre they'll their theirs
    them mam nan gran grandad grandson granddaughter ex work office agency""".split()
)
_CALLING: Final = frozenset("ring call phone text contact try reach use".split())
_NO_OWNERS: Final = frozenset(
    "it's that's there's here's what's mine's number's mobile's phone's one's let's".split()
)
_NUMBERS: Final = frozenset(["phone", "work_phone", "home_phone"])
_BEFORE_EMAIL: Final = frozenset(["", *"it's its is mine's that's".split()])


def _given(said: Sequence[Turn], withheld: frozenset[str], heard: set[str]) -> Iterator[_Given]:
    """What the user has told with the last turn of `said` in answer to a question some turns before.

    `heard` are the keys that the last turn fills by itself.
    """
    if len(said) < 2 or not of_user(said[-1]) or said[-1].id in withheld:
        return
    last, before = said[-1], said[-_MOST_TURNS:-1]
    read = _asked(before[-1])
    if not heard.intersection(_NUMBERS):
        yield from _dictated([*before, last], withheld)
    asked = next((said.line for said in reversed(sentences(read)[-1:])), "")
    if "email" not in heard and _REACHING.search(asked) and not names_another(read):
        yield from ((f"my email is {address}", ()) for address in _addresses(_plain(last)))
    yield from _read_back(read, before[:-1], last, withheld)
    yield from _addressed(read, said[:-1], withheld)


def _addressed(read: str, before: Sequence[Turn], withheld: frozenset[str]) -> Iterator[_Given]:
    """The name by which the agent speaks to the user, if the user has said it: "thanks, Tyrone"."""
    users = [turn for turn in before if of_user(turn)]
    if any(turn.id in withheld for turn in users):
        return  # it may be another voice's
    for said in sentences(read):
        for found in _ADDRESSES.finditer(said.line):
            token = said.tokens[said.at[found.start(1)]]
            written = token.capital if said.cased else token.low not in PLACES | _NO_NAMES
            named = token.low in GIVEN or (written and not wordlike(token.low))
            told = [turn for turn in users if token.low in _own_words(_plain(turn))] if named else []
            if told:
                yield f"my name is {token.text}", (told[0].id,)


def _plain(turn: Turn) -> str:
    """What was heard of `turn`, with a secret or what was taken back as a word."""
    return MARKER.sub(MASKED, turn.heard_text).replace(TAKEN_BACK, MASKED)


def _wanted(before: Sequence[Turn], withheld: frozenset[str]) -> tuple[str, list[Turn]]:
    """What is being given at the end of `before`, as words that it completes, and the turns that give it."""
    parts: list[Turn] = []
    for turn in reversed(before):
        if of_user(turn) and turn.id not in withheld:
            parts.insert(0, turn)
            if _ANNOUNCED.search(fold(turn.heard_text)):
                return "my phone number is", parts
        elif turn.speaker == "agent":
            opening = asked_for(turn.heard_text)
            if opening:
                return opening, parts
            words = [word for word, _, _ in spoken_words(turn.heard_text) if not any(map(str.isdigit, word))]
            if len(words) > _MOST_BETWEEN or names_another(turn.heard_text):
                break
    return "", []


def _dictated(said: Sequence[Turn], withheld: frozenset[str]) -> Iterator[_Given]:
    """The number of the user that the last of `said` makes whole, or longer than the part before."""
    if _figures(_plain(said[-1])) < 2:
        return
    opening, parts = _wanted(said, withheld)
    asked = _ASKED.fullmatch(opening)
    if not asked or asked["address"]:
        return
    run = "".join(word for turn in parts for word in _own_words(_plain(turn)) if word.isdigit())
    begun = tuple(turn.id for turn in parts[:-1])
    if asked["number"] and WHOLE_PHONE.fullmatch(run) and _may_be(run, asked):
        yield f"my phone number is {run}", begun
    elif asked["thing"] and begun and all(map(_goes_on, parts)):
        yield f"{opening} {run}", begun


def _read_back(read: str, before: Sequence[Turn], last: Turn, withheld: frozenset[str]) -> Iterator[_Given]:
    """What the agent's `read` repeats of what the user gave in `before`, unless `last` denies it."""
    opening, turns = _wanted(before, withheld) if _figures(read) else ("", [])
    asked = _ASKED.fullmatch(opening)
    if not asked or (_goes_on(last) and not asked["address"]):
        return
    spoken = spoken_words(read)
    words = [word.replace("'", "") for word, _, _ in spoken]
    named = not asked["address"]
    parts = [[word.replace("'", "") for word in _own_words(_plain(turn), named=named)] for turn in turns]
    if asked["thing"]:
        words, parts = [_LETTERS.get(word, word) for word in words], [*map(_letters, parts)]
    best = max(_repeated(words, parts, asked), default=(0, 0, ()))
    count, start, used = best
    if _denies(last, words[start + count :]):
        return
    value = "".join(words[start : start + count])
    begun = tuple(turns[at].id for at in dict.fromkeys(used))
    if asked["address"] and any(map(str.isdigit, value)):
        yield f"my address is {read[spoken[start][1] : spoken[start + count - 1][2]]}", begun
    elif asked["number"] and len(value) in PHONE_DIGITS and _may_be(value, asked):
        yield f"my phone number is {value}", begun
    elif asked["thing"] and len(value) in CODE_LENGTH and any(map(str.isdigit, value)):
        yield f"{opening} {value}", begun


def _may_be(digits: str, asked: re.Match[str]) -> bool:
    """Whether they can be a telephone number: "have you got a number?" may ask for another one."""
    return asked["number"] != "number" or (digits.startswith(("0", "44")) and len(digits) >= _LEAST)


def _repeated(
    words: Sequence[str], parts: Sequence[Sequence[str]], asked: re.Match[str]
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """How many of `words` from which on the `parts` say, and which do.

    Of a telephone number only whole runs of figures count, of a reference what looks like one.
    """
    for start in range(len(words)):
        target = list(words[start : start + _MOST_WORDS])
        if asked["number"]:
            target = _target(words, start)
        elif asked["thing"]:
            lead = target[:1] if len(target[0]) <= _MOST_LETTERS else []
            target = [*lead, *itertools.takewhile(_is_code, target[len(lead) :])]
        found = _in_parts(target, parts, apart=bool(asked["thing"]))
        for count, length in enumerate(itertools.accumulate(map(len, target)), 1):
            if length in found and (count == len(target) or not asked["number"]):
                yield count, start, found[length]


def _is_code(word: str) -> bool:
    """Whether `word` may be a part of a reference behind its first one."""
    return len(word) == 1 or any(map(str.isdigit, word))


def _letters(words: Sequence[str]) -> list[str]:
    """`words` with letters for the words that spell them: "k for kilo", "victor"."""
    read: list[str] = []
    for at, word in enumerate(words):
        spelled = read[-2] if len(read) > 1 and words[at - 1] == "for" else ""
        if len(spelled) == 1 and word.startswith(spelled):
            del read[-1]
        else:
            read.append(_LETTERS.get(word, word))
    return read


def _goes_on(turn: Turn) -> bool:
    """Whether only figures are said in `turn`; "that's the one" says none."""
    text = _plain(turn)
    return is_bare(text) and (_figures(text) > 1 or "the one" not in fold(text))


def _figures(text: str) -> int:
    """How many digits `text` says."""
    if not _MAY_SAY.search(text):  # reading numbers costs ten times as much
        return 0
    return sum(map(str.isdigit, "".join(word for word, _, _ in spoken_words(text))))


def _target(words: Sequence[str], start: int) -> list[str]:
    """The whole run of figures that begins at `start`, if one does."""
    if start and words[start - 1].isdigit():
        return []
    return list(itertools.takewhile(str.isdigit, words[start:]))


def _in_parts(
    target: Sequence[str], parts: Sequence[Sequence[str]], *, apart: bool = False
) -> dict[int, tuple[int, ...]]:
    """How many characters of `target` the `parts` say, in order, each with one stretch of words or none; with
    the parts that say them.

    A part may say anew what one before it said: "oh nine", "sorry, oh nine six". If `apart`, other words may
    come between: "k, f, no, s".
    """
    whole = "".join(target)
    reached: dict[int, tuple[int, ...]] = {0: ()}
    starts = dict(reached)
    said = [(place, list(words)) for place, words in enumerate(parts)]
    if apart:
        said = [(place, [word]) for place, words in said for word in words]
    for place, words in said:
        for start, used in list(starts.items()):
            for first in range(len(words)):
                end = start
                for word in map(_once, words[first : first + _MOST_WORDS]):
                    if not word or not whole.startswith(word, end):
                        break
                    inside = range(end + 1, end + len(word)) if word.isdigit() else ()
                    starts |= dict.fromkeys(inside, (*used, place))
                    end += len(word)
                    reached[end] = starts[end] = (*used, place)
    return reached


def _once(word: str) -> str:
    """Figures that were said twice, once: "one one five one one five"."""
    half = word[: len(word) // 2]
    return half if word.isdigit() and len(half) > 2 and half + half == word else word


def _own_words(text: str, *, named: bool = True) -> list[str]:
    """The words of `text`, with numbers in figures; those behind a word for somebody else are empty.

    Unless `named`, no name says that: "Tanner's Row" is an address.
    """
    found: list[str] = []
    for said in sentences(text):
        if belongs_to_another(said):
            continue
        words = _spelled_apart(said.text(0, len(said)))
        found += [
            "" if _of_another(words[max(0, at - _NEAR) : at], named) else word
            for at, word in enumerate(words)
        ]
        found.append("")
    return found


def _spelled_apart(text: str) -> list[str]:
    """The words of `text` with numbers in figures, and letters that were spelled as words of their own."""
    every = ((word, end - start > len(word)) for word, start, end in spoken_words(text))
    return [part for word, spelled in every for part in (word if spelled and word.isalpha() else [word])]


def _of_another(near: Sequence[str], named: bool = True) -> bool:
    """Whether the words `near` before a value say last that it is somebody else's: "hers is", "my dad's"."""
    if len(near) > 2 and near[-3] in _CALLING and near[-2] not in _OWN and near[-1] in {"on", "at"}:
        return True  # "ring Tom on"
    for word in reversed(near):
        holder = word.removesuffix("'s").removesuffix("s")
        if word in _OWN:
            return False
        if word in _THEIRS or holder in _THEIRS:
            return True
        possessive = word.endswith("'s") and word not in _NO_OWNERS
        if named and (possessive or (holder != word and holder in GIVEN)):
            return True
    return False


def _denies(last: Turn, behind: Sequence[str]) -> bool:
    """Whether `last` denies what the agent read back; a "no" may answer what is asked `behind` that."""
    said = sentences(last.heard_text)
    if not said or not _NO.match(said[0].line):
        return False
    return _CLOSING.issuperset(behind) or _figures(said[0].text(0, len(said[0]))) > 0


def _addresses(text: str) -> set[str]:
    """The e-mail address of the user in `text`; none if there are several."""
    found = set()
    for said in sentences(text):
        for at, token in enumerate(said.tokens):
            begins = "@" in token.text or said.low(at - 1) in _BEFORE_EMAIL
            value = email(said, at) if begins else None
            if value and not _of_another([said.low(near) for near in range(max(0, at - _NEAR), at)]):
                found.add(value.text)
    return found if len(found) == 1 else set()


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
