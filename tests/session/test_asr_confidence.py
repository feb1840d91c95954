from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.realtime.openai import OpenAIRealtimeConnection, OpenAIRealtimeModel

from echoic.memory.conversation import OpenConversation
from echoic.memory.extraction.turns import affirms
from echoic.session import VoiceAgent, VoiceSession
from echoic.session.provider_connections import confidence_of
from echoic_loopback.realtime import Says, Script, UserSays
from session.conftest import Stored

ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")


async def said(memory, serve, phone, eventually, *steps, name="d"):
    script = Script(*steps, open_ended=True)
    async with serve("openai", script) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id=name)
        waits = [step for step in steps if isinstance(step, Stored)]
        for step in waits:
            step.session = session
        async with session, phone(session):
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
            await eventually(
                lambda: session.live.playback.idle and session.recorder.kept == len(steps) - len(waits)
            )
    return server


async def the_name(memory):
    return await memory.user("ana").get("user_name")


async def test_a_name_heard_with_doubt_is_known_and_marked_so_in_the_block(memory, serve, phone, eventually):
    server = await said(
        memory,
        serve,
        phone,
        eventually,
        UserSays("my name is Siobhan", after_ms=300, confidence=0.4),
        Says("hello"),
    )
    assert (await the_name(memory)).text == "Siobhan"
    assert not (await the_name(memory)).confirmed
    assert "unconfirmed" in (await memory.user("ana").block()).text
    turns = (await memory.user("ana").task("d")).turns
    assert turns[0].confidence == pytest.approx(0.4, abs=0.01)
    assert turns[1].confidence is None
    assert "unconfirmed" in str(server.sessions[0].record.received())


async def test_a_call_that_ends_while_it_learns_from_a_turn_learns_it_still(
    memory, serve, phone, monkeypatch
):
    learn, begun = OpenConversation.learn, asyncio.Event()

    async def hangs_at_first(conversation):
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(60)
        return await learn(conversation)

    monkeypatch.setattr(OpenConversation, "learn", hangs_at_first)
    script = Script(UserSays("my name is Siobhan", after_ms=300, confidence=0.4), open_ended=True)
    async with serve("openai", script) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[ROBIN], model=model)
        async with session, phone(session), asyncio.timeout(20):
            await begun.wait()
    assert not (await the_name(memory)).confirmed


async def test_a_name_heard_clearly_is_confirmed(memory, serve, phone, eventually):
    await said(
        memory,
        serve,
        phone,
        eventually,
        UserSays("my name is Siobhan", after_ms=300, confidence=0.95),
        Says("hello"),
    )
    assert (await the_name(memory)).confirmed


async def test_what_is_no_name_or_number_is_not_doubted(memory, serve, phone, eventually):
    await said(
        memory,
        serve,
        phone,
        eventually,
        UserSays("I prefer tea", after_ms=300, confidence=0.3),
        Says("noted"),
    )
    facts = await memory.user("ana").facts()
    assert facts
    assert all(fact.confirmed for fact in facts)


@pytest.mark.parametrize(
    ("then", "confirmed"),
    [
        (("you are called Siobhan", "yes that is right", 0.95), True),
        (("you are called Siobhan", "no it is not", 0.95), False),
        (("hello", "yes", 0.95), False),
        (("pardon", "my name is Siobhan", 0.95), True),
        (("pardon", "my name is Siobhan", 0.3), False),
    ],
)
async def test_a_later_turn_confirms_it(memory, serve, phone, eventually, then, confirmed):
    reads_back, answer, confidence = then
    await said(
        memory,
        serve,
        phone,
        eventually,
        UserSays("my name is Siobhan", after_ms=300, confidence=0.4),
        Says(reads_back),
        Stored(2),  # one who cuts in has not heard what is read back
        UserSays(answer, confidence=confidence),
        Says("thank you"),
    )
    assert (await the_name(memory)).confirmed is confirmed


def test_a_turn_is_as_sure_as_its_least_sure_word():
    assert confidence_of([-0.01, -1.2]) == pytest.approx(0.301, abs=0.001)
    assert confidence_of([]) is None


@pytest.mark.parametrize("text", ["yes", "Yeah, that's me", "that's right", "Correct."])
def test_a_yes_affirms(text):
    assert affirms(text)


@pytest.mark.parametrize("text", ["yes but no", "no", "not quite right", "I said yes to that", "yesterday"])
def test_anything_else_does_not(text):
    assert not affirms(text)


def test_the_methods_that_are_overridden_are_still_there():
    assert callable(OpenAIRealtimeModel._session_config)
    assert callable(OpenAIRealtimeModel._connection_class)
    assert callable(OpenAIRealtimeConnection._map_event)
