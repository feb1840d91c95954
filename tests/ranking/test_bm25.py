from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pytest

from echoic.ranking.bm25 import TermStatistics, text_scores
from echoic.ranking.indexing import entry_of_item
from echoic.ranking.layout import Candidates
from echoic.ranking.query import query_of

BOX = "The quick brown fox"
FOX = "fox fox fox hunts hens"
HEN = "hens sleep"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def idf(rows, saying):
    return math.log(1 + (rows - saying + 0.5) / (saying + 0.5))


def weight(count, length, mean):
    return count * 1.9 / (count + 0.9 * (0.6 + 0.4 * length / mean))


def scores(text, *partitions):
    places = [Candidates.of(partition) for partition in partitions]
    found = text_scores(query_of(text), places, TermStatistics(places))
    return [
        {name: getattr(found, name)[i] for name in ("own", "window", "nameless")} for i in range(len(places))
    ], found


def test_bm25_is_what_a_pencil_makes_of_it(partition, memory):
    own = scores("fox hens", partition([memory(BOX), memory(FOX), memory(HEN)]))[0][0]["own"]
    mean = (3 + 5 + 2) / 3
    assert own[:3].tolist() == pytest.approx(
        [
            idf(3, 2) * weight(1, 3, mean),
            idf(3, 2) * weight(3, 5, mean) + idf(3, 2) * weight(1, 5, mean),
            idf(3, 2) * weight(1, 2, mean),
        ],
        rel=1e-5,
    )
    assert not own[3:].any()


def test_words_are_matched_by_stem_and_forms_are_counted_together(partition, memory):
    own = scores("hen", partition([memory("hens"), memory("one hen, two hens"), memory("cock")]))[0][0]["own"]
    # "one" is a word like any other: four words
    mean = (1 + 4 + 1) / 3
    assert own[:2].tolist() == pytest.approx(
        [idf(3, 2) * weight(1, 1, mean), idf(3, 2) * weight(2, 4, mean)], rel=1e-5
    )


def test_a_word_asked_twice_counts_twice(partition, memory):
    held = partition([memory("hens"), memory("cock")])
    once, twice = scores("hens", held)[0][0]["own"], scores("hens hens", held)[0][0]["own"]
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-6)


def test_items_that_no_search_finds_do_not_make_their_words_common(partition, memory):
    items = [entry_of_item(HEN, "proposal", NOON)] * 5
    alone, beside = (
        scores("hens", partition([memory(HEN), memory(BOX), *more]))[0][0] for more in ([], items)
    )
    for name in ("own", "window"):
        np.testing.assert_array_equal(alone[name][:2], beside[name][:2])
        assert not beside[name][2:].any()


def test_statistics_are_those_of_all_given_partitions_together(partition, memory):
    mine, everyones = partition([memory(FOX)]), partition([memory(HEN), memory(BOX)])
    both, _ = scores("hens", mine, everyones)
    mean = (5 + 2 + 3) / 3
    assert both[0]["own"][0] == pytest.approx(idf(3, 2) * weight(1, 5, mean), rel=1e-5)
    assert both[1]["own"][0] == pytest.approx(idf(3, 2) * weight(1, 2, mean), rel=1e-5)
    alone, _ = scores("hens", mine)
    assert alone[0]["own"][0] == pytest.approx(idf(1, 1) * weight(1, 5, 5), rel=1e-5)


def test_a_turn_answers_for_its_neighbours_and_a_memory_for_itself(partition, turn, memory):
    turns = [turn(text, minute=i) for i, text in enumerate(["fox", "one", "two", "three", "four", "five"])]
    window = scores("fox", partition([*turns, memory("fox")]))[0][0]["window"]
    # how much a turn counts for the one before it, itself, and the four behind it
    taps = [1.0, 0.5, 0.3, 0.2, 0.1, 0.0]
    spread = {-4: 0.1, -3: 0.2, -2: 0.3, -1: 0.5, 0: 1.0, 1: 0.3, 2: 0.25, 3: 0.2, 4: 0.1}
    lengths = [sum(spread[j - i] for j in range(6) if abs(j - i) <= 4) for i in range(6)] + [1.0]
    mean = sum(lengths) / 7
    expected = [
        idf(7, 2) * weight(tap, length, mean) for tap, length in zip([*taps, 1.0], lengths, strict=True)
    ]
    assert window[:7].tolist() == pytest.approx(expected, rel=1e-5)


def test_no_window_reaches_from_one_conversation_into_the_next(partition, turn):
    turns = [turn("fox", conversation="a"), turn("hen", conversation="b"), turn("cock")]
    window = scores("fox", partition(turns))[0][0]["window"]
    assert (window[:3] > 0).tolist() == [True, False, False]


def test_neighbours_are_those_in_time_however_late_they_were_written(partition, turn):
    late = [turn("fox", minute=0), turn("hen", minute=9), turn("cock", minute=1)]
    window = scores("fox", partition(late))[0][0]["window"]
    assert window[2] > window[1] > 0


def test_speakers_names_can_be_left_out_of_the_count(partition, turn):
    held = partition([turn("I saw a fox", "Ana"), turn("and Ana a hen", "Bob", minute=1)])
    found = scores("Ana fox", held)[0][0]
    assert found["own"][0] > found["nameless"][0] > 0
    assert found["own"][1] > found["nameless"][1] == 0


def test_what_nobody_says_is_reported(partition, memory):
    _, found = scores("fox unicorn", partition([memory(FOX)]))
    assert found.unsaid == {word.term for word in query_of("unicorn").words}


def test_many_words_over_many_rows_are_counted_the_same_in_small_steps(partition, memory, monkeypatch):
    held = partition([memory(f"{BOX} {i % 7} hens {i % 3}") for i in range(70)])
    text = "quick brown fox hens 1 2 3 4 5 6"
    whole = scores(text, held)[0][0]
    monkeypatch.setattr("echoic.ranking.bm25._CELLS", 100)
    for name, values in scores(text, held)[0][0].items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-5)
