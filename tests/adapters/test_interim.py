"""Memory is searched while a caller speaks: at the end of the turn it is there, and it is the same."""

from __future__ import annotations

import asyncio

import pytest

from echoic.session.turn_recall import CallRecall, MemoryInTurn

QUESTION = "What is the name of my boat in the harbour"


@pytest.fixture
async def relay(line):
    async def start(answer=lambda _said, _given: "Yes.", **settings):
        phone = await line(answer, channel="relay", **settings)
        memory = phone.memory()
        for n in range(30):
            await memory.set(f"thing {n}", f"number {n} is in room {n}")
        await memory.set("boat", "the boat in the harbour is called Nellie")
        return phone

    return start


async def test_what_a_turn_calls_to_mind_was_found_before_it_ended(relay):
    phone = await relay()
    told = []
    phone.phone._ended = told.append
    call = await phone.call()
    held = phone.phone.known(call.sid)
    for said in (QUESTION, "And what was in room 7", QUESTION):
        await phone.service.settle()
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": False})
        while not held.recall._heard or held.recall._listening._running:
            await asyncio.sleep(0.01)
        await call.say(said)
    assert "Nellie" in phone.script.sent[-1]
    await call.hang_up()
    assert (told[0].recalls, told[0].recalls_ready) == (3, 3)


async def test_the_model_is_given_the_same_with_interim_transcripts_as_without(relay):
    phone = await relay()
    sent = []
    for interim in (True, False):
        call = await phone.call(interim=interim)
        await call.say(QUESTION)
        sent.append(phone.script.sent[-1].partition("\n[")[0])
        await call.hang_up()
        await (await phone.memory().conversation(f"call:{call.sid}")).complete()
        await phone.memory().forget(conversation=f"call:{call.sid}")
    assert sent[0] == sent[1]


async def test_an_interim_transcript_is_not_said(relay):
    phone = await relay()
    call = await phone.call()
    for words in ("My name", "My name is", "My name is Quillhilda"):
        await call.send({"type": "prompt", "voicePrompt": words, "lang": "en-US", "last": False})
    await call.say("Never mind.")
    await call.hang_up()
    assert len(phone.script.requests) == 1
    assert "Quillhilda" not in str(await phone.memory().export())
    assert "Quillhilda" not in phone.script.sent[-1]


async def test_what_was_written_while_they_spoke_is_not_missed(relay):
    phone = await relay()
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": QUESTION, "lang": "en-US", "last": False})
    await asyncio.sleep(0.2)
    await phone.memory().set("boat", "the boat in the harbour is called Argo now")
    await call.say(QUESTION)
    assert "Argo" in phone.script.sent[-1]
    assert "Nellie" not in phone.script.sent[-1]


async def test_nobody_is_given_what_was_found_for_the_one_before(relay):
    phone = await relay()
    await phone.memory().set("user_name", "Ana")
    call = await phone.call()
    for said in ("This is not Ana", "This is not Ana, it's Ben. What is the name of my boat"):
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": False})
    await asyncio.sleep(0.2)
    await call.say("This is not Ana, it's Ben. What is the name of my boat in the harbour")
    assert "Nellie" not in phone.script.sent[-1]


@pytest.mark.parametrize("said", [7, None, "", "   ", "x" * 5000, "\ud800"])
async def test_a_malformed_interim_transcript_hurts_nobody(relay, said):
    phone = await relay()
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": said, "lang": ["en"], "last": False})
    assert await call.say("hello") == "Yes."


async def test_where_recall_fails_ahead_the_turn_is_answered_all_the_same(relay, monkeypatch):
    from echoic import StoreUnavailable
    from echoic.memory.speculation import Speculation

    async def down(*_args, **_more):
        raise StoreUnavailable("planted")

    monkeypatch.setattr(Speculation, "final", down)
    phone = await relay()
    call = await phone.call(interim=True)
    assert await call.say(QUESTION) == "Yes."
    assert "Nellie" in phone.script.sent[-1], "it was looked up as it would have been"


@pytest.mark.parametrize("limit", [1, 5, 8, 9])
async def test_an_answer_at_hand_is_the_one_that_looking_gives_and_is_given_once(relay, limit):
    phone = await relay()
    memory = phone.memory()
    recall = CallRecall(memory, "call", None, deadline_ms=60_000, packs=False)
    assert (await recall.in_turn(QUESTION)).ahead is None, "nothing was heard before"
    recall.partial(QUESTION)
    await asyncio.sleep(0.2)
    heard = await recall.in_turn(QUESTION)
    assert isinstance(heard, MemoryInTurn)
    assert (await heard.recall("room 7", limit=3)).hits == (await memory.recall("room 7", limit=3)).hits
    looked = await memory.recall(QUESTION, limit=limit)
    assert (await heard.recall(QUESTION, limit=limit)).hits == looked.hits
    await memory.set("boat", "the boat in the harbour is called Argo now")
    found = (await heard.recall(QUESTION, limit=limit)).hits
    assert any("Argo" in hit.memory.text for hit in found if hit.memory), "who asks again is told what is new"
    await recall.aclose()


async def test_words_sent_one_by_one_are_all_heard_and_kept_once(relay):
    phone = await relay()
    told = []
    phone.phone._ended = told.append
    call = await phone.call(interim=True)
    for said in (QUESTION, "Thank you very much"):
        await call.say(said)
    await call.hang_up()
    assert (told[0].turns, told[0].recalls) == (2, 2)
    users = [turn.text for turn in (await phone.turns(call)).turns if turn.speaker == "user"]
    assert users == [QUESTION, "Thank you very much"]
