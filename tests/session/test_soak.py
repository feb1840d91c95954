"""Many calls at once, for a few seconds: the same as `benchmarks/voice.py` does for ten minutes."""

from __future__ import annotations

import asyncio
import gc
import weakref

from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic_loopback.realtime import Repeat, Says, Script, UserSays
from session.conftest import BY_ONE_PROVIDER

CALLS, TURNS = 8, 6


class InTurn:
    """A question and an answer, each unlike any other of its call."""

    async def __call__(self, session):
        number = getattr(session, "heard_turns", 0)
        await session.hear(UserSays(f"this is sentence number {number}", after_ms=400, lasts_ms=200))
        session.heard_turns = number + 1
        await Says(f"answer number {number}")(session)


@BY_ONE_PROVIDER
async def test_every_turn_of_many_calls_is_kept_once_and_nothing_is_left_behind(
    memory, provider, serve, phone, eventually
):
    tasks = asyncio.all_tasks()
    gone = []
    script = Script(Repeat(InTurn(), times=TURNS), open_ended=True)
    async with serve(provider, script, keep_audio=False) as (server, model):

        async def call(number):
            session = VoiceSession(
                memory,
                user=f"user {number}",
                agents=[VoiceAgent(name="robin", instructions="Be Robin.")],
                model=model,
                session_id=f"call {number}",
                settings=SessionSettings(record=False),
            )
            gone.append(weakref.ref(session))
            async with session, phone(session, speed=4):
                await eventually(lambda: session.recorder.kept == 2 * TURNS, 240)

        await asyncio.gather(*(call(number) for number in range(CALLS)))
        assert sum(session.heard_turns for session in server.sessions) == CALLS * TURNS
        await eventually(lambda: not any(session.lines for session in server.sessions))
    for number in range(CALLS):
        turns = (await memory.user(f"user {number}").task(f"call {number}")).turns
        assert [turn.text for turn in turns] == [
            text
            for place in range(TURNS)
            for text in (f"this is sentence number {place}", f"answer number {place}")
        ]
    await eventually(lambda: not {task for task in asyncio.all_tasks() - tasks if not task.done()})
    gc.collect()
    assert [each for each in gone if each() is not None] == [], "a call that is over is held by nobody"
