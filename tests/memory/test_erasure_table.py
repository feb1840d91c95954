"""What of a person lies where, and that nothing of it is left: on bytes, on three stores, and after a restore."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

import echoic
from echoic.embedding import embedder_from
from echoic.memory import erasure
from echoic.memory.compliance import ERASURE, IDENTITY, MARKS, Compliance
from echoic.memory.experience import teacher
from echoic.memory.export import back_up, copy_memory, restore_backup
from echoic.memory.export import opened as store_opened
from echoic.memory.extraction.model_reader import LEASE, PROGRESS
from echoic.memory.phone_registry import happened, holding, line_key
from echoic.memory.proposals import JUDGEMENT
from echoic.memory.records import (
    CALL,
    CHECKPOINT,
    EXCHANGE,
    EXPERIENCE,
    GIVEN,
    LINK_CODE,
    PHONE_OF,
    PHONE_PIN,
    PROPOSAL,
    record_of_memory,
    scan_all,
)
from echoic.stores import bulk_copy, store_from
from echoic.stores.base import Put, Record, Store
from echoic.types import EXPERIENCE_KINDS, EmbeddingSpec, Memory, Scope, Turn
from stores import postgres_server

USER, OTHER = "zanquserba", "benedikt"
ANA = Scope("default", USER)
AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
PLACES = tuple(
    """value corrected_value retracted_value statement context remembered turn unheard_words agents_echo
    another_speaker taken_back_turn key conversation_id recall_key summary task_result tool_argument directive
    agents_directive item_value item_name searchable_item turn_id checkpoint call_record call_turn
    given_to_the_model reading_progress lease judgement proposal global_memory global_history lesson
    person_on_a_line pointer_to_a_line pin code unproven_caller""".split()
)
WORD = {
    place: f"zanq{'bcdfghjklmnpqrstvwxz'[n % 20]}{'aeiou'[n // 20]}rimo" for n, place in enumerate(PLACES)
}


def a(kind: str, name: str, data: dict[str, object], key: str | None = None) -> Put:
    return Put(record=Record(kind=kind, id=name, key=key, data=data))


async def plant(memory: echoic.MemoryService) -> None:
    """A word that is nowhere else in every place that can hold something of a person."""
    w, user, store = WORD, memory.user(USER), memory.user(USER).backing_store
    for text in (w["corrected_value"], w["value"]):
        await user.set("pet", f"my own {text}")
    await user.set(f"my {w['key']}", "a thing")
    await user.set("boat", f"my own {w['retracted_value']}")
    await user.delete("boat")
    await user.remember(f"Owns a {w['remembered']}")
    first = await user.conversation(w["conversation_id"])
    await first.append(Turn(speaker="user", text=f"I once saw a {w['turn']}.", id=f"t-{w['turn_id']}"))
    await first.append(Turn(speaker="agent", text=f"A {w['agents_echo']}, I see.", id="t2"))
    await first.append(Turn(speaker="agent", text=f"Well, the {w['unheard_words']}", heard="Well,", id="t3"))
    await first.append(Turn(speaker="Olga", text=f"It was the {w['another_speaker']}.", id="t4"))
    await first.append(Turn(speaker="user", text=f"My neighbour Olga fears {w['taken_back_turn']}.", id="t5"))
    await first.append(Turn(speaker="user", text="Forget that, please.", id="t6"))
    await first.store(key=f"the {w['recall_key']}", summary=f"About the {w['summary']}.")
    await user.add_result(
        w["conversation_id"], "look_up", {"found": w["task_result"]}, arguments={"what": w["tool_argument"]}
    )
    await user.set_directives(small_talk=f"about the {w['directive']}")
    await user.set_directives(for_agent="concierge", tone=f"like a {w['agents_directive']}")
    await user.items("order").set(f"order {w['item_name']}", {"of": w["item_value"]})
    await user.items("note", searchable=True).set("n", {}, text=f"a {w['searchable_item']}")
    known = partial(Memory, valid_from=AT)
    own = known(id="m1", text="yes", statement=f"It is a {w['statement']}", context=f"on a {w['context']}")
    records = [
        a(CHECKPOINT, "s", {"conversation": "c", "messages": w["checkpoint"]}),
        a(CALL, "c1", {"about": w["call_record"]}, "c"),
        a(EXCHANGE, "c2", {"said": w["call_turn"]}, "c"),
        a(GIVEN, "c3", {"bytes": w["given_to_the_model"]}, "c"),
        a(PROGRESS, "p", {"reader": w["reading_progress"]}, "c"),
        a(LEASE, "l", {"holder": w["lease"]}),
        a(JUDGEMENT, "j", {"text": w["judgement"]}, "pet"),
        a(PHONE_OF, line_key("line"), {"name": w["pointer_to_a_line"]}),
        a(PHONE_PIN, "pin", {"hash": w["pin"]}),
        Put(record=record_of_memory(own)),
    ]
    await store.write(ANA, records)
    said = partial(known, author=USER, visibility="global")
    shared = [
        Put(record=record_of_memory(said(id="g2", key="hours", text=f"from {w['global_memory']} on"))),
        Put(
            record=record_of_memory(
                said(id="g1", key="hours", text=w["global_history"], valid_until=AT, superseded_by="g2")
            )
        ),
        Put(record=record_of_memory(said(id="p1", text=f"the {w['proposal']}"), kind=PROPOSAL)),
        a(
            EXPERIENCE,
            "lesson",
            {
                "kind": EXPERIENCE_KINDS[0],
                "text": f"Offer the {w['lesson']} first.",
                "times": 1,
                "taught_by": [teacher(ANA)],
                "adopted": False,
            },
            "concierge",
        ),
        a(LINK_CODE, "code", {"whose": USER, "code": w["code"]}),
        Put(record=happened(line_key("line"), "person", AT, name=w["person_on_a_line"], user=USER)),
        Put(record=happened(line_key("line"), "person", AT, name="benedikt", user=OTHER)),
    ]
    await store.write(ANA.everyone, shared)
    held = memory.user(holding(line_key(USER)))
    await (await held.conversation("x")).append(
        Turn(speaker="user", text=f"It is me, {w['unproven_caller']}.", id="x1")
    )
    await memory.user(OTHER).set("pet", "a goat named benediktus")
    await memory.distil()
    await memory.settle()


@dataclass
class Place:
    """A kind of store, and where its bytes lie."""

    url: str
    restored: str
    bytes_of: Callable[[str], bytes]
    wipe: Callable[[], None]


def files_at(path: Path) -> bytes:
    found = [path] if path.is_file() else []
    found += [each for each in path.parent.rglob("*") if each.is_file() and each.name.startswith(path.name)]
    found += [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else []
    return b"".join(str(each).encode() + each.read_bytes() for each in {*found})


def place_of(kind: str, tmp_path: Path) -> Place:
    if kind == "postgres":
        server = postgres_server.shared()
        urls = (server.url(), server.url())

        def in_heap(url: str) -> bytes:
            schema = url.partition("schema=")[2].partition("&")[0]
            server.sql("checkpoint")
            listing = f"select pg_relation_filepath(c.oid) from pg_class c where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'i', 't')"
            toast = f"select pg_relation_filepath(reltoastrelid) from pg_class where relnamespace = '{schema}'::regnamespace and reltoastrelid <> 0"
            run = subprocess.run(
                [server._binaries / "psql", "-h", server.folder, "-U", "postgres", "-Atc", f"{listing} union {toast}"],
                capture_output=True, text=True, check=True, **server._as,
            )  # fmt: skip
            paths = [server.folder / "data" / line for line in run.stdout.split()]
            return b"".join(path.read_bytes() for path in paths if path.exists())

        return Place(*urls, in_heap, lambda: server.sql("vacuum full"))
    names = {"sqlite": ("sqlite:///{}/e.db", "sqlite:///{}/again.db")}
    names["files"] = ("files:///{}/people", "files:///{}/again")
    one, two = (name.format(tmp_path) for name in names[kind])

    def on_disk(url: str) -> bytes:
        return files_at(tmp_path / url.rpartition("/")[2])

    return Place(one, two, on_disk, lambda: None)


def places_in(raw: bytes) -> set[str]:
    """Where a planted word was found."""
    return {place for place, word in WORD.items() if word.encode() in raw} | (
        {"user id"} if USER.encode() in raw else set()
    )


EVERYWHERE = {*PLACES, "user id"}


@pytest.fixture(params=["sqlite", "files", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


def opened(url: str, folder: Path | None) -> echoic.MemoryService:
    return echoic.open(url, embedder="lexical", compliance=folder)


async def backed_up(place: Place, path: Path) -> None:
    spec = embedder_from("lexical").spec
    await back_up(partial(store_from, place.url), path, spec, progress=lambda _done, _total: None)


async def test_a_person_is_in_no_place_after_erasure_nor_after_the_restore_of_a_backup(
    place: Place, tmp_path: Path, tally
):
    compliance = tmp_path / "compliance"
    async with opened(place.url, compliance) as memory:
        await plant(memory)
    before = places_in(place.bytes_of(place.url))
    assert before == EVERYWHERE  # the control: every word is found where it was planted
    await backed_up(place, tmp_path / "backup.db")
    async with opened(place.url, compliance) as memory:
        receipt = await memory.user(USER).forget()
        assert receipt.records >= len(PLACES) - 10
        left = places_in(str(await memory.user(OTHER).export()).encode())
    place.wipe()
    after = places_in(place.bytes_of(place.url)) | left
    await restore_backup(
        tmp_path / "backup.db", partial(store_from, place.restored), progress=lambda _done, _total: None
    )
    returned = places_in(place.bytes_of(place.restored))
    assert returned == EVERYWHERE  # the control: a backup holds all of it
    async with opened(place.restored, compliance) as memory:
        assert memory.forgotten_again > 0
        assert "benediktus" in str(await memory.user(OTHER).facts())
    place.wipe()
    restored = places_in(place.bytes_of(place.restored))
    listed = places_in(b"".join(each.read_bytes() for each in compliance.iterdir()))
    tally(f"{len(before)} places, {len(after)} left, {len(restored)} left after a restore")
    assert (after, restored, listed) == (set(), set(), set())
    async with opened(place.restored, compliance) as memory:
        assert memory.forgotten_again == 0  # once


def test_the_table_in_the_documents_has_every_place():
    page = (Path(__file__).parents[2] / "docs" / "forgetting.md").read_text()
    rows = page.partition("<!-- places -->\n")[2].partition("<!-- end of places -->")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[2:-1]] for row in rows]
    named = [place.replace(" ", "_") for row in cells[:-1] for place in row[0].split(", ")]
    assert sorted(named) == sorted(place.replace(" ", "_") for place in EVERYWHERE)
    for names, *counts in cells:
        of = str(len(names.split(", ")) if names else len(EVERYWHERE))
        assert counts == [of, "0", of, "0", "0"]


async def test_who_comes_back_after_being_erased_is_not_erased_when_the_store_is_opened_again(tmp_path: Path):
    for told in ("before", "after", "later"):
        async with opened(f"sqlite:///{tmp_path}/e.db", None) as memory:
            assert [each.text for each in await memory.user(USER).facts()] == (
                ["after"] if told == "later" else []
            )
            await memory.user(USER).set("pet", told)
            if told == "before":
                await memory.user(USER).forget()


async def pets(url: str, folder: Path, *forgetting: str, **told: str) -> dict[str, str]:
    """The pet of each user of a store, after it was opened, some were told and some forgotten."""
    async with opened(url, folder) as memory:
        for user, pet in told.items():
            await memory.user(user).set("pet", pet)
        for user in forgetting:
            await memory.user(user).forget()
        return {user: (await memory.user(user).get("pet")).text for user in await memory.users()}


def marked(path: Path) -> set[str]:
    async def read() -> set[str]:
        async with store_opened(partial(store_from, f"sqlite:///{path}"), EmbeddingSpec("", 0)) as (store, _):
            return {mark.id for mark in await scan_all(store, MARKS, ERASURE)}

    return asyncio.run(read())


async def restored(backup: Path, target: Path) -> None:
    await restore_backup(
        backup, partial(store_from, f"sqlite:///{target}"), progress=lambda _done, _total: None, checked=False
    )


async def test_who_is_forgotten_while_a_backup_is_made_is_not_back_when_it_is_restored(
    tmp_path: Path, monkeypatch
):
    folder, source = tmp_path / "c", f"files:///{tmp_path}/people"
    async with opened(source, folder) as memory:
        monkeypatch.setattr(Compliance, "_identity", AsyncMock(return_value=[]))  # as in older stores
        await memory.user("bob").set("pet", "goat")
        await memory.user("eve").set("pet", "cat")
        await memory.user("eve").forget()

        made = bulk_copy._at_one_moment

        async def slowly(store: Store, scope: Scope, *rest: object) -> object:
            found = await made(store, scope, *rest)
            if scope.user == "bob":
                assert (await memory.user("bob").forget()).records
            return found

        monkeypatch.setattr(bulk_copy, "_at_one_moment", slowly)
        await back_up(
            partial(store_from, source), tmp_path / "backup.db", embedder_from("lexical").spec, progress=print
        )
    await restored(tmp_path / "backup.db", tmp_path / "again.db")
    assert await pets(f"sqlite:///{tmp_path}/again.db", folder) == {}


async def test_who_is_forgotten_in_one_store_stays_in_another_with_the_same_folder(tmp_path: Path):
    """As two stores of one machine do that are given one folder."""
    one, other, folder = f"sqlite:///{tmp_path}/1.db", f"sqlite:///{tmp_path}/2.db", tmp_path / "c"
    await pets(one, folder, ana="axolotl", bob="goat", eve="cat")
    shutil.copy(tmp_path / "1.db", tmp_path / "old.db")
    assert await pets(other, folder, "ana", "eve", ana="axolotl", bob="goat", eve="cat") == {"bob": "goat"}
    assert await pets(one, folder, "bob") == {"ana": "axolotl", "eve": "cat"}
    assert await pets(other, folder) == {"bob": "goat"}
    shutil.copy(tmp_path / "old.db", tmp_path / "1.db")  # a copy of the first forgets what the first forgot
    assert await pets(one, folder) == {"ana": "axolotl", "eve": "cat"}


async def test_a_restored_backup_forgets_what_was_forgotten_since_in_any_store_of_the_folder(tmp_path: Path):
    """As in a new one that was used after the first was lost; from then on it is one of several again."""
    folder = tmp_path / "c"
    await pets(f"sqlite:///{tmp_path}/lost.db", folder, ana="axolotl", bob="goat", eve="cat")
    shutil.copy(tmp_path / "lost.db", tmp_path / "backup.db")
    await pets(f"sqlite:///{tmp_path}/lost.db", folder, "ana")
    await pets(f"sqlite:///{tmp_path}/new.db", folder, "bob", bob="goat", eve="cat")
    await restored(tmp_path / "backup.db", tmp_path / "again.db")
    assert await pets(f"sqlite:///{tmp_path}/again.db", folder) == {"eve": "cat"}
    await pets(f"sqlite:///{tmp_path}/new.db", folder, "eve")
    assert await pets(f"sqlite:///{tmp_path}/again.db", folder, ana="newt") == {"ana": "newt", "eve": "cat"}
    # what is forgotten in it is forgotten in every older copy
    await pets(f"sqlite:///{tmp_path}/again.db", folder, "eve")
    assert await pets(f"sqlite:///{tmp_path}/backup.db", folder, bob="mouse") == {"bob": "mouse"}


async def test_a_line_or_a_store_of_before_stores_had_ids_is_every_stores(tmp_path: Path):
    one, other, folder = f"sqlite:///{tmp_path}/1.db", f"sqlite:///{tmp_path}/2.db", tmp_path / "c"
    compliance = Compliance(folder)
    await asyncio.to_thread(compliance._list, "old", Scope("default", "ana"), None, ())
    await pets(other, folder, "bob", bob="goat")
    async with echoic.MemoryService(store_from(one), embedder_from("lexical")) as memory:  # gives it no id
        for name in ("ana", "bob", "eve"):
            await memory.user(name).set("pet", "cat")
    assert await pets(one, folder) == {"eve": "cat"}
    await pets(other, folder, "eve", eve="cat")
    assert await pets(one, folder) == {"eve": "cat"}, "it has an id now"


async def test_what_is_forgotten_after_one_store_was_copied_into_another_is_forgotten_in_copies_of_both(
    tmp_path: Path,
):
    folder, spec = tmp_path / "c", embedder_from("lexical").spec
    await pets(f"sqlite:///{tmp_path}/a.db", folder, "zoe", ana="axolotl", zoe="dog")
    await pets(f"sqlite:///{tmp_path}/b.db", folder, bob="goat", eve="cat")
    for name in ("a", "b"):
        shutil.copy(tmp_path / f"{name}.db", tmp_path / f"old-{name}.db")
    source, target = (partial(store_from, f"sqlite:///{tmp_path}/{name}.db") for name in "ab")
    for _ in range(2):
        await copy_memory(source, target, spec)
    assert await pets(f"sqlite:///{tmp_path}/b.db", folder, "ana", "eve") == {"bob": "goat"}
    assert await pets(f"sqlite:///{tmp_path}/old-a.db", folder) == {}
    assert await pets(f"sqlite:///{tmp_path}/old-b.db", folder) == {"bob": "goat"}


async def test_a_copy_that_is_refused_leaves_the_marks_of_the_target(tmp_path: Path):
    folder, spec = tmp_path / "c", embedder_from("lexical").spec
    await pets(f"sqlite:///{tmp_path}/a.db", folder, "zoe", ana="axolotl", zoe="dog")
    await pets(f"sqlite:///{tmp_path}/b.db", folder, ana="newt")
    before = await asyncio.to_thread(marked, tmp_path / "b.db")
    source, target = (partial(store_from, f"sqlite:///{tmp_path}/{name}.db") for name in "ab")
    with pytest.raises(echoic.InvalidInput, match="something else of user 'ana'"):
        await copy_memory(source, target, spec)
    assert await asyncio.to_thread(marked, tmp_path / "b.db") == before
    assert IDENTITY in before


async def test_words_forgotten_since_are_forgotten_again_and_what_was_said_beside_them_stays(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        call = await memory.user(USER).conversation("c")
        await call.append(Turn(speaker="user", text="My sister is called Zanqrimo.", id="1"))
        await call.append(Turn(speaker="user", text="I live in Porto.", id="2"))
        await call.store(key="family", summary="Her sister is Zanqrimo.")
        await memory.distil()
    shutil.copy(tmp_path / "e.db", tmp_path / "old.db")
    async with opened(url, None) as memory:
        await memory.user(USER).forget(key="sister_name")
    shutil.copy(tmp_path / "old.db", tmp_path / "e.db")
    assert b"Zanqrimo" in (tmp_path / "e.db").read_bytes()
    async with opened(url, None) as memory:
        assert [each.text for each in await memory.user(USER).facts()] == ["Porto"]
        task = await memory.user(USER).task("c")
        assert task is not None
        assert "I live in Porto." in [turn.text for turn in task.turns]
    assert b"anqrimo" not in files_at(tmp_path / "e.db")


async def test_what_was_said_beside_forgotten_words_outlives_an_interrupted_open_of_a_backup(
    tmp_path: Path, monkeypatch
):
    url, said = f"sqlite:///{tmp_path}/e.db", "My sister is called Zanqrimo. I take insulin."
    async with opened(url, None) as memory:
        for name in (USER, OTHER):
            await (await memory.user(name).conversation("c")).append(Turn(speaker="user", text=said))
        await memory.distil()
    shutil.copy(tmp_path / "e.db", tmp_path / "old.db")
    async with opened(url, None) as memory:
        for name in (USER, OTHER):
            await memory.user(name).forget(key="sister_name")
    shutil.copy(tmp_path / "old.db", tmp_path / "e.db")
    again, scopes = erasure._erase_part_again, iter([USER])

    async def interrupted(*what: object) -> None:
        if next(scopes, None) is None:
            raise echoic.StoreUnavailable("interrupted")
        await again(*what)

    with monkeypatch.context() as patched:
        patched.setattr(erasure, "_erase_part_again", interrupted)
        with pytest.raises(echoic.StoreUnavailable):
            await opened(url, None).open()
    async with opened(url, None) as memory:
        for name in (USER, OTHER):
            turns = await (await memory.user(name).conversation("c")).turns()
            assert [turn.text for turn in turns] == ["[forgotten]. I take insulin."]


@pytest.mark.parametrize("between", [" and ", ", ", ". "])
@pytest.mark.parametrize("chosen", [{"asked": "asks"}, {"id": "said"}], ids=["asked", "id"])
async def test_words_that_no_memory_says_do_not_come_back_with_the_turn_of_a_forgotten_memory(
    tmp_path: Path, chosen: dict[str, str], between: str
):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        call = await memory.user(USER).conversation("c")
        await call.append(
            Turn(speaker="user", text=f"I live in Leeds{between}my neighbour plays the zanqrimo.", id="said")
        )
        await memory.distil()
        assert [fact.text for fact in await memory.user(USER).facts()] == ["Leeds"]
        await call.append(Turn(speaker="user", text="Forget what I just said.", id="asks"))
    shutil.copy(tmp_path / "e.db", tmp_path / "old.db")
    async with opened(url, None) as memory:
        assert (await memory.user(USER).forget(**chosen)).memories
    shutil.copy(tmp_path / "old.db", tmp_path / "e.db")
    async with opened(url, None) as memory:
        assert memory.forgotten_again
    assert b"anqrimo" not in files_at(tmp_path / "e.db")


async def test_an_item_that_lost_only_the_words_of_a_memory_outlives_the_restore_of_a_backup(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/e.db"
    said = "My phone number is 07700 900412. My neighbour plays the zanqrimo."
    notes = {"call": "Call 07700 900412, she likes tea", "said": said}
    async with opened(url, None) as memory:
        user = memory.user(USER)
        await (await user.conversation("c")).append(Turn(speaker="user", text=said, id="said"))
        await memory.distil()
        for name, text in notes.items():
            await user.items("note").set(name, {"text": text})
    shutil.copy(tmp_path / "e.db", tmp_path / "old.db")
    async with opened(url, None) as memory:
        await memory.user(USER).forget(id="said")
    shutil.copy(tmp_path / "old.db", tmp_path / "e.db")
    async with opened(url, None) as memory:
        items = {item.name: item.value for item in await memory.user(USER).items("note").all()}
    assert items == {"call": {"text": "[forgotten], she likes tea"}}
    assert b"anqrimo" not in files_at(tmp_path / "e.db")


async def test_without_its_key_the_list_of_erasures_is_refused(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        await memory.user(USER).set("pet", "a goat")
        await memory.user(USER).forget()
    (tmp_path / "e.db.compliance" / "key").unlink()
    with pytest.raises(echoic.StoreCorrupt, match="put it back"):
        await opened(url, None).open()


@pytest.mark.parametrize("harm", ["change", "remove", "insert"])
async def test_a_list_of_erasures_that_was_tampered_with_is_refused(tmp_path: Path, harm: str):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        for name in ("a", "b", "c"):
            await memory.user(name).set("pet", "a goat")
            await memory.user(name).forget()
    path = tmp_path / "e.db.compliance" / "erasures.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1:2] = {
        "change": [lines[1].replace(b'"gone": ', b'"gone":')],
        "remove": [],
        "insert": lines[1:2] * 2,
    }[harm]
    path.write_bytes(b"".join(lines))
    with pytest.raises(echoic.StoreCorrupt, match="line"):
        await opened(url, None).open()


async def test_a_line_that_a_killed_process_left_unfinished_is_no_erasure(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        for name in ("a", "b"):
            await memory.user(name).set("pet", "a goat")
        await memory.user("a").forget()
    path = tmp_path / "e.db.compliance" / "erasures.jsonl"
    with path.open("ab") as file:
        file.write(b'{"n": 2, "prev": "00')
    async with opened(url, None) as memory:
        assert await memory.user("b").facts()
        await memory.user("b").forget()
    assert len(path.read_bytes().splitlines()) == 2


async def test_an_erasure_whose_process_was_killed_is_finished_at_the_next_open(tmp_path: Path, monkeypatch):
    url = f"sqlite:///{tmp_path}/e.db"
    memory = opened(url, None)
    async with memory:
        await memory.user(USER).set("pet", "a goat")
        store = memory.user(USER).backing_store

        async def killed(*_: object) -> None:
            raise echoic.StoreUnavailable("killed")

        monkeypatch.setattr(store._observed, "erase", killed)
        with suppress(echoic.StoreUnavailable):
            await memory.user(USER).forget()
    async with opened(url, None) as memory:
        assert memory.forgotten_again >= 1
        assert await memory.user(USER).facts() == []


def standing(folder: Path, target: Path) -> Path:
    """A copy of a folder as a kill would leave it now. Made by another process: closing SQLite's file unlocks it."""
    subprocess.run(["cp", "-r", folder, target], check=True)
    return target


@pytest.mark.parametrize("url", ["sqlite:///{}/e", "files:///{}/e", "files:///{}/e?format=markdown"])
@pytest.mark.parametrize("by", ["key", "asked"])
async def test_what_was_said_beside_forgotten_words_outlives_a_kill_at_any_step(
    tmp_path: Path, monkeypatch, url: str, by: str
):
    folder = tmp_path / "live"
    folder.mkdir()
    beside = [f"My order {number} is late and I take insulin." for number in range(5)]
    steps: list[tuple[str, Path]] = []
    async with opened(url.format(folder), None) as memory:
        call = await memory.user(USER).conversation("c")
        for each in beside:
            await call.append(Turn(speaker="user", text=f"My sister is called Quillonda. {each}"))
        await call.append(Turn(speaker="user", text="Forget my sister's name.", id="asks"))
        await memory.distil()
        await memory.settle()
        store = memory.user(USER).backing_store._observed

        def stepping(method: str) -> Callable[..., object]:
            real = getattr(store, method)

            async def step(scope: Scope, *rest: object) -> object:
                done = await real(scope, *rest)
                steps.append((method, standing(folder, tmp_path / str(len(steps)))))
                return done

            return step

        for method in ("erase", "write"):
            monkeypatch.setattr(store, method, stepping(method))
        await memory.user(USER).forget(**({"key": "sister_name"} if by == "key" else {"asked": "asks"}))
        live = [turn.text for turn in await call.turns()]
        assert not await scan_all(store, ANA, ERASURE)
    assert all(text.endswith(each) for text, each in zip(live, beside, strict=False))
    first = next(number for number, (method, _) in enumerate(steps) if method == "erase")
    assert len(steps) > first + 1, "control: there are steps after the erasure"
    for _, left in steps[first:]:
        for _ in range(2):
            async with opened(url.format(left), None) as memory:
                turns = await (await memory.user(USER).conversation("c")).turns()
                assert [turn.text for turn in turns] == live
        assert b"Quillonda" not in files_at(left)


@pytest.mark.parametrize("again", [True, False], ids=["asked again", "not asked again"])
@pytest.mark.parametrize("fails", ["erase", "write"])
async def test_what_is_set_after_an_erasure_failed_is_there_when_the_store_is_opened_again(
    tmp_path: Path, monkeypatch, fails: str, again: bool
):
    url = f"sqlite:///{tmp_path}/e.db"
    async with opened(url, None) as memory:
        user = memory.user(USER)
        await user.set("pet", "a goat")
        store = user.backing_store._observed
        real = getattr(store, fails)

        async def failing(scope: Scope, *rest: object) -> object:
            if fails == "erase" or scope == MARKS:
                raise echoic.StoreUnavailable("the disk is full")
            return await real(scope, *rest)

        with monkeypatch.context() as patched:
            patched.setattr(store, fails, failing)
            with pytest.raises(echoic.StoreUnavailable):
                await user.forget(key="pet")
        if again:
            await user.forget(key="pet")
        await user.set("pet", "an axolotl")
        assert [each.text for each in await user.history("pet")] == ["an axolotl"]
    async with opened(url, None) as memory:
        assert [each.text for each in await memory.user(USER).facts()] == ["an axolotl"]


async def test_a_backup_made_while_others_write_holds_each_user_as_they_were_at_one_moment(tmp_path: Path):
    """Each user's `b` is written after their `a`; a torn copy would hold a `b` without it."""
    source = f"files:///{tmp_path}/people"
    stop = asyncio.Event()

    async def writing(memory: echoic.MemoryService) -> int:
        number = 0
        while not stop.is_set():
            number += 1
            user = memory.user(f"u{number % 7}")
            await user.set("a", str(number))
            await user.set("b", str(number))
            await asyncio.sleep(0)
        return number

    async with opened(source, None) as memory:
        for number in range(7):
            for key in ("a", "b"):
                await memory.user(f"u{number}").set(key, "0")
        task = asyncio.create_task(writing(memory))
        await back_up(
            partial(store_from, source),
            tmp_path / "backup.db",
            embedder_from("lexical").spec,
            progress=lambda _done, _total: None,
        )
        stop.set()
        assert await task > 0
    async with opened(f"sqlite:///{tmp_path}/backup.db", None) as memory:
        for number in range(7):
            user = memory.user(f"u{number}")
            first, last = await user.get("a"), await user.get("b")
            assert first is not None
            assert last is not None
            assert len(await user.history("a")) - len(await user.history("b")) in {0, 1}
