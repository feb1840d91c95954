"""`echoic copy`: everything of everybody, to another store."""

from __future__ import annotations

import pytest

SOURCE, TARGET, END = "sqlite:///source.db", "files:///people", "sqlite:///end.db"


@pytest.fixture
def source(echoic):
    """A correction, something forgotten, a proposal, another user."""
    for words in (
        ["set", "home_city", "Porto"],
        ["set", "pet", "a parrot"],
        ["set", "home_city", "Lisbon"],
        ["remember", "Drives a red tractor"],
        ["forget", "--key", "pet", "--yes"],
        ["set", "opening_hours", "Monday to Friday, 9 to 17"],
        ["remember", "Plays the oboe", "--user", "bob"],
    ):
        ran = echoic(*words, "--store", SOURCE, ECHOIC_USER="ana")
        assert ran.code == 0, ran.err
    return SOURCE


@pytest.fixture
def small(echoic):
    """One memory of one user."""
    echoic("remember", "Plays the oboe", "--user", "bob", "--store", SOURCE)
    return SOURCE


def exports(echoic, url):
    return [
        echoic("export", "--user", user, "--store", url, "--json").json["data"] for user in ("ana", "bob")
    ]


def test_there_and_back_gives_the_same_exports(echoic, source):
    wanted = exports(echoic, source)
    assert [len(export["memories"]) for export in wanted] == [4, 1]
    there = echoic("copy", source, TARGET, "--json")
    assert (there.code, there.json["status"], there.json["command"]) == (0, "ok", "copy")
    data = there.json["data"]
    assert data["records"] == data["new"] == there.json["count"] == sum(s["records"] for s in data["scopes"])
    assert {(s["deployment"], s["user"]) for s in data["scopes"]} == {
        ("default", "ana"), ("default", "bob"), ("default", None), ("echoic.erasures", None)
    }  # fmt: skip
    assert (data["waiting"], data["vectors"] > 0) == (0, True)
    back = echoic("copy", TARGET, END, "--json").json["data"]
    assert [scope["digest"] for scope in back["scopes"]] == [scope["digest"] for scope in data["scopes"]]
    assert exports(echoic, TARGET) == exports(echoic, END) == exports(echoic, source) == wanted
    assert (
        echoic("query", "tractor", "--user", "ana", "--json", "--store", END).json["data"]
        == (echoic("query", "tractor", "--user", "ana", "--json", "--store", source).json["data"])
    )


def test_again_copies_only_what_is_missing_and_says_so(echoic, small):
    assert echoic("copy", small, TARGET).code == 0
    echoic("remember", "Sings in a choir", "--user", "bob", "--store", small)
    again = echoic("copy", small, TARGET)
    assert (again.code, again.out) == (0, "")
    assert again.err.startswith("copied 1 of ")
    assert exports(echoic, TARGET) == exports(echoic, small)
    assert echoic("copy", small, TARGET, "--quiet").err == ""


def test_a_target_with_something_else_is_refused_and_left_as_it_was(echoic, small):
    echoic("remember", "Plays the cello", "--user", "bob", "--store", TARGET)
    refused = echoic("copy", small, TARGET)
    (line,) = refused.err.splitlines()
    assert (refused.code, refused.out) == (64, "")
    assert "user 'bob' of deployment 'default'" in line
    assert "cello" not in line
    assert echoic("users", "--store", TARGET).out == "bob\n"
    assert echoic("list", "--store", TARGET, "--user", "bob").out.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["sqlite:///missing.db", TARGET], "there is no store at missing.db"),
        ([SOURCE, SOURCE], "the same store"),
        ([SOURCE, "sqlite:///./source.db?cache_mb=8"], "the same store"),
        ([SOURCE, "memory://"], "ends with this command"),
        (["memory://", TARGET], "ends with this command"),
        ([SOURCE, "nonsense://x"], "unknown store"),
        ([SOURCE], "TO"),
    ],
)
def test_what_cannot_be_meant_is_refused(echoic, small, tmp_path, words, reason):
    ran = echoic("copy", *words)
    assert ran.code == 64
    assert reason in ran.err
    assert not (tmp_path / "missing.db").exists()
    assert not (tmp_path / "people").exists()


def test_for_another_embedder_the_records_wait_and_are_found_by_words(echoic, small):
    copied = echoic("copy", small, TARGET, "--embedder", "local", "--json")
    data = copied.json["data"]
    assert copied.code == 0
    assert (data["vectors"], data["waiting"] > 0) == (0, True)
    assert "local:" in data["model"]
    assert "will be embedded" in copied.json["notes"][0]
    assert echoic("copy", small, TARGET).code == 2, "the embedder that is set is not the target's"


def test_a_store_with_nothing_in_it(echoic):
    echoic("list", "--store", SOURCE)
    ran = echoic("copy", SOURCE, TARGET)
    assert (ran.code, ran.err) == (1, "FROM is empty\n")
