"""What verbs hand out can be dumped: by pydantic, and so by FastAPI. And it says whether all was looked at."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

import echoic
from echoic import Hit, Recall, Turn
from echoic.embedding import LexicalEmbedder
from echoic.errors import EmbedderUnavailable
from echoic.memory.checkpoints import PendingTool
from echoic.memory.service import MemoryService
from echoic.prompt.answer import Packed
from echoic.stores.in_memory import InMemoryStore


async def everything(memory):
    """One of everything that a verb hands out."""
    ana = memory.user("ana")
    await ana.set("pet", "a goat")
    await ana.set_directives(pacing="slow", small_talk="none before coffee")
    call = await ana.conversation("c", agent="films")
    await call.append(Turn(speaker="user", text="My goat is called Bert"))
    await call.store("goats", "About goats.")
    films = memory.experience("films")
    lesson = await films.add("strategy", "Ask for the genre first.")
    await films.withdraw(lesson.id)
    recall = await ana.recall("goat")
    assert len(recall.hits) > 1
    return [
        recall,
        *recall.hits,
        await ana.brief("goat"),
        await ana.block(agent="films", moment="goat"),
        await ana.get("pet"),
        *await call.turns(),
        await ana.profile(),
        await ana.directives(),
        await films.get(),
        *await memory.proposals().decisions(),
        await ana.recall_conversation("goats"),
        await ana.task("c"),
        await ana.jobs(),
        await memory.distil(),
        ana.scope,
        PendingTool(call="1", name="search", arguments={"genre": ["action"]}),
        await ana.forget(),
    ]


async def test_whatever_a_verb_hands_out_is_dumped_by_pydantic_and_read_back(memory):
    for value in await everything(memory):
        adapter = TypeAdapter(type(value))
        dumped = adapter.dump_json(value)
        assert adapter.dump_json(adapter.validate_json(dumped)) == dumped, type(value).__name__
        adapter.dump_python(value)
        adapter.json_schema(mode="serialization")


async def test_a_dumped_hit_says_where_each_channel_put_it(memory):
    await memory.user("ana").set("pet", "a goat")
    (hit,) = await memory.user("ana").query("goat")
    told = json.loads(TypeAdapter(Hit).dump_json(hit))
    assert told["ranks"] == {channel: asdict(rank) for channel, rank in hit.ranks.items()}
    assert told["ranks"]
    assert told["memory"]["text"] == "a goat"


def test_a_recall_is_what_a_fastapi_route_may_answer_with(tmp_path):
    app = FastAPI()

    @app.get("/recall")
    async def recall() -> Recall:
        async with echoic.open(f"sqlite:///{tmp_path}/a.db", embedder="lexical") as memory:
            await memory.user("ana").set("pet", "a goat")
            return await memory.user("ana").recall("goat")

    answer = TestClient(app).get("/recall").json()
    assert (answer["outcome"], answer["hits"][0]["text"]) == ("complete", "a goat")
    assert TestClient(app).get("/openapi.json").status_code == 200


class Stuck(LexicalEmbedder):
    """Embeds what is kept and never answers a question."""

    semantic = True

    async def embed(self, texts, kind):
        if kind == "query":
            await asyncio.Event().wait()
        return await super().embed(texts, kind)


class Broken(LexicalEmbedder):
    """Embeds what is kept and cannot be reached for a question."""

    async def embed(self, texts, kind):
        if kind == "query":
            raise EmbedderUnavailable("away")
        return await super().embed(texts, kind)


@pytest.mark.parametrize("embedder", [LexicalEmbedder, Stuck, Broken])
async def test_what_is_packed_says_whether_all_could_be_looked_through(embedder):
    async with MemoryService(InMemoryStore(), embedder()) as memory:
        ana = memory.user("ana")
        await ana.set("pet", "a goat")
        deadline_ms = 20 if embedder is Stuck else 60_000  # a busy machine may be late by more
        recall = await ana.recall("goat", deadline_ms=deadline_ms)
        packed = await ana.pack(recall)
        block = await ana.block(agent="a", moment="goat", deadline_ms=deadline_ms)
        expected = {LexicalEmbedder: "complete", Stuck: "deadline", Broken: "unavailable"}[embedder]
        assert (recall.outcome, packed.outcome, block.outcome) == (expected, expected, expected)
        assert isinstance(packed, Packed)
        assert (await ana.block(agent="a")).outcome == "complete"
