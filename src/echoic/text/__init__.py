"""How a text becomes words: cut, folded, stemmed, converted to sounds; and tables of words and patterns.

Pure; independent of memories.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

import Stemmer
from metaphone import doublemetaphone

# -- tables of words and patterns

START: Final = r"(?<![^\W_])"
"""Matches where no letter or digit precedes."""
END: Final = r"(?![^\W_])"
"""Matches where no letter or digit follows."""
_SECTION: Final = re.compile(r"\[[a-z_]+(?:\.[a-z0-9_]+)*\]")
_NAMED: Final = re.compile(r"\{([a-z][a-z0-9 ]*)\}")


def any_of(words: str) -> str:
    """A group that matches one of `words`, which are separated by white space.

    A word may itself be a pattern; "_" stands for white space between the words of a phrase.
    """
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"


@cache
def word_lists(package: str) -> Mapping[str, str]:
    """The word lists in `words.txt` of `package` by name, each as words separated by white space.

    A line "[name]" begins a list, and "#" a comment. A word that begins with "=" stands for all words of the
    list of that name, which must come first; otherwise KeyError is raised.
    """
    lists: dict[str, str] = {}
    for name, lines in _named(package, "words.txt").items():
        words = (word for line in lines for word in line.partition("#")[0].split())
        lists[name] = " ".join(lists[word[1:]] if word[0] == "=" else word for word in words)
    return MappingProxyType(lists)


def _named(package: str, file: str) -> dict[str, list[str]]:
    """The lines below each line "[name]" in a data file of `package`."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (get_data(package, file) or b"").decode().splitlines():
        if line.startswith("["):
            lines = found.setdefault(line.strip("[] "), [])
        else:
            lines.append(line)
    return found


@cache
def sections(package: str, file: str) -> Mapping[str, list[str]]:
    """The lines of each section "[name]" in a data file of `package`, without blank lines and comments."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (get_data(package, file) or b"").decode().splitlines():
        if _SECTION.fullmatch(line):
            lines = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return MappingProxyType(found)


@cache
def patterns(package: str, name: str) -> Mapping[str, str]:
    """The patterns in `<name>.txt` of `package`, by name: regular expressions, or words for `any_of`.

    A line "[name]" begins one, and "#" a comment. Its lines are indented by two spaces, and joined. "{name}"
    stands for a pattern above, or for any word of that list in `words.txt`; otherwise KeyError is raised.
    """
    found: dict[str, str] = {}
    for each, lines in _named(package, f"{name}.txt").items():
        joined = "".join(line[2:] for line in lines if line.startswith("  "))
        found[each] = _NAMED.sub(
            lambda named: found.get(named[1]) or any_of(word_lists(package)[named[1]]), joined
        )
    return MappingProxyType(found)


# -- how a text becomes words

ANALYSIS = 4
"""Version of all that follows; a store records it, and is indexed again if it differs.

Stores keep what is made here, and queries are cut the same way, so a change changes the meaning of stored
indexes: raise the version then."""

# Stop words. Worth about half of BM25's gain from analysis on
# LoCoMo (R@10 50 -> 60 with stemming): spoken questions are full of them.
STOP = frozenset(
    """
    a about above after again all also am an and any are aren't as at be because been before being below
    between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
    each else ever few for from further get gets getting go goes going gonna got had hadn't has hasn't have
    haven't having he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm
    i've if in into is isn't it it'd it'll it's its itself just let let's like me more most much my myself no
    nor not now of off oh ok okay on once only or other our ours ourselves out over own please really same
    she she'd she'll she's should shouldn't so some such than that that's the their theirs them themselves
    then there there's these they they'd they'll they're they've this those through to too uh um under until
    up us very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's which
    while who who's whom whose why why's will with won't would wouldn't yeah yes you you'd you'll you're
    you've your yours yourself yourselves
    """.split()
)

# Letters and digits of any script, with apostrophes inside ("o'brien", "don't").
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ASCII_WORD = re.compile(_WORD.pattern, re.ASCII)
# Scripts written without spaces: cut into overlapping pairs, the usual stand-in for a dictionary.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")

FORGOTTEN, TAKEN_BACK = "[forgotten]", "[taken back]"
"""Placeholders for destroyed words, and for stored words that are not recalled."""
MARKER = re.compile(r"\[(?:forgotten|taken back)\]")

_stemmer = Stemmer.Stemmer("english", 65536)
_stemming = threading.Lock()  # the stemmer's own cache is not safe to share between threads


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text, as it can be found."""

    text: str
    """Folded: lower case, no accents."""
    stem: str
    codes: tuple[str, ...]
    """How it may sound: one or two Double Metaphone codes; empty if it has no letters a-z."""

    term: int = field(init=False, compare=False, repr=False)
    """The stem as a 32-bit number. Two stems of one user share one with probability about n/2³²."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "term", zlib.crc32(self.stem.encode()))


def fold(text: str) -> str:
    """Lower case without accents or compatibility forms: "José" and "jose" are one."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).replace("’", "'")


def cut(text: str) -> list[str]:
    """The folded words of `text` in order, stop words included."""
    folded = fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded)  # the same words, found faster
    words: list[str] = _WORD.findall(folded)
    if _UNSPACED.search(folded) is None:
        return words
    found: list[str] = []
    for word in words:
        run = _UNSPACED.search(word)
        if run is None:
            found.append(word)
        else:
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
    return found


def visible(text: str) -> str:
    """`text` without the placeholders of hidden and destroyed words."""
    if "[" not in text or not MARKER.search(text):
        return text
    left = MARKER.sub(" ", text)
    return " ".join(left.split()) if _WORD.search(left) else ""


def content_words(text: str) -> list[Word]:
    """The content words of `text` in order, repeated words repeated."""
    return [word_of(word) for word in cut(text) if word not in STOP]


def content_stems(text: str) -> frozenset[str]:
    """The stems of the content words of `text`."""
    return frozenset([word_of(word).stem for word in cut(text) if word not in STOP])


@lru_cache(maxsize=65536)
def word_of(word: str) -> Word:
    """`word`, already folded, with its stem and sound."""
    bare = word.removesuffix("'s")
    with _stemming:
        stem: str = _stemmer.stemWord(bare)
    return Word(word, stem, sound(bare))


@lru_cache(maxsize=65536)
def sound(word: str) -> tuple[str, ...]:
    """Double Metaphone codes of a folded word (Philips 2000), the likelier first; empty if it has none."""
    letters = "".join(c for c in word if "a" <= c <= "z")
    if len(letters) < 2:
        return ()
    first, second = doublemetaphone(letters)
    return tuple(dict.fromkeys(code for code in (first, second) if code))
