"""`echoic backup` and `echoic restore`."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_drill_of_the_docs(echoic, tmp_path):
    drill = re.search(r"## The drill.*?```sh\n(.*?)```", (DOCS / "backup.md").read_text(), re.DOTALL)[1]
    said = {}
    for line in drill.splitlines():
        words = shlex.split(line, comments=True)
        if words[0] != "echoic":
            subprocess.run(words, cwd=tmp_path, check=True)
            continue
        ran = echoic(*words[1:])
        assert ran.code == 0, (line, ran.err)
        said[words[1]] = ran
    assert "made 1 erasures again" in said["restore"].err
    assert said["users"].out.split() == ["ana"]
    assert b"goat" in (tmp_path / "monday.db").read_bytes()  # the control: the backup held it
    assert b"goat" not in b"".join(
        path.read_bytes() for path in tmp_path.glob("echoic.db*") if path.is_file()
    )
    subprocess.run(["sha256sum", "--check", "monday.db.sha256"], cwd=tmp_path, check=True)


@pytest.fixture
def backup(echoic, tmp_path):
    echoic("set", "pet", "a goat")
    assert echoic("backup", "b.db").code == 0
    return tmp_path / "b.db"


def test_a_backup_goes_into_another_kind_of_store(echoic, backup):
    assert echoic("restore", "b.db", "--store", "files:///people").code == 0
    assert echoic("get", "pet", "--store", "files:///people").out == "a goat\n"
    assert echoic("backup", "c.db", "--store", "files:///people").code == 0
    assert echoic("get", "pet", "--store", "sqlite:///c.db").out == "a goat\n"


def test_a_damaged_backup_and_a_full_target_are_refused(echoic, backup):
    full = echoic("restore", "b.db")
    assert (full.code, "an empty one" in full.err) == (64, True)
    raw = backup.read_bytes()
    backup.write_bytes(raw.replace(b"a goat", b"a bear"))
    damaged = echoic("restore", "b.db", "--store", "sqlite:///new.db")
    assert (damaged.code, "checksum" in damaged.err) == (2, True)
    backup.with_name("b.db.sha256").write_text("")
    emptied = echoic("restore", "b.db", "--store", "sqlite:///new.db")
    assert (emptied.code, "checksum" in emptied.err) == (2, True)
    backup.with_name("b.db.sha256").unlink()
    unchecked = echoic("restore", "b.db", "--store", "sqlite:///new.db")
    assert (unchecked.code, "--without-checksum" in unchecked.err) == (64, True)
    assert echoic("restore", "b.db", "--without-checksum", "--store", "sqlite:///new.db").code == 0


@pytest.mark.parametrize("name", ["50%25.db", "why?.db"])
def test_a_backup_is_read_back_whatever_its_name(echoic, tmp_path, name):
    echoic("set", "pet", "a goat")
    made = echoic("backup", name, "--json")
    assert (made.code, made.json["data"]["scopes"]) == (0, 1), made.err
    assert sorted(each.name for each in tmp_path.glob("*[?%]*")) == [name, f"{name}.sha256"]
    assert echoic("restore", name, "--store", "sqlite:///new.db").code == 0
    assert echoic("get", "pet", "--store", "sqlite:///new.db").out == "a goat\n"


def test_a_backup_replaces_no_file(echoic, backup):
    before = backup.read_bytes()
    again = echoic("backup", "b.db")
    assert (again.code, backup.read_bytes() == before) == (64, True)


def test_a_store_that_was_put_back_forgets_what_was_forgotten_in_the_one_used_in_its_place(echoic, tmp_path):
    for user in ("ana", "bob"):
        echoic("set", "pet", "a goat", "--user", user)
    store = tmp_path / "echoic.db"
    store.rename(tmp_path / "snapshot.db")
    echoic("set", "pet", "a goat", "--user", "bob")
    echoic("forget", "--all", "--yes", "--user", "bob")
    (tmp_path / "snapshot.db").rename(store)
    ran = echoic("restore", "--put-back", "--json")
    assert (ran.code, ran.json["data"]) == (0, {"erasures_again": 1, "erasures_listed": 1})
    assert echoic("users").out.split() == ["ana"]
    echoic("set", "pet", "a newt", "--user", "bob")
    assert echoic("restore", "--put-back", "--json").json["count"] == 0
    assert echoic("users").out.split() == ["ana", "bob"], "who came back stays"
    there = ("--user", "ana", "--store", "sqlite:///other.db", "--compliance", "there")  # of another machine
    echoic("set", "pet", "a goat", *there)
    echoic("forget", "--all", "--yes", *there)
    assert echoic("restore", "--put-back", "--compliance", "there", "--json").json["count"] == 1
    assert echoic("users").out.split() == ["bob"]
    for wrong in (["restore"], ["restore", "--put-back", "b.db"]):
        assert echoic(*wrong).code == 64
    assert echoic("restore", "--put-back", "--store", "sqlite:///none.db").code == 64
    assert not (tmp_path / "none.db").exists()


def test_who_restores_without_the_list_of_erasures_is_told_so(echoic, backup):
    ran = echoic("restore", "b.db", "--store", "sqlite:///new.db")
    assert "no list of erasures" in ran.err


@pytest.mark.parametrize("before", [[], ["forget", "--key", "city", "--yes"]])
def test_a_restore_over_an_emptied_store_erases_again_what_was_forgotten_in_it(echoic, before):
    """With marks of other erasures in the backup too."""
    echoic("set", "city", "Porto")
    if before:
        assert echoic(*before).code == 0
    echoic("set", "city", "Lisbon")
    assert echoic("backup", "b.db").code == 0
    assert echoic("forget", "--all", "--yes").code == 0
    ran = echoic("restore", "b.db")
    assert (ran.code, "made 0 erasures" in ran.err) == (0, False), ran.err
    assert echoic("get", "city").code == 1


def test_a_copy_brings_no_one_back_who_was_forgotten_in_the_target(echoic):
    target = "sqlite:///echoic.db"
    echoic("set", "city", "Lisbon", "--user", "ana")
    echoic("backup", "b.db")
    echoic("forget", "--all", "--yes", "--user", "ana")
    assert echoic("copy", "sqlite:///b.db", target).code == 0
    assert echoic("get", "city", "--user", "ana").code == 1
    echoic("set", "city", "Porto", "--user", "ben")
    ran = echoic("copy", "sqlite:///b.db", target)
    assert (ran.code, "was forgotten in the target" in ran.err) == (64, True)
    assert echoic("get", "city", "--user", "ana").code == 1
    assert echoic("get", "city", "--user", "ben").out == "Porto\n"
