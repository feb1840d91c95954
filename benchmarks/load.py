"""How much one process carries: calls as audio, calls as text, durable writes and recalls, all at once.

    python -m benchmarks.load [--minutes 10] [--media 75] [--relay 300] [--writes 500] [--recalls 20]

One process serves the HTTP API, a relay line and a media line over one SQLite file. Two more run beside it on
the same cores: what dials, writes and asks (the loader), and the stand-in for a voice provider. What the
server itself used is `server_cores`; what the other two took from it is `loader_cores` and `provider_cores`.

Each caller of a relay line says something every ten seconds, which is recalled for, answered by a scripted
model after 0.3 s, and kept. Each caller of a media line sends 50 frames a second, speaks every twelve seconds
and hears an answer. Writes are `POST /v1/memories` for a thousand users in turn, sent when they are due
whether or not the ones before were answered; an answer means durable. Recalls are `POST /v1/recall` for users
with 200 memories each, every one with a new question.

Then three times as much is asked for, for a sixth of the time. Lines take as many calls as they were set to,
and tell other callers that they are busy; the API has its default limits. `refused`: from asking to the
refusal.

With `--costs`, measures the server's processor time of a write, a recall, a relay turn and a refusal instead,
one after another, which other work on the machine changes less. `later` lasts until the server is idle again:
what was written is embedded and learned from. A refusal is what an address gets that has too many requests
under way.

`memory_mb`: of the server, at the end of the first, middle and last tenth of the steady part, loaded scopes
included. `lost`: writes that were acknowledged and are not in the file afterwards, and turns of calls that
answered and are not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import apsw
import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

import echoic
from benchmarks import machine
from benchmarks.phone import ANSWERED, ASKED, AUTH_TOKEN, SALT
from echoic.adapters.twilio import Phone, PhoneSettings, phone_app, uvicorn_options
from echoic.adapters.twilio.media import samples_of
from echoic.memory.records import record_of_turn
from echoic.stores.base import Put
from echoic.types import Scope, Turn
from echoic_bench.callers import START
from echoic_loopback.twilio import SimulatedCall
from echoic_loopback.twilio.simulator import CallFailed

AGENT_KEY = "the agent key of this benchmark, which is no secret"
RELAY_EVERY_S, MEDIA_EVERY_S = 10.0, 12.0
MODEL_S = 0.3
KNOWN = 200
TIMES = 3
THINGS = "boat lamp violin ladder kettle bicycle carpet mirror suitcase clock tent drum basket vase".split()
PLACES = "Leeds Porto Bergen Lisbon Krakow Ghent Turin Malmo Cork Bilbao Graz Utrecht Vigo Tartu Brno".split()
WAYS = "bought sold lost repaired painted borrowed found shipped cleaned insured polished returned".split()


def sentence(number: int) -> str:
    """One of some millions, no two alike."""
    number, thing = divmod(number, len(THINGS))
    number, place = divmod(number, len(PLACES))
    number, way = divmod(number, len(WAYS))
    return f"I {WAYS[way]} the {THINGS[thing]} in {PLACES[place]} for {number} dollars."


def known_users(given: argparse.Namespace) -> int:
    """How many users are asked for; each a few times a minute, as in a call."""
    return max(1, min(50, round(3 * given.recalls)))


def writers(given: argparse.Namespace) -> int:
    """How many users are written for."""
    return max(1, min(1000, round(2 * given.writes)))


# -- the server, and what is beside it


async def model(_messages: Any, _info: Any) -> AsyncIterator[str]:
    """Answers alike, after as long as a quick model takes."""
    await asyncio.sleep(MODEL_S)
    yield "Thank you. "
    yield "What else is there?"


async def serve(given: argparse.Namespace) -> None:
    """One process with three ports: the API, a relay line and a media line, until it is told to stop."""
    from pydantic_ai.realtime import infer_realtime_model

    from echoic.server import MemoryServer, ServerSettings, create_app, uvicorn_config

    service = echoic.open(given.store, embedder=given.embedder)
    settings = ServerSettings(secret=SALT * 2, agent_keys={AGENT_KEY: "default"})
    agent = Agent(FunctionModel(stream_function=model), name="echo")
    servers: list[uvicorn.Server] = [MemoryServer(uvicorn_config(create_app(service, settings), port=0))]
    for channel, most in (("relay", given.relay), ("media", given.media)):
        line = PhoneSettings(
            auth_token=AUTH_TOKEN, salt=SALT, channel=channel, max_calls=max(1, most), plain_numbers=True
        )
        realtime = infer_realtime_model("openai:gpt-realtime") if channel == "media" else None
        app = phone_app(Phone(service, agent, line, realtime=realtime))
        servers.append(uvicorn.Server(uvicorn.Config(app, port=0, **uvicorn_options())))
    running = []
    for server in servers:  # the API first: it opens the memory
        running.append(asyncio.create_task(server.serve()))
        while not server.started:
            await asyncio.sleep(0.01)
    print(json.dumps([s.servers[0].sockets[0].getsockname()[1] for s in servers]), flush=True)
    await asyncio.gather(*running)


async def provide() -> None:
    """The stand-in for a voice provider: every caller is answered alike, however often they speak."""
    from echoic_loopback.openai_realtime import OpenAIRealtimeServer
    from echoic_loopback.realtime import Says, Script, UserSays

    steps = [step for _ in range(200) for step in (UserSays(ASKED, after_ms=300), Says(ANSWERED, pace=0.5))]
    script = Script(*steps, open_ended=True)
    async with OpenAIRealtimeServer(lambda _n: script, keep_audio=False, keep_events=20) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


class Child:
    """A process of this module, with what it says first."""

    def __init__(self, *words: str, **environment: str) -> None:
        self._words, self._environment = words, environment

    async def start(self) -> str:
        """Start it; the first line it prints."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "benchmarks.load",
            *self._words,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self._environment},
        )
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    @property
    def cpu_s(self) -> float:
        return time.clock_gettime(~self._process.pid << 3 | 2)  # Linux's clock of another process

    @property
    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text("utf-8").split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)

    @property
    def files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        await self._process.wait()


# -- the loader


class Http:
    """The cheapest client there is: what it costs is taken from the server beside it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: dict[str, Any], bearer: str) -> tuple[int, bytes]:
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {bearer}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        while True:
            kept = bool(self._idle)
            reader, writer = (
                self._idle.pop() if kept else await asyncio.open_connection("127.0.0.1", self.port)
            )
            try:
                writer.write(head.encode() + data)
                answer = await reader.readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                if kept:  # it was closed for having been idle
                    continue
                raise
            break
        fields = answer.lower()
        length = int(fields.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        content = await reader.readexactly(length)
        if b"connection: close" in fields:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(answer.split(b" ", 2)[1]), content

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


@dataclass
class Seen:
    """What one part of the run came to."""

    recalls: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    """Over a relay, from the end of what was said to the first word of the answer, less the model's time."""
    sounds: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    """From a request or a call to its refusal."""
    outcomes: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    media_turns: int = 0


class Load:
    """Everything that is asked of a server, at a rate."""

    def __init__(self, ports: list[int], given: argparse.Namespace) -> None:
        self._known, self._writers = known_users(given), writers(given)
        self.http = Http(ports[0])
        self.relay, self.media = (f"http://127.0.0.1:{port}" for port in ports[1:])
        self.rng = random.Random(0)
        self.seen = Seen()
        self.acknowledged: Counter[str] = Counter()
        """Memories by user, and `call <number>` for turns that were answered."""
        self._tokens: dict[str, str] = {}
        self._number = 0
        self._calls = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def tokens_for(self, users: list[str]) -> None:
        for user in users:
            status, body = await self.http.post("/v1/tokens", {"user": user}, AGENT_KEY)
            assert status == 200, body
            self._tokens[user] = json.loads(body)["token"]

    async def write(self) -> None:
        self._number += 1
        number, seen = self._number, self.seen
        user = f"writer-{number % self._writers}"
        took, status = await self._timed("/v1/memories", {"text": sentence(number)}, user)
        if status == 200:
            seen.writes.append(took)
            self.acknowledged[user] += 1
        self._count("write", status, took, seen)

    async def recall(self) -> None:
        self._number += 1
        number, seen = self._number, self.seen
        user = f"known-{number % self._known}"
        thing, place = THINGS[number % len(THINGS)], self.rng.choice(PLACES)
        question = f"What did I do with the {thing} in {place}, and was it {number} dollars?"
        took, status = await self._timed("/v1/recall", {"query": question}, user)
        if status == 200:
            seen.recalls.append(took)
        self._count("recall", status, took, seen)

    async def _timed(self, path: str, body: dict[str, Any], user: str) -> tuple[float, int]:
        began = time.perf_counter()
        try:
            status, _ = await self.http.post(path, body, self._tokens[user])
        except OSError:
            status = 0
        return time.perf_counter() - began, status

    def _count(self, what: str, status: int, took: float, seen: Seen) -> None:
        seen.outcomes[f"{what} {status or 'no connection'}"] += 1
        if status in {429, 503}:
            seen.refused.append(took)

    async def at_rate(self, ask: Callable[[], Awaitable[None]], rate: float, until: float) -> None:
        """Ask when it is due, whether or not what came before was answered."""
        begun, count = time.monotonic(), 0
        while rate and time.monotonic() < until:
            due = int((time.monotonic() - begun) * rate)
            for _ in range(due - count):
                self._spawn(ask())
            count = due
            await asyncio.sleep(0.005)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def relay_call(self, until: float, first_s: float, every_s: float = RELAY_EVERY_S) -> None:
        await asyncio.sleep(first_s)
        self._calls += 1
        number = f"+1555{self._calls:07}"
        with suppress(CallFailed, aiohttp.ClientError, TimeoutError):
            async with SimulatedCall(self.relay, AUTH_TOKEN, number=number) as call:
                if not await self._answered(call):
                    return
                said = 0
                while time.monotonic() + every_s < until:
                    await asyncio.sleep(every_s)
                    said += 1
                    await call.say(f"{sentence(said)} Where did I leave the {self.rng.choice(THINGS)}?")
                    self.acknowledged[f"call phone:{number}"] += 1
                    self.seen.turns += 1
                    self.seen.tokens.append(max(0.0, call.delays_s[-1] - MODEL_S))
                await call.hang_up()
                return
        self.seen.outcomes["relay call broken"] += 1

    async def media_call(self, until: float, first_s: float, asked: Any) -> None:
        await asyncio.sleep(first_s)
        self._calls += 1
        with suppress(CallFailed, aiohttp.ClientError, TimeoutError):
            async with SimulatedCall(self.media, AUTH_TOKEN, number=f"+1555{self._calls:07}") as call:
                if not await self._answered(call):
                    return
                assert call.stream is not None
                while time.monotonic() + MEDIA_EVERY_S < until:
                    began = time.monotonic()
                    heard = await call.say_aloud(asked, 24_000)
                    self.seen.media_turns += 1
                    self.seen.outcomes["media turn heard" if heard else "media turn silent"] += 1
                    await asyncio.sleep(max(0.0, began + MEDIA_EVERY_S - time.monotonic()))
                self.seen.sounds += call.stream.delays_s
                await call.hang_up()
                return
        self.seen.outcomes["media call broken"] += 1

    async def _answered(self, call: SimulatedCall) -> bool:
        """Dial; whether the line took the call."""
        said = await call.dial()
        if call.over and "busy" in said:
            self.seen.refused.append(call.webhooks[0].took_s)
            self.seen.outcomes["call told busy"] += 1
            return False
        self.seen.outcomes["call answered"] += 1
        return True

    async def run(self, given: argparse.Namespace, seconds: float, *, times: int = 1) -> Seen:
        """All of it for so long; `times`: so many times as much is asked for, once the lines are full."""
        from echoic_loopback.realtime import speech

        self.seen = Seen()
        until = time.monotonic() + seconds
        asked = samples_of(speech(ASKED).pcm)
        # they dial over the time between two turns, as people do not all speak at the same moment
        dialled_s = min(RELAY_EVERY_S, seconds / 4)
        first = [self.rng.random() * dialled_s for _ in range(given.relay + given.media)]
        first += [
            dialled_s + self.rng.random() * (seconds - dialled_s) for _ in range((times - 1) * len(first))
        ]
        calls = [
            self.media_call(until, first_s, asked)
            if n % max(1, given.relay + given.media) < given.media
            else self.relay_call(until, first_s)
            for n, first_s in enumerate(first)
        ]
        await asyncio.gather(
            self.at_rate(self.write, given.writes * times, until),
            self.at_rate(self.recall, given.recalls * times, until),
            *calls,
        )
        while self._tasks:
            await asyncio.gather(*self._tasks)
        return self.seen


# -- the run


async def fill(store: str, given: argparse.Namespace) -> None:
    """Give the users that are asked for what they know, with vectors."""
    async with echoic.open(store, embedder=given.embedder) as service:
        for user in range(known_users(given)):
            turns = [
                Turn(
                    speaker="user",
                    text=sentence(1000 * user + n),
                    id=f"t{n}",
                    conversation="c",
                    said_at=START,
                )
                for n in range(given.known)
            ]
            backing = service.user(f"known-{user}").backing_store
            await backing.write(
                Scope("default", f"known-{user}"), [Put(record=record_of_turn(turn)) for turn in turns]
            )
        await service.learn_soon("known-0", "c")
        while not await service.settle(60):
            pass


async def costs(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What a write, a recall, a relay turn and a refusal take of the server's processor."""
    given.store, given.relay, given.media = f"sqlite:///{folder / 'load.db'}", 20, 1
    await fill(given.store, given)
    words = ["--serve", "--store", given.store, "--embedder", given.embedder, "--relay", "20", "--media", "1"]
    server = Child(*words, OPENAI_API_KEY="none")
    load = Load(json.loads(await server.start()), given)
    kept: list[asyncio.StreamWriter] = []
    found: dict[str, Any] = {}

    async def turns(count: int) -> None:
        calls = [load.relay_call(time.monotonic() + (count / 20 + 0.9) * 2.0, 0.0, 2.0) for _ in range(20)]
        await asyncio.gather(*calls)

    async def refusals(count: int) -> None:
        for _ in range(128 - len(kept)):  # as many as an address may have under way: their bodies never come
            _, writer = await asyncio.open_connection("127.0.0.1", load.http.port)
            writer.write(b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")
            kept.append(writer)
        await several(load.write, count)

    async def several(ask: Callable[[], Awaitable[None]], count: int, at_once: int = 16) -> None:
        for _ in range(count // at_once):
            await asyncio.gather(*(ask() for _ in range(at_once)))

    try:
        await load.tokens_for([f"known-{n}" for n in range(known_users(given))])
        await load.tokens_for([f"writer-{n}" for n in range(writers(given))])
        for name, work, count in (
            ("write", lambda n: several(load.write, n), 800),
            ("recall", lambda n: several(load.recall, n, 4), 200),
            ("relay turn", turns, 100),
            ("refusal", refusals, 2000),
        ):
            await work(count // 5)  # what is loaded once
            await idle(server)
            load.seen = Seen()
            before = server.cpu_s
            await work(count)
            answered = server.cpu_s
            later = await idle(server) - answered
            seen, done = load.seen, count if name != "relay turn" else load.seen.turns
            found[name] = {
                "n": done,
                "ms": round(1000 * (answered - before) / done, 2),
                "later_ms": round(1000 * later / done, 2),
                "outcomes": dict(seen.outcomes),
            }
    finally:
        load.http.close()
        for writer in kept:
            writer.close()
        await server.stop()
    return found


async def idle(server: Child) -> float:
    """Wait until it does nothing any more; the processor time it has used by then."""
    used = server.cpu_s
    while True:
        await asyncio.sleep(1.5)
        used, before = server.cpu_s, used
        if used - before < 0.02:
            return used


def lost(path: Path, acknowledged: Counter[str]) -> int:
    """How much of what was acknowledged the file does not hold, read without the store."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        memories = connection.execute(
            "select s.user, count(*) from records r join scopes s on s.id = r.scope "
            "where r.kind = 'memory' group by 1"
        )
        held = Counter(dict(memories.fetchall()))
        turns = connection.execute(
            "select 'call ' || s.user, count(*) from records r join scopes s on s.id = r.scope "
            "where r.kind = 'turn' and json_extract(r.data, '$.speaker') = 'user' group by 1"
        )
        held.update(dict(turns.fetchall()))
    return sum((acknowledged - held).values())


def shown(samples: list[float]) -> dict[str, float]:
    """Percentiles in milliseconds."""
    ordered = sorted(samples) or [0.0]
    at = {f"p{share}": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)}
    return {
        "n": len(samples),
        **{f"{k}_ms": round(1000 * v, 1) for k, v in (at | {"max": ordered[-1]}).items()},
    }


def part(seen: Seen, took_s: float) -> dict[str, Any]:
    """One part of the run, as it is kept."""
    outcomes = seen.outcomes
    return {
        "seconds": round(took_s, 1),
        "writes_a_second": round(len(seen.writes) / took_s, 1),
        "write": shown(seen.writes),
        "recall": shown(seen.recalls),
        "relay_turns": seen.turns,
        "relay_first_word": shown(seen.tokens),
        "media_turns": seen.media_turns,
        "media_first_sound": shown(seen.sounds),
        "refused": shown(seen.refused),
        "outcomes": dict(sorted(outcomes.items())),
    }


async def sampled(server: Child, samples: list[tuple[float, int]]) -> None:
    while True:
        samples.append((server.memory_mb, server.files))
        await asyncio.sleep(1)


async def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start everything, drive it, and say what it came to."""
    path = folder / "load.db"
    given.store = f"sqlite:///{path}"
    await fill(given.store, given)
    provider = Child("--provide")
    url = await provider.start()
    words = ["--serve", "--store", given.store, "--embedder", given.embedder]
    words += ["--relay", str(given.relay), "--media", str(given.media)]
    server = Child(*words, OPENAI_API_KEY="none", OPENAI_BASE_URL=url)
    samples: list[tuple[float, int]] = []
    steady_s, over_s = 60 * given.minutes, 10 * given.minutes
    try:
        load = Load(json.loads(await server.start()), given)
        await load.tokens_for([f"known-{n}" for n in range(known_users(given))])
        await load.tokens_for([f"writer-{n}" for n in range(writers(given))])
        await load.run(
            argparse.Namespace(**{**vars(given), "media": 0, "relay": 0}), 5
        )  # what is loaded once
        sampling = asyncio.create_task(sampled(server, samples))
        before, began = _cpu(server, provider), time.monotonic()
        steady = part(await load.run(given, steady_s), steady_s)
        took_s = time.monotonic() - began
        cores = {k: round((v - before[k]) / took_s, 2) for k, v in _cpu(server, provider).items()}
        sampling.cancel()
        over = part(await load.run(given, over_s, times=TIMES), over_s)
        load.http.close()
    finally:
        await server.stop()
        await provider.stop()
    last = len(samples) - 1
    moments = [samples[n] for n in (last // 10, last // 2, last)]
    names = ("minutes", "media", "relay", "writes", "recalls", "embedder", "known")
    return {
        "asked": {name: getattr(given, name) for name in names},
        "steady": steady,
        **cores,
        "memory_mb": [memory_mb for memory_mb, _ in moments],
        "files": [files for _, files in moments],
        "overload": over,
        "lost": lost(path, load.acknowledged),
    }


def _cpu(server: Child, provider: Child) -> dict[str, float]:
    return {
        "server_cores": server.cpu_s,
        "provider_cores": provider.cpu_s,
        "loader_cores": time.process_time(),
    }


def table(found: dict[str, Any]) -> list[str]:
    """The result as docs/scale.md has it."""
    asked, steady, over = found["asked"], found["steady"], found["overload"]

    def ms(samples: dict[str, float]) -> str:
        if not samples["n"]:
            return "none"
        return f"{samples['p50_ms']:g} / {samples['p95_ms']:g} / {samples['p99_ms']:g} ms"

    rows = [
        ("media calls, 50 frames a second both ways", asked["media"], _busy(over)),
        ("relay calls, a turn every ten seconds", asked["relay"], ""),
        (
            "durable writes a second",
            f"{steady['writes_a_second']:g} of {asked['writes']:g}",
            f"{over['writes_a_second']:g} of {TIMES * asked['writes']:g}",
        ),
        ("durable write, p50 / p95 / p99", ms(steady["write"]), ms(over["write"])),
        (f"recall ({asked['embedder']} embedder), p50 / p95 / p99", ms(steady["recall"]), ms(over["recall"])),
        (
            "relay: first word, less the model's time",
            ms(steady["relay_first_word"]),
            ms(over["relay_first_word"]),
        ),
        ("media: first sound of an answer", ms(steady["media_first_sound"]), ms(over["media_first_sound"])),
        ("refusals", ms(steady["refused"]), ms(over["refused"])),
        ("acknowledged and lost", found["lost"], ""),
        (
            "cores: server, loader, provider",
            f"{found['server_cores']:g}, {found['loader_cores']:g}, {found['provider_cores']:g}",
            "",
        ),
        (
            "memory of the server, first tenth, middle, end",
            " / ".join(f"{mb:.0f}" for mb in found["memory_mb"]) + " MB",
            "",
        ),
    ]
    head = f"| {asked['minutes']:g} minutes at once | steady | {TIMES} times as much asked for |"
    return [head, "| --- | --- | --- |", *(f"| {name} | {one} | {two} |" for name, one, two in rows)]


def _busy(over: dict[str, Any]) -> str:
    outcomes = over["outcomes"]
    limited = outcomes.get("write 429", 0) + outcomes.get("recall 429", 0)
    return f"{outcomes.get('call told busy', 0)} more calls told busy, {limited} requests told to wait"


def main() -> None:
    """Measure, print the table, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--media", type=int, default=75)
    parser.add_argument("--relay", type=int, default=300)
    parser.add_argument("--writes", type=float, default=500)
    parser.add_argument("--recalls", type=float, default=20)
    parser.add_argument("--known", type=int, default=KNOWN, help="memories of each user that is asked for")
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--out", type=Path, help="instead of results/load.json")
    parser.add_argument("--costs", action="store_true", help="processor time of each thing, by itself")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--provide", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve or given.provide:
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(serve(given) if given.serve else provide())
        return
    with tempfile.TemporaryDirectory(prefix="echoic-load-") as folder:
        found = asyncio.run((costs if given.costs else measure)(given, Path(folder)))
    if given.costs:
        for name, cost in found.items():
            print(f"{name}: {cost['ms']} ms, later {cost['later_ms']} ms ({cost['n']}: {cost['outcomes']})")
        return
    found["table"] = table(found)
    print("\n".join(found["table"]))
    print(machine.save("load" if given.out is None else str(given.out.with_suffix("")), found))


if __name__ == "__main__":
    main()
