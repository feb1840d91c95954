"""That everything is timed. How long it takes is for benchmarks to say."""

from __future__ import annotations

import itertools

import pytest

from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic.memory.times.phrases import may_mean_time
from echoic_bench.latency import _questions, measure_latency


async def test_every_size_is_timed_new_and_repeated_by_one_caller_and_several(tmp_path):
    found = await measure_latency(
        embedder_from("lexical"), sizes=[40, 80], callers=[1, 3], questions=12, folder=tmp_path
    )
    assert [one.memories for one in found] == [40, 80]
    for one in found:
        assert one.users == 3
        assert one.encoded.keys() == one.repeated.keys() == {1, 3}
        assert {times["n"] for times in (*one.encoded.values(), *one.repeated.values())} == {12}
        assert {times["n"] for times in one.timed.values()} <= {1, 2}, "one in seven names a time"
        assert all(times["p50_ms"] > 0 for times in (*one.encoded.values(), one.first, one.write))
    assert list(tmp_path.iterdir()) == []


async def test_an_import_is_measured_as_a_ratio_to_rest_and_can_be_left_out():
    (found,) = await measure_latency(
        embedder_from("lexical"), sizes=[20], callers=[1], questions=4, imported=64
    )
    assert found.importing is not None
    assert found.at_rest is not None
    assert 1 <= found.importing["n"] == found.at_rest["n"] <= 4
    ratio = found.as_json()["import to rest"]
    assert ratio["p50"] == pytest.approx(found.importing["p50_ms"] / found.at_rest["p50_ms"], abs=0.01)
    (found,) = await measure_latency(
        embedder_from("lexical"), sizes=[20], callers=[1], questions=4, imported=0
    )
    assert found.importing is None
    assert "import to rest" not in found.as_json()


async def test_a_repeated_question_is_not_encoded_again(monkeypatch):
    inner = embedder_from("lexical")
    asked = []
    embed = inner.embed

    async def counted(texts, kind):
        asked.extend(texts if kind == "query" else [])
        return await embed(texts, kind)

    inner.embed = counted
    await measure_latency(inner, sizes=[20], callers=[1], questions=10)
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("wrong", [{"sizes": [0]}, {"callers": []}, {"questions": 0}])
async def test_numbers_below_one_are_refused(wrong):
    with pytest.raises(InvalidInput, match="whole numbers from 1"):
        await measure_latency(embedder_from("lexical"), **wrong)


async def test_more_questions_than_there_are_are_refused_before_anything_is_filled():
    there = len([*_questions(seed=0)])
    with pytest.raises(InvalidInput, match=f"ask for {there // 4} at most"):
        await measure_latency(embedder_from("lexical"), sizes=[10], callers=[1, 2], questions=there // 4 + 1)


async def test_a_size_that_is_named_twice_is_measured_once():
    found = await measure_latency(embedder_from("lexical"), sizes=[20, 20], callers=[1], questions=5)
    assert [one.memories for one in found] == [20]


def test_no_two_questions_are_alike_and_as_many_name_a_time_as_people_do():
    first = list(itertools.islice(_questions(seed=1), 700))
    assert len(set(first)) == 700
    assert sum(map(may_mean_time, first)) == 100
    assert len({*_questions(seed=1)}) == len([*_questions(seed=1)]) > 20_000
