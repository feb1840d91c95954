from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ranking.channels import Channels
from echoic.ranking.fusion import BROAD, CLOSE, CLOSE_IN_CALLS, FUSIONS, RRF_WEIGHTS, blend, rrf, scaled, top
from echoic.ranking.layout import Candidates

NOWHERE = math.nan
ROWS = 40

scores = st.one_of(st.just(NOWHERE), st.integers(-5, 20).map(float), st.floats(-1, 1))
channel = st.lists(scores, min_size=ROWS, max_size=ROWS).map(np.array)


def test_rrf_is_the_sum_of_weight_over_60_plus_rank():
    vector = np.array([0.9, 0.8, NOWHERE, 0.1])
    text = np.array([NOWHERE, 2.0, 7.0, NOWHERE])
    fused = rrf({"vector": vector, "text": text})
    assert fused.tolist() == pytest.approx([0.7 / 61, 0.7 / 62 + 0.3 / 62, 0.3 / 61, 0.7 / 63], rel=1e-12)


def test_rrf_leaves_out_what_no_channel_finds_and_ranks_equals_in_order():
    fused = rrf({"vector": np.array([NOWHERE, 0.5, 0.5]), "text": np.array([NOWHERE] * 3)})
    assert math.isnan(fused[0])
    assert fused[1:].tolist() == pytest.approx([0.7 / 61, 0.7 / 62])


def test_rrf_looks_no_deeper_into_a_channel_than_it_is_told():
    fused = rrf({"vector": np.arange(9.0), "text": np.full(9, NOWHERE)}, depth=2)
    assert np.flatnonzero(~np.isnan(fused)).tolist() == [7, 8]


def naive_rank_fusion(channels, weights, k, depth):
    """What the server does: a list of documents a pipeline, cut at its limit, scores summed by id."""
    fused = {}
    for name, weight in weights.items():
        found = [(score, row) for row, score in enumerate(channels[name].tolist()) if not math.isnan(score)]
        pipeline = [row for _, row in sorted(found, key=lambda item: (-item[0], item[1]))][:depth]
        for place, row in enumerate(pipeline, start=1):
            fused[row] = fused.get(row, 0.0) + weight * (1 / (k + place))
    return fused


@given(st.fixed_dictionaries({"vector": channel, "text": channel}), st.integers(1, 80), st.integers(1, 50))
def test_rrf_equals_the_servers_formula_written_out(channels, k, depth):
    fused = rrf(channels, RRF_WEIGHTS, k, depth)
    expected = naive_rank_fusion(channels, RRF_WEIGHTS, k, depth)
    assert {row: fused[row] for row in np.flatnonzero(~np.isnan(fused)).tolist()} == pytest.approx(expected)


# rows of equal scores are told apart by their order: here no two are equal
distinct = st.permutations([*map(float, range(25)), *[NOWHERE] * (ROWS - 25)]).map(np.array)


@given(st.fixed_dictionaries({"vector": distinct, "text": distinct}), st.permutations(range(ROWS)))
def test_rrf_scores_go_with_the_rows_wherever_they_stand(channels, order):
    shuffled = rrf({name: values[order] for name, values in channels.items()})
    np.testing.assert_allclose(shuffled, rrf(channels)[order], rtol=1e-12)


@given(channel, st.integers(1, 50))
def test_the_best_are_a_stable_sort_cut_short(values, count):
    found = [row for row in range(ROWS) if not math.isnan(values[row])]
    assert top(values, count).tolist() == sorted(found, key=lambda row: -values[row])[:count]


@given(channel)
def test_scaling_runs_from_0_to_1_and_keeps_the_order(values):
    made = scaled(values)
    there = ~np.isnan(values)
    assert np.array_equal(np.isnan(made), ~there)
    if there.any():
        assert made[there].min() == 0
        assert made[there].max() <= 1
        assert (np.diff(made[top(values, ROWS)]) <= 0).all()


def channels_of(rows, **given):
    """All that `blend` asks for, nothing found, but for what is given."""
    nothing, zero = np.full(rows, np.nan, np.float32), np.zeros(rows, np.float32)
    found = dict.fromkeys(("vector", "text", "fuzzy", "window", "vector_own", "vector_window"), nothing)
    found |= dict.fromkeys(("text_window", "keyed", "length", "asking", "answer"), zero)
    return found | {name: np.array(values, np.float32) for name, values in given.items()}


def blended(channels):
    """[rows] What `blend` makes of all rows; NaN of what it leaves out."""
    order = blend(channels, ROWS)
    fused = np.full(len(channels["vector"]), np.nan)
    fused[order.rows] = order.scores
    return fused


def test_blend_is_the_weighted_sum_of_scaled_scores_and_signals():
    fused = blended(
        channels_of(
            3,
            window=[1.0, 4.0, NOWHERE],
            vector=[0.5, NOWHERE, 0.2],
            text_window=[1.0, 4.0, 0.0],
            vector_window=[0.6, 0.2, 0.1],
            vector_own=[0.5, 0.1, 0.2],
            speaker=[1.0, 0.0, 0.0],
            date=[0.0, 0.5, 0.0],
            length=[0.5, 1.0, 0.0],
            asking=[0.0, 1.0, 0.0],
            answer=[0.0, 0.0, 0.5],
        )
    )
    expected = [
        0.45 * 0.25 + 0.40 * 1.0 + 0.05 * 1.00 + 0.25 + 0.12 * 0.5,
        0.45 * 1.00 + 0.40 * 0.2 + 0.05 * 0.00 + 0.75 * 0.5 + 0.12 - 0.08,
        0.45 * 0.00 + 0.40 * 0.0 + 0.05 * 0.25 + 0.12 * 0.5,
    ]
    assert fused.tolist() == pytest.approx(expected, abs=1e-6)


def test_signals_alone_find_nothing():
    fused = blended(channels_of(2, speaker=[1, 1], date=[1, 1], window=[NOWHERE, 3.0]))
    assert np.isnan(fused).tolist() == [True, False]


def test_a_row_that_waits_for_its_vector_is_taken_to_mean_what_its_words_say():
    words = [0.0, 0.0, 4.0, 4.0]
    vectors = [0.1, 0.1, 0.7, NOWHERE]
    fused = blended(
        channels_of(4, window=words, text_window=words, vector_window=vectors, vector_own=vectors)
    )
    assert fused[3] == pytest.approx(fused[2], rel=0.2)
    assert fused[3] > fused[0]


def test_a_value_under_a_key_is_not_blamed_for_words_it_lacks():
    vectors = [0.6, 0.6, 0.0]
    found = channels_of(3, vector=vectors, text_window=[0, 0, 1.0], vector_window=vectors, vector_own=vectors)
    plain, keyed = blended(found), blended(found | {"keyed": np.array([1, 0, 0], np.float32)})
    assert keyed[0] == pytest.approx(plain[0] + 0.45 + 0.10, abs=1e-6)
    assert keyed[1] == plain[1]


def test_fusing_changes_no_channel():
    found = channels_of(
        3, window=[1, 2, 3], text_window=[1, 2, 3], vector_window=[1, 2, 3], vector_own=[1, 2, 3]
    )
    found |= {"keyed": np.ones(3, np.float32), "vector": found["window"], "text": found["window"]}
    before = {name: values.copy() for name, values in found.items()}
    for fusion in FUSIONS.values():
        fusion.fuse(found, 2)
    for name, values in found.items():
        np.testing.assert_array_equal(values, before[name])


@pytest.mark.parametrize(
    ("speakers", "calls", "weights"),
    [
        (("user", "agent"), False, CLOSE_IN_CALLS),
        (("Ana", "agent"), False, CLOSE_IN_CALLS),
        (("Ana", "Ben"), False, CLOSE),
        (("Ana", "Ben"), True, CLOSE_IN_CALLS),
    ],
)
def test_calls_and_conversations_between_people_are_weighed_differently(
    turn, closely, speakers, calls, weights
):
    make, ask = closely
    said = [turn(f"Tea {'and cake ' * n}.", speakers[n % 2], f"c{n}") for n in range(10)]
    made = make(said, [[n, 20 + n % 3] for n in range(10)])
    with made.lock:
        channels = Channels(ask("tea?", [3, 21]), [Candidates.of(made)], 0.12, calls=calls)
        usual = blend(channels, 10)
        given, other = (
            blend(channels, 10, BROAD, close)
            for close in (weights, CLOSE if weights is CLOSE_IN_CALLS else CLOSE_IN_CALLS)
        )
    assert usual.scores.tolist() == given.scores.tolist()
    assert usual.scores.tolist() != other.scores.tolist()
