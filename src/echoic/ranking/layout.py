"""Where each row of a partition sits when its sessions are laid side by side, so that neighbours are one step away.

Computed once per partition, kept in its scratch, and after a patch computed again from what did not change.
Knows no query.

    slot:  . . . . a a a . . . . b b b b b . . . . m m m _
           gap     session 1     session 2   gap   |     trash: rows that are never found
                                                   tail: memories, each for itself

The gaps are as wide as the widest window reaches, so a window never leaks from one session into the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, TURN, Flag, Partition

Floats = NDArray[np.float64]

REACH = 4
"""How many turns away a window looks, at most."""

# How much of a neighbour counts for a turn, from four turns before to four after. Found on LoCoMo: a turn must
# answer for its neighbours ("Where did you go?" "Paris."); R@10 71 without windows, 81 with them.
TEXT_WINDOW = np.array([0.1, 0.2, 0.3, 0.5, 1.0, 0.3, 0.25, 0.2, 0.1])
VECTOR_WINDOW = np.array([0.25, 0.5, 1.0, 0.5, 0.25])

_KEY = "ranking.layout"
_BLOCK = 256  # turns whose vectors are multiplied at a time: 400 KB stay in the processor's cache


@dataclass(slots=True)
class Layout:
    """One partition's rows by slot, and what a scan needs to know of each."""

    revision: int
    slot_of: NDArray[np.int32]
    """[rows]"""
    head: int
    """Slots before the tail: sessions and gaps."""
    width: int
    """Slots in all; the last one is trash."""
    findable: NDArray[np.bool_]
    """[rows] Not empty, not unheard."""
    past: NDArray[np.bool_]
    """[rows]"""
    lengths: Floats
    """[slots] Content words."""
    window_lengths: Floats
    """[slots] Likewise, neighbours weighted in."""
    window_norms: NDArray[np.float32]
    """[slots] Length of the window's summed vector; 1 where it is 0."""
    follows_question: NDArray[np.bool_]
    """[slots] The turn before, in the same session, asks something."""
    _pairs: _Pairs

    @classmethod
    def of(cls, partition: Partition) -> Layout:
        """The layout of `partition`, brought up to date. The caller holds the partition's lock."""
        kept = partition.scratch.get(_KEY)
        assert kept is None or isinstance(kept, cls)
        if kept is None or kept.revision != partition.revision:
            kept = partition.scratch[_KEY] = _laid_out(partition, kept)
        return kept

    def by_row(self, by_slot: Floats) -> Floats:
        """[slots] as [rows]."""
        return by_slot[self.slot_of]

    def spread(self, by_slot: NDArray[np.floating], window: Floats) -> Floats:
        """[…, slots] with each turn's neighbours weighted in; the tail stays as it is."""
        spread = by_slot.astype(np.float64)
        if self.head > REACH:
            sessions = np.ascontiguousarray(by_slot[..., : self.head]).reshape(-1)
            # rows of a matrix lie one behind the other, a gap between them
            spread[..., : self.head] = np.correlate(sessions, window, "same").reshape(*by_slot.shape[:-1], -1)
        return spread

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        arrays = (self.slot_of, self.findable, self.past, self.lengths, self.window_lengths)
        more = (self.window_norms, self.follows_question, self._pairs.partners, self._pairs.products)
        return sum(array.nbytes for array in (*arrays, *more))


@dataclass(slots=True)
class _Pairs:
    """Inner products of the vectors of turns up to `REACH` apart: the lengths of summed vectors follow from them."""

    partners: NDArray[np.int32]
    """[rows, REACH] The row that comes 1, 2, … turns later; -1: none."""
    products: NDArray[np.float32]
    """[rows, REACH]"""


def _laid_out(partition: Partition, before: Layout | None) -> Layout:
    rows = partition.rows
    flags = rows["flags"]
    findable = (rows["kind"] != 0) & (flags & Flag.UNHEARD == 0)
    past = flags & Flag.PAST != 0
    in_session = findable & ~past & (rows["kind"] == TURN) & (rows["session"] != 0)
    turns, slots = _turns_in_order(rows, np.flatnonzero(in_session))
    alone = np.flatnonzero(findable & ~in_session)
    head = int(slots[-1]) + 1 + REACH if len(slots) else 0
    width = head + len(alone) + 1
    slot_of = np.full(len(rows), width - 1, np.int32)
    slot_of[turns] = slots
    slot_of[alone] = np.arange(head, head + len(alone))
    pairs = _pairs(partition, turns, slots, before)
    layout = Layout(
        revision=partition.revision,
        slot_of=slot_of,
        head=head,
        width=width,
        findable=findable,
        past=past,
        lengths=_by_slot(rows["words"].astype(np.float64), slot_of, findable, width),
        window_lengths=np.zeros(0),
        window_norms=np.ones(width, np.float32),
        follows_question=np.zeros(width, np.bool_),
        _pairs=pairs,
    )
    layout.window_lengths = layout.spread(layout.lengths, TEXT_WINDOW)
    layout.window_norms[:head] = _window_norms(rows, turns, slots, pairs, head)
    asks = np.zeros(width, np.bool_)
    asks[slots] = flags[turns] & Flag.QUESTION != 0
    layout.follows_question[1:] = asks[:-1]
    return layout


def _turns_in_order(
    rows: NDArray[np.void], turns: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of turns by session, time and row, and the slot of each."""
    turns = turns[np.lexsort((rows["said_at"][turns], rows["session"][turns]))]
    session = rows["session"][turns]
    starts = np.ones(len(turns), np.bool_)
    starts[1:] = session[1:] != session[:-1]
    return turns, np.arange(len(turns)) + REACH * np.cumsum(starts)


def _by_slot(
    values: Floats, slot_of: NDArray[np.int32], findable: NDArray[np.bool_], width: int
) -> Floats:
    placed = np.zeros(width)
    placed[slot_of[findable]] = values[findable]
    return placed


def _pairs(
    partition: Partition, turns: NDArray[np.intp], slots: NDArray[np.intp], before: Layout | None
) -> _Pairs:
    at = np.full(int(slots[-1]) + 1 + REACH if len(slots) else 0, -1, np.int32)
    at[slots] = turns
    partners = np.full((partition.size, REACH), -1, np.int32)
    for steps in range(1, REACH + 1):
        partners[turns, steps - 1] = at[slots + steps]
    products = np.zeros((partition.size, REACH), np.float32)
    stale = partners >= 0
    if before is not None:
        known = _still_known(partition, partners, before)
        products[: len(known)][known] = before._pairs.products[: len(known)][known]
        stale[: len(known)] &= ~known
    stale_turns = stale[turns].any(axis=1)
    for first in range(0, len(turns), _BLOCK):
        if stale_turns[first : first + _BLOCK].any():
            ours = turns[first : first + _BLOCK]
            products[ours] = _products(partition.vectors[turns[first : first + _BLOCK + REACH]], len(ours))
    products[partners < 0] = 0
    return _Pairs(partners, products)


def _products(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    found = np.zeros((count, REACH), np.float32)
    for steps in range(1, REACH + 1):
        later = vectors[steps : steps + count]
        found[: len(later), steps - 1] = np.vecdot(vectors[: len(later)], later)
    return found


def _still_known(partition: Partition, partners: NDArray[np.int32], before: Layout) -> NDArray[np.bool_]:
    """Which products hold from before: same two rows, and neither was patched since."""
    old = before._pairs.partners
    size = min(len(old), len(partners))
    fresh = np.repeat(partition.patched > before.revision, SEGMENT_ROWS)
    known: NDArray[np.bool_] = (partners[:size] == old[:size]) & (partners[:size] >= 0)
    known &= ~fresh[:size, None] & ~fresh[partners[:size]]
    return known


def _window_norms(
    rows: NDArray[np.void], turns: NDArray[np.intp], slots: NDArray[np.intp], pairs: _Pairs, head: int
) -> NDArray[np.float32]:
    """Length of the sum of w_o v_(i+o): the square root of sum over o and p of w_o w_p v_(i+o) v_(i+p)."""
    square = np.zeros(head)
    reach = len(VECTOR_WINDOW) // 2
    for apart in range(2 * reach + 1):
        between = np.zeros(head)
        if apart:
            between[slots] = pairs.products[turns, apart - 1]
        else:
            between[slots] = (rows["flags"][turns] & Flag.EMBEDDED) != 0
        # the pair (i + o, i + o + apart) is kept at i + o
        weights = np.zeros(2 * (2 * reach) + 1)
        for o in range(len(VECTOR_WINDOW) - apart):
            weights[reach + o] = VECTOR_WINDOW[o] * VECTOR_WINDOW[o + apart] * (2 if apart else 1)
        square += np.correlate(between, weights, "same") if head else 0.0
    return np.where(square > 1e-12, np.sqrt(np.maximum(square, 1e-12)), 1.0).astype(np.float32)


__all__ = ["REACH", "TEXT_WINDOW", "VECTOR_WINDOW", "Layout"]
