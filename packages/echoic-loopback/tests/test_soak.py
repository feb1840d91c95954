"""Twenty calls at once on each stand-in: every turn comes once, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from pathlib import Path

import pytest

from echoic_loopback.realtime import Calls, InOrder, Pause, Repeat, Says, Script, ToolCall, UserSays
from loopback_agents import an_agent, listening, mic, model_of, said

OPEN = Path("/proc/self/fd")
CALLS = 20
TURNS = 5
TURN = InOrder(
    UserSays("what is my dog called"),
    Calls(ToolCall("recall", {"query": "dog"}), ToolCall("recall", {"query": "cat"})),
    Says("Rex it is", word_ms=60),
    Pause(0.05),
)


def sockets():
    """How many this process has open."""
    count = 0
    for link in OPEN.iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += str(link.readlink()).startswith("socket:")
    return count


async def one_call(model):
    async with an_agent().realtime(model).session() as session:
        talking = asyncio.create_task(talk(session))
        turns = 0
        async with asyncio.timeout(60), listening(session, 60) as events:
            async for event in events:
                turns += event.event_kind == "realtime_turn_complete"
                if turns == TURNS:
                    break
        talking.cancel()
        return said(session.all_messages())


async def talk(session):
    while True:
        await session.send_audio(mic(session, 100))
        await asyncio.sleep(0.02)


@pytest.mark.skipif(not OPEN.is_dir(), reason="sockets are counted in /proc")
@pytest.mark.parametrize("provider", ["openai", "gemini"])
async def test_twenty_calls_at_once_hear_every_turn_once_and_leave_nothing_behind(
    provider, openai_server, gemini_server
):
    serving = openai_server if provider == "openai" else gemini_server
    tasks_before, sockets_before = len(asyncio.all_tasks()), sockets()
    script = Script(Repeat(TURN, times=TURNS), Pause(30))
    async with serving(script, keep_audio=False, patience_s=60) as server:
        models = [model_of(server) for _ in range(CALLS)]
        stories = await asyncio.gather(*(one_call(model) for model in models))
    one_turn = [
        ("user", "what is my dog called"),
        ("call", "dog"),
        ("call", "cat"),
        ("return", "fact about dog"),
        ("return", "fact about cat"),
        ("assistant", "Rex it is"),
    ]
    for story in stories:
        assert story == one_turn * TURNS
    assert len(server.sessions) == CALLS
    assert not any(session.lines for session in server.sessions)
    await asyncio.sleep(0.1)
    # before anything is collected: a task nobody holds is a leak that would only be tidied away
    assert len(asyncio.all_tasks()) == tasks_before
    del models
    gc.collect()
    await asyncio.sleep(0.1)
    assert sockets() <= sockets_before
