"""From one store into another: all of it, in its order, and only what is missing."""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import echoic
import forked
from echoic.errors import EmbeddingMismatch, InvalidInput, StoreCorrupt, StoreUnavailable, WriteConflict
from echoic.memory import checkpoints
from echoic.memory.erasure import KINDS
from echoic.memory.export import copy_memory
from echoic.memory.service import MemoryService
from echoic.session import call_record
from echoic.stores import store_from
from echoic.stores.base import FIRST_UNSEARCHABLE, Change, Drop, Put, Record, Store
from echoic.stores.bulk_copy import copy_store, copy_while_written
from echoic.stores.in_memory import InMemoryStore
from echoic.testing.store_histories import (
    ANA,
    OTHER_SPEC,
    SPEC,
    PartitionContent,
    attach,
    everything,
    loaded,
    memory,
    note,
    opened,
    put,
    told,
)
from echoic.types import EmbeddingSpec, Scope, Turn
from scale import some
from stores import mongodb_server, postgres_server

BOB, EVERYONE = Scope("acme", "bob"), Scope("acme", None)
SCOPES = (ANA, EVERYONE, BOB, Scope("other", "ana"))
NOTES = ("note",)
CHILD = Path(__file__).with_name("copying_child.py")
Make = Callable[[Path], str]
URLS: dict[str, Make] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/echoic.db",
    "files": lambda folder: f"files:///{folder}/people",
    "markdown": lambda folder: f"files:///{folder}/notes?format=markdown",
    "postgres": lambda _: postgres_server.shared().url(),
    "mongodb": lambda _: mongodb_server.patient(mongodb_server.url()),
}


async def fill(store: Store, *, count: int = 60, seed: int = 7) -> None:
    """Scopes with all there is: corrections, gaps at the beginning and within, vectors and what waits."""
    draw = random.Random(seed)
    for number, scope in enumerate(SCOPES):
        for first in range(0, count, 10):
            names = range(first, first + 10)
            await store.write(
                scope, [put(memory(f"m{n}", f"likes number {n}", key=f"k{n % 4}")) for n in names]
            )
            await store.write(
                scope, [put(note(f"n{n}", n=n, part=1.0, of=[None, {"é": "🦜"}])) for n in names]
            )
        drops = [Drop(kind="memory", id=f"m{n}") for n in draw.sample(range(1, count - 1), count // 4)]
        drops += [Drop(kind="note", id=f"n{n}") for n in (0, 1, 2, count // 2)]
        await store.write(scope, [*drops, *([Drop(kind="memory", id="m0")] if number == 1 else [])])
        await store.write(
            scope, [put(memory("m59", "likes another", past=True)), put(note("n3", again=True))]
        )
        records = await store.scan(scope, "memory")
        await store.write(scope, [attach(record, record.seq) for record in records if record.seq % 3])


async def content(store: Store) -> dict[Scope, tuple[list[Any], PartitionContent]]:
    """All of it but how often each record was written."""
    return {
        scope: (
            [told(replace(record, version=0)) for record in await everything(store, scope)],
            await loaded(store, scope),
        )
        for scope in await store.scopes()
    }


async def copied(source: Store, target: Store, *, vectors: bool = True) -> Any:
    return await copy_store(source, target, NOTES, vectors=vectors)


async def test_everything_is_the_same_from_store_to_store_to_store(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        held: Store = await stack.enter_async_context(opened(InMemoryStore()))
        await fill(held)
        wanted = await content(held)
        size = sum(len(records) for records, _ in wanted.values())
        for number, name in enumerate(["sqlite", "postgres", "files", "mongodb", "markdown", "sqlite"]):
            folder = tmp_path / str(number)
            folder.mkdir()
            url = URLS[name](folder)
            async with opened(store_from(url)) as target:
                done = await copied(held, target)
                assert (done.new, done.records) == (size, size)
                assert await content(target) == wanted
                again = await copied(held, target)
                assert (again.new, again.records) == (0, size)
            assert await content(held) == wanted
            # what is copied on is what another instance reads
            held = await stack.enter_async_context(opened(store_from(url)))
        assert await content(held) == wanted


class _Cut(InMemoryStore):
    """Is gone at its `at`-th write, before or after it happened."""

    def __init__(self, at: int, *, after: bool) -> None:
        super().__init__()
        self.left, self.after = at, after

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise StoreUnavailable("cut")
        await super().write(scope, changes)
        if self.left == 0:
            raise StoreUnavailable("cut")


@pytest.mark.histories
@pytest.mark.parametrize("after", [False, True])
async def test_cut_at_any_write_the_next_run_copies_exactly_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("echoic.stores.bulk_copy.PAGE", 8)
    async with opened(InMemoryStore()) as source:
        await fill(source, count=30)
        wanted = await content(source)
        size = sum(len(records) for records, _ in wanted.values())
        async with opened(_Cut(-1, after=after)) as whole:
            await copied(source, whole)
        writes = -1 - whole.left
        assert writes > 20, "nothing was cut"
        for at in some(range(1, writes + 1), least=12):
            async with opened(_Cut(at, after=after)) as target:
                with pytest.raises(StoreUnavailable):
                    await copied(source, target)
                there = sum(len(records) for records, _ in (await content(target)).values())
                done = await copied(source, target)
                assert (done.new, done.records) == (size - there, size)
                assert await content(target) == wanted


@pytest.mark.crash
@pytest.mark.parametrize("kind", ["sqlite", "files", "postgres"])
def test_killed_again_and_again_it_comes_to_its_end(tmp_path: Path, kind: str) -> None:
    source, target = f"sqlite:///{tmp_path}/source.db", URLS[kind](tmp_path)
    assert _child("fill", source)[-1] == "done"
    pages = 0
    for life in range(3):
        said = _child("copy", source, target, killed_after=1 + life)
        assert said[-1] != "done", "it was killed too late"
        pages += len(said)
    assert pages >= 3
    *_, new, done = _child("copy", source, target)
    assert done == "done"
    assert 0 < int(new.split()[1]) <= 2500 - 200 * pages, "more was written than was missing"
    assert _child("same", source, target)[-1] == "done"


def _child(*words: str, killed_after: int | None = None) -> list[str]:
    """What it said, a line for each page, until it ended or was killed."""
    process = forked.Popen(
        [sys.executable, str(CHILD), *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    said = []
    with process, process.stdout:
        for line in process.stdout:
            said.append(line.strip())
            if killed_after is not None and len(said) == killed_after:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == (0 if killed_after is None else -signal.SIGKILL)
    return said


async def test_a_target_that_holds_something_else_of_somebody_is_refused_untouched() -> None:
    for change in (
        put(memory("m0", "likes coffee")),
        put(memory("added", "likes cake")),
        put(note("n59", n=0)),
        Drop(kind="memory", id="m59"),
        None,
        Drop(kind="note", id="n5"),
    ):
        async with opened(InMemoryStore()) as source, opened(InMemoryStore()) as target:
            await fill(source)
            await copied(source, target)
            await source.write(Scope("late", "eve"), [put(memory("a"))])
            within = Drop(kind="memory", id=(await target.scan(BOB, "memory"))[1].id)
            await target.write(BOB, [within if change is None else change])
            before = await content(target)
            if change == Drop(kind="memory", id="m59"):  # the last row: what is there is the beginning
                with pytest.raises(WriteConflict, match="was erased"):
                    await copied(source, target)
                assert {s: c for s, c in (await content(target)).items() if s.deployment != "late"} == before
                continue
            with pytest.raises(InvalidInput, match="user 'bob' of deployment 'acme'") as refused:
                await copied(source, target)
            assert "likes" not in str(refused.value)
            assert await content(target) == before


async def test_what_the_target_holds_of_others_stays() -> None:
    async with opened(InMemoryStore()) as source, opened(InMemoryStore()) as target:
        await fill(source)
        await target.write(Scope("acme", "zoe"), [put(memory("a")), put(note("n"))])
        before = await content(target)
        await copied(source, target)
        assert await content(target) == {**before, **await content(source)}


async def test_vectors_of_another_model_stay_behind_and_the_records_wait() -> None:
    async with opened(InMemoryStore()) as source, opened(InMemoryStore(), OTHER_SPEC) as target:
        await fill(source)
        done = await copied(source, target, vectors=False)
        searchable = sum([len(await source.scan(scope, "memory")) for scope in SCOPES])
        assert (done.vectors, done.waiting) == (0, searchable)
        assert len(await target.waiting(1000)) == searchable
        for scope in SCOPES:
            assert (await loaded(target, scope)).postings == (await loaded(source, scope)).postings


async def test_vectors_made_after_a_record_was_copied_follow() -> None:
    async with opened(InMemoryStore()) as source, opened(InMemoryStore()) as target:
        await fill(source)
        await copied(source, target)
        waiting = await source.waiting(1000)
        for one in waiting:
            await source.write(one.scope, [attach(one.record, 3)])
        done = await copied(source, target)
        assert (done.new, done.waiting) == (0, 0)
        assert waiting
        assert await content(target) == await content(source)


async def test_what_the_target_embedded_by_itself_is_no_difference() -> None:
    async with opened(InMemoryStore()) as source, opened(InMemoryStore()) as target:
        await fill(source)
        await copied(source, target)
        for one in await target.waiting(1000):
            await target.write(one.scope, [attach(one.record, 3)])
        assert (await copied(source, target)).waiting == 0


class _Meddled(InMemoryStore):
    """Somebody writes elsewhere while it is written to."""

    def __init__(self, elsewhere: Store, change: Change) -> None:
        super().__init__()
        self.elsewhere, self.change = elsewhere, change

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        if scope == ANA:
            await self.elsewhere.write(ANA, [self.change])


@pytest.mark.parametrize(
    "change", [put(memory("m59", "likes it less")), Drop(kind="memory", id="m59"), put(memory("m99"))]
)
async def test_a_write_to_the_source_meanwhile_is_found(change: Change) -> None:
    async with opened(InMemoryStore()) as source:
        await fill(source)
        async with opened(_Meddled(source, change)) as target:
            with pytest.raises(WriteConflict, match="user 'ana' of deployment 'acme'"):
                await copied(source, target)


class _WrittenTo(InMemoryStore):
    """Somebody writes to it whenever something is written elsewhere, and while it is read the first times."""

    def __init__(self, *, reads: int) -> None:
        super().__init__()
        self.reads, self.number = reads, 0

    async def said(self) -> None:
        self.number += 1
        await self.write(
            ANA, [put(memory(f"live{self.number}", "likes to talk")), put(note("n59", n=self.number))]
        )

    async def scan(self, scope: Scope, kind: str, **page: Any) -> list[Record]:
        found = await super().scan(scope, kind, **page)
        if scope == ANA and self.reads:
            self.reads -= 1
            await self.said()
        return found


class _Slow(InMemoryStore):
    """Each time that something is written to it, somebody writes to `source`."""

    def __init__(self, source: _WrittenTo) -> None:
        super().__init__()
        self._source = source

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        await self._source.said()


async def test_who_talks_faster_than_a_copy_is_written_is_copied_as_they_were_at_one_moment() -> None:
    source = _WrittenTo(reads=5)
    async with opened(source), opened(_Slow(source)) as target:
        await fill(source)
        done = await copy_while_written(source, target, NOTES)
        (ana,) = (one for one in done.scopes if one.scope == ANA)
        said = {record.id for record in await target.scan(ANA, "memory")}
        live = sum(name.startswith("live") for name in said)
        (last,) = await target.read(ANA, "note", ["n59"])
        assert 0 < live < source.number
        assert last.data["n"] == live, "the two were one write"
        assert ana.records == len(await everything(target, ANA))


async def test_who_is_written_to_whenever_they_are_read_is_not_copied_by_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("echoic.stores.bulk_copy._PAUSE_S", 0.0)
    source = _WrittenTo(reads=10**6)
    async with opened(source), opened(InMemoryStore()) as target:
        await fill(source)
        with pytest.raises(WriteConflict, match="each of the 20 times that it was read"):
            await copy_while_written(source, target, NOTES)
        assert ANA not in await target.scopes()


async def test_what_is_said_after_a_copy_is_learned_though_the_last_turns_of_the_source_are_gone(
    tmp_path: Path,
) -> None:
    source, first, second = (f"sqlite:///{tmp_path}/{name}.db" for name in ("a", "b", "c"))

    async def said(at: str, *texts: str, gone: bool = False) -> None:
        async with echoic.open(at, embedder="lexical") as service:
            ana = service.user("ana")
            talk = await ana.conversation("chat")
            for text in texts:
                (turn,) = await talk.append(Turn(speaker="user", text=text))
                await service.distil()
                if gone:  # as a framework takes back the last item
                    await ana.backing_store.erase(ana.scope, [Drop(kind="turn", id=turn.id)])

    async def home(at: str) -> Any:
        async with echoic.open(at, embedder="lexical") as service:
            return await service.user("ana").get("home")

    await said(source, "I have a dog called Rex.")
    await said(source, "What is the weather like?", "And tomorrow?", gone=True)
    for at, again in ((first, False), (second, True)):
        for _ in range(1 + again):  # the second copy finds all of it there
            await copy_memory(lambda: store_from(source), lambda at=at: store_from(at), _unknown())
        await said(at, "I live in Lisbon.")
        assert (await home(at)).text == "Lisbon"
    # a copy that goes on, where the source got more at the positions after it
    third = f"sqlite:///{tmp_path}/d.db"
    await copy_memory(lambda: store_from(source), lambda: store_from(third), _unknown())
    async with echoic.open(source, embedder="lexical") as service:
        await service.user("ana").set("pet", "a cat")
    await copy_memory(lambda: store_from(source), lambda: store_from(third), _unknown())
    async with echoic.open(third, embedder="lexical") as service:
        assert (await service.user("ana").get("pet")).text == "a cat"


class _LosesARecord(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await super().write(scope, changes)
        puts = [change.record for change in changes if isinstance(change, Put)]
        await super().write(scope, [Drop(kind=puts[0].kind, id=puts[0].id)])


class _ChangesANumber(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        changed = [
            replace(change, record=replace(change.record, data={**change.record.data, "part": 1}))
            if isinstance(change, Put) and "part" in change.record.data
            else change
            for change in changes
        ]
        await super().write(scope, changed)


class _LosesWordPieces(InMemoryStore):
    async def load(self, scope: Scope) -> Any:
        partition = await super().load(scope)
        partition.tokens.clear()
        return partition


class _FillsGaps(InMemoryStore):
    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        gone = {(change.kind, change.id) for change in changes if isinstance(change, Drop)}
        kept = [
            change
            for change in changes
            if not isinstance(change, Drop)
            and not (isinstance(change, Put) and (change.record.kind, change.record.id) in gone)
        ]
        await super().write(scope, kept)


@pytest.mark.parametrize("faulty", [_LosesARecord, _ChangesANumber, _LosesWordPieces, _FillsGaps])
async def test_control_a_target_that_keeps_something_else_is_found(faulty: type[InMemoryStore]) -> None:
    async with opened(InMemoryStore()) as source, opened(faulty()) as target:
        await fill(source)
        with pytest.raises(WriteConflict):
            await copied(source, target)


async def test_records_of_a_kind_nobody_knows_are_not_left_behind_in_silence() -> None:
    async with opened(InMemoryStore()) as source, opened(InMemoryStore()) as target:
        await fill(source)
        await source.write(ANA, [put(Record(kind="newer", id="a", data={}))])
        with pytest.raises(StoreCorrupt, match="newer version"):
            await copied(source, target)


def test_every_kind_that_is_written_anywhere_is_copied() -> None:
    root = Path(echoic.__file__).parent
    kinds: set[str] = {call_record.EXCHANGE, call_record.GIVEN, call_record.CALL, checkpoints.CHECKPOINT}
    for path in root.rglob("*.py"):
        place = path.relative_to(root)
        if place.parts[0] in {"testing", "stores"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Record":
                (kind,) = (word.value for word in node.keywords if word.arg == "kind")
                if isinstance(kind, ast.Name) and kind.id.isupper():
                    module = importlib.import_module(".".join(("echoic", *place.with_suffix("").parts)))
                    kinds.add(getattr(module, kind.id))
    assert len(kinds) > 8
    assert kinds - {"memory", "turn"} <= {*KINDS}


@pytest.fixture
async def lived(tmp_path: Path) -> str:
    """A store that was used: talk that was learned from, corrections, proposals, what was forgotten."""
    url = f"sqlite:///{tmp_path}/lived.db"
    async with echoic.open(url, embedder="lexical") as service:
        for name in ("ana", "bob"):
            user = service.user(name, "acme")
            for city in ("Porto", "Lisbon", "Faro"):
                await user.set("home_city", city)
                await user.remember(f"Once slept on a roof in {city}")
            await user.set("opening_hours", "We are open from nine to five on weekdays")
            for call in ("first", "second", "third"):
                talk = await user.conversation(call, agent="desk")
                await talk.append(Turn(speaker="user", text=f"My name is {name.title()}, my {call} call."))
                await talk.append(Turn(speaker="agent", text="Thank you, noted."))
            await user.forget(conversation="second")
            await user.set("pet", "a parrot")
            await user.forget(key="pet")
        for proposal in (await service.proposals("acme").list())[:1]:
            await service.proposals("acme").approve(proposal.id)
        await service.distil("acme")
        await service.user("carl", "shop").remember("Collects stamps")
        at = "2026-11-20T10:00:00+00:00"
        said = {"id": "t", "speaker": "user", "text": "My name is Carl.", "said_at": at}
        talk = {"id": "unread", "status": "completed", "started_at": at, "updated_at": at, "turns": [said]}
        talks = {"format": "echoic-export", "version": 1, "memories": [], "conversations": [talk]}
        await service.user("carl", "shop").restore(talks)
        assert await service.settle(60)
    return url


async def test_sqlite_to_postgres_to_files_to_sqlite_gives_an_identical_export(
    lived: str, tmp_path: Path
) -> None:
    wanted = await _exports(lived)
    assert [len(user["memories"]) > 5 for user in wanted["acme"].values()] == [True, True]
    source = lived
    for target in (
        postgres_server.shared().url(),
        f"files:///{tmp_path}/people",
        f"sqlite:///{tmp_path}/end.db",
    ):
        done = await copy_memory(
            lambda at=source: store_from(at), lambda at=target: store_from(at), _unknown()
        )
        assert done.source == done.target
        assert done.copied.waiting == 0
        assert await _exports(target) == wanted
        source = target
    assert await _exports(lived) == wanted
    said = [json.dumps(exports, sort_keys=True) for exports in (await _exports(source), wanted)]
    assert said[0] == said[1], "1 and 1.0 are equal, and not the same"
    assert await _answers(source) == await _answers(lived)


async def test_what_was_read_before_a_copy_is_not_read_again_and_the_rest_is(
    lived: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"files:///{tmp_path}/people"
    await copy_memory(lambda: store_from(lived), lambda: store_from(target), _unknown())
    monkeypatch.setattr("echoic.memory.background.SWEEP_AFTER_S", 3600)  # what is not read is read here
    async with echoic.open(target, embedder="lexical") as service:
        assert (await service.distil("acme")).turns == 0
        assert (await service.distil("shop")).turns == 1


async def test_the_source_is_left_as_it_was(lived: str, tmp_path: Path) -> None:
    path = lived.removeprefix("sqlite:///")
    before = _tables(path)
    await copy_memory(
        lambda: store_from(lived), lambda: store_from(f"sqlite:///{tmp_path}/end.db"), _unknown()
    )
    after = _tables(path)
    assert [row for row in after.pop("meta") if row[0] != "checked"] == [
        row for row in before.pop("meta") if row[0] != "checked"
    ]
    assert after == before


async def test_a_model_that_was_named_is_not_replaced_by_what_the_target_has(
    lived: str, tmp_path: Path
) -> None:
    target = f"sqlite:///{tmp_path}/end.db"
    named = await copy_memory(lambda: store_from(lived), lambda: store_from(target), OTHER_SPEC, named=True)
    assert named.target == OTHER_SPEC
    assert named.copied.vectors == 0
    assert named.copied.waiting > 20
    with pytest.raises(EmbeddingMismatch):
        await copy_memory(lambda: store_from(lived), lambda: store_from(target), SPEC, named=True)
    again = await copy_memory(lambda: store_from(lived), lambda: store_from(target), SPEC)
    assert (again.target, again.copied.new) == (OTHER_SPEC, 0)


def _unknown() -> EmbeddingSpec:
    """Neither store's."""
    return EmbeddingSpec("test:nobody's", 5)


async def _exports(url: str) -> dict[str, dict[str, Any]]:
    async with echoic.open(url, embedder="lexical") as service:
        return {
            deployment: {
                user: await service.user(user, deployment).export()
                for user in await service.users(deployment)
            }
            for deployment in ("acme", "shop")
        }


async def _answers(url: str) -> list[Any]:
    async with echoic.open(url, embedder="lexical") as service:
        return [
            await _asked(service, user, question)
            for user in ("ana", "bob")
            for question in ("where did she sleep?", "what is my name?", "when are you open?", "first call")
        ]


async def _asked(service: MemoryService, user: str, question: str) -> Any:
    return await service.user(user, "acme").query(question, limit=20, include_past=True)


def _tables(path: str) -> dict[str, list[Any]]:
    connection = sqlite3.connect(path)
    try:
        names = [
            row[0]
            for row in connection.execute("select name from sqlite_master where type = 'table' order by name")
        ]
        return {name: connection.execute(f"select * from {name} order by 1, 2").fetchall() for name in names}
    finally:
        connection.close()


async def test_rows_and_places_of_the_rest_are_numbered_as_before(lived: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/end.db"
    await copy_memory(lambda: store_from(lived), lambda: store_from(target), _unknown())
    ours, theirs = (_tables(url.removeprefix("sqlite:///")) for url in (lived, target))
    places = [[(row[0], row[2], row[3]) for row in tables["records"]] for tables in (ours, theirs)]
    assert places[0] == places[1]
    seqs = [place[0] & 0xFFFF_FFFF for place in places[0]]
    assert any(seq >= FIRST_UNSEARCHABLE for seq in seqs)
