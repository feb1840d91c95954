"""The dinner menu: stored at the end of one call, recalled in the next by a key that was misheard."""

from __future__ import annotations

from itertools import pairwise

import pytest

MENU = "mushroom soup, roast duck with plums, and lemon tart"


def answer(said, given):
    if "plan" in said:
        return f"Then let us have {MENU}."
    if "remember this" in said:
        if not given:
            arguments = {"key": "dinner menu", "summary": "The menu for Saturday's dinner for six."}
            return [("store_conversation", arguments)]
        return f"Done. Say {given[0]['result']['key']} and I will know."
    if "bring up" in said:
        if not given:
            return "Let me see.", [("recall_conversation", {"key": said.split("my ")[1].rstrip(".")})]
        turns = " ".join(turn.get("text", "") for turn in given[0]["result"]["turns"])
        return f"You planned: {MENU}." if MENU in turns else "I found nothing."
    return "Right."


async def test_what_a_provider_was_sent_stays_the_beginning_of_what_it_is_sent_next(line):
    phone = await line(answer, retention="never")
    call = await phone.call()
    for said in (
        "Help me plan a dinner.",
        "Please remember this.",
        "Now bring up my dinner menu.",
        "Thanks.",
    ):
        await call.say(said)
    requests = phone.script.requests
    assert len(requests) == 6
    for before, after in pairwise(requests):
        assert repr(after)[: len(repr(before)) - 1] == repr(before)[:-1]
    tools = {sent.partition("\n[")[2].partition("\n")[0] for sent in phone.script.sent}
    assert len(tools) == 1, "what was stored in the call does not change what tools are said to be"


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_a_menu_planned_in_one_call_is_recalled_in_the_next_by_a_misheard_key(line, channel):
    phone = await line(answer, channel=channel, retention="never")
    first = await phone.call()
    assert MENU in await first.say("Help me plan a dinner for six on Saturday.")
    assert "Say dinner menu" in await first.say("Please remember this.")
    await first.hang_up()

    second = await phone.call()
    assert "mushroom soup" in await second.say("Can you bring up my diner menue.")
    await second.hang_up()
    opening = next(sent for sent in phone.script.sent if "bring up" in sent)
    described, _, messages = opening.partition("[ModelRequest")
    assert "dinner menu" in messages, "what can be recalled stands in the memory block"
    assert "The menu for Saturday" in messages
    assert "dinner menu" not in described
    stored = [c for c in await phone.memory().conversations() if c.recall_key]
    assert [(c.recall_key, c.status == "completed") for c in stored] == [("dinner menu", True)]
