"""What the command line takes in is masked, unless it is told to keep secrets."""

from __future__ import annotations

from leaks import leaked

TALK = [
    {"speaker": "agent", "text": "And the PIN?", "id": "t1", "conversation": "c"},
    {"speaker": "user", "text": "eight three six one", "id": "t2", "conversation": "c"},
    {"speaker": "user", "text": "my password is bluebird seven", "id": "t3", "conversation": "c"},
]
MEM0 = {"results": [{"id": "1", "memory": "Her PIN is 8361", "user_id": "ana"}]}


def kept(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("echoic.db*") if path.is_file())


def test_what_is_imported_and_set_is_masked(echoic, jsonl, document, tmp_path):
    jsonl("talk.jsonl", *({**turn, "said_at": "2026-01-02T10:00:00Z"} for turn in TALK))
    document("mem0.json", MEM0)
    assert echoic("import", "talk.jsonl").code == 0
    assert echoic("import", "mem0.json").code == 0
    assert echoic("set", "pin", "8361").code == 0
    assert "[PIN]" in echoic("get", "pin").out
    assert b"[password]" in kept(tmp_path)
    assert leaked(kept(tmp_path), ("8361", "eight three", "bluebird")) == []


def test_keep_secrets_keeps_them(echoic):
    assert echoic("set", "pin", "8361", "--keep-secrets").code == 0
    assert "8361" in echoic("get", "pin").out
