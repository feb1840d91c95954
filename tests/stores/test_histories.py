from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, core, settings

from echoic.errors import WriteConflict
from echoic.partition import Flag
from echoic.stores import store_from
from echoic.stores.base import Attach, Change, Drop, Erasable, Erased, Put, Waiting
from echoic.stores.files import FilesStore
from echoic.stores.files.scope import ScopeFiles
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing import random_histories
from echoic.testing.store_histories import SETTINGS, Make
from echoic.types import Scope
from scale import many
from stores import mongodb_server, postgres_server

pytestmark = pytest.mark.histories
HOW = settings(SETTINGS, max_examples=many(SETTINGS.max_examples))
CONTROL = settings(SETTINGS, max_examples=6, phases=[Phase.generate], print_blob=False)

TestInMemoryHistories = random_histories(lambda _: InMemoryStore(), instances=1, lasts=False, how=HOW)
TestSQLiteHistories = random_histories(lambda folder: SQLiteStore(folder / "echoic.db"), how=HOW)
TestJsonFilesHistories = random_histories(FilesStore, how=HOW)
TestMarkdownFilesHistories = random_histories(lambda folder: FilesStore(folder, "markdown"), how=HOW)
# a folder stands for a schema: its name is as good as any
TestPostgresHistories = random_histories(
    lambda folder: store_from(postgres_server.shared().url(f"h{folder.name[-8:].lower().replace('-', '_')}")),
    how=HOW,
)
TestMongoDBHistories = random_histories(
    lambda folder: store_from(mongodb_server.patient(mongodb_server.url(folder.name))),
    how=HOW,
)


class LeavesARowBehind(InMemoryStore):
    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        held = self._held(scope)
        if changes is None and held is not None and held.records:
            changes = [Drop(kind=kind, id=name) for kind, name in list(held.records)[:-1]]
        return await super().erase(scope, changes)


class LosesTheVectorFlag(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        held = self._held(scope)
        if held is not None and any(isinstance(change, Put) for change in changes):
            for segment in held._segments.values():
                segment.rows["flags"] &= 0xFF ^ int(Flag.EMBEDDED)
            held._patch(set(held._segments))


class KeepsAVectorOfOtherWords(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        held = self._held(scope)
        for change in changes:
            if isinstance(change, Attach) and held and (change.kind, change.id) in held.records:
                version = held.records[change.kind, change.id].version
                await super().write(
                    scope, [Attach(kind=change.kind, id=change.id, version=version, vector=change.vector)]
                )


class WritesHalfABatch(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        for change in changes:
            await super().write(scope, [change])


class IgnoresExpectations(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        try:
            await super().write(scope, changes)
        except WriteConflict:
            return


class ForgetsAWord(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        held = self._held(scope)
        if held is not None and 0 in held._segments and len(held._segments[0].slots):
            segment = held._segments[0]
            segment.slots, segment.which = segment.slots[:-1], segment.which[:-1]
            segment.counts = segment.counts[:-1]
            held._patch({0})


class ServesTheLatestComersFirst(InMemoryStore):
    async def waiting(self, limit: int) -> list[Waiting]:
        return (await super().waiting(1 << 30))[::-1][:limit]


@pytest.mark.parametrize(
    "faulty",
    [
        LeavesARowBehind,
        LosesTheVectorFlag,
        KeepsAVectorOfOtherWords,
        WritesHalfABatch,
        IgnoresExpectations,
        ForgetsAWord,
        ServesTheLatestComersFirst,
    ],
)
def test_a_planted_fault_is_found(faulty: type[InMemoryStore], monkeypatch: pytest.MonkeyPatch) -> None:
    _found(lambda _: faulty(), monkeypatch, instances=1, lasts=False)


def test_an_instance_that_does_not_look_at_the_files_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    look = ScopeFiles._look
    monkeypatch.setattr(ScopeFiles, "_look", lambda self: self._states if self._held else look(self))
    _found(FilesStore, monkeypatch)


def _found(make: Make, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """A few histories from one seed after another find it sooner than many from one: the first ones are plain."""
    for seed in range(50):
        monkeypatch.setattr(core, "global_force_seed", seed)
        try:
            random_histories(make, how=CONTROL, **options)("runTest").debug()
        except (AssertionError, ExceptionGroup):
            return
    pytest.fail("300 histories did not find it")
