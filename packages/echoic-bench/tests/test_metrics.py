from __future__ import annotations

import numpy as np
import pytest

from echoic_bench.metrics import CUTS, METRICS, Tally, gain, interval, percentiles


@pytest.fixture
def ana(talks):
    return talks.users[0]


def figures(whose, question, *found):
    tally = Tally()
    tally.add(found, whose, question)
    return dict(zip(METRICS, tally.rows[0], strict=True)), tally.leaks


def test_the_figures_of_a_list_are_those_worked_out_by_hand(ana):
    asked = ana.answerable[0]
    found, leaks = figures(ana, asked, "ana/t3", "ana/t1", "ana/m1")
    assert leaks == 0
    assert [found[f"R@{cut}"] for cut in CUTS] == [1.0] * 4
    assert (found["hit@1"], found["hit@10"], found["MRR"]) == (0.0, 1.0, 0.5)
    assert found["nDCG@10"] == pytest.approx(1 / np.log2(3))
    assert found["session R@5"] == 1.0


def test_what_is_not_found_counts_nothing(ana):
    found, _ = figures(ana, ana.answerable[0])
    assert set(found.values()) == {0.0}


def test_beyond_the_cut_nothing_counts(talks, ana):
    filler = ["ana/t2"] * 5
    found, _ = figures(ana, ana.answerable[0], *filler, "ana/t1")
    assert (found["R@5"], found["R@10"]) == (0.0, 1.0)
    assert found["MRR"] == pytest.approx(1 / 6)


def test_a_hit_of_another_user_is_a_leak_and_finds_nothing(talks, ana):
    other = talks.users[1].items[0].id
    found, leaks = figures(ana, ana.answerable[0], other)
    assert leaks == 1
    assert found["R@10"] == 0.0


def test_a_paired_interval_tells_a_real_difference_from_chance():
    draw = np.random.default_rng(3)
    noise = draw.normal(0, 0.3, 400)
    assert interval(noise + 0.2).above_zero
    chance = interval(noise - noise.mean())
    assert not chance.above_zero
    assert chance.low < 0 < chance.high


def test_intervals_cover_the_true_mean_about_as_often_as_they_promise():
    draw = np.random.default_rng(5)
    covered = [
        found.low <= 0.3 <= found.high
        for found in (interval((draw.random(120) < 0.3).astype(float)) for _ in range(200))
    ]
    assert 0.89 <= np.mean(covered) <= 0.99


def test_a_gain_is_of_the_same_questions_in_pairs(talks, ana):
    ours, theirs = Tally(), Tally()
    for question in ana.answerable:
        ours.add(sorted(question.evidence), ana, question)
        theirs.add([], ana, question)
    assert gain(ours, theirs, "R@10").points() == [100.0, 100.0, 100.0]
    assert gain(theirs, ours, "R@10").mean == -1.0


def test_percentiles_are_of_the_nearest_rank():
    found = percentiles([i / 1000 for i in range(1, 101)])
    assert found == {"n": 100, "p50_ms": 51.0, "p95_ms": 96.0, "p99_ms": 100.0}
