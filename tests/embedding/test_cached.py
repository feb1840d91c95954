from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from echoic.embedding import LexicalEmbedder
from echoic.embedding.base import CachedEmbedder, Kind, Vectors
from echoic.errors import EmbedderUnavailable, InvalidInput, NotOpen
from echoic.types import EmbeddingSpec


class Counting(LexicalEmbedder):
    """The lexical embedder, keeping count; it can be held and made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[list[str], Kind]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures = 0
        self.closed = 0

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.asked.append((list(texts), kind))
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise EmbedderUnavailable("down")
        return await super().embed(texts, kind)

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def inner() -> Counting:
    return Counting()


def same(left: Vectors, right: Vectors) -> bool:
    return bool((left == right).all())


async def test_a_query_is_embedded_once_and_again_only_when_it_was_pushed_out(inner: Counting) -> None:
    cached = CachedEmbedder(inner, entries=2)
    for text in ("a1", "b2", "a1", "c3", "a1", "b2"):
        await cached.embed([text], "query")
    # c3 pushes out b2, which was unused for longest; a1 stays.
    assert [texts for texts, _ in inner.asked] == [["a1"], ["b2"], ["c3"], ["b2"]]


async def test_only_unknown_queries_of_a_batch_are_asked_for_and_all_come_back_in_order(
    inner: Counting,
) -> None:
    cached = CachedEmbedder(inner)
    await cached.embed(["dog", "cat"], "query")
    found = await cached.embed(["fish", "cat", "fish", "dog", "bird"], "query")
    assert inner.asked[1:] == [(["fish", "bird"], "query")]
    assert same(found, await LexicalEmbedder().embed(["fish", "cat", "fish", "dog", "bird"], "query"))


async def test_documents_pass_through_and_leave_no_trace(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    await cached.embed(["dog"], "document")
    await cached.embed(["dog"], "document")
    await cached.embed(["dog"], "query")
    assert inner.asked == [(["dog"], "document"), (["dog"], "document"), (["dog"], "query")]


async def test_equal_queries_at_once_are_embedded_once(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    calls = [asyncio.create_task(cached.embed(["dog", f"cat{n % 2}"], "query")) for n in range(8)]
    await asyncio.sleep(0.01)
    inner.gate.set()
    found = await asyncio.gather(*calls)
    assert sorted(text for texts, _ in inner.asked for text in texts) == ["cat0", "cat1", "dog"]
    assert all(same(vectors[0], found[0][0]) for vectors in found)
    assert not same(found[0][1], found[1][1])


async def test_an_error_reaches_all_who_wait_and_is_not_remembered(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    inner.failures = 1
    calls = [asyncio.create_task(cached.embed(["dog"], "query")) for _ in range(3)]
    await asyncio.sleep(0.01)
    inner.gate.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [EmbedderUnavailable] * 3
    assert (await cached.embed(["dog"], "query")).shape == (1, 768)
    assert len(inner.asked) == 2


async def test_a_caller_who_gives_up_spoils_it_for_nobody(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    hasty = asyncio.create_task(cached.embed(["dog"], "query"))
    patient = asyncio.create_task(cached.embed(["dog"], "query"))
    await asyncio.sleep(0.01)
    hasty.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hasty
    inner.gate.set()
    assert (await patient).shape == (1, 768)
    assert len(inner.asked) == 1


async def test_an_answer_nobody_waited_for_is_there_the_next_time(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cached.embed(["dog"], "query"), timeout=0.01)
    inner.gate.set()
    await cached.embed(["dog"], "query")
    assert len(inner.asked) == 1


async def test_a_failure_nobody_waited_for_is_no_noise(
    inner: Counting, collected_errors: list[dict[str, Any]]
) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    inner.failures = 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cached.embed(["dog"], "query"), timeout=0.01)
    inner.gate.set()
    await asyncio.sleep(0.01)
    await cached.embed(["dog"], "query")
    assert len(inner.asked) == 2
    assert collected_errors == []


async def test_closing_forgets_everything_and_refuses_those_who_wait(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    await cached.embed(["cat"], "query")
    inner.gate.clear()
    waiting = asyncio.create_task(cached.embed(["dog"], "query"))
    await asyncio.sleep(0.01)
    await cached.aclose()
    with pytest.raises(NotOpen):
        await waiting
    assert inner.closed == 1
    inner.gate.set()
    await cached.embed(["cat"], "query")
    assert [texts for texts, _ in inner.asked] == [["cat"], ["dog"], ["cat"]]


async def test_closing_before_a_fetch_began_leaves_nobody_waiting(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    waiting = asyncio.create_task(cached.embed(["dog"], "query"))
    await asyncio.sleep(0)  # it has asked, and nothing has been fetched yet
    await cached.aclose()
    assert inner.asked == []
    with pytest.raises(NotOpen):
        await asyncio.wait_for(waiting, 60)
    assert (await asyncio.wait_for(cached.embed(["dog"], "query"), 5)).shape == (1, 768)


async def test_clearing_forgets_what_is_under_way_too(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    inner.gate.clear()
    waiting = asyncio.create_task(cached.embed(["dog"], "query"))
    while not inner.asked:
        await asyncio.sleep(0)
    cached.clear()
    inner.gate.set()
    assert (await waiting).shape == (1, 768)
    await cached.embed(["dog"], "query")
    assert len(inner.asked) == 2


async def test_clearing_forgets_every_query(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    await cached.embed(["dog"], "query")
    cached.clear()
    await cached.embed(["dog"], "query")
    assert len(inner.asked) == 2


async def test_a_remembered_query_does_not_keep_its_whole_batch_in_memory(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    await cached.embed(["dog", "cat", "fish"], "query")
    assert all(known.vectors.base is None for known in cached._known.values())


async def test_changing_a_result_does_not_change_the_cache(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    first = await cached.embed(["dog"], "query")
    kept = first.copy()
    first[:] = np.nan
    assert same(await cached.embed(["dog"], "query"), kept)


def test_it_is_what_it_wraps_and_needs_room(inner: Counting) -> None:
    cached = CachedEmbedder(inner)
    assert cached.spec == EmbeddingSpec("lexical:2", 768)
    assert cached.semantic is False
    with pytest.raises(InvalidInput, match="at least 1"):
        CachedEmbedder(inner, entries=0)
