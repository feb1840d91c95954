"""What a store does for one more record does not grow with what it holds. Counted in steps, never in time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from echoic.embedding import LexicalEmbedder
from echoic.memory.service import MemoryService
from echoic.stores import in_memory, scope_state
from echoic.stores.base import Attach, Drop, Store
from echoic.stores.files import FilesStore
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.scope_state import HeldScope
from echoic.testing.store_histories import SPEC, attach, index, memory, note, opened, put, unit
from echoic.types import Scope, Turn

ANA = Scope("acme", "ana")
FEW, MANY = 64, 1024
_MEASURED = {scope_state.__file__, in_memory.__file__}


class Steps:
    """Counts the instructions that the two stores run, in every thread begun while it is watched."""

    def __init__(self) -> None:
        self.counts = False
        self.count = 0

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "call":
            code = frame.f_code
            # what is listed of all conversations is made once in a while, beside what is held of one
            if code.co_filename not in _MEASURED or code.co_qualname.startswith(("Listings", "ScopeCache")):
                return None
            frame.f_trace_opcodes = True
        elif event == "opcode" and self.counts:
            self.count += 1
        return self._trace

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = sys.gettrace()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]

    @contextmanager
    def counted(self) -> Iterator[None]:
        self.count, self.counts = 0, True
        try:
            yield
        finally:
            self.counts = False


@pytest.fixture(params=["memory", "files"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    count = iter(range(9))
    return {"memory": InMemoryStore, "files": lambda: FilesStore(tmp_path / str(next(count)))}[request.param]


async def filled(store: Store, records: int, *, embedded: bool = True) -> None:
    written = [memory(f"m{n}", f"text {n}", key=f"c{n % 8}") for n in range(records)]
    await store.write(ANA, [put(record) for record in written])
    await store.write(ANA, [put(note(f"n{n}")) for n in range(records)])
    if embedded:
        vectors = [Attach(kind="memory", id=r.id, version=1, vector=unit(1), tokens=None) for r in written]
        await store.write(ANA, vectors)


async def one_more(store: Store, *, embedded: bool) -> None:
    """What follows on one sentence: it is written, read back, searched for and embedded."""
    last = (await store.scan(ANA, "memory", key="c1", limit=1, newest_first=True))[0]
    await store.write(ANA, [put(memory("new", "one more", key="c1")), put(note("cursor"))])
    assert [r.id for r in await store.scan(ANA, "memory", key="c1", after=last.seq, limit=4)] == ["new"]
    waiting = await store.waiting(8)
    assert len(waiting) == (1 if embedded else 8)
    await store.write(ANA, [attach(one.record) for one in waiting])
    assert bool(await store.waiting(8)) is not embedded
    assert await store.rows(ANA, [last.seq])
    await store.load(ANA)
    await store.write(ANA, [Drop(kind="memory", id="new")])


async def steps_of(store: Store, records: int, *, embedded: bool) -> int:
    steps = Steps()
    with steps.watched():
        async with opened(store):
            await filled(store, records, embedded=embedded)
            await store.waiting(8)
            with steps.counted():
                await one_more(store, embedded=embedded)
    assert steps.count > 100, "nothing was counted"
    return steps.count


@pytest.mark.parametrize("embedded", [True, False], ids=["at rest", "behind a backlog"])
async def test_one_more_record_is_as_much_work_in_a_large_store_as_in_a_small_one(
    make: Any, embedded: bool
) -> None:
    few = await steps_of(make(), FEW, embedded=embedded)
    many = await steps_of(make(), MANY, embedded=embedded)
    assert many < 1.5 * few, f"{few} steps among {FEW} records, {many} among {MANY}"


async def test_what_waits_is_found_without_looking_at_other_users() -> None:
    async def count(users: int) -> int:
        steps = Steps()
        with steps.watched():
            async with opened(InMemoryStore()) as store:
                for n in range(users):
                    await store.write(Scope("acme", f"user {n}"), [put(memory("m", f"text {n}"))])
                with steps.counted():
                    assert len(await store.waiting(8)) == 8
        return steps.count

    assert await count(512) < 1.5 * await count(32)


async def test_one_more_sentence_is_as_much_work_late_in_memory_as_early() -> None:
    """The same from above: a turn is appended, listened to and embedded."""

    async def count(turns: int) -> int:
        steps = Steps()
        async with MemoryService(InMemoryStore(), LexicalEmbedder()) as service:
            call = await service.user("ana").conversation("c")
            said = "so the weather is nice again today"
            await call.append(*(Turn(speaker="user", text=f"{said} {n}") for n in range(turns)))
            await call.learn()
            assert await service.settle(60)
            with steps.watched(), steps.counted():
                await call.append(Turn(speaker="user", text="and I had soup for lunch"))
                await call.learn()
                assert await service.settle(60)
        return steps.count

    few, many = await count(FEW), await count(MANY)
    assert many < 1.5 * few, f"{few} steps after {FEW} turns, {many} after {MANY}"


def test_what_waits_is_known_whatever_becomes_of_it() -> None:
    """Said anew, taken back, embedded, detached: those that wait are always those without a vector."""
    clock = iter(range(1000)).__next__
    scope = HeldScope(ANA, index, SPEC.dimensions, clock)

    def waiting() -> list[str]:
        found = [waits.record.id for _, waits in scope.queue.first(99)]
        assert len(found) == len(scope.queue)
        return found

    def apply(*changes: Any) -> list[str]:
        scope.commit(scope.stage(changes))
        return waiting()

    def now(name: str) -> Any:
        return attach(scope.read("memory", [name])[0])

    assert apply(*(put(memory(name)) for name in "abc")) == ["a", "b", "c"]
    assert apply(now("b")) == ["a", "c"]
    assert apply(put(memory("a", "said anew"))) == ["a", "c"], "who waits already keeps its place"
    assert apply(put(memory("b", "said anew"))) == ["a", "c", "b"]
    assert apply(put(memory("b", "said anew", key="k"))) == ["a", "c", "b"]
    assert apply(Drop(kind="memory", id="a")) == ["c", "b"]
    assert apply(now("c"), put(note("n"))) == ["b"]
    assert apply(now("b")) == []
    assert apply(put(memory("b", "said anew", key="other"))) == [], "the same words keep their vector"
    assert scope.detach_all(SPEC.dimensions) == 2
    assert waiting() == ["c", "b"]
