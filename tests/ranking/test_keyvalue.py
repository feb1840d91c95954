"""The key/value set of benchmarks/keyvalue, small: the promises its figures are made of."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from echoic.embedding import embedder_from
from echoic.errors import EmbedderMissing


@pytest.fixture
def keyvalue(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return importlib.import_module("benchmarks.keyvalue")


async def weights_are_here():
    embedder = embedder_from("local")
    try:
        await embedder.open()
    except EmbedderMissing as missing:
        pytest.skip(str(missing))
    await embedder.aclose()


def test_the_set_is_the_same_every_time_and_no_two_people_are(keyvalue):
    first, again = list(keyvalue.people(2)), list(keyvalue.people(2))
    assert first == again
    assert first[0] != first[1]
    assert len(first[0].turns) == 500
    assert {question.key for question in first[0].questions} == {memory.key for memory in first[0].memories}


async def test_a_value_asked_for_by_its_key_stands_first_among_500_turns_by_words_alone(keyvalue):
    found = await keyvalue.run("lexical", {"words": keyvalue.System(with_vector=False)}, 4)
    assert found["words"]["plain"]["hit@1"] >= 95
    assert found["words"]["plain"]["hit@5"] >= 99
    assert found["the current one comes before its past"] >= 99


async def test_with_meaning_nine_of_ten_values_stand_first_however_they_are_asked_for(keyvalue):
    await weights_are_here()
    systems = {"echoic": keyvalue.System(), "hybrid": keyvalue.System(fusion="rrf", floor=-1.0)}
    found = await keyvalue.run("local", systems, 3)
    assert found["echoic"]["all"]["hit@1"] >= 90
    assert found["echoic"]["paraphrased"]["hit@5"] >= 90
    assert found["echoic"]["all"]["hit@1"] > found["hybrid"]["all"]["hit@1"]
    assert found["the current one comes before its past"] >= 99
