"""A provider's stand-in in a process of its own, so that what it costs is in no figure of a call.

    async with standing_in("openai", script) as (line, model):
        ...  # the real client talks to it; `line.over` says how far its sessions are

Scripts travel by pickle: steps that are not the library's own live in a module that can be imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Script

PROVIDERS = ("openai", "gemini")
_LOOK_S = 0.01


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one session of the stand-in is."""

    over: bool
    """Its script is."""
    heard_turns: int
    """As its steps count them, in `Session.heard_turns`."""
    began: int
    """How many of its steps have begun."""


class StandIn:
    """What is known of the other process: how far its sessions are, and what is left of it at the end."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.sessions: list[Progress] = []
        self.tasks_left = 0
        """Of its loop, once its calls were over and before it was closed."""
        self.cpu_s = 0.0
        """Of its process, by then."""
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self) -> None:
        """Something was told."""
        try:
            while self._pipe.poll():
                kind, told = self._pipe.recv()
                self._told(kind, told)
        except (EOFError, ConnectionResetError):
            self._told("failed", "its process ended")

    def _told(self, kind: str, told: Any) -> None:
        if kind == "progress":
            self.sessions = told
        elif kind == "left":
            self.tasks_left, self.cpu_s = told
        elif not self._ended.done():
            if kind == "failed":
                self._ended.set_exception(RuntimeError(f"the stand-in failed: {told}"))
            else:
                self._ended.set_result(None)

    async def stop(self) -> None:
        """End it.

        Raises:
            RuntimeError: a client broke the protocol, or a script failed.
        """
        if not self._ended.done():
            self._pipe.send("stop")
        await asyncio.wait_for(self._ended, 30)


@contextlib.asynccontextmanager
async def standing_in(
    provider: str, *scripts: Script[Any], **options: Any
) -> AsyncIterator[tuple[StandIn, RealtimeModel]]:
    """A stand-in of `provider` in a process of its own, and a model that talks to it by the real client."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(provider, scripts, options, theirs), daemon=True
    )
    process.start()
    theirs.close()
    loop = asyncio.get_running_loop()
    try:
        url, pem = await asyncio.to_thread(ours.recv)
        line = StandIn(ours)
        loop.add_reader(ours.fileno(), line.take)
        yield line, _model(provider, url, pem)
        await line.stop()
    finally:
        loop.remove_reader(ours.fileno())
        ours.close()
        await asyncio.to_thread(process.join, 5)
        if process.is_alive():
            process.terminate()


class Metronome:
    """A process that does nothing but wake up every 20 ms: how late the machine is by itself."""

    def __enter__(self) -> Self:
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_tick, args=(theirs,), daemon=True
        )
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    def longest_s(self, since: float) -> float:
        """The longest time between two ticks since then, by `time.monotonic()`."""
        self._ours.send(since)
        longest: float = self._ours.recv()
        return longest


def _tick(pipe: Connection) -> None:
    ticks = [time.monotonic()]
    while True:
        time.sleep(0.02)
        ticks.append(time.monotonic())
        if pipe.poll():
            since = pipe.recv()
            pipe.send(max(b - a for a, b in itertools.pairwise(ticks) if b > since))
            ticks = ticks[-1:]


def _model(provider: str, url: str, pem: bytes) -> RealtimeModel:
    if provider == "openai":
        return OpenAIRealtimeModel("gpt-realtime", provider=OpenAIProvider(base_url=url, api_key="k"))
    with _trusting(pem):
        return GoogleRealtimeModel("gemini-3.8-live", provider=GoogleProvider(base_url=url, api_key="k"))


@contextlib.contextmanager
def _trusting(pem: bytes) -> Iterator[None]:
    before = os.environ.get("SSL_CERT_FILE")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "authority.pem"
        path.write_bytes(pem)
        os.environ["SSL_CERT_FILE"] = str(path)
        try:
            yield
        finally:
            os.environ.pop("SSL_CERT_FILE")
            if before is not None:
                os.environ["SSL_CERT_FILE"] = before


def _serve(
    provider: str, scripts: tuple[Script[Any], ...], options: dict[str, Any], pipe: Connection
) -> None:
    """The other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    try:
        asyncio.run(_served(provider, scripts, options, pipe))
    except BrokenPipeError:
        return  # whoever started it has failed and is gone
    except BaseException as error:  # noqa: BLE001 - the outermost frame of the process
        with contextlib.suppress(BrokenPipeError):
            pipe.send(("failed", repr(error)))
    else:
        pipe.send(("ended", None))


async def _served(
    provider: str, scripts: tuple[Script[Any], ...], options: dict[str, Any], pipe: Connection
) -> None:
    made: Any = OpenAIRealtimeServer if provider == "openai" else GeminiLiveServer
    async with made(*scripts, **options) as server:
        idle = len(asyncio.all_tasks())
        pem = server.authority.pem if provider == "gemini" else b""
        pipe.send((server.base_url, pem))
        told: list[Progress] = []
        while not pipe.poll():
            await asyncio.sleep(_LOOK_S)
            now = [_progress(session) for session in server.sessions]
            if now != told:
                pipe.send(("progress", told := now))
        await asyncio.sleep(0.2)  # for connections to end that were ended
        times = os.times()
        pipe.send(("left", (len(asyncio.all_tasks()) - idle, times.user + times.system)))


def _progress(session: Any) -> Progress:
    return Progress(
        over=session.script_over,
        heard_turns=getattr(session, "heard_turns", 0),
        began=session.steps_begun,
    )


__all__ = ["PROVIDERS", "Metronome", "Progress", "StandIn", "standing_in"]
