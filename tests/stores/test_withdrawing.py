"""Withdrawing reads, decides and removes in one write; the stores of servers do so as the others do."""

from __future__ import annotations

import pytest

from echoic.embedding import LexicalEmbedder
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from stores import mongodb_server, postgres_server

HOURS = "The store is open from 9 to 17."
LESSON = "Ask for the genre before recommending a movie."
STORES = {
    "postgres": lambda: postgres_server.shared().url(),
    "mongodb": lambda: mongodb_server.patient(mongodb_server.url()),
}


@pytest.mark.parametrize("store", STORES)
async def test_what_was_withdrawn_is_found_on_no_store(store: str) -> None:
    async with MemoryService(store_from(STORES[store]()), LexicalEmbedder(384)) as memory:
        await memory.user("ana").set("opening_hours", HOURS)
        (waiting,) = await memory.proposals().list()
        fact = await memory.proposals().approve(waiting.id)
        assert [hit.text for hit in await memory.user("bob").query("when are you open?")] == [HOURS]
        await memory.global_facts().withdraw(fact.id)
        assert await memory.user("bob").query("when were you open?", include_past=True) == []
        films, ana = memory.experience("films"), memory.user("ana").scope
        lesson = await films.add("strategy", LESSON, author=ana)
        await films.adopt(lesson.id)
        assert (await films.seen_by(ana)).of("strategy") == (LESSON,)
        await films.withdraw(lesson.id)
        assert (await films.seen_by(ana)).lessons == ()
        decided = await memory.proposals().decisions()
        assert [decision.what for decision in decided] == ["approved", "withdrawn"] * 2
