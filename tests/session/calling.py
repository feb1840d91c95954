"""A call in a process of its own, to be killed in the middle: `python calling.py openai PORT STORE [LEDGER]`."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
from echoic.session import SessionSettings, VoiceAgent, VoiceSession

SETTINGS = SessionSettings(checkpoint_every_s=0.1)


def model_for(provider: str, base_url: str):
    if provider == "openai":
        return OpenAIRealtimeModel("gpt-realtime", provider=OpenAIProvider(base_url=base_url, api_key="k"))
    return GoogleRealtimeModel("gemini-3.8-live", provider=GoogleProvider(base_url=base_url, api_key="k"))


def agents_with(ledger: Path, *, hang: bool):
    """Two tools that note each run; in the process that is killed they never answer."""

    async def check(order: str) -> str:
        """Look at an order."""
        with ledger.open("a") as file:
            file.write(f"check {order}\n")
        if hang:
            await asyncio.Event().wait()
        return f"order {order} is on its way"

    async def pay(order: str) -> str:
        """Pay an order."""
        with ledger.open("a") as file:
            file.write(f"pay {order}\n")
        if hang:
            await asyncio.Event().wait()
        return "paid"

    front = VoiceAgent(name="front", instructions="You are the front desk.")
    desk = VoiceAgent(
        name="desk",
        instructions="You are the order desk.",
        tools=[check, pay],
        idempotent=frozenset({"check"}),
        tool_timeout_s=60,
    )
    return [front, desk]


async def main(provider: str, base_url: str, store: str, ledger: str) -> None:
    async with echoic.open(store, embedder="lexical") as memory:
        session = VoiceSession(
            memory,
            user="ana",
            agents=agents_with(Path(ledger), hang=True),
            model=model_for(provider, base_url),
            start="desk",
            session_id="call",
            settings=SETTINGS,
        )
        async with session:
            chunk = bytes(2 * session.profile.input_hz * 100 // 1000)

            async def mic() -> None:
                while True:
                    await session.send_audio(chunk)
                    await asyncio.sleep(0.01)

            async def play() -> None:
                async for pcm in session.audio():
                    await asyncio.sleep(len(pcm) / 48_000)

            async with asyncio.TaskGroup() as group:
                group.create_task(mic())
                group.create_task(play())


if __name__ == "__main__" and importlib.util.find_spec("echoic"):
    asyncio.run(main(*sys.argv[1:5]))
