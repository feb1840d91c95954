"""`echoic keys`."""

from __future__ import annotations


def test_a_key_is_shown_once_listed_without_itself_and_revoked(echoic):
    made = echoic("keys", "create", "--role", "auditor", "--name", "the auditors", "--days", "30", "--json")
    assert made.code == 0
    key, name = made.json["data"]["key"], made.json["data"]["listed"]["id"]
    listed = echoic("keys", "list")
    assert name in listed.out
    assert "the auditors" in listed.out
    assert key not in listed.out
    assert echoic("keys", "revoke", name).code == 0
    assert echoic("keys", "list", "--json").json["data"][0]["revoked_at"]
    assert echoic("keys", "revoke", "nothing").code == 64
