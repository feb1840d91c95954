"""Random histories of a store, and the plain model of what each of their operations leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from echoic.partition import MEMORY, TURN, Entry, Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Change, Drop, Erased, Put, Record, Store
from echoic.testing.store_histories import attached
from echoic.text import content_words
from echoic.types import EmbeddingSpec, Scope

SPEC = EmbeddingSpec("durability-test", 8)
KINDS = {"memory": MEMORY, "turn": TURN}
SCOPES = (Scope("acme", "ana"), Scope("acme", "björn"), Scope("acme", None), Scope("other", "ana"))
WORDS = (
    "harbour lantern marmalade thunder violin glacier saffron compass orchard velvet Zürich José Łódź naïve "
    "Ångström 東京 Привет o'brien running runner ran candles jeopardy quixotic wharf zephyr knight pneumonia"
).split()


def index(record: Record) -> Entry | None:
    """How the records of these tests are found: memories and turns by their text, others not."""
    if record.kind not in KINDS:
        return None
    return _entry(record.data["text"], KINDS[record.kind], record.data.get("said_at", 0))


@lru_cache(maxsize=1 << 14)  # a history is lived through hundreds of times, and checked each time
def _entry(text: str, kind: int, said_at_ms: int) -> Entry:
    return Entry(
        text=text,
        kind=kind,
        words=Entry.counted(content_words(text)),
        characters=len(text),
        said_at_ms=said_at_ms,
    )


@dataclass(frozen=True, slots=True)
class Write:
    """One `Store.write`."""

    scope: Scope
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Erase:
    """One `Store.erase`."""

    scope: Scope
    drops: tuple[Drop, ...] | None


Step = Write | Erase


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as it should be found."""

    data: Mapping[str, Any]
    key: str | None
    version: int
    seq: int
    vector: bytes | None = None


@dataclass(slots=True)
class Held:
    """A scope as it should be found."""

    records: dict[tuple[str, str], Kept] = field(default_factory=dict)
    next_row: int = 0
    next_other: int = FIRST_UNSEARCHABLE


State = dict[Scope, Held]
Found = dict[Scope, dict[tuple[str, str], Kept]]


def after(state: State, step: Step) -> State:
    """What `step` makes of `state`: the store's contract, as plainly as it can be written down."""
    if isinstance(step, Erase):
        return _after_erase(state, step)
    old = state.get(step.scope, Held())
    new = Held(dict(old.records), old.next_row, old.next_other)
    for change in step.changes:
        if not _applied(new, change):
            return state
    return {**state, step.scope: new}


def _after_erase(state: State, step: Erase) -> State:
    if step.drops is None or step.scope not in state:
        return {scope: held for scope, held in state.items() if scope != step.scope}
    old = state[step.scope]
    gone = {(drop.kind, drop.id) for drop in step.drops}
    left = {name: kept for name, kept in old.records.items() if name not in gone}
    if not left:  # nobody's name stays for nothing: a scope that is asked for again begins anew
        return {scope: held for scope, held in state.items() if scope != step.scope}
    return {**state, step.scope: Held(left, old.next_row, old.next_other)}


def _applied(held: Held, change: Change) -> bool:
    """Whether `change` could be made; False: the whole write is refused."""
    if isinstance(change, Put):
        return _put(held, change)
    old = held.records.get((change.kind, change.id))
    if isinstance(change, Drop):
        held.records.pop((change.kind, change.id), None)
    elif old and old.version == change.version and old.seq < FIRST_UNSEARCHABLE:
        held.records[change.kind, change.id] = replace(old, vector=change.vector.tobytes())
    return True


def _put(held: Held, put: Put) -> bool:
    record = put.record
    old = held.records.get((record.kind, record.id))
    version = old.version if old else 0
    if put.expect is not None and put.expect != version:
        return False
    searchable = record.kind in KINDS
    if old:
        seq = old.seq
    elif searchable:
        seq, held.next_row = held.next_row, held.next_row + 1
    else:
        seq, held.next_other = held.next_other, held.next_other + 1
    keep = searchable and old is not None and old.data["text"] == record.data["text"]
    vector = old.vector if keep and old else None
    held.records[record.kind, record.id] = Kept(record.data, record.key, version + 1, seq, vector)
    return True


def found(state: State) -> Found:
    """`state` as it can be read back: a scope without records is not there."""
    return {scope: held.records for scope, held in state.items() if held.records}


def history(rng: Random, steps: int, state: State | None = None, *, erasing: bool = True) -> Iterator[Step]:
    """`steps` operations that make sense one after the other from `state` on, and some that are refused."""
    state = state or {}
    era = rng.randrange(1 << 30)  # so that names made from another state are not made again
    for number in range(steps):
        step = (
            _erase(rng, state) if erasing and rng.random() < 0.03 else _write(rng, state, f"{era:x}.{number}")
        )
        state = after(state, step)
        yield step


def _erase(rng: Random, state: State) -> Erase:
    scope = rng.choice(SCOPES)
    names = list(state[scope].records) if scope in state else []
    if not names or rng.random() < 0.4:
        return Erase(scope, None)
    chosen = rng.sample(names, min(len(names), rng.randrange(1, 4)))
    return Erase(scope, tuple(Drop(kind=kind, id=name) for kind, name in chosen))


def _write(rng: Random, state: State, fresh: str) -> Write:
    scope = rng.choice(SCOPES)
    records = state[scope].records if scope in state else {}
    changes = [_change(rng, records, f"{fresh}.{i}") for i in range(rng.choice((1, 1, 1, 2, 3, 8, 40)))]
    if rng.random() < 0.05:  # refused as a whole, whatever stands before it
        changes.append(Put(record=Record(kind="profile", id="never", data={}), expect=7))
    return Write(scope, tuple(changes))


def _change(rng: Random, records: Mapping[tuple[str, str], Kept], fresh: str) -> Change:
    dice = rng.random()
    if dice < 0.5 or not records:
        return Put(record=_record(rng, rng.choice(("memory", "memory", "turn", "profile")), fresh))
    kind, name = rng.choice(list(records))
    kept = records[kind, name]
    if dice < 0.62:
        return Drop(kind=kind, id=name)
    if dice < 0.85:
        version = kept.version if rng.random() < 0.9 else kept.version + 1
        return attached(kind, name, version, vector(rng))
    record = _record(rng, kind, name)
    if rng.random() < 0.3 and "text" in kept.data:  # the same words again: the vector stays
        record = replace(record, data={**record.data, "text": kept.data["text"]})
    return Put(record=record)


def _record(rng: Random, kind: str, name: str) -> Record:
    length = rng.choice((1, 3, 8, 20, 150))
    text = " ".join(rng.choice(WORDS) for _ in range(length))
    key = rng.choice((None, None, "colour", "stadt"))
    return Record(kind=kind, id=name, key=key, data={"text": text, "said_at": rng.randrange(1 << 40)})


def vector(rng: Random) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A random vector of unit length."""
    made = np.array([rng.gauss(0, 1) for _ in range(SPEC.dimensions)], np.float32)
    return np.asarray(made / np.linalg.norm(made), np.float32)


async def perform(store: Store, step: Step) -> Erased | None:
    """Ask `store` for `step`. Raises what the store raises."""
    if isinstance(step, Erase):
        return await store.erase(step.scope, step.drops)
    await store.write(step.scope, step.changes)
    return None


async def read_back(store: Store) -> Found:
    """Everything, through the store: records, partitions and what waits."""
    waiting = {(w.scope, w.record.kind, w.record.id) for w in await store.waiting(1 << 30)}
    held: Found = {}
    for scope in await store.scopes():
        partition = await store.load(scope)
        records: dict[tuple[str, str], Kept] = {}
        for kind in ("memory", "turn", "profile"):
            for r in await store.scan(scope, kind):
                row = partition.rows[r.seq] if r.seq < FIRST_UNSEARCHABLE else None
                embedded = row is not None and bool(row["flags"] & Flag.EMBEDDED)
                vec = partition.vectors[r.seq].astype(np.float32).tobytes() if embedded else None
                assert ((scope, kind, r.id) in waiting) is (row is not None and not embedded)
                records[kind, r.id] = Kept(r.data, r.key, r.version, r.seq, vec)
        if records:
            held[scope] = records
    return held


__all__ = [
    "SCOPES",
    "SPEC",
    "Erase",
    "Found",
    "Held",
    "Kept",
    "State",
    "Step",
    "Write",
    "after",
    "found",
    "history",
    "index",
    "perform",
    "read_back",
    "vector",
]
