"""Alive, ready, and what is answered when memory cannot be reached: never that nothing is known."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from echoic.errors import EmbedderUnavailable, StoreCorrupt, StoreUnavailable
from echoic.memory.records import CONVERSATION, index
from echoic.memory.service import MemoryService
from echoic.server.live import HealthWatch
from echoic.stores.in_memory import InMemoryStore
from echoic.types import EmbeddingSpec, Turn

from .conftest import OPERATOR_KEY, serving, settings_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASKS = [
    ("POST", "/api/memory", {"operation": "get", "key": "home"}),
    ("POST", "/api/memory", {"operation": "set", "key": "home", "value": "Oslo"}),
    ("POST", "/api/memory", {"operation": "delete", "key": "home"}),
    ("POST", "/api/memory", {"operation": "query", "query": "home"}),
    ("POST", "/api/memory", {"operation": "list"}),
    ("GET", "/api/memories", None),
    ("GET", "/api/memories/home/history", None),
    ("POST", "/api/conversations", {}),
    ("POST", "/api/chat", {"text": "I live in Oslo"}),
    ("POST", "/api/forget", {"everything": True}),
    ("GET", "/api/export", None),
]


class FaultyEmbedder:
    """An embedder whose model comes and goes."""

    spec = EmbeddingSpec("faulty", 4)
    semantic = True

    def __init__(self):
        self.down = False

    async def open(self):
        pass

    async def aclose(self):
        pass

    async def embed(self, texts, kind):
        if self.down:
            raise EmbedderUnavailable("no route to the model")
        return np.full((len(texts), 4), 0.5, np.float32)


async def test_it_is_alive_and_ready(server):
    assert (await server.client.get("/healthz")).json() == {"status": "ok"}
    ready = await server.client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "store": "ok", "embedder": "ok"})


async def test_a_store_that_cannot_be_used_is_not_ready_and_every_route_says_so():
    """The store is closed under the server, as when its disk went away."""
    store = InMemoryStore()
    async with serving(MemoryService(store, FaultyEmbedder()), settings_of()) as server:
        ana = await server.identity()
        await server.memory_of(ana, "set", key="home", value="Oslo")
        await store.aclose()
        ready = await server.client.get("/readyz")
        assert (ready.status_code, ready.json()["store"]) == (503, "unavailable")
        assert (await server.client.get("/healthz")).status_code == 200
        for method, path, body in ASKS:
            named = {"deploymentId": "default", "userCookie": ana.token, **body} if body is not None else None
            answer = await server.client.request(method, path, json=named, headers=ana.headers)
            assert answer.status_code == 503, (path, answer.text)
            assert answer.json()["code"] == "store_unavailable"
            assert int(answer.headers["retry-after"]) > 0
        await store.open(FaultyEmbedder.spec, index)
        assert (await server.memory_of(ana, "get", key="home")).json()["result"]["text"] == "Oslo"
        assert (await server.client.get("/readyz")).status_code == 200


class HalfDead(InMemoryStore):
    """A store that still answers about itself when nothing can be read from it."""

    dead = False

    async def scan(self, scope, kind, **options):
        if self.dead:
            raise StoreUnavailable("no route to the disk")
        return await super().scan(scope, kind, **options)


async def test_a_store_that_says_it_is_well_and_cannot_be_read_is_not_ready():
    store = HalfDead()
    async with serving(MemoryService(store, FaultyEmbedder()), settings_of()) as server:
        assert (await server.client.get("/readyz")).status_code == 200
        store.dead = True
        assert (await server.client.get("/readyz")).json()["store"] == "unavailable"


async def test_while_the_embedder_is_away_it_is_not_ready_but_memory_works_by_words():
    embedder = FaultyEmbedder()
    async with serving(MemoryService(InMemoryStore(), embedder), settings_of()) as server:
        ana = await server.identity()
        embedder.down = True
        ready = await server.client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {"ready": False, "store": "ok", "embedder": "unavailable"}
        assert (await server.memory_of(ana, "set", key="home", value="Oslo")).status_code == 200
        said = await server.say(ana, "Do you know of Oslo?")
        assert said["recall"]["outcome"] == "unavailable"
        assert said["recall"]["cut"] == ["vector"]
        assert said["recall"]["hits"][0]["text"] == "Oslo"
        embedder.down = False
        assert (await server.client.get("/readyz")).status_code == 200


async def test_many_who_ask_whether_it_is_ready_have_it_tried_once(monkeypatch):
    """Anybody may, and a hosted embedder costs."""

    class Slow(FaultyEmbedder):
        asked = 0

        async def embed(self, texts, kind):
            self.asked += 1
            await come.wait()
            return await super().embed(texts, kind)

    ready, asking, come = HealthWatch.ready, [], asyncio.Event()

    async def counted(watch):
        asking.append(watch)
        if len(asking) == 30:
            come.set()
        return await ready(watch)

    monkeypatch.setattr(HealthWatch, "ready", counted)
    embedder = Slow()
    async with serving(MemoryService(InMemoryStore(), embedder), settings_of()) as server:
        answers = await asyncio.gather(*(server.client.get("/readyz") for _ in range(30)))
        assert {answer.status_code for answer in answers} == {200}
        assert embedder.asked <= 3
        embedder.down = True
        assert (await server.client.get("/readyz")).status_code == 503, "the next is tried anew"


async def test_what_cannot_be_learned_from_is_counted_and_named_by_its_error_alone():
    memory = MemoryService(InMemoryStore(), FaultyEmbedder())
    learns, broken = memory._parts.distiller.apply_rules, True

    async def learn(scope, conversation):
        if broken:
            raise StoreCorrupt("somebody wrote zanzibar into a file")
        return await learns(scope, conversation)

    memory._parts.distiller.apply_rules = learn
    async with serving(memory, settings_of()) as server:

        async def health(deployment="default"):
            operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
            path = f"/api/health?deploymentId={deployment}"
            return (await server.client.get(path, headers=operator)).json()

        assert (await health())["learningFailures"] == {}
        ana = await memory.user("ana").conversation("call")
        await ana.append(Turn(speaker="user", text="I live in zanzibar."))
        assert await memory.settle(30) is False
        told = await health()
        assert (told["learningFailures"], told["embeddingFailure"]) == ({"StoreCorrupt": 1}, None)
        assert "1 conversations" in next(a["what"] for a in told["alarms"] if "StoreCorrupt" in a["what"])
        assert "zanzibar" not in str(told)
        assert (await health("acme"))["learningFailures"] == {}
        broken = False
        assert await memory.settle(30)
        assert (await health())["learningFailures"] == {}


class OneDamaged(InMemoryStore):
    """A store in which the conversations of one user cannot be read."""

    async def scan(self, scope, kind, **options):
        if scope.user == "bob" and kind == CONVERSATION:
            raise StoreCorrupt("somebody wrote zanzibar into a file")
        return await super().scan(scope, kind, **options)


async def test_one_user_who_cannot_be_read_does_not_make_the_store_unavailable():
    store = OneDamaged()
    async with serving(MemoryService(store, FaultyEmbedder()), settings_of()) as server:
        for name in ("ana", "bob", "cleo"):
            call = await server.memory.user(name).conversation("call")
            await call.append(Turn(speaker="user", text="I live in zanzibar."))
        operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
        told = (await server.client.get("/api/health", headers=operator)).json()
        alarms = {alarm["what"]: alarm["severity"] for alarm in told["alarms"]}
        assert told["store"] == "ok"
        assert alarms["1 users cannot be read; everybody else can"] == "critical"
        assert "zanzibar" not in str(told)
        await store.aclose()
        assert (await server.client.get("/api/health", headers=operator)).json()["store"] == "unavailable"
        await store.open(FaultyEmbedder.spec, index)


async def test_about_says_which_embedder_is_used_and_whether_it_knows_meaning(server):
    about = (await server.client.get("/api/about")).json()
    assert about["semantic"] is False
    assert about["embedder"].startswith("lexical")
    assert about["deploymentId"] == "default"
