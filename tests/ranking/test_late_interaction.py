"""Late interaction against its definition written out, and what it must never do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.partition import AXES, SEGMENT_ROWS, TURN, Entry, Partition, Pieces, Segment, as_packed
from echoic.ranking import query_of, rank
from echoic.ranking.fusion import CANDIDATES
from echoic.ranking.late_interaction import (
    MOST_WEIGHT,
    STOP_WEIGHT,
    WINDOW,
    late,
    piece_weights,
    vector_without,
    words_of_pieces,
)
from echoic.ranking.layout import Candidates
from echoic.text import word_of
from scale import many


def unit(rng, count):
    axes = rng.standard_normal((count, AXES)).astype(np.float32)
    return axes / np.linalg.norm(axes, axis=1, keepdims=True)


def pieces(axes, spans=()):
    return Pieces(axes=axes, hidden=axes, spans=tuple(spans) or ((0, 1),) * len(axes))


def scope(sessions, texts):
    """A partition of rows that are in these sessions (0: memories), and say these word pieces (None: none)."""
    segments = {}
    for row, (session, text) in enumerate(zip(sessions, texts, strict=True)):
        kind = TURN if session else 1
        segment = segments.setdefault(row // SEGMENT_ROWS, Segment())
        segment.put(row % SEGMENT_ROWS, Entry(text="", kind=kind, words=(), session=session, said_at_ms=row))
        tokens = None if text is None else pieces(text).packed()
        segment.attach(row % SEGMENT_ROWS, np.eye(8, dtype=np.float32)[row % 8], tokens)
    partition = Partition(8)
    partition.patch(segments.items())
    return partition


def written_out(asked, weights, sessions, texts, row):
    """The definition, a loop at a time."""
    if texts[row] is None:
        return np.nan
    total = 0.0
    for piece, weight in zip(asked, weights, strict=True):
        best = -1.0
        for off in range(-4, 5):
            other = row + off
            same = 0 <= other < len(texts) and sessions[other] == sessions[row] != 0
            if (off and not same) or texts[other] is None:
                continue
            axes, scale = as_packed([pieces(texts[other]).packed()])
            likeness = max(float(said @ piece) * scale for said in axes)
            best = max(best, likeness * float(WINDOW[off + 4]) if likeness > 0 else likeness)
        total += weight * best
    return total / weights.sum()


@settings(deadline=None, max_examples=many(60, least=10))
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    st.integers(0, 2**31),
)
def test_it_is_its_definition_written_out(runs, seed):
    rng = np.random.default_rng(seed)
    sessions, texts = [], []
    for number, (length, size, memory) in enumerate(runs, start=1):
        sessions += [0 if memory else number] * length
        texts += [unit(rng, size + 1) if rng.random() < 0.9 else None for _ in range(length)]
    partition = scope(sessions, texts)
    asked, weights = unit(rng, 5), rng.random(5).astype(np.float32) + 0.1
    rows = np.arange(len(texts))
    found = late(pieces(asked), weights, [Candidates.of(partition)], [rows]).scores
    expected = [written_out(asked, weights, sessions, texts, row) for row in rows]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_rows_of_several_places_come_in_the_order_given():
    rng = np.random.default_rng(1)
    texts = [unit(rng, 3) for _ in range(6)]
    one, two = scope([0] * 3, texts[:3]), scope([0] * 3, texts[3:])
    asked, weights = unit(rng, 4), np.ones(4, np.float32)
    both = late(
        pieces(asked), weights, [Candidates.of(one), Candidates.of(two)], [np.array([2, 0]), np.array([1])]
    ).scores
    whole = late(pieces(asked), weights, [Candidates.of(scope([0] * 6, texts))], [np.array([2, 0, 4])]).scores
    np.testing.assert_allclose(both, whole, atol=1e-5)


def test_memories_that_stand_side_by_side_do_not_answer_for_each_other():
    rng = np.random.default_rng(2)
    asked, other = unit(rng, 2), unit(rng, 2)
    partition = scope([0, 0], [asked, other])
    found = late(pieces(asked), np.ones(2, np.float32), [Candidates.of(partition)], [np.array([0, 1])]).scores
    assert found[0] > 0.99
    assert found[1] < 0.7


def test_a_turn_answers_for_the_question_before_it_but_not_across_sessions():
    rng = np.random.default_rng(3)
    asked, answer = unit(rng, 3), unit(rng, 3)
    for sessions, answers in (([1, 1], True), ([1, 2], False)):
        partition = scope(sessions, [asked, answer])
        found = late(
            pieces(asked), np.ones(3, np.float32), [Candidates.of(partition)], [np.array([1])]
        ).scores
        assert bool(found[0] > 0.85) is answers


def test_each_piece_counts_as_much_as_its_word_is_rare():
    text = "What did Jon's cello sound like?"
    words = ["What", "did", "Jon's", "cello", "sound", "like"]
    starts = [text.index(word) for word in words]
    spans = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
    spans[2:3] = [(starts[2], starts[2] + 3), (starts[2] + 3, starts[2] + 5)]
    spans.append((len(text) - 1, len(text)))
    given_pieces = pieces(np.ones((8, AXES), np.float32), spans)
    worth = {word_of("jon's").term: 0.5, word_of("sound").term: 2.0}
    weights = piece_weights(words_of_pieces(text, given_pieces), worth)
    like = STOP_WEIGHT if weights[6] == STOP_WEIGHT else MOST_WEIGHT
    expected = [STOP_WEIGHT, STOP_WEIGHT, 0.5, 0.5, MOST_WEIGHT, 2.0, like, 0.0]
    assert weights.tolist() == pytest.approx(expected)


def test_a_question_of_nothing_but_punctuation_counts_evenly():
    weights = piece_weights(["", ""], {})
    assert weights.tolist() == [1, 1]


def test_a_vector_without_words_is_the_mean_of_the_others():
    rng = np.random.default_rng(4)
    axes = unit(rng, 4)
    spans = [(0, 3), (4, 6), (6, 8), (9, 12)]
    given_pieces = pieces(axes, spans)
    words = words_of_pieces("did Mela sing", given_pieces)
    found = vector_without(words, given_pieces, frozenset({"mela"}))
    mean = (axes[0] + axes[3]) / 2
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-6)
    assert vector_without(["Mela"], pieces(axes[:1], [(0, 4)]), frozenset({"mela"})) is None


def searchable(count, tokens):
    """Turns that all say "tea" and lie equally near, with these word pieces."""
    partition = scope([0] * count, tokens)
    segments = {}
    for row in range(count):
        segment = segments.setdefault(row // SEGMENT_ROWS, Segment())
        words = ((word_of("tea"), 1),)
        segment.put(row % SEGMENT_ROWS, Entry(text="", kind=1, words=words, characters=10))
        segment.attach(row % SEGMENT_ROWS, np.eye(8, dtype=np.float32)[0], pieces(tokens[row]).packed())
    partition.patch(segments.items())
    return partition


def test_what_is_like_the_question_piece_by_piece_comes_first_and_says_so():
    rng = np.random.default_rng(5)
    asked = unit(rng, 2)
    tokens = [unit(rng, 3) for _ in range(40)]
    tokens[17] = np.concatenate([asked, unit(rng, 1)])
    partition = searchable(40, tokens)
    query = query_of("tea?", np.eye(8)[0], pieces=pieces(asked, [(0, 3), (3, 4)]))
    found = rank(query, [partition], limit=5)
    assert found[0].row == 17
    assert found[0].ranks["late"].rank == 1
    assert found[0].ranks["late"].score == pytest.approx(1, abs=0.01)
    assert "late" not in rank(query_of("tea?", np.eye(8)[0]), [partition])[0].ranks


def test_a_shorter_list_is_the_beginning_of_a_longer_one_beyond_the_candidates():
    rng = np.random.default_rng(6)
    count = CANDIDATES + 60
    partition = searchable(count, [unit(rng, 3) for _ in range(count)])
    query = query_of("tea?", np.eye(8)[0], pieces=pieces(unit(rng, 2), [(0, 3), (3, 4)]))
    whole = [hit.row for hit in rank(query, [partition], limit=count)]
    assert sorted(whole) == list(range(count))
    for limit in (1, 10, CANDIDATES, CANDIDATES + 1, count - 1):
        assert [hit.row for hit in rank(query, [partition], limit=limit)] == whole[:limit]
    scores = [hit.score for hit in rank(query, [partition], limit=count)]
    assert scores == sorted(scores, reverse=True)


def test_what_waits_for_its_word_pieces_keeps_the_place_its_words_give_it():
    rng = np.random.default_rng(7)
    tokens = [unit(rng, 3) for _ in range(12)]
    partition = searchable(12, tokens)
    waiting = Entry(text="", kind=1, words=((word_of("tea"), 1), (word_of("green"), 1)), characters=10)
    segment = Segment()
    segment.put(0, waiting)
    partition.patch([(1, segment)])
    query = query_of("green tea?", np.eye(8)[0], pieces=pieces(unit(rng, 3), [(0, 5), (6, 9), (9, 10)]))
    found = rank(query, [partition], limit=3)
    assert SEGMENT_ROWS in [hit.row for hit in found], "the only one that says green"


def test_what_was_just_said_comes_before_an_older_row_that_shares_no_word_though_only_that_is_embedded():
    rng = np.random.default_rng(8)
    old = Entry(text="", kind=1, words=((word_of("name"), 1),), characters=3)
    new = Entry(text="", kind=1, words=((word_of("lives"), 1), (word_of("lisbon"), 1)), characters=6)
    segment = Segment()
    segment.put(0, old)
    segment.attach(0, np.eye(8, dtype=np.float32)[0] * 0.3, pieces(unit(rng, 3)).packed())
    segment.put(1, new)
    partition = Partition(8)
    partition.patch([(0, segment)])
    query = query_of(
        "where does she live",
        np.eye(8)[0],
        pieces=pieces(unit(rng, 4), [(0, 5), (6, 10), (11, 14), (15, 19)]),
    )
    assert [hit.row for hit in rank(query, [partition])] == [1, 0]


def test_word_pieces_that_are_no_word_pieces_are_refused():
    from echoic.errors import InvalidInput

    with pytest.raises(InvalidInput, match="63 bytes"):
        as_packed([b"x" * 63])
