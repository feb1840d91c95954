"""A text as a rule reads it, with the way back to the original. One character may stand for several, or
none.

`written` takes away what hides data from a pattern but not from a reader: full-width and other digits,
marks and zero-width characters in between, the many dashes and spaces. What was *said* is read by
`spoken`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_DROPPED = frozenset({"Cf", "Mn", "Me", "Cc"})
# Letters by category, but nothing is seen: Hangul fillers, and the Braille blank.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_ALIKE = {
    **dict.fromkeys("\u2212\u2043\u02d7\u30fc", "-"),
    **dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u00ab\u00bb\u201e\u2033", '"'),
    **dict.fromkeys("\u3002\uff61\u00b7\u2022\u2219\u22c5\u30fb\u2024\u06d4", "."),
    **dict.fromkeys("\u2044\u2215", "/"),
    "\u2795": "+",
    "\u00df": "ss",
    "\n": "\n",
    "\r": "\n",
    "\u0085": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
}


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text."""

    text: str
    starts: Sequence[int]
    """For each character of `text`, where in the original what it stands for begins."""
    ends: Sequence[int]
    """Likewise, one past where that ends."""
    spoken: bool = False
    """Whether words were read as the digits and signs they name."""

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]`, not empty, stands in the original."""
        return self.starts[start], self.ends[end - 1]


def written(text: str) -> View:
    """`text` in plain letters, digits and signs; letter case is kept."""
    length = len(text)
    if text.isascii() and text.isprintable():
        return View(text, range(length), range(1, length + 1))
    plain = [_plain(character) for character in text]
    starts = [place for place, signs in enumerate(plain) for _ in signs]
    return View("".join(plain), starts, [place + 1 for place in starts])


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    alike = _ALIKE.get(character)
    if alike is not None:
        return alike
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in _DROPPED or character in _INVISIBLE:
        return ""
    if category == "Pd":
        return "-"
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    return _decomposed(character)


def _decomposed(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character)
    kept = "".join(_ALIKE.get(c, c) for c in parts if unicodedata.category(c) not in _DROPPED)
    return " " if kept.isspace() else kept
