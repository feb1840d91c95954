"""Numbers as they are spoken, and whether a card or a telephone could be somebody's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_UNITS = {
    word: str(at) for at, word in enumerate("zero one two three four five six seven eight nine".split())
}
_UNITS |= {"oh": "0", "nought": "0", "naught": "0", "nil": "0"}
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_BELOW = {word: str(at) for at, word in enumerate(_TEENS, 10)}
_TENFOLD = {word: str(10 * at) for at, word in enumerate(_TENS, 2)}
_TIMES = {"double": 2, "triple": 3, "treble": 3}
_ZEROS = {"hundred": 2, "thousand": 3}
_BETWEEN = frozenset({",", "…", "and", "dash", "plus"})
"""What may stand between the figures of one number."""
_FICTION = re.compile(
    r"1?([2-9]\d\d)?55501\d\d"  # North America
    r"|0(1632960|7700900|207946\d|1(1[3-8]|[2-6]1)4960|1914980)\d{3}"  # United Kingdom
    r"|0491570(006|110|156|157|158|159)|0[2378](5550|7010)\d{4}"  # Australia
    r"|07017406\d\d|0980319[23]\d\d"  # Sweden
)
_MIGHT_BE = {
    "Czechia": r"(420)?\d{9}",
    "Denmark": r"(45)?\d{8}",
    "Germany": r"0\d{9,11}",
    "India": r"0?[6-9]\d{9}",
    "Ireland": r"0(8\d{8}|1\d{7}|[2-79]\d{6,8})",
    "Israel": r"0(5\d{8}|[2-489]\d{7})",
    "Nigeria": r"0\d{7,8}|0\d{10}",
    "Norway": r"(47)?\d{8}",
    "Singapore": r"(65)?\d{8}",
    "South Africa": r"0\d{9}",
    "Switzerland": r"0\d{9}",
    "Uganda": r"0\d{9}",
}
"""Numbers that somebody in this country might have; elsewhere those of nine to eleven figures."""
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[,;:.!?…]")


def spoken(text: str) -> Iterator[str]:
    """Words and marks of `text`, folded, numbers in figures: "double oh seven, sixty-four" is 00 7 , 64."""
    said = _TOKEN.findall(text.lower().replace("’", "'"))
    at = 0
    while at < len(said):
        figures, at = _number(said, at)
        yield figures


def _number(said: list[str], at: int) -> tuple[str, int]:
    """The number that begins at `at`, or the word there, and where the next one begins."""
    found, at = _below_thousand(said, at)
    return _and_more(said, at, found, "thousand", _below_thousand)


def _below_thousand(said: list[str], at: int) -> tuple[str, int]:
    found, at = _below_hundred(said, at)
    return _and_more(said, at, found, "hundred", _below_hundred)


def _below_hundred(said: list[str], at: int) -> tuple[str, int]:
    word, after = said[at], said[at + 1] if at + 1 < len(said) else ""
    if word in _ZEROS:
        return "1", at  # a hundred; the caller of this takes the word itself
    if word in _TIMES and after in _UNITS:
        return _UNITS[after] * _TIMES[word], at + 2
    if word in _TENFOLD and _UNITS.get(after, "0") != "0":
        return _TENFOLD[word][0] + _UNITS[after], at + 2
    return _UNITS.get(word) or _BELOW.get(word) or _TENFOLD.get(word, word), at + 1


def _and_more(
    said: list[str], at: int, found: str, unit: str, below: Callable[[list[str], int], tuple[str, int]]
) -> tuple[str, int]:
    """`found` times `unit` if that stands at `at`, and what is added to it."""
    if not found.isdigit() or said[at : at + 1] != [unit]:
        return found, at
    zeros = _ZEROS[unit]
    rest = at + 2 if said[at + 1 : at + 2] == ["and"] else at + 1
    if rest < len(said):
        more, then = below(said, rest)
        if more.isdigit() and len(more) <= zeros and more[0] != "0":
            return found + more.zfill(zeros), then
    return found + "0" * zeros, at + 1


def runs(text: str) -> Iterator[str]:
    """The numbers of `text` whose figures are said one after another or in groups, as 07700900143."""
    run = ""
    for figures in (*spoken(text), "."):
        if figures.isdigit():
            run += figures
        elif figures not in _BETWEEN and run:
            yield run
            run = ""


def is_card(number: str) -> bool:
    """Whether `number` passes the check of card numbers (Luhn), so that it might be somebody's."""
    doubled = [int(figure) * (1 + at % 2) for at, figure in enumerate(reversed(number))]
    return 12 <= len(number) <= 19 and sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


def is_telephone(number: str, country: str) -> bool:
    """Whether `number` might be somebody's in `country`: of a possible length and not kept for fiction."""
    possible = _MIGHT_BE.get(country, r"\d{9,11}")
    return not _FICTION.fullmatch(number) and re.fullmatch(possible, number) is not None


__all__ = ["is_card", "is_telephone", "runs", "spoken"]
