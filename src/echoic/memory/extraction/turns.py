"""The turns of a conversation as a reader sees them: those before its cursor, and those after it.

Rules decide which turns the user asked not to keep ("off the record"); this applies at once, whatever a model
would conclude. A name, number or address heard with low confidence is kept and used but marked as
unconfirmed, so that the agent reads it back; said again clearly, or affirmed, it is confirmed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.forget_requests import forget_request
from echoic.english.listener import hushed
from echoic.english.names import OF_THEM, addressed_by
from echoic.english.sentences import (
    Dictation,
    asks_about_another,
    asks_again,
    completed,
    hands_over,
    is_asked_for,
    is_back,
    may_give_number,
    sentences,
    speaks_of_another,
    speaks_of_them,
    stands_in,
    takes_over,
)
from echoic.memory.mentions import cut_up, stem_of
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
from echoic.ranking.relevance import CHATTER
from echoic.stores.base import Put, Record, Store
from echoic.text import FORGOTTEN, fold, visible
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
"""The user's last utterances that a correction may refer to."""
REACH: Final = 3
"""The user's last utterances that a request to forget may refer to by pointing."""
_SEVERAL: Final = re.compile(r"\b(?:all|everything)\b", re.IGNORECASE)
_CLAUSE: Final = 4
"""Content words beside a request that make a statement of their own."""

# Every such request contains one of these; other texts need no second reading.
_MAY_ASK: Final = re.compile(
    r"forget|disregard|unlearn|delete|erase|remove|scratch|strike|scrap|ignore|remember|save|store|record|keep"
    r"|write|note|memori[sz]e|between|take (?:that|it) back|put (?:this|that|any)"
)
# Stands for any earlier statement: the rules retract it exactly when they would retract that.
_ANYTHING: Final = SelfStatement(
    key="anything", text="anything", sentence="", category="fact", confidence=1.0
)


OF_SELF: Final = re.compile(r"\b(?:i|i'm|i’m|i've|i’ve|my|we|we're|we’re|our)\b", re.IGNORECASE)
PART: Final = re.compile(r"[.!?…;,\n—–]+|\s-\s")
"""Boundaries of a part of an utterance that may be the request alone."""
REASON: Final = re.compile(
    r"(?:it|that|this|because|cause|since|as|if|or|and it|ok|okay|please|thanks|you|right|i mean|i don't|"
    r"i do not|i'd)\b",
    re.IGNORECASE,
)
"""The beginning of a part that only gives the reason for the request."""
WHY: Final = re.compile(
    r"(?:it|it's|that|that's|this|because|cause|since|if|thanks|i mean|i don't|i do not|i'd|i'm|i am|i was|"
    r"i shouldn't|i should not|i regret|i wish)\b",
    re.IGNORECASE,
)
"""The same beside a request for a call or a time: "forget this call, I was upset"."""
SAID: Final = re.compile(
    r"\b(?:said|say|told|tell|mentioned|gave|spoke|about|regarding|as for)\b", re.IGNORECASE
)
SLIP: Final = frozenset(
    stem_of(word)[:6]
    for word in "mistake wrong misspoke joke joking kidding lied lie slip confused changed mind fault".split()
)
"""Words of what only takes back: "my mistake, forget that"."""

EMPTY: Final = frozenset(
    stem_of(word)[:6]
    for word in (
        "forget erase delete remove wipe scrub scrap scratch strike rub cross blot take throw lose drop "
        "bin burn cancel "
        "clear leave get rid keep kept store save remember record note write written wrote want like "
        "wish rather should "
        "could would please told tell said say spoke speak mention gave give given heard hear thing "
        "things matter "
        "business stuff bit part story whole all entire gone out off away file book record papers form "
        "head memory know "
        "good also really just only even one two three first last time now today yesterday never ever "
        "let put go went "
        "come came got well yes no okay sorry thank thanks mine his hers theirs "
        "anybody nobody somebody anywhere "
        "january february march april may june july august september october november december week "
        "month year ago kind anything everything something nothing "
        "thing person people man woman way matter forgive mean meant yet still stays right good morning "
        "evening".split()
    )
)


def stems_of(text: str) -> frozenset[str]:
    """The stems of the content words of `text`, with marks for a telephone number or an amount."""
    words = cut_up(text)
    # "redundancy" and "made redundant" are about the same
    stems = {word.stem[:PREFIX] for word in words if not word.stop}
    figures = sum(len(word.text) if word.text.isdigit() else word.text in _FIGURES for word in words)
    kinds = {"#number"} if figures >= _NUMBER or stems & _NUMBERS else set()
    kinds |= {"#amount"} if (figures and figures < _NUMBER) or stems & _AMOUNTS else set()
    return frozenset(stems | kinds)


PREFIX: Final = 6
"""Letters of a stem that are compared."""
_NUMBER: Final = 5
"""Digits in a row that people call a number."""
_FIGURES: Final = frozenset(
    "oh zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million "
    "double".split()
)
_NUMBERS: Final = frozenset(stem_of(word)[:PREFIX] for word in "number phone telephone mobile".split())
_AMOUNTS: Final = frozenset(
    stem_of(word)[:PREFIX]
    for word in "price cost figure amount sum salary earn income wage rent money owe age weigh weight".split()
)


_ASSENT: Final = frozenset(
    "oh er erm nope nah see think guess suppose hope agree understand deal bad fair enough appreciate".split()
)
_SOMEBODY: Final = re.compile(r"\b(?:he|she|they)\b", re.IGNORECASE)
_CHATTER: Final = frozenset(stem_of(word)[:PREFIX] for word in CHATTER | _ASSENT)
"""Words that say nothing without others: "oh, I see"."""


def tells(text: str) -> bool:
    """Whether `text` makes a statement, or made one: two content words, one about somebody, or one alone or
    figures alone that answer a question.
    """
    said = [word.text for word in cut_up(text) if not word.stop or word.text in _FIGURES]
    figures = [word for word in said if word.isdigit() or word in _FIGURES]
    if FORGOTTEN in text or (figures == said and not {*figures} <= {"oh", "one"}):
        return True
    # without the marks for figures: "oh" and "one moment" are none
    words = {stem for stem in stems_of(text) - EMPTY - _CHATTER if not stem.startswith("#")}
    # "Gin.", "He is ill." and "And delivery?", not "Thanks, Robin." or "Robin?"
    single = len(cut_up(text)) == 1
    alone = not single if "?" in text else single or _SOMEBODY.search(text) is not None
    return len(words) > 1 or (len(words) == 1 and (alone or OF_SELF.search(text) is not None))


def may_ask(text: str) -> bool:
    """Whether `text` may ask to forget, or not to keep, something."""
    return bool(_MAY_ASK.search(fold(text)))


def withheld(turns: Sequence[Turn]) -> frozenset[str]:
    """Ids of the user's turns among `turns`, in order, that must not be learned from."""
    ids: set[str] = set()
    for place, turn in enumerate(turns):
        text = turn.heard_text
        if not of_user(turn):
            continue
        if takes_back(text):
            ids |= {turn.id, *meant_by_that(turn, turns[:place])}
        elif hushes(text):
            ids.add(turn.id)
    return frozenset(ids)


def of_user(turn: Turn) -> bool:
    """Whether facts may cite `turn`: the user's own words, some of which were heard."""
    return turn.speaker == "user" and turn.heard != ""  # no text is empty


def takes_back(text: str) -> bool:
    """Whether `text` asks to forget what was said directly before it."""
    if not may_ask(text):
        return False
    return any(one.retracts and one.key == _ANYTHING.key for one in listen(text, [_ANYTHING]))


def meant_by_that(asked: Turn, before: Sequence[Turn]) -> tuple[str, ...]:
    """The ids of the turns, among those `before` it, that `asked` takes back with "forget that"; none if it
    says or names itself what it means.
    """
    named = names_it(asked.heard_text) or told_beside(asked.heard_text)
    return () if named else said_last(asked, before)


def names_it(text: str) -> bool:
    """Whether a request to forget names its subject first: "what I said about my boss, forget that"."""
    request = forget_request(text)
    before = itertools.takewhile(lambda part: not takes_back(part), PART.split(text))
    named = (stems_of(part) - EMPTY for part in before if SAID.search(part))
    return (request is not None and request.named_before) or any(
        words and words.isdisjoint(SLIP) for words in named
    )


def said_last(asked: Turn, before: Sequence[Turn]) -> tuple[str, ...]:
    """The id of the user's last turn `before` the request `asked` that says something; two if it takes back
    "all that", or if the last one only confirms the other: "Yes, that's my number."
    """
    users = [place for place, turn in enumerate(before) if of_user(turn)][-REACH:]
    near = before[max(0, users[0] - 2) :] if users else []
    answers = zip(near, questions_before(near), strict=True)
    told = [(turn, completed(question, turn.heard_text)) for turn, question in answers if of_user(turn)]
    told = [(turn, text) for turn, text in told[-REACH:] if tells(turn.heard_text) or tells(text)]
    said = [turn for turn, _ in told]
    several = _SEVERAL.search(asked.heard_text) and takes_back(asked.heard_text)
    if several or (len(said) > 1 and _only_confirms(told[-1][1], said[-2].heard_text)):
        return tuple(turn.id for turn in said[-RECENT:])
    return tuple(turn.id for turn in said[-1:])


def _only_confirms(text: str, earlier: str) -> bool:
    """Whether `text` says yes, and hardly more than `earlier` did."""
    new = stems_of(text) - stems_of(earlier) - EMPTY - _CHATTER
    return affirms(text) and sum(not stem.startswith("#") for stem in new) <= 1


def told_beside(text: str) -> bool:
    """Whether a request to forget also says what it means: "he is ill, don't note this"."""
    for part in PART.split(text):
        if takes_back(part) and not hushes(part):
            return False  # what follows is said anew
        words = stems_of(part) - EMPTY
        if hushes(part) or REASON.match(part.strip()) or SAID.search(part) or words & SLIP:
            continue
        own = OF_SELF.search(part) and (len(words) > 1 or not WHY.match(part.strip()))
        if len(words) >= (1 if own else _CLAUSE) and not forget_request(part):
            return True
    return False


def hushes(text: str) -> bool:
    """Whether `text` asks not to keep what it says."""
    return may_ask(text) and any(hushed(said) for said in sentences(text))


def of_another_voice(turns: Iterable[Turn]) -> frozenset[str]:
    """Ids of the turns under the user's name of those to whom they gave the telephone.

    From "I'll hand you over to Mei" to "me again", or until Mei gives it back. If nobody says a
    name next, the user has kept it. So is whoever answers "Is that Clare?" by "it's her daughter", until
    Clare says her name.
    """
    ids: set[str] = set()
    away = False
    gave = asked = last = wanted = ""
    for turn in turns:
        heard = turn.heard_text
        if not of_user(turn):
            asked, last = (heard, "") if turn.speaker == "agent" else (asked, last)
            continue
        if gave:
            away = takes_over(heard, at_once=bool(last)) and hands_over(gave, asked) and not is_back(heard)
        elif away:
            away = not (is_back(heard) or speaks_of_them(heard) or (wanted and is_asked_for(heard, wanted)))
        if not away:
            away = stands_in(heard, asked)
            wanted = asked if away else ""
        if away:
            ids.add(turn.id)
        gives = hands_over(heard)
        gave, away = heard if gives and not away else "", away and not gives
        asked, last = "", "" if turn.id in ids else heard
    return frozenset(ids)


def asked_in(before: Turn | None) -> str:
    """What the agent said directly before a turn, as heard."""
    return before.heard_text if before and before.speaker == "agent" else ""


def questions_before(turns: Iterable[Turn]) -> list[str]:
    """What the agent said directly before each of `turns`, or where it only asks to hear the answer again
    ("sorry?"), what it had asked.
    """
    found: list[str] = []
    asked = before = ""
    for turn in turns:
        found.append(before)
        before = turn.heard_text if turn.speaker == "agent" else ""
        if before:
            asked = before = asked if asks_again(before) else before
    return found


def answers_about_another(turns: Iterable[Turn], *, of_another: bool = False) -> tuple[frozenset[str], bool]:
    """Ids of the user's turns that answer a question about somebody else, and whether the talk then is.

    `of_another`: whether it was before `turns`.
    """
    ids: set[str] = set()
    every = list(turns)
    for turn, asked in zip(every, questions_before(every), strict=True):
        heard = turn.heard_text
        if of_user(turn) and asks_about_another(asked, of_another=of_another):
            ids.add(turn.id)
        if turn.speaker in {"user", "agent"}:
            agent = turn.speaker == "agent"
            of_another = speaks_of_another(heard, of_another=of_another, by_agent=agent, asked=asked)
    return frozenset(ids), of_another


@dataclass(frozen=True, slots=True)
class Understood:
    """What the agent's turn shows of the user's turns before it."""

    statement: str
    """As the user would say it."""
    turns: tuple[Turn, ...]
    """The turns in which the user said it."""


def understood(turns: Sequence[Turn]) -> dict[str, Understood]:
    """By the id of an agent's turn: a telephone number that is whole then, or the name by which it addresses
    the user who just gave it.
    """
    found: dict[str, Understood] = {}
    about: frozenset[str] | None = None
    for at, (before, answer) in enumerate(zip([None, *turns], turns, strict=False)):
        if not of_user(answer):
            continue
        asked = asked_in(before)
        behind = turns[at + 1 : at + _REPLIES]
        theirs = (
            place for place, turn in enumerate(behind) if of_user(turn) and OF_THEM.search(turn.heard_text)
        )
        replies = [turn for turn in behind[: next(theirs, None)] if turn.speaker == "agent"]
        named = (
            (reply, addressed_by(answer.heard_text, reply.heard_text, asked, at_once=reply is turns[at + 1]))
            for reply in replies
        )
        reply, name = next(((reply, name) for reply, name in named if name), (None, ""))
        if reply and not _answers_something_else(asked, answer.heard_text):
            about = answers_about_another(turns)[0] if about is None else about
            told = Understood(f"Hello, this is {name}.", (answer,))
            found |= {} if answer.id in about else {reply.id: told}
    gives = any(of_user(turn) and may_give_number(turn.heard_text) for turn in turns)
    return found | _numbers_given(turns) if gives else found


_REPLIES: Final = 6
"""Turns behind a name in which the agent may address the caller by it."""


def _answers_something_else(asked: str, answer: str) -> bool:
    """Whether it answers a question for another value: "What's your daughter's name?"."""
    told = completed(asked, answer)
    return told != answer and not told.startswith("my name ")


def _numbers_given(turns: Iterable[Turn]) -> dict[str, Understood]:
    found: dict[str, Understood] = {}
    pending: Dictation | None = None
    given: list[Turn] = []
    for turn in turns:
        text = turn.heard_text
        if turn.speaker == "agent":
            if pending and (number := pending.read_back(text)):
                found[turn.id] = Understood(f"my phone number is {number}", tuple(given))
                # after "07700 900 683?" it may be put right
                again = replace(pending, offered=number, given="", clean="", echoed="")
                pending, given = again if pending.goes_on(text) else Dictation.asked(text), []
            elif asked := Dictation.asked(text):
                pending, given = asked, []
            elif pending and not pending.goes_on(text):
                pending = None
        elif of_user(turn):
            if pending is None and (begun := Dictation.begun(text)):
                pending, given = begun, []
            given += [turn] if pending and pending.hear(text) else []
    return found


CONTEXT = 6
"""Turns before the cursor that are read again, for references."""
_DICTATED: Final = 16
"""Turns before the cursor in which a number may have been begun."""
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
    understood: Mapping[str, Understood] = field(default_factory=dict)
    """See `understood`; without what was unlearned."""

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
    unlearned = forgotten | of_another_voice((*earlier, *turns))
    near = [turn for turn in (*earlier[-_DICTATED:], *turns) if turn.id not in unlearned]
    return Stretch(
        turns=turns,
        seqs=tuple(record.seq for record in records),
        context=earlier[-CONTEXT:],
        unlearned=unlearned,
        recalled={record.id: recalled_turn(record) for record in (*records, *before) if hidden_in(record)},
        of_another=answers_about_another(earlier[:-CONTEXT])[1],
        understood=understood(near),
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
