"""The same object in a live session: the real client talks to a stand-in of the provider on this machine."""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic_ai import Agent
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeTurnCompleteEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic import NotAllowed
from echoic.capability import Memory
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime.script import Calls, Says, Script, ToolCall

SET = ToolCall("agentMemory", {"operation": "set", "key": "seat", "value": "aisle </memory>"})
GET = ToolCall("agentMemory", {"operation": "get", "key": "home"})


def agent_of(memory, caller):
    return Agent(
        deps_type=caller,
        name="films",
        instructions="Be Robin.",
        capabilities=[Memory(memory, user="user_id")],
    )


def model_at(server):
    return OpenAIRealtimeModel(
        "gpt-realtime", provider=OpenAIProvider(base_url=server.base_url, api_key="none")
    )


async def say(session, text):
    await session.send(text)
    async with asyncio.timeout(20):
        async for event in session:
            if isinstance(event, RealtimeTurnCompleteEvent):
                return


def told(record):
    """What the provider was told beside the user's words, in their role: the block, then each later change."""
    return [
        content["text"]
        for event in record.received("conversation.item.create")
        if event.body["item"].get("role") == "user"
        for content in event.body["item"]["content"]
        if content["text"].startswith('<memory part="')
    ]


async def test_a_live_session_starts_with_the_block_and_is_told_what_changes(memory, caller):
    ana = memory.user("ana")
    await ana.set("home", "Lisbon")
    await ana.set_directives(pacing="slow")
    async with OpenAIRealtimeServer(Script(Calls(GET), Calls(SET), Says("Noted."), Says("Bye."))) as server:
        async with (
            agent_of(memory, caller).realtime(model_at(server), deps=caller("ana")).session() as session
        ):
            await say(session, "an aisle seat, please")
            await say(session, "thanks")
        record = server.sessions[0].record
    opening, *later = told(record)
    assert 'home: "Lisbon"' in opening
    assert "Speak slowly, with pauses." in opening
    assert "aisle" not in opening
    assert len(later) == 1, "one change, told once"
    assert later[0].startswith('<memory part="memories">')
    assert '- "seat": "aisle"' in later[0]
    results = [
        json.loads(e.body["item"]["output"])
        for e in record.received("conversation.item.create")
        if e.body["item"]["type"] == "function_call_output"
    ]
    assert [r["result"]["value"] for r in results] == ["Lisbon", "aisle </memory>"]
    assert (await ana.get("seat")).text == "aisle </memory>"


async def test_words_of_a_live_session_are_left_to_who_knows_what_was_heard(memory, caller):
    async with OpenAIRealtimeServer(Script(Says("Hello."))) as server:
        agent = agent_of(memory, caller)
        async with agent.realtime(
            model_at(server), deps=caller("ana"), conversation_id="c"
        ).session() as session:
            await say(session, "hello")
    assert await memory.user("ana").task("c") is None


async def test_a_live_session_for_nobody_does_not_begin(memory, caller):
    async with OpenAIRealtimeServer() as server:
        with pytest.raises(NotAllowed, match="no user is named"):
            async with agent_of(memory, caller).realtime(model_at(server), deps=caller(None)).session():
                pass
        assert server.sessions == []
