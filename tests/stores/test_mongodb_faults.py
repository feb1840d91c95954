from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
from pymongo import AsyncMongoClient

from echoic.errors import InvalidInput, StoreFull, StoreUnavailable, WriteConflict
from echoic.ranking import query_of, rank
from echoic.stores import store_from
from echoic.stores.base import Drop
from echoic.stores.mongodb import MongoDBStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing.store_histories import (
    ANA,
    attach,
    everything,
    expected,
    loaded,
    memory,
    note,
    opened,
    put,
    unit,
)
from echoic.types import Scope
from echoic_loopback.mongodb import MongoServer
from stores import mongodb_server

pytestmark = [
    pytest.mark.usefixtures("closed_while_connecting"),
    mongodb_server.stand_in_only,
]

STEPS = ["findAndModify", "find", "insert", "update", "commitTransaction"]
"""The commands of one write."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[MongoServer]:
    mongodb_server.note("the wire stand-in")
    with MongoServer(lifetime_s=getattr(request, "param", 60), build_looks=0) as made:
        yield made


gives_up_soon = pytest.mark.parametrize("server", [0.5], indirect=True, ids=["gives up soon"])
"""For writes that somebody leaves in the middle. Others would not get through in so short a time on a busy machine."""


@pytest_asyncio.fixture
async def store(server: MongoServer) -> AsyncIterator[MongoDBStore]:
    made = store_from(server.url("echoic", "timeout_ms=60000"))
    async with opened(made):
        await made.until_searchable(60)
        yield made


@pytest_asyncio.fixture
async def fail(server: MongoServer) -> AsyncIterator[Any]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)

    async def configure(*commands: str, times: int = 1, **data: Any) -> None:
        wanted = {"failCommands": list(commands), **data}
        await client.admin.command("configureFailPoint", "failCommand", mode={"times": times}, data=wanted)

    yield configure
    await client.close()


async def consistent(store: MongoDBStore, vectors: Any = None) -> None:
    """Records, rows and words agree."""
    assert await loaded(store, ANA) == expected(await everything(store, ANA), vectors or {})


class TestAWrite:
    @pytest.mark.parametrize("step", STEPS)
    async def test_goes_through_although_the_connection_breaks_once(
        self, store: MongoDBStore, fail: Any, step: str
    ) -> None:
        await store.write(ANA, [put(memory("a", "likes tea")), put(note("n", n=1))])
        await fail(step, closeConnection=True)
        await store.write(
            ANA, [put(memory("a", "likes rain"), 1), put(memory("b"), 0), put(note("n", n=2), 1)]
        )
        records = {r.id: r.version for r in await everything(store, ANA)}
        assert records == {"a": 2, "b": 1, "n": 2}
        await consistent(store)

    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("code", [91, 112, 251, 11600])
    async def test_goes_through_although_the_server_says_to_try_again(
        self, store: MongoDBStore, fail: Any, step: str, code: int
    ) -> None:
        await store.write(ANA, [put(memory("a", "likes tea"))])
        await fail(step, errorCode=code, times=2)
        await store.write(ANA, [put(memory("a", "likes rain"), 1), put(memory("b"), 0)])
        assert [r.version for r in await store.scan(ANA, "memory")] == [2, 1]
        await consistent(store)

    @pytest.mark.parametrize("step", STEPS)
    async def test_that_fails_wrote_nothing(self, store: MongoDBStore, fail: Any, step: str) -> None:
        await store.write(ANA, [put(memory("a", "likes tea")), put(note("n", n=1))])
        await fail(step, errorCode=8, times=1)
        with pytest.raises(StoreUnavailable, match="code 8"):
            await store.write(ANA, [put(memory("a", "likes rain")), put(memory("b")), put(note("n", n=2))])
        assert {r.id: r.version for r in await everything(store, ANA)} == {"a": 1, "n": 1}
        await consistent(store)
        await store.write(ANA, [put(memory("b"), 0)])
        assert [r.seq for r in await store.read(ANA, "memory", ["b"])] == [1], "it used up a row"

    async def test_that_takes_too_long_is_given_up_and_wrote_nothing(
        self, server: MongoServer, fail: Any
    ) -> None:
        async with opened(store_from(server.url("echoic", "timeout_ms=2500"))) as made:
            await made.write(ANA, [put(memory("a"))])
            await fail("insert", blockConnection=True, blockTimeMS=6000)
            with pytest.raises(StoreUnavailable, match="in time"):
                await made.write(ANA, [put(memory("b"))])
            await asyncio.sleep(6)  # until the server has come to it after all
            assert [r.id for r in await everything(made, ANA)] == ["a"]

    async def test_where_there_is_no_space_is_told_so_and_reads_go_on(
        self, store: MongoDBStore, fail: Any
    ) -> None:
        await store.write(ANA, [put(memory("a"))])
        await fail("insert", errorCode=14031)
        with pytest.raises(StoreFull):
            await store.write(ANA, [put(memory("b"))])
        assert [r.id for r in await everything(store, ANA)] == ["a"]
        await store.write(ANA, [put(memory("b"))])

    async def test_that_is_not_allowed_says_what_to_grant(self, store: MongoDBStore, fail: Any) -> None:
        await fail("findAndModify", errorCode=13)
        with pytest.raises(StoreUnavailable, match="readWrite"):
            await store.write(ANA, [put(memory("a", "very secret"))])

    async def test_no_error_repeats_what_was_said(self, store: MongoDBStore, fail: Any) -> None:
        for code in (8, 13, 11000, 14031):
            await fail("insert", errorCode=code, times=20)
            with pytest.raises(StoreUnavailable) as error:
                await store.write(ANA, [put(memory("a", "very secret", key="hidden"))])
            assert error.value.__cause__ is None
            assert "secret" not in str(error.value)
            assert "hidden" not in str(error.value)

    async def test_that_is_too_large_is_refused_and_wrote_nothing(self, store: MongoDBStore) -> None:
        with pytest.raises(InvalidInput, match="16 MB"):
            await store.write(ANA, [put(note("a")), put(note("n", text="x" * (17 << 20)))])
        assert await everything(store, ANA) == []

    @gives_up_soon
    async def test_that_is_cancelled_wrote_all_or_nothing(self, store: MongoDBStore) -> None:
        for n in range(25):
            changes = [put(memory(f"m{n}")), put(note(f"n{n}"))]
            writing = asyncio.ensure_future(store.write(ANA, changes))
            await asyncio.sleep(n / 2000)
            cancelled = writing.cancel()
            await asyncio.wait([writing])
            assert writing.cancelled() == cancelled, "whoever cancels waits for the end"
        await store.write(ANA, [put(memory("last"))])
        ids = {r.id[1:] for r in await store.scan(ANA, "memory")} - {"ast"}
        assert ids == {r.id[1:] for r in await store.scan(ANA, "note")}
        await consistent(store)


class TestARead:
    async def test_that_is_cancelled_ends_as_cancelled(self, store: MongoDBStore) -> None:
        """The driver loses a cancellation that arrives together with an answer."""
        await store.write(ANA, [put(memory("a")), put(note("n"))])
        verbs: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "load": lambda: store.load(ANA),
            "read": lambda: store.read(ANA, "memory", ["a"]),
            "scan": lambda: store.scan(ANA, "memory"),
            "scopes": store.scopes,
        }
        lost = []
        for name, verb in verbs.items():
            for steps in range(60):
                reading = asyncio.create_task(verb())
                for _ in range(steps):
                    await asyncio.sleep(0.0001 if steps % 2 else 0)
                cancelled = reading.cancel()
                await asyncio.wait([reading])
                if reading.cancelled() != cancelled:
                    lost.append((name, steps))
        assert lost == []

    async def test_that_is_cancelled_by_a_scope_of_anyio_ends_the_scope_alone(
        self, store: MongoDBStore
    ) -> None:
        with anyio.move_on_after(60) as scope:
            async with store._opened().connection.used():
                scope.cancel()
                with contextlib.suppress(asyncio.CancelledError):  # as the driver does at times
                    await asyncio.sleep(0)
        assert scope.cancelled_caught


class TestAServer:
    async def test_that_goes_down_and_comes_back_loses_nothing(self, server: MongoServer) -> None:
        store = store_from(server.url("echoic", "timeout_ms=2500"))
        async with opened(store):
            await self._down_and_up(server, store)

    async def _down_and_up(self, server: MongoServer, store: MongoDBStore) -> None:
        await store.write(ANA, [put(memory("a"))])
        await store.load(ANA)
        server.go_down()
        for verb in (
            store.write(ANA, [put(memory("b"))]),
            store.load(ANA),
            store.read(ANA, "memory", ["a"]),
            store.erase(ANA),
        ):
            with pytest.raises(StoreUnavailable):
                await verb
        server.come_up()
        async with asyncio.timeout(60):  # the driver looks for a server that went away twice a second
            while True:
                with contextlib.suppress(StoreUnavailable):
                    assert [r.id for r in await everything(store, ANA)] == ["a"]
                    break
        await store.write(ANA, [put(memory("b"))])
        await consistent(store)

    @gives_up_soon
    async def test_that_drops_connections_at_random_loses_and_doubles_nothing(
        self, server: MongoServer, store: MongoDBStore
    ) -> None:
        random.seed(7)
        acknowledged: list[str] = []
        done = asyncio.Event()

        async def write(worker: int) -> None:
            for n in range(8):
                name = f"{worker}-{n}"
                while True:
                    try:
                        await store.write(ANA, [put(memory(name), 0), put(note(name))])
                    except WriteConflict:  # written, and the answer was lost
                        break
                    except StoreUnavailable:
                        continue
                    break
                acknowledged.append(name)

        async def disturb() -> None:
            while not done.is_set():
                await asyncio.sleep(random.uniform(0.1, 0.4))
                await asyncio.to_thread(server.drop_connections)
                before = len(acknowledged)
                while len(acknowledged) == before and not done.is_set():  # or a busy machine comes to nothing
                    await asyncio.sleep(0.01)

        disturbing = asyncio.ensure_future(disturb())
        async with asyncio.timeout(120):
            await asyncio.gather(*(write(worker) for worker in range(4)))
        done.set()
        await disturbing
        found = await store.scan(ANA, "memory")
        assert sorted(r.id for r in found) == sorted(acknowledged)
        assert [r.seq for r in found] == list(range(32))
        assert sorted(r.id for r in await store.scan(ANA, "note")) == sorted(acknowledged)
        await consistent(store)

    @gives_up_soon
    async def test_frees_a_scope_that_a_killed_process_was_writing_to(
        self, server: MongoServer, store: MongoDBStore
    ) -> None:
        await store.write(ANA, [put(memory("a"))])
        killed: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)
        session = killed.start_session()
        await session.start_transaction()
        changed = {"$inc": {"version": 1}}
        await killed.echoic.echoic_scopes.update_one({}, changed, session=session)
        async with asyncio.timeout(60):
            await store.write(ANA, [put(memory("b"))])  # as soon as the server gives the other one up
        await consistent(store)
        await session.end_session()
        await killed.close()

    async def test_control_without_transactions_a_batch_is_found_in_half(
        self, store: MongoDBStore, fail: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        live = store._live
        assert live is not None
        client = live.connection.client

        async def apart(work: Any) -> Any:
            async with client.start_session() as session:
                return await work(session)

        monkeypatch.setattr(live.connection, "transact", apart)
        await store.write(ANA, [put(memory("a"))])
        await fail("insert", errorCode=8)
        with pytest.raises(StoreUnavailable):
            await store.write(ANA, [put(memory("b"))])
        head = await live.connection.collections.scopes.find_one({})
        assert head is not None
        assert head["version"] == 2, "the first half of the batch, its new version, is there"


class TestAnErasure:
    async def test_that_left_something_is_not_verified(
        self, store: MongoDBStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await store.write(ANA, [put(memory(f"m{n}")) for n in range(3)])
        await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
        live = store._live
        assert live is not None
        segments = live.connection.collections.segments
        before = [d async for d in segments.find({})]
        transact = live.connection.transact

        async def put_back(work: Any) -> Any:
            result = await transact(work)
            for document in before:  # as a restored backup of one collection would
                await segments.update_one({"_id": document["_id"]}, {"$set": document}, upsert=True)
            return result

        monkeypatch.setattr(live.connection, "transact", put_back)
        assert not (await store.erase(ANA, [Drop(kind="memory", id="m1")])).verified
        assert not (await store.erase(ANA)).verified

    async def test_takes_what_another_program_left_in_the_scope(
        self, server: MongoServer, store: MongoDBStore
    ) -> None:
        await store.write(ANA, [put(memory("a"))])
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)
        mine = {"deploymentId": "acme", "userCookie": "ana", "isGlobal": False}
        await client.echoic.memories.insert_one({**mine, "key": "later", "value": "by the demo"})
        assert (await store.erase(ANA)).verified
        assert server.documents("echoic.memories") == []
        assert server.documents("echoic.echoic_segments") == []
        assert server.documents("echoic.echoic_scopes") == []
        await client.close()


async def test_the_same_corpus_gives_the_same_ranking_as_sqlite(server: MongoServer, tmp_path: Path) -> None:
    words = "tea rain Porto sister Katherine jazz bread winter garden canoe chess train".split()
    random.seed(3)
    texts = [" ".join(random.choices(words, k=6)) + ("?" if n % 7 == 0 else "") for n in range(120)]
    stores = [SQLiteStore(tmp_path / "echoic.db"), store_from(server.url("echoic", "timeout_ms=60000"))]
    found = []
    for store in stores:
        async with opened(store):
            for scope in (ANA, Scope("acme", None)):
                await store.write(
                    scope, [put(memory(f"m{n}", t, past=n % 11 == 0)) for n, t in enumerate(texts)]
                )
                some = [r for r in await store.scan(scope, "memory") if r.seq % 3]
                await store.write(scope, [attach(r, r.seq) for r in some])
            partitions = [await store.load(scope) for scope in (ANA, Scope("acme", None))]
            queries = [query_of(f"about {w} and Catherine", vector=unit(n)) for n, w in enumerate(words)]
            found.append([rank(query, partitions, limit=20) for query in queries])
    assert found[0] == found[1]
    assert any(hits for hits in found[0])
