from __future__ import annotations

import pytest

LOCAL = {"ECHOIC_EMBEDDER": "local"}


@pytest.mark.parametrize("url", ["sqlite:///echoic.db", "files:///people"])
def test_reindex_changes_a_store_to_another_embedder(echoic, url):
    old = {"ECHOIC_STORE": url}
    new = {**LOCAL, "ECHOIC_STORE": url}
    echoic("set", "employer", "She works as a nurse in a children's hospital", **old)
    echoic("remember", "Drives a red tractor", **old)
    refused = echoic("query", "what is her profession?", **new)
    assert refused.code == 2
    assert "echoic reindex" in refused.err
    changed = echoic("reindex", "--json", **new)
    assert (changed.code, changed.json["data"]) == (0, {"records": 2, "waiting": 0})
    found = echoic("query", "what is her profession?", "--json", **new).json["data"]
    assert found[0]["memory"]["key"] == "employer"
    assert found[0]["ranks"]["vector"]["rank"] == 1
    assert echoic("query", "anything", **old).code == 2


@pytest.mark.parametrize("url", ["sqlite:///echoic.db", "files:///people"])
def test_what_is_looked_up_needs_not_the_embedder_of_the_store(echoic, url, tmp_path):
    there = {"ECHOIC_STORE": url}
    echoic("set", "employer", "a hospital", **there)
    other = {**LOCAL, "ECHOIC_STORE": url, "ECHOIC_WEIGHTS": str(tmp_path)}
    for words in (["users"], ["list"], ["get", "employer"], ["history", "employer"], ["export"]):
        told = echoic(*words, **other)
        assert (told.code, told.out) == (0, echoic(*words, **there).out), words
        assert told.err == ""
    assert "no calls" in echoic("calls", "list", **other).err
    assert echoic("set", "employer", "a school", **other).code == 2, "a write needs a vector"
    assert "vector" in echoic("query", "employer", "--json", **there).json["data"][0]["ranks"]


def test_reindex_drops_nothing_where_the_new_embedder_does_not_work(echoic, tmp_path):
    echoic("remember", "Plays the cello in a quartet")
    refused = echoic("reindex", ECHOIC_EMBEDDER="local", ECHOIC_WEIGHTS=str(tmp_path))
    assert refused.code == 2
    found = echoic("query", "cello", "--json").json["data"][0]
    assert "vector" in found["ranks"]


def test_reindex_with_the_same_embedder_loses_nothing(echoic):
    echoic("remember", "Plays the cello in a quartet")
    before = echoic("query", "quartet", "--json").json["data"]
    assert echoic("reindex").code == 0
    assert echoic("query", "quartet", "--json").json["data"] == before


def test_what_waited_for_the_old_embedder_is_embedded_by_the_new_one(echoic, tmp_path):
    for text in ("Plays the cello in a quartet", "Drives a red tractor"):
        echoic("remember", text, ECHOIC_EMBEDDER="local", ECHOIC_WEIGHTS=str(tmp_path))
    assert echoic("reindex", "--json").json["data"] == {"records": 2, "waiting": 0}
    assert "vector" in echoic("query", "cello", "--json").json["data"][0]["ranks"]


def test_distil_learns_from_what_was_said_once(echoic, jsonl, document):
    said = {"id": "t", "speaker": "user", "text": "My name is Ana.", "said_at": "2026-01-02T10:00:00+00:00"}
    talk = {
        "id": "c",
        "status": "completed",
        "started_at": said["said_at"],
        "updated_at": said["said_at"],
        "turns": [said],
    }
    export = {"format": "echoic-export", "version": 1, "user": "ana", "memories": [], "conversations": [talk]}
    echoic("import", str(document("ana.json", export)))
    assert echoic("get", "user_name", "--user", "ana").code == 1
    learned = echoic("distil")
    assert learned.code == 0
    assert [line.split("\t") for line in learned.out.splitlines()] == [["kept", "user_name", "Ana"]]
    assert echoic("get", "user_name", "--user", "ana").out == "Ana\n"
    assert echoic("distil", "--json").json["count"] == 0


def test_consent_is_shown_and_set_for_the_user_that_is_named(echoic):
    assert echoic("consent", "ana").out == "keep\n"
    assert echoic("consent", "ana", "never").out == "never\n"
    refused = echoic("set", "city", "Haifa", "--user", "ana")
    assert (refused.code, "kept" in refused.err) == (64, True)
    assert echoic("set", "city", "Haifa", "--user", "bea").code == 0
    assert echoic("consent", "ana", "maybe").code == 64
    echoic("consent", "ana", "keep")
    assert echoic("set", "city", "Haifa", "--user", "ana").code == 0
