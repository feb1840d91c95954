"""What is particular to a folder of files: names, places, bytes that are gone, vectors beside them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blockbuster import BlockingError

from echoic.errors import EmbeddingMismatch, InvalidInput, StoreCorrupt, StoreUnavailable
from echoic.partition import MAX_BYTES
from echoic.stores import files
from echoic.stores.base import Attach, Drop
from echoic.stores.files import FilesStore
from echoic.stores.files import disk as files_disk
from echoic.stores.files import folder as files_register
from echoic.stores.files.disk import Stored, VectorFile
from echoic.stores.files.folder import FileState, Register
from echoic.stores.files.scope import ScopeFiles
from echoic.testing.store_histories import (
    ODD_NAMES,
    OTHER_SPEC,
    SPEC,
    attach,
    content,
    everything,
    expected,
    index,
    loaded,
    memory,
    note,
    opened,
    put,
    told,
    unit,
)
from echoic.types import EmbeddingSpec, Scope

ANA = Scope("default", "ana")
SECRET = "the secret is a blue giraffe named Aurelio"
FORMATS = pytest.mark.parametrize("layout", ["json", "markdown"])


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def everywhere(folder: Path) -> bytes:
    """The bytes of every file, and every name."""
    return b"".join(str(p).encode() + (p.read_bytes() if p.is_file() else b"") for p in folder.rglob("*"))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="yaml"):
        FilesStore("x", "yaml")  # type: ignore[arg-type]


async def test_users_of_the_default_deployment_lie_in_the_folder_itself(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path / "a" / "b")) as store:
        for scope in (ANA, Scope("default", None), Scope("acme", "ana"), Scope("acme", None)):
            await store.write(scope, [put(note("n"))])
    found = {name for name in names(tmp_path / "a" / "b") if name.endswith(".json")}
    assert found == {".echoic.json", "ana.json", "%everyone.json", "acme/ana.json", "acme/%everyone.json"}


@FORMATS
async def test_no_name_leads_out_of_the_folder(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "deep" / "folder"
    scopes = [Scope(d, u) for name in ODD_NAMES for d, u in (("default", name), (name, "ana"), (name, None))]
    async with opened(FilesStore(folder, layout)) as store:
        for scope in scopes:
            await store.write(scope, [put(note("n"))])
        assert set(await store.scopes()) == set(scopes)
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"folder"}
    assert all(len(path.relative_to(folder).parts) <= 2 for path in folder.rglob("*"))
    async with opened(FilesStore(folder, layout)) as store:
        assert set(await store.scopes()) == set(scopes)
        for scope in scopes[::7]:
            assert [r.id for r in await store.scan(scope, "note")] == ["n"]


@FORMATS
async def test_a_name_that_is_too_long_stands_in_the_file(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_register, "LOOK_AGAIN_S", 0)
    monkeypatch.setattr(files_register, "_SHARE", 0)
    long = Scope("default", "é" * 256)
    deployment = Scope("日" * 200, "ana")
    async with opened(FilesStore(tmp_path, layout)) as store:
        for scope in (long, deployment):
            await store.write(scope, [put(note("n"))])
        assert max(len(name) for path in names(tmp_path) for name in path.split("/")) < 200
        path = next(p for p in tmp_path.rglob("*%C3*") if p.suffix in {".json", ".md"})
        text = path.read_text()
        path.write_text(text.replace("é" * 256, "é" * 255 + "!"))
        with pytest.raises(StoreCorrupt, match="named after"):
            await store.scan(long, "note")
        assert await store.scopes() == [deployment]
        path.write_text(text)
        assert await store.scopes() == [long, deployment]
        assert (await store.erase(long)).records == {"note": 1}
        assert await store.scopes() == [deployment]


async def test_capitals_have_files_of_their_own_where_names_are_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a system that takes "Ana" and "ana" for one. The names are what is tried here, not such a system."""
    (tmp_path / "Ana.json").write_text(json.dumps({"facts": [{"content": "hers"}]}))
    (tmp_path / "x.json").write_text(json.dumps({"facts": [{"content": "x"}]}))
    monkeypatch.setattr(files_disk, "folds_case", lambda _: True)
    async with opened(FilesStore(tmp_path)) as store:
        users = [Scope("default", user) for user in ("Ana", "x")]
        assert set(await store.scopes()) == set(users)
        for scope in (ANA, Scope("default", "ANA"), Scope("Acme", "ana"), Scope("acme", "ana")):
            await store.write(scope, [put(note("n"))])
        assert [r.data["text"] for r in await store.scan(users[0], "memory")] == ["hers"]
        assert len(await store.scopes()) == 6
    folded = [name.casefold() for name in names(tmp_path)]
    assert len(folded) == len(set(folded))


async def test_a_file_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"facts": [{"content": "not yours"}]}))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "ana.json").symlink_to(elsewhere)
    (folder / "bob.json").mkdir()
    os.mkfifo(folder / "eve.json")
    before = elsewhere.read_bytes()
    async with opened(FilesStore(folder)) as store:
        for user in ("ana", "eve"):
            for verb in (
                store.scan(Scope("default", user), "memory"),
                store.write(Scope("default", user), [put(note("n"))]),
                store.erase(Scope("default", user)),
            ):
                with pytest.raises(StoreCorrupt, match=f"{user}.*untouched"):
                    await verb
        with pytest.raises((StoreCorrupt, StoreUnavailable)):
            await store.scan(Scope("default", "bob"), "memory")
    assert elsewhere.read_bytes() == before


async def test_what_is_kept_is_for_its_owner_alone_and_keeps_the_rights_it_was_given(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path / "f")) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
        path = tmp_path / "f" / "ana.json"
        assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700
        for file in (tmp_path / "f").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
        path.chmod(0o640)
        await store.write(ANA, [put(note("n"))])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        before = names(tmp_path)
        await store.scan(ANA, "memory")
        await store.load(Scope("acme", "ana"))
        await store.erase(ANA)
        await store.write(ANA, [Drop(kind="memory", id="x")])
        await store.waiting(10)
        await store.check()
        assert names(tmp_path) == before


@FORMATS
async def test_an_erased_user_is_nowhere_in_the_folder(tmp_path: Path, layout: str) -> None:
    user = Scope("default", "aurelia")
    async with opened(FilesStore(tmp_path, layout)) as store:
        await store.write(user, [put(memory("a", SECRET)), put(note("n", said=SECRET))])
        await store.write(user, [attach(r, 3) for r in await store.scan(user, "memory")])
        await store.write(ANA, [put(memory("a", "likes tea"))])
        assert SECRET.encode() in everywhere(tmp_path)
        assert unit(3).tobytes() in everywhere(tmp_path)
        erased = await store.erase(user)
        assert (erased.verified, erased.vectors, dict(erased.records)) == (True, 1, {"memory": 1, "note": 1})
        left = everywhere(tmp_path)
        assert not [n for n in (b"giraffe", b"aurelia", unit(3).tobytes()[:8]) if n in left]
        assert [r.data["text"] for r in await store.scan(ANA, "memory")] == ["likes tea"]


@FORMATS
async def test_erased_records_are_nowhere_in_the_folder(tmp_path: Path, layout: str) -> None:
    async with opened(FilesStore(tmp_path, layout)) as store:
        await store.write(
            ANA, [put(memory("a", SECRET)), put(memory("b", "likes tea")), put(note("n", x=SECRET))]
        )
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
        erased = await store.erase(ANA, [Drop(kind="memory", id="a"), Drop(kind="note", id="n")])
        assert (erased.verified, erased.vectors) == (True, 1)
        assert erased.bytes_searched >= (tmp_path / "ana.vectors").stat().st_size
        left = everywhere(tmp_path)
        assert b"giraffe" not in left
        assert unit(0).tobytes()[:8] not in left
        assert unit(1).tobytes() in left


async def test_the_bytes_of_an_erased_file_are_overwritten_before_it_is_removed(tmp_path: Path) -> None:
    """Who still holds the file, as a disk does, reads zeros."""
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET)), put(note("n"))])
        await store.write(ANA, [attach(r, 3) for r in await store.scan(ANA, "memory")])
        held = [os.open(tmp_path / name, os.O_RDONLY) for name in ("ana.json", "ana.vectors")]
        await store.erase(ANA, [Drop(kind="memory", id="a")])
        held.append(os.open(tmp_path / "ana.json", os.O_RDONLY))
        await store.erase(ANA)
        for fd in held:
            size = os.fstat(fd).st_size
            assert size > 50
            assert os.pread(fd, size, 0) == bytes(size)
            os.close(fd)


@FORMATS
async def test_the_file_goes_with_the_last_record_unless_others_keep_something_in_it(
    tmp_path: Path, layout: str
) -> None:
    theirs = {"json": json.dumps({"facts": [], "theme": "slow"}), "markdown": "My notes.\n"}[layout]
    path = tmp_path / ("bob.json" if layout == "json" else "bob.md")
    path.write_text(theirs)
    async with opened(FilesStore(tmp_path, layout)) as store:
        for user in ("aurelia", "bob"):
            scope = Scope("default", user)
            await store.write(scope, [put(memory("a", SECRET))])
            assert (await store.erase(scope, [Drop(kind="memory", id="a")])).verified
        left = everywhere(tmp_path)
        assert b"aurelia" not in left
        assert b"giraffe" not in left
        assert (b"slow" if layout == "json" else b"My notes.") in path.read_bytes()
        assert await store.scopes() == []


async def test_a_copy_that_is_left_in_the_folder_is_not_called_gone(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        for left in ("ana.json~", ".ana.json.swp", "notes.txt"):
            await store.write(ANA, [put(memory("a", SECRET)), put(memory("b", "likes tea"))])
            (tmp_path / left).write_bytes((tmp_path / "ana.json").read_bytes())
            assert not (await store.erase(ANA, [Drop(kind="memory", id="a")])).verified, left
            (tmp_path / left).unlink()
            assert (await store.erase(ANA)).verified


async def test_what_others_say_as_well_is_not_taken_for_a_trace(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET)), put(memory("b", SECRET))])
        await store.write(Scope("default", "bob"), [put(memory("a", SECRET))])
        assert (await store.erase(ANA, [Drop(kind="memory", id="a")])).verified
        assert (await store.erase(ANA)).verified


@pytest.mark.parametrize("dimensions", [8, 384])
async def test_vectors_that_are_alike_or_nearly_empty_are_not_taken_for_a_trace(
    tmp_path: Path, dimensions: int
) -> None:
    """Two memories of the same words have the same vector, and one made of words is zero nearly everywhere."""
    sparse = np.zeros(dimensions, np.float32)
    sparse[5] = 1
    vectors = [unit(1, dimensions), unit(1, dimensions), sparse, sparse, unit(2, dimensions)]
    store = FilesStore(tmp_path)
    await store.open(EmbeddingSpec("alike", dimensions), index)
    try:
        await store.write(ANA, [put(memory(f"m{n}", f"number {n} of some")) for n in range(5)])
        attaches = [Attach(kind="memory", id=f"m{n}", version=1, vector=v) for n, v in enumerate(vectors)]
        await store.write(ANA, attaches)
        for n in (0, 2, 4):
            erased = await store.erase(ANA, [Drop(kind="memory", id=f"m{n}")])
            assert (erased.verified, erased.vectors) == (True, 1)
        assert vectors[4].tobytes()[:8] not in everywhere(tmp_path)
        assert set((await loaded(store, ANA)).vectors) == {1, 3}
        assert (await store.erase(ANA)).verified
    finally:
        await store.aclose()


async def test_an_erasure_that_leaves_a_vector_behind_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET)), put(memory("b"))])
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
        monkeypatch.setattr(VectorFile, "clear", lambda *_: None)
        assert not (await store.erase(ANA, [Drop(kind="memory", id="a")])).verified


async def test_an_erasure_takes_leftovers_of_a_crash_with_it(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET)), put(note("n"))])
        for erase in ([Drop(kind="memory", id="a")], None):
            (tmp_path / ".ana.json.0123abcd.tmp").write_text(SECRET)
            assert (await store.erase(ANA, erase)).verified
            assert b"giraffe" not in everywhere(tmp_path)


@pytest.mark.parametrize("other", ["ana.json", "ana.vectors"])
async def test_an_erasure_leaves_alone_what_is_being_written_for_one_of_a_like_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    theirs = Scope(ANA.deployment, other)
    renaming, go_on = threading.Event(), threading.Event()
    rename = os.replace

    def slowly(source: Any, target: Any) -> None:
        if Path(target).name == f"{other}.json":
            renaming.set()
            assert go_on.wait(60)
        rename(source, target)

    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET))])
        monkeypatch.setattr(os, "replace", slowly)
        writing = asyncio.create_task(store.write(theirs, [put(memory("b", "likes tea"))]))
        assert await asyncio.to_thread(renaming.wait, 10)
        assert (await store.erase(ANA)).verified
        go_on.set()
        await writing
        assert [record.id for record in await store.scan(theirs, "memory")] == ["b"]


async def test_a_partition_is_patched_and_not_made_anew_by_a_write(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store, opened(FilesStore(tmp_path)) as other:
        await store.write(ANA, [put(memory(f"m{n}", f"likes {n}")) for n in range(100)])
        partition, theirs = await store.load(ANA), await other.load(ANA)
        for writer in (store, other):
            revisions = partition.revision, theirs.revision
            await writer.write(ANA, [put(memory("m7", f"likes {id(writer)}"))])
            assert await store.load(ANA) is partition
            assert await other.load(ANA) is theirs
            assert content(partition) == content(theirs) == expected(await everything(store, ANA), {})
            changed = [
                int((p.patched > r).sum()) for p, r in zip((partition, theirs), revisions, strict=True)
            ]
            assert changed == [1, 1], "segments that did not change were put in place again"


async def test_loaded_scopes_are_let_go_beyond_the_bound(tmp_path: Path) -> None:
    scopes = [Scope("default", f"user{n}") for n in range(12)]
    async with opened(FilesStore(tmp_path, cache_bytes=200_000)) as store:
        for scope in scopes:
            await store.write(scope, [put(memory(f"m{n}", f"likes number {n}")) for n in range(40)])
        facts = await store.check()
        assert 0 < facts["loaded_scopes"] < 12
        assert 0 < facts["loaded_bytes"] <= 200_000
        for scope in [*scopes, *scopes]:
            assert await loaded(store, scope) == expected(await everything(store, scope), {})
        assert (await store.check())["loaded_bytes"] <= 200_000


async def test_one_scope_beyond_the_bound_is_kept_all_the_same(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path, cache_bytes=1)) as store:
        await store.write(ANA, [put(memory("a"))])
        assert await store.load(ANA) is await store.load(ANA)


async def test_work_on_the_event_loop_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: every test here fails where the store blocks the loop."""

    async def ask_here(self: FilesStore, scope: Scope, question):
        async with self._at(scope) as (place, _):
            return place.ask(question)

    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        monkeypatch.setattr(FilesStore, "_ask", ask_here)
        with pytest.raises(BlockingError):
            await store.scan(ANA, "memory")


async def test_reads_do_not_wait_for_a_write_of_the_same_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    syncing, go_on = threading.Event(), threading.Event()
    replace = files_disk.replace

    def slow(*args, **how):
        syncing.set()
        assert go_on.wait(30)
        return replace(*args, **how)

    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", "before"))])
        monkeypatch.setattr(files_disk, "replace", slow)
        writing = [
            asyncio.ensure_future(store.write(ANA, [put(memory("a", f"after {n}"))])) for n in range(20)
        ]
        await asyncio.to_thread(syncing.wait, 30)
        assert [r.data["text"] for r in await store.scan(ANA, "memory")] == ["before"]
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {})
        assert not any(write.done() for write in writing)
        go_on.set()
        await asyncio.gather(*writing)
        assert (await store.scan(ANA, "memory"))[0].version == 21


async def test_what_waits_is_found_after_it_was_asked_for_in_the_midst_of_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced, go_on = threading.Event(), threading.Event()
    replace = files_disk.replace

    def pausing(*args, **how):
        state = replace(*args, **how)
        replaced.set()
        assert go_on.wait(30)
        return state

    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
        monkeypatch.setattr(files_disk, "replace", pausing)
        writing = asyncio.ensure_future(store.write(ANA, [put(memory("b"))]))
        await asyncio.to_thread(replaced.wait, 30)
        monkeypatch.setattr(files_register, "LOOK_AGAIN_S", 1e6)
        assert await store.waiting(10) == [], "readers get what was there before the write"
        go_on.set()
        await writing
        assert [waiting.record.id for waiting in await store.waiting(10)] == ["b"]


async def test_a_write_that_is_cancelled_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        for n in range(30):
            writing = asyncio.ensure_future(store.write(ANA, [put(note(f"a{n}")), put(note(f"b{n}"))]))
            await asyncio.sleep(n * 0.0001)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await store.write(ANA, [put(note("last"))])
        found = {r.id for r in await store.scan(ANA, "note")}
    assert "last" in found
    assert {n[1:] for n in found if n[0] == "a"} == {n[1:] for n in found if n[0] == "b"}


async def test_lost_vectors_are_waited_for_again(tmp_path: Path) -> None:
    path = tmp_path / "ana.vectors"
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory(f"m{n}", f"likes {n}")) for n in range(3)])
        records = await store.scan(ANA, "memory")
        await store.write(ANA, [attach(r, r.seq) for r in records])
        whole = path.read_bytes()
        last = len(whole) - MAX_BYTES - 1  # of the last vector
        spoiled = {
            "deleted": None,
            "empty": b"",
            "of zeros": bytes(len(whole)),
            "somebody else's": b"hello" * 100,
            "cut short": whole[: len(whole) - 9],
            "one bit off": whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :],
        }
        for what, data in spoiled.items():
            path.unlink(missing_ok=True)
            if data is not None:
                path.write_bytes(data)
            left = {0, 1} if what in {"cut short", "one bit off"} else set()
            assert set((await loaded(store, ANA)).vectors) == left, what
            assert {w.record.seq for w in await store.waiting(10)} == {0, 1, 2} - left, what
            await store.write(ANA, [attach(r, r.seq) for r in records])
            assert (await loaded(store, ANA)).vectors == {n: unit(n).tobytes() for n in range(3)}, what
            assert [told(r) for r in await store.scan(ANA, "memory")] == [told(r) for r in records]


async def test_a_vector_file_of_another_model_or_user_is_not_used(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        for user in ("ana", "bob"):
            scope = Scope("default", user)
            await store.write(scope, [put(memory("a", f"{user} likes tea")), put(memory("b", "the same"))])
            await store.write(scope, [attach(r, r.seq) for r in await store.scan(scope, "memory")])
        (tmp_path / "ana.vectors").write_bytes((tmp_path / "bob.vectors").read_bytes())
        assert set((await loaded(store, ANA)).vectors) == {1}, "only the vector of the very same words counts"
        other = VectorFile(tmp_path / "ana.vectors", EmbeddingSpec("another", 8))
        await asyncio.to_thread(other.write, {0: Stored(bytes(16), np.zeros(8, np.float32))})
        assert (await loaded(store, ANA)).vectors == {}


async def test_a_vector_of_another_length_is_refused(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        for wrong in (unit(0, 7), unit(0, 16), np.zeros((1, 8), np.float32)):
            with pytest.raises(EmbeddingMismatch, match="'a'"):
                await store.write(ANA, [Attach(kind="memory", id="a", version=1, vector=wrong)])
        assert (await loaded(store, ANA)).vectors == {}


async def test_reindexing_leaves_no_old_vector_in_the_folder(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.write(ANA, [attach(r, 3) for r in await store.scan(ANA, "memory")])
        await store.reindex(OTHER_SPEC)
        assert unit(3).tobytes() not in everywhere(tmp_path)
    with pytest.raises(EmbeddingMismatch, match=r"test:twelve.*12.*test:eight.*8.*reindex"):
        await FilesStore(tmp_path).open(SPEC, index)


async def test_scopes_of_another_program_come_first_by_name(tmp_path: Path) -> None:
    for user in ("zoe", "adam"):
        (tmp_path / f"{user}.json").write_text(json.dumps({"facts": [{"content": "x"}]}))
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(note("n"))])
        await store.write(Scope("default", "zoe"), [put(note("n"))])
        assert [scope.user for scope in await store.scopes()] == ["adam", "zoe", "ana"]


async def test_what_a_person_adds_or_removes_is_found_among_all_users_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = Scope("default", "bob")
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        await store.waiting(10)
        (tmp_path / "bob.json").write_text(json.dumps({"facts": [{"content": "likes tea"}]}))
        assert len(await store.scan(bob, "memory")) == 1, "who asks for bob finds him at once"
        assert await store.scopes() == [bob, ANA]
        monkeypatch.setattr(files_register, "LOOK_AGAIN_S", 0)
        monkeypatch.setattr(files_register, "_SHARE", 0)
        store._register._look_again = 0
        (tmp_path / "ana.json").unlink()
        (tmp_path / "eve.json").write_text(json.dumps({"facts": [{"content": "likes rain"}]}))
        assert {w.scope.user for w in await store.waiting(10)} == {"bob", "eve"}
        assert [scope.user for scope in await store.scopes()] == ["bob", "eve"]


async def test_users_are_not_all_looked_at_for_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_register, "LOOK_AGAIN_S", 1e9)
    looks: list[Path] = []
    look = files_register.Register._look_at
    monkeypatch.setattr(files_register.Register, "_look_at", lambda *a: (looks.append(a[1]), look(*a)))
    users = [Scope("default", f"user{n}") for n in range(20)]
    async with opened(FilesStore(tmp_path)) as store, opened(FilesStore(tmp_path)) as other:
        for scope in users:
            await store.write(scope, [put(memory("a"))])
        assert len(await store.waiting(100)) == len(await other.waiting(100)) == 20
        looks.clear()
        for _ in range(3):
            await store.write(users[3], [put(memory("b"))])
            await store.waiting(100)
            await store.scopes()
        assert {path.name for path in looks} == {"user3.json"}
        assert len(looks) < 10
        looks.clear()
        assert len(await other.waiting(100)) == 21
        assert len({path.name for path in looks}) == 20, "what another instance wrote was not looked for"


async def test_one_failed_look_loses_none_of_the_files_that_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_register, "LOOK_AGAIN_S", 1e9)
    users = [Scope("default", f"user{n}") for n in range(4)]

    def failing(*_args: Any) -> None:
        raise OSError(24, "Too many open files")

    async with opened(FilesStore(tmp_path)) as store:
        assert await store.waiting(10) == []
        for scope in users:
            await store.write(scope, [put(memory("a"))])
        with monkeypatch.context() as patched:
            patched.setattr(files_register.Register, "_look_at", failing)
            with pytest.raises(StoreUnavailable):
                await store.waiting(10)
        assert {waiting.scope for waiting in await store.waiting(10)} == set(users)
        assert await store.scopes() == users


async def test_a_file_that_may_not_be_read_keeps_nobody_else_from_being_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = Scope("default", "bob")
    async with opened(FilesStore(tmp_path)) as store:
        for scope in (ANA, bob):
            await store.write(scope, [put(memory("a"))])
    read, denied = files_disk.read, {"bob.json"}

    def permitted(path: Path) -> bytes:
        if path.name in denied:
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(files_disk, "read", permitted)
    async with opened(FilesStore(tmp_path)) as store:
        assert await store.scopes() == [ANA]
        assert [waiting.scope for waiting in await store.waiting(10)] == [ANA]
        facts = await store.check()
        (failure,) = facts["unreadable"]
        assert "bob.json' could not be read: Permission denied" in failure
        assert (facts["scopes"], facts["waiting"]) == (1, 1)
        with pytest.raises(StoreUnavailable):
            await store.scan(bob, "memory")
        denied.clear()  # the file itself, and its date, stay as they are
        store._register._look_again = 0
        assert await store.scopes() == [ANA, bob]
        assert {waiting.scope for waiting in await store.waiting(10)} == {ANA, bob}
        assert (await store.check())["unreadable"] == []


async def test_what_is_of_the_process_and_not_of_a_file_leaves_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_args: Any) -> bytes:
        raise OSError(24, "Too many open files")

    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
        with monkeypatch.context() as patched:
            patched.setattr(files_disk, "read", exhausted)
            with pytest.raises(StoreUnavailable):
                await store.scopes()
        assert await store.scopes() == [ANA]


async def test_who_cannot_be_asked_what_waits_keeps_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, away, bob = ScopeFiles.waiting, {ANA}, Scope("default", "bob")

    def asked(files: ScopeFiles, limit: int) -> Any:
        if files.scope in away:
            raise StoreUnavailable("its vectors could not be read")
        return ask(files, limit)

    monkeypatch.setattr(ScopeFiles, "waiting", asked)
    async with opened(FilesStore(tmp_path)) as store:
        for scope in (ANA, bob):
            await store.write(scope, [put(memory("a"))])
        (waiting,) = await store.waiting(10)
        assert waiting.scope == bob
        await store.write(bob, [attach(waiting.record)])
        with pytest.raises(StoreUnavailable):  # and not nothing: it is asked again after a pause
            await store.waiting(10)
        away.clear()
        assert [waiting.scope for waiting in await store.waiting(10)] == [ANA]


async def test_a_file_that_turns_up_while_the_store_is_open_is_found(tmp_path: Path) -> None:
    maria = Scope("default", "María")
    async with opened(FilesStore(tmp_path)) as store:
        assert await store.scan(maria, "memory") == []
        (tmp_path / "María.json").write_text(json.dumps({"facts": [{"content": "likes tea"}]}))
        assert [r.data["text"] for r in await store.scan(maria, "memory")] == ["likes tea"]
        await store.write(maria, [put(note("n"))])
        assert await store.scopes() == [maria]
    assert {name for name in names(tmp_path) if not name.startswith(".")} == {"María.json", "Mar%C3%ADa.lock"}


async def test_no_content_is_told_by_an_error(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", SECRET))])
        path = tmp_path / "ana.json"
        text = path.read_text()
        for spoiled in (text[: text.index("giraffe")], text.replace('"version"', '"versio"'), text + "}"):
            path.write_text(spoiled)
            with pytest.raises(StoreCorrupt) as error:
                await store.scan(ANA, "memory")
            assert "giraffe" not in str(error.value)
            assert "secret" not in str(error.value)


async def test_who_began_before_a_reindex_leaves_nothing_of_the_old_model_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody opens a user's files just as the model changes; whoever comes next must not be given those."""
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a"))])
    at_it, go_on, there = threading.Event(), threading.Event(), threading.Event()

    class Slow(ScopeFiles):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            if not at_it.is_set():
                at_it.set()
                assert go_on.wait(60)

    def register_asked_after_the_change(register: Register) -> list[FileState]:
        go_on.set()
        assert there.wait(60)
        return all_known(register)

    all_known = Register.all
    monkeypatch.setattr(files, "ScopeFiles", Slow)
    async with opened(FilesStore(tmp_path)) as store:
        early = asyncio.create_task(store.load(ANA))
        assert await asyncio.to_thread(at_it.wait, 10)
        monkeypatch.setattr(Register, "all", register_asked_after_the_change)
        changing = asyncio.create_task(store.reindex(OTHER_SPEC))
        await early
        there.set()
        assert await changing == 1
        [waits] = await store.waiting(10)
        await store.write(ANA, [attach(waits.record, 5, OTHER_SPEC.dimensions)])
        assert await store.waiting(10) == []
