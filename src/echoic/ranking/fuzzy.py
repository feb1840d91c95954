"""The words of one partition, indexed to find near words without trying each.

By spelling and sound only; meaning is left to the vectors. Kept in the partition's scratch. A vocabulary only
grows, so a lexicon is updated by adding new words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein, Levenshtein

from echoic.partition import Partition, Vocabulary
from echoic.ranking.indexing import KEY_FACET, SOURCE_FACET, SPEAKER_FACET, speaker_of_facet
from echoic.text import Word

_KEY = "ranking.lexicon"
_SPEAKERS = "ranking.speakers"
_FACETS = frozenset({SPEAKER_FACET, KEY_FACET, SOURCE_FACET})

# Closeness of a word to one that was misheard or mistyped.
EDIT_WEIGHTS = (0.0, 0.8, 0.5)
"""Closeness by the number of edits (Damerau-Levenshtein)."""
SAME_SOUND, NEAR_SOUND = 0.7, 0.4
"""Equal Double Metaphone codes; codes one edit apart if the codes or the words begin alike."""
# Codes leave out vowels: "july" sounds like "wall", "writing" like "ready". Unless the word is a name, which
# may be spelled as it likes ("Izik", "Isaac"), some letters must agree too. On LoCoMo with names misheard
# that is worth 0.5 points of R@10.
SAME_SOUND_SPELLING, NEAR_SOUND_SPELLING = 0.4, 0.6
_MIN_NEAR_CODE = 2
_MAX_KNOWN = 512  # cached words
MAX_NEAR = 5
"""The most near words for one, the nearest first."""


def edits_allowed(word: str) -> int:
    """How many edits may separate `word` and the one meant: 1 from four letters, 2 from eight."""
    return 0 if len(word) < 4 else 1 if len(word) < 8 else 2


class _Spelled:
    """A growing list of strings, filtered by their letters to find near ones."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._letters: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._lengths: NDArray[np.int32] = np.zeros(0, np.int32)

    def extend(self, texts: list[str]) -> None:
        letters, lengths = _letters_of(texts)
        self._letters = np.concatenate([self._letters, letters])
        self._lengths = np.concatenate([self._lengths, lengths])
        self.texts += texts

    def near(self, text: str, edits: int) -> list[int]:
        """Indices of every string within `edits` of `text`, and of some others.

        An edit adds, drops or replaces at most one letter: at most two of the 32 bits change.
        """
        letters = np.uint32(reduce(or_, (1 << (ord(letter) & 31) for letter in text), 0))
        changed = np.bitwise_count(self._letters ^ letters)
        apart = np.abs(self._lengths - len(text))
        return np.flatnonzero((changed <= 2 * edits) & (apart <= edits)).tolist()

    @property
    def nbytes(self) -> int:
        return self._letters.nbytes + self._lengths.nbytes + 8 * len(self.texts)


def _letters_of(texts: list[str]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    lengths = np.fromiter(map(len, texts), np.int32, len(texts))
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    if not texts:
        return np.zeros(0, np.uint32), lengths
    bits = np.uint32(1) << (points & np.uint32(31))
    # No text is empty; for an empty one reduceat would return its neighbour's letters.
    return np.bitwise_or.reduceat(bits, np.cumsum(lengths) - lengths), lengths


class Lexicon:
    """Near words and speakers' names of one partition."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self._names: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Facet of a named speaker -> their number and the words of the name."""
        self._taken = 0
        self._revision = 0
        self._words: list[str] = []
        self._spelled = _Spelled()
        """The words without "'s"."""
        self._codes = _Spelled()
        self._known: dict[tuple[str, bool], dict[str, float]] = {}
        """Results of `near` since the last new word: a question is searched many times while it is spoken."""

    @classmethod
    def of(cls, partition: Partition) -> Lexicon:
        """The current lexicon of `partition`. The caller holds the partition's lock."""
        lexicon = partition.scratch.get(_KEY)
        if lexicon is None:
            lexicon = partition.scratch[_KEY] = cls()
        assert isinstance(lexicon, cls)
        if lexicon._revision != partition.revision:
            lexicon.update(partition.vocabulary)
            lexicon._revision = partition.revision
        return lexicon

    @classmethod
    def speakers_of(cls, partition: Partition) -> dict[int, tuple[str, ...]]:
        """Number of each named speaker -> the words of the name. The caller holds the partition's lock.

        The vocabulary keeps names of speakers without remaining turns; they are left out here.
        """
        kept = partition.scratch.get(_SPEAKERS)
        if not isinstance(kept, tuple) or kept[0] != partition.revision:
            there = cls.of(partition).speakers_among(partition.postings[1])
            kept = partition.scratch[_SPEAKERS] = (partition.revision, there)
        found: dict[int, tuple[str, ...]] = kept[1]
        return found

    def speakers_among(self, terms: NDArray[np.uint32]) -> dict[int, tuple[str, ...]]:
        """The names whose facets are among `terms`."""
        known = self.vocabulary.terms
        return dict(name for facet, name in self._names.items() if (terms == known[facet]).any())

    def update(self, vocabulary: Vocabulary) -> None:
        """Add new words and sounds."""
        self.vocabulary = vocabulary
        if self._taken == len(vocabulary.terms):
            return
        new = list(islice(vocabulary.terms, self._taken, None))
        self._known.clear()
        self._codes.extend(list(islice(vocabulary.sounds, len(self._codes.texts), None)))
        self._names.update((word, speaker_of_facet(word)) for word in new if word.startswith(SPEAKER_FACET))
        # of a word in a script without spaces, "'s" may be left alone
        words = [word for word in new if word[0] not in _FACETS and _bare(word)]
        self._spelled.extend([_bare(word) for word in words])
        self._words += words
        self._taken += len(new)  # last: after a failure all is tried again

    def near(self, word: Word, *, name: bool = False) -> dict[str, float]:
        """Words that may have been meant by `word`, with their closeness; without `word` itself and its stem.

        `name`: whether it is written like a name.
        """
        known = self._known.get((word.text, name))
        if known is None:
            if len(self._known) == _MAX_KNOWN:
                self._known.clear()
            known = self._known[word.text, name] = self._near(word, name=name)
        return known

    def _near(self, word: Word, *, name: bool) -> dict[str, float]:
        if any(character.isdigit() for character in word.text):
            return {}  # 2022 is not a typo of 2023
        found = self._near_in_spelling(_bare(word.text))
        for other, weight in self._near_in_sound(word, name=name):
            found[other] = max(weight, found.get(other, 0.0))
        return {other: weight for other, weight in found.items() if self.vocabulary.terms[other] != word.term}

    def _near_in_spelling(self, word: str) -> dict[str, float]:
        edits = edits_allowed(word)
        if not edits:
            return {}
        candidates = self._spelled.near(word, edits)
        spelled = [self._spelled.texts[i] for i in candidates]
        near = process.extract(
            word, spelled, scorer=DamerauLevenshtein.distance, score_cutoff=edits, limit=None
        )
        return {self._words[candidates[i]]: EDIT_WEIGHTS[edits] for _, edits, i in near if edits}

    def _near_in_sound(self, word: Word, *, name: bool) -> Iterator[tuple[str, float]]:
        for code in word.codes:
            for other in self.vocabulary.sounds.get(code, ()):
                if alike(word.text, other) >= SAME_SOUND_SPELLING:
                    yield other, SAME_SOUND
                elif name:
                    yield other, NEAR_SOUND
            for other_code in self._one_edit_apart(code):
                for other in self.vocabulary.sounds[other_code]:
                    begins_alike = other_code[0] == code[0] or other[0] == word.text[0]
                    if begins_alike and alike(word.text, other) >= NEAR_SOUND_SPELLING:
                        yield other, NEAR_SOUND

    def _one_edit_apart(self, code: str) -> list[str]:
        if len(code) < _MIN_NEAR_CODE:
            return []
        candidates = [self._codes.texts[i] for i in self._codes.near(code, 1)]
        near = process.extract(code, candidates, scorer=Levenshtein.distance, score_cutoff=1, limit=None)
        return [other for other, edits, _ in near if edits == 1 and len(other) >= _MIN_NEAR_CODE]

    @property
    def nbytes(self) -> int:
        """Approximate memory it takes, without the words themselves."""
        return self._spelled.nbytes + self._codes.nbytes


def nearest(word: Word, lexicons: Sequence[Lexicon], *, name: bool) -> dict[int, float]:
    """Terms of the nearest words of all `lexicons`, with their closeness; `name` as in `Lexicon.near`."""
    closeness: dict[int, float] = {}
    for lexicon in lexicons:
        for other, weight in lexicon.near(word, name=name).items():
            term = lexicon.vocabulary.terms[other]
            closeness[term] = max(weight, closeness.get(term, 0.0))
    return dict(sorted(closeness.items(), key=lambda item: (-item[1], item[0]))[:MAX_NEAR])


def alike(word: str, other: str) -> float:
    """The share of two words that is the same letters in the same order, 0 to 1."""
    return DamerauLevenshtein.normalized_similarity(_bare(word), _bare(other))


def _bare(word: str) -> str:
    return word.removesuffix("'s")
