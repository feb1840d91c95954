"""Random histories: after any sequence of operations, a store must answer as the in-memory store does.

Hypothesis generates the histories and shrinks a failing one to the shortest that fails.

    TestMine = random_histories(lambda folder: MyStore(folder / "mine"))

The helpers above it are shared with the conformance suite: an index, records, vectors, and comparable forms
of what a store returns.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest import TestCase

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from echoic.errors import WriteConflict
from echoic.partition import AXES, MEMORY, TURN, Entry, Flag, Partition, number_of
from echoic.stores.base import Attach, Change, Drop, Put, Record, Require, Store
from echoic.stores.in_memory import InMemoryStore
from echoic.text import content_words
from echoic.types import EmbeddingSpec, Scope

SPEC = EmbeddingSpec("test:eight", 8)
OTHER_SPEC = EmbeddingSpec("test:twelve", 12)
ANA = Scope("acme", "ana")
BOB = Scope("acme", "bob")
EVERYONE = Scope("acme", None)
OTHER_ANA = Scope("other", "ana")
SEARCHABLE = ("memory", "turn")

ODD_NAMES = (
    *("../x", "..", ".", ".hidden", "a/b", "a\\b", "/etc/passwd", "C:\\x", "CON", "con.txt"),
    *("x.json", "x.md", "x.lock", "x.vectors", "%2e%2e", "%everyone"),
    *("Ana", "ana", "ana ", " ana", "ana.", "ANA", "é", "e\u0301", "日本語"),
    *("a\nb", "a\r\nb", "'; drop table scopes; --", "*", "?", "a:b", "None", "null"),
    *("🦜" * 256, "🦜" * 255 + "!", "a" * 256, "a" * 255 + "b"),
)
"""Users, deployments, ids and keys that a path, a query or a careless comparison could confuse."""


def index(record: Record) -> Entry | None:
    """Memories and turns by their text; everything else by kind, id and key only."""
    if record.kind not in SEARCHABLE:
        return None
    data = record.data
    text = str(data.get("text", ""))
    said_at = data.get("said_at_ms", 0)
    flags = Flag.QUESTION if "?" in text else Flag.NONE
    if data.get("unheard"):
        flags |= Flag.UNHEARD
    return Entry(
        text=text,
        kind=MEMORY if record.kind == "memory" else TURN,
        words=Entry.counted(content_words(text)),
        characters=len(text),
        session=number_of(record.key),
        said_at_ms=said_at if type(said_at) is int and abs(said_at) < 1 << 60 else 0,
        flags=flags | Flag.PAST if data.get("past") else flags,
    )


def memory(name: str, text: str = "likes tea", /, *, key: str | None = None, **data: Any) -> Record:
    """A searchable record."""
    return Record(kind="memory", id=name, key=key, data={"text": text, **data})


def note(name: str, /, *, key: str | None = None, **data: Any) -> Record:
    """A record that is not searchable."""
    return Record(kind="note", id=name, key=key, data=data)


def put(record: Record, expect: int | None = None) -> Put:
    """The change that writes `record`."""
    return Put(record=record, expect=expect)


def attach(record: Record, seed: int = 0, dimensions: int = SPEC.dimensions) -> Attach:
    """The change that sets the vector of `seed` and its word pieces on `record`, as it was read."""
    return attached(record.kind, record.id, record.version, unit(seed, dimensions))


def attached(kind: str, name: str, version: int, vector: NDArray[np.float32]) -> Attach:
    """The change that attaches `vector` with its word pieces."""
    return Attach(kind=kind, id=name, version=version, vector=vector, tokens=pieces_of(vector))


def pieces_of(vector: NDArray[np.float32]) -> bytes | None:
    """Word pieces derived from the vector: none, one, two or three."""
    data = vector.tobytes()
    count = data[0] % 4
    return (data * (count * AXES // len(data) + 1))[: count * AXES] or None


def unit(seed: int, dimensions: int = SPEC.dimensions) -> NDArray[np.float32]:
    """[dimensions] A unit vector derived from `seed`."""
    vector = np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)
    return vector / np.linalg.norm(vector).astype(np.float32)


def exact(value: Any) -> str:
    """JSON that distinguishes 1, 1.0 and true, and ignores the order of an object's names."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def told(record: Record) -> tuple[str, str, str | None, int, int, str]:
    """All of a record, in comparable form."""
    return record.kind, record.id, record.key, record.version, record.seq, exact(record.data)


@asynccontextmanager
async def opened(store: Store, spec: EmbeddingSpec = SPEC) -> AsyncIterator[Store]:
    """`store`, open."""
    await store.open(spec, index)
    try:
        yield store
    finally:
        await store.aclose()


@dataclass(frozen=True, slots=True)
class PartitionContent:
    """The content of a partition in comparable form, without empty rows."""

    rows: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The fields of each row."""
    postings: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """Row, term and count, each as often as it stands there."""
    vectors: Mapping[int, bytes] = field(default_factory=dict)
    """The vectors of the rows that have one, as bytes."""
    tokens: Mapping[int, bytes] = field(default_factory=dict)
    """The word pieces of the rows that have some."""


def content(partition: Partition) -> PartitionContent:
    """The content of `partition`.

    Raises:
        AssertionError: an empty row has postings, or a row without a vector has bytes of one.
    """
    with partition.lock:
        rows = {i: tuple(row) for i, row in enumerate(partition.rows.tolist()) if row[0]}
        docs, terms, counts = (array.tolist() for array in partition.postings)
        embedded = {i for i, row in rows.items() if row[1] & Flag.EMBEDDED}
        vectors = {i: partition.vectors[i].tobytes() for i in embedded}
        bare = [i for i in range(partition.size) if i not in embedded]
        assert not partition.vectors[bare].any(), "a row that has no vector holds the bytes of one"
        assert set(docs) <= set(rows), "words are left of a row that is gone"
        tokens = dict(partition.tokens)
        assert set(tokens) <= embedded, "word pieces are left of a vector that is gone"
    return PartitionContent(rows, Counter(zip(docs, terms, counts, strict=True)), vectors, tokens)


def expected(
    records: Iterable[Record], vectors: Mapping[tuple[str, str], NDArray[np.float32]]
) -> PartitionContent:
    """The content of a partition over `records`, with `vectors` by kind and id."""
    rows: dict[int, tuple[int, ...]] = {}
    postings: Counter[tuple[int, int, int]] = Counter()
    made: dict[int, bytes] = {}
    tokens: dict[int, bytes] = {}
    for record in records:
        entry = index(record)
        if entry is None:
            continue
        vector = vectors.get((record.kind, record.id))
        rows[record.seq] = entry.row(Flag.NONE if vector is None else Flag.EMBEDDED)
        if vector is not None:
            made[record.seq] = vector.tobytes()
            if pieces := pieces_of(vector):
                tokens[record.seq] = pieces
        postings.update((record.seq, word.term, min(n, 255)) for word, n in entry.words)
    return PartitionContent(rows, postings, made, tokens)


async def everything(store: Store, scope: Scope) -> list[Record]:
    """All records of `scope` of the kinds written here, page by page."""
    found: list[Record] = []
    for kind in (*SEARCHABLE, "note"):
        after = -1
        while page := await store.scan(scope, kind, after=after, limit=50):
            found += page
            after = page[-1].seq
    return found


async def loaded(store: Store, scope: Scope) -> PartitionContent:
    """The content of `scope` when it is loaded now."""
    return content(await store.load(scope))


T = TypeVar("T")
Make = Callable[[Path], Store]
"""Returns an unopened store on an empty folder; called again on the same folder, another instance of it."""

SCOPES = (Scope("acme", "ana"), Scope("acme", None), Scope("default", "../ana"))
_scopes = st.sampled_from([SCOPES[0], *SCOPES])
# few names and texts, so that histories come back to what they did before
_kinds = st.sampled_from(["memory", *SEARCHABLE, "note"])
_ids = st.sampled_from(["a", "b/c", "é"])
_keys = st.none() | st.sampled_from(["k", "K"])
_texts = st.sampled_from(["likes tea", "has a sister in Porto?", "", "tea tea rain\nrain"])
_data = st.fixed_dictionaries(
    {"text": _texts},
    optional={
        "category": st.sampled_from(["fact", "preference", "odd"]),
        "valid_from": st.sampled_from(["2026-11-20T10:00:00+00:00", "yesterday"]),
        "past": st.booleans(),
        "n": st.integers(0, 3),
    },
)
# mostly none, for one that fails undoes its whole batch
_expects = st.sampled_from([None] * 9 + [0, 1, 2])
_puts = st.builds(
    lambda kind, name, key, data, expect: Put(
        record=Record(kind=kind, id=name, key=key, data=data), expect=expect
    ),
    _kinds,
    _ids,
    _keys,
    _data,
    _expects,
)
_drops = st.builds(lambda kind, name: Drop(kind=kind, id=name), _kinds, _ids)
# a name only, and not every one: most names are of nothing, and one that fails undoes its whole batch
_requires = st.builds(lambda kind: Require(kind=kind, id="a"), _kinds)
_attaches = st.tuples(_kinds, _ids, st.sampled_from([0, 0, 0, -1, 1]), st.integers(0, 5))
_batches = st.lists(_puts | _puts | _drops | _attaches | _requires, min_size=1, max_size=6)

SETTINGS = settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=False,  # Hypothesis would set it where CI is set, and every run would be the same
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class StoreHistory(RuleBasedStateMachine):
    """One history, on a reference store and on instances of the store under test on the same folder.

    `random_histories` sets `make` and `instances`. Every step draws an instance, so that one reads what
    another wrote.
    """

    make: Make
    instances = 2
    lasts = True

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = Path(tempfile.mkdtemp(prefix="echoic-history-"))
        self._spec: EmbeddingSpec = SPEC
        self._reference: Store = InMemoryStore()
        self._stores: list[Store] = []
        self._in_order = True
        """Whether the order of waiting records is defined: after a reindex all have waited equally long."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`."""
        return self._runner.run(work)

    @initialize()
    def begin(self) -> None:
        """Open instances on an empty folder."""
        self._open()

    def _open(self) -> None:
        self.run(self._reference.open(self._spec, index))
        self._stores = [type(self).make(self._folder) for _ in range(self.instances)]
        for store in self._stores:
            self.run(store.open(self._spec, index))

    def teardown(self) -> None:
        """Close everything and remove the folder."""
        try:
            for store in self._stores:
                self.run(store.aclose())
        finally:
            self._runner.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def some(self, number: int) -> Store:
        """One of the instances."""
        return self._stores[number % len(self._stores)]

    @rule(scope=_scopes, batch=_batches, by=st.integers(0, 1))
    def write(self, scope: Scope, batch: list[Any], by: int) -> None:
        """A batch on both: both accept it or both refuse it."""
        changes = [self._attach(scope, *c) if isinstance(c, tuple) else c for c in batch]
        answers = [self._written(store, scope, changes) for store in (self._reference, self.some(by))]
        assert answers[0] == answers[1], f"the reference {answers[0]} where the store {answers[1]}"

    def _attach(self, scope: Scope, kind: str, name: str, off: int, seed: int) -> Attach:
        found = self.run(self._reference.read(scope, kind, [name]))
        version = (found[0].version if found else 1) + off
        vector = unit(seed, self._spec.dimensions)
        return attached(kind, name, version, vector)

    def _written(self, store: Store, scope: Scope, changes: list[Change]) -> str:
        try:
            self.run(store.write(scope, changes))
        except WriteConflict:
            return "refused"
        return "wrote"

    @rule(scope=_scopes, by=st.integers(0, 1), text=_texts, row=st.integers(0, 3), embed=st.booleans())
    def revise(self, scope: Scope, by: int, text: str, row: int, *, embed: bool) -> None:
        """Change the text of a record or write the same again, then perhaps set its vector."""
        for record in self.run(self._reference.rows(scope, [row])):
            self.write(scope, [Put(record=replace(record, data={**record.data, "text": text}))], by)
            if embed:
                self.write(scope, [(record.kind, record.id, 0, row)], by)

    @rule(
        scope=_scopes, by=st.integers(0, 1), names=st.none() | st.lists(st.tuples(_kinds, _ids), max_size=6)
    )
    def erase(self, scope: Scope, by: int, names: list[tuple[str, str]] | None) -> None:
        """Erase the scope, or some of its records; both count what was removed alike."""
        drops = None if names is None else [Drop(kind=kind, id=name) for kind, name in names]
        wanted = self.run(self._reference.erase(scope, drops))
        erased = self.run(self.some(by).erase(scope, drops))
        assert (dict(erased.records), erased.vectors) == (dict(wanted.records), wanted.vectors)
        assert erased.verified

    @rule(by=st.integers(0, 1), other=st.booleans())
    def reindex(self, by: int, *, other: bool) -> None:
        """Reindex with another model or the same; other instances are closed first and opened with the new
        one.
        """
        spec = OTHER_SPEC if other else SPEC
        keep = self.some(by)
        for store in self._stores:
            if store is not keep:
                self.run(store.aclose())
        assert self.run(keep.reindex(spec)) == self.run(self._reference.reindex(spec))
        self._spec, self._in_order = spec, False
        for store in self._stores:
            if store is not keep:
                self.run(store.open(spec, index))

    @rule()
    def reopen(self) -> None:
        """Close all instances and open new ones on the same folder."""
        if self.lasts:
            for store in self._stores:
                self.run(store.aclose())
            self._open()

    @rule(
        scope=_scopes,
        kind=_kinds,
        key=_keys,
        after=st.sampled_from([-1, 0, 1, 3, 1 << 31, (1 << 31) + 2]),
        limit=st.integers(0, 4),
        newest_first=st.booleans(),
        names=st.lists(_ids, max_size=5),
        rows=st.lists(st.integers(-2, 9), max_size=5),
    )
    def look(self, scope: Scope, kind: str, names: list[str], rows: list[int], **how: Any) -> None:
        """Read a page, by id and by row."""
        self._same_records(lambda store: store.read(scope, kind, names))
        self._same_records(lambda store: store.rows(scope, rows))
        self._same_records(lambda store: store.scan(scope, kind, **how))

    def _same_records(self, ask: Callable[[Store], Coroutine[Any, Any, list[Record]]]) -> None:
        wanted = [told(record) for record in self.run(ask(self._reference))]
        for store in self._stores:
            assert [told(record) for record in self.run(ask(store))] == wanted

    @invariant()
    def same(self) -> None:
        """Everything that can be read is the same."""
        wanted = self._seen(self._reference)
        for store in self._stores:
            assert self._seen(store) == wanted

    def _seen(self, store: Store) -> tuple[Any, ...]:
        return self.run(store.scopes()), self._waiting(store), [self._held(store, s) for s in SCOPES]

    def _held(self, store: Store, scope: Scope) -> tuple[Any, ...]:
        return [told(r) for r in self.run(everything(store, scope))], self.run(loaded(store, scope))

    def _waiting(self, store: Store) -> list[tuple[str, tuple[Any, ...]]]:
        found = [(repr(w.scope), told(w.record)) for w in self.run(store.waiting(1000))]
        return found if self._in_order else sorted(found)


def random_histories(
    make: Make, *, instances: int = 2, lasts: bool = True, how: settings = SETTINGS
) -> type[TestCase]:
    """A test case that runs random histories on the stores of `make`.

    Args:
        make: returns an unopened store on an empty folder; called again, another instance on the same folder.
        instances: the number of instances open at once; 1 if instances cannot share a folder.
        lasts: whether an instance finds what an earlier one stored.
        how: the number and length of histories.
    """

    class History(StoreHistory):
        pass

    History.make = staticmethod(make)
    History.instances, History.lasts = instances, lasts
    case: type[TestCase] = History.TestCase
    case.settings = how  # type: ignore[attr-defined]
    return case
