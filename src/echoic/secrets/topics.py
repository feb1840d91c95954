"""Secrets that are said near the words for them, not behind them: "the box by the meter, seven oh three one".

`labels` reads what a sentence says of a cue. People say more loosely what they know by heart: the
number comes a clause or a sentence later, or the agent named what it is. A number that is said digit by digit
identifies something, so the nearest words that say what decide: those for a secret, or those for an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from echoic.secrets import values
from echoic.secrets.labels import CODE, LABELS, Secret, harmless, is_plain_code
from echoic.text import END, START, any_of, word_lists
from echoic.text.spoken_numbers import ENGLISH, View, is_bare, runs

_LISTS = word_lists("echoic.secrets")

_DIGITS: dict[Secret, tuple[int, int]] = {
    "PIN": (4, 8),
    "security code": (3, 4),
    "one-time code": (4, 8),
    "password": (3, 12),
    "card": (8, 19),
    "account number": (6, 20),
    "ID number": (6, 20),
}
"""How many digits a number has that may be one."""
_REACH = 160
"""Characters between what names a secret and its number, at most."""
_SINGLE = frozenset(word for word in ENGLISH.vocabulary if len(ENGLISH.numerals.get((word,), "")) == 1)
_REPEATS = frozenset(ENGLISH.repeats)
# What is opened with a number, whoever says how.
_THINGS = any_of(_LISTS["things"])
_OPENED = re.compile(START + _THINGS + END, re.IGNORECASE)
_OPENS = re.compile(
    rf"\s*,?\s*(?:(?:gets?|lets?)\s+(?:you|him|her|them)\s+(?:in|through|past)\b|(?:(?:'s|is|that's|that\s+is|it's|which"
    rf"\s+is)\s+(?:for\s+|to\s+)?|(?:on|into|for|opens|unlocks|disarms)\s+)(?:the|my|our|his|her|their)\s+"
    rf"(?:[a-z]+\s+){{0,2}}{_THINGS}{END})",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:(?:three|3|number|numbers|digits|code|ones?)\s+(?:\w+\s+){0,2}?(?:behind|(?:on|of|at|from)\s+(?:the|its)\s+"
    r"(?:back|reverse))|(?:the|new)\s+back\s+(?:one|number|code|digits)|back\s+of\s+(?:the|my)\s+card)\b",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"\b(?:(?:four|five|six|eight|[4-8])[\s-]digits?\s+(?:thing|number|one)|(?:sent|texted|send|sending)\s+(?:you\s+)?"
    r"an?\s+(?:text|sms|message|notification)|(?:number|digits|figures)\s+(?:on|in|from|by)\s+(?:the|my|that|your)\s+"
    r"(?:message|text|sms|email|app))\b",
    re.IGNORECASE,
)
_BANK = re.compile(
    r"\b(?:bank|building\s+society|branch|direct\s+debit|standing\s+order|wire|giro)\b", re.IGNORECASE
)
_OTHER = re.compile(
    START + any_of(_LISTS["other"]) + END,
    re.IGNORECASE,
)
_STREET = re.compile(
    r"\s+(?:by|over|times)\b|\s*,?\s*(?:[A-Z][\w'’-]+\s+){1,3}"
    r"(?:street|st|road|rd|avenue|ave|lane|drive|close|way|row|court|place)\b",
    re.IGNORECASE,
)
DECLINES = re.compile(
    r"""\b(?:(?:don't|do\s+not|never|needn't|need\s+not|should(?:n't|\s+not)|ought\s+not|must(?:n't|\s+not)|didn't
    |better\s+not)\s+(?:\w+\s+){0,3}?(?:tell|say|said|read|give|share|send|speak|shout)\b(?!\s+(?:him|her|my|his)\b)
    |(?:i|we|i've|i'm|i'll|we've|i'd)\s+(?:\w+\s+){0,2}?(?:not|didn't|don't|won't|haven't|never|nothing|none)
    \s+(?:\w+\s+){0,2}?(?:writ(?:e|ing|ten)|wrote|not(?:e|ing|ed)|keep(?:ing)?|kept|retain(?:ed)?|hear|heard
    |stor(?:e|ing|ed)|record(?:ed|ing)?|tak(?:e|ing|en)\s+(?:\w+\s+){0,2}?down|repeat(?:ing)?
    |need(?:ed)?\s+(?:that|it|to\s+(?:know|hear)))
    |(?:i|i've|we've|we)\s+(?:already\s+)?(?:heard|kept|retain|wrote)\s+(?:nothing|none|neither)
    |(?:i|i've)\s+(?:already\s+)?(?:forgotten|forgot|erased|deleted)\s+(?:it|that|them|those)
    |not\s+(?:written|noted|writing|noting|kept|taken)|is(?:n't|\s+not)\s+(?:noted|kept|written)
    |never\s+to\s+me)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What an agent says of a secret that it was told."""
REGRETS = re.compile(
    r"""\b(?:(?:should(?:n't|\s+not)|ought\s+not|(?:was|am|i'm)\s*(?:n't|\s+not)\s+(?:supposed|meant|allowed))\s+
    (?:to\s+)?(?:have\s+)?(?:said|say|told|tell|begun|read|give|given|shared?)
    |did\s+i\s+(?:just\s+)?say\s+(?:that|it)|said\s+(?:it|that)\s+(?:aloud|loud|out\s+loud)
    |forget\s+(?:that\s+)?i\s+said|(?:it|that)(?:'s|\s+is)\s+(?:a\s+)?secret
    |(?:don't|do\s+not)\s+(?:write|note|keep|repeat)\s+(?:that|it|this))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What somebody says who told a secret."""
_LOCKS = re.compile(r"\b(?:(?:pad)?locks?|comb(?:o|ination)|dial)(?:'s|\s+is|\s+was)?\W*$", re.IGNORECASE)
_LETTERS = re.compile(r"(?<![^\W_])(?:[A-Z][ ,.-]{0,2}){1,4}$")
_ABOUT_ANSWERS = re.compile(r"\b(?:security|secret)\s+(?:question|word|answer)s?\b", re.IGNORECASE)
_SCALES = frozenset("hundred thousand million hundreds thousands lakh crore".split())
_NAMED = re.compile(r"(?<=[a-z,:] )(?!I\b)[^\W\d_a-z][\w'’-]+(?:\s+(?!I\b)[^\W\d_a-z][\w'’-]+){0,3}")
_SAYS = (
    r"(?:\b(?:press|push|wants?|do|does|takes?|use|try|punch|enter|type|key(?:\s+in)?|tap|hit|put\s+in"
    r"|opens?\s+(?:with|at|on|to)|it's|it\s+is|with|set\s+to|still|code|comb(?:o|ination))|\w's)\s*$"
)
_TYPED = re.compile(_SAYS, re.IGNORECASE)
_ENTERED = re.compile(rf"{_SAYS}|[,:.?!;]\s*$", re.IGNORECASE)
_DATE = re.compile(r"[0-3]?[0-9][ .-][0-3]?[0-9][ .-](?:19|20)?[0-9]{2}|[0-2]?[0-9] [0-5][05]")
_YEAR = re.compile(r"(?:1[89]|20)[0-9]{2}")
_SIGNED_WORD = re.compile(r"(?<!\S)(?=[^\s,.]*[0-9])(?=[^\s,.]*[A-Za-z])[^\s,.;:!?]{5,64}")


_PLACE = (
    r"(?P<place>(?:(?:under(?:neath)?|beneath)\s+(?:the|a|an|our|one\s+of\s+the)"
    r"(?:\s+(?!(?:and|but|so|for|if|when|because|to|or|by|at|on|near|with|name|number|barcode|account|policy)\b)[\w'-]+){1,4}"
    r"|(?:behind|inside|in|above|on\s+top\s+of)\s+(?:the|a|an|my|our|one\s+of\s+the)\s+(?:[\w'-]+\s+){0,3}?"
    r"(?:(?:flower)?pots?|planter|(?:door)?mat|rock|stone|bricks?|gnome|frog|bin|tub|barrel|urn|ledge|gutter|tile|log"
    r"|nest(?:ing)?(?:\s?box)?|birdhouse|wheel\s+arch|bumper|door\s?frame|mailbox|letterbox|meter(?:\s+(?:box|cupboard))?"
    r"|watering\s+can|boots?|wellies|welly|bucket|woodpile|hedge|ivy|drainpipe|shutters?|lamp|lantern)\b))"
)
_HIDDEN = re.compile(
    r"\b(?:(?:leave|left|hide|hid|put|keep|kept|there's|there\s+is|find|get|got|take)\s+(?:\w+\s+){1,4}keys?"
    r"|keys?(?:'s|\s+(?:is|are|sits?|lives?|hangs?|stays?|will\s+be|lies|hidden|kept)))\b"
    r"(?:\W+(?:under|the|uh|um|er|eh|a|just|still|always|out|back|hidden|kept|left|there|outside)\b){0,6}\W+"
    + _PLACE,
    re.IGNORECASE,
)
_ANYWHERE = re.compile(r"\b" + _PLACE, re.IGNORECASE)
_KEY = re.compile(r"\b(?:keys?|get\s+in|let\s+(?:myself|himself|herself|themselves)\s+in)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """What was named, and where."""

    kind: Secret
    end: int
    """Where its words end; -1 where they stand in another text."""
    thing: bool = False
    """Whether it is only what is opened with a number."""


def topics(text: str) -> list[Topic]:
    """The secrets that `text` names, in order of place."""
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
    """Numbers of `view` that are read out after what names a secret.

    Args:
        view: a reading.
        original: the text it reads.
        named: what was named before the text began.
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
    """Whether four digits that could be a year or a time stand where one says what to type: "it's 1954"."""
    return (
        len(digits) == 4
        and _TYPED.search(view.text, max(0, start - 24), start) is not None
        and not values.is_amount(view.text, start)
        and not values.UNITS.match(view.text, end)
        and not is_scaled(original[slice(*view.origin(start, end))])
    )


def _enters(text: str, thing: Topic, start: int) -> bool:
    """Whether what opens `thing` is said at `start`: "door 1422" says something else."""
    between = _LETTERS.sub("", text[max(0, thing.end) : start])
    if re.search(r"\bnumber\b", between, re.IGNORECASE):
        return False
    if thing.end < 0 and is_bare(text):  # named by who asked
        return True
    return _ENTERED.search(between) is not None or re.fullmatch(r"\s+(?:is|was)\s+", between) is not None


def read_out(view: View, original: str) -> Iterator[tuple[Secret, int, int]]:
    """Every number that is read out and is not an order's or a telephone's, where somebody regrets it."""
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
            least = 3  # a dial has three numbers more often than four
        if least <= len(digits) <= most:
            return kind
    return None


def _is_read_out(view: View, original: str, digits: str, start: int, end: int) -> bool:
    """Whether a number is said digit by digit, or written as no amount, date or year is."""
    first, last = view.origin(start, end)
    if (
        len(digits) < 3
        or is_scaled(original[first:last])
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
    return written and not _YEAR.fullmatch(digits) and not _DATE.fullmatch(original, first, last)


def hidden(text: str, asked: str = "") -> Iterator[tuple[int, int]]:
    """Where a key is hidden, which opens a house as its code does; `asked` is what somebody said before."""
    places = _ANYWHERE if _KEY.search(asked) else _HIDDEN
    yield from (place.span("place") for place in places.finditer(text))


def is_scaled(number: str) -> bool:
    """Whether a number is said as an amount: "four thousand three hundred"."""
    return any(word in _SCALES for word in re.findall(r"[^\W_]+", number.lower()))


def mixed(text: str) -> Iterator[tuple[int, int]]:
    """Words of letters and digits in one, as passwords are and hardly anything else that is said."""
    yield from (word.span() for word in _SIGNED_WORD.finditer(text))


def names(text: str) -> Iterator[tuple[int, int]]:
    """Names inside a sentence, which is where an answer to a security question stands."""
    yield from (name.span() for name in _NAMED.finditer(text))
