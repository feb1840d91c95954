"""No stored word speaks for the operator: what the providers' own clients send, looked through on every provider."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic_ai import Agent
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from echoic.capability import Memory
from echoic.types import Turn

PLANTED = {
    "memory": "quokka",
    "key": "numbat",
    "profile": "bilby",
    "conversation": "dunnart",
    "summary": "potoroo",
    "directive": "bettong",
    "wish": "kultarr",
    "lesson": "weather",
    "recalled": "mulgara",
}
"""A word for each place where one is planted."""

REPLIES = {
    "/v1/chat/completions": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Right."}}
        ],
    },
    "/v1/responses": {
        "id": "1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {
                "id": "2",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Right.", "annotations": []}],
            }
        ],
    },
    "/v1beta/models/gemini-2.5-pro:generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Right."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
}

CLAUDES = [
    {
        "type": "message_start",
        "message": {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Right."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


def claude(url):
    # three thousand modules: only who comes here imports them, and not every worker's parent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(base_url=url, api_key="k"))


MODELS = {
    "openai-chat": lambda url: OpenAIChatModel(
        "gpt-5", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    ),
    "openai-responses": lambda url: OpenAIResponsesModel(
        "gpt-5", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    ),
    "anthropic": claude,
    "google": lambda url: GoogleModel("gemini-2.5-pro", provider=GoogleProvider(base_url=url, api_key="k")),
}


@asynccontextmanager
async def provider():
    """A server that answers as each provider does, and the bodies it was sent."""
    bodies = []

    async def answer(request):
        bodies.append(await request.json())
        if request.path == "/v1/messages":
            events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in CLAUDES)
            return web.Response(text=events, content_type="text/event-stream")
        return web.json_response(REPLIES[request.path])

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", bodies
    finally:
        await runner.cleanup()


def operators(body) -> str:
    """What of a request a model takes for the operator's: system and developer messages, instructions, tools."""
    fields = [body.get(name) for name in ("system", "instructions", "systemInstruction", "tools")]
    listed = [*body.get("messages", []), *(body["input"] if isinstance(body.get("input"), list) else [])]
    fields += [message for message in listed if message.get("role") in {"system", "developer"}]
    # where a provider has no such role in the middle of a conversation, PydanticAI marks its text so
    fields += re.findall(r"<system>.*?</system>", json.dumps(body), re.DOTALL)
    return json.dumps(fields)


async def plant(service):
    ana = service.user("ana")
    await ana.set(PLANTED["key"], f"keeps a {PLANTED['memory']}")
    await ana.set("user_name", PLANTED["profile"])
    await ana.set_directives(**{PLANTED["directive"]: f"as a {PLANTED['wish']}"})
    call = await ana.conversation("old", agent="films")
    await call.append(Turn(speaker="user", text=f"The {PLANTED['recalled']} is on the roof."))
    await call.store(f"the {PLANTED['conversation']} talk", f"about a {PLANTED['summary']}")
    films = service.experience("films")
    await films.adopt((await films.add("strategy", f"Ask about the {PLANTED['lesson']} first.")).id)
    return ana


def spoken_as_operator(bodies):
    return {place for place, word in PLANTED.items() for body in bodies if word in operators(body)}


@pytest.mark.parametrize("name", MODELS)
async def test_no_stored_word_is_in_a_system_message_or_a_tool(memory, caller, name):
    ana = await plant(memory)
    async with provider() as (url, bodies):
        agent = Agent(
            MODELS[name](url),
            deps_type=caller,
            name="films",
            instructions="Be Robin.",
            capabilities=[Memory(memory, user="user_id")],
        )
        async with agent:
            first = await agent.run("Where is the mulgara?", deps=caller("ana"))
            await ana.set(PLANTED["key"], f"keeps another {PLANTED['memory']}")
            await agent.run("and now?", deps=caller("ana"), message_history=first.all_messages())
    assert len(bodies) == 2
    assert spoken_as_operator(bodies) == set()
    told = json.dumps(bodies[-1])
    assert {place for place, word in PLANTED.items() if word not in told} == set(), "control: all is told"
    assert "another" in told
    assert "Be Robin." in operators(bodies[-1]), "control: what the operator says is found"


class InTheSystemMessage(Memory):
    """The same block, given as instructions."""

    def get_instructions(self):
        async def block(ctx):
            return (await self.service.user(ctx.deps.user_id).block(agent="films")).text

        return [block]


@pytest.mark.parametrize("name", MODELS)
async def test_control_a_block_among_the_instructions_is_found(memory, caller, name):
    await plant(memory)
    async with provider() as (url, bodies):
        capability = InTheSystemMessage(memory, user="user_id")
        capability.for_run = lambda ctx: asyncio.sleep(0, capability)
        async with Agent(MODELS[name](url), deps_type=caller, capabilities=[capability]) as agent:
            await agent.run("hello", deps=caller("ana"))
    assert spoken_as_operator(bodies) == set(PLANTED) - {"recalled"}
