"""Scopes so large that they are scanned as bytes: nearly the same cosines, the same answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.partition import SEGMENT_ROWS, Partition
from echoic.ranking import channels, query_of, rank
from echoic.ranking.channels import Coarse, as_bytes
from scale import many

ROWS, DIMENSIONS = 3000, 64


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
    monkeypatch.setattr(channels, "SPREAD_QUERIES", 1)


def units(count, seed):
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture
def filled(segments, memory):
    def make(vectors):
        found = segments([memory(f"number {i}") for i in range(len(vectors))], vectors)
        partition = Partition(DIMENSIONS)
        partition.patch(sorted(found.items()))
        return partition, found

    return make


def test_cosines_are_nearly_right_and_of_the_nearest_exactly(large, filled):
    partition, _ = filled(units(ROWS, 1))
    asked = units(1, 2)[0]
    made = Coarse.of(partition).cosines(partition.vectors, asked)
    exact = partition.vectors @ asked
    np.testing.assert_allclose(made, exact, atol=0.01)
    nearest = np.argsort(-exact)[: channels.EXACT_ROWS // 2]
    np.testing.assert_allclose(made[nearest], exact[nearest], atol=1e-6)
    assert np.abs(made - exact).max() > 1e-5, "bytes were not used at all"


@pytest.mark.parametrize("seed", range(5))
def test_a_large_scope_answers_as_if_it_were_scanned_exactly(filled, monkeypatch, seed):
    partition, _ = filled(units(ROWS, seed))
    query = query_of("number", units(1, seed + 100)[0] + 0.5 * partition.vectors[seed])
    exact = rank(query, [partition], limit=10)
    monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
    monkeypatch.setattr(channels, "SPREAD_QUERIES", 1)
    scanned = []
    cosines = Coarse.cosines
    monkeypatch.setattr(Coarse, "cosines", lambda *given: scanned.append(given) or cosines(*given))
    found = rank(query, [partition], limit=10)
    assert scanned
    assert [hit.row for hit in found] == [hit.row for hit in exact]
    assert [hit.ranks["vector"].rank for hit in found] == [hit.ranks["vector"].rank for hit in exact]


def test_equal_rows_stay_equal(large, filled):
    same = np.repeat(units(1, 3), ROWS, axis=0)
    partition, _ = filled(same)
    found = rank(query_of("number", units(1, 3)[0]), [partition], limit=20)
    assert [hit.row for hit in found] == list(range(20))


def test_what_is_patched_is_scanned_as_it_is_then(large, filled, memory):
    partition, segments = filled(units(ROWS, 4))
    asked = units(1, 5)[0]
    Coarse.of(partition)
    segments[7].attach(3, asked)
    last = max(segments)
    partition.patch([(7, segments[7])])
    partition.patch([(last + 1, segments[last])])
    kept = Coarse.of(partition)
    fresh = Coarse(DIMENSIONS)
    assert fresh.catch_up(partition, len(partition.patched))
    first, second = (one.cosines(partition.vectors, asked) for one in (kept, fresh))
    np.testing.assert_array_equal(first, second)
    assert first.argmax() == 7 * SEGMENT_ROWS + 3


def test_the_first_queries_make_the_bytes_and_are_answered_exactly(filled, monkeypatch):
    monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
    partition, segments = filled(units(ROWS, 8))
    made = [Coarse.of(partition) for _ in range(4)]
    assert made[:2] == [None, None], "94 segments, 32 a query"
    assert made[2] is not None
    assert made[3] is made[2]
    partition.patch([(number, segments[number]) for number in range(1, 60, 2)])
    assert Coarse.of(partition) is made[2], "30 segments are taken in at once"
    fresh = Coarse(DIMENSIONS)
    fresh.catch_up(partition, ROWS)
    asked = units(1, 9)[0]
    both = (one.cosines(partition.vectors, asked) for one in (made[2], fresh))
    np.testing.assert_array_equal(*both)


def test_smaller_scopes_and_machines_without_the_extra_are_scanned_exactly(filled, monkeypatch):
    partition, _ = filled(units(ROWS, 6))
    assert Coarse.of(partition) is None
    monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
    monkeypatch.setattr(channels, "SPREAD_QUERIES", 1)
    assert Coarse.of(partition) is not None
    monkeypatch.setattr(channels, "_simsimd", lambda: None)
    assert Coarse.of(partition) is None


@settings(max_examples=many(60, least=10), deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-30, 1))
def test_bytes_are_within_half_a_step_and_nothing_stays_nothing(seed, length):
    vectors = np.concatenate([units(5, seed) * np.float32(length), np.zeros((1, DIMENSIONS), np.float32)])
    made, steps = as_bytes(vectors)
    assert (np.abs(made * steps[:, None] - vectors) <= 0.51 * steps[:, None]).all()
    assert not made[-1].any()
    assert not steps[-1]
