"""Prompt caches of two providers on this machine: what a call with a long recalled transcript gets of them.

    python -m benchmarks.phone --only caching

The clients are the providers' own, behind PydanticAI; the server on the loopback interface keeps what they
send and counts what a cache would have given back, by the rules the providers publish:

Anthropic: what is sent is tools, instructions, then messages. An entry is written where a block is marked,
and where automatic caching is asked for at the last block. It is read where a request is the same up to an
entry, looking back 20 blocks from each mark. Below 1,024 tokens nothing is cached.
OpenAI: the longest beginning that is the same as in an earlier request, in steps of 128 tokens from 1,024.

Tokens are counted as four characters each, so shares are of characters, and not what an invoice would say.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

MINIMUM_TOKENS = 1024
STEP_TOKENS = 128
LOOK_BACK = 20

Step = str | tuple[str, dict[str, Any]]
"""What the model does next: words, or a tool with its arguments."""


@dataclass
class Provider:
    """A provider whose model does as `step` says, and whose cache is counted."""

    step: Callable[[list[str], list[str]], Step]
    """From what the caller said, all of it, and what tools gave since they last spoke, to what comes next."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """Of each request, what came from the cache."""
    url: str = ""
    clients: list[Any] = field(default_factory=list)
    """Closed with it."""
    _entries: set[str] = field(default_factory=set)
    _sent: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._completions)
        return app

    # -- Anthropic

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        blocks, marks = _blocks(body)
        read, written = self._anthropic_cache(blocks, marks)
        whole = _tokens("".join(blocks))
        usage = {
            "input_tokens": whole - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }
        self.shares.append(read / whole)
        said, given = _heard_by_claude(body["messages"])
        return await _stream(request, _claude_events(self.step(said, given), usage, len(self.requests)))

    def _anthropic_cache(self, blocks: Sequence[str], marks: Sequence[int]) -> tuple[int, int]:
        """Tokens read, and tokens written."""
        read = written = 0
        for mark in marks:
            for at in range(mark, max(-1, mark - LOOK_BACK), -1):
                prefix = "".join(blocks[: at + 1])
                if prefix in self._entries:
                    read = max(read, _tokens(prefix))
                    break
        for mark in marks:
            prefix = "".join(blocks[: mark + 1])
            if _tokens(prefix) >= MINIMUM_TOKENS:
                written = max(written, _tokens(prefix) - read)
                self._entries.add(prefix)
        return read, written

    # -- OpenAI

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        sent = json.dumps([body.get("tools", []), *body["messages"]])
        same = max((_common(sent, before) for before in self._sent), default=0)
        tokens = same // 4 // STEP_TOKENS * STEP_TOKENS
        read = tokens if tokens >= MINIMUM_TOKENS else 0
        self._sent.append(sent)
        whole = _tokens(sent)
        usage = {
            "prompt_tokens": whole,
            "completion_tokens": 1,
            "total_tokens": whole + 1,
            "prompt_tokens_details": {"cached_tokens": read},
        }
        self.shares.append(read / whole)
        said, given = _heard_by_gpt(body["messages"])
        return await _stream(request, _gpt_events(self.step(said, given), usage, len(self.requests)))


@asynccontextmanager
async def serving(step: Callable[[list[str], list[str]], Step]) -> AsyncIterator[Provider]:
    """A provider on the loopback interface."""
    provider = Provider(step)
    runner = web.AppRunner(provider.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    provider.url = f"http://{host}:{port}"
    try:
        yield provider
    finally:
        for client in provider.clients:
            await client.close()
        await runner.cleanup()


def claude(provider: Provider) -> Any:
    """Anthropic's client and PydanticAI's model, talking to `provider`."""
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key="none", base_url=provider.url)
    provider.clients.append(client)
    return AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(anthropic_client=client))


def gpt(provider: Provider) -> Any:
    """OpenAI's client and PydanticAI's model, talking to `provider`."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1")
    provider.clients.append(client)
    return OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(openai_client=client))


def _tokens(text: str) -> int:
    return len(text) // 4


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _blocks(body: dict[str, Any]) -> tuple[list[str], list[int]]:
    """All blocks of a request as text, and at which of them there are marks."""
    system = body.get("system", [])
    named = [("tools", tool) for tool in body.get("tools", [])]
    named += [("system", part) for part in ([{"text": system}] if isinstance(system, str) else system)]
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        named += [(message["role"], part) for part in parts]
    marks = [at for at, (_, part) in enumerate(named) if "cache_control" in part]
    if "cache_control" in body:
        marks.append(len(named) - 1)
    bare = [(role, {k: v for k, v in part.items() if k != "cache_control"}) for role, part in named]
    return [json.dumps(block) for block in bare], sorted(set(marks))


def _heard_by_claude(messages: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    said: list[str] = []
    given: list[str] = []
    for message in messages:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if message["role"] == "user" and part["type"] == "text" and "<memory part" not in part["text"]:
                said.append(part["text"])
                given = []
            elif part["type"] == "tool_result":
                given.append(json.dumps(part["content"]))
    return said, given


def _heard_by_gpt(messages: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    said: list[str] = []
    given: list[str] = []
    for message in messages:
        if message["role"] == "user" and "<memory part" not in str(message["content"]):
            said.append(str(message["content"]))
            given = []
        elif message["role"] == "tool":
            given.append(str(message["content"]))
    return said, given


async def _stream(request: web.Request, events: Sequence[tuple[str | None, Any]]) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    for name, data in events:
        head = f"event: {name}\n" if name else ""
        text = data if isinstance(data, str) else json.dumps(data)
        await answer.write(f"{head}data: {text}\n\n".encode())
    await answer.write_eof()
    return answer


def _claude_events(step: Step, usage: dict[str, int], number: int) -> list[tuple[str | None, Any]]:
    if isinstance(step, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": f"{word} "} for word in step.split()]
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(step[1])}]
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-haiku-4-5"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    why = "end_turn" if isinstance(step, str) else "tool_use"
    ends = {"delta": {"stop_reason": why, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", **ends},
        {"type": "message_stop"},
    ]
    return [(str(event["type"]), event) for event in events]


def _gpt_events(step: Step, usage: dict[str, Any], number: int) -> list[tuple[str | None, Any]]:
    head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1"}
    deltas: list[dict[str, Any]]
    if isinstance(step, str):
        deltas = [{"role": "assistant", "content": f"{word} "} for word in step.split()]
    else:
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        deltas = [{"role": "assistant", "tool_calls": [call]}]
    why = "stop" if isinstance(step, str) else "tool_calls"
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]})
    chunks.append({**head, "choices": [], "usage": usage})
    return [(None, chunk) for chunk in chunks] + [(None, "[DONE]")]


__all__ = ["LOOK_BACK", "MINIMUM_TOKENS", "Provider", "claude", "gpt", "serving"]
