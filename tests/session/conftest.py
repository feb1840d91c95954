from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
import scale
from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer

PROVIDERS = ("openai", "gemini")
BY_ONE_PROVIDER = pytest.mark.parametrize(
    "provider", [pytest.param(name, marks=pytest.mark.examples) for name in scale.some(PROVIDERS)]
)
"""For what depends on no provider: this run's seed draws whose stand-in plays it, and at full scale each does."""
MIC_MS = 200
"""Of audio in a chunk of the microphone's: each costs the processor the same, however short."""


def model_at(server):
    if isinstance(server, OpenAIRealtimeServer):
        return OpenAIRealtimeModel(
            "gpt-realtime", provider=OpenAIProvider(base_url=server.base_url, api_key="k")
        )
    return GoogleRealtimeModel(
        "gemini-3.8-live", provider=GoogleProvider(base_url=server.base_url, api_key="k")
    )


@contextlib.asynccontextmanager
async def serving(provider, *scripts, **options):
    """A stand-in of a provider, and a model that talks to it by the real client."""
    if provider == "openai":
        async with OpenAIRealtimeServer(*scripts, **options) as server:
            yield server, model_at(server)
    else:
        async with GeminiLiveServer(*scripts, **options) as server:
            with server.trusted():
                model = model_at(server)
            yield server, model


class Phone:
    """The caller's end: a microphone that never stops, and a loudspeaker that plays `speed` times as fast."""

    def __init__(self, session, speed=20.0, talk=b"\0"):
        self.session = session
        self.speed = speed
        self.heard = bytearray()
        self.sent = 0
        self.frames = []
        self.muted = False
        self.paused_at = None
        self._tasks = []

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(self._mic()), asyncio.create_task(self._play())]
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _mic(self):
        chunk = bytes(2 * self.session.profile.input_hz * MIC_MS // 1000)
        while True:
            if not self.muted:
                await self.session.send_audio(chunk)
                self.sent += 1
            await asyncio.sleep(MIC_MS / 1000 / self.speed)

    async def _play(self):
        async for pcm in self.session.audio():
            self.heard += pcm
            begun = time.monotonic()
            while self.paused_at is not None and len(self.heard) >= self.paused_at * 48:
                await asyncio.sleep(0.001)
                assert time.monotonic() - begun < 60
            await asyncio.sleep(len(pcm) / 48_000 / self.speed)


async def until(ready, seconds=60.0):
    """Waits for something to become so."""
    async with asyncio.timeout(seconds):
        while True:
            value = ready()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.01)


@pytest.fixture
async def memory(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as service:
        yield service


@pytest.fixture(params=PROVIDERS)
def provider(request):
    return request.param


@pytest.fixture
def serve():
    return serving


@pytest.fixture
def phone():
    return Phone


@pytest.fixture
def eventually():
    return until


@pytest.fixture(autouse=True)
def _no_foreign_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


class Stored:
    """A step of a script: wait until so many turns of `session` are stored, so all of them were heard."""

    def __init__(self, turns):
        self.turns, self.session = turns, None

    async def __call__(self, stage):
        await stage.until(
            lambda: self.session and self.session.recorder.kept >= self.turns, "what was played"
        )
