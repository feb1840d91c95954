"""A store of one's own by five verbs: what `echoic.open` takes, and that it is a full store then."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import echoic
from echoic import InvalidInput, Scope, StoreUnavailable
from echoic.checks import has_members
from echoic.stores.documents import Documents, DocumentStore
from echoic.stores.in_memory import InMemoryStore
from echoic.testing import StoreConformance, random_histories
from echoic.testing.store_histories import ANA, attach, memory, note, opened, put
from lineage import redis_server

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "redis_store.py"
needs_redis = pytest.mark.skipif(redis_server.BINARY is None, reason="scripts/system-packages brings Redis")


class Texts:
    """Documents in this process, asked as far away as a network is: every verb lets others go first."""

    def __init__(self):
        self.kept = {}
        self.reads = self.writes = 0
        self.away = False

    async def get(self, scope, name):
        await self._turn()
        self.reads += 1
        return self.kept.get((scope, name))

    async def put(self, scope, name, text, was):
        await self._turn()
        self.writes += 1
        assert text.isascii()
        assert isinstance(json.loads(text), dict)
        if self.kept.get((scope, name)) != was:
            return False
        self.kept[scope, name] = text
        return True

    async def delete(self, scope, name, was):
        await self._turn()
        if self.kept.get((scope, name)) != was:
            return False
        del self.kept[scope, name]
        return True

    async def list(self, scope):
        await self._turn()
        return [name for whose, name in self.kept if whose == scope]

    async def scopes(self):
        await self._turn()
        return list({whose for whose, _ in self.kept if whose is not None})

    async def _turn(self):
        await asyncio.sleep(0)
        if self.away:
            raise ConnectionResetError("not today")


class TestDocuments(StoreConformance):
    @pytest.fixture
    def store(self):
        return DocumentStore(Texts())

    def reopen(self, store):
        return DocumentStore(store._documents)


class Resent(Texts):
    """A client whose answers are all lost: it sends everything again, and tells the second answer."""

    async def put(self, scope, name, text, was):
        await super().put(scope, name, text, was)
        await self._between(scope, name)
        return await super().put(scope, name, text, was)

    async def delete(self, scope, name, was):
        await super().delete(scope, name, was)
        return await super().delete(scope, name, was)

    async def _between(self, scope, name):
        pass


@pytest.mark.repeated
class TestResentDocuments(TestDocuments):
    @pytest.fixture
    def store(self):
        return DocumentStore(Resent())


@pytest.mark.repeated
@needs_redis
class TestRedisExample(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls):
        served = redis_server.RedisServer()
        yield served
        served.close()

    @pytest.fixture
    def store(self, server, request):
        self.again_of = (server, f"{request.node.name}:")
        return DocumentStore(example().RedisDocuments(redis_server.Client(server), self.again_of[1]))

    def reopen(self, store):
        server, prefix = self.again_of
        return DocumentStore(example().RedisDocuments(redis_server.Client(server), prefix))


_folders: dict[Path, Texts] = {}
TestDocumentHistories = random_histories(lambda folder: DocumentStore(_folders.setdefault(folder, Texts())))


def example():
    spec = importlib.util.spec_from_file_location("redis_store", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def a_life(store):
    """What a user's memory does, from the first word to the last."""
    async with echoic.open(store, embedder="lexical") as memory:
        ana = memory.user("ana", deployment="acme")
        await ana.set("user_name", "Ana")
        await ana.set("user_name", "Anna")
        call = await ana.conversation("call-1", agent="concierge")
        await call.append(echoic.Turn(speaker="user", text="I live in Lisbon", id="1"))
        await call.complete()
        await memory.distil()
        assert (await ana.get("user_name")).text == "Anna"
        assert "Lisbon" in [hit.text for hit in await ana.query("where do I live?")]
        assert [m.text for m in await ana.history("user_name")] == ["Ana", "Anna"]
        await memory.user("bob", deployment="acme").set("user_name", "Bob")
    async with echoic.open(store, embedder="lexical") as memory:
        ana = memory.user("ana", deployment="acme")
        assert (await ana.get("home")).text == "Lisbon"
        assert (await ana.forget()).verified
        assert await ana.facts() == []
        assert [fact.text for fact in await memory.user("bob", deployment="acme").facts()] == ["Bob"]


async def test_open_takes_five_verbs():
    texts = Texts()
    assert isinstance(texts, Documents)
    await a_life(texts)
    assert not [key for key in texts.kept if "ana" in str(key)], "no name is left of who was forgotten"
    assert "Lisbon" not in str(texts.kept)


async def test_open_takes_a_store():
    await a_life(InMemoryStore())


@needs_redis
async def test_the_redis_example_outlives_a_killed_server():
    server = redis_server.RedisServer()
    try:
        store = example().RedisDocuments(redis_server.Client(server))
        await a_life(store)
        async with echoic.open(store, embedder="lexical") as memory:
            await memory.user("ana").set("home", "Porto")
            server.kill()
            with pytest.raises(StoreUnavailable):
                await memory.user("ana").get("home")
            server.start()
            assert (await memory.user("ana").get("home")).text == "Porto"
    finally:
        server.close()


def test_what_wraps_a_store_has_its_verbs_and_what_answers_every_name_has_none():
    class Verbs:
        """A protocol as Python has them from 3.12 on, where isinstance asks no `__getattr__`."""

        __protocol_attrs__ = frozenset({"get", "put"})

    class Wraps:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

    assert has_members(Wraps(Texts()), Verbs)
    assert not has_members(Wraps(object()), Verbs)
    assert not has_members(MagicMock(), Verbs)


@pytest.mark.parametrize("given", [None, 7, object(), Texts, {"get": 1}])
def test_what_is_no_store_is_refused_with_the_way_out(given):
    with pytest.raises(InvalidInput, match="is not a store: give a URL"):
        echoic.open(given, embedder="lexical")


async def test_documents_that_are_away_are_not_nothing_known():
    texts = Texts()
    async with echoic.open(texts, embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.set("home", "Porto")
        texts.away = True
        with pytest.raises(StoreUnavailable):
            await ana.get("home")
        with pytest.raises(StoreUnavailable):
            await ana.set("home", "Lisbon")
        texts.away = False
        assert (await ana.get("home")).text == "Porto"


async def test_a_write_costs_the_part_it_changes_and_not_the_whole_user():
    texts = Texts()
    async with echoic.open(texts, embedder="lexical") as memory:
        ana = memory.user("ana")
        for n in range(200):
            await ana.set(f"key_{n}", f"value {n}")
        await memory.settle(60)
        before = dict(texts.kept)
        await ana.set("key_7", "another value")
        await memory.settle(60)
        changed = {name for (scope, name), text in texts.kept.items() if before.get((scope, name)) != text}
        assert len(changed) <= 4, "the list, the part of the old version, and the one of the new"


async def test_a_process_that_dies_while_it_writes_leaves_all_or_nothing():
    """However many of its documents were put, and whatever stands then, the next erasure takes along."""
    for dies_after in range(12):
        texts = Texts()
        async with echoic.open(texts, embedder="lexical") as memory:
            await memory.user("ana").set("home", "Porto")
            await memory.settle(60)
        put, left = texts.put, [dies_after]

        async def dying(*args, put=put, left=left):
            if not left[0]:
                raise ConnectionResetError
            left[0] -= 1
            return await put(*args)

        texts.put = dying
        async with echoic.open(texts, embedder="lexical") as memory:
            try:
                await memory.user("ana").set("home", "Lisbon")
                kept = {"Lisbon"}
            except StoreUnavailable:
                kept = {"Porto", "Lisbon"}
        texts.put = put
        async with echoic.open(texts, embedder="lexical") as memory:
            ana = memory.user("ana")
            assert (await ana.get("home")).text in kept
            assert (await ana.forget()).verified
        assert not [key for key in texts.kept if key[0] == Scope("default", "ana")]


async def test_a_write_is_not_undone_where_it_is_sent_again_after_another_process_wrote():
    texts = Resent()
    async with opened(DocumentStore(texts)) as store, opened(DocumentStore(texts)) as other:
        await store.write(ANA, [put(memory("a", "lives in Porto"))])

        async def between(scope, name):
            if scope == ANA and name == "head":
                del texts._between
                await other.write(scope, [put(note("n"))])

        texts._between = between
        await store.write(ANA, [put(memory("a", "lives in Lisbon"), expect=1)])
        for reader in (store, other):
            assert [r.data["text"] for r in await reader.scan(ANA, "memory")] == ["lives in Lisbon"]
            assert [record.id for record in await reader.scan(ANA, "note")] == ["n"]


async def test_a_scope_that_lost_documents_can_be_erased():
    texts, bob = Texts(), Scope("default", "bob")
    async with opened(DocumentStore(texts)) as store:
        for n in range(40):
            await store.write(ANA, [put(memory(f"m{n}"))])
        await store.write(bob, [put(memory("m"))])
        loaded = await store.load(ANA)
        head = json.loads(texts.kept[ANA, "head"])
        assert len(head["parts"]) == 2
        head["parts"]["r0"] = "r0-1-gone"
        texts.kept[ANA, "head"] = json.dumps(head)
        with pytest.raises(StoreUnavailable, match="are missing"):
            await store.scan(ANA, "memory")
        assert [waiting.scope for waiting in await store.waiting(10)] == [bob], "nobody else waits longer"
        with pytest.raises(StoreUnavailable, match="are missing"):
            await store.check()
        erased = await store.erase(ANA)
        assert (erased.records, erased.verified) == ({"memory": 8}, True)
        assert not [key for key in texts.kept if "ana" in str(key)]
        assert not loaded.rows["kind"].any(), "what was loaded is gone with it"
        assert await store.scan(ANA, "memory") == []
        assert await store.scopes() == [bob]
        await store.write(ANA, [put(note("n"))])
        assert [record.version for record in await store.scan(ANA, "note")] == [1]


async def test_a_scope_in_use_has_one_lock_although_it_is_let_go():
    texts, refused = Texts(), []
    put_text = texts.put

    async def counted(*asked):
        done = await put_text(*asked)
        refused.extend([] if done or asked[1] != "head" else [asked])
        return done

    texts.put = counted
    async with opened(DocumentStore(texts, cache_bytes=1)) as store:

        async def after_strangers(n):
            for other in range(n):
                await store.read(Scope("acme", f"user{other}"), "note", ["n"])
            await store.write(ANA, [put(note(f"n{n}"))])

        await asyncio.gather(*map(after_strangers, range(20)))
        assert len(await store.scan(ANA, "note")) == 20
        assert refused == []
        assert len(store._cache) <= 3
        assert store._cache.nbytes == sum(size for _, size in store._cache._held.values())


async def test_what_waits_is_found_without_loading_all_who_wait():
    texts = Texts()
    scopes = [Scope("acme", f"user{n}") for n in range(40)]
    async with opened(DocumentStore(texts)) as store:
        for scope in scopes:
            await store.write(scope, [put(memory("a"))])
        before = texts.reads
        assert [waiting.scope for waiting in await store.waiting(4)] == scopes[:4]
        assert texts.reads - before <= 5
    async with opened(DocumentStore(texts)) as store:
        assert [waiting.scope for waiting in await store.waiting(4)] == scopes[:4]
        before = texts.reads
        for n in range(0, 40, 4):
            found = await store.waiting(4)
            assert [waiting.scope for waiting in found] == scopes[n : n + 4]
            for waiting in found:
                await store.write(waiting.scope, [attach(waiting.record)])
        assert texts.reads - before < 10 * 40
        assert await store.waiting(4) == []


def test_the_page_shows_the_example_and_it_has_forty_lines():
    page = (ROOT / "docs" / "own_store.md").read_text()
    shown = re.search(r"```python\n(import json.*?)```", page, re.DOTALL)[1]
    program = EXAMPLE.read_text()
    assert shown.strip() == program[program.index("import json") :].strip()
    assert len([line for line in shown.splitlines() if line.strip()]) <= 40
