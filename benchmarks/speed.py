"""How long a caller waits: durable writes, warm and cold queries, from 100 memories to a million.

    python -m benchmarks.speed            # 100 to 100,000 memories of one user
    python -m benchmarks.speed --million  # and 1,000,000 memories of 10,000 users

Data is synthetic: clustered unit vectors, texts of 8 to 16 words from a Zipf vocabulary, two word pieces a
word; a query is a stored row's vector with noise and four of its words. Ours is durable on SQLite; the raw
append is the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from echoic.embedding import embedder_from
from echoic.embedding.base import Embedded, Kind, Vectors
from echoic.memory.records import index, record_of_memory
from echoic.memory.service import MemoryService
from echoic.partition import AXES, Pieces
from echoic.stores.base import Attach, Put
from echoic.stores.sqlite import SQLiteStore
from echoic.types import EmbeddingSpec, Memory, Scope

DIMENSIONS = 384
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Given:
    """An embedder that has every vector already, so that what is timed is all but the encoding."""

    semantic = True
    spec = EmbeddingSpec("benchmark", DIMENSIONS)

    def __init__(self) -> None:
        self.vectors: dict[str, np.ndarray] = {}
        self._other = np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002 - the seam's
        return np.stack([self.vectors.get(text, self._other) for text in texts])

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        return Embedded(await self.embed(texts, kind), [self.pieces(text) for text in texts])

    def know(self, asked: Sequence[tuple[str, np.ndarray]]) -> None:
        """Have the vectors of these texts, and their word pieces."""
        self.vectors = dict(asked)
        for text, _ in asked:
            self.pieces(text)

    @cache  # noqa: B019 - lives as long as the benchmark
    def pieces(self, text: str) -> Pieces:
        words = [(found.start(), found.end(), found.group()) for found in re.finditer(r"\w+", text)]
        axes = np.concatenate([word_axes(word) for _, _, word in words])
        spans = tuple(half for a, b, _ in words for half in ((a, (a + b) // 2), ((a + b) // 2, b)))
        return Pieces(axes=axes, hidden=np.tile(self._other, (len(axes), 1)), spans=spans)


@cache
def word_axes(word: str) -> np.ndarray:
    """[2, AXES] Two word pieces, always the same for a word."""
    drawn = np.random.default_rng(zlib.crc32(word.encode())).standard_normal((2, AXES)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@cache
def packed_word(word: str) -> bytes:
    return np.round(127 * word_axes(word)).astype(np.int8).tobytes()


class Data:
    """Memories and questions about them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self.words = ["".join(self.rng.choice(letters, self.rng.integers(4, 9))) for _ in range(20_000)]
        self.centres = self._unit(self.rng.standard_normal((200, DIMENSIONS)))

    def _unit(self, x: np.ndarray) -> np.ndarray:
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)

    def memories(self, count: int) -> tuple[list[str], np.ndarray]:
        ranks = np.minimum(self.rng.zipf(1.2, (count, 16)), 20_000) - 1
        lengths = self.rng.integers(8, 17, count)
        texts = [" ".join(self.words[i] for i in row[:n]) for row, n in zip(ranks, lengths, strict=True)]
        near = self.centres[self.rng.integers(0, 200, count)]
        return texts, self._unit(near + 0.08 * self.rng.standard_normal((count, DIMENSIONS)))

    def question(self, text: str, vector: np.ndarray) -> tuple[str, np.ndarray]:
        words = text.split()
        asked = " ".join(self.rng.choice(words, min(4, len(words)), replace=False))
        return asked, self._unit(vector + 0.02 * self.rng.standard_normal(DIMENSIONS))


async def fill(store: SQLiteStore, scope: Scope, texts: list[str], vectors: np.ndarray) -> None:
    records = [
        record_of_memory(Memory(id=f"m{i}", text=text, valid_from=NOW, author=scope.user))
        for i, text in enumerate(texts)
    ]
    for at in range(0, len(records), 2000):
        part = records[at : at + 2000]
        await store.write(scope, [Put(record=r) for r in part])
        attaches = [
            Attach(
                kind=r.kind,
                id=r.id,
                version=1,
                vector=vectors[at + i],
                tokens=b"".join(map(packed_word, texts[at + i].split())),
            )
            for i, r in enumerate(part)
        ]
        await store.write(scope, attaches)


def raw_append_ms(folder: Path, n: int = 300) -> dict[str, float]:
    """4 KiB appended and synced: what durability costs here with no database at all."""
    samples = []
    with (folder / "raw").open("wb") as file:
        for _ in range(n):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            samples.append(time.perf_counter() - began)
    return machine.percentiles(samples)


async def one_user(folder: Path, size: int, data: Data, queries: int) -> dict[str, Any]:
    path, given = folder / f"{size}.db", Given()
    texts, vectors = data.memories(size)
    asked = [data.question(texts[i], vectors[i]) for i in data.rng.integers(0, size, queries)]
    given.know(asked)
    store = SQLiteStore(path)
    await store.open(given.spec, index)
    await fill(store, Scope("bench", "user"), texts, vectors)
    await store.aclose()
    cold = [await cold_query(path, given, asked[i][0]) for i in range(5)]
    async with MemoryService(SQLiteStore(path), given) as memory:
        user = memory.user("user", "bench")
        await user.query(asked[0][0])
        query, found = [], 0
        for text, _ in asked:
            began = time.perf_counter()
            hits = await user.query(text)
            query.append(time.perf_counter() - began)
            found += bool(hits)
        write, after = [], []
        for i in range(200):
            began = time.perf_counter()
            await user.remember(f"benchmark sentence number {i} about {texts[i % size][:40]}")
            write.append(time.perf_counter() - began)
            began = time.perf_counter()
            await user.query(asked[i % len(asked)][0])
            after.append(time.perf_counter() - began)
    return {
        "memories": size,
        "query": machine.percentiles(query),
        "found": found / len(asked),
        "cold_first_query": machine.percentiles(cold),
        "durable_write": machine.percentiles(write),
        "query_right_after_a_write": machine.percentiles(after),
        "file_mb": round(path.stat().st_size / 1e6, 1),
    }


async def cold_query(path: Path, given: Given, text: str) -> float:
    """The first query of a user in a process that has the store open: load and search."""
    async with MemoryService(SQLiteStore(path), given) as memory:
        other = memory.user("somebody else", "bench")
        await other.query(text)  # threads, statements and code paths are warm; this user's memory is not
        gc.collect()
        began = time.perf_counter()
        await memory.user("user", "bench").query(text)
        return time.perf_counter() - began


async def with_encoding(folder: Path, size: int, data: Data, queries: int) -> dict[str, Any]:
    """The same store, questions encoded by MiniLM on the one core; every question is new."""
    measured: dict[str, Any] = {"memories": size}
    for variant in ("local", "local:int8"):
        embedder = embedder_from(variant)
        store, path = None, folder / f"encoded-{variant.replace(':', '-')}.db"
        texts, vectors = data.memories(size)
        store = SQLiteStore(path)
        await store.open(embedder.spec, index)
        await fill(store, Scope("bench", "user"), texts, vectors)
        await store.aclose()
        async with MemoryService(SQLiteStore(path), embedder) as memory:
            user = memory.user("user", "bench")
            await user.query("a first question")
            await user.warm()
            for ending in ("", " last week"):  # to read the time out of a question takes a little more
                samples = []
                for i in range(queries):
                    question = f"where did {data.words[i]} say the {data.words[i + 500]} was{ending}?"
                    began = time.perf_counter()
                    await user.query(question)
                    samples.append(time.perf_counter() - began)
                measured[f"{variant}{', naming a time' if ending else ''}"] = machine.percentiles(samples)
    return measured


async def million(folder: Path, data: Data, users: int, each: int, queries: int) -> dict[str, Any]:
    path, given = folder / "million.db", Given()
    store = SQLiteStore(path)
    await store.open(given.spec, index)
    asked: list[tuple[int, str]] = []
    began = time.perf_counter()
    for n in range(users):
        texts, vectors = data.memories(each)
        await fill(store, Scope("bench", f"user {n}"), texts, vectors)
        if n % max(1, users // queries) == 0:
            question, vector = data.question(texts[3], vectors[3])
            given.vectors[question] = vector
            asked.append((n, question))
        if n % 1000 == 999:
            print(f"  {n + 1} users, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    await store.aclose()
    async with MemoryService(SQLiteStore(path), given) as memory:
        cold, warm = [], []
        for samples in (cold, warm):
            for n, question in asked:
                user = memory.user(f"user {n}", "bench")
                began = time.perf_counter()
                await user.query(question)
                samples.append(time.perf_counter() - began)
        write = []
        for n, _ in asked[:200]:
            began = time.perf_counter()
            await memory.user(f"user {n}", "bench").remember("one more thing that was said in a call")
            write.append(time.perf_counter() - began)
    return {
        "memories": users * each,
        "users": users,
        "first_query_of_a_user": machine.percentiles(cold),
        "query": machine.percentiles(warm),
        "durable_write": machine.percentiles(write),
        "file_mb": round(path.stat().st_size / 1e6, 1),
    }


def import_ms() -> dict[str, float]:
    """`import echoic` in a new process, less an empty process."""

    def run(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - began

    return machine.percentiles([run("import echoic") - run("pass") for _ in range(11)])


async def measure(folder: Path, *, sizes: list[int], users: int, queries: int) -> dict[str, Any]:
    data = Data(seed=7)
    measured: dict[str, Any] = {
        "import_echoic": import_ms(),
        "raw_4k_append_fdatasync": raw_append_ms(folder),
    }
    measured["one_user"] = []
    for size in sizes:
        measured["one_user"].append(await one_user(folder, size, data, queries))
        print(measured["one_user"][-1], file=sys.stderr, flush=True)
    measured["with_encoding"] = await with_encoding(folder, 10_000, data, queries)
    print(measured["with_encoding"], file=sys.stderr, flush=True)
    if users:
        measured["many_users"] = await million(folder, data, users, 100, queries)
        print(measured["many_users"], file=sys.stderr, flush=True)
    measured["raw_4k_append_fdatasync_again"] = raw_append_ms(folder)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="also 1,000,000 memories of 10,000 users")
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written to results/")
    parser.add_argument("--folder", help="where to put the databases (a disk, not a RAM disk)")
    args = parser.parse_args()
    machine.one_core()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        sizes = [100, 1000] if args.smoke else [100, 1_000, 10_000, 100_000]
        users = 50 if args.smoke else 10_000 if args.million else 0
        queries = 50 if args.smoke else 500
        measured = asyncio.run(measure(Path(folder), sizes=sizes, users=users, queries=queries))
    if args.smoke:
        print(measured)
    else:
        print(machine.save("speed", measured))


if __name__ == "__main__":
    main()
