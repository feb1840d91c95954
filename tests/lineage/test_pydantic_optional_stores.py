"""History, session store and memory: each can be left out of a live call, with one setting."""

from __future__ import annotations

import pytest

import echoic
from echoic.errors import InvalidInput
from echoic.memory.checkpoints import RecordSessionStore, from_json
from echoic.memory.records import CALL, CHECKPOINT, CONVERSATION, EXCHANGE, GIVEN, MEMORY, TURN, scan_all
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays

ROBIN = VoiceAgent(name="robin", instructions="You are Robin.")
FORGETFUL = SessionSettings(checkpoint_every_s=0.05, memory=False)
WORDLESS = SessionSettings(checkpoint_every_s=0.05, history=False)
UNSAVED = SessionSettings(checkpoint_every_s=0.05, checkpoints=False)
SAID = "my sister lives in Porto and my name is Zuleika"


def talk(*more):
    return Script(UserSays(SAID, after_ms=300), *more, Says("nice to meet you"), open_ended=True)


async def kinds(service, *wanted):
    ana = service.user("ana")
    return {kind: await scan_all(ana.backing_store, ana.scope, kind) for kind in wanted}


async def bare(service):
    """All that is in the store of ana, as text."""
    found = await kinds(service, TURN, MEMORY, CALL, EXCHANGE, GIVEN, CHECKPOINT, CONVERSATION)
    return str(found)


async def call(service, serve, phone, eventually, settings, script, during=None):
    async with serve("openai", script) as (server, model):
        session = VoiceSession(
            service, user="ana", agents=[ROBIN], model=model, session_id="call", settings=settings
        )
        async with session, phone(session):
            await eventually(lambda: server.sessions[0].script_over, 60)
            await eventually(lambda: session.live.playback.idle, 60)
            await eventually(lambda: session.recorder.kept >= 2, 60)
            if during is not None:
                await during(session)
        return server.sessions[0]


def tools_of(session):
    told = session.record.received("session.update")
    return {tool["name"] for event in told for tool in event.body["session"].get("tools", [])}


async def test_without_memory_an_agent_is_told_nothing_and_nothing_is_learned(
    memory, serve, phone, eventually
):
    ana = memory.user("ana")
    await ana.set("user_name", "Quillon")
    await ana.set_directives(pacing="slow")
    session = await call(memory, serve, phone, eventually, FORGETFUL, talk())
    assert "Quillon" not in str(session.record.received())
    assert "slow" not in str(session.record.received("session.update"))
    assert tools_of(session) == set()
    await memory.distil()
    assert [fact.key for fact in await ana.facts()] == ["user_name"]
    task = await ana.task("call")
    assert [turn.text for turn in task.turns] == [SAID, "nice to meet you"], "the history is kept"
    assert task.conversation.status == "completed"


async def test_with_everything_the_same_call_is_remembered(memory, serve, phone, eventually):
    ana = memory.user("ana")
    await ana.set("hobby", "falconry")
    session = await call(memory, serve, phone, eventually, SessionSettings(), talk())
    assert "falconry" in str(session.record.received())
    assert "agentMemory" in tools_of(session)
    await memory.distil()
    assert "Zuleika" in [fact.text for fact in await ana.facts()]


async def test_without_history_no_word_of_the_call_is_kept(memory, serve, phone, eventually):
    remember = Calls(ToolCall("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"}))
    seen = []

    async def during(session):
        found = await kinds(memory, CHECKPOINT)
        seen.extend(from_json(record.data) for record in found[CHECKPOINT])

    await call(memory, serve, phone, eventually, WORDLESS, talk(remember), during)
    assert seen, "the session store is another part: another process could go on"
    assert all(checkpoint.unkept == () for checkpoint in seen)
    await memory.distil()
    assert "Zuleika" not in await bare(memory)
    assert "Porto" not in await bare(memory)
    found = await kinds(memory, TURN, CALL, EXCHANGE, GIVEN)
    assert not any(found.values())
    assert [fact.text for fact in await memory.user("ana").facts()] == ["aisle"], "what a tool keeps is kept"


async def test_without_checkpoints_none_is_written_and_the_rest_is(memory, serve, phone, eventually):
    seen = []

    async def during(_session):
        seen.append(await kinds(memory, CHECKPOINT, TURN))

    await call(memory, serve, phone, eventually, UNSAVED, talk(), during)
    assert [found[CHECKPOINT] for found in seen] == [[]]
    assert len(seen[0][TURN]) == 2
    await memory.distil()
    assert "Zuleika" in [fact.text for fact in await memory.user("ana").facts()]


async def test_without_all_three_a_call_leaves_nothing_behind(memory, serve, phone, eventually):
    none = SessionSettings(history=False, checkpoints=False, memory=False)
    session = await call(memory, serve, phone, eventually, none, talk())
    await memory.distil()
    assert "Zuleika" not in await bare(memory)
    assert tools_of(session) == set()
    found = await kinds(memory, TURN, MEMORY, CALL, EXCHANGE, GIVEN, CHECKPOINT)
    assert not any(found.values())


async def test_what_was_said_on_a_call_without_memory_is_not_learned_by_whoever_resumes_it(
    memory, serve, phone, eventually
):
    ana = memory.user("ana")
    async with serve("openai", talk(), Script(open_ended=True)) as (server, model):
        options = {"user": "ana", "agents": [ROBIN], "model": model}
        first = VoiceSession(memory, session_id="call", settings=FORGETFUL, **options)
        async with first, phone(first):
            await eventually(lambda: server.sessions[0].script_over, 60)
            await eventually(lambda: first.recorder.kept >= 2, 60)
            await first.suspend()
        checkpoint = from_json((await kinds(memory, CHECKPOINT))[CHECKPOINT][0].data)
        assert not checkpoint.learns
        async with await VoiceSession.resume(memory, "call", **options):  # with memory, from here on
            await memory.distil()
    await memory.distil()
    assert await ana.facts() == []


async def test_turns_that_are_not_to_be_learned_from_are_found_as_they_were_said(memory):
    ana = memory.user("ana")
    opened = await ana.conversation("call")
    turn = echoic.Turn(speaker="user", text="my name is Zuleika", id="t1")
    await opened.append(turn, learn=False)
    await opened.append(turn)  # it comes again: what was said of it stands
    await opened.learn()
    await opened.complete()
    await memory.distil()
    assert await ana.facts() == []
    assert "Zuleika" in (await ana.query("what is the name?"))[0].text


async def test_a_session_store_for_a_call_without_checkpoints_is_refused(memory, serve):
    async with serve("openai", Script(open_ended=True)) as (_, model):
        with pytest.raises(InvalidInput, match="sessions"):
            VoiceSession(
                memory,
                user="ana",
                agents=[ROBIN],
                model=model,
                settings=UNSAVED,
                sessions=RecordSessionStore(memory.user("ana").backing_store),
            )
