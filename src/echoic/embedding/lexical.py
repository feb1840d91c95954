"""Vectors from words, spelling and sound: needs no weights, tolerates typos and misheard names.

It does not represent meaning: "car" and "automobile" have nothing in common. Features are hashed into a fixed
number of dimensions with a sign (Weinberger et al. 2009), so there is no vocabulary, and the vector of a text
never depends on other texts.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import EmbeddingSpec, Kind, Vectors, checked_texts, unit
from echoic.errors import InvalidInput
from echoic.text import analysis

# Shares of a word's squared length: enough in the stem that whole words decide, enough in spelling and sound
# that a word heard or typed wrongly still finds its like.
_STEM = 0.5
_SPELLING = 0.35
_SOUND = 0.15

_REVISION = -1  # version of this module; raise it when features or weights change (analysis 3 changed none)
_LONGEST_WORD = 64  # characters; anything longer is not a word, and would fill the cache
_INLINE_CHARACTERS = 2_000  # about 0.5 ms of unseen words; more goes to a thread


class LexicalEmbedder:
    """Hashed features of words: stems, character 3- to 5-grams with word boundaries, Double Metaphone codes.

    Stop words count only in a text without other words. A word said n times has the weight 1 + ln n.
    """

    def __init__(self, dimensions: int = 768) -> None:
        """Ready at once; `open()` has nothing to do.

        Args:
            dimensions: with more, fewer features collide; memory grows with them.

        Raises:
            InvalidInput: fewer than 64 dimensions, with which unrelated words would look alike.
        """
        if dimensions < 64:
            raise InvalidInput(f"a lexical embedding needs at least 64 dimensions, not {dimensions!r}")
        # The sum grows with either version, so that vectors of two versions are never mixed.
        self._spec = EmbeddingSpec(f"lexical:{analysis.ANALYSIS + _REVISION}", dimensions)

    @property
    def spec(self) -> EmbeddingSpec:
        """Version of the features, and the dimensions."""
        return self._spec

    @property
    def semantic(self) -> bool:
        """False: it uses words, spelling and sound."""
        return False

    async def open(self) -> None:
        """Do nothing: there is nothing to load."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to load."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """See `Embedder`; raises InvalidInput if `texts` are not strings that can be encoded."""
        checked = checked_texts(texts, kind)
        if sum(map(len, checked)) <= _INLINE_CHARACTERS:
            return _vectors(checked, self._spec.dimensions)
        return await asyncio.to_thread(_vectors, checked, self._spec.dimensions)


def _vectors(texts: Sequence[str], dimensions: int) -> Vectors:
    vectors = np.zeros((len(texts), dimensions))
    for row, text in enumerate(texts):
        for word, count in _counted(text).items():
            places, values = _word(word, dimensions)
            np.add.at(vectors[row], places, values * (1 + math.log(count)))
        if not vectors[row].any():
            # A text without words ("…", "👍") still gets a unit vector, and all such texts the same one: a
            # row of zeros would become NaN as soon as someone divides by its length.
            vectors[row, 0] = 1.0
    return unit(vectors.astype(np.float32))


def _counted(text: str) -> Counter[str]:
    found = [word[:_LONGEST_WORD] for word in analysis.cut(text)]
    return Counter([word for word in found if word not in analysis.STOP] or found)


@lru_cache(maxsize=16_384)
def _word(word: str, dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The indices and weights of a folded word's features; an index may occur twice."""
    hashed = [(*_place(feature, dimensions), weight) for feature, weight in _features(word)]
    places = np.array([place for place, _, _ in hashed], np.intp)
    values = np.array([sign * weight for _, sign, weight in hashed])
    return places, values


def _features(word: str) -> Iterator[tuple[str, float]]:
    """The features of a word; the squares of their weights sum to at most 1."""
    analysed = analysis.word_of(word)
    yield f"w:{analysed.stem}", math.sqrt(_STEM)
    bounded = f"<{word}>"
    grams = [bounded[i : i + n] for n in (3, 4, 5) for i in range(len(bounded) - n + 1)]
    for gram in grams:
        yield f"g:{gram}", math.sqrt(_SPELLING / len(grams))
    for code in analysed.codes:
        yield f"s:{code}", math.sqrt(_SOUND / len(analysed.codes))


def _place(feature: str, dimensions: int) -> tuple[int, float]:
    """The index and sign of `feature`, the same in every process, unlike Python's own hash."""
    number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return (number >> 1) % dimensions, 1.0 if number & 1 else -1.0
