"""Every operation on the disk is once the last, once one that fails: what was acknowledged is there, and
nothing is there by half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from echoic.errors import StoreCorrupt, StoreFull, StoreUnavailable
from echoic.stores.base import Attach, Change, Drop
from echoic.stores.files import FilesStore
from echoic.stores.files import disk as files_disk
from echoic.stores.in_memory import InMemoryStore
from echoic.testing.store_histories import (
    SPEC,
    PartitionContent,
    everything,
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
from stores.faults import Died, Disk, Fault, broken, dead, full

ANA, BOB = Scope("default", "ana"), Scope("acme", None)
Step = tuple[Scope, Sequence[Change] | None]
"""Changes to write; or None: all is erased; or only drops: they are erased."""


def vector(name: str, version: int, seed: int) -> Attach:
    return Attach(kind="memory", id=name, version=version, vector=unit(seed))


STEPS: list[Step] = [
    (ANA, [put(memory(f"m{n}", f"likes number {n}")) for n in range(3)]),
    (ANA, [vector(f"m{n}", 1, n) for n in range(3)]),
    (BOB, [put(memory("b", "everyone's")), vector("b", 1, 5), put(note("n", n=1))]),
    (ANA, [put(memory("m0", "likes something else")), put(note("n", n=1))]),
    (ANA, [put(memory("m1", "likes yet another")), vector("m1", 2, 7), Drop(kind="memory", id="m2")]),
    (ANA, [Drop(kind="memory", id="m0"), Drop(kind="note", id="n")]),
    (BOB, None),
    (BOB, [put(memory("b", "begun anew"))]),
]


def is_erasure(step: Step) -> bool:
    return step[1] is None or all(isinstance(change, Drop) for change in step[1])


async def perform(store: FilesStore | InMemoryStore, step: Step) -> None:
    scope, changes = step
    if is_erasure(step):
        assert (await store.erase(scope, changes)).verified
    else:
        await store.write(scope, changes)


@dataclass(frozen=True)
class State:
    """All that is to be seen of one scope."""

    records: tuple[tuple[str, str, str | None, int, int, str], ...]
    content: PartitionContent

    def is_a_state_of(self, other: State) -> bool:
        """Whether it is `other`, or `other` with vectors that are still to come."""
        mine = {row: fields[:1] + fields[2:] for row, fields in self.content.rows.items()}
        whole = {row: fields[:1] + fields[2:] for row, fields in other.content.rows.items()}
        vectors = self.content.vectors.items() <= other.content.vectors.items()
        return (
            self.records == other.records
            and mine == whole
            and vectors
            and self.content.postings == other.content.postings
        )


async def seen(store: FilesStore | InMemoryStore) -> dict[Scope, State]:
    return {
        scope: State(tuple(told(r) for r in await everything(store, scope)), await loaded(store, scope))
        for scope in (ANA, BOB)
    }


async def states() -> list[dict[Scope, State]]:
    """What there is to be seen before the first step and after each."""
    async with opened(InMemoryStore()) as store:
        found = [await seen(store)]
        for step in STEPS:
            await perform(store, step)
            found.append(await seen(store))
        return found


async def acknowledged(folder: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps were, until one failed."""
    store = FilesStore(folder)
    first, disk.first = disk.first, 1 << 62
    with monkeypatch.context() as patch:
        patch.setattr(files_disk, "os", disk)
        await store.open(SPEC, index)
        disk.operations.clear()
        disk.first = first
        for done, step in enumerate(STEPS):
            try:
                await perform(store, step)
            except (Died, StoreUnavailable):
                return done
        await store.aclose()
    return len(STEPS)


async def check(folder: Path, wanted: list[dict[Scope, State]], done: int, where: str) -> None:
    happened = False
    async with opened(FilesStore(folder)) as store:
        found = await seen(store)
        for scope in (ANA, BOB):
            if done < len(STEPS) and STEPS[done][0] == scope:
                before, after = wanted[done][scope], wanted[done + 1][scope]
                happened = found[scope].is_a_state_of(after)
                assert happened or found[scope].is_a_state_of(before), where
                lost = set(before.content.vectors) & set(after.content.vectors) - set(
                    found[scope].content.vectors
                )
                assert all(before.content.vectors[n] != after.content.vectors[n] for n in lost), where
            else:
                assert found[scope] == wanted[done][scope], where
        assert not list(folder.rglob("*.tmp")), f"a leftover was not removed, {where}"
        for step in STEPS[done + happened :]:
            await perform(store, step)
        assert await seen(store) == wanted[-1], where


async def dry_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    disk = Disk(folder)
    assert await acknowledged(folder, disk, monkeypatch) == len(STEPS)
    return disk.operations


@pytest.mark.crash
async def test_dying_at_any_operation_loses_nothing_and_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = await states()
    operations = await dry_run(tmp_path / "dry", monkeypatch)
    assert {"create", "write", "sync", "replace", "rename", "unlink", "date"} <= set(operations)
    for number in range(1, len(operations) + 1):
        folder = tmp_path / str(number)
        done = await acknowledged(folder, Disk(folder, first=number, fault=dead), monkeypatch)
        await check(folder, wanted, done, f"died at {number}, {operations[number - 1]}")
    print(f"{len(operations)} points of death, 0 acknowledged steps lost, 0 halves")


async def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: range, **syncs: bool) -> None:
    """Cut the power at each of `points`, and look what there is."""
    wanted = await states()
    for number in points:
        folder, found = tmp_path / str(number), tmp_path / f"{number} found"
        disk = Disk(folder, number, **syncs)
        done = await acknowledged(folder, disk, monkeypatch)
        disk.after_a_power_cut(folder, found)
        await check(found, wanted, done, f"power cut at {number}")


@pytest.mark.crash
async def test_a_power_cut_at_any_operation_loses_nothing_and_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = range(1, len(await dry_run(tmp_path / "dry", monkeypatch)) + 2)
    await cut(tmp_path, monkeypatch, points)
    print(f"{len(points)} power cuts, 0 acknowledged steps lost, 0 halves")


@pytest.mark.crash
@pytest.mark.parametrize("left_out", ["syncs_files", "syncs_folders"])
async def test_a_sync_that_is_left_out_loses_something_at_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    points = range(1, len(await dry_run(tmp_path / "dry", monkeypatch)) + 2)
    await cut(tmp_path / "whole", monkeypatch, points[-1:])
    with pytest.raises((AssertionError, StoreCorrupt)):
        await cut(tmp_path, monkeypatch, points[-1:], **{left_out: False})


@pytest.mark.parametrize(("fault", "error"), [(broken, StoreUnavailable), (full, StoreFull)])
@pytest.mark.parametrize("once", [True, False])
async def test_a_disk_that_fails_at_any_operation_leaves_the_old_content_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, error: type[StoreUnavailable], once: bool
) -> None:
    wanted = await states()
    operations = await dry_run(tmp_path / "dry", monkeypatch)
    failed = 0
    for number in range(1, len(operations) + 1, 1 if once else 3):
        folder = tmp_path / str(number)
        disk = Disk(folder, number, number if once else 1 << 62, fault)
        async with opened(FilesStore(folder)) as store:
            with monkeypatch.context() as patch:
                patch.setattr(files_disk, "os", disk)
                done = 0
                try:
                    for step in STEPS:
                        await perform(store, step)
                        done += 1
                except StoreUnavailable as raised:
                    failed += 1
                    assert isinstance(raised, error)
                reads = await seen(store)  # reads go on while the disk is as it is
            where = f"{fault.__name__} at {number}, {operations[number - 1]}"
            for scope in (ANA, BOB):
                assert any(reads[scope].is_a_state_of(state[scope]) for state in wanted[done : done + 2]), (
                    where
                )
            happened = reads != wanted[done] and all(
                reads[scope].records == wanted[done + 1][scope].records for scope in (ANA, BOB)
            )
            if done < len(STEPS) and is_erasure(STEPS[done]):
                await perform(store, STEPS[done])  # may always be asked for again, and then leaves nothing
                happened = True
            for step in STEPS[done + happened :]:
                await perform(store, step)
            assert {scope: state.records for scope, state in (await seen(store)).items()} == {
                scope: state.records for scope, state in wanted[-1].items()
            }, where
    assert failed > len(operations) / 4, "too few operations mattered for this to prove anything"
