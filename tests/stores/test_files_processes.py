"""Several processes on one folder, and processes that die: real ones."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import forked
from echoic.errors import StoreCorrupt, StoreFull, StoreUnavailable
from echoic.stores.files import FilesStore
from echoic.stores.files import disk as files_disk
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
from stores import child

ROUNDS = 30


@contextmanager
def process(folder: Path, mode: str, number: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is ready; it is killed in the end."""
    command = [sys.executable, str(Path(child.__file__)), str(folder), mode, str(number)]
    with forked.Popen(command, stdout=subprocess.PIPE, bufsize=0) as running:
        try:
            if mode != "fill":
                assert running.stdout is not None
                assert running.stdout.readline() == b"ready\n"
            yield running
        finally:
            running.kill()
            running.wait()


def killed_at_random(
    folder: Path, mode: str, start: int, dice: random.Random, *, within_s: float = 0.004
) -> int:
    """The last number that a child acknowledged before it was killed; `start` - 1 if none was."""
    with process(folder, mode, start) as running:
        assert running.stdout is not None
        last = start - 1
        for _ in range(dice.randrange(12)):
            last = int(running.stdout.readline())
        time.sleep(dice.random() * within_s)
        running.send_signal(signal.SIGKILL)
        running.wait()
        rest = running.stdout.read().split(b"\n")
        return max([last, *(int(line) for line in rest[:-1])])


async def numbers(store: FilesStore) -> int:
    """How far the writing got; every batch is there whole, with its vector, none is left out."""
    latest = []
    for place, scope in enumerate(child.USERS):
        memories = [int(r.id[1:]) for r in await store.scan(scope, "memory", limit=10**6)]
        count = await store.read(scope, "note", ["count"])
        assert memories == list(range(place, place + 2 * len(memories), 2)), "a batch is missing"
        assert [r.data["n"] for r in count] == memories[-1:], "a batch is there by half"
        vectors = (await loaded(store, scope)).vectors
        assert vectors == {row: unit(n).tobytes() for row, n in enumerate(memories)}, "a vector was lost"
        latest += memories[-1:]
    return max(latest, default=-1)


@pytest.mark.crash
async def test_a_process_killed_at_any_time_loses_no_acknowledged_write(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    acknowledged = unheard = 0
    start = 0
    print(f"seed {seed}")
    for _ in range(ROUNDS):
        last = await asyncio.to_thread(killed_at_random, tmp_path, "write", start, dice)
        async with opened(FilesStore(tmp_path)) as store:
            found = await numbers(store)
        assert found in {last, last + 1}, f"{last} was acknowledged, {found} is there (seed {seed})"
        assert not list(tmp_path.rglob("*.tmp"))
        acknowledged += last + 1 - start
        unheard += found - last
        start = found + 1
    print(f"{ROUNDS} kills, {acknowledged} acknowledged, {unheard} more kept, 0 lost, 0 halves")
    assert acknowledged > ROUNDS


@pytest.mark.crash
async def test_writing_in_place_loses_or_halves_what_was_acknowledged(tmp_path: Path) -> None:
    """The control: with a write that is not atomic the same test fails."""
    dice = random.Random(7)
    async with opened(FilesStore(tmp_path)) as store:  # large enough that writing takes a while
        for place, scope in enumerate(child.USERS):
            filler = [put(memory(f"m{n}", "tea" * 2000)) for n in range(place, 200, 2)]
            await store.write(scope, [*filler, put(note("count", n=198 + place))])
    start = 200
    for _ in range(4 * ROUNDS):
        last = await asyncio.to_thread(killed_at_random, tmp_path, "in-place", start, dice, within_s=0.02)
        try:
            async with opened(FilesStore(tmp_path)) as store:
                found = [(await store.read(scope, "note", ["count"]))[0].data["n"] for scope in child.USERS]
        except StoreCorrupt:
            return
        if max(found) < last:
            return
        start = max(found) + 1
    pytest.fail("nothing was ever lost or halved, so this test proves nothing")


async def test_no_update_is_lost_between_processes(tmp_path: Path) -> None:
    def run() -> None:
        with process(tmp_path, "count", 40) as first, process(tmp_path, "count", 40) as second:
            assert [p.wait(60) for p in (first, second)] == [0, 0]

    async with opened(FilesStore(tmp_path)) as store:
        counting = asyncio.ensure_future(asyncio.to_thread(run))
        seen = 0
        while not counting.done():
            for record in await store.read(ANA, "note", ["n"]):
                assert record.data["n"] >= seen, "time ran backwards"
                seen = record.data["n"]
        await counting
        assert [(r.data["n"], r.version) for r in await store.read(ANA, "note", ["n"])] == [(80, 80)]


async def test_what_another_process_writes_is_loaded_at_once(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.load(child.USERS[0])

        def written(running: subprocess.Popen[bytes]) -> int:
            assert running.stdout is not None
            return int(running.stdout.readline())

        with process(tmp_path, "write") as running:
            for _ in range(20):
                n = await asyncio.to_thread(written, running)
                scope = child.USERS[n % 2]
                assert [r.id for r in await store.read(scope, "memory", [f"m{n}"])] == [f"m{n}"]
                assert n // 2 in (await loaded(store, scope)).vectors


async def test_a_lock_that_is_held_is_waited_for_and_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_disk, "LOCK_TIMEOUT_S", 0.2)
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(note("n", n=1))])
        with process(tmp_path, "hold") as holder:
            with pytest.raises(StoreUnavailable, match=r"another process holds.*ana\.lock"):
                await store.write(ANA, [put(note("n", n=2))])
            assert [r.data["n"] for r in await store.read(ANA, "note", ["n"])] == [1], "reads need no lock"
            await store.write(Scope("acme", "bob"), [put(note("n", n=3))])
            holder.kill()
            holder.wait()
        await store.write(ANA, [put(note("n", n=2))])  # who dies lets go
        assert [r.data["n"] for r in await store.read(ANA, "note", ["n"])] == [2]


async def test_a_waiting_writer_goes_on_as_soon_as_the_holder_dies(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(note("n", n=1))])
        with process(tmp_path, "hold") as holder:
            writing = [asyncio.ensure_future(store.write(ANA, [put(note(f"n{n}"))])) for n in range(5)]
            await asyncio.sleep(0.05)
            assert not any(write.done() for write in writing)
            holder.kill()
            holder.wait()
            await asyncio.gather(*writing)
        assert len(await store.scan(ANA, "note")) == 6


async def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(note("n"))])
    folder = tmp_path / "acme"
    (folder / ".ana.json.0123abcd.tmp").write_text("half a fi")
    (folder / ".bob.json.0123abcd.tmp").write_text("half a fi")
    with process(tmp_path, "hold"):
        async with opened(FilesStore(tmp_path)):
            left = [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]
            assert left == [".ana.json.0123abcd.tmp"], "its writer lives: it holds the lock"
    async with opened(FilesStore(tmp_path)) as store:
        assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
        assert await store.scopes() == [ANA]


async def test_a_file_that_may_grow_no_more_is_a_full_store(tmp_path: Path) -> None:
    def filled() -> list[str]:
        with process(tmp_path, "fill", 20_000) as running:
            assert running.stdout is not None
            said = running.stdout.read().decode().splitlines()
            assert running.wait(30) == 0
            return said

    full, reads, resumed = await asyncio.to_thread(filled)
    word, count, message = full.split(" ", 2)
    assert (word, resumed) == ("full", "resumed")
    assert int(count) > 10
    assert reads == f"reads {count}", "the old content was not intact"
    assert "ana.json" in message
    assert "free some" in message
    async with opened(FilesStore(tmp_path)) as store:
        assert [r.data["n"] for r in await store.read(ANA, "note", ["n"])] == [-1]
        assert len(await store.scan(ANA, "memory")) == int(count)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with 256 KiB on it."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def test_a_full_disk_is_told_and_got_over(small_disk: Path) -> None:
    async with opened(FilesStore(small_disk)) as store:
        await store.write(ANA, [put(memory("a", "likes tea"))])
        await store.write(ANA, [attach(r, 1) for r in await store.scan(ANA, "memory")])
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(150_000))
        written = 0
        with pytest.raises(StoreFull, match=r"no space left.*ana\.json"):  # noqa: PT012 - the last of many
            for _ in range(200):
                await store.write(ANA, [put(memory(f"m{written}", "likes tea " * 200))])
                written += 1
        assert 0 < written < 200
        records = await everything(store, ANA)
        assert len(records) == written + 1
        assert await loaded(store, ANA) == expected(records, {("memory", "a"): unit(1)})
        assert (await store.check())["records"] == written + 1
        ballast.unlink()
        await store.write(ANA, [put(memory("last", "likes rain"))])
        assert [told(r) for r in await everything(store, ANA)][:-1] == [told(r) for r in records]


async def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("a file where a folder should be")
    async with opened(FilesStore(tmp_path)) as store:
        with pytest.raises(StoreUnavailable, match="acme"):
            await store.write(ANA, [put(note("n"))])
        assert await store.read(ANA, "note", ["n"]) == []
        assert (await store.check())["writable"] is True
        await store.write(Scope("other", "ana"), [put(note("n"))])
    with pytest.raises(StoreUnavailable, match="below"):
        await FilesStore(tmp_path / "acme" / "below").open(SPEC, index)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to this user")
async def test_a_folder_that_may_not_be_written_is_told_by_check(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        tmp_path.chmod(0o500)
        try:
            facts = await store.check()
            assert (facts["writable"], str(tmp_path) in facts["failure"]) == (False, True)
        finally:
            tmp_path.chmod(0o700)
