"""What a speech recogniser makes of a text, made up and the same at every run: no audio, no recogniser.

Real recognisers put words that sound alike and that they know well in place of others, of names most of all;
they lose some, add some, and write neither capitals nor punctuation. So does this, with the vocabulary of the
texts themselves: words sound alike by Double Metaphone (Philips 2000) and spelling; some names are spelled
another way. Errors are shared out as published analyses of conversational speech share them, among
substitutions, deletions and insertions about as six to three to one. Nothing here knows which words a
question is found by.

| strength | what happens | word error rate aimed at |
| --- | --- | --- |
| clean | nothing; capitals and punctuation stay | 0 |
| names | every name is misheard | as many words as are names |
| wer13 | any word is misheard, lost or added | 13 % |
| wer24 | the same, more | 24 % |

The rate that was reached is measured and part of every result; `word_errors` counts it.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rapidfuzz.distance import Levenshtein

from echoic.errors import InvalidInput
from echoic.text import STOP, cut, fold, sound

Strength = Literal["clean", "names", "wer13", "wer24"]
STRENGTHS: tuple[Strength, ...] = get_args(Strength)
SEED = 11
_RATE: Mapping[Strength, float] = {"wer13": 0.13, "wer24": 0.24}
_SHARES = (0.6, 0.9)
"""Below the first an error is a substitution, below the second a deletion, else an insertion."""
_CLOSEST = 6
"""Confusions of a word that are drawn from, nearest first."""
_MAX_APART = 0.34
"""Share of a sound code that may differ; what is further apart is not heard in its place."""
_RESPELLED = (
    ("ph", "f"), ("ck", "k"), ("c", "k"), ("k", "c"), ("y", "ie"), ("ie", "y"), ("ey", "y"), ("i", "y"),
    ("ll", "l"), ("l", "ll"), ("nn", "n"), ("n", "nn"), ("tt", "t"), ("z", "s"), ("s", "z"), ("ee", "ea"),
    ("ea", "ee"), ("oh", "o"), ("ai", "ay"), ("ei", "ai"), ("f", "ph"), ("j", "g"),
)  # fmt: skip
"""How the same sounds are also written. Used where the sound stays the same: Jon is heard as John."""
_FILLERS = ("the", "a", "and", "uh", "to", "it", "i", "um")
_WRITTEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_TOKEN = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?…:\"“”\[(]\s*$")
_NO_NAMES = frozenset(
    "i i'm i've i'd i'll ok okay god january february march april may june july august september october"
    " november december monday tuesday wednesday thursday friday saturday sunday".split()
)
"""Written with a capital, and no names a recogniser would not know."""
_LEAST_SPELLED = 2
"""Letters; shorter words have no sound worth confusing."""


@dataclass(frozen=True, slots=True)
class Errors:
    """How many words a hypothesis gets wrong."""

    words: int
    """Of the reference."""
    wrong: int
    """Substituted, deleted or inserted: the Levenshtein distance over words."""

    @property
    def rate(self) -> float:
        """The word error rate."""
        return self.wrong / self.words if self.words else 0.0

    def __add__(self, other: Errors) -> Errors:
        """Both together."""
        return Errors(self.words + other.words, self.wrong + other.wrong)


def word_errors(reference: str, hypothesis: str) -> Errors:
    """The errors of `hypothesis` against `reference`; capitals and punctuation do not count."""
    said, heard = cut(reference), cut(hypothesis)
    return Errors(len(said), Levenshtein.distance(said, heard))


class Recogniser:
    """Mishears texts of one corpus. Equal texts are heard equally."""

    def __init__(self, texts: Iterable[str], names: Iterable[str] = (), seed: int = SEED) -> None:
        """Takes its vocabulary from `texts`.

        Args:
            texts: all that is kept and asked: what may be heard in place of a word is a word of these.
            names: people's names that are known beforehand, such as the speakers'.
            seed: another seed, another day.
        """
        written = list(texts)
        self._seed = seed
        self._counts = Counter(word for text in written for word in cut(text))
        given = (word for name in names for word in cut(name))
        self.names = frozenset(_names_in(written)) | frozenset(given)
        # by first sound: what a listener confuses least is the onset of a word
        self._by_letter: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for word in sorted(self._counts):
            for code in sound(word):
                self._by_letter[code[0]].append((word, code))
        self._confused: dict[str, list[str]] = {}

    def hear(self, text: str, strength: Strength) -> str:
        """`text` as it is heard.

        Raises:
            InvalidInput: there is no such strength.
        """
        if strength not in STRENGTHS:
            raise InvalidInput(f"unknown strength {strength!r}: use one of {', '.join(STRENGTHS)}")
        if strength == "clean":
            return text
        draw = random.Random(f"{self._seed} {strength} {text}")  # noqa: S311 - the same at every run is meant
        heard = [
            word
            for token in _TOKEN.findall(text)
            for said in cut(token)
            for word in self._heard(said, strength, draw)
        ]
        return " ".join(heard) or fold(text)

    def _heard(self, word: str, strength: Strength, draw: random.Random) -> Sequence[str]:
        """What is heard in place of one folded word: none, one or two words."""
        if strength == "names":
            return [self._misheard(word, draw)] if word.removesuffix("'s") in self.names else [word]
        if draw.random() >= _RATE[strength]:
            return [word]
        kind = draw.random()
        if kind < _SHARES[0]:
            return [self._misheard(word, draw)]
        return [] if kind < _SHARES[1] else [word, draw.choice(_FILLERS)]

    def _misheard(self, word: str, draw: random.Random) -> str:
        bare = word.removesuffix("'s")
        near = self.confusions(bare)
        if not near:  # nothing sounds like it: the word is cut short or gets an ending
            return bare[:-1] if len(bare) > _LEAST_SPELLED else f"{bare}s"
        # what is said often is what a recogniser's language model expects
        chosen = draw.choices(near, weights=[1 + self._counts[other] ** 0.25 for other in near])[0]
        return chosen + word[len(bare) :]

    def confusions(self, word: str) -> list[str]:
        """Words of the corpus that may be heard in place of `word`, nearest first, `_CLOSEST` at most."""
        if word not in self._confused:
            self._confused[word] = self._nearest(word)
        return self._confused[word]

    def _nearest(self, word: str) -> list[str]:
        apart: dict[str, float] = {}
        for code in sound(word):
            for other, other_code in self._by_letter.get(code[0], []):
                by_sound = Levenshtein.normalized_distance(code, other_code)
                if by_sound <= _MAX_APART and not self._same(word, other):
                    by_spelling = Levenshtein.normalized_distance(word, other)
                    apart[other] = min(apart.get(other, 9.0), 2 * by_sound + by_spelling)
        if word in self.names or not apart:
            apart |= dict.fromkeys(_respelled(word), 0.0)
        same_kind = [other for other in apart if (other in STOP) == (word in STOP)]
        return sorted(same_kind or apart, key=lambda other: (apart[other], other))[:_CLOSEST]

    def _same(self, word: str, other: str) -> bool:
        """Whether hearing `other` would be no error, or would bring somebody else in by name."""
        bare = other.removesuffix("'s")
        return bare == word or bare in self.names


def _respelled(word: str) -> list[str]:
    """Other spellings with the same sound."""
    changed = {
        other.join((word[:at], word[at + len(written) :]))
        for written, other in _RESPELLED
        # the last place it stands at, and not the first letter: an onset is rarely written another way
        if (at := word.rfind(written)) > 0
    }
    same = {other for other in changed - {word} if sound(other) and sound(other)[0] in sound(word)}
    return sorted(same)[: _CLOSEST // 2]


def _names_in(texts: Sequence[str]) -> list[str]:
    """Words written with a capital inside of sentences more often than without one anywhere."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for found in _WRITTEN.finditer(text):
            word = found[0]
            bare = fold(word).removesuffix("'s")
            if word[0].islower():
                small[bare] += 1
            elif found.start() and not _SENTENCE_END.search(text[: found.start()]):
                capital[bare] += 1
    return [
        word
        for word, times in capital.items()
        if times > small[word] and len(word) > 1 and word not in STOP | _NO_NAMES
    ]


__all__ = ["SEED", "STRENGTHS", "Errors", "Recogniser", "Strength", "word_errors"]
