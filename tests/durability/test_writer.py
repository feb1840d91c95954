"""What the writer owes to those who close, cancel, fork, stop their loop, or simply leave."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from pathlib import Path
from random import Random

import apsw
import pytest

import forked
from durability.children import KILLED, Zygote
from durability.consistency import check_consistent
from durability.programs import lines
from durability.workload import SPEC, index
from echoic.errors import NotOpen, StoreUnavailable, WriteConflict
from echoic.stores.base import Change, Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.stores.sqlite.writer import Writer
from echoic.types import Scope

ANA = Scope("acme", "ana")


def memory(name: object, *, expect: int | None = None) -> Put:
    return Put(record=Record(kind="memory", id=str(name), data={"text": f"number {name}"}), expect=expect)


def trio(name: object) -> list[Change]:
    return [memory(f"{name}{part}") for part in "abc"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


async def opened(path: Path) -> SQLiteStore:
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    return store


def kept(path: Path) -> set[str]:
    """Ids of Ana's memories, after everything was checked."""
    return {name for _, name in check_consistent(path).get(ANA, {})}


def descriptors(path: Path) -> list[str]:
    """Files of the store that this process holds open."""
    gc.collect()
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(link.readlink()))
    return [link for link in links if link.startswith(str(path))]


def held_up(store: SQLiteStore) -> threading.Event:
    """Keep the writer busy until the event is set."""
    release = threading.Event()
    store._writer.alone(lambda _: release.wait(30))
    return release


async def test_what_was_asked_for_before_closing_is_done_and_answered(path: Path) -> None:
    store = await opened(path)
    release = held_up(store)
    writes = [asyncio.create_task(store.write(ANA, trio(number))) for number in range(40)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0.05)
    with pytest.raises(NotOpen):
        await store.write(ANA, trio("late"))
    release.set()
    await closing
    assert await asyncio.gather(*writes) == [None] * 40
    assert kept(path) == {f"{number}{part}" for number in range(40) for part in "abc"}


async def test_a_write_given_up_on_is_whole_or_not_there(path: Path, seed: int) -> None:
    rng = Random(seed)
    store = await opened(path)
    for number in range(60):
        task = asyncio.create_task(store.write(ANA, trio(number)))
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        if rng.random() < 0.3:
            await asyncio.sleep(rng.uniform(0, 0.002))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await store.write(ANA, trio("last"))
    await store.aclose()
    names = kept(path)
    assert {"lasta", "lastb", "lastc"} <= names
    assert all({f"{name[:-1]}{part}" for part in "abc"} <= names for name in names)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list open files")
async def test_closing_that_is_given_up_on_closes_all_the_same(path: Path) -> None:
    store = await opened(path)
    release = held_up(store)
    writes = [asyncio.create_task(store.write(ANA, trio(number))) for number in range(10)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    again = asyncio.create_task(store.aclose())
    await asyncio.sleep(0.05)
    assert not again.done(), "the second to close must wait for the first"
    release.set()
    await again
    await asyncio.gather(*writes)
    assert descriptors(path) == []
    assert len(kept(path)) == 30


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list open files")
async def test_opening_several_times_at_once_opens_once(path: Path) -> None:
    writer = Writer(str(path), None)
    for _ in range(20):
        await asyncio.gather(*(asyncio.wrap_future(writer.start()) for _ in range(4)))
        assert len(descriptors(path)) <= 4, "one of each of: database, log, its index, lock"
        closing = writer.stop()
        assert closing is not None
        await asyncio.wrap_future(closing)
        assert descriptors(path) == []


async def test_one_refused_write_does_not_touch_those_committed_with_it(path: Path) -> None:
    store = await opened(path)
    release = held_up(store)
    not_json: list[Change] = [memory("x"), Put(record=Record(kind="profile", id="y", data={"z": object()}))]
    writes = [
        store.write(ANA, trio("before")),
        store.write(ANA, [memory("half"), memory("conflict", expect=3)]),
        store.write(ANA, not_json),
        store.write(ANA, trio("after")),
    ]
    together = asyncio.gather(*writes, return_exceptions=True)
    await asyncio.sleep(0)
    release.set()
    answers = await together
    assert [type(answer) for answer in answers] == [type(None), WriteConflict, TypeError, type(None)]
    await store.aclose()
    assert kept(path) == {f"{name}{part}" for name in ("before", "after") for part in "abc"}


def test_a_loop_that_ends_before_the_answer_comes_takes_nothing_with_it(path: Path) -> None:
    store = SQLiteStore(path)
    release = threading.Event()

    async def ask_and_leave() -> None:
        nonlocal release
        await store.open(SPEC, index)
        release = held_up(store)
        store._writer.submit(lambda connection: connection.execute("select 1"))
        task = asyncio.create_task(store.write(ANA, trio("asked")))
        await asyncio.sleep(0.05)
        assert not task.done()

    async def go_on() -> None:
        await store.write(ANA, trio("another loop's"))
        await store.aclose()

    asyncio.run(ask_and_leave())  # cancels the task as it closes
    release.set()
    asyncio.run(go_on())
    assert {"askeda", "another loop'sa"} <= kept(path)


def test_who_leaves_without_closing_leaves_at_once_and_loses_nothing(path: Path) -> None:
    program = f"""
import asyncio
from durability.test_writer import ANA, SPEC, SQLiteStore, index, trio
async def main():
    store = SQLiteStore({str(path)!r})
    await store.open(SPEC, index)
    await store.write(ANA, trio("acknowledged"))
    await store.scan(ANA, "memory")
    asyncio.create_task(store.write(ANA, trio("asked for")))
    await asyncio.sleep(0)
asyncio.run(main())
"""
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    forked.run([sys.executable, "-c", program], check=True, timeout=30, env=environment)
    assert {f"acknowledged{part}" for part in "abc"} <= kept(path)


@pytest.mark.parametrize("control", [None, "keep the lock after a fork"], ids=["promise", "control"])
def test_a_forked_child_neither_uses_the_store_nor_keeps_its_turn(
    zygote: Zygote, path: Path, tmp_path: Path, control: str | None
) -> None:
    log, visits = tmp_path / "log", tmp_path / "visits"
    parent = zygote.start("fork_in_turn", path=str(path), log=str(log), control=control).go()
    assert parent.wait() == KILLED  # by itself, in the middle of its turn; its child lives on
    if control is None:
        assert lines(log)[0][:2] == ["child", "NotOpen"], lines(log)
    visitor = zygote.start("visit", path=str(path), log=str(visits)).go()
    try:
        if control is None:
            assert visitor.wait() == 0
            assert lines(visits) == [["found", "0"]]
        else:
            assert not visitor.ended(1)
    finally:
        visitor.kill()
        Path(f"{log}-end").touch()


async def test_an_erasure_that_a_reader_holds_up_is_no_success_and_is_finished_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_schema, "BUSY_TIMEOUT_MS", 100)
    store = await opened(path)
    await store.write(ANA, [memory("quixotic")])
    reader = apsw.Connection(str(path))
    reader.execute("begin")
    assert reader.execute("select count(*) from records").get == 1
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="reader"):
            await store.erase(ANA)
    await store.write(ANA, [memory("meanwhile")])
    reader.close()
    assert b"number quixotic" in path.with_name("a.db-wal").read_bytes()
    receipt = await store.erase(Scope("acme", "nobody"))
    assert receipt.verified
    assert b"number quixotic" not in path.with_name("a.db-wal").read_bytes()
    await store.aclose()
    assert b"number quixotic" not in path.read_bytes()
    assert kept(path) == {"meanwhile"}
