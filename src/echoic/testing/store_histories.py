"""Random histories: whatever was done to a store, it answers as the in-memory one does.

Examples prove what somebody thought of; this looks for the rest, and shrinks what it finds to the shortest
history that shows it. Needs hypothesis.

    TestMine = random_histories(lambda folder: MyStore(folder / "mine"))
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from unittest import TestCase

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from echoic.errors import WriteConflict
from echoic.stores.base import Attach, Change, Drop, Put, Record, Require, Store
from echoic.stores.in_memory import InMemoryStore
from echoic.testing.store_subject import (
    OTHER_SPEC,
    SEARCHABLE,
    SPEC,
    attached,
    everything,
    index,
    loaded,
    told,
    unit,
)
from echoic.types import EmbeddingSpec, Scope

T = TypeVar("T")
Make = Callable[[Path], Store]
"""From an empty folder to an unopened store; called again on the same folder, another instance of it."""

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
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class StoreHistory(RuleBasedStateMachine):
    """One history, on a reference store and on instances of the store under test that share a place.

    `make` and `instances` are set by `random_histories`. An instance is drawn for every step, so that what
    one wrote is read by another.
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
        """Whether who waits longest is told by the contract: after a reindex all have waited as long."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The answer of `work`."""
        return self._runner.run(work)

    @initialize()
    def begin(self) -> None:
        """Open instances on an empty place."""
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
        """A batch on both: both take it or both refuse it."""
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
        """Other words for what is there, or the same again, and then perhaps their vector."""
        for record in self.run(self._reference.rows(scope, [row])):
            self.write(scope, [Put(record=replace(record, data={**record.data, "text": text}))], by)
            if embed:
                self.write(scope, [(record.kind, record.id, 0, row)], by)

    @rule(
        scope=_scopes, by=st.integers(0, 1), names=st.none() | st.lists(st.tuples(_kinds, _ids), max_size=6)
    )
    def erase(self, scope: Scope, by: int, names: list[tuple[str, str]] | None) -> None:
        """The whole scope, or some of it; what was removed is counted alike."""
        drops = None if names is None else [Drop(kind=kind, id=name) for kind, name in names]
        wanted = self.run(self._reference.erase(scope, drops))
        erased = self.run(self.some(by).erase(scope, drops))
        assert (dict(erased.records), erased.vectors) == (dict(wanted.records), wanted.vectors)
        assert erased.verified

    @rule(by=st.integers(0, 1), other=st.booleans())
    def reindex(self, by: int, *, other: bool) -> None:
        """To another model or the same; the other instances are closed first and open with the new one."""
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
        """All instances are closed, and new ones opened on the same place."""
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
        """A page, by id and by row."""
        self._same_records(lambda store: store.read(scope, kind, names))
        self._same_records(lambda store: store.rows(scope, rows))
        self._same_records(lambda store: store.scan(scope, kind, **how))

    def _same_records(self, ask: Callable[[Store], Coroutine[Any, Any, list[Record]]]) -> None:
        wanted = [told(record) for record in self.run(ask(self._reference))]
        for store in self._stores:
            assert [told(record) for record in self.run(ask(store))] == wanted

    @invariant()
    def same(self) -> None:
        """Everything that can be seen is the same."""
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
    """A test case that tries random histories on the stores of `make`.

    Args:
        make: from an empty folder to an unopened store, and to another instance of it when called again.
        instances: how many are open at once; 1 where instances cannot share a place.
        lasts: whether another instance finds what an earlier one kept.
        how: how many histories, and how long.
    """

    class History(StoreHistory):
        pass

    History.make = staticmethod(make)
    History.instances, History.lasts = instances, lasts
    case: type[TestCase] = History.TestCase
    case.settings = how  # type: ignore[attr-defined]
    return case


__all__ = ["SETTINGS", "StoreHistory", "random_histories"]
