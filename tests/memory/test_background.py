"""Written at once, embedded when it can be: an embedder that is slow, down or gone loses nothing."""

from __future__ import annotations

import asyncio

import pytest

import echoic
from echoic.embedding.lexical import LexicalEmbedder
from echoic.errors import EmbedderUnavailable
from echoic.memory import background
from echoic.memory.service import MemoryService
from echoic.stores import store_from


class Moody:
    """A real embedder whose connection comes and goes."""

    def __init__(self) -> None:
        self._inner = LexicalEmbedder()
        self.spec, self.semantic = self._inner.spec, False
        self.down = False
        self.hangs: asyncio.Event | None = None
        self.texts: list[str] = []

    async def open(self) -> None:
        await self._inner.open()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def embed(self, texts, kind):
        if self.hangs is not None:
            await self.hangs.wait()
        if self.down:
            raise EmbedderUnavailable("the line is dead")
        self.texts += texts if kind == "document" else []
        return await self._inner.embed(texts, kind)


@pytest.fixture
def moody():
    return Moody()


@pytest.fixture
def quick_retries(monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(background, "LAST_RETRY_S", 0.02)


async def test_a_write_is_found_by_its_words_before_it_is_embedded(url, moody):
    moody.hangs = asyncio.Event()
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        recall = await ana.recall("is Biscuit a beagle?", deadline_ms=20)
        assert recall.outcome == "deadline"
        assert recall.cut == ("vector",)
        assert [hit.text for hit in recall.hits] == ["a beagle called Biscuit"]
        assert "vector" not in recall.hits[0].ranks
        moody.hangs.set()
        assert await memory.settle(20)
        recall = await ana.recall("is Biscuit a beagle?")
        assert recall.outcome == "complete"
        assert "vector" in recall.hits[0].ranks


async def test_an_embedder_that_is_down_loses_nothing_and_catches_up(url, moody, quick_retries):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        moody.down = True
        await ana.set("dog", "a beagle called Biscuit")
        recall = await ana.recall("Biscuit")
        assert recall.outcome == "unavailable"
        assert recall.hits[0].text == "a beagle called Biscuit"
        assert await memory.settle(0.3) is False
        facts = await memory.check()
        assert facts["embedding_trouble"] == "EmbedderUnavailable"
        moody.down = False
        for _ in range(200):
            if await memory.settle(1):
                break
            await asyncio.sleep(0.01)
        assert (await memory.check())["embedding_trouble"] is None
        assert "vector" in (await ana.query("Biscuit"))[0].ranks


async def test_what_one_process_left_waiting_the_next_one_embeds(tmp_path, moody, monkeypatch):
    monkeypatch.setattr("echoic.memory.service.SETTLE_S", 0.01)
    url = f"sqlite:///{tmp_path}/echoic.db"
    moody.down = True
    async with MemoryService(store_from(url), moody) as memory:
        for i in range(70):
            await memory.user("ana").remember(f"sentence number {i}")
    later = Moody()
    async with MemoryService(store_from(url), later) as memory:
        assert await memory.settle(20)
        assert (await memory.check()).get("waiting") == 0
    assert len(later.texts) == 70


async def test_only_changed_words_are_embedded_again(url, moody):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("home", "Boston")
        await memory.settle(20)
        moody.texts.clear()
        await ana.set("home", "Haifa")  # supersedes Boston, whose words stay as they are
        await memory.settle(20)
        await ana.delete("home")
        await memory.settle(20)
    assert len(moody.texts) == 1


async def test_reindexing_embeds_everything_anew_with_another_model(tmp_path):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with echoic.open(url, embedder="lexical") as memory:
        await memory.user("ana").set("home", "Boston")
    other = LexicalEmbedder(dimensions=256)
    with pytest.raises(echoic.EmbeddingMismatch, match="echoic reindex"):
        await MemoryService(store_from(url), other).open()
    async with echoic.open(url, embedder="lexical") as memory:
        assert (await memory.user("ana").get("home")).text == "Boston"
