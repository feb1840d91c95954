"""What is withdrawn or deleted is found on no store, whatever it keeps its rows and flags in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

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


EVERY: Final[dict[str, Callable[[Path], str]]] = {
    "memory": lambda _: "memory://",
    "sqlite": lambda folder: f"sqlite:///{folder}/echoic.db",
    "files": lambda folder: f"files:///{folder}/people",
    "markdown": lambda folder: f"files:///{folder}/people?format=markdown",
    "postgres": lambda _: STORES["postgres"](),
    "postgres, searched in the database": lambda _: postgres_server.shared().url(narrow_above=1),
    "mongodb": lambda _: STORES["mongodb"](),
}


@pytest.mark.parametrize("store", EVERY)
async def test_what_was_deleted_is_found_by_no_search_of_the_past_on_any_store(
    store: str, tmp_path: Path
) -> None:
    url, asked = EVERY[store](tmp_path), "where was my home before?"
    lasts = url != "memory://"
    for opened in range(2 if lasts else 1):
        async with MemoryService(store_from(url), LexicalEmbedder(384)) as memory:
            ana, bob = memory.user("ana"), memory.user("bob")
            if not opened:
                for user in (ana, bob):
                    for town in ("Leeds", "York", "Bath"):
                        await user.set("home", town)
                await ana.delete(id=(await ana.history("home"))[0].id)
                await bob.delete("home")
            found = {name: await memory.user(name).query(asked, min_relevance=0) for name in ("ana", "bob")}
            assert sorted(hit.text for hit in found["ana"]) == ["Bath", "York"]
            assert found["bob"] == []
            assert await bob.query("home Leeds York Bath", include_past=True, min_relevance=0) == []
            assert [one.deleted for one in await ana.history("home")] == [True, False, False]
            assert [one.deleted for one in await bob.past()] == [True] * 3
