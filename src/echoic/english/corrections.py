"""Corrections: "actually it's Paula", "I live in Bos-, sorry, in Cambridge", "not Jon, John".

Within one sentence, the words after a mark ("no sorry", "i mean") replace the similar words before it: from
the same word on, a word of the same kind (a number, a weekday, a month), or else the last word or name
(`repaired`).

A correction that is a sentence by itself names no slot. It is read as a value of the last filled slot, but
only if it is a value of that kind and nothing follows that would make it another statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Final

from echoic.english import names, phrases
from echoic.english.facts import PEOPLE, VALUES
from echoic.english.lexicon import (
    AMBIGUOUS,
    FIRMS,
    FUNCTION,
    GIVEN,
    PLACES,
    PREPOSITIONS,
    TITLES,
    pattern,
    source,
    wordlike,
    words,
)
from echoic.english.names import closed
from echoic.english.phrases import Value
from echoic.english.sentences import Sentence, Token, sentences
from echoic.english.slots import SLOTS, SelfStatement, beside, hear, hear_of, retraction
from echoic.text import fold, sound

_MARK: Final = re.compile(
    r"(?:(?:(?:well |or )?(?:(?:i|we) )?used to (?:but )?(?:now|these days|nowadays)|"
    r"(?:well|or) (?:i|we) (?:was|were|did|used to)(?: (?:but )?(?:now|these days|nowadays))?)"
    r" (?:it's|i'm at|i'm with|at|for) |"
    r"(?P<firm>(?:no )?(?:i tell a lie|hang on|hold on|scratch that|make that|i meant|i mean|or rather|"
    r"correction)(?: no| sorry)? |(?:no no|no sorry|sorry no|no wait|wait no|sorry wait|sorry i mean|oops) "
    r"(?:it's |i mean )?)|(?P<weak>(?:no|sorry) (?:it's )?)|(?P<turned>well ))"
)
_NUMBER: Final = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half
    quarter double""".split()
)
_ORDINAL: Final = re.compile(
    r"(?:(?:twenty|thirty)-)?(?:[0-9]{1,2}(?:st|nd|rd)|first|second|third|twentieth|thirtieth|"
    r"(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|(?:thir|four|fif|six|seven|eigh|nine)teen)th)"
)
_DAYS: Final = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_MONTHS: Final = frozenset(
    "january february march april may june july august september october november december".split()
)
_OPENING: Final = frozenset("a an the my our at in on for to from i".split())
_SPEAKER: Final = frozenset("i my our we".split())
_NO_VALUE: Final = frozenset("to about".split())
"""Words that continue a mark: "I'm sorry to hear that", "hang on to it"."""
# "Sorry, not me, my husband", "I mean my wife does", "that's where we used to be".
_DISOWNED: Final = pattern("corrections.disowned")
_NOT_ME: Final = pattern("corrections.not_me")
_OWNED: Final = {
    "number": "phone|number",
    "mobile": "phone",
    "address": "address|home",
    "date": "birthday",
    "date of birth": "birthday",
    "job": "occupation|employer",
    "surname": "name",
    "email address": "email",
}
"""What is filled by a thing that somebody else's is named as, where that is not the name of the slot."""
# "My wife is, too" is so of both; "that's my son's, the racket" says itself what is his.
_OF_BOTH: Final = re.compile(r"(?:too|also|as well|and (?:so )?(?:i|i'm|me|we|am i|do i)) ")
_AND_OTHERS: Final = re.compile(r"and (?:so|my|our|the|his|her|their|both|all) ")
_APPOSED: Final = re.compile(r"(?:the|this|that|these|those|an?) ")
_YOU: Final = frozenset("you you're you've your".split())
_ELSE: Final = PEOPLE | frozenset("anyone anybody someone somebody who family household else".split())
# Said to somebody else in the room, or about the line: "hang on one second", "sorry, mate", "no, listen".
_PAUSE: Final = pattern("corrections.pause")
_ASIDE: Final = words("corrections.aside")
_THINGS_IN_LY: Final = frozenset("jelly lily holly fly family".split())
_OTHER_NUMBER: Final = re.compile(
    r"\b(?:card|account|policy|order|booking|reference|meter|passport|licen[cs]e|membership)\b"
)
_ENDS_IN: Final = pattern("corrections.ends_in")
_AT_THE_END: Final = re.compile(r"(?:at|on) the end ")
_YEAR: Final = re.compile(r"\b(?:19|20)[0-9]{2}$")
_YEARLESS: Final = re.compile(r"[A-Z][a-z]+ [0-9]{1,2}")
_LAST_DIGITS: Final = 3
"""The most digits that correct the last digits of a longer number."""
_MOST_INSTEAD: Final = 3
"""The most words after a weak mark that may correct the last word before it."""
_AS_OF_NOW: Final = (" now ", " these days ", " nowadays ")
"""Endings of a sentence in which "well" alone corrects a word: "I'm vegan, well, vegetarian now"."""
_SPELLED: Final = re.compile(r"with (?:an? )?[a-z] ")


def repaired(said: Sentence) -> Sentence:
    """`said` with its first self-correction carried out; `said` itself without one."""
    for match in _MARK.finditer(said.line):
        start, end = said.at.get(match.start()), said.at.get(match.end())
        if start is None or end is None or not 0 < start < end < len(said):
            continue
        if match["turned"] and not said.line.endswith(_AS_OF_NOW):
            continue
        if match.group().startswith("i mean") and (said.low(start - 3), said.low(start - 2)) == ("i", "said"):
            continue  # "sorry, I said codeine, I meant tramadol" corrects what was said before
        tokens = _put_right(said, start, end, weak=bool(match["weak"] or match["turned"]))
        if tokens:
            return replace(said, tokens=tokens)
    return _corrected_last(said)


def _corrected_last(said: Sentence) -> Sentence:
    """`said` with its last value in place of the one before: "I'm thirty eight, thirty nine sorry"."""
    last = len(said) - 1
    at = next((at for at in range(last - 1, 0, -1) if said.gap(at)), 0)
    if at == 0 or said.low(last) != "sorry" or not kind_of(said.tokens[at]):
        return said
    tokens = _same_kind(said.tokens[:at], said.tokens[at:last])
    return replace(said, tokens=tokens) if tokens else said


def _put_right(said: Sentence, start: int, end: int, *, weak: bool) -> tuple[Token, ...] | None:
    before, after = said.tokens[:start], said.tokens[end:]
    again = _same_word(before, after)
    if before[-1].low in {"and", "if"} or after[0].low in _NO_VALUE or said.match(_PAUSE, end):
        return None
    if again is not None and (not weak or said.gap(start) or after[0].low in _OPENING):
        gap = before[again].gap
        return (*before[:again], replace(after[0], gap=gap), *after[1:])
    if kind_of(after[0]):
        return _same_kind(before, after)
    if again is None and (_aside(after[0].low) or (said.cased and _called(before[-1], after))):
        return None
    paused = said.gap(start) and said.gap(end)
    if len(before) < 2 or (weak and not paused) or len(after) > _MOST_INSTEAD or after[0].low in FUNCTION:
        return None
    last = len(before) - 1
    while last > 1 and after[0].capital and before[last - 1].capital and before[last].capital:
        last -= 1
    return (*before[:last], replace(after[0], gap=False), *after[1:])


def _aside(low: str) -> bool:
    """Whether a word after a mark is no value: "sorry, mate", "I mean severely"."""
    how = low.endswith("ly") and not (low in PLACES or low in GIVEN or low in _THINGS_IN_LY)
    return how or low in _ASIDE


def _called(last: Token, after: tuple[Token, ...]) -> bool:
    """Whether `after` is somebody spoken to ("hang on, Dave") rather than what corrects `last`."""
    name = after[0].low
    if len(after) > 1 or not after[0].capital or name not in GIVEN:
        return False
    return not last.capital or (last.low not in GIVEN and name not in PLACES)


def _same_word(before: tuple[Token, ...], after: tuple[Token, ...]) -> int | None:
    """The last position in `before` of the first word of `after`, if it is repeated there."""
    lows = [token.low for token in before]
    if len(after) < 2 or after[0].low not in lows:
        return None
    if after[0].low in _SPEAKER and after[1].low not in lows:
        return None  # "my number is four, hang on, my pen is dry"
    return len(lows) - 1 - lows[::-1].index(after[0].low)


def _same_kind(before: tuple[Token, ...], after: tuple[Token, ...]) -> tuple[Token, ...] | None:
    """`after` in place of the last number, day or month of `before`, followed by what followed that one."""
    kind = kind_of(after[0])
    stop = next((at + 1 for at in range(len(before) - 1, -1, -1) if kind_of(before[at]) == kind), 0)
    start = stop
    while start > 0 and kind_of(before[start - 1]) == kind:
        start -= 1
    if start == stop:
        return None
    length = next((at for at, token in enumerate(after) if kind_of(token) != kind), len(after))
    if _LAST_DIGITS <= length < stop - start:
        start = stop - length
    behind = before[stop:]
    if behind and len(after) > length and _alike(after[length].low, behind[0].low):
        behind = ()
    value = (replace(after[0], gap=before[start].gap), *after[1:length])
    return (*before[:start], *value, *behind, *after[length:])


def _alike(one: str, other: str) -> bool:
    """Whether they are forms of one word: "tablet" and "tablets"."""
    return one.removesuffix("s") == other.removesuffix("s")


def kind_of(token: Token) -> str:
    """The kind of value a word is; "" if none."""
    low = token.low
    if any(c.isdigit() for c in low) or all(part in _NUMBER for part in low.split("-")):
        return "number"
    if low in _DAYS:
        return "day"
    if low in _MONTHS and low != "may":
        return "month"
    return "ordinal" if _ORDINAL.fullmatch(low) else ""


# "No, Paula" and "I meant Paula" correct anything; "actually it's Paula" only what has one value.
_CORRECTING: Final = pattern("corrections.correcting")
_CONTRASTED: Final = re.compile(r"(?:it's|it is) ")
# "Not codeine, it's tramadol", "sorry, I said May, it's March the fourth".
_DENYING: Final = pattern("corrections.denying")
_CONTRASTING: Final = pattern("corrections.contrasting")
_OWN_VALUE: Final = pattern("corrections.own_value")
_AFTERWARDS: Final = frozenset("no it's my mine mine's ours i'm we're sorry not".split())
# "That's where we used to live, but we moved back."
_NONE_THE_LESS: Final = frozenset("but though although and".split())
_MEANT: Final = re.compile(r"\b(?:i mean|i meant|make that|or rather|correction) ")
# Without one of these ("yeah", "well") the words only go on.
_FIRM: Final = pattern("corrections.firm")
_GIVEN_UP: Final = re.compile(r"(?:no wait|wait no|no sorry|sorry no|scratch that|oops|no no) ")
_ALIKE: Final = 0.5
_AGE_SLIP: Final = 20
_KNOWN: Final = {
    "home": PLACES,
    "origin": PLACES,
    "birthplace": PLACES,
    "grew_up_in": PLACES,
    "employer": FIRMS,
}
# Kinds whose readers take nothing else for them.
_WRITTEN: Final = frozenset("age birthday email work_email phone work_phone home_phone address".split())
# Words with which an agent asks for another value of a kind.
_ASKS: Final = {
    "name": re.compile(r"\b(?:who|whose|called|(?<!your )name)\b"),
    **dict.fromkeys(
        ("home", "origin", "birthplace", "grew_up_in"),
        re.compile(r"\bwhere\b|\b(?:which|what) (?:city|town|country|place|airport|station|branch|area)\b"),
    ),
    "employer": re.compile(r"\b(?:who|where)\b|\b(?:which|what) (?:firm|company|shop|store|bank|brand)\b"),
    "age": re.compile(r"\bhow (?:many|much|long|old)\b|\bwhat (?:time|number)\b"),
    "birthday": re.compile(r"\bwhen\b|\b(?:which|what) (?:day|date)\b"),
    "email": re.compile(r"\be-?mail\b"),
    "phone": re.compile(r"\b(?:number|code|reference|digits|extension|room)\b"),
    "address": re.compile(r"\b(?:where|address|postcode|deliver|collect)\b"),
}
_TRADES: Final = frozenset({"occupation", "industry"})
_READ_BACK: Final = pattern("corrections.read_back")
_ENDING: Final = re.compile(r"\b(?:end|ends|ending|last|digits|your (?:phone |mobile |contact )?number) ")
_EXTENSION: Final = 5
"""The most digits that may be the number of a room or an extension: alone they repeat no telephone number."""
_READ_ALIKE: Final = 0.7
_REACH: Final = 8
"""How many of the last statements a correction may refer to."""
_AHEAD: Final = 40
"""How many words behind a value it may be said instead of which one it is."""
_NOTED: Final = 3
"""The most words of a remark that brings nothing else up: "That's lovely, thanks"."""
_ONE_NAME: Final = frozenset("child pet favourite least_favourite".split())
"""Slots whose key says what has the name, so that "no, it's Clementine" can correct it."""
_POLITE: Final = words("corrections.polite")
# Words before the name under which something is put down for the caller.
_UNDER: Final = frozenset("under as for".split())
_AGREED: Final = pattern("answers.agreed")
_LEADING: Final = pattern("answers.leading")
_INITIALS: Final = 3
"""The most letters that may be those of a firm: "Is that R A C?"."""
_LETTERS_MISSED: Final = 2
"""The letters by which a spelling may be shorter than the name: "S, E, N" spells an end of it."""
_SPELLINGS: Final = frozenset("spell spelled spelt spelling name surname first last".split())
_SPELLING_ASKED: Final = pattern("corrections.spelling_asked")
_SURNAME_ASKED: Final = pattern("corrections.surname_asked")
# "Is that P E T R I E?"
_IS_SPELLED: Final = re.compile(
    r"(?:(?:so|and|is|was|that|that's|it|spelled|spelt|thanks) ){0,4}"
    r"(?:(?:double )?[a-z](?:-[a-z]){0,20} ){1,20}$"
)
# Words with which an agent only repeats a name.
_REPEATING: Final = words("corrections.repeating") | (FUNCTION - PREPOSITIONS - words("corrections.placing"))
_FOODS: Final = frozenset(source("preferences.foods").split("|"))


@dataclass(frozen=True, slots=True)
class Repair:
    """A corrected value."""

    heard: tuple[SelfStatement, ...]
    """The correct value; if the key contains the value, also the retraction of the old one."""
    end: int


def corrected(
    said: Sentence, at: int, previous: Sequence[SelfStatement], since: str = "", asked: str = ""
) -> Repair | None:
    """The statement of `previous`, oldest first, that the words at `at` correct, or None.

    If something was said `since` the last of them, or `asked` by the agent, the correction may refer to that
    instead: then only a value that is denied by name counts.
    """
    if not previous:
        return None
    if at == 0 and "\n" not in since and (spelled := _spelled(said, previous, since, asked)):
        return spelled
    opening = said.match(_DENYING, at)
    instead = _denied_first(said, opening, previous, since, asked) if opening else None
    if instead:
        return instead
    opening = said.match(_CORRECTING, at) or said.match(_CONTRASTED, at)
    if opening is None:
        return None
    marks = opening.groupdict().get("marks") or ""
    firm = _FIRM.search(marks) is not None
    for old in _candidates(said, at, previous):
        value, denial = said.at[opening.end()], _denial(said, at, old)
        named, no = denial is not None, any(said.low(index) == "no" for index in range(value))
        part = said.text(denial[0] + 1, denial[1]) if denial else old.text
        certain = named and firm and ":" not in old.key and fold(part) == fold(old.text)
        if _means_another(old, asked, said.low(value), part, certain=certain, no=no):
            continue
        # "sorry, Kathryn" alone may call somebody
        led = opening.groupdict().get("lead") or fold(old.text) in fold(asked)
        anew = _named_anew(said, value, old) and (named or (led and firm and _repeated(old, since, asked)))
        meant = bool(anew) or _MEANT.search(marks) is not None
        plain = named or (firm and not _asked_else(old, asked))
        repair = _reread(said, value, old, part, meant=meant, firm=plain)
        behind = repair is not None and denial is not None and repair.end == denial[0]
        denied = behind or (repair is not None and old.retracts)
        if repair and (denied or (firm and not (_spoken_of(old.key, since) or _asked_of(old, asked)))):
            return Repair(repair.heard, denial[1]) if behind and denial else repair
    return None


def _spelled(said: Sentence, previous: Sequence[SelfStatement], since: str, asked: str) -> Repair | None:
    """The name that was just said, as the caller spells it or agrees that it is spelled.

    A surname that is asked for is added to a first name, also where it is not spelled.
    """
    asking = sentences(asked)[-1:]
    surname = any(_SURNAME_ASKED.search(one.line) for one in asking)
    named = [old for old in previous if old.key.endswith("_name")] if surname else []
    old = (named or [*previous])[-1]
    if not asking or old.retracts or not old.key.endswith("_name"):
        return None
    [read_back] = asking
    spelling = _IS_SPELLED.match(read_back.line) is not None
    agreed = _AGREED.match(said.line) if spelling else None
    spelling = spelling or _SPELLING_ASKED.search(read_back.line) is not None
    found = None
    if agreed and len(said.line[agreed.end() :].split()) <= 1:
        letters = _letters(read_back)
        found = Value(letters.text, len(said)) if letters else None
    elif surname and not spelling:
        leading = _LEADING.match(said.line)
        found = names.stated(said, said.at.get(leading.end(), 0) if leading else 0)
    elif surname or (not _spoken_of(old.key, since) and (spelling or _says_only(read_back, old))):
        found = _letters(said)
    if found is None or not closed(said, found.end):
        return None
    text = _with_last(old.text, found.text, surname=surname, spelled=spelling)
    if not text:
        return None
    whose = old.key.removesuffix("_name").replace("_", " ")
    right = hear(old.key, text) if old.key in SLOTS else hear_of(whose, text)
    return Repair((replace(right, instead=old.text if text != old.text else None),), found.end)


def _letters(said: Sentence) -> Value | None:
    """The first name that `said` spells: "with an E on the end, B A P T I S T E"."""
    at = 0
    while at < len(said):
        told = said.match(_SPELLED, at)
        found = None if told else names.spelled_out(said, at)
        if found:
            return found
        at = said.at[told.end()] if told else at + 1
    return None


def _says_only(said: Sentence, old: SelfStatement) -> bool:
    """Whether the agent says the name `old`, as far as it was understood, and nothing else."""
    named = [t.low for t in said.tokens if t.low not in FUNCTION | TITLES | _SPELLINGS]
    own = fold(old.text).split()
    return bool(named) and all(any(_ratio(low, word) >= _READ_ALIKE for word in own) for low in named)


def _with_last(name: str, new: str, *, surname: bool, spelled: bool) -> str:
    """`name` with `new` in place of the word that it spells, or behind a first name; empty for neither."""
    known, low = name.split(), fold(new)
    own = [word for word in known if fold(word) not in TITLES]
    if low in fold(name).split() or not own:
        return name if own else ""  # "Zoe Hart", "Zoey?", "no, Z, O, E"
    if set(fold(name).split()) < set(low.split()):
        return new
    if surname and len(own) == len(known) == 1 and (fold(own[0]) in GIVEN or own[0][0] != new[0]):
        return f"{name} {new}"
    whole = len(low) > _INITIALS or not spelled
    begun = low[0] if whole else "\0"
    like = [word for word in (own[-1:] if surname else own) if len(word) - len(low) <= _LETTERS_MISSED]
    like = [word for word in like if fold(word).startswith(begun) or similar(new, word)]
    if not like:
        return f"{name} {new}" if surname and whole and len(own) == len(known) else ""
    wrong = max(like, key=lambda word: _ratio(new, word))
    return " ".join(new if word is wrong else word for word in known)


def _denied_first(
    said: Sentence, opening: re.Match[str], previous: Sequence[SelfStatement], since: str, asked: str
) -> Repair | None:
    """The value behind the one that `opening` denies: "not codeine, tramadol"."""
    first = said.at[opening.end()]
    for old in reversed(previous[-_REACH:]):
        end = None if old.retracts or not old.text else _named_at(said, first, old)
        if end is None or _asked_of(old, asked):
            continue
        # "Who is the booking for?", "Not Sarah, Emma."
        if _asked_else(old, asked) and not any(_names_again(one, old) for one in sentences(asked)):
            continue
        if old.key.startswith("allergy:") and not _just_said(old, since, asked):
            continue
        led = said.match(_CONTRASTING, end)
        value = said.at.get(led.end(), end) if led else end
        marks = f"{opening['marks']}{led.group() if led else ''}"
        # "not codeine tablets"; "I said codeine, it's anaphylaxis" insists on what was said
        if not (said.gap(end) or value > end) or (opening["said"] and not _FIRM.search(marks)):
            continue
        part = said.text(first, end)
        if _means_another(old, asked, said.low(value), part, no=True):
            continue
        meant = _MEANT.search(marks) is not None or _named_anew(said, value, old)
        repair = _reread(said, value, old, part, meant=meant, firm=True, denied=True)
        if repair and repair.heard[-1].text != old.text and not _spoken_of(old.key, since):
            return repair
    return None


def _named_at(said: Sentence, at: int, old: SelfStatement) -> int | None:
    """The word behind the value of `old`, or a part of it, if that is named at `at`: "May" of "May 4"."""
    slot = old.key.partition(":")[0]
    reader = VALUES.get(slot)
    whole = reader(said, at) if reader and at < len(said) else None
    if whole and fold(old.text).startswith(fold(whole.text)):
        return whole.end
    own = set(re.findall(r"\w[\w'-]*", fold(old.text))) - (FUNCTION - _MONTHS)
    end = at
    while end < len(said) and said.low(end) in own and (end == at or not said.gap(end)):
        end += 1
    return end if end > at else None


def _denial(said: Sentence, at: int, old: SelfStatement) -> tuple[int, int] | None:
    """The word "not" behind the one at `at` that denies `old`, or a part of a name, and where that ends."""
    words = tuple(old.text.lower().split())
    for place in range(at + 1, min(len(said) - 1, at + _AHEAD)):
        if said.low(place) != "not":
            continue
        end = place + 1 + len(words)
        if tuple(said.low(index) for index in range(place + 1, end)) == words:
            return place, end
        part = _named_at(said, place + 1, old) if _holds_name(old.key) else None
        if part is not None:
            return place, part
    return None


def _holds_name(key: str) -> bool:
    """Whether what is stored under `key` is the name of a person or an animal."""
    slot = key.partition(":")[0]
    return slot.endswith("_name") or slot in {"child", "pet"}


def of_another(
    said: Sentence, at: int, previous: Sequence[SelfStatement], since: str, asked: str
) -> Repair | None:
    """The retraction of what was just said of the speaker, if the words at `at` say that it is somebody
    else's, see `disowned`.
    """
    old = previous[-1] if previous else None
    if old is None or old.retracts or not (old.sentence and old.text):
        return None
    end = disowned(said, at, old)
    if end is None or not all(_again(one, old) for one in sentences(since)):
        return None
    if not all(_of_speaker(one, old) for one in sentences(asked)) or _offers_another(old, asked):
        return None
    slot = old.key.partition(":")[0]
    same = takewhile(lambda one: one.key.partition(":")[0] == slot and not one.retracts, reversed(previous))
    return Repair(tuple(map(retraction, same)), end)


def disowned(said: Sentence, at: int, old: SelfStatement | None = None) -> int | None:
    """The word behind words at `at` that give what was said before to somebody else, or to an earlier time:
    "sorry, not me, my husband", "I mean my wife does", "that's Frank's", "that's where we used to be".

    `old`: what was said before, if it is known. What only adds somebody leaves it: "actually my wife is, and
    the kids".
    """
    mark = None if said.question else said.match(_DISOWNED, at)
    if mark is None:
        return None
    end = said.at[mark.end()]
    again = 0 if said.gap(end) else _restated(said, end, old)
    end = again or end
    ends = said.gap(end) or said.low(end) in _AFTERWARDS
    if not ends or (mark["name"] and not _names(said, said.at[mark.start("name")])):
        return None
    others = said.match(_AND_OTHERS, end)
    behind = next((place for place in range(end + 1, len(said)) if others and said.gap(place)), end)
    denied = (said.match(_NOT_ME, place) for place in (end, behind))
    fits = mark["not"] or any(one and said.gap(said.at[one.end()]) for one in denied)
    if not fits and (mark["firm"] or mark["noise"] or not (others or (again and mark["verb"]))):
        told = _told_here(said, at, old) and mark["that"] in {"that's ", "that is "}
        fits = (again and mark["that"] and mark["marked"]) or _is_theirs(said, mark, end, old, here=told)
    return end if fits and not said.match(_OF_BOTH, end) else None


def meant_another(said: Sentence) -> bool:
    """Whether `said` only says that what was told of somebody is true of somebody else: "no, that's her
    cousin", "I mean my son".
    """
    mark = None if said.question else said.match(_DISOWNED, 0)
    return mark is not None and mark["marked"] is not None and said.at[mark.end()] == len(said)


def _is_theirs(
    said: Sentence, mark: re.Match[str], end: int, old: SelfStatement | None, *, here: bool
) -> bool:
    """Whether `mark` gives what `old` states to somebody: after "I live in Leeds", "sorry, that's my
    husband's" is rather about a noise.

    `here`: `old` is a number or an address given in the same words, of nobody yet.
    """
    slot, noun = old.key.partition(":")[0] if old else "", mark["noun"] or "one"
    contact, named = slot.endswith(("phone", "email")), slot.endswith("_name")
    be = not old or old.sentence.startswith("The user is") or slot in {"diet", "occupation"}
    if mark["before"]:
        fits = (not old or slot in VALUES) and said.low(end) not in _NONE_THE_LESS
    elif mark["verb"]:
        fits = be or mark["that"] is not None or mark["verb"] not in {"is", "are"}
    elif noun != "one":
        fits = not old or re.search(_OWNED.get(noun, noun.split()[-1]), slot) is not None
    elif mark["owns"] or mark["theirs"]:
        fits = (not old or slot in _WRITTEN or named) and not said.match(_APPOSED, end)
    else:
        # "that's Dave" may be the caller's own name, and "that's my son" is rather about a noise
        doubted = mark["marked"] not in {None, "well"} and (mark["that"] or "").startswith("that")
        fits = (here or doubted) if contact else ((be or named) and mark["firm"] is not None)
        fits = fits or mark["noise"] is not None
        heard = mark["noise"] and not (old and own_value(said, end, old))
        fits = fits and old is not None and not (heard or (mark["name"] and not mark["post"]))
    owned = (mark["owns"] or mark["theirs"]) and not mark["verb"] and not mark["before"]
    said_so = mark["marked"] or here or (contact and owned)
    return bool(fits and said_so and (mark["verb"] or mark["that"]))


def _told_here(said: Sentence, at: int, old: SelfStatement | None) -> bool:
    """Whether the words directly before `at` give the number or address of `old`, and say not whose: "it's
    07700 900123, that's the foreman".
    """
    reader = VALUES.get(old.key) if old and old.key.endswith(("phone", "email")) else None
    # an answer is read as "my number is …" too, in small letters
    first = int(said.low(0) == "my" and not said.tokens[0].capital)
    if (
        reader is None
        or old is None
        or not _SPEAKER.isdisjoint(said.low(place) for place in range(first, at))
    ):
        return False
    read = (reader(said, place) for place in range(at))
    return any(value and value.end == at and value.text == old.text for value in read)


def _offers_another(old: SelfStatement, asked: str) -> bool:
    """Whether the agent named another value of the kind, which is then the one that is not the caller's:
    "we have bob@example.com", "that's my husband's".
    """
    slot = old.key.partition(":")[0]
    kind = "name" if slot.endswith("_name") else slot.removeprefix("work_").removeprefix("home_")
    told = list(sentences(asked))
    if slot == "allergy" and not any(_again(said, old) for said in told):
        lows = {token.low for said in told for token in said.tokens} - FUNCTION
        return any(_allergen(low) for low in lows)
    if kind not in _ASKS:
        return False
    for said in told:
        offered = _offered(said, kind, old) | (_unknown(said) if kind in _KNOWN else set())
        if slot in _WRITTEN:
            same = any(value in old.text for value in offered)  # or only the end of it
        else:
            same = _read_back(said, kind, offered, old)
        if offered and not same:
            return True
    return False


def _unknown(said: Sentence) -> set[str]:
    """The words of `said` that are no English and no names of people: places and firms."""
    lows = {token.low for token in said.tokens if token.capital or not said.cased}
    return {low for low in lows if low.isalpha() and not (wordlike(low) or low in GIVEN or low in FUNCTION)}


def _restated(said: Sentence, at: int, old: SelfStatement | None) -> int:
    """The word behind words at `at` that only repeat `old`: "vegan", "who's vegan"; 0 if they say more."""
    end = next((place for place in range(at, len(said)) if said.gap(place)), len(said))
    told = {said.low(place).removesuffix("'s") for place in range(at, end)} - (FUNCTION - {"not"})
    repeats = old and told and told.issubset(fold(f"{old.text} {old.sentence}").replace(".", "").split())
    return end if repeats else 0


def _of_speaker(said: Sentence, old: SelfStatement) -> bool:
    """Whether the agent only repeats `old` of the speaker, so that "no, not me" can be about nothing else."""
    short = len(said) <= _NOTED
    if short != said.question:
        return short  # "Hull, and do you own the house?"
    lows = {token.low.removesuffix("'s") for token in said.tokens}
    if not lows.isdisjoint(_ELSE) or (said.question and lows.isdisjoint(_YOU)):
        return False
    # "Tom, is it for you?" says nothing of the name
    return "your name" in said.line if old.key == "user_name" else _names_again(said, old)


def _means_another(
    old: SelfStatement, asked: str, new: str, part: str, *, no: bool, certain: bool = False
) -> bool:
    """Whether `new` instead of `part` is somebody else than `old` names: "Tom needs the booster then", "not
    Tom, Ruby".

    So it may be where the agent said more than the name about whoever has it. It is not if both names sound
    or look alike ("I'll add Jan to the policy", "it's Jane, not Jan"), or if the caller is `certain` and only
    one has such a name. To a question, "no" is an answer. `no`: whether it is said.
    """
    about = (
        [said.question for said in sentences(asked) if _tells_of(old, said)] if _holds_name(old.key) else []
    )
    if any(about):
        return no or old.key == "user_name" or not similar(new, part)
    return bool(about) and not (certain or similar(new, part))


def _tells_of(old: SelfStatement, said: Sentence) -> bool:
    """Whether the agent says more than the name about whom `old` names.

    A caller is also called by their name: "Paul, which doctor do you see?" says nothing of Paul. Nor does
    what is put down under it: "shall I book it under Newman?"
    """
    name = frozenset(fold(old.text).split())
    kind = fold(f"{old.key} {old.sentence}".replace("_", " "))
    known = _REPEATING | name | frozenset(re.findall(r"\w+", kind))
    spelled = next((at for at in range(len(said)) if said.match(_SPELLED, at)), len(said))
    lows = [token.low.removesuffix("'s") for token in said.tokens[:spelled]]
    apart = [at for at in range(1, len(lows)) if said.gap(at)]
    cuts = [] if said.question and old.key != "user_name" else apart
    if old.key == "user_name" and any(low in _UNDER and then in name for low, then in pairwise(lows)):
        return False
    parts = (frozenset(lows[start:end]) for start, end in pairwise([0, *cuts, len(lows)]))
    return any(part & name and not part <= known for part in parts)


def _named_anew(said: Sentence, at: int, old: SelfStatement) -> bool:
    """Whether the word at `at` is written as a name that may stand in place of `old`, and calls nobody."""
    if not said.cased or at >= len(said) or not said.tokens[at].capital or _aside(said.low(at)):
        return False
    low, slot = said.low(at), old.key.partition(":")[0]
    if kind_of(said.tokens[at]) or low in _MONTHS:
        return False
    if slot in _ONE_NAME:
        return low not in PLACES or not PLACES.isdisjoint(fold(old.text).split())
    return slot not in {"allergy", "preference"} and (slot.endswith("_name") or low not in GIVEN)


def _repeated(old: SelfStatement, since: str, asked: str) -> bool:
    """Whether nothing came between but the agent's repetition of `old`, a name of one thing."""
    if old.key.partition(":")[0] not in _ONE_NAME or any(sentences(since)):
        return False
    name = fold(old.text)
    return all(
        len(said) <= len(name.split()) + 1 if said.question else name in said.line or len(said) <= _NOTED
        for said in sentences(asked)
    )


def _before_relative(said: Sentence, at: int) -> Sentence:
    """`said` up to a relative clause behind the value at `at`: "it's tramadol that gives me a rash"."""
    end = next((end for end in range(at + 1, min(len(said), at + 6)) if said.low(end) == "that"), len(said))
    return replace(said, tokens=said.tokens[:end])


def _just_said(old: SelfStatement, since: str, asked: str) -> bool:
    """Whether nothing but a repetition of `old` came between.

    After "shall I give you codeine?", "not codeine, paracetamol" ends no allergy.
    """
    repeated = len(old.text.split()) + 1
    return not any(sentences(since)) and all(
        "allerg" in said.line
        or _READ_BACK.search(said.line)
        or len(said) <= repeated
        or not (said.question or fold(old.text) in said.line)
        for said in sentences(asked)
    )


def _spoken_of(key: str, since: str) -> bool:
    """Whether something of the kind that fills `key` was mentioned `since` without a statement."""
    slot = key.partition(":")[0]
    strict = VALUES.get(slot) if slot in _WRITTEN else None
    named = slot in _KNOWN or slot.endswith("_name")
    for said in sentences(since) if strict or named else ():
        if strict and any(strict(said, index) for index in range(len(said))):
            return True
        # a word that is not English is a name of somebody or something
        words = (token.low for token in said.tokens)
        if named and any(word.isalpha() and word not in FUNCTION and not wordlike(word) for word in words):
            return True
    return False


def _asked_of(old: SelfStatement, asked: str) -> bool:
    """Whether the agent asked about something else that the words may answer ("fly to Paris?", "how many
    tickets?"); not if `old` is read back ("Leeds, in England?", "did you say Reading?").
    """
    slot = old.key.partition(":")[0]
    kind = "name" if slot.endswith("_name") else slot.removeprefix("work_").removeprefix("home_")
    if kind == "phone" and _OTHER_NUMBER.search(fold(asked)):
        return True
    if kind in _TRADES:
        return any(said.question and not _again(said, old) for said in sentences(asked))
    asks = _ASKS.get(kind)
    for said in sentences(asked) if asks else ():
        offered = _offered(said, kind, old)
        if offered and (said.question or kind == "phone") and not _read_back(said, kind, offered, old):
            return True
        if said.question and asks and asks.search(said.line) and not _again(said, old):
            return True
    return False


def _offered(said: Sentence, kind: str, old: SelfStatement) -> set[str]:
    """The values of a kind in what the agent said."""
    if kind in _KNOWN:
        return {token.low for token in said.tokens if token.low in _KNOWN[kind]}
    if kind == "name":
        mine = fold(old.text).split()
        return {said.low(at) for at in range(len(said)) if said.low(at) not in mine and _names(said, at)}
    if kind == "phone":
        runs = [run.text for at in range(len(said)) if (run := phrases.digits(said, at))]
        return {run for run in runs if not any(run != other and other.endswith(run) for other in runs)}
    return {value.text for at in range(len(said)) if (value := VALUES[kind](said, at))}


def _names(said: Sentence, at: int) -> bool:
    """Whether the word at `at` names a person, as far as can be told."""
    token, low = said.tokens[at], said.low(at).removesuffix("'s")
    if low in GIVEN or not low.isalpha():
        return low in GIVEN
    written = token.capital and at > 0 if said.cased else True
    return written and not (wordlike(low) or low in PLACES | FIRMS | FUNCTION)


def _read_back(said: Sentence, kind: str, offered: set[str], old: SelfStatement) -> bool:
    """Whether the values `offered` by the agent repeat `old`, or were misheard for it."""
    if kind == "name":
        own = old.key == "user_name" and "your name" in said.line
        return own or any(similar(value, old.text) for value in offered)
    if kind in {"address", "email"}:
        return any(_ratio(value, old.text) >= _READ_ALIKE for value in offered)
    if kind != "phone":
        return old.text in offered or _again(said, old)
    bare = _ENDING.search(said.line) or all(
        token.low in FUNCTION or kind_of(token) == "number" for token in said.tokens
    )
    parts = {value for value in offered if value in old.text and (bare or len(value) > _EXTENSION)}
    return bool(parts) or any(_ratio(value, old.text) >= _READ_ALIKE for value in offered)


def _again(said: Sentence, old: SelfStatement) -> bool:
    """Whether the agent repeats a word of `old`, or says that it repeats something."""
    repeated = not set(fold(old.text).split()).isdisjoint(said.line.split())
    return repeated or _READ_BACK.search(said.line) is not None


def _names_again(said: Sentence, old: SelfStatement) -> bool:
    """Whether the agent repeats the value of `old`, or a part of it, in any form."""
    return _again(said, old) or any(_named_at(said, at, old) is not None for at in range(len(said)))


def _asked_else(old: SelfStatement, asked: str) -> bool:
    """Whether the agent asked a question that does not read `old` back: "no, it's latex" may answer it."""
    return any(said.question and fold(old.text) not in said.line for said in sentences(asked))


def given_up(said: Sentence, at: int) -> bool:
    """Whether the value before `at` is retracted without another value."""
    mark = said.match(_GIVEN_UP, at)
    if mark is None:
        return False
    end = said.at[mark.end()]
    aside = said.low(end) in _ASIDE or said.match(_PAUSE, end) is not None
    return not aside or mark.group().startswith("scratch")  # "oops, wrong button"


def own_value(said: Sentence, at: int, old: SelfStatement) -> Repair | None:
    """The value that takes the place of `old`, which was somebody else's: "Mine's the ninth"."""
    lead, reader = said.match(_OWN_VALUE, at), VALUES.get(old.key)
    if lead is None or reader is None or said.question or said.at[lead.end()] >= len(said):
        return None
    found = reader(said, said.at[lead.end()])
    if found is None or not (lead.group() or found.end == len(said)):
        return None  # "Paris, that's where I'm flying to"
    if not (said.gap(found.end) or said.low(found.end) in _POLITE | {"now"}):
        return None
    return Repair((replace(hear(old.key, found.text), instead=old.text),), found.end)


def _candidates(said: Sentence, at: int, previous: Sequence[SelfStatement]) -> list[SelfStatement]:
    """The candidates for a correction: the value denied by name ("not Jon"), else the latest one."""
    stated = [old for old in previous[-_REACH:] if not old.retracts or old.key in SLOTS]
    denied = [old for old in stated if _denial(said, at, old)]
    return denied[-1:] or stated[-1:] + [old for old in stated[-2:-1] if old.key == "user_name"]


def _reread(
    said: Sentence, at: int, old: SelfStatement, part: str, *, meant: bool, firm: bool, denied: bool = False
) -> Repair | None:
    """The value at `at` read as `old`'s kind. A `firm` mark corrects of items only a name or an allergy.

    `part` is the value of `old`, or the part of it that is denied. `denied`: it was denied before: "not
    codeine, it's tramadol that …".
    """
    said = _before_relative(said, at) if denied else said
    slot, _, item = old.key.partition(":")
    if item and slot in {"child", "pet"}:
        return _other_name(said, at, old, meant=meant) if meant or firm else None
    if item:
        plain = firm and slot == "allergy" and _allergen(said.low(at))
        return _other_item(said, at, old, slot) if meant or plain else None
    reader = VALUES.get(slot) or (names.stated if slot.endswith("_name") else None)
    found = reader(said, at) if reader and at < len(said) else None
    if found is None and slot.endswith("phone"):
        found = _last_digits(said, at, old.text)
    if found and slot == "birthday" and not old.retracts:
        found = _in_same_year(found, old.text)
    like = replace(old, text=part) if slot.endswith("_name") else old
    if found is None or not _ends(said, found.end) or not (meant or _akin(found.text, like, slot)):
        return None
    text = _in_place(found.text, part, old.text) if slot.endswith("_name") else found.text
    whose = slot.removesuffix("_name").replace("_", " ")
    right = hear(slot, text) if slot in SLOTS else hear_of(whose, text)
    return Repair((replace(right, instead=old.text, context=old.context),), found.end)


def _in_place(new: str, part: str, name: str) -> str:
    """`name` with `new` in place of `part`, if that is a part of it: "Paul Newman" is then "Paul Nguyen"."""
    words, wrong, right = fold(name).split(), fold(part).split(), fold(new).split()
    size = len(wrong)
    if size < len(words) and words[: len(right)] == right:
        return name  # "it's Mary Ann, not Mary"
    at = next((at for at in range(len(words) - size + 1) if words[at : at + size] == wrong), None)
    rest = words if at is None else words[:at] + words[at + size :]
    whole = len(right) > 1 and (right[0] in GIVEN or not set(right).isdisjoint(rest))
    if at is None or whole:
        return new
    said = name.split()
    return " ".join([*said[:at], new, *said[at + size :]])


def _akin(new: str, old: SelfStatement, slot: str) -> bool:
    """Whether `new` is likely the same kind of thing: "no, pepperoni" corrects no name.

    It is if it is a known name of that kind, or if it looks or sounds like what it would replace.
    """
    known = _KNOWN.get(slot, GIVEN if slot.endswith("_name") else None)
    if slot == "age":
        return abs(int(new) - int(old.text or new)) <= _AGE_SLIP
    if known is None or old.retracts:
        return True
    return not known.isdisjoint(fold(new).split()) or similar(new, old.text)


def similar(new: str, old: str) -> bool:
    """Whether they look or sound alike."""
    words, before = fold(new).split(), fold(old).split()
    return _ratio(new, old) >= _ALIKE or any(set(sound(w)) & set(sound(b)) for w in words for b in before)


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, fold(one), fold(other)).ratio()


def _other_name(said: Sentence, at: int, old: SelfStatement, *, meant: bool) -> Repair | None:
    """Another name of the same child or pet: "my daughter's called Ann", "no, it's Anna"."""
    found = names.stated(said, at) if f"called {old.text}" in old.sentence else None
    if found is None or not _ends(said, found.end):
        return None
    if not (meant or said.low(at) in AMBIGUOUS or _akin(found.text, old, "child_name")):
        return None
    right = hear(old.key.partition(":")[0], found.text, sentence=old.sentence.replace(old.text, found.text))
    return Repair((retraction(old), right), found.end)


def _allergen(low: str) -> bool:
    """Whether a word may name what one is allergic to: a listed food, or no word or name of the lists."""
    named = low in GIVEN or low in AMBIGUOUS or low in PLACES or low in FIRMS
    return low in _FOODS or not (named or wordlike(low) or low in _ASIDE or low in _POLITE)


def _other_item(said: Sentence, at: int, old: SelfStatement, slot: str) -> Repair | None:
    """The old item is retracted and a new one stated: "I like jazz", "I meant blues"."""
    if slot not in {"preference", "allergy", "avoids", "favourite", "least_favourite"}:
        return None
    found = phrases.item(said, at, definite=True, limit=4)
    if found is None or not _ends(said, found.end) or said.low(at) in FUNCTION or _aside(said.low(at)):
        return None
    if slot in {"favourite", "least_favourite"}:
        return Repair((hear(slot, found.text, item=old.key.partition(":")[2]),), found.end)
    verb, thing, _ = old.text.lower().partition(old.key.partition(":")[2])
    if not thing:
        return None
    text = f"{verb.removesuffix('the ')}{found.text}" if slot == "preference" else found.text
    return Repair((retraction(old), hear(slot, text, item=found.text)), found.end)


def _last_digits(said: Sentence, at: int, old: str) -> Value | None:
    """`old` with its last digits corrected: "… one two three four, sorry, one two three five".

    Fewer than three digits only if they are said to be the last: "four five at the end", "it ends in 45".
    """
    lead = said.match(_ENDS_IN, at)
    start = said.at[lead.end()] if lead else at
    run = phrases.digits(said, start)
    if run is None:
        return None
    behind = said.match(_AT_THE_END, run.end)
    end = said.at[behind.end()] if behind else run.end
    # "it ends six thirty" is a time
    one_by_one = run.end - start in {1, len(run.text)}
    last = behind or (lead and (lead["in"] or one_by_one))
    if (lead and not last) or not (1 if last else 3) <= len(run.text) < len(old):
        return None
    return Value(old[: -len(run.text)] + run.text, end)


def _in_same_year(new: Value, old: str) -> Value:
    """A date with the year of the one it corrects, unless it has one: "no, the fourth of March"."""
    born = _YEAR.search(old)
    return Value(f"{new.text}, {born.group()}", new.end) if born and _YEARLESS.fullmatch(new.text) else new


def _ends(said: Sentence, end: int) -> bool:
    """Whether a value can end there, also before another correction ("I mean Naples, I mean Florence")."""
    if said.gap(end) or said.low(end) in _POLITE or said.match(_SPELLED, end):
        return True
    again = said.match(_CORRECTING, end)
    return again is not None and _FIRM.search(again["marks"]) is not None


def settled(heard: Sequence[SelfStatement]) -> list[SelfStatement]:
    """The final result of one utterance: the last value of each key, in spoken order, and those that stand
    beside it.

    A retraction gives way to a value of the same key. A value that is stated and retracted at once remains as
    a retraction, since an earlier call may have stored it.
    """
    kept: dict[str, SelfStatement] = {}
    for one in heard:
        name, earlier = one.key, kept.get(one.key)
        if one.retracts and earlier and not earlier.retracts and one.text != earlier.text:
            continue
        if earlier and not earlier.retracts and not one.retracts and one.instead != earlier.text:
            name = beside(one.key, one.instead or one.text, one.context, earlier) or name
        kept.pop(name, None)
        kept[name] = one
    return list(kept.values())


def retracted(previous: Sequence[SelfStatement]) -> list[SelfStatement]:
    """Retractions of all values in `previous`."""
    return [retraction(old) for old in settled(previous) if not old.retracts]
