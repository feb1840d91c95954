"""The server is killed in the middle of a call, and another process goes on with it."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager

import httpx
import pytest

import echoic
import forked
from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script, UserSays
from server.voice_calling import Page, admitted, calling, connecting
from session.conftest import BY_ONE_PROVIDER

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
SECRET = "of these tests, and long enough for HS256"


class Process:
    """`echoic serve --voice`, on one store and one port."""

    def __init__(self, directory, provider, *words):
        base = provider.base_url
        if isinstance(provider, OpenAIRealtimeServer):
            words = ("--voice", "openai:gpt-realtime", *words)
            self._keys = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": base}
        else:
            words = ("--voice", "google:gemini-3.8-live", *words)
            self._keys = {"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": base}
        self._directory, self._words, self._process = directory, words, None
        self.url, self.client = "", None

    async def start(self):
        port = str(httpx.URL(self.url).port) if self.url else "0"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ECHOIC_")}
        self._process = forked.Popen(
            [sys.executable, "-m", "echoic.cli", "--store", "sqlite:///echoic.db", "serve", "--port", port, *self._words],
            cwd=self._directory,
            env={**kept, "ECHOIC_EMBEDDER": "lexical", "ECHOIC_SECRET": SECRET, **self._keys},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        lines = queue.Queue()
        threading.Thread(target=lambda: lines.put(self._process.stdout.readline()), daemon=True).start()
        self.url = (await asyncio.to_thread(lines.get, timeout=60)).strip().rstrip("/")
        assert self.url, self._process.communicate()[1][-2000:]
        self.client = httpx.AsyncClient(base_url=self.url, timeout=30, verify=False)

    async def kill(self):
        await self._end(signal.SIGKILL)

    async def stop(self):
        await self._end(signal.SIGTERM)

    async def _end(self, how):
        if self._process is None:
            return
        process, self._process = self._process, None
        await self.client.aclose()
        process.send_signal(how)
        await asyncio.to_thread(process.communicate, timeout=30)

    async def identity(self):
        given = (await self.client.post("/api/identity", json={})).json()
        return Identity(given["userCookie"], given["user"])

    async def memories(self, identity):
        answer = await self.client.get("/api/memories", headers=identity.headers)
        return {memory["text"] for memory in answer.json()["memories"]}


class Identity:
    def __init__(self, token, user):
        self.user = user
        self.headers = {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def running(directory, provider, *words):
    process = Process(directory, provider, *words)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def from_memory(words, wanted):
    async def step(session):
        await session.until(
            lambda: wanted in str(session.record.received()), "what is remembered, as the agent is given it"
        )
        await Says(words, word_ms=100)(session)

    return step


@pytest.mark.crash
@BY_ONE_PROVIDER
async def test_a_call_whose_server_is_killed_in_mid_turn_goes_on_in_another_and_the_next_call_knows(
    tmp_path, provider
):
    first = Script(
        Says("hello, who are you", word_ms=50),
        UserSays("my name is Pavel", after_ms=400),
        Says("hello Pavel", word_ms=100),
        UserSays("count for me", after_ms=1200),
        Says(LONG, word_ms=300),
        open_ended=True,
    )
    second = Script(
        Says("where was I", word_ms=100),
        UserSays("never mind, thank you", after_ms=600),
        Says("goodbye Pavel", word_ms=100),
        open_ended=True,
    )
    third = Script(from_memory("welcome back Pavel", "Pavel"), open_ended=True)
    server = OpenAIRealtimeServer if provider == "openai" else GeminiLiveServer
    async with server(first, second, third, patience_s=30) as played:
        with trusted(played):
            async with running(tmp_path, played) as process:
                ana = await process.identity()
                admission = await admitted(process.client, ana)
                async with connecting(process.url, admission["ticket"]) as socket:
                    rates = {"input_hz": admission["inputHz"], "output_hz": admission["outputHz"]}
                    async with Page(socket, speed=1.0, **rates) as page:
                        await page.until_heard("hello Pavel", 30)
                        before = len(page.heard)
                        await page.until(lambda: len(page.heard) > before + 60_000, 30)
                        await process.kill()
                await process.start()
                async with calling(process, ana, resume=admission["session"]) as again:
                    await again.until_heard("goodbye Pavel", 30)
                    await again.say("hang_up")
                    await again.until_told("closed")
                async with calling(process, ana) as later:
                    await later.until_heard("welcome back Pavel", 30)
                known = await process.memories(ana)
    turns = await turns_of(tmp_path, ana, admission["conversation"])
    counted = next(turn for turn in turns if turn.text == LONG)
    assert again.ready["resumed"] is True
    assert again.ready["conversation"] == admission["conversation"]
    assert "Pavel" in known
    assert [turn.text for turn in turns] == [
        "hello, who are you",
        "my name is Pavel",
        "hello Pavel",
        "count for me",
        LONG,
        "where was I",
        "never mind, thank you",
        "goodbye Pavel",
    ]
    assert len(counted.heard_text.split()) < 15  # nobody heard the end of it


async def turns_of(directory, identity, conversation):
    async with echoic.open(f"sqlite:///{directory}/echoic.db", embedder="lexical") as memory:
        opened = await memory.user(identity.user).conversation(conversation)
        return await opened.turns()


def trusted(provider):
    return provider.trusted() if isinstance(provider, GeminiLiveServer) else _nothing()


@contextmanager
def _nothing():
    yield


@pytest.mark.crash
async def test_a_stopped_server_puts_calls_away_and_the_next_one_takes_them_up(tmp_path):
    first = Script(
        Says("hello", word_ms=50),
        UserSays("my name is Pavel", after_ms=300),
        Says("hello Pavel", word_ms=50),
        open_ended=True,
    )
    second = Script(UserSays("what is my name", after_ms=600), from_memory("Pavel", "Pavel"), open_ended=True)
    async with (
        OpenAIRealtimeServer(first, second, patience_s=30) as provider,
        running(tmp_path, provider) as process,
    ):
        ana = await process.identity()
        async with calling(process, ana) as page:
            await page.until_heard("hello Pavel", 30)
            await process.stop()
            closed = await page.until_told("closed")
        await process.start()
        async with calling(process, ana, resume=page.session) as again:
            await again.until_heard("Pavel", 30)
    assert closed["resumable"] is True
    assert again.ready["resumed"] is True
