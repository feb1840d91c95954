"""The classes of secrets, the words that announce each, and what they announce.

`labelled` reads the value directly after "my pin is". A cue alone says nothing: "I forgot my PIN" has no
value. Between a cue and its value is a link: nothing, a verb, or a short clause that ends in one.

`near` reads a value said near the words for it: "the box by the meter, seven oh three one". People say more
loosely what they know by heart: the number comes a clause or a sentence later, or the agent named what it is.
A number said digit by digit identifies something, so the nearest words decide: those for a secret, or those
for an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from echoic.secrets import values
from echoic.secrets.values import Span
from echoic.text import END, START, STOP, any_of, patterns, word_lists
from echoic.text.spoken_numbers import ENGLISH, View, is_bare, runs

_PATTERNS = patterns("echoic.secrets", "labels")

_WORDS = word_lists("echoic.secrets")

Secret = Literal[
    "card",
    "security code",
    "PIN",
    "password",
    "security answer",
    "recovery phrase",
    "one-time code",
    "API key",
    "account number",
    "ID number",
    "hidden key",
]
SECRETS: tuple[Secret, ...] = get_args(Secret)
WORDED: frozenset[Secret] = frozenset({"password", "security answer", "recovery phrase"})
"""The classes whose value may be ordinary words."""


@dataclass(frozen=True, slots=True)
class Label:
    """One class and the words that announce it."""

    kind: Secret
    cue: re.Pattern[str]
    least: int = 3
    """The least number of digits of a value."""
    most: int = 12
    near: bool = True
    """Whether a value may directly follow the cue."""


def _cue(words: str) -> re.Pattern[str]:
    return re.compile(START + any_of(words) + END, re.IGNORECASE)


_HARMLESS_CODE = any_of(_WORDS["harmless code"])
_NOT_OF_MONEY = re.compile(_PATTERNS["not of money"], re.IGNORECASE | re.VERBOSE)
_OTHER_CARD = re.compile(_PATTERNS["other card"], re.IGNORECASE | re.VERBOSE)
_OTHER_ACCOUNT = re.compile(_PATTERNS["other account"], re.IGNORECASE | re.VERBOSE)
# "The passport office", "the card machine": the cue only describes another noun.
_OF_SOMETHING = re.compile(_PATTERNS["of something"], re.IGNORECASE | re.VERBOSE)
_LAST_FOUR = re.compile(_PATTERNS["last four"], re.IGNORECASE)

LABELS: tuple[Label, ...] = (
    Label("security code", _cue(_PATTERNS["labels"]), most=10),
    Label("one-time code", _cue(_PATTERNS["labels 2"]), least=4, most=10),
    Label("PIN", _cue(_PATTERNS["labels 3"])),
    Label("card", _cue(_PATTERNS["labels 4"]), least=3, most=23),
    Label("account number", _cue(_PATTERNS["labels 5"]), least=4, most=34),
    Label("ID number", _cue(_PATTERNS["labels 6"]), least=4, most=34),
    Label("API key", _cue(_PATTERNS["labels 7"])),
    Label(
        "recovery phrase",
        _cue("(?:seed|recovery|backup|mnemonic|wallet)_(?:seed_)?(?:phrase|words?) mnemonic"),
    ),
    Label("security answer", _cue(_PATTERNS["labels 8"])),
    Label("password", _cue(_PATTERNS["labels 9"]), most=64),
)
# Checked separately: most codes are not secret.
CODE = re.compile(
    rf"{START}(?P<what>[\w'-]{{1,40}}\s+|){any_of('(?:pass)?code kodigo codigo')}{END}", re.IGNORECASE
)
PLAIN_CODE = Label("one-time code", CODE, least=4, most=8)

_ENDING = re.compile(
    r"(?:\s+\w+){0,3}\s+(?:ending|ends|ended|finish(?:ing|es)|expires?|expiring|valid|last\s+(?:four|4))\b",
    re.IGNORECASE,
)

# What a machine displays in the same clause: "the boiler shows code 4512".
_MACHINE = (
    r"\b(?:boiler|dishwasher|washing\s+machine|washer|oven|printer|thermostat|radiator)\b"
    r"(?!\s+(?:room|house|cupboard))"
)
_MACHINE_BEFORE = re.compile(rf"{_MACHINE}[^.,;!?\n]*$", re.IGNORECASE)
_MACHINE_BEHIND = re.compile(rf"[^.,;!?\n]*?{_MACHINE}", re.IGNORECASE)
# "The card was 250", "my licence, 1998 I think": so short a number of theirs is named as one, or read out.
_SAID_AS_NUMBER = re.compile(r"\b(?:numbers?|no|digits|details|four|4)\b", re.IGNORECASE)
_PRICE = re.compile(r"[0-9]{3}")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?:\s+I)?")

NAMES_NUMBER = re.compile(r"number|no\b|iban|routing|sort|digits", re.IGNORECASE)
"""Whether words for a card or an account mean its number."""


def harmless(label: Label, cue: re.Match[str], text: str) -> bool:
    """Whether the words around a cue say that no secret is meant."""
    if _OF_SOMETHING.match(text, cue.end()):
        return True
    before = text[max(0, cue.start() - 60) : cue.start()]
    if label.kind in {"card", "account number"}:
        named = NAMES_NUMBER.search(cue[0]) is not None
        bare = cue[0].lower().startswith(("card", "acc", "a/c"))
        other = _OTHER_CARD if label.kind == "card" else _OTHER_ACCOUNT
        return bool(
            (not named and _NOT_OF_MONEY.search(before))
            or (bare and other.search(before))
            or _LAST_FOUR.search(before)
            or _ENDING.match(text, cue.end(), cue.end() + 60)
        )
    if label.kind == "security code":
        return re.search(r"\bsocial\s+$", before, re.IGNORECASE) is not None
    if label.kind == "one-time code" and "confirmation" in cue[0].lower():
        return re.search(r"text|sms|sent|got|receiv|phone|app\b|email", text, re.IGNORECASE) is None
    return False


def is_plain_code(cue: re.Match[str]) -> bool:
    """Whether a "code" is not of a kind that anybody may know."""
    before = cue.string[max(0, cue.start() - 40) : cue.start() + len(cue["what"])]
    if re.search(r"\b(?:error|fault|exit|status|warning)\b(?:\s+\w+){0,3}\s*$", before, re.IGNORECASE):
        return False
    if _MACHINE_BEFORE.search(before) or _MACHINE_BEHIND.match(cue.string, cue.end(), cue.end() + 40):
        return False
    return re.fullmatch(_HARMLESS_CODE + r"\s+", cue["what"], re.IGNORECASE) is None


_LINK = re.compile(_PATTERNS["link"], re.IGNORECASE)
_WORD_LINK = re.compile(_PATTERNS["word link"], re.IGNORECASE)
_NEAR = re.compile(_PATTERNS["near"], re.IGNORECASE)
_TIMES_BEFORE = re.compile(_PATTERNS["times before"], re.IGNORECASE)


def labelled(view: View) -> list[tuple[Secret, Span]]:
    """The announced secrets of a view, as class and span."""
    found = list(_all(view))
    # "the PIN of my card is 9021": a card's number is longer than what else is said of a card
    others = {span for kind, span in found if kind != "card"}
    return [(kind, span) for kind, span in found if kind != "card" or span not in others]


# "My old PIN was 1998 and the new one is 2047", "… so I changed it to 2047".
_AGAIN = re.compile(_PATTERNS["again"], re.IGNORECASE)


def _again(label: Label, text: str, place: int) -> Iterator[Span]:
    """Further values of what was announced once."""
    for link in _AGAIN.finditer(text, place, place + 160):
        if label.kind in WORDED:
            start = link.end()
            found = values.quoted(text, start) or values.no_word(text, start) or values.phrase(text, start)
        else:
            found = _number(label, text, link.end())
        if found is not None:
            yield found


def _all(view: View) -> Iterator[tuple[Secret, Span]]:
    text = view.text
    for label in LABELS:
        for cue in label.cue.finditer(text):
            if harmless(label, cue, text):
                continue
            found = _behind(label, text, cue.end()) or _before(label, text, cue.start())
            if found is not None and not _is_price_or_year(label, view, found):
                yield _named(label.kind, text, found), found
            for more in _again(label, text, cue.end()):
                yield label.kind, more
    for cue in filter(is_plain_code, CODE.finditer(text)):
        found = _behind(PLAIN_CODE, text, cue.end()) or _before(PLAIN_CODE, text, cue.start())
        if found is not None:
            yield "one-time code", found


def _is_price_or_year(label: Label, view: View, found: Span) -> bool:
    start, end = found
    short = {"card": _PRICE, "ID number": _YEAR}.get(label.kind)
    if short is None or not short.fullmatch(view.text, start, end):
        return False
    first, last = view.origin(start, end)
    digit_by_digit = last - first > end - start and len(set(view.starts[start:end])) == end - start
    return not digit_by_digit and not _SAID_AS_NUMBER.search(view.text, max(0, start - 40), start)


def _behind(label: Label, text: str, place: int) -> Span | None:
    """The value after a cue that ends at `place`."""
    end = min(len(text), place + 160)
    if label.kind in WORDED:
        return _words_behind(label, text, place, end)
    starts = [found.end() for found in (_LINK.match(text, place, end),) if found]
    if label.near and (near := _NEAR.match(text, place, end)):
        starts.append(near.end())
    for start in starts:
        found = _number(label, text, start)
        if found is not None:
            return found
    return None


def _number(label: Label, text: str, start: int) -> Span | None:
    """The value of `label` that begins at `start`, unless it is ordinary words."""
    if _TIMES_BEFORE.search(text[max(0, start - 14) : start]):
        return None
    quoted = values.quoted(text, start)
    if quoted is not None and any(c.isdecimal() for c in text[slice(*quoted)]):
        return quoted
    found: Span | None
    match label.kind:
        case "API key":
            found = quoted or values.token(text, start)
        case "ID number":
            found = values.document(text, start, label.least)
        case _:
            found = values.digits(text, start, label.least, label.most) or _lettered(label, text, start)
    return found


def _lettered(label: Label, text: str, start: int) -> Span | None:
    """A code or an account with letters in it."""
    if label.kind == "account number":
        return values.document(text, start, 8)
    if label.kind == "one-time code" and label is not PLAIN_CODE:
        return values.code(text, start, label.least, label.most)
    odd = values.no_word(text, start) if label.kind == "PIN" else None
    return odd if odd is not None and any(c.isdecimal() for c in text[slice(*odd)]) else None


def _words_behind(label: Label, text: str, place: int, end: int) -> Span | None:
    start = next((f.end() for f in (_WORD_LINK.match(text, place, end),) if f), None)
    strict, most = True, 6
    if label.kind == "recovery phrase" or (label.kind == "password" and "phrase" in text[place - 6 : place]):
        strict, most = False, 24
    if start is None:
        near = _NEAR.match(text, place, end)
        at = near.end() if near else place
        found = values.quoted(text, at) or values.no_word(text, at) or values.digits(text, at, 3, 64)
        return found or _dictated(text, at) or _chosen(text, place, at)
    found = values.quoted(text, start) or values.digits(text, start, 3, 64)
    plain = values.phrase(text, start, most=most, strict=strict)
    if not strict and plain is not None and len(text[slice(*plain)].split()) < 3:
        plain = values.phrase(text, start, most=most)
    return _longer(found or values.no_word(text, start), plain)


_DICTATED_NOT = re.compile(any_of(_WORDS["dictated not"]) + END, re.IGNORECASE)


_FOR_WHAT = re.compile(r"(?:for|to)\s+(?:(?:the|my|our|this)\s+)?[\w-]+\s+", re.IGNORECASE)


def _dictated(text: str, place: int) -> Span | None:
    """Words directly after a cue that end in a number: "wifi password bluebird seven"."""
    whose = _FOR_WHAT.match(text, place)
    place = whose.end() if whose else place
    if _DICTATED_NOT.match(text, place):
        return None
    found = values.phrase(text, place, most=3)
    if found is None:
        return None
    last = text[slice(*found)].rsplit(maxsplit=1)[-1].lower()
    several = len(text[slice(*found)].split()) > 1
    return found if several and (last in values.SPELLED or last.isdecimal()) else None


_CHOOSES = re.compile(_PATTERNS["chooses"], re.IGNORECASE)


def _chosen(text: str, cue_end: int, place: int) -> Span | None:
    """Words directly after a cue in "make the password purple rain"."""
    begin = text.rfind(" ", 0, max(0, cue_end - 6)) + 1
    if not _CHOOSES.search(text[max(0, begin - 40) : begin]) or _DICTATED_NOT.match(text, place):
        return None
    return values.phrase(text, place, most=4)


def _longer(one: Span | None, other: Span | None) -> Span | None:
    if one is None or other is None:
        return one or other
    return one[0], max(one[1], other[1])


# -- "5173 is my pin", "bluebird seven is the password", "use 481902 as your code"

_IT_IS = _PATTERNS["it is"]
_BACK_LINK = re.compile(_PATTERNS["back link"], re.IGNORECASE)
_BACK_VERB = re.compile(rf"(?:\b{_IT_IS}(?!\w)|'s\b|\b(?:as|being)\b)", re.IGNORECASE)
_BACK_LEAD = re.compile(r"\b(?:it's|its|it\s+is|got|use|try|enter)\s+$", re.IGNORECASE)
_BACK_NUMBER = re.compile(r"[#*]?[A-Za-z]{0,3}-?[0-9][0-9A-Za-z]*(?:[ -][0-9A-Za-z]*[0-9][0-9A-Za-z]*)*[#*]?")


def _before(label: Label, text: str, place: int) -> Span | None:
    """The value before a cue that begins at `place`."""
    begin = max(0, place - 90)
    head = text[begin:place]
    if label.kind in WORDED:
        worded = _words_before(head)
        if worded is not None:
            return begin + worded[0], begin + worded[1]
        if odd := _ODD_BEFORE.search(head):
            return values.no_word(text, begin + odd.start(1))
    numbers = list(_BACK_NUMBER.finditer(head))
    if not numbers:
        return None
    last = numbers[-1]
    between, led = head[last.end() :], _BACK_LEAD.search(head, 0, last.start())
    if not _BACK_LINK.fullmatch(between) or not (led or _BACK_VERB.search(between)):
        return None
    start = begin + last.start()
    if _TIMES_BEFORE.search(text[max(0, start - 14) : start]):
        return None
    return _number_before(label, text, start)


def _number_before(label: Label, text: str, start: int) -> Span | None:
    if label.kind in WORDED:
        return values.no_word(text, start) or values.digits(text, start, 3, 64)
    if label.kind == "ID number":
        return values.document(text, start, label.least)
    read = values.code if label.kind in {"one-time code", "PIN"} else values.digits
    return read(text, start, max(label.least, 3), label.most)


_WORDS_BEFORE = re.compile(_PATTERNS["words before"], re.IGNORECASE)
_ODD_BEFORE = re.compile(
    r"(?<!\S)(\S{3,64})\s+(?:is|was|as)\s+(?:my|the|our|his|her|their|your)\s+(?:[a-z0-9'-]+\s+){0,3}$",
    re.IGNORECASE,
)
_LEADS_UP = re.compile(
    r"\b(?:yeah|so|okay|ok|um|uh|it's|its|it\s+is|yes|and|well|use|used|using|set|put|chose|picked|pick|with|have|try|should\s+be|would\s+be|must\s+be)\s+",
    re.IGNORECASE,
)
_NO_VALUE = frozenset(_WORDS["no value"].split())


def _words_before(head: str) -> Span | None:
    found = _WORDS_BEFORE.search(head)
    if found is None:
        return None
    start, led = found.start("value"), bool(_BACK_LEAD.search(head, 0, found.start("value")))
    # the words that lead up to it are not part of it
    for lead in _LEADS_UP.finditer(head, start, found.end("value")):
        start, led = lead.end(), led or lead[0].lower().startswith(("it", "use"))
    if not found["verb"] and not led:
        return None
    value = head[start : found.end("value")].strip().lower().split()
    if not value or len(value) > 4 or _NO_VALUE & set(value) or values.phrase(" ".join(value), 0) is None:
        return None
    if any(word in STOP and word not in values.SPELLED for word in value):
        return None
    return start, found.end("value")


def _named(kind: Secret, text: str, span: Span) -> Secret:
    """The class of a code: its length decides if the cue fits two."""
    if kind == "security code" and sum(c.isdecimal() for c in text[slice(*span)]) > 4:
        return "one-time code"
    return kind


# -- said near the words for it, not directly after

_TOPICS = patterns("echoic.secrets", "topics")

_DIGITS: dict[Secret, tuple[int, int]] = {
    "PIN": (4, 8),
    "security code": (3, 4),
    "one-time code": (4, 8),
    "password": (3, 12),
    "card": (8, 19),
    "account number": (6, 20),
    "ID number": (6, 20),
}
"""How many digits such a number has."""
_REACH = 160
"""The most characters between the words for a secret and its number."""
_SINGLE = frozenset(word for word in ENGLISH.vocabulary if len(ENGLISH.numerals.get((word,), "")) == 1)
_REPEATS = frozenset(ENGLISH.repeats)
# Things that are opened with a number.
_THINGS = _TOPICS["things"]
_OPENED = re.compile(START + _THINGS + END, re.IGNORECASE)
_OPENS = re.compile(_TOPICS["opens"], re.IGNORECASE)
_BACK = re.compile(_TOPICS["back"], re.IGNORECASE)
_SENT = re.compile(_TOPICS["sent"], re.IGNORECASE)
_BANK = re.compile(
    r"\b(?:bank|building\s+society|branch|direct\s+debit|standing\s+order|wire|giro)\b", re.IGNORECASE
)
_OTHER = re.compile(START + any_of(_WORDS["other"]) + END, re.IGNORECASE)
_STREET = re.compile(_TOPICS["street"], re.IGNORECASE)
DECLINES = re.compile(_TOPICS["declines"], re.IGNORECASE | re.VERBOSE)
"""What an agent says about a secret that it was told."""
REGRETS = re.compile(_TOPICS["regrets"], re.IGNORECASE | re.VERBOSE)
"""What a speaker says who told a secret."""
_LOCKS = re.compile(
    r"\b(?:(?:pad)?locks?|comb(?:o|ination)|dial)"
    r"(?:'s|\s+is|\s+was|\s+opens?\s+(?:with|on|at|to))?\W*$",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"(?<![^\W_])(?:[A-Z][ ,.-]{0,2}){1,4}$")
_ABOUT_ANSWERS = re.compile(r"\b(?:security|secret)\s+(?:question|word|answer)s?\b", re.IGNORECASE)
_SCALES = frozenset("hundred thousand million hundreds thousands lakh crore".split())
_NAMED = re.compile(r"(?<=[a-z,:] )(?!I\b)[^\W\d_a-z][\w'’-]+(?:\s+(?!I\b)[^\W\d_a-z][\w'’-]+){0,3}")
_SAYS = _TOPICS["says"]
_TYPED = re.compile(_SAYS, re.IGNORECASE)
_ENTERED = re.compile(rf"{_SAYS}|[,:.?!;]\s*$", re.IGNORECASE)
_IS = re.compile(r"(?:'s|\s+is|\s+was)\s+", re.IGNORECASE)
_DATE = re.compile(r"[0-3]?[0-9][ .-][0-3]?[0-9][ .-](?:19|20)?[0-9]{2}|[0-2]?[0-9] [0-5][05]")
_WRITTEN_YEAR = re.compile(r"(?:1[89]|20)[0-9]{2}")
_SIGNED_WORD = re.compile(r"(?<!\S)(?=[^\s,.]*[0-9])(?=[^\s,.]*[A-Za-z])[^\s,.;:!?]{5,64}")


_PLACE = _TOPICS["place"]
_HIDDEN = re.compile(_TOPICS["hidden"], re.IGNORECASE)
_ANYWHERE = re.compile(r"\b" + _PLACE, re.IGNORECASE)
_KEY = re.compile(r"\b(?:keys?|get\s+in|let\s+(?:myself|himself|herself|themselves)\s+in)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """A secret that was named, and its position."""

    kind: Secret
    end: int
    """The end of its words; -1 if they are in another text."""
    thing: bool = False
    """Whether it is only what a number opens."""


def topics(text: str) -> list[Topic]:
    """The secrets that `text` names, in order."""
    found = [
        Topic(label.kind, cue.end())
        for label in LABELS
        for cue in label.cue.finditer(text)
        if not harmless(label, cue, text)
    ]
    found += [Topic("one-time code", cue.end()) for cue in CODE.finditer(text) if is_plain_code(cue)]
    found += [Topic("one-time code", cue.end()) for cue in _SENT.finditer(text)]
    found += [Topic("security code", cue.end()) for cue in _BACK.finditer(text)]
    found += [Topic("security answer", cue.end()) for cue in _ABOUT_ANSWERS.finditer(text)]
    found += [Topic("account number", cue.end()) for cue in _BANK.finditer(text)]
    found += [Topic("PIN", cue.end(), thing=True) for cue in _OPENED.finditer(text)]
    return sorted(found, key=lambda topic: topic.end)


def near(view: View, original: str, named: Sequence[Topic] = ()) -> Iterator[tuple[Secret, int, int]]:
    """Numbers of `view`, a reading of `original`, that are dictated after a secret was named.

    `named` are secrets named before the text.
    """
    said = list(runs(view))
    numbers = [each for each in said if _is_read_out(view, original, *each)]
    keyed = [each for each in said if each not in numbers and _is_keyed_in(view, original, *each)]
    here = topics(view.text) if numbers or keyed else []
    for digits, start, end in numbers + keyed:
        before = [topic for topic in here if topic.end <= start and start - topic.end <= _REACH]
        other = [cue.end() for cue in _OTHER.finditer(view.text, max(0, start - _REACH), start)]
        if before:
            before = [topic for topic in before if not other or topic.end >= other[-1]]
        elif named and not other and not _LETTERS.search(view.text, max(0, start - 12), start):
            before = [replace(topic, end=-1) for topic in named]
        kinds = [topic.kind for topic in before if not topic.thing or _enters(view.text, topic, start)]
        if 10 <= len(digits) <= 11 and digits[0] == "0" and "account" not in view.text.lower():
            kinds = [kind for kind in kinds if kind != "account number"]  # a bank has a telephone too
        if _OPENS.match(view.text, end):
            kinds.append("PIN")
        kind = _fitting(kinds, view.text, digits, start)
        if kind is not None:
            yield kind, start, end


def _is_keyed_in(view: View, original: str, digits: str, start: int, end: int) -> bool:
    """Whether four digits that could be a year or a time are what to type: "it's 1954"."""
    return (
        len(digits) == 4
        and _TYPED.search(view.text, max(0, start - 24), start) is not None
        and not values.is_amount(view.text, start)
        and not values.UNITS.match(view.text, end)
        and not is_scaled(original[slice(*view.origin(start, end))])
    )


def _enters(text: str, thing: Topic, start: int) -> bool:
    """Whether the code of `thing` is said at `start`: "door 1422" is something else."""
    between = _LETTERS.sub("", text[max(0, thing.end) : start])
    if re.search(r"\bnumber\b", between, re.IGNORECASE):
        return False
    if thing.end < 0 and is_bare(text):  # named by the agent who asked
        return True
    return _ENTERED.search(between) is not None or _IS.fullmatch(between) is not None


def read_out(view: View, original: str) -> Iterator[tuple[Secret, int, int]]:
    """Every dictated number that is not an order's or a telephone's, for a speaker who regrets it."""
    numbers = [each for each in runs(view) if _is_read_out(view, original, *each)]
    here = topics(view.text) if numbers else []
    for digits, start, end in numbers:
        other = [cue.end() for cue in _OTHER.finditer(view.text, max(0, start - 60), start)]
        kinds = [topic.kind for topic in here if topic.end <= start]
        if (
            _LETTERS.search(view.text, max(0, start - 12), start)
            or (other and not any(topic.end >= other[-1] for topic in here if topic.end <= start))
            or (9 <= len(digits) <= 11 and not kinds)
        ):
            continue
        kind = _fitting(kinds, view.text, digits, start)
        if kind is None and len(digits) > 3:
            kind = _fitting(["PIN", "card"], view.text, digits, start)
        if kind is not None:
            yield kind, start, end


def _fitting(kinds: Sequence[Secret], text: str, digits: str, start: int) -> Secret | None:
    """The last of `kinds` that a number may be."""
    for kind in reversed(kinds):
        least, most = _DIGITS.get(kind, (1, 0))
        if kind == "PIN" and _LOCKS.search(text, max(0, start - 24), start):
            least = 3  # a dial usually has three numbers
        if least <= len(digits) <= most:
            return kind
    return None


def _is_read_out(view: View, original: str, digits: str, start: int, end: int) -> bool:
    """Whether a number is said digit by digit, or written unlike an amount, date or year."""
    if len(digits) < 3:
        return False
    first, last = view.origin(start, end)
    if (
        is_scaled(original[first:last])
        or values.is_amount(view.text, start)
        or values.UNITS.match(view.text, end)
        or _STREET.match(view.text, end)
    ):
        return False
    words = re.findall(r"[^\W_]+", original[first:last].lower())
    single = sum(
        word in _SINGLE or word in _REPEATS or (word.isdecimal() and len(word) == 1) for word in words
    )
    if len(words) >= 3 and original.count(",", first, last) >= 2 and len(digits) <= 2 * len(words):
        return True
    if single >= 3 or (single == 2 and not _REPEATS.isdisjoint(words)):
        return bool(single * 2 >= len(words))
    written = len(digits) >= 4 and all(word.isdecimal() for word in words)
    return written and not _WRITTEN_YEAR.fullmatch(digits) and not _DATE.fullmatch(original, first, last)


def hidden(text: str, asked: str = "") -> Iterator[tuple[int, int]]:
    """Where a key is hidden, which opens a house like a code; `asked` is what was said before."""
    places = _ANYWHERE if _KEY.search(asked) else _HIDDEN
    yield from (place.span("place") for place in places.finditer(text))


def is_scaled(number: str) -> bool:
    """Whether a number is said as an amount: "four thousand three hundred"."""
    return any(word in _SCALES for word in re.findall(r"[^\W_]+", number.lower()))


def mixed(text: str) -> Iterator[tuple[int, int]]:
    """Words with both letters and digits, as in passwords and hardly anything else that is said."""
    yield from (word.span() for word in _SIGNED_WORD.finditer(text))


def names(text: str) -> Iterator[tuple[int, int]]:
    """Names inside a sentence, where the answer to a security question is."""
    yield from (name.span() for name in _NAMED.finditer(text))
