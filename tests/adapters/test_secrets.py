"""No secret that is said on the telephone is written: not what was said, not what a tool was given."""

from __future__ import annotations

import pytest

from leaks import leaked

SECRETS = ("bluebird", "8361", "eight three six one", "4111", "four one one one")


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_a_call_is_kept_without_the_secrets_in_it(line, tmp_path, channel):
    def answer(said, given):
        if "remember" in said and not given:
            return [("agentMemory", {"operation": "set", "key": "pin", "value": "8361"})]
        if "card" in said:
            return "Go on."
        return "So that's eight three six one?" if given else "And the password?"

    phone = await line(answer, channel=channel)
    call = await phone.call()
    for said in (
        "please remember my pin code is eight three six one",
        "remember what I just said",
        "now the next thing",
        "it's bluebird seven",
        "my card is four one one one one one one one",
        "four one one one one one one one",
    ):
        await call.say(said)
    await call.hang_up()
    await phone.service.distil()
    task = await phone.turns(call)
    # the telephone takes it for a proof before the door does
    assert any("[code]" in turn.text for turn in task.turns)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"[PIN]" in kept
    assert leaked(kept, SECRETS) == []
