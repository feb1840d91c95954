"""What is known and the sentence that said it are found together, and shown together."""

from __future__ import annotations

import pytest

from echoic.types import Turn


@pytest.fixture
async def ana(memory):
    ana = memory.user("ana")
    call = await ana.conversation("monday")
    for text in ("My sister is called Marta.", "I live in Porto and I work at Tesco.", "What a day it was."):
        await call.append(Turn(speaker="user", text=text))
        await call.learn()
    return ana


async def test_a_memory_and_its_sentence_are_one_hit(ana):
    hits = await ana.query("What is my sister called?")
    (shared,) = [hit for hit in hits if hit.memory and hit.memory.key == "sister_name"]
    assert shared.turn.text == "My sister is called Marta."
    assert shared.text == "Marta"
    assert [hit.turn.text for hit in hits if hit.turn].count("My sister is called Marta.") == 1


async def test_a_sentence_that_says_several_things_carries_all_of_them(ana):
    (shared,) = [hit for hit in await ana.query("Where do I live and work?") if hit.also]
    assert {memory.key for memory in shared.memories} == {"home", "employer"}
    parts = shared.apart()
    assert [part.memory.key if part.memory else None for part in parts][-1] is None
    assert parts[-1].text == "I live in Porto and I work at Tesco."


async def test_a_model_is_told_the_memory_and_the_sentence_where_that_says_more(ana):
    packed = await ana.brief("Where do I live and work?")
    assert "Porto" in packed.text
    assert "Tesco" in packed.text


async def test_who_has_the_turn_before_them_keeps_what_was_learned_from_it(ana):
    recall = (await ana.recall("What is my sister called?")).without(lambda turn: True)
    assert "Marta" in {hit.text for hit in recall.hits}
    assert not any(hit.turn for hit in recall.hits)
