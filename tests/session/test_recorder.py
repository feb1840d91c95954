"""A call whose checkpoint is erased goes on, and the next one holds nothing of what was said before."""

from __future__ import annotations

import pytest

from echoic.capability.talker import history_of
from echoic.memory.records import CHECKPOINT, GIVEN, scan_all
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic.session.recorder import CallRecorder
from echoic.types import Turn
from echoic_loopback.realtime import Says, Script, UserSays
from session.conftest import BY_ONE_PROVIDER, Stored

OFTEN = SessionSettings(checkpoint_every_s=0.1)


async def quoted(memory):
    """What of a call may quote it, beside its turns."""
    ana = memory.user("ana")
    kinds = [await scan_all(ana.backing_store, ana.scope, kind) for kind in (CHECKPOINT, GIVEN)]
    return str([record.data for records in kinds for record in records])


async def stored(memory):
    task = await memory.user("ana").task("call")
    return [turn.text for turn in task.turns] if task else []


@pytest.fixture
def call(memory):
    """Says something in a call, and writes a checkpoint of all of it."""
    recorder = CallRecorder(memory.user("ana"), "call", "robin", history_tokens=1)

    async def say(*said, save=True):
        for text in said:
            await recorder.add(Turn(speaker="user", text=text, id=f"turn-{len(recorder.turns)}"))
        if save:
            await recorder.save("robin", history_of(recorder.turns))

    say.recorder = recorder
    return say


@pytest.mark.parametrize("saved", [True, False])
async def test_a_call_that_may_be_remembered_after_all_is_without_what_was_said_before(memory, call, saved):
    await call("I live in Lisbon", save=saved)
    await call("please don't remember this call", "my cat is Tom", save=saved)
    await call("you may remember this call", save=saved)
    await call("I like tea", "I like coffee")
    assert call.recorder.lost is None
    kept = await quoted(memory)
    assert "tea" in kept, "the summary quotes it"
    assert "coffee" in kept
    assert "Lisbon" not in kept
    assert "Tom" not in kept
    assert "Lisbon" not in str(await stored(memory))
    assert (await stored(memory))[-2:] == ["I like tea", "I like coffee"]


async def test_a_memory_that_is_forgotten_meanwhile_ends_no_call(memory, call):
    ana = memory.user("ana")
    await ana.set("word", "violet")
    await call("good morning", "the word is violet", "what is it")
    assert "violet" in await quoted(memory)
    await ana.forget(key="word")
    call.recorder.log.give("tool-return", "look", "violet")
    await call("I like tea")
    await call("I like coffee", "and cake")
    assert (call.recorder.lost, call.recorder.keeping) == (None, True)
    assert (await stored(memory))[-3:] == ["I like tea", "I like coffee", "and cake"]
    kept = await quoted(memory)
    assert "coffee" in kept
    assert "cake" in kept
    assert "violet" not in kept
    await call.recorder.end()
    assert (await ana.find_conversation("call")).status == "completed"
    assert "violet" not in await quoted(memory)


async def test_a_call_that_another_process_took_over_and_ended_is_lost(memory, call):
    await call("good morning")
    other = CallRecorder(memory.user("ana"), "call", "robin")
    assert await other.take_up() is not None
    await other.end()
    assert await quoted(memory) == "[]"
    await call("I like tea")
    assert call.recorder.lost == "taken over"
    assert await quoted(memory) == "[]"


async def test_a_checkpoint_that_is_on_hold_and_stays_is_written_on(memory, call):
    await call("good morning")
    await memory.user("ana").hold()
    await call("please don't remember this call")
    await call("you may remember this call", "I like tea")
    assert call.recorder.lost is None
    assert "tea" in await quoted(memory)
    assert (await stored(memory))[-1] == "I like tea"


async def test_a_call_that_was_resumed_begins_again_too(memory, call):
    ana = memory.user("ana")
    await ana.set("word", "violet")
    await call("the word is violet", "what is it")
    other = CallRecorder(ana, "call", "robin", history_tokens=1)
    await other.claim(await other.find())
    await ana.forget(key="word")
    for number, text in enumerate(("I like tea", "I like coffee", "and cake")):
        await other.add(Turn(speaker="user", text=text, id=f"other-{number}"))
        await other.save("robin", [*history_of(call.recorder.turns), *history_of(other.turns)])
    assert other.lost is None
    kept = await quoted(memory)
    assert "coffee" in kept
    assert "cake" in kept
    assert "violet" not in kept


@BY_ONE_PROVIDER
async def test_a_caller_who_lets_the_call_be_remembered_after_all_talks_on(
    memory, provider, serve, phone, eventually
):
    async def saved(_stage):
        async def holds():
            return "Lisbon" in await quoted(memory)

        await eventually(holds)

    silent, allowed = Stored(4), Stored(6)
    script = Script(
        UserSays("I live in Lisbon", after_ms=300),
        Says("how nice"),
        saved,
        UserSays("please don't remember this call"),
        Says("very well"),
        silent,
        UserSays("you may remember this call"),
        Says("thank you"),
        allowed,
        UserSays("I like tea"),
        Says("so do I"),
        open_ended=True,
    )
    async with serve(provider, script) as (_, model):
        session = VoiceSession(
            memory,
            user="ana",
            agents=[VoiceAgent(name="robin")],
            model=model,
            session_id="call",
            settings=OFTEN,
        )
        silent.session = allowed.session = session
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 8 or session.state == "closed")
            assert session.state == "active"

            async def holds():
                return "tea" in await quoted(memory)

            await eventually(holds)
            assert "I like tea" in await stored(memory)
            assert "Lisbon" not in await quoted(memory)
            assert session.state == "active"
