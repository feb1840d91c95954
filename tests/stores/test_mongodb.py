from __future__ import annotations

import asyncio
import errno
import logging
import re
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import dns.asyncresolver
import dns.resolver
import numpy as np
import pytest
from pymongo import AsyncMongoClient

import echoic
import echoic.embedding
import echoic.memory.service  # both now: importing reads files, and is not for the event loop
from echoic.errors import EmbeddingMismatch, InvalidInput, StoreCorrupt, StoreTooNew, StoreUnavailable
from echoic.memory.records import index as real_index
from echoic.memory.records import memory_of
from echoic.partition import SEGMENT_ROWS
from echoic.stores import store_from
from echoic.stores.base import Drop, Narrows, Store
from echoic.stores.mongodb import MongoDBStore, changes
from echoic.stores.mongodb.schema import packed, unpacked
from echoic.testing.store_histories import (
    ANA,
    OTHER_SPEC,
    SPEC,
    attach,
    content,
    everything,
    expected,
    index,
    loaded,
    memory,
    note,
    opened,
    put,
    told,
    unit,
)
from echoic.types import EmbeddingSpec, Scope
from echoic_loopback.mongodb import MongoServer
from stores import mongodb_server
from stores.test_encrypted import answers_from_ciphertext

pytestmark = pytest.mark.usefixtures("closed_while_connecting")

ARTICLE = Scope("voice-demo", "5f0c-cookie")


@asynccontextmanager
async def database(url: str) -> AsyncIterator[Any]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url, tz_aware=True)
    try:
        yield client.get_default_database()
    finally:
        await client.close()


@pytest.fixture
def url() -> str:
    return mongodb_server.url()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


class TestServers:
    async def test_a_standalone_server_is_refused_and_told_the_way_out(self) -> None:
        mongodb_server.note("the wire stand-in, standalone")
        with MongoServer(replica_set=None) as server:
            with pytest.raises(StoreUnavailable, match=r"standalone.*--replSet rs0.*rs\.initiate\(\)"):
                await store_from(server.url("echoic")).open(SPEC, index)
            assert not any(server.seen[name] for name in ("insert", "update", "createIndexes"))

    async def test_a_server_that_is_too_old_is_refused(self) -> None:
        mongodb_server.note("the wire stand-in, 5.0")
        with (
            MongoServer(version=(5, 0, 9)) as server,
            pytest.raises(StoreUnavailable, match=r"MongoDB 5\.0\.9 .* too old: 6\.0"),
        ):
            await store_from(server.url("echoic")).open(SPEC, index)

    async def test_a_server_without_search_loads_large_scopes(self) -> None:
        mongodb_server.note("the wire stand-in, without search")
        with MongoServer(search=False) as server:
            async with opened(store_from(server.url("echoic", "narrow_above=1"))) as store:
                assert isinstance(store, MongoDBStore)
                await store.write(ANA, [put(memory(f"m{n}", f"likes {n}")) for n in range(70)])
                assert not await store.until_searchable(20)
                assert store.narrow_above == sys.maxsize
                partition = await store.narrow(ANA, "likes", None, limit=3, include_past=False)
                assert partition.origin is None
                assert content(partition) == expected(await everything(store, ANA), {})
                assert (await store.check())["search"] == "none on this server: large scopes are loaded"

    async def test_nobody_there_is_could_not_look_and_told_where_it_was_and_what_failed(self) -> None:
        with MongoServer() as server, MongoServer() as other:
            one, two = (f"127.0.0.1:{made.port}" for made in (server, other))
        options = "serverSelectionTimeoutMS=500&replicaSet=rs0"
        with pytest.raises(StoreUnavailable) as error:
            await store_from(f"mongodb://root:hunter2@{one},{two}/echoic?{options}").open(SPEC, index)
        found = re.fullmatch(
            r"MongoDB could not be reached: (\S+) \((.+)\), (\S+) \((.+)\)\. "
            r"Is it running, and is the URL right\?",
            str(error.value),
        )
        assert found is not None, error.value
        assert {found[1], found[3]} == {one, two}
        assert all(f"[Errno {errno.ECONNREFUSED}]" in why for why in (found[2], found[4]))
        assert not re.search("root|hunter2", f"{error.value!r} {error.value.__cause__!r}")

    async def test_a_server_of_another_replica_set_is_told_from_none(self) -> None:
        mongodb_server.note("the wire stand-in, of another replica set")
        with MongoServer(replica_set="theirs") as server:
            url = f"mongodb://127.0.0.1:{server.port}/echoic?replicaSet=ours&serverSelectionTimeoutMS=500"
            with pytest.raises(StoreUnavailable, match=rf"{server.port} \(not of the replica set"):
                await store_from(url).open(SPEC, index)

    async def test_a_name_that_lists_no_servers_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def nothing(*_args: object, **_options: object) -> None:
            raise dns.resolver.NXDOMAIN

        monkeypatch.setattr(dns.asyncresolver, "resolve", nothing)
        store = store_from("mongodb+srv://root:hunter2@cluster.example.net/echoic")
        with pytest.raises(StoreUnavailable, match=r"reached: cluster\.example\.net \(NXDOMAIN") as error:
            await store.open(SPEC, index)
        assert not re.search("root|hunter2", str(error.value))


class TestUrls:
    def test_a_url_names_the_store_and_its_options(self) -> None:
        store = store_from("mongodb://host/echoic?replicaSet=rs0&cache_mb=2&narrow_above=77&timeout_ms=1500")
        assert isinstance(store, MongoDBStore)
        assert isinstance(store, Store)
        assert isinstance(store, Narrows)
        assert (store._cache_bytes, store._narrow_above, store._timeout_s) == (2 << 20, 77, 1.5)
        assert store._url == "mongodb://host/echoic?replicaSet=rs0"

    @pytest.mark.parametrize(
        ("url", "told"),
        [
            ("mongodb://u:hunter2@host/db?cache_mb=0", "cache_mb"),
            ("mongodb://u:hunter2@host/db?cache_mb=1&cache_mb=2", "twice"),
            ("mongodb://u:hunter2@host/db?narrow_above=many", "narrow_above"),
            ("mongodb://u:hunter2@host/db?timeout_ms=1", "timeout_ms"),
            ("mongodb://u:hunter2@host/db?nonsense=1", "cannot be read"),
            ("mongodb://u:hun@ter2@host/db", "cannot be read"),
            ("mongodb://hunter2:12/34@host", "cannot be read.*%2F"),
            ("mongodb://u:hunter2@host:port/db", "cannot be read"),
            ("mongodb://", "cannot be read"),
        ],
    )
    def test_what_cannot_be_read_is_refused_without_repeating_the_password(self, url: str, told: str) -> None:
        with pytest.raises(InvalidInput, match=told) as error:
            store_from(url)
        shown: BaseException | None = error.value
        while shown is not None:
            assert "hunter2" not in str(shown)
            shown = shown.__cause__

    def test_without_the_driver_the_extra_is_named(self) -> None:
        code = (
            "import sys; sys.modules['pymongo'] = None\n"
            "from echoic.errors import InvalidInput; from echoic.stores import store_from\n"
            "try: store_from('mongodb://host/db')\n"
            "except InvalidInput as error: print(error)"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "echoic[mongodb]" in found.stdout

    async def test_a_password_is_in_no_error_and_no_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        with MongoServer() as server:
            address = server.url("echoic", "serverSelectionTimeoutMS=100").removeprefix("mongodb://")
        store = store_from(f"mongodb://user:hunter2@{address}")
        with pytest.raises(StoreUnavailable) as error:
            await store.open(SPEC, index)
        assert "hunter2" not in f"{error.value!r} {store!r} {caplog.text}"


class TestWhatIsThere:
    async def test_a_memory_lies_in_the_shape_that_others_read(self, url: str) -> None:
        async with opened(store_from(url)) as store, database(url) as db:
            await store.write(ANA, [put(memory("a", "likes tea", key="drink", past=False))])
            await store.write(Scope("acme", None), [put(memory("b", "opens at nine"))])
            await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
            mine = await db.memories.find_one({"deploymentId": "acme", "key": "drink", "userCookie": "ana"})
            assert (mine["value"], mine["isGlobal"], mine["kind"]) == ("likes tea", False, "memory")
            assert (mine["createdAt"].tzinfo, mine["updatedAt"].tzinfo) == (mine["createdAt"].tzinfo,) * 2
            assert mine["embedding"].as_vector().data == pytest.approx(unit(0).tolist())
            everyones = await db.memories.find_one({"deploymentId": "acme", "isGlobal": True})
            assert (everyones["userCookie"], everyones["value"]) == ("global", "opens at nine")

    async def test_a_user_called_global_is_not_everyone(self, url: str) -> None:
        async with opened(store_from(url)) as store:
            await store.write(Scope("acme", "global"), [put(memory("a", "a secret"))])
            await store.write(Scope("acme", None), [put(memory("b", "for all"))])
            assert [r.id for r in await store.scan(Scope("acme", None), "memory")] == ["b"]
            assert [r.id for r in await store.scan(Scope("acme", "global"), "memory")] == ["a"]
            assert len((await loaded(store, Scope("acme", None))).rows) == 1
            await store.erase(Scope("acme", "global"))
            assert await store.scopes() == [Scope("acme", None)]

    @pytest.mark.parametrize(
        "data",
        [
            {"$ref": "x", "$id": 1, "text": "a"},
            {"a.b": {"c": [1, {"$set": 2}]}},
            {"": 1, "text": ""},
            {"n": 1 << 70, "m": -(1 << 63)},
            {"text": 5, "value": "v", "data": {"data": None}, "kind": "memory"},
            {"deep": [[[[[[[[[[1]]]]]]]]]]},
            {"half": "\ud83e", "text": "whole"},
            {"text": "half \ud83e"},
        ],
    )
    async def test_data_that_a_document_cannot_hold_comes_back_exactly(self, url: str, data: Any) -> None:
        async with opened(store_from(url)) as store:
            record = memory("a")
            await store.write(ANA, [put(type(record)(kind="note", id="a", data=data))])
            assert (await store.read(ANA, "note", ["a"]))[0].data == data

    async def test_numbers_come_back_as_pythons_own(self, url: str) -> None:
        async with opened(store_from(url)) as store:
            await store.write(ANA, [put(note("n", big=1 << 40, list=[{"x": 1 << 50}]))])
            found = (await store.read(ANA, "note", ["n"]))[0].data
            assert type(found["big"]) is int
            assert type(found["list"][0]["x"]) is int

    @pytest.mark.parametrize("value", [None, 5, [], ["a"], b"\x27\x00abc", packed(unit(1))[:-1]])
    def test_what_is_no_vector_is_none(self, value: Any) -> None:
        assert unpacked(value) is None

    def test_a_vector_comes_back_from_binary_and_from_an_array(self) -> None:
        assert unpacked(packed(unit(3))).tobytes() == unit(3).tobytes()
        assert np.allclose(unpacked([0.5, 1, -2.0]), [0.5, 1, -2])

    async def test_a_database_of_a_newer_version_is_left_untouched(self, url: str) -> None:
        async with opened(store_from(url)):
            pass
        async with database(url) as db:
            await db.echoic_meta.update_one({"_id": "store"}, {"$set": {"schema": 2}})
            before = await db.echoic_meta.find_one({"_id": "store"})
            with pytest.raises(StoreTooNew, match="schema 2"):
                await store_from(url).open(SPEC, index)
            assert await db.echoic_meta.find_one({"_id": "store"}) == before

    async def test_facts_that_cannot_be_read_are_left_untouched(self, url: str) -> None:
        async with database(url) as db:
            await db.echoic_meta.insert_one({"_id": "store", "schema": "one"})
            with pytest.raises(StoreCorrupt):
                await store_from(url).open(SPEC, index)
            assert [d["_id"] async for d in db.echoic_meta.find()] == ["store"]
            assert await db.list_collection_names() == ["echoic_meta"]

    async def test_an_embedding_that_another_program_broke_is_found_by_its_words(self, url: str) -> None:
        async with opened(store_from(url)) as store, database(url) as db:
            await store.write(ANA, [put(memory("a")), put(memory("b"))])
            records = await store.scan(ANA, "memory")
            await store.write(ANA, [attach(r, r.seq) for r in records])
            await db.memories.update_one({"id": "a"}, {"$set": {"embedding": [1.0, 2.0]}})
            assert await loaded(store, ANA) == expected(records, {("memory", "b"): unit(1)})

    async def test_check_tells_which_index_is_missing(self, url: str) -> None:
        async with opened(store_from(url)) as store, database(url) as db:
            await db.memories.drop_index("echoic_key")
            assert (await store.check())["indexes missing"] == ["echoic_key"]

    async def test_check_tells_what_an_operator_wants_to_know(self, url: str) -> None:
        async with opened(store_from(url)) as store:
            assert isinstance(store, MongoDBStore)
            await store.write(ANA, [put(memory("a", "very secret"))])
            await store.until_searchable(120)
            facts = await store.check()
        assert (facts["scopes"], facts["records"], facts["waiting"], facts["left alone"]) == (1, 1, 1, 0)
        assert facts["engine"].startswith("MongoDB ")
        assert facts["writable"] is True
        assert facts["indexes missing"] == []
        if not mongodb_server.REAL:
            assert facts["permissions missing"] == "none: the server lets anybody in"
            assert facts["search"] == {"echoic_vector": "READY", "echoic_text": "READY"}
        assert "secret" not in repr(facts)


class TestOthersCollections:
    """An existing collection of the published demo."""

    async def fill(self, db: Any) -> dict[str, Any]:
        said = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
        common = {"deploymentId": "voice-demo", "createdAt": said, "updatedAt": said}
        mine = {"userCookie": "5f0c-cookie", "isGlobal": False}
        documents = {
            "name": {**common, **mine, "key": "user_name", "value": "Ana", "embedding": [0.5] * 12},
            "hours": {**common, "userCookie": "global", "isGlobal": True, "key": "hours", "value": "9 to 5"},
            "city": {**common, **mine, "key": "city", "value": "Porto", "likes": "an own field"},
            "pretender": {**common, "userCookie": "global", "isGlobal": False, "key": "k", "value": "mine"},
            "blank": {**common, **mine, "key": "blank", "value": "  "},
            "nobody": {**common, "isGlobal": False, "key": "k", "value": "whose?"},
            "odd": {**common, **mine, "key": 5, "value": ["a"]},
        }
        for document in documents.values():
            await db.memories.insert_one(document)
        return documents

    async def test_it_opens_as_it_is_and_its_documents_are_memories(self, url: str) -> None:
        async with database(url) as db:
            there = await self.fill(db)
            async with opened(store_from(url)) as store:
                await store.aclose()
                await store.open(EmbeddingSpec("test:eight", 8), real_index)
                found = await store.scan(ARTICLE, "memory")
                assert [(r.id, r.key, r.data["text"]) for r in found] == [
                    (str(there["name"]["_id"]), "user_name", "Ana"),
                    (str(there["city"]["_id"]), "city", "Porto"),
                ]
                assert memory_of(found[0]).valid_from == datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
                everyones = await store.scan(Scope("voice-demo", None), "memory")
                assert [(r.key, memory_of(r).visibility) for r in everyones] == [("hours", "global")]
                assert [r.key for r in await store.scan(Scope("voice-demo", "global"), "memory")] == ["k"]
                assert (await store.check())["left alone"] == 3
                assert {w.record.key for w in await store.waiting(10)} == {"user_name", "city", "hours", "k"}
            kept = await db.memories.find_one({"_id": there["city"]["_id"]})
            assert (kept["likes"], kept["createdAt"]) == ("an own field", there["city"]["createdAt"])
            for name in ("blank", "nobody", "odd"):
                assert await db.memories.find_one({"_id": there[name]["_id"]}) == there[name]

    async def test_they_are_found_updated_and_kept_like_any_other(self, url: str) -> None:
        async with database(url) as db:
            there = await self.fill(db)
            async with opened(store_from(url)) as store:
                records = await store.scan(ARTICLE, "memory")
                await store.write(ARTICLE, [attach(r, r.seq) for r in records])
                vectors = {("memory", r.id): unit(r.seq) for r in records}
                assert await loaded(store, ARTICLE) == expected(records, vectors)
                await store.write(ARTICLE, [put(memory(records[0].id, "Anna", key="user_name"), 1)])
                changed = await db.memories.find_one({"_id": there["name"]["_id"]})
                assert (changed["value"], changed["userCookie"]) == ("Anna", "5f0c-cookie")
                erased = await store.erase(ARTICLE, [Drop(kind="memory", id=records[0].id)])
                assert (dict(erased.records), erased.verified) == ({"memory": 1}, True)
                assert await db.memories.find_one({"_id": there["name"]["_id"]}) is None

    async def test_opening_it_twice_or_by_two_at_once_takes_each_over_once(self, url: str) -> None:
        async with database(url) as db:
            await db.memories.insert_many(
                {
                    "deploymentId": "d",
                    "userCookie": f"u{n % 3}",
                    "isGlobal": False,
                    "key": f"k{n}",
                    "value": f"number {n}",
                }
                for n in range(450)
            )
            stores = [store_from(url) for _ in range(2)]
            await asyncio.gather(*(store.open(SPEC, index) for store in stores))
            async with opened(store_from(url)) as third:
                for user in ("u0", "u1", "u2"):
                    found = await third.scan(Scope("d", user), "memory")
                    assert [r.seq for r in found] == list(range(150))
                    assert await loaded(stores[0], Scope("d", user)) == expected(found, {})
            for store in stores:
                await store.aclose()

    @pytest.mark.parametrize(("model", "kept"), [("voyageai:voyage-3.5-lite", True), ("test:eight", False)])
    async def test_a_vector_is_kept_where_the_model_is_the_same(
        self, url: str, model: str, *, kept: bool
    ) -> None:
        async with database(url) as db:
            document = {"deploymentId": "d", "userCookie": "u", "isGlobal": False, "key": "k", "value": "tea"}
            await db.memories.insert_one({**document, "embedding": (unit(4) * 3).tolist()})
            async with opened(store_from(url), EmbeddingSpec(model, 8)) as store:
                found = (await loaded(store, Scope("d", "u"))).vectors
                assert bool(found) is kept
                assert [w.record.key for w in await store.waiting(5)] == ([] if kept else ["k"])
                if kept:
                    assert np.allclose(np.frombuffer(found[0], np.float32), unit(4), atol=1e-6)


class TestFreshness:
    async def test_what_another_writes_is_loaded_before_anybody_asks(self, url: str) -> None:
        async with opened(store_from(url)) as one, opened(store_from(url)) as other:
            assert isinstance(one, MongoDBStore)
            await one.write(ANA, [put(memory("a"))])
            partition = await one.load(ANA)
            live = one._live
            assert live is not None
            assert live.watch is not None
            await until(lambda: bool(live.watch and live.watch.following))
            before = partition.version
            await other.write(ANA, [put(memory("b", "has a sister in Porto"))])
            await until(lambda: partition.version > before)
            assert content(partition) == expected(await everything(other, ANA), {})

    @mongodb_server.stand_in_only
    async def test_a_stream_that_cannot_go_on_begins_anew(self, url: str) -> None:
        server = mongodb_server.shared()
        async with opened(store_from(url)) as one, opened(store_from(url)) as other:
            assert isinstance(one, MongoDBStore)
            await one.write(ANA, [put(memory("a"))])
            partition = await one.load(ANA)
            watch = one._live.watch if one._live else None
            assert watch is not None
            await until(lambda: watch.following)
            server.cut_log()
            before = partition.version
            async with asyncio.timeout(20):
                while partition.version == before:  # until the stream has begun anew and sees one of these
                    await other.write(ANA, [put(memory(f"m{uuid.uuid4()}"))])
                    await asyncio.sleep(0.2)
            assert await loaded(one, ANA) == expected(await everything(other, ANA), {})


class TestReindexing:
    async def test_one_that_was_cut_short_is_finished_by_the_next_opening(self, url: str) -> None:
        scopes = [Scope("d", f"u{n}") for n in range(3)]
        async with opened(store_from(url)) as store:
            for scope in scopes:
                await store.write(scope, [put(memory("a", "likes tea"))])
                await store.write(scope, [attach(r, 1) for r in await store.scan(scope, "memory")])
        async with database(url) as db:  # as a process leaves it that died after the first scope
            await db.echoic_meta.update_one({"_id": "store"}, {"$set": {"unfinished": True}})
            rest = {"_id.userCookie": {"$in": ["u1", "u2"]}}
            await db.echoic_scopes.update_many(rest, {"$set": {"model": "another"}})
        async with opened(store_from(url)) as store, database(url) as db:
            assert [w.scope for w in await store.waiting(10)] == scopes[1:]
            assert (await loaded(store, scopes[0])).vectors == {0: unit(1).tobytes()}
            for scope in scopes[1:]:
                records = await everything(store, scope)
                assert await loaded(store, scope) == expected(records, {})
            assert (await db.echoic_meta.find_one({"_id": "store"}))["unfinished"] is False

    async def test_a_scope_of_many_parts_is_reindexed_whole(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(changes, "ROWS", 4 * SEGMENT_ROWS)
        async with opened(store_from(url)) as store:
            for start in range(0, 300, 150):
                await store.write(
                    ANA, [put(memory(f"m{n}", f"number {n}")) for n in range(start, start + 150)]
                )
            some = (await store.scan(ANA, "memory"))[::100]
            await store.write(ANA, [attach(r, 2) for r in some])
            assert await store.reindex(SPEC) == 300
            assert await loaded(store, ANA) == expected(await everything(store, ANA), {})
            assert len(await store.waiting(5000)) == 300

    async def test_a_scope_that_is_not_done_yet_gives_no_vectors_and_takes_none(self, url: str) -> None:
        async with opened(store_from(url)) as store, database(url) as db:
            await store.write(ANA, [put(memory("a"))])
            records = await store.scan(ANA, "memory")
            await store.write(ANA, [attach(records[0], 1)])
            await db.echoic_scopes.update_many({}, {"$set": {"model": "another"}})
            assert await loaded(store, ANA) == expected(records, {})
            with pytest.raises(StoreUnavailable, match="embedded anew"):
                await store.write(ANA, [attach(records[0], 2)])

    async def test_a_scope_that_was_overlooked_is_indexed_again_by_the_next_opening(self, url: str) -> None:
        async with opened(store_from(url)) as store, database(url) as db:
            await store.write(ANA, [put(memory("a"))])
            await store.write(ANA, [attach(r, 1) for r in await store.scan(ANA, "memory")])
            await db.echoic_scopes.update_many({}, {"$set": {"model": "another"}})
        async with opened(store_from(url)) as store:
            (waiting,) = await store.waiting(10)
            await store.write(ANA, [attach(waiting.record, 2)])
            vectors = {("memory", "a"): unit(2)}
            assert await loaded(store, ANA) == expected(await everything(store, ANA), vectors)

    async def test_users_who_begin_at_a_server_that_goes_on_are_embedded_by_the_model_of_now(
        self, url: str
    ) -> None:
        bob = Scope("acme", "bob")
        async with opened(store_from(url)) as before, opened(store_from(url)) as now:
            await before.write(ANA, [put(memory("a"))])
            await now.reindex(OTHER_SPEC)
            await before.write(bob, [put(memory("b"))])
            with pytest.raises(EmbeddingMismatch):
                await before.write(bob, [attach(r) for r in await before.scan(bob, "memory")])
            for waiting in await now.waiting(10):
                await now.write(waiting.scope, [attach(waiting.record, 1, OTHER_SPEC.dimensions)])
            assert await now.waiting(10) == []
            for scope in (ANA, bob):
                assert (await loaded(now, scope)).vectors == {0: unit(1, OTHER_SPEC.dimensions).tobytes()}
                assert (await loaded(before, scope)).vectors == {}

    async def test_words_are_cut_again_where_the_way_they_are_cut_changed(self, url: str) -> None:
        async with opened(store_from(url)) as store:
            await store.write(ANA, [put(memory("a", "likes tea")), put(memory("b", "likes rain"))])
            await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory", limit=1)])
            records = [told(r) for r in await everything(store, ANA)]
        async with database(url) as db:
            await db.echoic_meta.update_one({"_id": "store"}, {"$set": {"analysis": -1}})
            await db.echoic_scopes.update_many({}, {"$set": {"analysis": -1}})
            await db.echoic_segments.update_many({}, {"$set": {"words": _of_no_words()}})
        async with opened(store_from(url)) as store:
            assert [told(r) for r in await everything(store, ANA)] == records
            vectors = {("memory", "a"): unit(0)}
            assert await loaded(store, ANA) == expected(await everything(store, ANA), vectors)

    async def test_another_models_database_says_whose_it_is(self, url: str) -> None:
        async with opened(store_from(url)):
            pass
        with pytest.raises(EmbeddingMismatch, match="echoic reindex") as error:
            await store_from(url).open(EmbeddingSpec("test:other", 8), index)
        assert (error.value.model, error.value.dimensions) == ("test:eight", 8)


def _of_no_words() -> bytes:
    from echoic.partition import Segment

    return Segment().to_bytes()


class TestTheWholeOfIt:
    """The library over this store, from a URL on."""

    async def test_what_is_said_is_known_corrected_found_and_forgotten(self, url: str) -> None:
        async with echoic.open(url, embedder="lexical") as memories, database(url) as db:
            ana, bob = memories.user("ana", deployment="acme"), memories.user("bob", deployment="acme")
            await ana.set("user_name", "Ana")
            await ana.set("user_name", "Anna")
            current = await ana.get("user_name")
            assert current is not None
            assert current.text == "Anna"
            assert len(await ana.history("user_name")) == 2
            call = await ana.conversation("call-1", agent="concierge")
            await call.append(echoic.Turn(speaker="user", text="My sister Katherine lives in Porto", id="1"))
            await call.complete()
            await memories.distil()
            assert "Katherine" in (await ana.query("where does my sister live?"))[0].text
            assert await bob.query("where does my sister live?") == []
            held = await db.memories.count_documents({"userCookie": "ana"})
            receipt = await ana.forget()
            assert (receipt.records, receipt.verified) == (held, True)
            for name in ("memories", "echoic_segments"):
                assert await db[name].count_documents({"userCookie": "ana"}) == 0
            assert await db.echoic_scopes.count_documents({"_id.userCookie": "ana"}) == 0

    async def test_a_demos_memory_is_corrected_by_its_key(self, url: str) -> None:
        async with database(url) as db:
            old = {"deploymentId": "acme", "userCookie": "ana", "isGlobal": False, "key": "user_name"}
            await db.memories.insert_one(
                {**old, "value": "Ana", "createdAt": datetime(2025, 1, 1, tzinfo=UTC)}
            )
            async with echoic.open(url, embedder="lexical") as memories:
                ana = memories.user("ana", deployment="acme")
                before = await ana.get("user_name")
                assert before is not None
                assert (before.text, before.valid_from) == ("Ana", datetime(2025, 1, 1, tzinfo=UTC))
                await ana.set("user_name", "Anna")
                assert [m.text for m in await ana.history("user_name")] == ["Ana", "Anna"]
                after = await ana.get("user_name")
                assert after is not None
                assert (after.text, after.supersedes) == ("Anna", before.id)


async def test_it_works_on_ciphertext_and_nobody_opens_it_without_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await answers_from_ciphertext(mongodb_server.url(), monkeypatch)
