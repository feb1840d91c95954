"""The readings of a text: as it is written, and as it was said, without what is said between two digits.

"four two uh four two, got it, four two" is one number. What stands between its parts (fillers, confirmations,
a correction) is left out of the spoken reading, so that every rule sees the number in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.text.numerals import ENGLISH, OTHERS
from echoic.text.spoken import Token, is_no_digit, readings, tokens
from echoic.text.views import View, written

BETWEEN = frozenset(
    """um uh uhm uhh er erm eh hmm hm mm mhm ah okay ok k so then and next followed by right yes yeah yep yup
    got it sorry no nope wait i mean let me see hold on scratch that make actually again that's thats it's its
    you know like well please go comma dash hyphen minus space dot stroke correction oops finally lastly hang
    sure alright perfect great thanks in there's there is just pause rather excuse""".split()
)
"""Words that may stand between two digits of one number."""
_SIGNS = frozenset(",.;:-!?\u2026/")
_MOST_BETWEEN = 7
_ANY = re.compile(r"[0-9]")
_HOMOPHONES = {
    "to": "two",
    "too": "two",
    "for": "four",
    "fore": "four",
    "ate": "eight",
    "won": "one",
    "tree": "three",
}
_NUMBERS = ENGLISH.vocabulary | frozenset(ENGLISH.repeats)
_ALL_NUMBERS = _NUMBERS.union(*(tongue.vocabulary for tongue in OTHERS))


def views_of(text: str) -> list[View]:
    """The readings in which secrets are looked for."""
    plain = written(text)
    words = tokens(plain.text)
    if not any(word.text in _ALL_NUMBERS or word.text == "o" or len(word.text) == 1 for word in words):
        gathered = _gathered(plain, words) if _ANY.search(plain.text) else None
        return [plain] if gathered is None else [plain, gathered]
    joined = _gathered(plain, words)
    if joined is None:
        return [plain, *readings(plain, words)]
    again = tokens(joined.text)
    return [plain, joined, *readings(joined, again), *readings(plain, words)]


def _gathered(view: View, words: list[Token]) -> View | None:
    """`view` without what stands between two digits of one number; None where nothing does."""
    pieces: list[tuple[int, int]] = []
    swaps: dict[int, str] = {}
    done, place = 0, 0
    while place < len(words):
        if not _is_number(words[place].text) or is_no_digit(words, place):
            place += 1
            continue
        following = place + 1
        while (
            following < len(words)
            and following - place <= _MOST_BETWEEN
            and (words[following].text in BETWEEN or words[following].text in _SIGNS)
        ):
            following += 1
        if following < len(words) and _is_number(words[following].text) and not is_no_digit(words, following):
            between = words[place + 1 : following]
            if any(word.text in BETWEEN for word in between) or len(between) > 1 or _ends(view, between):
                pieces.append((done, words[place].end))
                done = words[following].start
        elif (
            following == place + 1
            and following + 1 < len(words)
            and words[following].text in _HOMOPHONES
            and _is_single(words[place].text)
            and _is_single(words[following + 1].text)
        ):
            swaps[words[following].start] = words[following].text
        place = max(place + 1, following)
    if not pieces and not swaps:
        return None
    return _written_out(view, [*pieces, (done, len(view.text))], swaps)


def _ends(view: View, between: list[Token]) -> bool:
    """Whether a sign between two numbers ends a sentence: "4242. 4242."."""
    return (
        len(between) == 1
        and between[0].text in ".!?\u2026"
        and view.text[between[0].end : between[0].end + 1] == " "
    )


def _is_number(word: str) -> bool:
    return word.isdecimal() or (word in _NUMBERS)


def _is_single(word: str) -> bool:
    return (word.isdecimal() and len(word) == 1) or word in ENGLISH.vocabulary or word in ENGLISH.repeats


def _written_out(view: View, pieces: list[tuple[int, int]], swaps: dict[int, str]) -> View:
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def put(said: str, first: int, last: int) -> None:
        text.append(said)
        starts.extend([view.starts[first]] * len(said))
        ends.extend([view.ends[last - 1]] * len(said))

    for number, (first, last) in enumerate(pieces):
        if number:
            put(" ", max(0, first - 1), first)
        at = first
        for begin, word in sorted(swaps.items()):
            if first <= begin < last:
                text.append(view.text[at:begin])
                starts.extend(view.starts[at:begin])
                ends.extend(view.ends[at:begin])
                put(_HOMOPHONES[word], begin, begin + len(word))
                at = begin + len(word)
        text.append(view.text[at:last])
        starts.extend(view.starts[at:last])
        ends.extend(view.ends[at:last])
    return View("".join(text), starts, ends)


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LEADS = BETWEEN | frozenset(
    """it's its it is that's thats is the number my yeah yes sure okay of course so that would be here oh hi
    hello first second last part rest digits i'd say think one uhhuh here's heres thank you ready a from cool
    good great alrighty continuing on""".split()
)


def is_bare(text: str) -> bool:
    """Whether nothing is said but a number: digits, and what stands before and between them."""
    words = [word[0].lower() for word in _WORD.finditer(text)]
    numbers = [word for word in words if _is_number(word) or word == "o"]
    return bool(numbers) and all(_is_number(word) or word in _LEADS or len(word) == 1 for word in words)


_RUN = re.compile(r"(?<![A-Za-z0-9])[#*]?[0-9]+(?:[ .,/_:-]{1,3}[0-9]+)*(?![A-Za-z])")


def runs(view: View) -> Iterator[tuple[str, int, int]]:
    """Every number of a view: its digits, and where it stands."""
    for found in _RUN.finditer(view.text):
        yield re.sub(r"[^0-9]", "", found[0]), found.start(), found.end()


__all__ = ["BETWEEN", "is_bare", "runs", "views_of"]
