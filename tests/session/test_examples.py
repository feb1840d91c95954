from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import forked
from echoic.session import VoiceAgent, VoiceSession
from echoic_loopback.realtime import Says, Script, UserSays

EXAMPLES = Path(__file__).parents[2] / "examples"


class RedisServer:
    """The three commands of a Redis client that are used, with its bytes and its expiry argument."""

    def __init__(self):
        self.values = {}

    async def set(self, key, value, *, ex):
        assert ex > 0
        self.values[key] = value.encode()

    async def get(self, key):
        return self.values.get(key)

    async def delete(self, key):
        self.values.pop(key, None)


def test_the_example_of_two_calls_prints_what_was_heard_and_learned():
    ran = forked.run(
        [sys.executable, str(EXAMPLES / "voice_call.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert "welcome back Pavel" in ran.stdout
    assert "user_name: Pavel" in ran.stdout
    assert "Lisbon" in ran.stdout
    line = next(line for line in ran.stdout.splitlines() if "nice to meet you" in line)
    assert line.rstrip().endswith("in Porto]")


async def test_a_call_is_gone_on_with_from_a_store_of_ones_own(memory, serve, phone, eventually):
    spec = importlib.util.spec_from_file_location("voice_redis", EXAMPLES / "voice_redis.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    redis = RedisServer()
    robin = VoiceAgent(name="robin")
    first = Script(UserSays("I like jazz", after_ms=300), Says("so do I"), open_ended=True)
    async with serve("openai", first, Script(open_ended=True)) as (server, model):
        options = {"agents": [robin], "model": model, "sessions": module.RedisSessionStore(redis)}
        session = VoiceSession(memory, user="ana", session_id="s", **options)
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 2)
            await session.suspend()
        again = await VoiceSession.resume(memory, "s", user="ana", **options)
        async with again:
            await eventually(lambda: "I like jazz" in str(server.sessions[1].record.received()))
    assert redis.values == {}, "a clean end leaves none"
