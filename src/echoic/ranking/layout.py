"""The slot of each row of a partition, with its sessions laid side by side, so that neighbours are adjacent.

Computed once per partition and again after a patch; kept in its scratch. Independent of queries.

    slot:  . . . . a a a . . . . b b b b b . . . . m m m _
           gap     session 1     session 2   gap   |     trash: rows that are never found
                                                   tail: memories, each for itself

The gaps are as wide as the widest window, so no window reaches from one session into the next. `Sources` says
which memories were learned from which turns of the partition: they share a place among the hits, or they
would take two places of ten and count twice in document frequencies. `WindowProducts` has the inner products
of turns near each other, which give the length of a window's summed vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import MEMORY, SEGMENT_ROWS, TURN, Flag, Partition, number_of
from echoic.ranking import kernel
from echoic.ranking.fuzzy import Lexicon
from echoic.ranking.indexing import AGENT, USER

Rows = NDArray[np.intp]

_SOURCES_KEY = "ranking.sources"
_TABLE_BITS = 16


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a memory and one of its source turns."""

    memories: Rows
    turns: Rows

    def among(self, memories: NDArray[np.bool_], turns: NDArray[np.bool_]) -> Pairs:
        """The pairs of which the rows are among `memories` and `turns`."""
        both = memories[self.memories] & turns[self.turns]
        return Pairs(self.memories[both], self.turns[both])


class Sources:
    """The ids of a partition's turns, and those that its memories cite, as numbers.

    Both are facets, terms with a count of 0: a turn's own is the last of its terms, and all such terms of a
    memory are sources. No other term with a count of 0 equals a turn's.
    """

    def __init__(self) -> None:
        self._revision = 0
        self._own = np.zeros(0, np.uint32)
        self._naming = np.zeros(0, np.int32)
        self._named = np.zeros(0, np.uint32)

    @classmethod
    def of(cls, partition: Partition) -> Pairs:
        """Every memory of `partition` with each of its source turns. The caller holds the lock."""
        kept = partition.scratch.setdefault(_SOURCES_KEY, cls())
        assert isinstance(kept, cls)
        return kept.update(partition)

    def update(self, partition: Partition) -> Pairs:
        """Add what was patched since the last update; returns the current pairs."""
        if self._revision != partition.revision:
            self._read(partition)
        return self._pairs()

    def _read(self, partition: Partition) -> None:
        patched = partition.patched > self._revision
        self._revision = partition.revision
        stale = np.repeat(patched, SEGMENT_ROWS)
        own = np.zeros(partition.size, np.uint32)
        own[: len(self._own)] = self._own
        own[stale] = 0
        rows, terms, counts = partition.postings_of(np.flatnonzero(patched).tolist())
        facets = np.flatnonzero(counts == 0)
        rows, terms = rows[facets], terms[facets]
        kinds = partition.rows["kind"][rows]
        said = kinds == TURN
        own[rows[said]] = terms[said]  # of several rows the last one counts
        kept, new = ~stale[self._naming], kinds == MEMORY
        self._own = own
        self._naming = np.concatenate([self._naming[kept], rows[new]])
        self._named = np.concatenate([self._named[kept], terms[new]])

    def _pairs(self) -> Pairs:
        if not len(self._named):
            return Pairs(np.zeros(0, np.intp), np.zeros(0, np.intp))
        # few turns are sources: a table of the low bits finds them without a sort
        low = np.uint32((1 << _TABLE_BITS) - 1)
        table = np.zeros(1 << _TABLE_BITS, np.bool_)
        table[self._named & low] = True
        turns = np.flatnonzero(table[self._own & low])
        turns = turns[np.argsort(self._own[turns], kind="stable")]
        numbers = self._own[turns]
        first = np.searchsorted(numbers, self._named, "left")
        there = first < len(numbers)
        there[there] = numbers[first[there]] == self._named[there]
        return Pairs(self._naming[there].astype(np.intp), turns[first[there]])

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes."""
        return self._own.nbytes + self._naming.nbytes + self._named.nbytes


_BLOCK = 256  # turns multiplied at a time: 400 KB fit in the processor's cache


@dataclass(frozen=True, slots=True)
class WindowProducts:
    """The products of each turn with those that follow it in its session."""

    revision: int
    """The revision of the partition they were computed from."""
    partners: NDArray[np.int32]
    """[rows, reach] The row 1, 2, … turns later, or -1."""
    products: NDArray[np.float32]
    """[rows, reach]; 0 without a partner or without one of the vectors."""

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return self.partners.nbytes + self.products.nbytes

    @classmethod
    def of(
        cls, partition: Partition, turns: Rows, slots: Rows, reach: int, before: WindowProducts | None
    ) -> WindowProducts:
        """Compute the products, reusing those of `before`, an earlier revision.

        `turns` are rows, session by session, and `slots` their positions, with at least `reach` free ones
        between sessions.
        """
        at = np.full(int(slots[-1]) + 1 + reach if len(slots) else 0, -1, np.int32)
        at[slots] = turns
        partners = np.full((partition.size, reach), -1, np.int32)
        partners[turns] = at[slots[:, None] + np.arange(1, reach + 1)]
        products = np.zeros(partners.shape, np.float32)
        stale = np.ones(len(turns), np.bool_)
        if before is not None:
            known = _known(partition, partners, turns, before)
            products[np.flatnonzero(known)] = before.products[np.flatnonzero(known)]
            stale = ~known[turns]
        for first in range(0, len(turns), _BLOCK):
            if stale[first : first + _BLOCK].any():
                ours = turns[first : first + _BLOCK]
                vectors = partition.vectors[turns[first : first + _BLOCK + reach]]
                products[ours] = _products(vectors, len(ours), reach)
        products[partners < 0] = 0
        return cls(partition.revision, partners, products)


def _known(
    partition: Partition, partners: NDArray[np.int32], turns: Rows, before: WindowProducts
) -> NDArray[np.bool_]:
    """[rows] Whose products are unchanged: the same rows follow, and none of them was patched since."""
    size = min(len(before.partners), len(partners))
    known = np.zeros(len(partners), np.bool_)
    known[:size] = (partners[:size] == before.partners[:size]).all(axis=1)
    fresh = np.repeat(partition.patched > before.revision, SEGMENT_ROWS)[turns]
    touched = fresh.copy()
    for steps in range(1, partners.shape[1] + 1):
        touched[:-steps] |= fresh[steps:]
    known[turns[touched]] = False
    return known


def _products(vectors: NDArray[np.float32], count: int, reach: int) -> NDArray[np.float32]:
    """[count, reach] of the first `count` rows with the 1, 2, … rows that follow each."""
    found = np.zeros((count, reach), np.float32)
    for steps in range(1, reach + 1):
        later = vectors[steps : steps + count]
        found[: len(later), steps - 1] = np.vecdot(vectors[: len(later)], later)
    return found


Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


REACH = 4
"""How many turns away a window reaches."""

# How much of a neighbour counts for a turn, from the one four turns before to the one four after. A turn must
# answer for its neighbours ("Where did you go?" "Paris."). LoCoMo, R@10: 71 without windows, 81 with them.
TEXT_WINDOW = np.array([0.1, 0.2, 0.3, 0.5, 1.0, 0.3, 0.25, 0.2, 0.1], np.float32)
VECTOR_WINDOW = np.array([0.25, 0.5, 1.0, 0.5, 0.25], np.float32)

LONG_CHARACTERS = 200
"""Longer turns count as equally long."""

_KEY = "ranking.layout"
_NO_PERSONS = np.array([0, number_of(USER), number_of(AGENT)], np.uint32)


@dataclass(frozen=True, slots=True)
class Eligible:
    """Rows that may be found, and their lengths."""

    rows: Mask
    """[rows]"""
    all: bool
    """Whether these are all rows with words."""
    hidden: NDArray[np.intp]
    """The other rows."""
    without_vector: NDArray[np.intp]
    """The other rows, and those of these without a vector."""
    counted: Mask | None
    """Those that count in document frequencies and mean lengths; None for all of them."""
    count: int
    words: float
    """Content words of all counted rows."""
    window_words: float
    """Content words of all counted rows with their weighted neighbours."""
    held: Any
    """`all`, `rows` and `counted` as the kernel takes them; see `kernel.hold`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One partition's rows by slot, with the properties that a scan needs."""

    revision: int
    slot_of: NDArray[np.intp]
    """[rows]"""
    row_at: NDArray[np.int32]
    """[slots] The row in the slot; -1 in gaps and in the trash."""
    head: int
    """Slots before the tail: sessions and gaps."""
    width: int
    """All slots; the last one is trash."""
    current: Eligible
    with_past: Eligible
    row_lengths: Floats
    """[rows] Content words."""
    lengths: Floats
    """[slots] The same."""
    window_lengths: Floats
    """[slots] The same with weighted neighbours."""
    window_norms: Floats
    """[slots] Length of the window's summed vector; 1 where it is 0."""
    turns: NDArray[np.intp]
    """[turns in sessions] Their rows, in the order of slots."""
    slots: NDArray[np.intp]
    """[turns in sessions] Their slots."""
    asked: NDArray[np.intp]
    """[pairs] Rows of turns that ask something."""
    answered: NDArray[np.int32]
    """[pairs] The row of the next turn of the session."""
    flags: NDArray[np.uint8]
    """[rows] This and the following are the partition's fields, concatenated."""
    speakers: NDArray[np.uint32]
    said_at: NDArray[np.int64]
    memories: Mask
    remembers: bool
    """Whether there are any memories."""
    persons: bool
    """Whether any speaker is called by name, rather than "user" or "agent"."""
    among_people: bool | None
    """Whether all speakers of turns are called by name; None without turns."""
    keyed: Floats | None
    """[rows] 1 for values under a key, else 0; None without any."""
    asking: Floats | None
    """[rows] 1 where a row asks, else 0; None if no row does."""
    fullness: Floats
    """[rows] Characters up to 200, over 200; 1 for a memory, which is brief because it was distilled."""
    of_agent: Floats
    """[rows] 1 for what an agent said, else 0."""
    of_memory: Floats
    """[rows] 1 for a memory, else 0."""
    pairs: WindowProducts
    sources: Pairs
    """Current memories, and the turns here that they were learned from."""
    outdated: Pairs
    """The same of memories that no longer hold."""
    said_before: frozenset[int]
    """The turns in `outdated`."""
    held: Any
    """What the kernel takes of this; see `kernel.hold`."""

    @classmethod
    def of(cls, partition: Partition) -> Layout:
        """The current layout of `partition`. The caller holds the partition's lock."""
        kept = partition.scratch.get(_KEY)
        assert kept is None or isinstance(kept, cls)
        if kept is None or kept.revision != partition.revision:
            kept = partition.scratch[_KEY] = _laid_out(partition, kept.pairs if kept else None)
        return kept

    def without(self, eligible: Eligible, left_out: Mask) -> Eligible:
        """`eligible` without the rows where `left_out` [rows] is true."""
        own = None if eligible.counted is None else _by_themselves(self.sources, len(left_out))
        by_row = self.row_lengths, self.window_lengths.take(self.slot_of)
        indexed = eligible.rows | (not eligible.all)
        return _eligible(eligible.rows & ~left_out, indexed, self.flags, by_row, own)

    def spread_vectors(self, cosines: Floats) -> Floats:
        """[rows] The cosine of the summed vector of each turn and its neighbours; of other rows their own.

        `cosines` is [rows] of each row's own vector, 0 without one.
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
        """Approximate memory it takes."""
        by_row = (
            self.row_at.nbytes
            + self.slot_of.nbytes
            + self.flags.nbytes
            + self.speakers.nbytes
            + self.said_at.nbytes
        )
        by_row += 3 * self.memories.nbytes + 6 * self.fullness.nbytes
        by_row += sum(rows.nbytes for rows in (self.turns, self.slots, self.asked, self.answered))
        by_row += sum(pairs.memories.nbytes + pairs.turns.nbytes for pairs in (self.sources, self.outdated))
        return by_row + 3 * self.lengths.nbytes + self.pairs.nbytes


def unembedded(partitions: Sequence[Partition]) -> int:
    """How many current rows have no vector yet. Takes the partitions' locks."""
    count = 0
    for partition in partitions:
        with partition.lock:
            current = Layout.of(partition).current
        count += len(current.without_vector) - len(current.hidden)
    return count


def _laid_out(partition: Partition, before: WindowProducts | None) -> Layout:
    rows, flags = partition.rows, np.ascontiguousarray(partition.rows["flags"])
    findable = (rows["kind"] != 0) & (flags & Flag.UNHEARD == 0)
    indexed = findable | (rows["words"] > 0)  # items have words, but only a search for items finds them
    past = flags & Flag.PAST != 0
    in_session = findable & ~past & (rows["kind"] == TURN) & (rows["session"] != 0)
    turns, slots = _in_order(rows, np.flatnonzero(in_session), partition.origin)
    alone = np.flatnonzero(findable & ~in_session)
    head = int(slots[-1]) + 1 + REACH if len(slots) else 0
    width = head + len(alone) + 1
    slot_of, row_at = np.full(len(rows), width - 1, np.intp), np.full(width, -1, np.int32)
    slot_of[turns] = slots
    slot_of[alone] = np.arange(head, width - 1)
    row_at[slot_of[findable]] = np.flatnonzero(findable)
    pairs = WindowProducts.of(partition, turns, slots, 2 * (len(VECTOR_WINDOW) // 2), before)
    lengths = np.zeros(width, np.float32)
    lengths[slot_of[findable]] = rows["words"][findable]
    window_lengths = lengths.copy()
    window_lengths[:head] = np.correlate(lengths[:head], TEXT_WINDOW, "same") if head else 0
    by_row = lengths.take(slot_of), window_lengths.take(slot_of)
    holding, at = findable & ~past, (slot_of, row_at, by_row[0], window_lengths)
    learned, memories = Sources.of(partition), rows["kind"] == MEMORY
    sources, outdated = learned.among(holding, holding), learned.among(past & memories, holding)
    own = _by_themselves(sources, len(rows))
    asked, answered = _answered(turns[flags[turns] & Flag.QUESTION != 0], slot_of, row_at)
    norms = _window_norms(flags, turns, slots, pairs, width)
    return Layout(
        revision=partition.revision,
        slot_of=slot_of,
        row_at=row_at,
        head=head,
        width=width,
        current=_eligible(findable & ~past, indexed, flags, by_row, own),
        with_past=_eligible(findable, indexed, flags, by_row, own),
        row_lengths=by_row[0],
        lengths=lengths,
        window_lengths=window_lengths,
        window_norms=norms,
        turns=turns,
        slots=slots,
        asked=asked,
        answered=answered,
        flags=flags,
        speakers=np.ascontiguousarray(rows["speaker"]),
        said_at=np.ascontiguousarray(rows["said_at"]),
        memories=memories,
        remembers=bool(memories.any()),
        persons=bool((~np.isin(rows["speaker"], _NO_PERSONS, kind="sort")).any()),
        among_people=_among_people(rows["speaker"][findable & (rows["kind"] == TURN)]),
        keyed=_marked(flags, Flag.KEYED),
        asking=_marked(flags, Flag.ASKING),
        fullness=_fullness(rows, memories),
        of_agent=((rows["speaker"] == number_of(AGENT)) & ~memories).astype(np.float32),
        of_memory=memories.astype(np.float32),
        pairs=pairs,
        sources=sources,
        outdated=outdated,
        said_before=frozenset(outdated.turns.tolist()),
        held=kernel.hold(head, *at, turns, slots, norms, asked, answered, flags),
    )


def _answered(asked: Rows, slot_of: Rows, row_at: NDArray[np.int32]) -> tuple[Rows, NDArray[np.int32]]:
    """The rows `asked` that are not the last of their session, and the row after each."""
    answered = row_at[slot_of[asked] + 1]  # a gap follows each session
    return asked[answered >= 0], answered[answered >= 0]


def _by_themselves(sources: Pairs, size: int) -> Mask | None:
    """[rows] Those that no other row represents, None for all: words of a turn and its memory count once."""
    if not len(sources.memories):
        return None
    own = np.ones(size, np.bool_)
    own[sources.memories] = False
    return own


def _marked(flags: NDArray[np.uint8], flag: Flag) -> Floats | None:
    marked = flags & flag != 0
    return marked.astype(np.float32) if marked.any() else None


def _fullness(rows: NDArray[np.void], memories: Mask) -> Floats:
    said = np.minimum(rows["characters"], LONG_CHARACTERS).astype(np.float32) / LONG_CHARACTERS
    return np.where(memories, np.float32(1), said)


def _among_people(speakers: NDArray[np.uint32]) -> bool | None:
    return not bool(np.isin(speakers, _NO_PERSONS, kind="sort").any()) if len(speakers) else None


def _in_order(
    rows: NDArray[np.void], turns: NDArray[np.intp], origin: NDArray[np.int64] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of turns by session, time and row, and the slot of each."""
    turns = turns[np.lexsort((rows["said_at"][turns], rows["session"][turns]))]
    session = rows["session"][turns]
    starts = np.ones(len(turns), np.bool_)
    starts[1:] = session[1:] != session[:-1]
    if origin is not None:  # rows in between are missing, so these are not neighbours
        segments = origin[turns] // SEGMENT_ROWS
        starts[1:] |= np.abs(segments[1:] - segments[:-1]) > 1
    return turns, np.arange(len(turns)) + REACH * np.cumsum(starts)


def _eligible(
    rows: Mask, indexed: Mask, flags: NDArray[np.uint8], lengths: tuple[Floats, Floats], own: Mask | None
) -> Eligible:
    """`rows`, those that may be found, limited to those with words (`indexed`).

    `lengths` are those of each row and of its window; `own` are rows that no other row represents, None for
    all.
    """
    counted = rows if own is None else rows & own
    every = not (indexed & ~rows).any()
    return Eligible(
        rows,
        all=every,
        hidden=np.flatnonzero(~rows),
        without_vector=np.flatnonzero(~rows | (flags & Flag.EMBEDDED == 0)),
        counted=None if own is None else counted,
        count=int(np.count_nonzero(counted)),
        words=float(lengths[0][counted].sum(dtype=np.float64)),
        window_words=float(lengths[1][counted].sum(dtype=np.float64)),
        held=kernel.hold(every, rows, counted if own is not None else np.zeros(0, np.bool_)),
    )


def _window_norms(
    flags: NDArray[np.uint8],
    turns: NDArray[np.intp],
    slots: NDArray[np.intp],
    pairs: WindowProducts,
    width: int,
) -> Floats:
    """[slots] Length of the window's vector: the root of the sum over o and p of w_o w_p v_(i+o) v_(i+p)."""
    square = np.zeros(width)
    window = VECTOR_WINDOW.astype(np.float64)
    reach = len(window) // 2
    for apart in range(len(window) if len(slots) else 0):
        product = np.zeros(width)
        if apart:
            product[slots] = 2 * pairs.products[turns, apart - 1]
        else:
            product[slots] = flags[turns] & Flag.EMBEDDED != 0
        # The product of the pair (i + o, i + o + apart) is stored at i + o.
        weights = np.zeros(2 * len(window) - 1)
        weights[reach : reach + len(window) - apart] = window[: len(window) - apart] * window[apart:]
        square += np.correlate(product, weights, "same")
    return np.where(square > 1e-9, np.sqrt(np.maximum(square, 0)), 1).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Candidates:
    """One partition as a query sees it."""

    partition: Partition
    layout: Layout
    eligible: Eligible
    """The rows this query may find."""
    sources: Pairs
    """Memories and the turns they were learned from, without turns that are left out."""
    names: Mapping[int, tuple[str, ...]]
    """Number of each named speaker -> the words of the name."""

    @classmethod
    def of(
        cls, partition: Partition, *, include_past: bool = False, without: Collection[int] = ()
    ) -> Candidates:
        """The current `partition`, without the turns of the sessions numbered in `without`.

        The caller holds its lock while the candidates are used.
        """
        layout = Layout.of(partition)
        eligible = layout.with_past if include_past else layout.current
        sources = layout.sources
        left_out = partition.turns_of(without) if without else None
        if left_out is not None and left_out.any():
            eligible = layout.without(eligible, left_out)
            there = eligible.rows[sources.turns]
            sources = Pairs(sources.memories[there], sources.turns[there])
        names = Lexicon.speakers_of(partition) if layout.persons else {}
        return cls(partition, layout, eligible, sources, names)
