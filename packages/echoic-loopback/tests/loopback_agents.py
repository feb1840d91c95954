"""Clients for the tests: agents of the real library, and turns of the real SDKs."""

from __future__ import annotations

import asyncio
import base64
import contextlib

from google import genai
from google.genai import types
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeTurnCompleteEvent
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

QUICK = {"max_attempts": 3, "base_delay": 0.01, "jitter": False}
MIC_MS = 400


def sdk(server, key="sk-loopback"):
    return AsyncOpenAI(api_key=key, base_url=server.base_url, max_retries=0)


def google(server, key="k-loopback"):
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=server.base_url))


def openai_model(server, **settings):
    provider = OpenAIProvider(base_url=server.base_url, api_key="sk-loopback")
    return OpenAIRealtimeModel("gpt-realtime", provider=provider, settings=settings)


def gemini_model(server, **settings):
    provider = GoogleProvider(api_key="k-loopback", base_url=server.base_url)
    return GoogleRealtimeModel("gemini-3.8-live", provider=provider, settings=settings)


def model_of(server, **settings):
    is_openai = server.base_url.startswith("http://")
    return openai_model(server, **settings) if is_openai else gemini_model(server, **settings)


def an_agent():
    agent = Agent("test", instructions="Be kind.")
    agent.ran = []

    @agent.tool_plain
    async def recall(query: str) -> str:
        """Recall a fact."""
        agent.ran.append(query)
        return f"fact about {query}"

    return agent


def mic(session, ms=MIC_MS):
    """Silence at the session's rate, enough for a turn of a script's user."""
    return bytes(2 * session.audio_input_sample_rate * ms // 1000)


async def until_turns(session, count=1):
    """Iterates until `count` turns are complete; every event until then."""
    events, turns = [], 0
    async with listening(session) as stream:
        async for event in stream:
            events.append(event)
            turns += isinstance(event, RealtimeTurnCompleteEvent)
            if turns == count:
                break
    return events


async def until_kind(session, kind):
    """Iterates until the first event of a class; that event."""
    async with listening(session) as stream:
        async for event in stream:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the session ended before a {kind.__name__}")


@contextlib.asynccontextmanager
async def listening(session, seconds=60):
    """A session's events, for so long; the session can be iterated again at once when this is left."""
    async with asyncio.timeout(seconds), contextlib.aclosing(aiter(session)) as events:
        yield events


def said(messages):
    """Who said what, and which tools were called, in order."""
    lines = []
    for message in messages:
        for part in message.parts:
            if part.part_kind == "speech":
                lines.append((part.speaker, part.transcript))
            elif part.part_kind == "tool-call":
                lines.append(("call", part.args_as_dict()["query"]))
            elif part.part_kind == "tool-return":
                lines.append(("return", part.content))
    return lines


async def of_kind(connection, kind, count=1):
    """Reads an SDK's connection until `count` events of a kind came; all that came."""
    events = []
    async with asyncio.timeout(10):
        async for event in connection:
            events.append(event)
            if sum(seen.type == kind for seen in events) == count:
                return events
    raise AssertionError(f"the connection ended before {count} {kind}")


async def append(connection, pcm):
    await connection.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
