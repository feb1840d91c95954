"""Where each row of a partition sits when its sessions are laid side by side: neighbours are one step away.

Computed once per partition, kept in its scratch, and after a patch computed again. Knows no query.

    slot:  . . . . a a a . . . . b b b b b . . . . m m m _
           gap     session 1     session 2   gap   |     trash: rows that are never found
                                                   tail: memories, each for itself

The gaps are as wide as the widest window reaches, so no window leaks from one session into the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import MEMORY, SEGMENT_ROWS, TURN, Flag, Partition, number_of
from echoic.ranking.entries import AGENT, USER
from echoic.ranking.pairs import Pairs
from echoic.ranking.sources import Pairs as SourcePairs
from echoic.ranking.sources import Sources

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

REACH = 4
"""How many turns away a window looks, at most."""

# How much of a neighbour counts for a turn, from the one four turns before to the one four after. A turn must
# answer for its neighbours ("Where did you go?" "Paris."). LoCoMo, R@10: 71 without windows, 81 with them.
TEXT_WINDOW = np.array([0.1, 0.2, 0.3, 0.5, 1.0, 0.3, 0.25, 0.2, 0.1], np.float32)
VECTOR_WINDOW = np.array([0.25, 0.5, 1.0, 0.5, 0.25], np.float32)

LONG_CHARACTERS = 200
"""A turn of this many characters or more says as much as a turn can."""

_KEY = "ranking.layout"
_NO_PERSONS = np.array([0, number_of(USER), number_of(AGENT)], np.uint32)


@dataclass(frozen=True, slots=True)
class Eligible:
    """Rows that may be found, and how long they are."""

    rows: Mask
    """[rows]"""
    all: bool
    """Whether it is all rows that say anything."""
    hidden: NDArray[np.intp]
    """The other rows."""
    without_vector: NDArray[np.intp]
    """The other rows, and those of these that have no vector."""
    counted: Mask | None
    """Those that count in how rare a word is and how long a row; None: all of them."""
    count: int
    words: float
    """Content words of all that count."""
    window_words: float
    """Likewise, neighbours weighted in."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One partition's rows by slot, and what a scan wants to know of each."""

    revision: int
    slot_of: NDArray[np.intp]
    """[rows]"""
    row_at: NDArray[np.int32]
    """[slots] The row that sits there; -1 in gaps and in the trash."""
    head: int
    """Slots before the tail: sessions and gaps."""
    width: int
    """Slots in all; the last one is trash."""
    current: Eligible
    with_past: Eligible
    row_lengths: Floats
    """[rows] Content words."""
    lengths: Floats
    """[slots] Likewise."""
    window_lengths: Floats
    """[slots] Likewise, neighbours weighted in."""
    window_norms: Floats
    """[slots] Length of the window's summed vector; 1 where it is 0."""
    turns: NDArray[np.intp]
    """[turns in sessions] Their rows, by slot …"""
    slots: NDArray[np.intp]
    """… and where they sit."""
    asked: NDArray[np.intp]
    """[pairs] Rows of turns that ask something …"""
    answered: NDArray[np.intp]
    """… and the row of the next turn of the session each."""
    flags: NDArray[np.uint8]
    """[rows] This and the following are the partition's fields, side by side."""
    speakers: NDArray[np.uint32]
    said_at: NDArray[np.int64]
    memories: Mask
    remembers: bool
    """Whether there are any."""
    persons: bool
    """Whether anybody speaks in it who is called by name, and not "user" or "agent"."""
    keyed: NDArray[np.intp]
    """Rows of values under a key."""
    asking: Floats | None
    """None where no row asks."""
    fullness: Floats
    """[rows] Characters up to 200, over 200. A memory is brief because it was distilled: 1."""
    pairs: Pairs
    sources: SourcePairs
    """Memories that hold, and the turns here that they were learned from."""

    @classmethod
    def of(cls, partition: Partition) -> Layout:
        """The layout of `partition`, brought up to date. The caller holds the partition's lock."""
        kept = partition.scratch.get(_KEY)
        assert kept is None or isinstance(kept, cls)
        if kept is None or kept.revision != partition.revision:
            kept = partition.scratch[_KEY] = _laid_out(partition, kept.pairs if kept else None)
        return kept

    def spread_vectors(self, cosines: Floats) -> Floats:
        """[rows] The cosine of each turn's and its neighbours' summed vector; of other rows their own.

        Args:
            cosines: [rows] of each row's own vector, 0 where it has none.
        """
        if not len(self.turns):
            return cosines
        sessions = np.zeros(self.head, np.float32)
        sessions[self.slots] = cosines[self.turns]
        window = cosines.copy()
        summed = np.correlate(sessions, VECTOR_WINDOW, "same")[self.slots]
        window[self.turns] = summed / self.window_norms[self.slots]
        return window

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        by_row = (
            self.row_at.nbytes
            + self.slot_of.nbytes
            + self.flags.nbytes
            + self.speakers.nbytes
            + self.said_at.nbytes
        )
        by_row += 3 * self.memories.nbytes + 3 * self.fullness.nbytes
        by_row += sum(rows.nbytes for rows in (self.turns, self.slots, self.asked, self.answered, self.keyed))
        by_row += self.sources.memories.nbytes + self.sources.turns.nbytes
        return by_row + 3 * self.lengths.nbytes + self.pairs.nbytes


def _laid_out(partition: Partition, before: Pairs | None) -> Layout:
    rows, flags = partition.rows, np.ascontiguousarray(partition.rows["flags"])
    findable = (rows["kind"] != 0) & (flags & Flag.UNHEARD == 0)
    past = flags & Flag.PAST != 0
    in_session = findable & ~past & (rows["kind"] == TURN) & (rows["session"] != 0)
    turns, slots = _in_order(rows, np.flatnonzero(in_session), partition.origin)
    alone = np.flatnonzero(findable & ~in_session)
    head = int(slots[-1]) + 1 + REACH if len(slots) else 0
    width = head + len(alone) + 1
    slot_of = np.full(len(rows), width - 1, np.intp)
    slot_of[turns] = slots
    slot_of[alone] = np.arange(head, width - 1)
    row_at = np.full(width, -1, np.int32)
    row_at[slot_of[findable]] = np.flatnonzero(findable)
    pairs = Pairs.of(partition, turns, slots, 2 * (len(VECTOR_WINDOW) // 2), before)
    lengths = np.zeros(width, np.float32)
    lengths[slot_of[findable]] = rows["words"][findable]
    window_lengths = lengths.copy()
    if head:
        window_lengths[:head] = np.correlate(lengths[:head], TEXT_WINDOW, "same")
    by_row = lengths.take(slot_of), window_lengths.take(slot_of)
    sources = Sources.of(partition).among(findable & ~past)
    own = None
    if len(sources):  # what a turn and a memory say is said once
        own = np.ones(len(rows), np.bool_)
        own[sources.memories] = False
    asked = turns[flags[turns] & Flag.QUESTION != 0]
    answered = row_at[slot_of[asked] + 1]  # behind a session lies a gap
    memories = rows["kind"] == MEMORY
    asking = flags & Flag.ASKING != 0
    said = np.minimum(rows["characters"], LONG_CHARACTERS).astype(np.float32) / LONG_CHARACTERS
    return Layout(
        revision=partition.revision,
        slot_of=slot_of,
        row_at=row_at,
        head=head,
        width=width,
        current=_eligible(findable & ~past, findable, flags, by_row, own),
        with_past=_eligible(findable, findable, flags, by_row, own),
        row_lengths=by_row[0],
        lengths=lengths,
        window_lengths=window_lengths,
        window_norms=_window_norms(flags, turns, slots, pairs, width),
        turns=turns,
        slots=slots,
        asked=asked[answered >= 0],
        answered=answered[answered >= 0],
        flags=flags,
        speakers=np.ascontiguousarray(rows["speaker"]),
        said_at=np.ascontiguousarray(rows["said_at"]),
        memories=memories,
        remembers=bool(memories.any()),
        persons=bool((~np.isin(rows["speaker"], _NO_PERSONS, kind="sort")).any()),
        keyed=np.flatnonzero(flags & Flag.KEYED),
        asking=asking.astype(np.float32) if asking.any() else None,
        fullness=np.where(memories, np.float32(1), said),
        pairs=pairs,
        sources=sources,
    )


def _in_order(
    rows: NDArray[np.void], turns: NDArray[np.intp], origin: NDArray[np.int64] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of turns by session, time and row, and the slot of each."""
    turns = turns[np.lexsort((rows["said_at"][turns], rows["session"][turns]))]
    session = rows["session"][turns]
    starts = np.ones(len(turns), np.bool_)
    starts[1:] = session[1:] != session[:-1]
    if origin is not None:  # what lies between was not handed over: those beside the gap are no neighbours
        segments = origin[turns] // SEGMENT_ROWS
        starts[1:] |= np.abs(segments[1:] - segments[:-1]) > 1
    return turns, np.arange(len(turns)) + REACH * np.cumsum(starts)


def _eligible(
    rows: Mask,
    findable: Mask,
    flags: NDArray[np.uint8],
    lengths: tuple[Floats, Floats],
    own: Mask | None,
) -> Eligible:
    """`rows` of those that say anything; all by row.

    Args:
        rows: those that may be found.
        findable: those that say anything.
        flags: of each.
        lengths: of each, and of its window.
        own: those that say what no other row stands for; None: all.
    """
    counted = rows if own is None else rows & own
    return Eligible(
        rows,
        all=not (findable & ~rows).any(),
        hidden=np.flatnonzero(~rows),
        without_vector=np.flatnonzero(~rows | (flags & Flag.EMBEDDED == 0)),
        counted=None if own is None else counted,
        count=int(np.count_nonzero(counted)),
        words=float(lengths[0][counted].sum(dtype=np.float64)),
        window_words=float(lengths[1][counted].sum(dtype=np.float64)),
    )


def _window_norms(
    flags: NDArray[np.uint8], turns: NDArray[np.intp], slots: NDArray[np.intp], pairs: Pairs, width: int
) -> Floats:
    """Length of the sum of w_o v_(i+o): the root of the sum over o and p of w_o w_p v_(i+o) v_(i+p)."""
    square = np.zeros(width)
    window = VECTOR_WINDOW.astype(np.float64)
    reach = len(window) // 2
    for apart in range(len(window) if len(slots) else 0):
        product = np.zeros(width)
        if apart:
            product[slots] = 2 * pairs.products[turns, apart - 1]
        else:
            product[slots] = flags[turns] & Flag.EMBEDDED != 0
        # That of the pair (i + o, i + o + apart) is kept at i + o.
        weights = np.zeros(2 * len(window) - 1)
        weights[reach : reach + len(window) - apart] = window[: len(window) - apart] * window[apart:]
        square += np.correlate(product, weights, "same")
    return np.where(square > 1e-9, np.sqrt(np.maximum(square, 0)), 1).astype(np.float32)


__all__ = ["LONG_CHARACTERS", "REACH", "TEXT_WINDOW", "VECTOR_WINDOW", "Eligible", "Floats", "Layout", "Mask"]
