"""Two calls of one caller: the second agent knows what was said and heard in the first.

Runs without a key: the provider is a stand-in on this machine. Needs the voice extra and h11. With a key
of your own, give `VoiceSession` an `OpenAIRealtimeModel` or `GoogleRealtimeModel` instead, and your sound
card's or telephone's audio to `send_audio` and from `audio`.
"""

# ruff: noqa: INP001, T201, ASYNC110 - a program, not a package
from __future__ import annotations

import asyncio

from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
from echoic.memory.service import MemoryService
from echoic.session import VoiceAgent, VoiceSession
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script, UserSays

FIRST = Script(
    Says("hello, who is calling"),
    UserSays("my name is Pavel and I live in Lisbon", after_ms=2500),
    Says("nice to meet you Pavel, your parcel leaves tomorrow morning from our warehouse in Porto"),
    UserSays("thank you goodbye", after_ms=1000),
    Says("goodbye"),
)
SECOND = Script(Says("welcome back Pavel"))
ROBIN = VoiceAgent(
    name="robin",
    instructions="You answer the telephone of a parcel service. Be brief.",
    greeting="Greet the caller, by name if you know it.",
)


async def call(memory: MemoryService, server: OpenAIRealtimeServer, name: str) -> None:
    """One call over a line that runs ten times as fast as life."""
    model = OpenAIRealtimeModel(
        "gpt-realtime", provider=OpenAIProvider(base_url=server.base_url, api_key="any")
    )
    async with VoiceSession(memory, user="pavel", agents=[ROBIN], model=model, session_id=name) as session:

        async def microphone() -> None:
            while True:
                await session.send_audio(bytes(2 * session.profile.input_hz * 20 // 1000))
                await asyncio.sleep(0.002)

        async def loudspeaker() -> None:
            async for pcm in session.audio():
                await asyncio.sleep(len(pcm) / 48_000 / 10)

        tasks = [asyncio.create_task(microphone()), asyncio.create_task(loudspeaker())]
        while not server.sessions[-1].script_over or not session.live.playback.idle:
            await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()


async def main() -> None:
    """Prints what was said, what of it was heard, and what is known."""
    async with echoic.open("memory://", embedder="lexical") as memory:
        async with OpenAIRealtimeServer(FIRST, SECOND) as server:
            await call(memory, server, "first")
            await call(memory, server, "second")
        pavel = memory.user("pavel")
        for name in ("first", "second"):
            task = await pavel.task(name)
            for turn in task.turns if task else ():
                unheard = turn.text[len(turn.heard_text) :]
                print(f"{turn.speaker:>6}: {turn.heard_text}{f' [{unheard.strip()}]' if unheard else ''}")
        print(sorted(f"{fact.key}: {fact.text}" for fact in await pavel.facts()))


if __name__ == "__main__":
    asyncio.run(main())
