"""Voice calls on the stand-ins of both providers: what memory adds to a call, and how true its records are.

    python -m benchmarks.voice                    # and --turns, --calls, --minutes

The real client libraries talk to `echoic.testing.openai_realtime` and `.gemini_live` on this machine, with
the local encoder where it is installed. What a provider's model or network takes is not in any figure.

`recall`: one call of many questions, whose words are shown 500 ms before the provider ends the turn.
`ready`: the answer was there when the turn ended. `delay`: from the transcript to what is handed over.
`heard`: replies cut at random places; words kept against words decoded from the audio that was played.
`transfer`: a 150 ms handshake; the longest time between two frames that a line took from the microphone.
`soak`: calls at once, turn after turn; turns kept against turns spoken, memory and tasks before and after.
"""

# ruff: noqa: SIM117, B023 - a provider's life encloses its calls; what is waited for is this round's
from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.realtime.google import GoogleRealtimeModel
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
from benchmarks import machine
from echoic import EmbedderMissing
from echoic.memory.service import MemoryService
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic.session.agents import TRANSFER_TOOL
from echoic.testing.gemini_live import GeminiLiveServer
from echoic.testing.openai_realtime import OpenAIRealtimeServer
from echoic.testing.realtime import Calls, Repeat, Says, Script, ToolCall, UserSays, speech, words_heard

PROVIDERS = ("openai", "gemini")
SHOWN_BEFORE_MS = 500
"""OpenAI's detector ends a turn after so much silence, by default; the last word was shown by then."""
SPEED = 4
"""Of the line, in `recall`: silence is sent faster than life, what is timed is not."""
THINGS = ("dog", "cat", "boat", "car", "garden", "sister", "doctor", "piano", "school", "office")
ASKS = (
    "what is the name of my {}",
    "tell me where my {} is now",
    "how old is my {} by now",
    "when did I last see my {}",
)
WORDS = "a an on at of the and gate seven flight table booked representative international o'clock".split()
SEED = 11


@contextlib.asynccontextmanager
async def served(provider: str, *scripts: Any, **options: Any) -> AsyncIterator[tuple[Any, RealtimeModel]]:
    if provider == "openai":
        async with OpenAIRealtimeServer(*scripts, **options) as server:
            client = OpenAIProvider(base_url=server.base_url, api_key="k")
            yield server, OpenAIRealtimeModel("gpt-realtime", provider=client)
    else:
        async with GeminiLiveServer(*scripts, **options) as server:
            with server.trusted():
                google = GoogleProvider(base_url=server.base_url, api_key="k")
                model = GoogleRealtimeModel("gemini-3.8-live", provider=google)
            yield server, model


class Line:
    """A microphone that sends silence and a loudspeaker, `speed` times as fast as life."""

    def __init__(self, session: VoiceSession, speed: float) -> None:
        self.session, self.speed = session, speed
        self.heard = bytearray()
        self.stop_at = sys.maxsize
        self.gaps: list[float] = []
        self.muted = False

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._mic()), asyncio.create_task(self._play())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _mic(self) -> None:
        frame = bytes(2 * self.session.profile.input_hz * 20 // 1000)
        last = time.perf_counter()
        while True:
            if not self.muted:
                await self.session.send_audio(frame)
                now = time.perf_counter()
                self.gaps.append(now - last)
                last = now
            await asyncio.sleep(0.02 / self.speed)

    async def _play(self) -> None:
        async for pcm in self.session.audio():
            self.heard += pcm
            while len(self.heard) >= self.stop_at:
                await asyncio.sleep(0.001)
            await asyncio.sleep(len(pcm) / 48_000 / self.speed)


async def until(ready: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not ready():
            await asyncio.sleep(0.005)


def spoken(question: str) -> UserSays:
    """The user says it; its words are shown `SHOWN_BEFORE_MS` before the provider ends the turn."""
    words = question.split()
    partials = tuple(word if not place else f" {word}" for place, word in enumerate(words))
    return UserSays(question, after_ms=200, lasts_ms=SPEED * SHOWN_BEFORE_MS, partials=partials, early=True)


async def recall(memory: MemoryService, provider: str, turns: int) -> dict[str, Any]:
    """Delays of the recall in one call of so many questions."""
    ana = memory.user(f"ana {provider}")
    for thing in THINGS:
        for number in range(10):
            await ana.remember(
                f"The user's {thing} number {number} is called {thing.title()}y{number}, in room {number}."
            )
    await memory.settle(60)
    questions = [ASKS[n % len(ASKS)].format(THINGS[n // len(ASKS) % len(THINGS)]) for n in range(turns)]
    steps = [step for question in questions for step in (spoken(question), Says("yes"))]
    settings = SessionSettings(block_tokens=60)
    async with served(provider, Script(*steps), keep_audio=False, patience_s=60) as (server, model):
        session = VoiceSession(memory, user=f"ana {provider}", agents=[ROBIN], model=model, settings=settings)
        async with session, Line(session, SPEED):
            await until(lambda: server.sessions and server.sessions[0].script_over, 20 * turns)
            await asyncio.sleep(0.2)
            found = [e.recall for e in session.live.log.exchanges if e.recall is not None]
    outcomes = {
        name: sum(one.outcome == name for one in found) for name in ("complete", "deadline", "unavailable")
    }
    return {
        "turns": len(found),
        "ready_share": round(sum(one.ready for one in found) / len(found), 3),
        "outcomes": outcomes,
        "delay_ms": machine.percentiles([one.delay_ms / 1000 for one in found]),
    }


async def heard(memory: MemoryService, provider: str, cuts: int) -> dict[str, Any]:
    """Words kept as heard against words in the audio, over replies cut at random places."""
    rng = random.Random(SEED)
    misses: list[int] = []
    for number in range(cuts):
        text = " ".join(rng.choices(WORDS, k=rng.randint(6, 20)))
        lengths = tuple(int((60 + 45 * len(word)) * rng.uniform(0.8, 1.25)) for word in text.split())
        says = Says(
            text, word_ms=lengths, lead_words=rng.choice((0, 0, 2, 4)), chunk_ms=rng.choice((40, 100, 400))
        )
        truth = speech(text, word_ms=list(lengths))
        script = Script(
            UserSays("go on", after_ms=300), says, UserSays("wait", after_ms=1), Says("yes"), open_ended=True
        )
        async with served(provider, script) as (_, model):
            name = f"{provider} {number}"
            async with VoiceSession(
                memory, user="ben", agents=[ROBIN], model=model, session_id=name
            ) as session:
                line = Line(session, 40)
                line.stop_at = 48 * rng.randint(20, truth.duration_ms - 20)
                async with line:
                    await until(lambda: session.live.leg.utterances)
                    line.muted = True
                    await until(lambda: len(line.heard) >= line.stop_at and not session.live.leg.speaking)
                    line.muted = False
                    await until(lambda: session.live.cut_at_s)
                    played = bytes(line.heard)
                    line.stop_at = sys.maxsize
                    await until(lambda: session.live.kept == 4)
        task = await memory.user("ben").task(name)
        assert task is not None
        misses.append(len(task.turns[1].heard_text.split()) - len(words_heard(played, truth)))
    return {
        "cuts": cuts,
        "exact": round(sum(miss == 0 for miss in misses) / cuts, 3),
        "within_one": round(sum(abs(miss) <= 1 for miss in misses) / cuts, 3),
        "worst": max(misses, key=abs),
    }


async def transfer(memory: MemoryService, provider: str, times: int) -> dict[str, Any]:
    """The longest time between two frames around a transfer, beside that of an ordinary second."""
    gaps, quiet = [], []
    for _ in range(times):
        first = Script(
            UserSays("bills", after_ms=1000),
            Calls(ToolCall(TRANSFER_TOOL, {"agent": "billing"})),
            Says("one moment"),
            open_ended=True,
        )
        second = Script(Says("hello"), accept_after_s=0.15, open_ended=True)
        agents = [VoiceAgent(name="front"), VoiceAgent(name="billing", greeting="Say hello.")]
        async with served(provider, first, second) as (server, model):
            async with (
                VoiceSession(memory, user="cyd", agents=agents, model=model) as session,
                Line(session, 1) as line,
            ):
                await until(
                    lambda: server.sessions and session.live.log.exchanges and session.live.log.current.tools
                )
                quiet.append(max(line.gaps[5:]))
                at = len(line.gaps)
                await until(lambda: len(server.sessions) == 2 and server.sessions[1].script_over)
                gaps.append(max(line.gaps[at:]))
    return {
        "times": times,
        "handshake_ms": 150,
        "frame_ms": 20,
        "longest_gap_ms": machine.percentiles(gaps),
        "longest_gap_before_ms": machine.percentiles(quiet),
    }


async def soak(memory: MemoryService, provider: str, calls: int, minutes: float) -> dict[str, Any]:
    """Many calls at once for a while: what was spoken against what was kept, and what is left behind."""
    before = len(asyncio.all_tasks())
    marks: list[int] = []
    script = Script(Repeat(InTurn()), open_ended=True)
    async with served(provider, script, keep_audio=False, keep_events=64, patience_s=120) as (server, model):
        for share in (0.25, 0.5, 0.75):
            asyncio.get_running_loop().call_later(60 * minutes * share, lambda: marks.append(_rss_mb()))
        kept = await asyncio.gather(
            *(one_call(memory, model, f"soak {provider} {number}", minutes) for number in range(calls))
        )
        heard_turns = sum(getattr(session, "heard_turns", 0) for session in server.sessions)
        left = len(asyncio.all_tasks()) - before
    return {
        "calls": calls,
        "minutes": minutes,
        "user_turns_spoken": heard_turns,
        "user_turns_kept": sum(turns for turns, _ in kept),
        "kept_twice": sum(doubled for _, doubled in kept),
        "rss_mb_at_quarters_and_end": [*marks, _rss_mb()],
        "tasks_left_on_the_stand_in": left,
    }


async def one_call(memory: MemoryService, model: RealtimeModel, name: str, minutes: float) -> tuple[int, int]:
    """How many turns of the caller were kept, and how many of them twice."""
    settings = SessionSettings(record=False, max_duration_s=None)
    async with (
        VoiceSession(
            memory, user=name, agents=[ROBIN], model=model, session_id=name, settings=settings
        ) as session,
        Line(session, 1),
    ):
        await asyncio.sleep(60 * minutes)
    task = await memory.user(name).task(name)
    assert task is not None
    said = [turn.text for turn in task.turns if turn.speaker == "user"]
    return len(said), len(said) - len(set(said))


class InTurn:
    """A question and an answer, counted on the stand-in's session."""

    async def __call__(self, session: Any) -> None:
        number = getattr(session, "heard_turns", 0)
        await session.hear(UserSays(f"this is sentence number {number}", after_ms=800, lasts_ms=400))
        session.heard_turns = number + 1
        await Says(f"answer number {number}")(session)


def _rss_mb() -> int:
    """Resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024**2


ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")


async def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        results: dict[str, Any] = {}
        async with await _opened(folder) as memory:
            results["embedder"] = memory.embedder.spec.model
            for provider in options.providers:
                of: dict[str, Any] = {}
                if options.turns:
                    of["recall"] = await recall(memory, provider, options.turns)
                if options.cuts:
                    of["heard"] = await heard(memory, provider, options.cuts)
                if options.transfers:
                    of["transfer"] = await transfer(memory, provider, options.transfers)
                if options.calls and options.minutes:
                    of["soak"] = await soak(memory, provider, options.calls, options.minutes)
                results[provider] = of
                print(provider, of, flush=True)
        machine.save("voice", results)


async def _opened(folder: str) -> MemoryService:
    """With the local encoder, or by words alone where it is not installed."""
    try:
        service = echoic.open(f"sqlite:///{folder}/echoic.db", embedder="local")
        await service.open()
        await service.aclose()
    except EmbedderMissing:
        return echoic.open(f"sqlite:///{folder}/words.db", embedder="lexical")
    return echoic.open(f"sqlite:///{folder}/echoic.db", embedder="local")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=40)
    parser.add_argument("--transfers", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--providers", nargs="+", default=list(PROVIDERS), choices=PROVIDERS)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
