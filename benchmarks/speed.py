"""How long a caller waits: durable writes, warm and cold queries, from 100 memories to a million.

    python -m benchmarks.speed            # 100 to 100,000 memories of one user
    python -m benchmarks.speed --million  # and 1,000,000 memories of 10,000 users

Data is synthetic: clustered unit vectors, texts of 8 to 16 words from a Zipf vocabulary, two word pieces a
word; a query is a stored row's vector with noise and four of its words. Where the question is encoded its
words are English: a word of letters at random is five word pieces, an English one is one, and encoding takes
as long as there are pieces. Ours is durable on SQLite; the raw append is the floor. Everything is measured in
rounds, one after the other: a slow minute of the machine then falls on a part of every figure and not on one
of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import statistics
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
from echoic.embedding.encoder import Encoder
from echoic.embedding.weights import find
from echoic.memory.records import index, record_of_memory
from echoic.memory.service import MemoryService
from echoic.partition import AXES, Pieces
from echoic.stores.base import Attach, Put
from echoic.stores.sqlite import SQLiteStore
from echoic.types import EmbeddingSpec, Memory, Scope

DIMENSIONS = 384
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 5
WRITES = 200
APPENDS = 300
ENCODED = 10_000


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
    """Memories and questions about them, of given words or of letters at random."""

    def __init__(self, seed: int, words: Sequence[str] = ()) -> None:
        self.rng = np.random.default_rng(seed)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self.words = self.rng.permutation(words).tolist() or [
            "".join(self.rng.choice(letters, self.rng.integers(4, 9))) for _ in range(20_000)
        ]
        self.centres = self._unit(self.rng.standard_normal((200, DIMENSIONS)))

    def _unit(self, x: np.ndarray) -> np.ndarray:
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)

    def memories(self, count: int) -> tuple[list[str], np.ndarray]:
        ranks = np.minimum(self.rng.zipf(1.2, (count, 16)), len(self.words)) - 1
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


def raw_appends(folder: Path, n: int) -> list[float]:
    """4 KiB appended and synced: what durability costs here with no database at all."""
    samples = []
    with (folder / "raw").open("wb") as file:
        for _ in range(n):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            samples.append(time.perf_counter() - began)
    return samples


class OneUser:
    """So many memories of one user, and how long each thing took with them."""

    def __init__(self, path: Path, size: int, data: Data, queries: int) -> None:
        self._path, self._size, self._data, self._given = path, size, data, Given()
        self._texts, self._vectors = data.memories(size)
        picked = data.rng.integers(0, size, queries)
        self._asked = [data.question(self._texts[i], self._vectors[i]) for i in picked]
        self._given.know(self._asked)
        self._query: list[float] = []
        self._cold: list[float] = []
        self._write: list[float] = []
        self._after: list[float] = []
        self._found = 0

    async def fill(self) -> None:
        store = SQLiteStore(self._path)
        await store.open(self._given.spec, index)
        await fill(store, Scope("bench", "user"), self._texts, self._vectors)
        await store.aclose()

    async def measure(self, number: int) -> None:
        """The round of this number."""
        part = self._asked[number::ROUNDS]
        self._cold.append(await cold_query(self._path, self._given, part[0][0]))
        async with MemoryService(SQLiteStore(self._path), self._given) as memory:
            user = memory.user("user", "bench")
            await user.query(part[0][0])
            for text, _ in part:
                began = time.perf_counter()
                hits = await user.query(text)
                self._query.append(time.perf_counter() - began)
                self._found += bool(hits)
            for i in range(WRITES // ROUNDS):
                said = f"benchmark sentence number {number} {i} about {self._texts[i % self._size][:40]}"
                began = time.perf_counter()
                await user.remember(said)
                self._write.append(time.perf_counter() - began)
                began = time.perf_counter()
                await user.query(part[i % len(part)][0])
                self._after.append(time.perf_counter() - began)

    def measured(self) -> dict[str, Any]:
        return {
            "memories": self._size,
            "query": machine.percentiles(self._query),
            "found": self._found / len(self._asked),
            "cold_first_query": machine.percentiles(self._cold),
            "durable_write": machine.percentiles(self._write),
            "query_right_after_a_write": machine.percentiles(self._after),
            "file_mb": round(self._path.stat().st_size / 1e6, 1),
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


def english() -> list[str]:
    """Words that are one word piece each."""
    vocabulary = json.loads(find(None, "fp32", None).tokenizer.read_text())["model"]["vocab"]
    return sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 3)


class Encoding:
    """One user's memories, and questions encoded by MiniLM on the one core; every question is new."""

    def __init__(self, path: Path, variant: str, size: int, data: Data, queries: int) -> None:
        self._path, self._size, self._data = path, size, data
        self._embedder = embedder_from(variant)
        self._questions = [
            f"what did I tell you about the {data.words[i]} and the {data.words[i + queries]}"
            for i in range(queries)
        ]
        self._endings = {
            variant: "?",
            # to read the time out of a question takes a little more
            f"{variant}, naming a time": " last week?",
            f"{variant}, long": " while we walked home?",
        }
        self._samples: dict[str, list[float]] = {name: [] for name in self._endings}

    async def fill(self) -> None:
        texts, vectors = self._data.memories(self._size)
        store = SQLiteStore(self._path)
        await store.open(self._embedder.spec, index)
        await fill(store, Scope("bench", "user"), texts, vectors)
        await store.aclose()

    async def measure(self, number: int) -> None:
        """The round of this number."""
        async with MemoryService(SQLiteStore(self._path), self._embedder) as memory:
            user = memory.user("user", "bench")
            await user.query("a first question")
            await user.warm()
            for name, ending in self._endings.items():
                for question in self._questions[number::ROUNDS]:
                    began = time.perf_counter()
                    await user.query(question + ending)
                    self._samples[name].append(time.perf_counter() - began)

    def measured(self) -> dict[str, Any]:
        encoder = Encoder(find(None, "fp32", None), "fp32", 1)  # either variant cuts a text up alike
        pieces = {
            name: statistics.median(len(encoder.tokenise(q + ending).ids) for q in self._questions)
            for name, ending in self._endings.items()
        }
        return {
            name: machine.percentiles(samples) | {"word_pieces": pieces[name]}
            for name, samples in self._samples.items()
        }


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
    os.sync()  # four gigabytes were written just now; what still is on its way to the disk is nobody's write
    raw = raw_appends(folder, APPENDS)
    async with MemoryService(SQLiteStore(path), given) as memory:
        cold, warm = [], []
        for samples in (cold, warm):
            for n, question in asked:
                user = memory.user(f"user {n}", "bench")
                began = time.perf_counter()
                await user.query(question)
                samples.append(time.perf_counter() - began)
        write = []
        for n, question in asked[:WRITES]:
            user = memory.user(f"user {n}", "bench")
            began = time.perf_counter()
            await user.remember("one more thing that was said in a call")
            write.append(time.perf_counter() - began)
            await user.query(question)  # as for one user: nobody's next write waits for this one's vector
    return {
        "memories": users * each,
        "users": users,
        "first_query_of_a_user": machine.percentiles(cold),
        "query": machine.percentiles(warm),
        "durable_write": machine.percentiles(write),
        "raw_4k_append_fdatasync": machine.percentiles(raw),
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
    data, spoken = Data(seed=7), Data(seed=7, words=english())
    measured: dict[str, Any] = {"import_echoic": import_ms()}
    one = [OneUser(folder / f"{size}.db", size, data, queries) for size in sizes]
    encoding = [
        Encoding(folder / f"encoded-{variant.replace(':', '-')}.db", variant, ENCODED, spoken, queries)
        for variant in ("local", "local:int8")
    ]
    for filled in (*one, *encoding):
        await filled.fill()
    raw: list[float] = []
    for number in range(ROUNDS):
        raw += raw_appends(folder, APPENDS // ROUNDS)
        for filled in (*one, *encoding):
            await filled.measure(number)
        print(f"  round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    measured["raw_4k_append_fdatasync"] = machine.percentiles(raw)
    measured["one_user"] = [user.measured() for user in one]
    measured["with_encoding"] = {"memories": ENCODED}
    for each in encoding:
        measured["with_encoding"] |= each.measured()
    if users:
        measured["many_users"] = await million(folder, data, users, 100, queries)
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
