"""The audit log, and signed receipts: what a third party can check with a program of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import echoic
from echoic.memory import export
from echoic.memory.compliance import ChainedLog
from echoic.stores.base import latest
from echoic.types import Scope, Turn

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = re.findall(r"```python\n(.*?)```", (DOCS / "audit.md").read_text(), re.DOTALL)


def opened(folder: Path, **options) -> echoic.MemoryService:
    return echoic.open(f"sqlite:///{folder}/e.db", embedder="lexical", audit=True, **options)


def logged(folder: Path) -> list[dict[str, object]]:
    return ChainedLog(folder / "e.db.compliance" / "audit.jsonl").entries()


async def test_who_read_wrote_exported_and_erased_what_is_logged_and_nothing_that_was_said(tmp_path):
    async with opened(tmp_path) as memory:
        ana = memory.user("anabelle")
        with echoic.acting("nurse 12", "handover", role="staff"):
            await ana.set("zanqkey", "a zanqvalue")
            call = await ana.conversation("zanqcall")
            await call.append(Turn(speaker="user", text="My name is Zanqname.", id="zanqturn"))
            await ana.query("zanqquestion")
            await ana.query("zanqquestion")
            await ana.export()
        with echoic.acting("nurse 13", "asked for it"):
            await ana.forget()
        whom = memory.pseudonym("anabelle")
    entries = [entry for entry in logged(tmp_path) if entry["who"] == "nurse 12"]
    done = [(entry["did"], entry["kind"]) for entry in entries]
    for wanted in (
        ("write", "memory"),
        ("write", "turn"),
        ("read", "memory and turn"),
        ("export", "everything"),
    ):
        assert done.count(wanted) == 1, wanted  # once, however often within one access
    assert {entry["scope"] for entry in entries if entry["scope"] != "everyone"} == {whom}
    assert {entry["why"] for entry in entries} == {"handover"}
    erased = [entry for entry in logged(tmp_path) if entry["did"] == "erase" and entry["scope"] == whom]
    assert [(entry["who"], entry["kind"]) for entry in erased] == [("nurse 13", "everything")]
    raw = (tmp_path / "e.db.compliance" / "audit.jsonl").read_bytes().lower()
    assert b"zanq" not in raw
    assert b"anabelle" not in raw


async def test_a_read_of_many_users_at_once_is_logged_of_each_of_them(tmp_path):
    async with opened(tmp_path) as memory:
        keys = []
        for user in ("ana", "ben"):
            call = await memory.user(user).conversation("call")
            await call.append(Turn(speaker="user", text="I live in Oslo."))
            keys += [(Scope("default", user), "call"), (Scope("default", user), "another")]
        with echoic.acting("nurse 12", "handover", role="staff"):
            found = await latest(memory.user("ana").backing_store, "turn", keys)
        assert list(found) == keys[::2]
        whose = [memory.pseudonym(user) for user in ("ana", "ben")]
    entries = [entry for entry in logged(tmp_path) if entry["who"] == "nurse 12"]
    assert [(e["did"], e["kind"], e["scope"]) for e in entries] == [("read", "turn", one) for one in whose]


async def test_what_is_done_in_the_background_is_logged_under_its_job_and_not_as_who_caused_it(tmp_path):
    async with opened(tmp_path) as memory:
        with echoic.acting("nurse 12", "handover", role="staff"):
            call = await memory.user("ana").conversation("call")
            await call.append(Turn(speaker="user", text="I live in Oslo."))
            await call.complete()
            await memory.settle(60)
        assert await memory.user("ana").get("home")
    jobs = {(entry["who"], entry["why"]) for entry in logged(tmp_path) if entry["role"] == "process"}
    assert ("learning and embedding", "in the background") in jobs
    learned = [e for e in logged(tmp_path) if (e["did"], e["kind"]) == ("write", "memory")]
    assert {(e["role"], e["who"]) for e in learned} == {("process", "learning and embedding")}


async def test_a_log_is_read_page_by_page_and_no_page_before_another_is_read_for_it(tmp_path):
    log = ChainedLog(tmp_path / "audit.jsonl")
    assert log.page(0, 10, "a") == []
    log.append(*({"deployment": "ab"[n % 2], "why": "x" * 300} for n in range(1000)), durable=False)
    found, after = [], 0
    while page := log.page(after, 170, "a"):
        found += page
        after = page[-1]["n"]
    assert found == [entry for entry in log.entries() if entry["deployment"] == "a"]
    assert log.head() == log.read()[1]
    lines = log.path.read_bytes().splitlines(keepends=True)
    broken = lines[999].replace(b"xxx", b"xyx", 1)
    log.path.write_bytes(b"no entry\n" + b"".join(lines[1:990]) + broken + b"".join(lines[990:]))
    with pytest.raises(echoic.StoreCorrupt):
        log.page(980, 170, "a")
    assert log.page(700, 20, "a")[0]["n"] == 701, "the first lines are not read for it"


async def test_nothing_is_exported_or_erased_that_cannot_be_logged(tmp_path):
    async with opened(tmp_path) as memory:
        ana = memory.user("ana")
        await ana.set("pet", "a goat")
        await memory.audit.flush()
        path = tmp_path / "e.db.compliance" / "audit.jsonl"
        path.unlink()
        path.mkdir()  # for root, no mode keeps anybody from writing
        with pytest.raises(echoic.StoreUnavailable):
            await ana.export()
        with pytest.raises(echoic.StoreUnavailable):
            await ana.forget()
        path.rmdir()
        assert await ana.get("pet")


async def test_an_entry_of_an_export_or_erasure_is_on_disk_before_it_happens(tmp_path, monkeypatch):
    synced, done = [], []
    fsync = os.fsync

    def counted(fd):
        synced.append(os.fstat(fd).st_ino)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", counted)
    async with opened(tmp_path) as memory:
        ana = memory.user("ana")
        await ana.set("pet", "a goat")
        path = tmp_path / "e.db.compliance" / "audit.jsonl"
        exported, erase = export.export_scope, memory._parts.compliance.erase

        async def exporting(*given):
            done.append(synced.count(path.stat().st_ino))
            return await exported(*given)

        async def erasing(*given):
            done.append(synced.count(path.stat().st_ino))
            return await erase(*given)

        monkeypatch.setattr(export, "export_scope", exporting)
        monkeypatch.setattr(memory._parts.compliance, "erase", erasing)
        await ana.export()
        await ana.forget(key="pet")
    assert done[:2] == [1, 2]


async def test_every_export_and_every_erasure_is_logged(tmp_path):
    async with opened(tmp_path) as memory:
        ana = memory.user("ana")
        for role in ("staff", None):
            with echoic.acting("nurse 12", "handover", role=role) if role else contextlib.nullcontext():
                for _ in range(2):
                    await ana.set("pet", "a goat")
                    await ana.export()
                    await ana.forget(key="pet")
    done = [entry["did"] for entry in logged(tmp_path)]
    assert done.count("export") == 4
    assert done.count("erase") >= 4


async def test_a_search_of_items_is_logged(tmp_path):
    async with opened(tmp_path) as memory:
        notes = memory.user("ana").items("notes", searchable=True)
        await notes.set("one", {}, text="The heron is back.")
        with echoic.acting("nurse 12", "handover"):
            await notes.search("heron")
    found = [entry for entry in logged(tmp_path) if entry["who"] == "nurse 12"]
    assert [(entry["did"], entry["kind"]) for entry in found] == [("read", "indexed-item")]


async def test_a_beginning_that_was_cut_off_is_noticed_unless_it_was_removed_by_age(tmp_path):
    async with opened(tmp_path) as memory:
        for key in ("pet", "seat"):
            await memory.user("ana").set(key, "a goat")
            await memory.user("ana").forget(key=key)
    for name in ("erasures.jsonl", "audit.jsonl"):
        log = ChainedLog(tmp_path / "e.db.compliance" / name)
        whole = log.path.read_bytes()
        log.path.write_bytes(b"".join(whole.splitlines(keepends=True)[1:]))
        with pytest.raises(echoic.StoreCorrupt, match="before line 2 are missing"):
            log.entries()
        log.path.write_bytes(whole)
    at = log.entries()[2]["at"]
    removed = await asyncio.to_thread(log.remove_before, at, {"at": at, "did": "prune"})
    assert log.entries()[0]["n"] == removed + 1
    log.path.write_bytes(b"".join(log.path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(echoic.StoreCorrupt, match="are missing"):
        log.entries()


def test_a_log_is_never_without_the_entry_that_says_what_was_removed(tmp_path, monkeypatch):
    log = ChainedLog(tmp_path / "audit.jsonl")
    log.append(*({"at": f"2026-01-0{day}", "did": "read"} for day in range(1, 6)))

    def full(*_given, **_more):
        raise OSError(28, "no space left")

    monkeypatch.setattr(log, "_append", full)
    assert log.remove_before("2026-01-03", {"at": "2026-01-06", "did": "prune"}) == 2
    monkeypatch.undo()
    assert (log.entries()[0]["n"], log.entries()[-1]["removed"]) == (3, 2)
    log.append({"at": "2026-01-07", "did": "read"})
    assert [entry["n"] for entry in log.entries()] == [3, 4, 5, 6, 7]


async def test_an_audit_log_needs_a_folder():
    with pytest.raises(echoic.InvalidInput, match="compliance"):
        echoic.open("memory://", embedder="lexical", audit=True)


async def evidence(folder: Path) -> list[str]:
    """The log, its signed end, a receipt; the arguments of the program of the docs."""
    from echoic.cli.upkeep import _exported_log

    async with opened(folder) as memory:
        await memory.user("ana").set("pet", "a goat")
        receipt = await memory.user("ana").forget()
        compliance = memory._parts.compliance
    _exported_log(compliance, ChainedLog(folder / "e.db.compliance" / "audit.jsonl"), folder / "log")
    (folder / "receipt.json").write_text(json.dumps({"signed": dict(receipt.signed)}))
    return [receipt.signed["key"], str(folder / "log"), str(folder / "receipt.json")]


def checked(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAMS[1], *arguments], capture_output=True, text=True, check=False
    )


async def test_a_third_party_checks_a_receipt_and_the_log_with_twenty_lines(tmp_path):
    assert len([line for line in PROGRAMS[1].splitlines() if line]) <= 20
    assert "echoic" not in PROGRAMS[1]
    ran = checked(await evidence(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"\d+ entries; everything of \w{8} erased, verified: True\n", ran.stdout)


@pytest.mark.parametrize(
    "harm",
    ["line changed", "line removed", "beginning cut off", "end cut off", "receipt changed", "other key"],
)
async def test_what_was_tampered_with_is_noticed_by_a_third_party(tmp_path, harm):
    arguments = await evidence(tmp_path)
    log, receipt = tmp_path / "log", tmp_path / "receipt.json"
    lines = log.read_bytes().splitlines(keepends=True)
    if harm == "line changed":
        lines[1] = lines[1].replace(b'"did": "', b'"did": "x')
    elif harm == "line removed":
        del lines[1]
    elif harm == "beginning cut off":
        del lines[0]
    elif harm == "end cut off":
        del lines[-1]
    elif harm == "receipt changed":
        receipt.write_text(receipt.read_text().replace('\\"memories\\": 1', '\\"memories\\": 2'))
    else:
        (tmp_path / "other").mkdir()
        arguments[0] = (await evidence(tmp_path / "other"))[0]
    log.write_bytes(b"".join(lines))
    assert checked(arguments).returncode != 0


def test_the_program_of_the_docs_runs(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAMS[0]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "['key', 'signature', 'statement']\n"
    assert '"who": "nurse 12"' in (tmp_path / "echoic.db.compliance" / "audit.jsonl").read_text()


def test_old_entries_are_removed_and_the_rest_can_still_be_checked(tmp_path):
    log = ChainedLog(tmp_path / "audit.jsonl")
    for month in range(1, 7):
        log.append({"at": f"2026-0{month}-01T00:00:00+00:00", "did": "read"})
    head = log.read()[1]
    assert log.remove_before("2026-04", {"at": "2026-07-01", "did": "prune"}) == 3
    entries, _ = log.read()
    assert [entry["n"] for entry in entries] == [4, 5, 6, 7]
    assert entries[-1]["prev"] == head  # what was known before still fits
    assert entries[-1]["removed"] == 3
