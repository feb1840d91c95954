"""An erasure that a fault or a death cut short is no success, and the next one leaves nothing of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from durability import controls
from durability.consistency import check_consistent
from durability.workload import SPEC, index, vector
from echoic.errors import StoreUnavailable
from echoic.stores.base import Attach, Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.types import Scope
from echoic_loopback.disks import Disk, Fault, Operation, broken, full, nothing

GONE, STAYS = Scope("acme", "Zbigniew"), Scope("acme", "Eudora")
SECRETS = tuple(f"Wrzeszczyński {number} has the quixotic code {number * 7919}" for number in range(30))
NEEDLES = ("wrzeszczynski", "Wrzeszczyński", "quixotic", "Zbigniew", "KSTK")


async def filled(path: Path, seed: int) -> None:
    """Two users, closed; one of them said things that nobody else said."""
    rng = Random(seed)
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    for number, secret in enumerate(SECRETS):
        for scope, text in ((GONE, secret), (STAYS, f"likes marmalade, jar {number}")):
            name = f"{scope.user}-{number}"
            await store.write(scope, [Put(record=Record(kind="memory", id=name, data={"text": text}))])
            attach = Attach(kind="memory", id=name, version=1, vector=vector(rng))
            await store.write(scope, [attach])
    await store.aclose()


def copied(source: Path, target: Path) -> Path:
    """The files as they are at this moment, as after a kill; the lock aside. Copied by another process."""
    target.mkdir()
    files = [str(file) for file in source.parent.glob("a.db*") if not file.name.endswith(("-lock", "-shm"))]
    subprocess.run(["cp", *files, str(target)], check=True)
    return target / "a.db"


def left(path: Path) -> list[str]:
    """What of the one who went is still in a file."""
    copy = copied(path, path.parent / "copy")
    content = b"".join(file.read_bytes() for file in copy.parent.iterdir())
    shutil.rmtree(copy.parent)
    return [needle for needle in NEEDLES if needle.encode() in content]


async def gone_after_retry(store: SQLiteStore, path: Path) -> list[str]:
    """Erase once more; what is left although the receipt says that nothing is."""
    receipt = await store.erase(GONE)
    assert receipt.verified
    remains = left(path)
    await store.aclose()
    held = check_consistent(path)
    assert GONE not in held
    assert len(held[STAYS]) == len(SECRETS)
    return remains


def from_the(number: int, fault: Fault) -> Callable[[Operation], Fault | None]:
    return lambda operation: fault if operation.number >= number else None


async def cut_short(
    folder: Path, source: Path, fault: Fault, number: int
) -> tuple[bool, list[str], list[str]]:
    """An erasure on a disk that fails after `number` operations of it.

    Returns:
        whether it failed; what was left after it was asked for again once the disk was well, and after it was
        asked for by who found the files as they were when it failed.
    """
    path = copied(source, folder)
    disk = Disk()
    store = SQLiteStore(path, vfs=disk.name)
    await store.open(SPEC, index)
    disk.plan = from_the(disk.operations + number, fault)
    try:
        await store.erase(GONE)
    except StoreUnavailable:
        pass
    else:
        remains = left(path)
        await store.aclose()
        return False, remains, []
    orphan = copied(path, folder / "orphan")
    disk.plan = nothing
    healed = await gone_after_retry(store, path)
    heir = SQLiteStore(orphan)
    await heir.open(SPEC, index)
    return True, healed, await gone_after_retry(heir, orphan)


@pytest.fixture
def source(scratch: Path, seed: int) -> Path:
    asyncio.run(filled(scratch / "a.db", seed))
    assert left(scratch / "a.db") == list(NEEDLES)
    return scratch / "a.db"


@pytest.mark.parametrize("fault", [full, broken])
async def test_an_erasure_cut_short_anywhere_is_finished_by_the_next(
    source: Path, scratch: Path, fault: Fault, tally: Callable[[str], None]
) -> None:
    failed, number = True, 0
    while failed:
        number += 1
        failed, healed, inherited = await cut_short(scratch / str(number), source, fault, number)
        assert (healed, inherited) == ([], []), number
    tally(f"cut short at each of {number - 1} operations, nothing left after the next")
    assert number > 20


async def test_control_an_erasure_that_leaves_no_mark_is_taken_for_finished(
    source: Path, scratch: Path, tally: Callable[[str], None]
) -> None:
    real = sqlite_schema.get_meta

    def forgetful(connection: Any, name: str) -> str | None:
        return None if name == "unfinished erasure" else real(connection, name)

    with controls.replaced(sqlite_schema, "get_meta", forgetful):
        came = [await cut_short(scratch / str(number), source, broken, number) for number in range(5, 30, 3)]
    bad = sum(bool(healed or inherited) for _, healed, inherited in came)
    tally(f"{bad} of {len(came)} receipts said verified over bytes that were there")
    assert bad
