"""The voice memory demo's search: Voyage's key by its name, rank fusion, and text that forgives a letter."""

from __future__ import annotations

import pytest

import echoic
from echoic.embedding.remote import VoyageEmbedder
from echoic.stores import store_from
from stores import mongodb_server

OTHERS = {"hobby": "sailing", "city": "Porto", "drink": "green tea", "pet": "a parrot"}


async def test_the_key_is_read_where_the_demo_keeps_it(monkeypatch, embedding_server):
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    monkeypatch.setenv("VOYAGE_AI_API_KEY", embedding_server.key)
    embedder = VoyageEmbedder(base_url=embedding_server.url)
    async with echoic.open("memory://", embedder=embedder) as memory:
        ana = memory.user("ana")
        await ana.set("hobby", "sailing")
        assert [hit.text for hit in await ana.query("sailing")] == ["sailing"]
    assert {sent["authorization"] for sent in embedding_server.headers} == {"Bearer test-key"}


async def test_the_own_name_of_the_key_comes_first(monkeypatch, embedding_server):
    monkeypatch.setenv("VOYAGE_API_KEY", embedding_server.key)
    monkeypatch.setenv("VOYAGE_AI_API_KEY", "another")
    async with echoic.open("memory://", embedder=VoyageEmbedder(base_url=embedding_server.url)) as memory:
        await memory.user("ana").set("hobby", "sailing")
        await memory.user("ana").query("sailing")
    assert {sent["authorization"] for sent in embedding_server.headers} == {"Bearer test-key"}


@pytest.mark.parametrize("asked", ["Where does Kaitlyn live?", "Where does Caitlin live?"])
async def test_rank_fusion_in_process_has_the_fuzzy_text_leg(asked):
    async with echoic.open("memory://", embedder="lexical", fusion="rrf") as memory:
        ana = memory.user("ana")
        for key, value in OTHERS.items():
            await ana.set(key, value)
        await ana.set("kaitlin_home", "Kaitlin lives in Lisbon")
        assert await memory.settle()
        hit = next(h for h in await ana.query(asked) if h.memory.key == "kaitlin_home")
        assert "fuzzy" in hit.ranks or "text" in hit.ranks
        places = hit.ranks["vector"].rank, 1
        assert hit.score == pytest.approx(0.7 / (60 + places[0]) + 0.3 / (60 + places[1]))


async def test_a_misheard_word_alone_finds_its_memory_by_the_text_leg():
    """Nothing is meant alike and no word is the same: what is left is the letter that differs."""
    async with echoic.open("memory://", embedder="lexical", fusion="rrf") as memory:
        ana = memory.user("ana")
        for key, value in OTHERS.items():
            await ana.set(key, value)
        await ana.set("dish", "moussaka")
        (hit, *_) = await ana.query("mousaka")
        assert hit.text == "moussaka"
        assert set(hit.ranks) >= {"fuzzy"}
        assert "text" not in hit.ranks
        vector = hit.ranks.get("vector")
        assert hit.score == pytest.approx((0.7 / (60 + vector.rank) if vector else 0) + 0.3 / 61)


async def test_the_demos_database_finds_the_same_misheard_word(closed_while_connecting):
    """Searched in the database, as a scope too large to load is, and ranked by the same preset."""
    store = store_from(mongodb_server.url(options="narrow_above=1"))
    async with echoic.open(store, embedder="lexical", fusion="rrf") as memory:
        ana = memory.user("ana")
        for key, value in {**OTHERS, "dish": "moussaka"}.items():
            await ana.set(key, value)
        assert await store.until_searchable(300)
        narrowed = await store.narrow(ana.scope, "mousaka", None, limit=8, include_past=False)
        assert narrowed.size
        (hit, *_) = await ana.query("mousaka")
        assert hit.text == "moussaka"
        assert "fuzzy" in hit.ranks
