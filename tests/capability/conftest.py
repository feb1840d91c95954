from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import echoic


@dataclass
class Caller:
    """What the agents of these tests depend on."""

    user_id: str | None
    deployment: str = "default"


@dataclass
class ChatServer:
    """Chat completions on this machine: keeps every request's body as it came, answers by script."""

    answer: Callable[[dict[str, Any]], dict[str, Any]]
    """From a request to the assistant's message."""
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = next(
                int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            self.bodies.append(body)
            message = {"role": "assistant", "content": None, **self.answer(json.loads(body))}
            done = "tool_calls" if message.get("tool_calls") else "stop"
            reply = json.dumps(
                {
                    "id": f"chat-{len(self.bodies)}",
                    "object": "chat.completion",
                    "created": 1_790_000_000,
                    "model": "scripted",
                    "choices": [{"index": 0, "finish_reason": done, "message": message}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                % len(reply)
                + reply
            )
            await writer.drain()
        writer.close()
        await writer.wait_closed()


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    """An assistant's message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "tool_calls": [{"id": f"call-{abs(hash(str(arguments)))}", "type": "function", "function": function}]
    }


@pytest.fixture
async def chat():
    """Starts a server that answers by a script, and gives it with a model that talks to it by the real client."""
    stops = []

    async def start(answer):
        served = ChatServer(answer)
        server = await asyncio.start_server(served.accept, "127.0.0.1", 0)
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = AsyncOpenAI(base_url=served.url, api_key="none", max_retries=0)
        model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
        stops.append((client, server, served))
        return served, model

    yield start
    for client, server, served in stops:
        await client.close()
        server.close()
        await asyncio.gather(*served.serving, return_exceptions=True)


@pytest.fixture
async def memory(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as service:
        yield service


@pytest.fixture
async def auto(tmp_path):
    """The same, where what may be shared is shared at once."""
    url = f"sqlite:///{tmp_path}/auto.db"
    async with echoic.open(url, embedder="lexical", global_writes="auto") as service:
        yield service


@pytest.fixture
def caller():
    return Caller


@pytest.fixture
def call_tool():
    return calling
