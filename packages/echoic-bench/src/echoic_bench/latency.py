"""How long a caller waits: recall and durable writes over a real store, from small memories to large ones.

End to end through `MemoryService`, in one process with one event loop, as a server runs it. Every question is
asked twice: new, when it has to be encoded, and again, when its encoding is remembered; the second time is
what everything but the encoding takes. Texts are turns of made-up calls, each made distinct by rare words of
its own, with the vectors the embedder gives the turn: real vectors, without an hour of encoding.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from echoic.embedding.base import Embedded, Embedder, Kind
from echoic.errors import InvalidInput
from echoic.memory.records import record_of_turn
from echoic.memory.service import MemoryService
from echoic.memory.times.phrases import may_mean_time
from echoic.stores.base import Put
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope, Turn
from echoic_bench.callers import START, people
from echoic_bench.corpus import DEPLOYMENT, HeldEmbedder, Progress, settled, silent
from echoic_bench.exchanges import DAY, PLACE, THING, TIME, WHO
from echoic_bench.metrics import percentiles

SIZES = (1_000, 10_000, 100_000)
CALLERS = (1, 4)
_JOINT = " / "
"""Stands between a turn and the rare words that make it distinct."""
_APART_UP_TO = 50_000
"""Rows up to which every caller has a memory of their own; above they ask one and the same."""
_BATCH = 1_000
_WRITES = 100
IMPORTED = 1_000
"""Texts that wait for their vectors while questions are asked."""
_BREATH_S = 0.1
"""Between two questions during an import: people do not ask without a pause."""
_COLD = 5
_RARE_WORDS = 20_000
_ASKED = (
    "What did {who} say about the {thing} near {place}?",
    "When was the {thing} for {who} delivered to {place}?",
    "Did I tell you that {who} lost the {thing} near {place}?",
    "Who wanted to bring the {thing} to {place} with {who}?",
    "How much did {who} pay for the {thing} in {place}?",
    "Why is the {thing} that {who} ordered still in {place}?",
)
_ASKED_OF_A_TIME = "What did {who} say on {day} at {time} about the {thing} near {place}?"
_TIMED_IN = 7
"""One question of so many names a time, which has to be read; of LoCoMo's development half 15 % do."""
_PLACE = tuple(place for place in PLACE if not may_mean_time(place))
"""Without "the old town": it reads as if the past were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFound:
    """Durations at one size."""

    memories: int
    users: int
    first: dict[str, float]
    """Recall of a memory that is not loaded yet, in a process that runs."""
    write: dict[str, float]
    """A turn appended to a conversation, durable."""
    encoded: dict[int, dict[str, float]] = field(default_factory=dict)
    """By callers at once: a question never asked before."""
    timed: dict[int, dict[str, float]] = field(default_factory=dict)
    """By callers at once: of those, the ones that name a time."""
    repeated: dict[int, dict[str, float]] = field(default_factory=dict)
    """By callers at once: one whose encoding is remembered."""
    importing: dict[str, float] | None = None
    """One caller with a breath between questions, while stored texts are being embedded."""
    at_rest: dict[str, float] | None = None
    """The same once they are."""

    def as_json(self) -> dict[str, Any]:
        """All of it, in milliseconds; what an import costs as the ratio to rest."""
        return {
            "memories": self.memories,
            "users": self.users,
            "recall, question encoded": {str(n): found for n, found in self.encoded.items()},
            "of those, that name a time": {str(n): found for n, found in self.timed.items()},
            "recall, encoding excluded": {str(n): found for n, found in self.repeated.items()},
            "first recall of a user": self.first,
            "durable write": self.write,
        } | self._behind_an_import()

    def _behind_an_import(self) -> dict[str, Any]:
        if self.importing is None or self.at_rest is None:
            return {}
        share = {name: round(self.importing[name] / self.at_rest[name], 2) for name in ("p50_ms", "p95_ms")}
        return {
            "recall during an import": self.importing,
            "recall after it": self.at_rest,
            "import to rest": {"p50": share["p50_ms"], "p95": share["p95_ms"]},
        }


class _OfTurns(HeldEmbedder):
    """Gives a text the vector of the turn it was made from."""

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As the embedder does."""
        return await super().embed_pieces([text.partition(_JOINT)[0] for text in texts], kind)


async def measure_latency(
    embedder: Embedder,
    *,
    sizes: Sequence[int] = SIZES,
    callers: Sequence[int] = CALLERS,
    questions: int = 300,
    imported: int = IMPORTED,
    folder: Path | None = None,
    progress: Progress = silent,
) -> list[LatencyFound]:
    """Durations at every size.

    Args:
        embedder: encodes questions; closed at the end.
        sizes: turns that each memory holds.
        callers: how many ask at once.
        questions: how many are asked at each number of callers, and at most during an import and after it.
        imported: texts of an import that is being embedded while questions are asked; 0: none.
        folder: on the disk that is to be measured; None: where temporary files are. Nothing is left in it.
        progress: told while a store is filled.

    Raises:
        InvalidInput: a size, a number of callers or of questions below 1, or more questions than there are.
        EmbedderMissing: the embedder's packages or weights are not on this machine.
    """
    for what, numbers in (("sizes", sizes), ("callers", callers), ("questions", [questions])):
        if not numbers or min(numbers) < 1:
            raise InvalidInput(f"{what} must be whole numbers from 1, not {', '.join(map(str, numbers))!r}")
    needed, there = questions * (len(callers) + 2 * bool(imported)), sum(1 for _ in _questions(seed=0))
    if needed > there:
        raise InvalidInput(
            f"{questions} questions, {needed // questions} times over, are more than the {there} that are "
            f"unlike each other: ask for {there * questions // needed} at most"
        )
    held = _OfTurns(embedder)
    await held.open()
    try:
        with TemporaryDirectory(prefix="echoic-latency-", dir=folder) as place:
            return [
                await _at(
                    Path(place) / f"{size}.db",
                    held,
                    size=size,
                    callers=callers,
                    questions=questions,
                    imported=imported,
                    progress=progress,
                )
                # a size that is named again would find its questions encoded already
                for size in dict.fromkeys(sizes)
            ]
    finally:
        await held.release()


async def _at(
    path: Path,
    embedder: HeldEmbedder,
    *,
    size: int,
    callers: Sequence[int],
    questions: int,
    imported: int,
    progress: Progress,
) -> LatencyFound:
    most = max(callers)
    users = [f"caller-{n}" for n in range(most if size * most <= _APART_UP_TO else 1)]
    await _fill(path, embedder, users, size, progress)
    first = [await _first(path, embedder, users[0]) for _ in range(_COLD)]
    fresh = _questions(seed=size)
    encoded: dict[int, dict[str, float]] = {}
    timed: dict[int, dict[str, float]] = {}
    repeated: dict[int, dict[str, float]] = {}
    async with _opened(path, embedder) as memory:
        for user in users:
            await memory.user(user, DEPLOYMENT).recall("What was it again?")
        write = await _writes(memory, users[0])
        for n in callers:
            asked = list(itertools.islice(fresh, questions))
            took = await _at_once(n, _asking(memory, users), asked)
            encoded[n] = percentiles(list(took.values()))
            if named := [seconds for question, seconds in took.items() if may_mean_time(question)]:
                timed[n] = percentiles(named)
            repeated[n] = percentiles(list((await _at_once(n, _asking(memory, users), asked)).values()))
        during, after = await _importing(memory, users[0], fresh, imported, questions)
    return LatencyFound(
        memories=size,
        users=len(users),
        first=percentiles(first),
        write=percentiles(write),
        encoded=encoded,
        timed=timed,
        repeated=repeated,
        importing=percentiles(during) if during else None,
        at_rest=percentiles(after) if after else None,
    )


async def _fill(
    path: Path, embedder: HeldEmbedder, users: Sequence[str], size: int, progress: Progress
) -> None:
    store = SQLiteStore(path)
    async with MemoryService(store, embedder) as memory:
        for number, user in enumerate(users):
            turns = _turns(size, seed=number)
            while batch := list(itertools.islice(turns, _BATCH)):
                puts = [Put(record=record_of_turn(turn)) for turn in batch]
                await store.write(Scope(DEPLOYMENT, user), puts)
        await settled(memory, size * len(users), progress)


def _turns(size: int, seed: int) -> Iterator[Turn]:
    """`size` turns of calls a day apart, no two alike."""
    draw = random.Random(seed)  # noqa: S311 - the same at every run is meant
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(_RARE_WORDS)]
    # the frequencies of speech: Zipf's law
    weights = [1 / rank for rank in range(1, _RARE_WORDS + 1)]
    pool = [turn for person in people(4, seed=seed) for turn in person.turns]
    rare = draw.choices(words, weights=weights, k=5 * size)
    for number in range(size):
        said = pool[number % len(pool)]
        call, place = divmod(number, 20)
        yield Turn(
            speaker=said.speaker,
            text=f"{said.text}{_JOINT}{' '.join(rare[5 * number : 5 * number + 5])}",
            id=f"turn-{number}",
            conversation=f"call-{call}",
            said_at=START + timedelta(hours=call, seconds=6 * place),
        )


def _questions(seed: int) -> Iterator[str]:
    """Questions of which no two are alike, some 24,000; after the first 3,500 all of them name a time."""
    words = {"who": WHO, "thing": THING, "place": _PLACE}
    plain = _filled(_ASKED, words, seed)
    timed = _filled((_ASKED_OF_A_TIME,), {**words, "day": DAY, "time": TIME}, seed)
    for number in itertools.count(1):
        one = next(timed if number % _TIMED_IN == 0 else plain, None) or next(timed, None)
        if one is None:
            return
        yield one


def _filled(patterns: Sequence[str], words: Mapping[str, Sequence[str]], seed: int) -> Iterator[str]:
    """Every pattern with every choice of words, in an order that is the same at every run."""
    every = list(itertools.product(patterns, *words.values()))
    random.Random(seed).shuffle(every)  # noqa: S311 - the same at every run is meant
    for pattern, *chosen in every:
        yield pattern.format(**dict(zip(words, chosen, strict=True)))


@contextlib.asynccontextmanager
async def _opened(path: Path, embedder: HeldEmbedder) -> AsyncIterator[MemoryService]:
    async with MemoryService(SQLiteStore(path), embedder) as memory:
        yield memory


async def _first(path: Path, embedder: HeldEmbedder, user: str) -> float:
    """Seconds of a user's first recall, with threads and statements warmed by another user's."""
    question = "Who was it that came first?"
    async with _opened(path, embedder) as memory:
        await memory.user("somebody else", DEPLOYMENT).recall(question)
        gc.collect()
        began = time.perf_counter()
        await memory.user(user, DEPLOYMENT).recall(question)
        return time.perf_counter() - began


async def _writes(memory: MemoryService, user: str) -> list[float]:
    call = await memory.user(user, DEPLOYMENT).conversation("measured")
    samples = []
    for number in range(_WRITES):
        turn = Turn(speaker="user", text=f"And then there is one more thing, number {number}.")
        began = time.perf_counter()
        await call.append(turn)
        samples.append(time.perf_counter() - began)
    await memory.settle()
    return samples


async def _importing(
    memory: MemoryService, user: str, fresh: Iterator[str], imported: int, questions: int
) -> tuple[list[float], list[float]]:
    """Seconds that questions take while another user's texts are being embedded, and then as many at rest."""
    if not imported:
        return [], []
    importer = memory.user("import", DEPLOYMENT)
    # no two alike in the part that is encoded either: nothing of it is remembered
    turns = (replace(turn, text=turn.text.replace(_JOINT, " ")) for turn in _turns(imported, seed=7))
    while batch := list(itertools.islice(turns, _BATCH)):
        puts = [Put(record=record_of_turn(turn)) for turn in batch]
        await importer.backing_store.write(importer.scope, puts)
    await memory.learn_soon("import", "call-0", DEPLOYMENT)  # wakes what embeds
    during = await _with_breath(memory, user, fresh, questions, while_waiting=True)
    while not await memory.settle(60):
        pass
    return during, await _with_breath(memory, user, fresh, len(during), while_waiting=False)


async def _with_breath(
    memory: MemoryService, user: str, fresh: Iterator[str], questions: int, *, while_waiting: bool
) -> list[float]:
    samples: list[float] = []
    while len(samples) < questions:
        question = next(fresh)
        began = time.perf_counter()
        await memory.user(user, DEPLOYMENT).recall(question)
        samples.append(time.perf_counter() - began)
        if while_waiting and not (await memory.check())["waiting"]:
            break
        await asyncio.sleep(_BREATH_S)
    return samples


def _asking(memory: MemoryService, users: Sequence[str]) -> Callable[[int, str], Awaitable[object]]:
    return lambda caller, text: memory.user(users[caller % len(users)], DEPLOYMENT).recall(text)


async def _at_once(
    callers: int, ask: Callable[[int, str], Awaitable[object]], questions: Sequence[str]
) -> dict[str, float]:
    """Seconds each question took, `callers` of them being asked at any time."""
    left = iter(questions)
    samples: dict[str, float] = {}

    async def call(caller: int) -> None:
        for question in left:
            began = time.perf_counter()
            await ask(caller, question)
            samples[question] = time.perf_counter() - began
            # a recall that waits for nothing gives the loop no turn, as reading the next request would
            await asyncio.sleep(0)

    await asyncio.gather(*(call(caller) for caller in range(callers)))
    return samples


__all__ = ["CALLERS", "IMPORTED", "SIZES", "LatencyFound", "measure_latency"]
