"""No secret that comes in over HTTP is written, nor told again."""

from __future__ import annotations

import logging

import pytest

from leaks import leaked

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRETS = ("bluebird", "8361", "eight three six one", "4111", "four one one one", "660214")


async def test_what_is_said_and_set_over_http_is_kept_without_its_secrets(own, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    ana = await own.identity()
    first = await own.say(ana, "Please remember that my PIN code is eight three six one.")
    answers = [first]
    for text in (
        "my password is bluebird seven",
        "my card is four one one one one one one one",
        "four one one one one one one one",
        "the code you sent me is 660214",
        "what is my pin?",
    ):
        answers += [await own.say(ana, text, conversation=first["conversation"])]
    for fields in (
        {"key": "pin", "value": "8361"},
        {"key": "wifi", "value": '{"password": "bluebird seven"}'},
        {"key": "my pin is 8361", "value": "kept under a secret"},
    ):
        assert (await own.memory_of(ana, "set", **fields)).status_code == 200
    listed = (await own.memory_of(ana, "list")).text
    exported = (await own.client.get("/api/export", headers=ana.headers)).text
    await own.memory.settle()
    told = listed + exported + str([answer["stored"] for answer in answers]) + answers[-1]["text"]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "[PIN]" in listed
    assert b"[password]" in kept
    assert leaked(told.encode(), SECRETS) == []
    assert leaked(kept, SECRETS) == []
    assert not [secret for secret in SECRETS[:3] for line in caplog.messages if secret in line]
