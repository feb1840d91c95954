"""A caller interrupts the agent: what was heard, by the audio, by the provider, and in the client's history.

Runs without a key: the provider is a stand-in on this machine. Needs the voice extra and h11.
"""

# ruff: noqa: INP001, T201 - a program, not a package
from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import SpeechPart
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeInputSpeechStartEvent, RealtimeTurnCompleteEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Pause, Says, Script, UserSays, speech, words_heard

REPLY = "your flight leaves at nine from gate seven"
PLAYED_MS = 1010
BYTES_A_MS = 48


async def call(server: OpenAIRealtimeServer) -> tuple[bytes, str, int | None]:
    """Compare what the caller heard with the client's history."""
    provider = OpenAIProvider(base_url=server.base_url, api_key="any")
    agent = Agent("test", instructions="Be brief.")
    async with agent.realtime(OpenAIRealtimeModel("gpt-realtime", provider=provider)).session() as session:
        loudspeaker = session.stream_audio()
        await session.send("when do I fly")
        turns, played = 0, b""
        async for event in session:
            if isinstance(event, RealtimeInputSpeechStartEvent):
                while len(played) < PLAYED_MS * BYTES_A_MS:
                    played += await anext(loudspeaker)
                await session.interrupt(played_bytes=PLAYED_MS * BYTES_A_MS)
                await session.send_audio(bytes(BYTES_A_MS * 400))
            turns += isinstance(event, RealtimeTurnCompleteEvent)
            if turns == 2:
                break
        spoken = [part for m in session.all_messages() for part in m.parts if isinstance(part, SpeechPart)]
    cut = next(part for part in spoken if part.interrupted_at_ms is not None)
    return played[: PLAYED_MS * BYTES_A_MS], str(cut.transcript), cut.interrupted_at_ms


async def main() -> None:
    """Prints the same sentence as three witnesses know it."""
    script = Script(Says(REPLY), Pause(0.1), UserSays("wait", after_ms=0), Says("yes"))
    async with OpenAIRealtimeServer(script) as server:
        played, transcript, cut_ms = await call(server)
        item = next(item for item in server.sessions[0].conversation if item.truncated_ms is not None)
    spoken = speech(REPLY)
    print("in the audio that was played:", "".join(spoken.words[i].text for i in words_heard(played, spoken)))
    print("as the provider was told:    ", item.heard)
    print("in the client's history:     ", transcript, f"(interrupted after {cut_ms} ms)")


if __name__ == "__main__":
    asyncio.run(main())
