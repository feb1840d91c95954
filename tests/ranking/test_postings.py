from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.partition import MEMORY, SEGMENT_ROWS, Entry, Partition, Segment
from echoic.ranking.bm25 import Postings
from echoic.text import Word, content_words, word_of
from scale import many

WORDS = "tea teas coffee dog dogs rex lisbon porto sister".split()


def entry(said):
    return Entry(text="", kind=MEMORY, words=Entry.counted(content_words(said)))


changes = st.tuples(
    st.integers(0, 20 * SEGMENT_ROWS - 1),
    st.one_of(st.none(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join).map(entry)),
)


def patch(partition, segments, steps):
    for row, change in steps:
        segment = segments.setdefault(row // SEGMENT_ROWS, Segment())
        if change is None:
            segment.drop(row % SEGMENT_ROWS)
        else:
            segment.put(row % SEGMENT_ROWS, change)
    numbers = sorted({row // SEGMENT_ROWS for row, _ in steps})
    partition.patch((number, segments[number]) for number in numbers)


def found(partition, terms):
    said = Postings.of(partition).find(terms)
    return sorted(zip(said.which.tolist(), said.row.tolist(), said.count.tolist(), strict=True))


def scanned(partition, terms):
    """The same by looking at every posting."""
    everything = zip(*(part.tolist() for part in partition.postings), strict=True)
    place = {term: i for i, term in enumerate(terms.tolist())}
    return sorted((place[term], row, count) for row, term, count in everything if term in place)


@settings(max_examples=many(60, least=10), deadline=None)
@given(
    st.lists(st.lists(changes, max_size=30), min_size=1, max_size=6),
    st.sets(st.sampled_from(WORDS), min_size=1),
)
def test_every_posting_of_a_word_is_found_and_no_other_after_any_changes(rounds, asked):
    partition, segments = Partition(), {}
    terms = np.array(sorted({word_of(word).term for word in asked} | {7}), np.uint32)
    for steps in rounds:
        patch(partition, segments, steps)
        assert found(partition, terms) == scanned(partition, terms)


def test_words_that_share_their_low_bits_are_not_taken_for_one_another():
    partition, segments = Partition(), {}
    tea = word_of("tea")
    # another word whose number differs from the first one's only in its high bits
    other = next(
        word
        for word in (Word(f"w{i}", f"w{i}", ()) for i in range(10**6))
        if word.term & 0xFFFF == tea.term & 0xFFFF and word.term != tea.term
    )
    patch(partition, segments, [(0, Entry(text="", kind=MEMORY, words=((tea, 1),)))])
    patch(partition, segments, [(1, Entry(text="", kind=MEMORY, words=((other, 1),)))])
    assert found(partition, np.array([tea.term], np.uint32)) == [(0, 0, 1)]
    patch(partition, segments, [(40, entry("tea"))])
    patch(partition, segments, [(41, Entry(text="", kind=MEMORY, words=((other, 2),)))])
    assert found(partition, np.array([other.term], np.uint32)) == [(0, 1, 1), (0, 41, 2)]


def test_buckets_are_filled_again_only_when_much_has_changed():
    partition, segments = Partition(), {}
    patch(partition, segments, [(row, entry("tea")) for row in range(20 * SEGMENT_ROWS)])
    first = Postings.of(partition)
    assert Postings.of(partition) is first
    patch(partition, segments, [(0, entry("dog"))])
    assert Postings.of(partition) is first
    patch(partition, segments, [(number * SEGMENT_ROWS, entry("dog")) for number in range(9)])
    assert Postings.of(partition) is not first
