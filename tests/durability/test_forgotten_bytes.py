"""What was erased is in no byte of any file of the store, whatever happened to it before."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from durability import controls
from durability.children import Zygote
from durability.consistency import check_consistent, connected
from durability.programs import lines
from durability.workload import Found, State, Write, after, found, index
from echoic.stores.base import Change, Drop, Erased, Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import writer as sqlite_writer
from echoic.testing.store_histories import attached
from echoic.text import content_words, cut
from echoic.types import EmbeddingSpec, Scope
from scale import many

SPEC = EmbeddingSpec("forgotten-bytes", 48)
USERS = 100
ONSETS = "b br c ch d dr f fl g gr h j k kl l m n p pr qu r s sch st t tr v w x y z ñ ł š þ ž ç Ł Š Ž".split()
NUCLEI = "a e i o u aa ei ou ä é ø ü å î ó".split()
BLOCK = 16


def invented(rng: Random) -> str:
    """A word nobody else says, with accents and capitals as they come."""
    word = "".join(rng.choice(ONSETS) + rng.choice(NUCLEI) for _ in range(rng.randrange(3, 6)))
    return rng.choice((word, word.capitalize(), word.upper())) + rng.choice(("", "ing", "s", "ed", "ness"))


@dataclass(slots=True)
class Said:
    """Everything that was ever written for a scope or for some of its records."""

    texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    vectors: list[bytes] = field(default_factory=list)

    @classmethod
    def together(cls, parts: Iterable[Said]) -> Said:
        """Several as one."""
        whole = cls()
        for part in parts:
            whole.texts += part.texts
            whole.names += part.names
            whole.vectors += part.vectors
        return whole

    def needles(self) -> set[bytes]:
        """Each of it in each form in which a file may hold it."""
        found = {name.encode() for name in self.names}
        for text in self.texts:
            found.add(text.encode())
            found |= {word.encode() for word in (*text.split(), *cut(text))}
            for word in content_words(text):
                found.add(word.stem.encode())
                found |= {code.encode() for code in word.codes}
                found.add(word.term.to_bytes(4, "little"))
        for vector in self.vectors:  # any run of 64 bytes holds three of these whole
            found |= {vector[at : at + BLOCK] for at in range(0, len(vector), BLOCK)}
            found.add(vector[:32])
        return {needle for needle in found if len(needle) >= 4}


@dataclass(slots=True)
class Town:
    """A hundred users in one file, and what each of them ever said."""

    path: Path
    state: State = field(default_factory=dict)
    said: dict[Scope, dict[tuple[str, str], Said]] = field(default_factory=dict)

    def whole(self, scope: Scope) -> Said:
        """All that was ever said by `scope`, its name included."""
        said = self.of(scope, self.said[scope])
        said.names.append(scope.user or "")
        return said

    def of(self, scope: Scope, names: Iterable[tuple[str, str]]) -> Said:
        """All that was ever said in these records of `scope`."""
        return Said.together(self.said[scope][name] for name in names)

    def names_of(self, scope: Scope) -> list[bytes]:
        """The ids and keys of its records, long enough to be nobody else's."""
        names = {name.encode() for name in self.of(scope, self.said[scope]).names}
        return [name for name in names if len(name) >= 10]

    def all_of(self, scopes: Iterable[Scope]) -> Said:
        """All that was ever said by any of `scopes`."""
        return Said.together(self.whole(scope) for scope in scopes)


def scope_of(number: int, rng: Random) -> Scope:
    return Scope("town", f"{invented(rng)} of {invented(rng)} {number}")


async def build(path: Path, seed: int) -> Town:
    """Thousands of records in random order, replaced, dropped and given vectors as in years of use."""
    rng, town = Random(seed), Town(path)
    scopes = [scope_of(number, rng) for number in range(USERS)]
    vocabulary = {scope: [invented(rng) for _ in range(12)] for scope in scopes}
    noise = np.random.default_rng(seed)
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    for number in range(1500):
        scope = rng.choice(scopes)
        changes = [
            _change(town, scope, vocabulary[scope], rng, noise, f"{number}x{i}")
            for i in range(rng.randrange(1, 9))
        ]
        await store.write(scope, changes)
        town.state = after(town.state, Write(scope, tuple(changes)))
    await store.aclose()
    return town


def _change(
    town: Town, scope: Scope, words: list[str], rng: Random, noise: np.random.Generator, fresh: str
) -> Change:
    said = town.said.setdefault(scope, {})
    alive = list(town.state[scope].records.items()) if scope in town.state else []
    dice = rng.random()
    if dice < 0.07 and alive:
        return Drop(kind=alive[0][0][0], id=alive[0][0][1])
    if dice < 0.25 and alive:
        (kind, name), kept = rng.choice(alive)
        made = noise.standard_normal(SPEC.dimensions).astype(np.float32)
        if kind != "profile":
            said[kind, name].vectors.append(made.tobytes())
        # its word pieces repeat the vector's bytes, so that whoever finds those finds them
        return attached(kind, name, kept.version, made)
    if dice < 0.4 and alive:  # superseded in place
        kind, name = rng.choice(alive)[0]
    else:
        kind, name = rng.choice(("memory", "turn", "profile")), f"{invented(rng)}-{fresh}"
    part = said.setdefault((kind, name), Said())
    text = " ".join([invented(rng), *(rng.choice(words) for _ in range(rng.choice((2, 6, 15, 60))))])
    key = rng.choice((None, f"{invented(rng)}-key-{fresh}"))
    part.texts.append(text)
    part.names += [name, key] if key else [name]
    return Put(record=Record(kind=kind, id=name, key=key, data={"text": text}))


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Town:
    return asyncio.run(build(tmp_path_factory.mktemp("town") / "a.db", seed))


@pytest.fixture
def copy(town: Town, tmp_path: Path) -> Town:
    """A copy to erase from."""
    shutil.copy(town.path, tmp_path / "a.db")
    return Town(tmp_path / "a.db", town.state, town.said)


def bytes_of(path: Path, pattern: str = "a.db*") -> bytes:
    """The files of the store. Copied by another process: to close one of them here would drop its locks."""
    copies = path.parent / "copies"
    copies.mkdir()
    subprocess.run(["cp", *map(str, path.parent.glob(pattern)), str(copies)], check=True)
    content = b"".join(file.read_bytes() for file in sorted(copies.iterdir()))
    shutil.rmtree(copies)
    return content


def unused_bytes(path: Path) -> bytes:
    """All that lies between the pointers and the cells of every page, and in its free blocks."""
    with connected(path) as connection:
        size = connection.pragma("page_size")
        pages = connection.execute("select pageno from dbstat where pagetype <> 'overflow' and pageno > 1")
        found = [_unused(connection.read("main", 0, (number - 1) * size, size)[1]) for (number,) in pages]
    return b"\0".join(found)


def _unused(page: bytes) -> bytes:
    free, cells, first = struct.unpack_from(">HHH", page, 1)
    unused = page[(12 if page[0] in (2, 5) else 8) + 2 * cells : first or 65536]
    while free:
        following, length = struct.unpack_from(">HH", page, free)
        unused += page[free + 4 : free + length]
        free = following
    return unused


def left_of(said: Said, path: Path, shortest: int = 4) -> list[bytes]:
    """What of `said` is still in a file of the store although no living row says it too.

    A needle shorter than eight bytes turns up by chance among the file's own numbers: such a one is looked
    for only where there should be nothing, in unused bytes and beside the file.
    """
    content = bytes_of(path)
    spare = unused_bytes(path) + bytes_of(path, "a.db-*")
    needles = [needle for needle in said.needles() if len(needle) >= shortest]
    there = among(needles, content) + [needle for needle in needles if len(needle) < 8 and needle in spare]
    living = cells_of(path)
    return [needle for needle in there if not any(needle in cells for cells in living)]


def cells_of(path: Path) -> list[bytes]:
    """What the living rows say, as one piece a column; nothing that was ever said goes over two rows."""
    columns = (("records", "data"), ("records", "name"), ("records", "key"), ("segments", "words"))
    columns += (("vectors", "data"), ("scopes", "user"))
    query = "select cast({1} as blob) from {0} where {1} is not null"
    with connected(path) as connection:
        return [
            b"\0between rows\0".join(cell for (cell,) in connection.execute(query.format(*column)))
            for column in columns
        ]


def among(needles: list[bytes], content: bytes) -> list[bytes]:
    """Those of eight bytes or more that are in `content`: each by its first eight, then whole."""
    long = [needle for needle in needles if len(needle) >= 8]
    begins = np.array([int.from_bytes(needle[:8], "little") for needle in long], np.uint64)
    eights = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))
    known = np.sort(begins)
    at = np.minimum(np.searchsorted(known, eights), len(known) - 1)
    seen = set(eights[known[at] == eights].tolist())
    return [n for n in long if int.from_bytes(n[:8], "little") in seen and n in content]


def counted(state: Found, scope: Scope, names: Iterable[tuple[str, str]]) -> Erased:
    """What the receipt has to say."""
    kept = [(kind, state[scope][kind, name]) for kind, name in names]
    kinds: dict[str, int] = {}
    for kind, _ in kept:
        kinds[kind] = kinds.get(kind, 0) + 1
    return Erased(records=kinds, vectors=sum(record.vector is not None for _, record in kept))


def agree(receipt: Erased, expected: Erased, path: Path) -> None:
    assert dict(receipt.records) == dict(expected.records)
    assert receipt.vectors == expected.vectors
    assert receipt.verified
    assert receipt.bytes_searched >= path.stat().st_size


async def test_a_forgotten_user_is_in_no_byte_while_others_have_the_file_open(
    copy: Town, zygote: Zygote, tally: Callable[[str], None], tmp_path: Path
) -> None:
    scopes = list(copy.said)
    gone = max(scopes, key=lambda scope: len(copy.said[scope]))
    store, second = SQLiteStore(copy.path), SQLiteStore(copy.path)
    await store.open(SPEC, index)
    await second.open(SPEC, index)
    assert (await second.load(gone)).size
    spec = (SPEC.model, SPEC.dimensions)
    child = zygote.start("hold_open", path=str(copy.path), log=str(tmp_path / "log"), spec=spec).go()
    while ["open"] not in lines(tmp_path / "log"):
        await asyncio.sleep(0.01)
    before = found(copy.state)
    needles, content = copy.whole(gone).needles(), bytes_of(copy.path)
    there = len(among(list(needles), content))
    assert there > 200, "what cannot be found before proves nothing by its absence"

    receipt = await store.erase(gone)

    agree(receipt, counted(before, gone, before[gone]), copy.path)
    assert left_of(copy.whole(gone), copy.path) == []
    for other in (store, second):
        assert not (await other.load(gone)).size
        assert await other.scan(gone, "memory") == []
    assert child.kill()
    await second.aclose()
    await store.aclose()
    assert left_of(copy.whole(gone), copy.path) == []
    assert check_consistent(copy.path) == {scope: kept for scope, kept in before.items() if scope != gone}
    tally(f"{len(needles)} needles in {len(content) >> 10} KiB, {there} there before, 0 after")


async def test_forgotten_records_are_in_no_byte_and_their_neighbours_are_whole(
    copy: Town, seed: int, tally: Callable[[str], None]
) -> None:
    rng = Random(seed)
    before = found(copy.state)
    gone = next(scope for scope in copy.said if len(before[scope]) > 20)
    names = rng.sample(sorted(before[gone]), len(before[gone]) // 2)
    store = SQLiteStore(copy.path)
    await store.open(SPEC, index)
    drops = [Drop(kind=kind, id=name) for kind, name in names]

    receipt = await store.erase(gone, [*drops, drops[0], Drop(kind="memory", id="never was")])

    agree(receipt, counted(before, gone, names), copy.path)
    said = copy.of(gone, names)
    assert left_of(said, copy.path) == []
    await store.aclose()
    rest = {name: record for name, record in before[gone].items() if name not in set(names)}
    assert check_consistent(copy.path) == {**before, gone: rest}
    tally(f"{len(names)} records, {len(said.needles())} needles, 0 left")


async def test_many_users_forgotten_one_after_the_other_leave_nothing(
    copy: Town, seed: int, tally: Callable[[str], None]
) -> None:
    scopes = list(copy.said)
    gone = Random(seed).sample(scopes, min(len(scopes), many(8)))
    store = SQLiteStore(copy.path)
    await store.open(SPEC, index)
    looked_for = 0
    for scope in gone:
        assert (await store.erase(scope)).verified
        assert left_of(copy.whole(scope), copy.path) == [], (seed, scope)
        looked_for += len(copy.whole(scope).needles())
    await store.aclose()
    rest = {scope: kept for scope, kept in found(copy.state).items() if scope not in set(gone)}
    assert check_consistent(copy.path) == rest
    tally(f"{len(gone)} users, {looked_for} needles, 0 left")


@pytest.fixture(scope="module")
def held_in_unused_bytes(town: Town) -> list[Scope]:
    """Of whom a rebuilt page still holds a name where nobody looks."""
    unused = unused_bytes(town.path)
    held = [scope for scope in town.said if any(name in unused for name in town.names_of(scope))]
    assert held, "no page was rebuilt: this proves nothing"
    return held


async def test_what_a_rebuilt_page_still_held_of_a_user_goes_with_the_user(
    copy: Town, held_in_unused_bytes: list[Scope], tally: Callable[[str], None]
) -> None:
    held = held_in_unused_bytes
    store = SQLiteStore(copy.path)
    await store.open(SPEC, index)
    for scope in held:
        assert (await store.erase(scope)).verified
    await store.aclose()
    unused = unused_bytes(copy.path)
    left = [name for scope in held for name in copy.names_of(scope) if name in unused]
    tally(f"{len(held)} users in unused bytes, {len(left)} of their names left")
    assert left == []


async def test_control_without_rewriting_a_rebuilt_page_goes_on_holding_it(
    copy: Town,
    town: Town,
    held_in_unused_bytes: list[Scope],
    monkeypatch: pytest.MonkeyPatch,
    tally: Callable[[str], None],
) -> None:
    monkeypatch.setattr(sqlite_writer, "_has_stale_page", lambda *_: False)
    held = held_in_unused_bytes
    left = 0
    for scope in held:
        shutil.copy(town.path, copy.path)
        store = SQLiteStore(copy.path)
        await store.open(SPEC, index)
        await store.erase(scope)
        await store.aclose()
        unused = unused_bytes(copy.path)
        left += any(name in unused for name in copy.names_of(scope))
    tally(f"of {left} of {len(held)} users in unused bytes a name was left")
    assert left


@pytest.mark.parametrize("missing", ["overwriting", "emptying the log"])
async def test_control_an_erasure_without_one_of_its_steps_leaves_bytes_and_says_so(
    copy: Town, monkeypatch: pytest.MonkeyPatch, tally: Callable[[str], None], missing: str
) -> None:
    gone = list(copy.said)[:2]
    store = SQLiteStore(copy.path)
    monkeypatch.setattr(sqlite_writer, "_has_stale_page", lambda *_: False)
    monkeypatch.setattr(sqlite_writer, "_rewrite", lambda *_: None)
    if missing == "emptying the log":
        monkeypatch.setattr(sqlite_writer, "truncate_log", lambda *_: None)
    with controls.applied(store, "secure_delete = off" if missing == "overwriting" else None):
        await store.open(SPEC, index)
        receipts = [await store.erase(scope) for scope in gone]
        left = left_of(copy.all_of(gone), copy.path, shortest=10)
        await store.aclose()
    tally(f"{len(left)} needles left")
    assert left
    assert not any(receipt.verified for receipt in receipts)
