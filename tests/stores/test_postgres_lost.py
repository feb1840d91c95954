"""What is lost between a client and PostgreSQL, and what is not: answers, servers, clients. All of it is real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import forked
from echoic.embedding import LexicalEmbedder
from echoic.errors import StoreCorrupt, StoreUnavailable
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import FIRST_UNSEARCHABLE, Store
from echoic.testing.store_histories import (
    ANA,
    SPEC,
    attach,
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
from echoic.types import Scope
from scale import many
from stores.postgres_between import Line, Moment
from stores.postgres_child import SHARED, name_of
from stores.postgres_server import PostgresServer, new_schema, shared

RESTARTS = many(4)
CHILD = Path(__file__).with_name("postgres_child.py")
BOB = Scope("acme", "bob")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One of this test's own, whose commits are on the disk."""
    made = PostgresServer(durable=True)
    made.start()
    yield made
    made.remove()


@pytest_asyncio.fixture
async def line() -> AsyncIterator[Line]:
    folder = Path(tempfile.mkdtemp(prefix="echoic-line-"))
    async with Line(shared(), folder).laid() as made:
        yield made
    shutil.rmtree(folder)


@contextlib.contextmanager
def child(url: str, mode: str, number: int = 0, name: str = "ana") -> Iterator[subprocess.Popen[str]]:
    process = forked.Popen(
        [sys.executable, str(CHILD), url, mode, str(number), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
@pytest.mark.crash
async def test_a_commit_whose_answer_is_lost_happens_exactly_once(line: Line, moment: Moment) -> None:
    schema = new_schema()
    async with opened(
        store_from(f"postgresql://postgres@/postgres?host={line.folder}&schema={schema}")
    ) as store:
        await store.write(ANA, [put(note("n", n=0)), put(memory("a"))])
        for n in range(1, 6):
            line.cut = moment
            await store.write(ANA, [put(note("n", n=n), n), put(memory(f"m{n}"), 0)])
            assert line.cuts == n, "nothing was cut"
        await store.write(ANA, [attach((await store.read(ANA, "memory", ["a"]))[0])])
        line.cut = moment
        assert dict((await store.erase(ANA, [*_dropped("m1", "m2")])).records) == {"memory": 2}
    async with opened(store_from(shared().url(schema))) as other:
        assert [(r.data["n"], r.version) for r in await other.read(ANA, "note", ["n"])] == [(5, 6)]
        assert [(r.id, r.version) for r in await other.scan(ANA, "memory")] == [
            ("a", 1), ("m3", 1), ("m4", 1), ("m5", 1)
        ]  # fmt: skip
        assert await loaded(other, ANA) == expected(await everything(other, ANA), {("memory", "a"): unit(0)})


async def test_a_write_is_five_round_trips_and_a_query_two(line: Line) -> None:
    url = f"postgresql://postgres@/postgres?host={line.folder}&schema={new_schema()}&listen=off&pool=1"
    async with opened(store_from(url)) as store:
        for n in range(3):  # statements are prepared the first time
            await store.write(BOB, [put(note("n", n=n))])
            await store.write(ANA, [put(memory("a")), put(note("n", n=n))])
            await store.load(ANA)
            await store.rows(ANA, [0])
        await _quiet(line)  # what this process wrote is also caught up with behind its back
        line.round_trips = 0
        await store.write(BOB, [put(note("n", n=3)), put(note("m", n=3))])
        assert line.round_trips == 5
        line.round_trips = 0
        await store.load(ANA)
        await store.rows(ANA, [0])
        assert line.round_trips == 2


async def _quiet(line: Line) -> None:
    """Until nobody has asked anything for a while."""
    before = -1
    while before != line.round_trips:
        before = line.round_trips
        await asyncio.sleep(0.3)


@pytest.mark.crash
async def test_control_a_lost_answer_taken_for_a_failure_is_found(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> bool:
        return False

    monkeypatch.setattr("echoic.stores.postgres.database.Database._committed", never)
    url = f"postgresql://postgres@/postgres?host={line.folder}&schema={new_schema()}"
    async with opened(store_from(url)) as store:
        await store.write(ANA, [put(note("n", n=0))])
        line.cut = "after the commit"
        await store.write(ANA, [put(note("n", n=1))])
        assert [r.version for r in await store.read(ANA, "note", ["n"])] == [3], "it was written twice"


def _dropped(*names: str) -> list[object]:
    from echoic.stores.base import Drop

    return [Drop(kind="memory", id=name) for name in names]


@pytest.mark.crash
async def test_a_server_that_is_stopped_and_started_loses_nothing(server: PostgresServer) -> None:
    """Calls go on with what is loaded; writes wait; what was acknowledged is there; each happened once."""
    url, each = server.url(wait_s=60), 200 * RESTARTS
    with child(url, "count", each, "one") as one, child(url, "count", each, "two") as two:
        async with opened(store_from(url)) as store:
            await store.write(ANA, [put(memory(f"m{n}", f"likes number {n}")) for n in range(40)])
            await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
            before, records = await loaded(store, ANA), await store.rows(ANA, [3, 39])
            for n in range(RESTARTS):
                await asyncio.sleep(0.3)
                how = [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL][n % 3]
                await asyncio.to_thread(server.stop, how)
                await _goes_on(store, before, records)
                waits = asyncio.ensure_future(store.write(BOB, [put(note("n", n=n))]))
                await asyncio.sleep(0.2)
                assert not waits.done(), "a write was answered by a server that was not there"
                await asyncio.to_thread(server.start)
                await waits
                assert [r.data for r in await store.read(BOB, "note", ["n"])] == [{"n": n}]
                assert await loaded(store, ANA) == before
            assert store.failure is None
            counted = [await asyncio.to_thread(_counted, process) for process in (one, two)]
            assert [len(acknowledged) for acknowledged in counted] == [each, each]
            everyone = sorted(counted[0] + counted[1])
            assert everyone == list(range(1, 2 * each + 1)), "a count was lost, or made twice"
            assert [r.data["n"] for r in await store.read(SHARED, "note", ["n"])] == [2 * each]
            assert {r.seq for r in await everything(store, SHARED)} == {*range(2 * each), FIRST_UNSEARCHABLE}
            assert await loaded(store, SHARED) == expected(await everything(store, SHARED), {})


async def test_a_database_that_lost_pgvector_is_damaged_and_says_so(server: PostgresServer) -> None:
    async with opened(store_from(server.url())) as store:
        server.sql(
            "drop extension vector cascade; "
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
        )
        with pytest.raises(StoreCorrupt, match="create extension vector"):
            await store.scan(ANA, "memory")


async def _goes_on(store: Store, before: object, records: list[object]) -> None:
    """While there is no server: what is loaded answers at once, and what is not is not called empty."""
    for _ in range(5):
        began = time.monotonic()
        assert await loaded(store, ANA) == before
        assert await store.rows(ANA, [3, 39]) == records
        assert time.monotonic() - began < 10, "a call waited for the server, as a write does"
    waiting = asyncio.ensure_future(store.load(Scope("acme", "never loaded")))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()
    assert store.failure


def _counted(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    found: list[int] = []
    while (line := process.stdout.readline().strip()) != "done":
        assert line, "the process met an error: see its traceback above"
        found.append(int(line))
    return found


@pytest.mark.crash
async def test_a_writer_that_is_killed_loses_and_halves_nothing() -> None:
    url, scope = shared().url(), Scope("acme", "killed")
    acknowledged = -1
    for life in range(many(8, least=2)):
        with child(url, "write", 1000 * life, "killed") as process:
            assert process.stdout is not None
            for _ in range(5 + 7 * life % 20):
                acknowledged = int(await asyncio.to_thread(process.stdout.readline))
            process.send_signal(signal.SIGKILL)
            process.wait()
            for said in process.stdout:  # what it had said before it died
                acknowledged = int(said)
        async with opened(store_from(url)) as store:
            count = (await store.read(scope, "note", ["count"]))[0].data["n"]
            assert acknowledged <= count <= acknowledged + 1
            records = await everything(store, scope)
            assert f"m{count}" in {r.id for r in records}
            vectors = {("memory", r.id): unit(int(r.id[1:])) for r in records if r.kind == "memory"}
            assert await loaded(store, scope) == expected(records, vectors), "a batch is there in half"


async def test_a_write_that_is_cancelled_is_there_whole_or_not_at_all() -> None:
    async with opened(store_from(shared().url(pool=3))) as store:
        draw = random.Random(5)
        for n in range(150):
            batch = [put(note(f"n{n}")), put(memory(f"m{n}", f"number {n}")), put(note("count", n=n))]
            write = asyncio.ensure_future(store.write(Scope("acme", f"user {n % 4}"), batch))
            await asyncio.sleep(draw.uniform(0, 0.004))
            write.cancel()
            await asyncio.gather(write, return_exceptions=True)
        for n in range(4):
            scope = Scope("acme", f"user {n}")
            await store.write(scope, [put(note("last"))])
            records = await everything(store, scope)
            notes, memories = (
                {r.id[1:] for r in records if r.id[1:].isdigit() and r.kind == kind}
                for kind in ("note", "memory")
            )
            assert notes == memories
            assert await loaded(store, scope) == expected(records, {})
        held = await store._database.read(
            None,
            lambda c: c.fetchval(
                "select count(*) from pg_stat_activity where state like 'idle in transaction%'"
            ),
        )
        assert held == 0


async def test_what_another_process_writes_the_next_query_sees() -> None:
    url = shared().url()
    with child(url, "echo") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        async with opened(store_from(url)) as store:
            for n in range(30):
                process.stdin.write(f"likes number {n} best\n")
                process.stdin.flush()
                assert await asyncio.to_thread(process.stdout.readline) == f"likes number {n} best\n"
                content = await loaded(store, ANA)
                records = await everything(store, ANA)
                assert content == expected(records, {})
                assert [r.data["text"] for r in await store.read(ANA, "memory", ["said"])] == [
                    f"likes number {n} best"
                ]


@pytest.mark.parametrize("_time", range(many(4)))
@pytest.mark.crash
async def test_two_servers_and_three_workers_lose_no_turn_and_learn_from_none_twice(_time: int) -> None:
    url, turns = shared().url(wait_s=60), 25
    with contextlib.ExitStack() as processes:
        workers = [processes.enter_context(child(url, "work")) for _ in range(3)]
        servers = [processes.enter_context(child(url, "serve", turns, f"caller {n}")) for n in range(2)]
        for server in servers:
            assert await asyncio.to_thread(_counted, server) == list(range(turns))
        workers[0].kill()
        async with MemoryService(store_from(url), LexicalEmbedder(64)) as memory:
            await memory.distil()
            for n in range(2):
                user = memory.user(f"caller {n}")
                said = await (await user.conversation(f"call of caller {n}")).turns()
                assert [turn.id for turn in said] == [str(i) for i in range(turns)]
                names = [known.text for known in await user.history("user_name")]
                assert names == [name_of(i) for i in range(turns)]


async def test_a_write_elsewhere_reaches_what_is_loaded_before_anybody_asks() -> None:
    url = shared().url()
    async with opened(store_from(url)) as store, opened(store_from(url)) as other:
        await _until(lambda: other._fresh.listening)
        await store.write(ANA, [put(memory("a", "likes tea"))])
        partition = await other.load(ANA)
        await store.write(ANA, [put(memory("b", "likes coffee"))])
        await _until(lambda: int((partition.rows["kind"] != 0).sum()) == 2)
        await store.erase(ANA)
        await _until(lambda: not partition.rows["kind"].any())
        assert len(partition.postings[0]) == 0
        assert not other._fresh._cache.get(ANA), "what was erased elsewhere stayed in this memory"


async def _until(true: object) -> None:
    """Wait for what another connection brings about; the deadline only ends a test that fails."""
    assert callable(true)
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.005)


async def test_what_is_loaded_answers_only_for_so_long(server: PostgresServer) -> None:
    async with opened(store_from(server.url(stale_s=0.2, wait_s=0.1))) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.load(ANA)
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(0.3)
        with pytest.raises(StoreUnavailable, match="too old"):
            await store.load(ANA)
        with pytest.raises(StoreUnavailable):
            await store.rows(ANA, [0])


async def test_what_is_loaded_never_hides_an_acknowledged_write(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(store_from(server.url(wait_s=0.1, listen="off"))) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.load(ANA)
        monkeypatch.setattr(store._fresh, "_tell", lambda _scope: None)  # nothing is read again in between
        await store.write(ANA, [put(memory("b"))])
        await asyncio.to_thread(server.stop)
        with pytest.raises(StoreUnavailable, match="last write"):
            await store.load(ANA)


async def test_without_a_server_every_verb_says_so(server: PostgresServer) -> None:
    async with opened(store_from(server.url(wait_s=2))) as store:
        await store.write(ANA, [put(memory("a"))])
        await asyncio.to_thread(server.stop)
        verbs = [
            store.write(ANA, [put(memory("a"))]), store.read(ANA, "memory", ["a"]), store.rows(ANA, [0]),
            store.scan(ANA, "memory"), store.load(BOB), store.waiting(1), store.erase(ANA), store.scopes(),
            store.reindex(SPEC), store.check(), store.size(ANA),
            store.narrow(ANA, "tea", None, limit=1, include_past=False),
        ]  # fmt: skip
        for answer in await asyncio.gather(*verbs, return_exceptions=True):
            assert isinstance(answer, StoreUnavailable), answer
            assert str(server.folder) not in str(answer)
        await asyncio.to_thread(server.start)
        assert [told(r)[1] for r in await store.read(ANA, "memory", ["a"])] == ["a"]


async def test_a_server_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    store = store_from(f"postgresql://ana:secret@/postgres?host={tmp_path}")
    with pytest.raises(StoreUnavailable) as error:
        await store.open(SPEC, index)
    assert "secret" not in str(error.value)
