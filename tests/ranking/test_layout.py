from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.partition import MEMORY, SEGMENT_ROWS, TURN, Entry, Flag, Partition, Segment
from echoic.ranking.layout import REACH, TEXT_WINDOW, VECTOR_WINDOW, Layout, Pairs
from scale import many

DIMENSIONS = 5

entries = st.builds(
    Entry,
    text=st.just(""),
    kind=st.sampled_from([MEMORY, TURN]),
    words=st.just(()),
    session=st.integers(0, 3),
    said_at_ms=st.integers(0, 4),
    flags=st.sampled_from([Flag.NONE, Flag.NONE, Flag.NONE, Flag.PAST, Flag.UNHEARD, Flag.QUESTION]),
)
changes = st.tuples(st.integers(0, 90), st.one_of(entries, st.just("drop"), st.just("attach")))


def unit(seed):
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def apply(segments, steps, seed):
    touched = set()
    for row, change in steps:
        number, slot = divmod(row, SEGMENT_ROWS)
        segment = segments.setdefault(number, Segment())
        if isinstance(change, Entry):
            segment.put(slot, change)
        elif change == "drop":
            segment.drop(slot)
        elif segment.rows[slot]["kind"]:
            segment.attach(slot, unit(seed + row))
        touched.add(number)
    return [(number, segments[number]) for number in sorted(touched)]


def sessions(partition):
    """The rows of each session in order, written out."""
    found = {}
    for row, fields in enumerate(partition.rows):
        hidden = fields["flags"] & (Flag.PAST | Flag.UNHEARD)
        if fields["kind"] == TURN and fields["session"] and not hidden:
            found.setdefault(int(fields["session"]), []).append((int(fields["said_at"]), row))
    return [[row for _, row in sorted(turns)] for turns in found.values()]


def spread(partition, values, window):
    """`Layout.spread` by the book: each turn with its neighbours in the session."""
    result = values.copy()
    reach = len(window) // 2
    for rows in sessions(partition):
        for place, row in enumerate(rows):
            near = range(max(0, place - reach), min(len(rows), place + reach + 1))
            result[row] = sum(values[rows[other]] * window[other - place + reach] for other in near)
    return result


@settings(max_examples=many(60, least=10), deadline=None)
@given(st.lists(st.lists(changes, max_size=25), min_size=1, max_size=5))
def test_windows_and_their_norms_are_by_the_book_after_any_changes(rounds):
    partition, segments = Partition(DIMENSIONS), {}
    for seed, steps in enumerate(rounds):
        partition.patch(apply(segments, steps, seed))
        layout = Layout.of(partition)
        found = np.flatnonzero(layout.with_past.rows).tolist()
        assert found == [
            row for row, r in enumerate(partition.rows) if r["kind"] and not r["flags"] & Flag.UNHEARD
        ]
        values = np.zeros(partition.size, np.float32)
        values[found] = np.arange(1, len(found) + 1)
        lengths = partition.rows["words"].astype(np.float32)
        made = layout.window_lengths[layout.slot_of[found]]
        np.testing.assert_allclose(made, spread(partition, lengths, TEXT_WINDOW)[found], rtol=1e-5)
        summed = spread(partition, partition.vectors.copy(), VECTOR_WINDOW)
        lengths = np.linalg.norm(summed, axis=1)
        for row in [row for rows in sessions(partition) for row in rows]:
            expected = lengths[row] if lengths[row] > 1e-4 else 1.0
            assert abs(layout.window_norms[layout.slot_of[row]] - expected) < 1e-3
        expected = spread(partition, values, VECTOR_WINDOW)
        for row in [row for rows in sessions(partition) for row in rows]:
            expected[row] /= layout.window_norms[layout.slot_of[row]]
        np.testing.assert_allclose(layout.spread_vectors(values), expected, rtol=1e-4, atol=1e-5)
        follows = {later: now for rows in sessions(partition) for now, later in pairwise(rows)}
        asks = partition.rows["flags"] & Flag.QUESTION != 0
        pairs = {(before, after) for after, before in follows.items() if asks[before]}
        assert set(zip(layout.asked.tolist(), layout.answered.tolist(), strict=True)) == pairs


def test_a_layout_is_kept_until_its_partition_changes_and_then_only_what_is_new_is_computed():
    partition, segments = Partition(DIMENSIONS), {}
    turn = Entry(text="", kind=TURN, words=(), session=1)
    partition.patch(apply(segments, [(row, turn) for row in range(600)], 0))
    partition.patch(apply(segments, [(row, "attach") for row in range(600)], 0))
    first = Layout.of(partition)
    assert Layout.of(partition) is first
    partition.patch(apply(segments, [(600, turn), (600, "attach")], 1))
    # a product that nothing could have changed is taken over as it is, were it wrong
    first.pairs.products[3, 0] = 42
    second = Layout.of(partition)
    assert second is not first
    assert second.pairs.products[3, 0] == 42
    assert second.pairs.partners[599, 0] == 600
    expected = partition.vectors[599] @ partition.vectors[600]
    assert abs(second.pairs.products[599, 0] - expected) < 1e-6


def test_a_vector_that_comes_later_counts_in_its_window():
    partition, segments = Partition(DIMENSIONS), {}
    turn = Entry(text="", kind=TURN, words=(), session=1)
    partition.patch(apply(segments, [(0, turn), (1, turn), (0, "attach")], 0))
    layout = Layout.of(partition)
    assert layout.window_norms[layout.slot_of[:2]].tolist() == [1.0, 0.5]
    partition.patch(apply(segments, [(1, "attach")], 0))
    layout = Layout.of(partition)
    summed = partition.vectors[0] + partition.vectors[1] * np.float32(0.5)
    assert abs(layout.window_norms[layout.slot_of[0]] - np.linalg.norm(summed)) < 1e-5


def test_turns_beside_a_gap_in_a_narrowed_partition_are_no_neighbours():
    def partition(origin):
        found = Partition(DIMENSIONS)
        turn = Entry(text="", kind=TURN, words=(), session=1)
        found.patch(apply({}, [(row, turn) for row in range(64)], 0))
        found.origin = origin
        return found

    joined = Layout.of(partition(np.arange(64)))
    assert joined.slot_of[32] - joined.slot_of[31] == 1
    apart = Layout.of(partition(np.concatenate([np.arange(32), np.arange(320, 352)])))
    assert apart.slot_of[32] - apart.slot_of[31] > REACH


def test_what_is_derived_counts_in_the_size_of_a_partition():
    partition = Partition(DIMENSIONS)
    partition.patch(apply({}, [(0, Entry(text="", kind=TURN, words=(), session=1))], 0))
    before = partition.nbytes
    layout = Layout.of(partition)
    sources = partition.scratch["ranking.sources"].nbytes
    assert partition.nbytes == before + layout.nbytes + sources > before
    pairs = Pairs(np.zeros(8, np.intp), np.zeros(8, np.intp))
    assert replace(layout, outdated=pairs).nbytes == layout.nbytes + 2 * 8 * pairs.turns.itemsize
