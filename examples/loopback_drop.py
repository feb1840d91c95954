"""The connection drops in mid-sentence, on both providers: what each client still knows afterwards.

Runs without a key: the providers are stand-ins on this machine. Needs the voice extra, h11 and trustme.
"""

# ruff: noqa: INP001, T201 - a program, not a package
from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeModel, RealtimeSessionReconnectEvent, RealtimeTurnCompleteEvent
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Drop, Says, Script

SETTINGS: Any = {"reconnect": {"max_attempts": 3, "base_delay": 0.01}}


def scripts() -> tuple[Script[Any], Script[Any]]:
    """The first connection drops in its second sentence, and the next one continues."""
    return (
        Script(Says("good morning"), Says("your order number is four two").at(600, Drop())),
        Script(Says("as I said, four two"), open_ended=True),
    )


async def call(model: RealtimeModel) -> None:
    """Talks until the line has died, come back, and said what was asked for again."""
    agent = Agent("test", instructions="Be brief.")
    async with agent.realtime(model).session() as session:
        await session.send("hello")
        reconnected = False
        async for event in session:
            if isinstance(event, RealtimeSessionReconnectEvent):
                reconnected = True
                print("  reconnected; the conversation was restored:", event.state_restored)
                await session.send("could you repeat that?")
            elif isinstance(event, RealtimeTurnCompleteEvent):
                said = str(session.all_messages())
                if reconnected and "as I said" in said:
                    break
                if not reconnected:
                    await session.send("and my order?")
        for message in session.all_messages():
            for part in message.parts:
                words = getattr(part, "transcript", None) or getattr(part, "content", "")
                print("  ", "caller:" if message.kind == "request" else f"agent ({message.state}):", words)


async def main() -> None:
    """One call a provider."""
    async with OpenAIRealtimeServer(*scripts()) as openai:
        print("OpenAI Realtime")
        provider = OpenAIProvider(base_url=openai.base_url, api_key="any")
        await call(OpenAIRealtimeModel("gpt-realtime", provider=provider, settings=SETTINGS))
    async with GeminiLiveServer(*scripts()) as gemini:
        print("Gemini Live")
        with gemini.trusted():
            google = GoogleProvider(api_key="any", base_url=gemini.base_url)
            await call(GoogleRealtimeModel("gemini-3.8-live", provider=google, settings=SETTINGS))


if __name__ == "__main__":
    asyncio.run(main())
