"""A provider on the loopback that speaks OpenAI's chat completions, and the real client that talks to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import echoic
from echoic.memory.service import MemoryService
from echoic.models import classifier_from, extractor_from
from echoic.stores import store_from
from embedding.loopback_serving import served


@dataclass
class Reply:
    """What the provider sends back."""

    arguments: Any = None
    """Of the call of the output tool: an object, or a string sent as it is."""
    text: str | None = None
    """Plain words instead of a call."""
    refusal: str | None = None
    status: int = 200
    body: bytes | None = None
    """Sent in place of everything."""
    seconds: float = 0.0
    """How long it takes."""
    finish: str = "tool_calls"
    cut: int = 0
    """Bytes of the body that never arrive."""


@dataclass
class Provider:
    """Answers in order; the last answer again and again."""

    url: str = ""
    replies: list[Reply | Callable[[dict[str, Any]], Reply]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    held: bool = False
    """Whether answers wait for `gate`."""

    def answer(self, *replies: Any) -> None:
        self.replies = list(replies)

    @property
    def asked(self) -> str:
        """The last question, as the provider got it."""
        return next(m["content"] for m in reversed(self.requests[-1]["messages"]) if m["role"] == "user")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = json.loads(raw)
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        reply = reply(request) if callable(reply) else reply
        await asyncio.sleep(reply.seconds)
        while self.held and not self.gate.is_set():
            await asyncio.sleep(0.005)
        body = reply.body if reply.body is not None else json.dumps(_completion(request, reply)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body[: len(body) - reply.cut]})


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.arguments is not None:
        given = reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
        tool = request["tools"][0]["function"]["name"]
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": given}}
        message["tool_calls"] = [call]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@pytest.fixture(scope="session")
def _switchboard() -> Iterator[tuple[str, list[Provider]]]:
    current: list[Provider] = []

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        await current[-1](scope, receive, send)

    with served(forward) as address:
        yield f"{address}/v1", current


@pytest.fixture
def provider(_switchboard: tuple[str, list[Provider]]) -> Iterator[Provider]:
    address, current = _switchboard
    made = Provider(url=address)
    current.append(made)
    yield made
    made.gate.set()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
async def model(provider: Provider) -> Any:
    """OpenAI's own client behind PydanticAI's model of it."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=provider.url, api_key="sk-test", max_retries=0)
    yield OpenAIChatModel("gpt-test", provider=OpenAIProvider(openai_client=client))
    await client.close()


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/echoic.db"


@pytest.fixture
def service(url: str, model: Any) -> Callable[..., MemoryService]:
    """Makes services on one store, as several processes would."""

    def make(**options: Any) -> MemoryService:
        options.setdefault("extractor", extractor_from(model, timeout_s=options.pop("timeout_s", 20.0)))
        return MemoryService(store_from(url), echoic.embedding.embedder_from("lexical"), **options)

    return make


@pytest.fixture
def judged(url: str, model: Any) -> Callable[..., MemoryService]:
    """Likewise, with the model as second judge of what may be global."""

    def make(**options: Any) -> MemoryService:
        judge = classifier_from(model, timeout_s=5.0)
        embedder = echoic.embedding.embedder_from("lexical")
        return MemoryService(store_from(url), embedder, second_judge=judge, **options)

    return make
