"""Where searching in the database pays: one user who gets more and more memories, loaded or narrowed.

Loaded, a call pays for the whole scope once and for little at each question; narrowed, for much at each
question and nothing before. So loading wins where a call asks often enough, for as long as the scope fits.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.speed import DIMENSIONS, NOW, Data
from benchmarks.store_users import Clock, Samples
from echoic.memory.records import index, record_of_memory
from echoic.ranking.query import query_of
from echoic.ranking.rank import rank
from echoic.stores import store_from
from echoic.stores.base import Attach, Put, Store
from echoic.types import EmbeddingSpec, Memory, Scope

SPEC = EmbeddingSpec("benchmark", DIMENSIONS)
USER = Scope("bench", "user")
LIKELY = (50, 200)
"""Rows asked for of each way of searching when narrowing; a recall asks for the last of them."""
QUESTIONS_A_CALL = 20
"""A call of 40 turns: every turn of the caller's is looked up."""
STEP = 10_000
"""What the threshold is rounded down to: the largest scope that is loaded leaves room for a few others."""
_PIECES = bytes(range(250)) * 8
"""Of the size that word pieces have."""


async def one_user(
    url: str, sizes: tuple[int, ...], queries: int, server_s: Clock | None
) -> list[dict[str, Any]]:
    """For each size: load and rank, cold and warm, and narrow and rank."""
    data = Data(seed=11)
    store = store_from(url)
    await store.open(SPEC, index)
    texts, vectors = data.memories(max(sizes))
    measured, there = [], 0
    for size in sizes:
        await _grow(store, texts, vectors, there, size)
        there = size
        meant = data.rng.integers(0, size, queries).tolist()
        asked = [query_of(*data.question(texts[i], vectors[i])) for i in meant]
        found: dict[str, Any] = {"memories": size}
        best = await _loaded(url, asked, found, server_s)
        found["meant_first"] = sum(rows[:1] == [i] for rows, i in zip(best, meant, strict=True)) / queries
        await _narrowed(store, list(zip(asked, best, meant, strict=True)), found, server_s)
        found["pays_from_question"] = pays_from(found)
        print(found, file=sys.stderr, flush=True)
        measured.append(found)
    await store.aclose()
    return measured


def pays_from(row: dict[str, Any]) -> float:
    """From which question of a call on loading has cost less processor time than narrowing each time."""
    cold, warm = (row[f"{name}_load_and_rank"]["cpu_mean_ms"] for name in ("cold", "warm"))
    narrow = row[f"narrow_{LIKELY[-1]}_and_rank"]["cpu_mean_ms"]
    if narrow <= warm:
        return float("inf")
    return float(max(1.0, round(1 + (cold - narrow) / (narrow - warm), 1)))


def threshold(rows: list[dict[str, Any]], cache_bytes: int) -> dict[str, Any]:
    """Up to how many memories a scope is loaded: as far as that pays within a call and fits the cache.

    Args:
        rows: of `one_user`, by growing size.
        cache_bytes: what a process keeps loaded by default.
    """
    pays = 0
    for row in rows:
        if row["pays_from_question"] > QUESTIONS_A_CALL:
            break
        pays = row["memories"]
    largest = rows[-1]
    fits = int(cache_bytes / (1e6 * largest["loaded_mb"] / largest["memories"]))
    return {
        "questions_a_call": QUESTIONS_A_CALL,
        "pays_up_to": pays,
        "pays_up_to_is_the_largest_measured": pays == largest["memories"],
        "fits_up_to": fits,
        "narrow_above": min(pays, fits) // STEP * STEP,
    }


async def _grow(store: Store, texts: list[str], vectors: Any, start: int, end: int) -> None:
    for at in range(start, end, 1000):
        numbers = range(at, min(at + 1000, end))
        records = [
            record_of_memory(Memory(id=f"m{n}", text=texts[n], valid_from=NOW, author=USER.user))
            for n in numbers
        ]
        await store.write(USER, [Put(record=record) for record in records])
        attaches = [
            Attach(kind=record.kind, id=record.id, version=1, vector=vectors[n], tokens=_PIECES)
            for n, record in zip(numbers, records, strict=True)
        ]
        await store.write(USER, attaches)


async def _loaded(
    url: str, asked: list[Any], found: dict[str, Any], server_s: Clock | None
) -> list[list[int]]:
    cold, warm, best = Samples(server_s), Samples(server_s), []
    for last in (False, False, True):
        store = store_from(url + "&cache_mb=4096")
        await store.open(SPEC, index)
        with cold.one():
            rank(asked[0], [await store.load(USER)])
        for query in asked if last else ():
            with warm.one():
                hits = rank(query, [await store.load(USER)])
            best.append([hit.row for hit in hits])
        found["loaded_mb"] = round((await store.load(USER)).nbytes / 1e6, 1)
        await store.aclose()
    found["cold_load_and_rank"], found["warm_load_and_rank"] = cold.summary(), warm.summary()
    return best


async def _narrowed(
    store: Any, asked: list[tuple[Any, list[int], int]], found: dict[str, Any], server_s: Clock | None
) -> None:
    for likely in LIKELY:
        samples, same, first, rows = Samples(server_s), 0, 0, 0
        for query, wanted, meant in asked:
            with samples.one():
                partition = await store.narrow(
                    USER, query.text, query.vector, limit=likely, include_past=False
                )
                hits = rank(query, [partition])
            rows += partition.size
            origins = [int(partition.origin[hit.row]) for hit in hits]
            same += len(set(origins) & set(wanted))
            first += origins[:1] == [meant]
        found[f"narrow_{likely}_and_rank"] = {
            **samples.summary(),
            "rows": round(rows / len(asked)),
            "same_first_ten": round(same / max(1, sum(len(wanted) for _, wanted, _ in asked)), 3),
            "meant_first": first / len(asked),
        }


__all__ = ["SPEC", "one_user", "pays_from", "threshold"]
