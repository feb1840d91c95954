"""Voice calls on the stand-ins of both providers: what memory adds to a call, and how true its records are.

    python -m benchmarks.voice                    # and --turns, --cuts, --transfers, --calls, --minutes

The real client libraries talk to `echoic_loopback.openai_realtime` and `.gemini_live`, in a process of their
own on this machine, with the local encoder where it is installed. What a provider's model or network takes is
not in any figure. As in `echoic serve`, the heap is frozen once everything is loaded (`freeze_heap`).

`recall`: `AT_ONCE` calls of many questions at the pace of speech, in two pacings. As they are spoken: each
word is shown when it ends, and the provider ends the turn 500 ms after the last. After the turn: nothing is
shown before it has ended, then all words in a row. `ready`: the answer was there when the turn ended.
`delay`: from the whole transcript to what is handed over.
`heard`: replies cut at random places, whole in the client's hands or still under way; words kept against
words decoded from the audio that was played.
`transfer`: a 150 ms handshake; the longest time between two frames that a line took from the microphone,
beside that of a second before it, that of a process that does nothing but wait for 20 ms, and the most
processor time the loop took between two frames: the rest of a gap is the machine's.
`soak`: calls at once, shared among the providers, turn after turn; turns kept against turns spoken, memory,
tasks and processor time.
"""

# ruff: noqa: B023 - what is waited for is this round's
from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic_ai.realtime import RealtimeModel

import echoic
from benchmarks import machine
from benchmarks.standin import PROVIDERS, Metronome, StandIn, standing_in
from benchmarks.voice_scripts import PAUSES_MS, SPEED, InTurn, Reply, WordByWord, cut_off, random_reply
from echoic import EmbedderMissing
from echoic.memory.service import MemoryService
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic.session.agents import TRANSFER_TOOL
from echoic.session.turn_recall import RecallTrace
from echoic.session.voice_call import freeze_heap
from echoic_loopback.realtime import Calls, Repeat, Says, Script, ToolCall, UserSays, speech, words_heard

AT_ONCE = 10
SHARES = (0.05, 0.25, 0.5, 0.75, 0.99)
"""Of a soak, at which its memory is looked at."""
THINGS = ("dog", "cat", "boat", "car", "garden", "sister", "doctor", "piano", "school", "office")
ASKS = (
    "what is the name of my {}",
    "tell me where my {} is now",
    "how old is my {} by now",
    "when did I last see my {}",
)
SEED = 11


class Line:
    """A microphone that sends silence and a loudspeaker, `speed` times as fast as life."""

    def __init__(self, session: VoiceSession, speed: float, *, keep: bool = True) -> None:
        """With `keep` all that is heard, and how late each frame was; a soak would take these for a leak."""
        self.session, self.speed, self.keep = session, speed, keep
        self.heard = bytearray()
        self.stop_at = sys.maxsize
        self.gaps: list[float] = []
        self.works: list[float] = []
        """Processor time of the loop's thread from frame to frame, which other processes lengthen little."""
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
        last, worked = time.perf_counter(), time.thread_time()
        while True:
            if not self.muted:
                await self.session.send_audio(frame)
            if not self.muted and self.keep:
                now = time.perf_counter()
                self.gaps.append(now - last)
                self.works.append(time.thread_time() - worked)
                last, worked = now, time.thread_time()
            await asyncio.sleep(0.02 / self.speed)

    async def _play(self) -> None:
        async for pcm in self.session.audio():
            if self.keep:
                self.heard += pcm
            while len(self.heard) >= self.stop_at:
                await asyncio.sleep(0.001)
            await asyncio.sleep(len(pcm) / 48_000 / self.speed)


async def until(ready: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not ready():
            await asyncio.sleep(0.005)


async def recall(memory: MemoryService, provider: str, turns: int, *, late: bool) -> dict[str, Any]:
    """Delays of the recall over so many questions, `AT_ONCE` callers at once."""
    users = [f"{provider} {late} {number}" for number in range(AT_ONCE)]
    for user in map(memory.user, users):
        for thing in THINGS:
            await user.remember(
                f"The user's {thing} is called {thing.title()}y, and waits in room {len(thing)}."
            )
            await user.set(f"{thing} at night", f"their {thing} sleeps in the {thing} house at night")
    await memory.settle(120)
    questions = [ASKS[n % len(ASKS)].format(THINGS[n // len(ASKS) % len(THINGS)]) for n in range(turns)]
    rng = random.Random(SEED)
    said = [WordByWord(question, rng.randint(*PAUSES_MS), late) for question in questions]
    scripts = [
        Script(*(step for one in said[n::AT_ONCE] for step in (one, Says("yes"))), open_ended=True)
        for n in range(AT_ONCE)
    ]
    async with standing_in(provider, *scripts, keep_audio=False, patience_s=60) as (line, model):
        found = await asyncio.gather(*(_asked(memory, user, line, model, turns) for user in users))
    return _recalled([one for of_call in found for one in of_call])


async def _asked(
    memory: MemoryService, user: str, line: StandIn, model: RealtimeModel, turns: int
) -> list[RecallTrace]:
    """The recalls of one call."""
    settings = SessionSettings(block_tokens=60)
    session = VoiceSession(memory, user=user, agents=[ROBIN], model=model, settings=settings)
    async with session, Line(session, 1):
        await until(lambda: len(line.sessions) == AT_ONCE and all(s.over for s in line.sessions), 20 * turns)
        await asyncio.sleep(0.2)
        return [e.recall for e in session.live.log.exchanges if e.recall is not None]


def _recalled(found: Sequence[RecallTrace]) -> dict[str, Any]:
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
    replies = [random_reply(rng) for _ in range(cuts)]
    scripts = [cut_off(reply) for reply in replies]
    misses: dict[str, list[int]] = {"whole": [], "under way": []}
    async with standing_in(provider, *scripts) as (_, model):
        for number, reply in enumerate(replies):
            kept, played = await _interrupted(memory, model, f"{provider} {number}", reply)
            truth = speech(reply.says.text, word_ms=list(reply.lengths), gap_ms=reply.says.gap_ms)
            miss = len(kept.split()) - len(words_heard(played, truth))
            misses["under way" if reply.under_way else "whole"].append(miss)
    return {name: _missed(of) for name, of in misses.items()} | {
        "all": _missed([*misses["whole"], *misses["under way"]])
    }


async def _interrupted(
    memory: MemoryService, model: RealtimeModel, name: str, reply: Reply
) -> tuple[str, bytes]:
    """What was kept as heard of a reply that was interrupted, and the audio that was played of it."""
    async with VoiceSession(memory, user="ben", agents=[ROBIN], model=model, session_id=name) as session:
        line = Line(session, SPEED if reply.under_way else 40)
        if not reply.under_way:
            line.stop_at = 48 * reply.cut_ms
        async with line:
            await until(lambda: session.live.provider.utterances)
            if not reply.under_way:
                line.muted = True
                await until(lambda: len(line.heard) >= line.stop_at and not session.live.provider.speaking)
                line.muted = False
            await until(lambda: any(said.cut for said in session.live.provider.utterances.values()))
            played = bytes(line.heard)
            line.stop_at = sys.maxsize
            await until(lambda: session.recorder.kept == 4)
    task = await memory.user("ben").task(name)
    assert task is not None
    return task.turns[1].heard_text, played


def _missed(misses: Sequence[int]) -> dict[str, Any]:
    if not misses:
        return {"cuts": 0}
    return {
        "cuts": len(misses),
        "exact": round(sum(miss == 0 for miss in misses) / len(misses), 3),
        "within_one": round(sum(abs(miss) <= 1 for miss in misses) / len(misses), 3),
        "worst": max(misses, key=abs),
    }


async def transfer(memory: MemoryService, provider: str, times: int) -> dict[str, Any]:
    """The longest time between two frames around a transfer, beside that of an ordinary second, and of a
    process that does nothing but wait for the next 20 ms.
    """
    gaps, quiet, idle, works = [], [], [], []
    agents = [VoiceAgent(name="front"), VoiceAgent(name="billing", greeting="Say hello.")]
    first = Script(
        UserSays("bills", after_ms=1000),
        Calls(ToolCall(TRANSFER_TOOL, {"agent": "billing"})),
        Says("one moment"),
        open_ended=True,
    )
    second = Script(Says("hello"), accept_after_s=0.15, open_ended=True)
    with Metronome() as metronome:
        async with standing_in(provider, *[first, second] * times) as (server, model):
            for number in range(times):
                async with (
                    VoiceSession(memory, user="cyd", agents=agents, model=model) as session,
                    Line(session, 1) as line,
                ):
                    await until(lambda: session.live.log.exchanges and session.live.log.current.tools)
                    quiet.append(max(line.gaps[5:]))
                    at, began = len(line.gaps), time.monotonic()
                    await until(lambda: len(server.sessions) == 2 * number + 2 and server.sessions[-1].over)
                    gaps.append(max(line.gaps[at:]))
                    works.append(max(line.works[at:]))
                    idle.append(metronome.longest_s(began))
    return {
        "times": times,
        "handshake_ms": 150,
        "frame_ms": 20,
        "longest_gap_ms": machine.percentiles(gaps),
        "longest_gap_before_ms": machine.percentiles(quiet),
        "longest_gap_of_an_idle_process_ms": machine.percentiles(idle),
        "most_work_between_two_frames_ms": machine.percentiles(works),
    }


async def soak(memory: MemoryService, providers: Sequence[str], calls: int, minutes: float) -> dict[str, Any]:
    """Many calls at once for a while, shared among the providers: what was spoken against what was kept, and
    what is left behind.
    """
    gc.collect()
    tasks_before, cpu_before = len(asyncio.all_tasks()), time.process_time()
    marks: list[int] = []
    late: list[float] = []
    for share in SHARES:
        asyncio.get_running_loop().call_later(60 * minutes * share, lambda: marks.append(_rss_mb()))
    watch = asyncio.create_task(_lateness(late))
    of = await asyncio.gather(
        *(_soaked(memory, provider, calls // len(providers), minutes) for provider in providers)
    )
    cpu_s = time.process_time() - cpu_before
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    return {
        "calls": calls,
        "minutes": minutes,
        **dict(zip(providers, of, strict=True)),
        "rss_mb_after_shares": dict(zip(SHARES, marks, strict=False)) | {"after": _rss_mb()},
        "tasks_left": len(asyncio.all_tasks()) - tasks_before,
        "cpu_share_of_a_core_for_a_call": round(cpu_s / (60 * minutes * calls), 4),
        "loop_lateness_ms": machine.percentiles(late),
    }


async def _soaked(memory: MemoryService, provider: str, calls: int, minutes: float) -> dict[str, Any]:
    script = Script(Repeat(InTurn()), open_ended=True)
    options: dict[str, Any] = {"keep_audio": False, "keep_events": 64, "patience_s": 120}
    async with standing_in(provider, script, **options) as (server, model):
        kept = await asyncio.gather(
            *(one_call(memory, model, f"soak {provider} {number}", minutes) for number in range(calls))
        )
    return {
        "calls": calls,
        "user_turns_spoken": sum(session.heard_turns for session in server.sessions),
        "user_turns_kept": sum(turns for turns, _ in kept),
        "kept_twice": sum(doubled for _, doubled in kept),
        "tasks_left_on_the_stand_in": server.tasks_left,
        "the_stand_ins_cpu_share_for_a_call": round(server.cpu_s / (60 * minutes * calls), 4),
    }


async def _lateness(late_s: list[float]) -> None:
    """By how much the loop wakes later than asked."""
    clock = time.perf_counter
    while True:
        due = clock() + 0.02
        await asyncio.sleep(0.02)
        late_s.append(clock() - due)


async def one_call(memory: MemoryService, model: RealtimeModel, name: str, minutes: float) -> tuple[int, int]:
    """How many turns of the caller were kept, and how many of them twice."""
    settings = SessionSettings(record=False, max_duration_s=None)
    async with (
        VoiceSession(
            memory, user=name, agents=[ROBIN], model=model, session_id=name, settings=settings
        ) as session,
        Line(session, 1, keep=False),
    ):
        await asyncio.sleep(60 * minutes)
    task = await memory.user(name).task(name)
    assert task is not None
    said = [turn.text for turn in task.turns if turn.speaker == "user"]
    return len(said), len(said) - len(set(said))


def _rss_mb() -> int:
    """Resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024**2


ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")


async def main() -> None:
    options = _options()
    path = machine.RESULTS / "voice.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not options.anew else {}
    results.pop("machine", None)
    with tempfile.TemporaryDirectory() as folder:
        async with await _opened(folder) as memory:
            freeze_heap()
            results["embedder"] = memory.embedder.spec.model
            for provider in options.providers:
                for name, part in _parts(options, memory, provider):
                    results.setdefault(provider, {})[name] = await part
                    print(provider, name, results[provider][name], flush=True)
                    if not options.dry:
                        machine.save("voice", results)
            if options.calls and options.minutes:
                results["soak"] = await soak(memory, options.providers, options.calls, options.minutes)
                print("soak", results["soak"], flush=True)
                if not options.dry:
                    machine.save("voice", results)


def _parts(
    options: argparse.Namespace, memory: MemoryService, provider: str
) -> Iterator[tuple[str, Awaitable[dict[str, Any]]]]:
    if options.turns:
        yield "recall, words as they are spoken", recall(memory, provider, options.turns, late=False)
        yield "recall, words after the turn", recall(memory, provider, options.turns // 2, late=True)
    if options.cuts:
        yield "heard", heard(memory, provider, options.cuts)
    if options.transfers:
        yield "transfer", transfer(memory, provider, options.transfers)


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
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--transfers", type=int, default=20)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--providers", nargs="+", default=list(PROVIDERS), choices=PROVIDERS)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    parser.add_argument("--anew", action="store_true", help="drop the parts that are not measured now")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
