"""Late interaction: the word pieces of a question against those of a row and its neighbours.

The vector of a text is the mean of its word pieces' vectors, which blurs details that the pieces preserve.
Each piece of the question takes the most similar piece of the row or, at a discount, of a turn near it in the
same session. As in Khattab and Zaharia, "ColBERT" (2020), with a window, and with each piece weighted by how
rare its word is in what the caller said.

Only candidates are compared: the cost does not grow with what a caller has said.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.partition import AXES, Flag, Pieces, as_packed, distinct
from echoic.ranking import kernel
from echoic.ranking.layout import REACH, Candidates, Floats
from echoic.text import content_words, cut, fold

STOP_WEIGHT = 1.0
"""The weight of a piece of a stop word such as "what". LoCoMo: 0.5 to 2 are the same, 0 costs 0.5 points of
nDCG."""
MOST_WEIGHT = 4.0
"""The weight of a rare word, and of one that no row says."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def piece_weights(
    words: Sequence[str], worth: Mapping[int, float], meant: Mapping[str, str] | None = None
) -> Floats:
    """[pieces] The weight of each piece of a question, by the word it is part of; 0 for punctuation.

    `worth` has the inverse document frequency by term, and `meant` the folded words that were corrected.
    """
    known = {word: _weight(word, worth, meant or {}) if word else 0.0 for word in dict.fromkeys(words)}
    weights = np.array([known[word] for word in words], np.float32)
    return weights if any(known.values()) else np.ones_like(weights)


def vector_without(words: Sequence[str], pieces: Pieces, left_out: frozenset[str]) -> Floats | None:
    """[dimensions] The vector of a question without the folded words `left_out`.

    None if no other word is left, or the encoder's vector is not the mean of its pieces. It is the mean of
    the other pieces, which needs no encoding, and finds 0.3 points of R@10 less than encoding the rest again.
    """
    if not pieces.hidden.shape[1]:
        return None
    known = {word: left_out.isdisjoint(_cut(word)) for word in dict.fromkeys(words)}
    if not any(kept and word for word, kept in known.items()):
        return None
    total: Floats = np.array([known[word] for word in words], np.float32) @ pieces.hidden
    return total / np.float32(math.sqrt(total.dot(total)) + 1e-9)


def words_of_pieces(text: str, pieces: Pieces) -> list[str]:
    """The word each piece is part of, as written; "" for punctuation."""
    words = _WORD.finditer(text)
    of_pieces: list[str] = []
    start, end, word = 0, 0, ""
    for first, last in pieces.spans:
        while end <= first:
            found = next(words, None)
            (start, end), word = ((0, sys.maxsize), "") if found is None else (found.span(), found.group())
        of_pieces.append(word if start <= first and last <= end else "")
    return of_pieces


def _weight(word: str, worth: Mapping[int, float], meant: Mapping[str, str]) -> float:
    terms = _terms(meant.get(fold(word), word) if meant else word)
    if not terms:
        return STOP_WEIGHT
    return min(MOST_WEIGHT, max(map(worth.get, terms, repeat(MOST_WEIGHT))))


# cached: a question is searched again with each spoken word, and most words are common
@lru_cache(maxsize=4096)
def _cut(word: str) -> tuple[str, ...]:
    return tuple(cut(word))


@lru_cache(maxsize=4096)
def _terms(word: str) -> tuple[int, ...]:
    return tuple(found.term for found in content_words(word))


Rows = NDArray[np.intp]

WINDOW = np.array([0.6, 0.7, 0.8, 0.9, 1.0, 0.8, 0.7, 0.6, 0.5], np.float32)
"""Discounts for pieces of the turns 4, 3, 2, 1 before, of the turn itself, and of the turns 1, 2, 3, 4 after.
Six shapes that reach four turns back lay within 0.4 points of R@10."""

ASKING = int(Flag.ASKING)
SAME, ECHO = 0.97, np.float32(0.5)
"""The similarity from which a question repeats the query, and its discount then."""

_OFFSETS = np.arange(-REACH, REACH + 1)
_DISCOUNT = WINDOW[:, None]

# Products are taken this many numbers at a time: so few that OpenBLAS does not wake its threads, for which a
# busy machine would have to wait longer than the product takes.
_BLOCK = 1 << 18


class Closer(NamedTuple):
    """The similarity of each piece of the question to each candidate."""

    pieces: Rows
    """The pieces of the question with a weight above 0."""
    own: list[Floats]
    """By partition or of all, [candidates, pieces], -1 to 1: to the row itself; NaN if not known."""
    likeness: list[Floats]
    """Likewise, [candidates, pieces]: to the row and its neighbours."""
    scores: Floats
    """[candidates of all partitions] Weighted mean similarity, -1 to 1; NaN if not known."""
    missing: int
    """How many of these are not known."""


def late(pieces: Pieces, weights: Floats, places: Sequence[Candidates], candidates: Sequence[Rows]) -> Closer:
    """Compare `candidates`, the rows of each partition, with a question piece by piece.

    `weights` is [pieces], not all 0.
    """
    counted, axes, share = shares(pieces, weights)
    found = [_likeness(axes, share, place, rows) for place, rows in zip(places, candidates, strict=True)]
    scores = found[0].scores if len(found) == 1 else np.concatenate([each.scores for each in found])
    own, likeness = [each.own for each in found], [each.likeness for each in found]
    return Closer(counted, own, likeness, scores, sum(each.missing for each in found))


def shares(pieces: Pieces, weights: Floats) -> tuple[Rows, Floats, Floats]:
    """The pieces with a weight above 0, their axes, and the share of the weights that each has."""
    counted = weights.nonzero()[0]
    axes, share = pieces.axes.take(counted, 0), weights.take(counted)
    share /= np.add.reduce(share)
    return counted, axes, share


class _Found(NamedTuple):
    """What one partition adds to a `Closer`."""

    own: Floats
    likeness: Floats
    scores: Floats
    missing: int


def _likeness(axes: Floats, share: Floats, place: Candidates, rows: Rows) -> _Found:
    """Best similarities in each row, and in its window; NaN without pieces."""
    if kernel.multiplies():
        return _compiled_likeness(axes, share, place, rows)
    own, likeness = _own_and_around(axes, share, place, rows)
    # rounded, so that the order of equal texts does not depend on their position in a block
    scores = (likeness @ share).round(5)
    return _Found(own, likeness, scores, int(np.count_nonzero(np.isnan(scores))))


def _own_and_around(axes: Floats, share: Floats, place: Candidates, rows: Rows) -> tuple[Floats, Floats]:
    """[rows, pieces] of both."""
    slots = place.layout.slot_of[rows]
    in_session = np.flatnonzero(slots < place.layout.head)
    if not len(in_session):
        own = _of_rows(axes, place, rows)
        _hush(own, share, place, rows)
        return own, own
    around = place.layout.row_at[slots[in_session, None] + _OFFSETS]
    wanted = distinct(np.concatenate([rows, around.ravel()]))
    said = _of_rows(axes, place, wanted)
    _hush(said, share, place, wanted)
    own = said[np.searchsorted(wanted, rows)]
    likeness: Floats = own.copy()
    near = said[np.searchsorted(wanted, around)]
    # only positive similarities of neighbours: the discount must not raise negative ones
    np.multiply(near, _DISCOUNT, out=near, where=near > 0)
    near[np.isnan(likeness[in_session, 0])] = np.nan
    likeness[in_session] = np.fmax.reduce(near, axis=1)
    return own, likeness


def _compiled_likeness(axes: Floats, share: Floats, place: Candidates, rows: Rows) -> _Found:
    assert kernel.compiled is not None
    layout, count = place.layout, len(rows)
    own, likeness = np.empty((2, count, len(axes)), np.float32)
    scores = np.empty(count, np.float32)
    at = layout.slot_of, layout.row_at, layout.head, layout.flags, ASKING
    how = WINDOW, SAME, ECHO, own, likeness, scores
    missing = kernel.compiled.likeness(place.partition.tokens, rows, *at, axes, share, *how)
    return _Found(own, likeness, scores, missing)


def _hush(likeness: Floats, share: Floats, place: Candidates, rows: Rows) -> None:
    """Lower the similarity of rows that ask the same question, also for the turns beside them."""
    asking = np.flatnonzero(place.layout.flags[rows] & Flag.ASKING)
    if len(asking):
        echoes = asking[likeness[asking] @ share >= SAME]
        likeness[echoes] *= ECHO


def _of_rows(axes: Floats, place: Candidates, rows: Rows) -> Floats:
    """[rows, pieces] The best similarity of each piece in each row itself; NaN for rows without pieces."""
    tokens = place.partition.tokens
    blobs = [tokens.get(row, b"") for row in rows.tolist()]  # -1, a gap, has none
    there = [i for i, blob in enumerate(blobs) if blob]
    if len(there) == len(blobs):
        return _best(blobs, axes)
    likeness = np.full((len(rows), len(axes)), np.nan, np.float32)
    if there:
        likeness[there] = _best([blobs[i] for i in there], axes)
    return likeness


def _best(blobs: list[bytes], axes: Floats) -> Floats:
    """[texts, pieces] The best similarity of a piece of each text to each piece of the question."""
    said, scale = as_packed(blobs)
    # scaled here rather than in the larger operand; with a view the product takes twice as long
    across = np.ascontiguousarray(axes.T * np.float32(scale))
    likeness = np.empty((len(said), len(axes)), np.float32)
    block = max(1, _BLOCK // (AXES * max(1, len(axes))))
    for first in range(0, len(said), block):
        np.matmul(said[first : first + block], across, out=likeness[first : first + block])
    lengths = np.fromiter(map(len, blobs), np.intp, len(blobs)) // AXES
    return np.maximum.reduceat(likeness, np.cumsum(lengths) - lengths, axis=0)
