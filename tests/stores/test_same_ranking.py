"""One corpus, every store: the same hits in the same order with the same scores, through the whole of a recall."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from echoic.cli.importers import read_locomo
from echoic.cli.importers.base import ImportedTurn, ImportSource
from echoic.embedding import LexicalEmbedder
from echoic.memory.records import record_of_memory, record_of_turn
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Drop, Put, Store
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Hit, Memory, Scope, Turn
from stores import mongodb_server, postgres_server

STORES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/echoic.db",
    "files": lambda folder: f"files:///{folder}/people",
    "markdown": lambda folder: f"files:///{folder}/notes?format=markdown",
    "postgres": lambda _: postgres_server.shared().url(),
    "mongodb": lambda _: mongodb_server.patient(mongodb_server.url()),
}
SMALLER = {"mongodb"}
"""The stand-in takes in fewer turns a second than a server."""
BEGAN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
ANA = Scope("acme", "ana")

THINGS = "bicycle kettle sofa telescope violin parrot garden boat lamp camera".split()
PLACES = "Porto Lisbon Faro Braga Coimbra Aveiro Évora Sintra".split()
DID = "bought sold lost repaired painted borrowed found cleaned".split()
PEOPLE = ("user", "agent", "Joana")


def corpus(turns: int) -> tuple[list[Turn], list[Memory]]:
    """Talk in which much is alike, and what is known of it: keyed, superseded, keyless."""
    said = []
    for n in range(turns):
        thing, place, did = THINGS[n % 10], PLACES[(n // 3) % 8], DID[(n * 5 // 7) % 8]
        text = (
            f"I {did} the {thing} in {place} for {n % 13} euros." if n % 4 else f"Where is the {thing} now?"
        )
        said.append(
            Turn(
                id=f"t{n}",
                conversation=f"c{n // 12}",
                speaker=PEOPLE[n % 3],
                text=text,
                said_at=BEGAN + timedelta(minutes=7 * n),
            )
        )
    known = []
    for n in range(turns // 6):
        past = n % 5 == 0
        known.append(
            Memory(
                id=f"m{n}",
                key=f"{THINGS[n % 10]}_place" if n % 2 else None,
                text=f"The {THINGS[n % 10]} is in {PLACES[n % 8]}",
                author="ana",
                valid_from=BEGAN + timedelta(days=n),
                valid_until=BEGAN + timedelta(days=n + 1) if past else None,
                superseded_by=f"m{n + 1}" if past else None,
            )
        )
    return said, known


QUESTIONS = (
    "where is the violin?",
    "who repaired the telescope in Porto?",
    "what did Joana sell in Lisbon?",
    "everything I bought in Évora",
    "where was the boat before?",
    "the tellescope in Brahga",
    "how much was the kettle last week?",
    "lamp",
    "what happened in May?",
    "is the parrot in the garden?",
    "zeppelin",
)


def told(hits: Iterable[Hit]) -> list[Any]:
    """All of the hits, and what each channel made of them."""
    return [
        (
            hit.scope,
            hit.memory.id if hit.memory else hit.turn and hit.turn.id,
            hit.text,
            hit.score,
            {name: (rank.rank, rank.score) for name, rank in hit.ranks.items()},
        )
        for hit in hits
    ]


@asynccontextmanager
async def filled(store: Store, turns: int) -> AsyncIterator[MemoryService]:
    """A service over the corpus, written as calls write it, with something erased in between."""
    said, known = corpus(turns)
    embedder = LexicalEmbedder(384)
    async with MemoryService(store, embedder, clock=lambda: BEGAN + timedelta(days=30)) as memory:
        for first in range(0, len(said), 40):
            await store.write(ANA, [Put(record=record_of_turn(turn)) for turn in said[first : first + 40]])
        for place in (ANA, ANA.everyone):
            mine = known if place == ANA else known[::3]
            await store.write(place, [Put(record=record_of_memory(one)) for one in mine])
        await store.write(ANA, [Drop(kind="turn", id=f"t{n}") for n in range(20, 50, 7)])
        await store.erase(ANA, [Drop(kind="turn", id=f"t{n}") for n in range(3, 20, 5)])
        memory._parts.background.poke()
        assert await memory.settle(120)
        yield memory


async def answers(memory: MemoryService) -> dict[str, Any]:
    ana = memory.user("ana", "acme")
    found = {
        f"{question} {past}": told(await ana.query(question, limit=30, include_past=past))
        for question in QUESTIONS
        for past in (False, True)
    }
    found["brief"] = [(await ana.brief(question)).text for question in QUESTIONS]
    return found


_wanted: dict[int, dict[str, Any]] = {}


async def wanted_of(turns: int) -> dict[str, Any]:
    """What the store in memory answers: it is asked once for all the others."""
    if turns not in _wanted:
        async with filled(InMemoryStore(), turns) as reference:
            _wanted[turns] = await answers(reference)
    return _wanted[turns]


@pytest.mark.parametrize("name", STORES)
async def test_the_same_corpus_gives_the_same_hits_in_the_same_order(tmp_path: Path, name: str) -> None:
    turns = 60 if name in SMALLER else 240
    url = STORES[name](tmp_path)
    wanted = await wanted_of(turns)
    assert sum(len(hits) for hits in wanted.values()) > 200
    assert wanted["zeppelin False"] == []
    async with filled(store_from(url), turns) as memory:
        assert await answers(memory) == wanted
    async with MemoryService(
        store_from(url), LexicalEmbedder(384), clock=lambda: BEGAN + timedelta(days=30)
    ) as again:
        assert await answers(again) == wanted, "a process that reads what another wrote"


async def test_control_a_row_in_another_place_changes_the_answers() -> None:
    async with filled(InMemoryStore(), 60) as reference:
        wanted = await answers(reference)
    moved = InMemoryStore()
    async with filled(moved, 60) as memory:
        (first,) = await moved.read(ANA, "turn", ["t0"])
        await moved.write(ANA, [Drop(kind="turn", id="t0"), Put(record=first)])
        memory._parts.background.poke()
        assert await memory.settle(60)
        assert await answers(memory) != wanted


@pytest.fixture
def samples() -> list[tuple[Scope, list[Turn], list[str]]]:
    """Of each sample in the file: whose it is, its turns, its questions."""
    path = os.environ.get("ECHOIC_LOCOMO")
    if not path:
        pytest.skip("ECHOIC_LOCOMO names no file: the data (snap-research/LoCoMo) is no part of this project")
    turns: dict[str, list[Turn]] = {}
    for item in read_locomo(ImportSource(name=path, path=Path(path))):
        if isinstance(item, ImportedTurn) and item.user is not None:
            turns.setdefault(item.user, []).append(item.turn)
    asked = {
        sample["sample_id"]: [one["question"] for one in sample["qa"]]
        for sample in json.loads(Path(path).read_text(encoding="utf-8"))
    }
    return [(Scope("locomo", user), said, asked[user]) for user, said in turns.items()]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", STORES)
async def test_locomos_questions_are_answered_alike(
    tmp_path: Path, name: str, samples: list[tuple[Scope, list[Turn], list[str]]]
) -> None:
    samples = samples[:1] if name in SMALLER else samples
    stores = [InMemoryStore(), store_from(STORES[name](tmp_path))]
    found: list[list[Any]] = []
    for store in stores:
        async with MemoryService(store, LexicalEmbedder(384)) as memory:
            for scope, turns, _ in samples:
                for first in range(0, len(turns), 100):
                    batch = turns[first : first + 100]
                    await store.write(scope, [Put(record=record_of_turn(turn)) for turn in batch])
            memory._parts.background.poke()
            assert await memory.settle(1800)
            users = [(memory.user(str(scope.user), scope.deployment), asked) for scope, _, asked in samples]
            found.append([told(await user.query(text, limit=20)) for user, asked in users for text in asked])
    for ours, theirs in zip(*found, strict=True):
        assert theirs == ours
    assert any(found[0])
