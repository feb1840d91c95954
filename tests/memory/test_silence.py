"""Nothing is said where nothing is known; it is said as such; and whoever wants everything gets it."""

from __future__ import annotations

import asyncio

import pytest

import echoic
from echoic.errors import InvalidInput
from echoic.ranking.relevance import SILENCE, SILENCE_AMONG_PEOPLE
from echoic.types import Turn

FILLERS = ["Okay.", "Thanks, bye!", "Can you hear me?", "uh huh", "mm-hmm, right", "Hello?"]


@pytest.fixture
async def ana():
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.set("home_city", "Leeds")
        await ana.remember("Ana's sister Marta keeps bees")
        call = await ana.conversation("c")
        await call.append(
            Turn(speaker="agent", text="Hello, can you hear me? Okay, thanks."),
            Turn(speaker="user", text="Okay, thanks. My dentist is on Monday at ten."),
        )
        await memory.settle(30)
        yield ana


@pytest.mark.parametrize("filler", FILLERS)
async def test_fillers_recall_nothing_and_the_outcome_is_complete(ana, filler):
    recall = await ana.recall(filler)
    assert recall.hits == ()
    assert recall.outcome == "complete"
    assert await ana.query(filler) == []
    assert (await ana.brief(filler)).shown == ()
    assert (await ana.block(moment=filler)).section("now") == ""
    async with ana.listen() as listening:
        listening.partial(filler)
        assert (await listening.final(filler)).hits == ()


async def test_zero_shows_everything_that_was_found(ana):
    assert await ana.query("Okay, thanks.", min_relevance=0)
    assert (await ana.brief("Okay, thanks.", min_relevance=0)).shown
    async with ana.listen(min_relevance=0) as listening:
        assert (await listening.final("Okay, thanks.")).hits


async def test_what_is_known_is_found_without_asking_for_more(ana):
    for question in ("What does my sister Marta keep?", "When is my dentist?", "What is my home city?"):
        hits = await ana.query(question)
        assert hits, question
        assert 0 < hits[0].relevance <= 1


async def test_a_floor_of_ones_own_holds_for_every_hit(ana):
    everything = await ana.query("When does Marta see the dentist?", min_relevance=0)
    middle = sorted(hit.relevance for hit in everything)[len(everything) // 2]
    some = await ana.query("When does Marta see the dentist?", min_relevance=middle)
    assert some == [hit for hit in everything if hit.relevance >= middle]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "0.5", True])
async def test_a_floor_that_is_no_share_is_refused(ana, wrong):
    with pytest.raises(InvalidInput, match="min_relevance"):
        await ana.query("dentist", min_relevance=wrong)
    with pytest.raises(InvalidInput, match="min_relevance"):
        ana.listen(min_relevance=wrong)


async def test_a_question_that_was_asked_before_is_no_answer(ana):
    call = await ana.conversation("later")
    await call.append(Turn(speaker="user", text="What is the name of my parrot?"))
    recall = await ana.recall("What is the name of my parrot?")
    assert recall.hits == ()
    assert recall.outcome == "complete"


async def test_what_was_said_in_the_time_asked_for_is_found_though_no_word_is_shared(ana):
    assert await ana.query("What did I tell you today?")


async def test_the_conversation_that_goes_on_is_left_out_of_a_recall_and_a_brief(memory):
    ana = memory.user("ana")
    before = await ana.conversation("before")
    await before.append(Turn(speaker="user", text="I keep my spare blanket in the blue cedar chest."))
    call = await ana.conversation("now")
    asked = "Where do I keep my spare blanket?"
    await call.append(Turn(speaker="user", text=asked))
    await call.append(Turn(speaker="agent", text="Your spare blanket? Let me look."))
    found = await ana.recall(asked, limit=1, besides="now", min_relevance=0)
    assert [hit.text for hit in found.hits] == ["I keep my spare blanket in the blue cedar chest."]
    assert asked in str((await ana.recall(asked, min_relevance=0)).hits)
    told = (await ana.brief(asked, besides="now", min_relevance=0)).text
    assert "blue cedar chest" in told
    assert "Let me look" not in told
    with pytest.raises(InvalidInput):
        await ana.recall(asked, besides="")


async def test_turns_and_memories_are_left_out_by_their_ids(memory):
    ana = memory.user("ana")
    kept = await ana.remember("The north shed is locked")
    call = await ana.conversation("call")
    (turn,) = await call.append(Turn(speaker="user", text="The south shed is locked too."))
    asked = "Which shed is locked?"

    def told(hits):
        return {hit.memory.id if hit.memory else hit.turn.id for hit in hits}

    assert told(await ana.query(asked, min_relevance=0)) == {kept.id, turn.id}
    assert told(await ana.query(asked, min_relevance=0, besides=kept.id)) == {turn.id}
    assert told(await ana.query(asked, min_relevance=0, besides={turn.id})) == {kept.id}
    assert await ana.query(asked, min_relevance=0, besides=[turn.id, kept.id]) == []
    assert "north" in (await ana.block(moment=asked)).text
    assert "north" not in (await ana.block(moment=asked, besides=[kept.id])).text
    async with ana.listen(min_relevance=0, besides="call") as listening:
        listening.partial(asked)
        assert told((await listening.final(asked)).hits) == {kept.id}
    for wrong in (["call", ""], [5], 5):
        with pytest.raises(InvalidInput, match="besides"):
            await ana.query(asked, besides=wrong)


async def test_a_question_appended_before_it_is_asked_changes_nothing_and_spoils_no_answer_at_hand(memory):
    ana = memory.user("ana")
    before = await ana.conversation("before")
    await before.append(
        Turn(speaker="user", text="I keep my spare blanket in the blue cedar chest."),
        Turn(speaker="user", text="The blanket for the dog lies in the car."),
        Turn(speaker="agent", text="A spare blanket never hurts."),
    )
    await memory.settle(30)
    call = await ana.conversation("now")
    asked = "Where do I keep my spare blanket?"
    plain = await ana.recall(asked, besides="now")
    async with ana.listen(limit=10, besides="now") as listening:
        listening.partial(asked)
        while not listening._known:
            await asyncio.sleep(0.01)
        await call.append(Turn(speaker="user", text=asked), learn=False)
        await memory.settle(30)  # its vector is there, too
        final = await listening.final(asked)
        assert listening.statistics.ready == 1, "it was searched for anew"
    again = await ana.recall(asked, besides="now")
    told = [(hit.text, hit.score, hit.relevance) for hit in plain.hits]
    assert told
    assert [(hit.text, hit.score, hit.relevance) for hit in final.hits] == told
    assert [(hit.text, hit.score, hit.relevance) for hit in again.hits] == told


async def test_what_another_conversation_says_meanwhile_is_in_the_answer(memory):
    ana = memory.user("ana")
    call, other = await ana.conversation("now"), await ana.conversation("other")
    await other.append(Turn(speaker="user", text="The blanket for the dog lies in the car."), learn=False)
    await memory.settle(30)
    asked = "Where do I keep my spare blanket?"
    async with ana.listen(besides="now", min_relevance=0) as listening:
        listening.partial(asked)
        while not listening._known:
            await asyncio.sleep(0.01)
        await call.append(Turn(speaker="user", text=asked), learn=False)
        await other.append(Turn(speaker="user", text="My spare blanket is in the chest."), learn=False)
        final = await listening.final(asked)
    assert "My spare blanket is in the chest." in [hit.text for hit in final.hits]


async def test_a_block_for_a_moment_knows_what_was_asked_in_the_running_conversation_is_no_memory(memory):
    ana = memory.user("ana")
    for number in range(9):
        await (await ana.conversation("now")).append(
            Turn(speaker="user", text=f"Is the ferry to Aran boat number {number}?"), learn=False
        )
    await ana.remember("The ferry to Aran sails at noon")
    moment = "When does the ferry to Aran sail?"
    block = await ana.block(conversation="now", moment=moment)
    assert "noon" in block.text


async def test_an_agents_own_phrases_are_no_memory_and_statements_come_before_questions(memory):
    ana = memory.user("ana")
    call = await ana.conversation("before")
    await call.append(
        Turn(speaker="agent", text="Hello. I know nothing about you yet. What should I call you?"),
        Turn(speaker="user", text="What time did I say the train to Leeds leaves on Monday?"),
        Turn(speaker="agent", text="I don't know when your train leaves."),
        Turn(speaker="user", text="The train to Leeds leaves at 7:40."),
        Turn(speaker="agent", text="The train to Leeds leaves at 7:40, noted."),
        Turn(speaker="agent", text="I have booked seat 14 on the train to Leeds."),
        learn=False,
    )
    for asked in ("What do you know about me?", "What time does the train to Leeds leave?", "train to Leeds"):
        told = [hit.text for hit in await ana.query(asked, min_relevance=0.001)]
        assert not [
            text for text in told if "know nothing" in text or "don't know" in text or "noted" in text
        ]
    told = [hit.text for hit in await ana.query("What time did I say the train to Leeds leaves?")]
    assert told[0] == "The train to Leeds leaves at 7:40."
    assert "I have booked seat 14 on the train to Leeds." in told
    everything = [hit.text for hit in await ana.query("train to Leeds", min_relevance=0)]
    assert "The train to Leeds leaves at 7:40, noted." in everything


@pytest.mark.parametrize(("agent", "floor"), [("Robin", SILENCE), (None, SILENCE_AMONG_PEOPLE)])
async def test_a_conversation_with_an_agent_is_a_call_whatever_its_speakers_are_called(memory, agent, floor):
    ana = memory.user("ana")
    call = await ana.conversation("call", agent=agent)
    await call.append(
        Turn(speaker="Ana", text="My spare blanket is in the blue cedar chest."),
        Turn(speaker="Robin", text="Noted, the blue cedar chest."),
    )
    recaller = memory._parts.recaller
    floors = []

    async def ranked(*args, **kwargs):
        found = await rank(*args, **kwargs)
        floors.append(found[0][0].floor)
        return found

    rank, recaller._rank = recaller._rank, ranked
    assert (await ana.recall("Where is my spare blanket?", min_relevance=0)).hits
    assert floors[-1] == floor
    await (await ana.conversation("later", agent="Robin")).append(Turn(speaker="Ana", text="Hello, Robin."))
    assert (await ana.recall("Where is my spare blanket?", min_relevance=0)).hits
    assert floors[-1] == SILENCE, "one call among them"


async def test_what_a_caller_asks_for_is_not_taken_for_their_name_where_it_was_said(memory):
    found = []
    for name in ("ana", "x7"):
        user = memory.user(name)
        call = await user.conversation("before")
        await call.append(Turn(speaker="user", text="I flew to India in May."), learn=False)
        await user.remember("The user drinks green tea.")
        await memory.settle()
        found.append([(hit.text, hit.relevance) for hit in await user.query("Have I been to India?")])
    assert found[0][0][0] == "I flew to India in May."
    assert found[0] == found[1]
