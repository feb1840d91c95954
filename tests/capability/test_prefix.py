"""What a provider was sent before is, byte for byte, the beginning of what it is sent next."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart

from echoic.capability import CallerMemory, Memory

CHANGES = {5: ("home", "Boston"), 10: ("seat", "aisle"), 15: ("home", "Lisbon")}
"""Facts that change at these turns: by the model's tool, and (10) behind its back."""


def answering(call_tool):
    """Calls agentMemory where the user says so, and says something else every time."""

    def answer(request):
        last = request["messages"][-1]
        if last["role"] == "user" and last["content"].startswith("please keep "):
            key, value = last["content"].removeprefix("please keep ").split("=")
            return call_tool("agentMemory", operation="set", key=key, value=value)
        return {"content": f"answer {len(request['messages'])}"}

    return answer


async def talk(memory, caller, chat, call_tool, capability):
    served, model = await chat(answering(call_tool))
    agent = Agent(
        model, deps_type=caller, name="films", instructions="You are Robin.", capabilities=[capability]
    )
    ana = memory.user("ana")
    await ana.set("user_name", "Ana")
    await ana.set("home", "New York")
    await ana.set_directives(pacing="slow")
    await memory.experience("films").add("strategy", "Ask for the genre before recommending a movie.")
    history = b"[]"
    for turn in range(20):
        said = f"this is turn {turn}"
        if turn in CHANGES and turn != 10:
            said = "please keep {}={}".format(*CHANGES[turn])
        elif turn in CHANGES:
            await ana.set(*CHANGES[turn])
        ran = await agent.run(
            said,
            deps=caller("ana"),
            conversation_id="c",
            # kept between turns as a server would keep it
            message_history=ModelMessagesTypeAdapter.validate_json(history),
        )
        history = ran.all_messages_json()
    return served


def sent(body: bytes) -> bytes:
    """The body up to the end of its last message: model, settings and messages, as they went out."""
    text = body.decode()
    start = text.index('"messages":') + len('"messages":')
    messages, end = json.JSONDecoder().raw_decode(text, start)
    assert messages == json.loads(body)["messages"]
    return text[: end - 1].encode()


def breaks(served) -> list[int]:
    """Requests that do not begin with what was sent before."""
    return [n for n, (one, two) in enumerate(pairwise(served.bodies), 1) if not two.startswith(sent(one))]


async def test_twenty_turns_with_three_changed_facts_share_every_prefix(memory, caller, chat, call_tool):
    served = await talk(memory, caller, chat, call_tool, Memory(memory, user="user_id"))
    assert len(served.bodies) == 22  # the two turns that call the tool ask twice
    assert breaks(served) == []
    tools = {body[len(sent(body)) :] for body in served.bodies}
    assert len(tools) == 1, "model, tools and settings are the same bytes, too"
    first, last = json.dumps(served.requests[0]), json.dumps(served.requests[-1])
    assert "New York" in first
    assert "Boston" not in first
    for value in ("Boston", "aisle", "Lisbon"):
        assert value in last


async def test_each_change_is_sent_once_and_nothing_else_is_sent_again(memory, caller, chat, call_tool):
    served = await talk(memory, caller, chat, call_tool, Memory(memory, user="user_id"))
    requests = served.requests
    seen: list[tuple[int, str]] = []
    for number, (one, two) in enumerate(pairwise(requests), 1):
        added = two["messages"][len(one["messages"]) :]
        seen += [
            (number, message["content"])
            for message in added
            if message["role"] == "user" and message["content"].startswith('<memory part="')
        ]
    named = [("profile", "Boston"), ("memories", "aisle"), ("profile", "Lisbon")]
    assert len(seen) == 3, seen
    for (_, content), (section, value) in zip(seen, named, strict=True):
        assert content.startswith(f'<memory part="{section}">')
        assert value in content


class Rewriting(Memory):
    """The same block, put before each request and not into the history."""

    async def for_run(self, ctx):
        bound = await super().for_run(ctx)
        bound.__class__ = RewritingCaller
        return bound


class RewritingCaller(CallerMemory):
    async def before_model_request(self, ctx, request_context):
        block = UserPromptPart("\n\n".join(self.texts.values()))
        request_context.messages = [ModelRequest(parts=[block]), *request_context.messages]
        return request_context


async def test_control_a_block_that_is_rewritten_breaks_the_prefix(memory, caller, chat, call_tool):
    served = await talk(memory, caller, chat, call_tool, Rewriting(memory, user="user_id"))
    assert len(breaks(served)) == 3


@pytest.mark.parametrize("fact", ["home", "seat"])
async def test_a_new_conversation_starts_from_what_is_known_by_then(memory, caller, chat, call_tool, fact):
    await talk(memory, caller, chat, call_tool, Memory(memory, user="user_id"))
    served, model = await chat(lambda _: {"content": "hello again"})
    agent = Agent(model, deps_type=caller, name="films", capabilities=[Memory(memory, user="user_id")])
    await agent.run("hello", deps=caller("ana"))
    (request,) = served.requests
    known = {"home": "Lisbon", "seat": "aisle"}[fact]
    assert known in json.dumps(request["messages"])
    assert "New York" not in json.dumps(request["messages"])
