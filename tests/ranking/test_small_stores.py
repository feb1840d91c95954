"""The small memories of benchmarks/small_stores: what they hold, and the promise that their figures are made of."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from echoic.embedding import embedder_from
from echoic.errors import EmbedderMissing
from echoic_bench.corpus import corpus_of


@pytest.fixture
def small_stores(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return importlib.import_module("benchmarks.small_stores")


def test_each_half_has_six_stores_of_either_kind_with_questions_to_answer_and_not_to(small_stores):
    for split in ("develop", "test"):
        told = small_stores.stores(split)
        assert len(told) == 6
        assert {each.kind for each in told.values()} == {"people", "call"}
        for each in told.values():
            kinds = [kind for kind, _ in each.asked]
            assert 10 <= len(each.turns) <= 60
            assert kinds.count(small_stores.OWN) >= 12
            assert kinds.count(small_stores.UNTOLD) == kinds.count(small_stores.GENERAL) == 10
            assert small_stores.as_other_kind(small_stores.as_other_kind(each)).kind == each.kind


async def test_people_who_talked_little_are_answered_in_other_words_and_not_about_general_things(
    small_stores,
):
    embedder = embedder_from("local")
    try:
        await embedder.open()
    except EmbedderMissing as missing:
        pytest.skip(str(missing))
    told = {"interview": small_stores.stores("develop")["interview"]}
    async with corpus_of(small_stores.dataset_of(told, "small"), embedder) as corpus:
        (row,) = await small_stores.ask(corpus, told)
    assert row["silent"][small_stores.OWN] <= 2
    assert row["silent"][small_stores.GENERAL] >= 9
