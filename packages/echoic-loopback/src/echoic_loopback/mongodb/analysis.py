"""How text is cut for search, after Lucene's analyzers: those named in `ANALYZERS`, and edits between words.

Word boundaries are those of Python's `\\w`, not the whole of Unicode's annex 29: for Latin, Greek and
Cyrillic text the words are the same; for Chinese, Japanese and Thai they are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import Stemmer
from rapidfuzz.distance import DamerauLevenshtein

_WORD = re.compile(r"\w+(?:['’.]\w+)*")
_WHITESPACE = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+")
# The stop words of Lucene's EnglishAnalyzer.
_STOP = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)
_PORTER = Stemmer.Stemmer("porter")


def _standard(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _english(text: str) -> list[str]:
    words = [word.removesuffix("'s").removesuffix("’s") for word in _standard(text)]
    return [str(_PORTER.stemWord(word)) for word in words if word not in _STOP]


ANALYZERS: Mapping[str, Callable[[str], list[str]]] = {
    "lucene.standard": _standard,
    "lucene.english": _english,
    "lucene.keyword": lambda text: [text],
    "lucene.whitespace": _WHITESPACE.findall,
    "lucene.simple": lambda text: [word.lower() for word in _LETTERS.findall(text)],
}
DEFAULT_ANALYZER = "lucene.standard"


def edits(one: str, other: str, at_most: int) -> int:
    """How many edits, a swap of neighbours being one, or `at_most` + 1 where it is more."""
    return DamerauLevenshtein.distance(one, other, score_cutoff=at_most)
