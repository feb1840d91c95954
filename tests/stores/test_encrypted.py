"""A store that is encrypted keeps every promise of a store, and its bytes say nothing."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from blockbuster import BlockBuster

import echoic
import echoic.memory.erasure  # now: importing it reads files, and is not for the event loop
from echoic.embedding import LexicalEmbedder
from echoic.errors import EmbeddingMismatch, InvalidInput, NotOpen, StoreCorrupt, WriteConflict
from echoic.memory.compliance import ERASURE, MARKS
from echoic.memory.export import back_up, copy_memory, restore_backup
from echoic.memory.service import MemoryService
from echoic.partition import AXES
from echoic.stores import store_from
from echoic.stores.base import Attach, Drop, Put, Record, Store
from echoic.stores.bulk_copy import copy_store, copy_while_written
from echoic.stores.encryption import EncryptedStore, keys_from
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing import StoreConformance
from echoic.testing.store_histories import ANA, OTHER_ANA, memory, opened, put
from echoic.types import EmbeddingSpec

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def keys(_deployment: str) -> list[bytes]:
    return [KEY]


@pytest.mark.repeated
class TestEncryptedSQLite(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return EncryptedStore(SQLiteStore(tmp_path / "echoic.db"), keys)

    def reopen(self, store: Store) -> Store:
        return EncryptedStore(SQLiteStore(store._inner._path), keys)


def written(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*") if file.is_file())


def makes(path: Path, *of: bytes) -> EncryptedStore:
    return EncryptedStore(SQLiteStore(path), lambda _deployment: list(of))


async def answers_from_ciphertext(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service on the empty store at `place` works as on any; without its keys nobody opens it."""
    monkeypatch.setenv("KEYS", f"# made for this test\n* {base64.b64encode(KEY).decode()}\n")
    url = f"{place}{'&' if '?' in place else '?'}encryption=env:KEYS"
    async with echoic.open(url, embedder="lexical") as service:
        ana = service.user("ana")
        await ana.set("physician", "Dr. Okonkwo-Featherstone")
        await ana.remember("Ana keeps a chartreuse velocipede.")
        assert await service.settle(30)
    async with echoic.open(url, embedder="lexical") as service:
        ana = service.user("ana")
        assert (await ana.get("physician")).text == "Dr. Okonkwo-Featherstone"
        assert "velocipede" in (await ana.query("where is the chartreuse velocipede?"))[0].text
        assert await service.user("ben").query("where is the chartreuse velocipede?") == []
        assert (await ana.forget(key="physician")).verified
        assert await ana.get("physician") is None
    with pytest.raises(EmbeddingMismatch, match="is encrypted: name its keys"):
        async with echoic.open(place, embedder="lexical"):
            pass


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_a_service_works_on_ciphertext_and_nobody_opens_it_without_keys(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answers_from_ciphertext(f"{kind}:///{tmp_path}/a", monkeypatch)
    held = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).lower()
    assert not [word for word in (b"okonkwo", b"velociped", b"physician", b"ftrstn") if word in held]


async def test_no_text_word_key_id_or_vector_is_in_the_bytes(tmp_path: Path) -> None:
    vector = np.arange(1, 9, dtype=np.float32)
    vector /= np.linalg.norm(vector)
    told = Record(
        kind="memory", id="id-of-record", key="secret-key", data={"text": "harbour marmalade", "said_at": 0}
    )
    found = {}
    for name, make in (("plain", SQLiteStore), ("sealed", lambda path: makes(path, KEY))):
        path = tmp_path / f"{name}.db"
        store = make(path)
        async with opened(store):
            await store.write(ANA, [Put(record=told)])
            (waits,) = await store.waiting(1)
            await store.write(
                ANA, [Attach(kind="memory", id=told.id, version=1, vector=vector, was=waits.record.data)]
            )
            loaded = await store.load(ANA)
            assert np.array_equal(loaded.vectors[0], vector)
            assert "marmalade" in loaded.vocabulary.terms
        held = written(path)
        hidden = [b"harbour", b"marmalade", b"secret-key", b"id-of-record", vector.tobytes()[:16]]
        found[name] = [needle for needle in hidden if needle in held]
    assert len(found["plain"]) == 5, "the needles are looked for where they are"
    assert found["sealed"] == []


async def test_the_ciphertext_of_what_was_erased_is_in_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = makes(path, KEY)
    async with opened(store):
        await store.write(ANA, [put(memory(f"m{n}")) for n in range(40)])
        inner = await store._inner.rows(ANA, range(40))
        sealed = [record.data["sealed"][:40].encode() for record in inner]
        erased = await store.erase(ANA, [Drop(kind="memory", id=f"m{n}") for n in range(0, 40, 2)])
        assert erased.verified
        assert erased.records == {"memory": 20}
    held = written(path)
    assert [n for n in range(40) if sealed[n] in held] == list(range(1, 40, 2))


async def test_a_wrong_key_is_told_when_the_store_is_opened_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(makes(path, KEY)) as store:
        await store.write(ANA, [put(memory("m"))])
    with pytest.raises(
        InvalidInput, match="the encryption key of the deployment 'acme' is another one"
    ) as told:
        async with opened(makes(path, OTHER)):
            pass
    assert KEY.hex() not in str(told.value)
    async with opened(makes(path, KEY)) as store:
        assert [record.id for record in await store.scan(ANA, "memory")] == ["m"]


async def test_a_key_is_rotated_by_naming_the_new_one_first(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(makes(path, KEY)) as store:
        await store.write(ANA, [put(memory("m"))])
    async with opened(makes(path, OTHER, KEY)):
        pass
    async with opened(makes(path, OTHER)) as store:
        assert [record.id for record in await store.scan(ANA, "memory")] == ["m"]
    with pytest.raises(InvalidInput, match="is another one"):
        async with opened(makes(path, KEY)):
            pass


async def test_without_its_key_a_deployment_is_gone_and_keeps_nobody_back(tmp_path: Path) -> None:
    path, there = tmp_path / "a.db", {"acme": [KEY], "other": [OTHER]}
    make = lambda: EncryptedStore(SQLiteStore(path), lambda name: there.get(name, []))  # noqa: E731
    async with opened(make()) as store:
        await store.write(ANA, [put(memory(f"m{n}")) for n in range(5)])
        await store.write(OTHER_ANA, [put(memory("theirs"))])
    del there["acme"]
    async with opened(make()) as store:
        assert await store.scopes() == [OTHER_ANA]
        assert [waiting.record.id for waiting in await store.waiting(1)] == ["theirs"]
        with pytest.raises(InvalidInput, match="no encryption key for the deployment 'acme'"):
            await store.scan(ANA, "memory")
        assert "1 of 2 deployments readable" in (await store.check())["encryption"]


async def test_what_is_readable_is_copied_out_of_a_store_that_holds_a_dead_deployment(tmp_path: Path) -> None:
    path, there = tmp_path / "a.db", {"acme": [KEY], "other": [OTHER]}
    make = lambda: EncryptedStore(SQLiteStore(path), lambda name: there.get(name, []))  # noqa: E731
    async with MemoryService(make(), LexicalEmbedder()) as service:
        for deployment in there:
            await service.user("ana", deployment).set("pet", f"a goat of {deployment}")
    del there["acme"]
    target, spec = tmp_path / "b.db", LexicalEmbedder().spec
    await copy_memory(make, lambda: SQLiteStore(target), spec, progress=print)
    async with MemoryService(SQLiteStore(target), LexicalEmbedder()) as service:
        assert (await service.user("ana", "other").get("pet")).text == "a goat of other"
        assert await service.user("ana", "acme").get("pet") is None


async def test_a_store_with_a_key_for_each_deployment_and_no_other_is_restored_after_something_was_forgotten(
    tmp_path: Path, nothing_blocks_the_event_loop: BlockBuster
) -> None:
    nothing_blocks_the_event_loop.deactivate()  # a backup is a command's, and nobody waits beside it
    file, source, target = (tmp_path / f"{name}.db" for name in ("backup", "a", "b"))
    make = lambda path: EncryptedStore(SQLiteStore(path), lambda name: {"acme": [KEY]}.get(name, []))  # noqa: E731
    async with MemoryService(make(source), LexicalEmbedder()) as service:
        await service.user("ana", "acme").set("pet", "an axolotl")
        await service.user("bob", "acme").set("pet", "a goat")
        await service.user("bob", "acme").forget()
    async with opened(make(source), LexicalEmbedder().spec) as store:
        assert (await store.load(MARKS)).size == 0
        assert await store.rows(MARKS, [0]) == []
        assert await store.scan(MARKS, ERASURE)
    with pytest.raises(NotOpen):
        await make(source).load(MARKS)
    await back_up(lambda: make(source), file, LexicalEmbedder().spec, progress=print)
    await restore_backup(file, lambda: make(target), progress=print)
    async with MemoryService(make(target), LexicalEmbedder()) as service:
        assert await service.users("acme") == ["ana"]
        assert (await service.user("ana", "acme").get("pet")).text == "an axolotl"


@pytest.mark.parametrize(
    ("dimensions", "pieces", "kept"), [(384, 128, 103), (384, 103, 103), (1024, 128, 63), (1536, 10, 10)]
)
async def test_a_plain_store_is_copied_whole_though_the_encrypted_one_keeps_less_of_a_vector(
    dimensions: int, pieces: int, kept: int
) -> None:
    spec, vector = EmbeddingSpec("m", dimensions), np.arange(dimensions, dtype=np.float32) + 1 / 3
    vector /= np.linalg.norm(vector)
    plain, sealed, again = InMemoryStore(), EncryptedStore(InMemoryStore(), keys), InMemoryStore()
    async with opened(plain, spec), opened(sealed, spec), opened(again, spec):
        tokens = bytes(range(1, AXES + 1)) * pieces
        attach = Attach(kind="memory", id="m", version=1, vector=vector, tokens=tokens)
        await plain.write(ANA, [put(memory("m")), attach])
        for copy in (copy_store, copy_store, copy_while_written):
            options = {"vectors": True} if copy is copy_store else {}
            if copy is copy_while_written:
                await sealed.erase(ANA)
            done = await copy(plain, sealed, (), **options)
            assert (done.records, done.vectors, done.waiting) == (1, 1, 0)
        there = await sealed.load(ANA)
        assert np.allclose(there.vectors[0], vector, atol=1e-3)
        assert there.tokens[0] == tokens[: kept * AXES]
        await copy_store(sealed, again, (), vectors=True)
        await sealed.write(ANA, [replace(attach, vector=-vector)])
        with pytest.raises(WriteConflict):  # control: another vector is a difference
            await copy_store(plain, sealed, (), vectors=True)


async def test_ciphertext_that_was_moved_to_another_record_is_refused(tmp_path: Path) -> None:
    async with opened(makes(tmp_path / "a.db", KEY)) as store:
        await store.write(ANA, [put(memory("mine")), put(memory("yours"))])
        mine, yours = await store._inner.rows(ANA, [0, 1])
        moved = Record(kind=mine.kind, id=mine.id, data={**mine.data, "sealed": yours.data["sealed"]})
        await store._inner.write(ANA, [Put(record=moved)])
        with pytest.raises(StoreCorrupt, match="was changed or moved"):
            await store.read(ANA, "memory", ["mine"])
        with pytest.raises(StoreCorrupt, match="was changed or moved"):
            await store.load(ANA)


async def test_a_backup_of_an_encrypted_store_is_encrypted_and_restores_with_its_keys(
    tmp_path: Path, nothing_blocks_the_event_loop: BlockBuster
) -> None:
    nothing_blocks_the_event_loop.deactivate()  # a backup is a command's, and nobody waits beside it
    file, source, target = (tmp_path / f"{name}.db" for name in ("backup", "a", "b"))
    service = MemoryService(makes(source, KEY), LexicalEmbedder())
    async with service:
        await service.user("ana").set("pet", "an axolotl called Quetzal")
    spec = LexicalEmbedder().spec
    await back_up(lambda: makes(source, KEY), file, spec, progress=print)
    assert b"axolotl" not in written(file)
    with pytest.raises(EmbeddingMismatch, match="is encrypted"):
        await restore_backup(file, lambda: SQLiteStore(target), progress=print)
    await restore_backup(file, lambda: makes(target, KEY), progress=print)
    async with MemoryService(makes(target, KEY), LexicalEmbedder()) as service:
        assert (await service.user("ana").get("pet")).text == "an axolotl called Quetzal"


async def test_a_plain_store_is_copied_into_an_encrypted_one(tmp_path: Path) -> None:
    source, target = tmp_path / "a.db", tmp_path / "b.db"
    async with MemoryService(SQLiteStore(source), LexicalEmbedder()) as service:
        await service.user("ana").set("pet", "an axolotl called Quetzal")
    with pytest.raises(EmbeddingMismatch, match="is not encrypted"):
        async with opened(makes(source, KEY)):
            pass
    spec = LexicalEmbedder().spec
    await copy_memory(lambda: SQLiteStore(source), lambda: makes(target, KEY), spec, progress=print)
    assert b"axolotl" not in written(target)
    async with MemoryService(makes(target, KEY), LexicalEmbedder()) as service:
        assert (await service.user("ana").query("what is my pet called?"))[0].text.endswith("Quetzal")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("acme", "line 1 .* is not 'DEPLOYMENT KEY'"),
        ("# keys\nacme !!!", "line 2 .* is not 'DEPLOYMENT KEY'"),
        ("* AAAA", "an encryption key has 32 bytes, not 3"),
    ],
)
def test_keys_that_are_none_are_refused_and_not_repeated(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(InvalidInput, match=why) as told:
        store_from(f"sqlite:///{tmp_path}/a.db?encryption=file:{tmp_path}/keys")
    assert "!!!" not in str(told.value)


def test_a_setting_that_names_no_keys_is_refused(tmp_path: Path) -> None:
    for setting in ("", "file:", f"file:{tmp_path}/none", "env:NONE_OF_THAT_NAME", "abc"):
        with pytest.raises(InvalidInput, match="encryption keys"):
            keys_from(setting)
    with pytest.raises(InvalidInput, match="twice"):
        store_from("memory://?encryption=env:A&encryption=env:B")
