"""The page's side of a live call, over a real socket: a microphone, a loudspeaker that reports, and what was told."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import websockets
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel
from websockets.typing import Origin

from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer

SUBPROTOCOL = "echoic.voice.v1"


@asynccontextmanager
async def providing(provider, *scripts, **options):
    """A stand-in of a provider, and a model that talks to it by the real client."""
    if provider == "openai":
        async with OpenAIRealtimeServer(*scripts, **options) as server:
            known = OpenAIProvider(base_url=server.base_url, api_key="k")
            yield server, OpenAIRealtimeModel("gpt-realtime", provider=known)
    else:
        async with GeminiLiveServer(*scripts, **options) as server:
            with server.trusted():
                known = GoogleProvider(base_url=server.base_url, api_key="k")
                yield server, GoogleRealtimeModel("gemini-3.8-live", provider=known)


async def admitted(client, identity, **asked):
    """What opens a call."""
    answer = await client.post("/api/voice/sessions", json=asked, headers=identity.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def address(url, ticket):
    return f"{url.replace('http', 'ws', 1)}/api/voice/socket?ticket={ticket}"


def connecting(url, ticket, *, origin=None, headers=()):
    """A socket to be opened."""
    named = {"additional_headers": dict(headers)} | ({} if origin is None else {"origin": Origin(origin)})
    return websockets.connect(address(url, ticket), subprotocols=[SUBPROTOCOL], max_size=None, **named)


class Page:
    """A page in a call. Plays `speed` times as fast as a loudspeaker would; reports as it plays."""

    def __init__(self, socket, *, input_hz, output_hz, speed=4.0, reports=True):
        self.socket, self.input_hz, self.output_hz = socket, input_hz, output_hz
        self.speed, self.reports = speed, reports
        self.told = []
        self.heard = bytearray()
        """All that was played."""
        self.got_bytes = 0
        self.muted = False
        self.flushes = 0
        self.closed = None
        self._waiting = bytearray()
        self._tasks = []

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(work()) for work in (self._listen, self._speak, self._play)]
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self):
        try:
            async for message in self.socket:
                if isinstance(message, bytes):
                    self.got_bytes += len(message)
                    self._waiting += message
                    continue
                told = json.loads(message)
                self.told.append(told)
                if told["type"] == "flush":
                    self._waiting.clear()
                    self.flushes += 1
                    await self._report(flushed=True)
        except websockets.ConnectionClosed:
            pass
        self.closed = self.socket.close_code

    async def _speak(self):
        frame = bytes(2 * self.input_hz * 20 // 1000)
        while True:
            if not self.muted:
                await self.socket.send(frame)
            await asyncio.sleep(0.02)

    async def _play(self):
        size, played = 2 * self.output_hz * 20 // 1000, 0
        while True:
            frame, self._waiting = self._waiting[:size], self._waiting[size:]
            self.heard += frame
            played += 1 if frame else 0
            if frame and self.reports and (played % 5 == 0 or not self._waiting):
                await self._report(flushed=False)
            await asyncio.sleep(0.02 / self.speed)

    async def _report(self, *, flushed):
        await self.say("played", bytes=len(self.heard), flushed=flushed)

    async def say(self, kind, **fields):
        await self.socket.send(json.dumps({"type": kind, **fields}))

    def of(self, kind):
        return [told for told in self.told if told["type"] == kind]

    def spoken(self, speaker):
        """The last state of each turn of a speaker, in order."""
        turns = {told["id"]: told for told in self.of("transcript") if told["speaker"] == speaker}
        return list(turns.values())

    async def until(self, ready, seconds=60.0):
        try:
            async with asyncio.timeout(seconds):
                while not (value := ready()):
                    assert self.closed is None or ready(), (self.closed, self.told)
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise TimeoutError(f"the page was told no more than {self.told}") from None
        return value

    async def until_told(self, kind, count=1, seconds=60.0):
        return (await self.until(lambda: len(self.of(kind)) >= count and self.of(kind), seconds))[-1]

    async def until_heard(self, text, seconds=60.0):
        """Until the turn of the agent with `text` is settled."""
        return await self.until(
            lambda: next((t for t in self.spoken("agent") if t["text"] == text and "heard" in t), None),
            seconds,
        )


@asynccontextmanager
async def connected(server, identity, *, speed=4.0, reports=True, **asked):
    """A page whose call is being opened."""
    admission = await admitted(server.client, identity, **asked)
    async with (
        connecting(server.url, admission["ticket"]) as socket,
        Page(
            socket,
            input_hz=admission["inputHz"],
            output_hz=admission["outputHz"],
            speed=speed,
            reports=reports,
        ) as page,
    ):
        page.session, page.conversation = admission["session"], admission["conversation"]
        yield page


@asynccontextmanager
async def calling(server, identity, **options):
    """A page in a call of `identity`'s, ready."""
    async with connected(server, identity, **options) as page:
        page.ready = await page.until_told("ready")
        yield page
