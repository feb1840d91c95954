"""Shared by the embedders' tests: the weights, a cache for what is made of them, loopback servers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blockbuster import blockbuster_ctx

from echoic.embedding import weights
from embedding.loopback_serving import served
from embedding.test_custom_model import random_tensors, write_config, write_safetensors


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Any blocking call on the event loop fails the test that made it."""
    with blockbuster_ctx():
        yield


@pytest.fixture(scope="session")
def published() -> Path:
    """The directory of the installed package that holds the published weights."""
    listed = metadata.distribution(weights.DISTRIBUTION).files or []
    return Path(str(next(file for file in listed if file.name == "model.safetensors").locate())).parent


@pytest.fixture(scope="session")
def small(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `published`, with random weights of a small model: where only what becomes of the files counts."""
    folder = tmp_path_factory.mktemp("small")
    write_safetensors(folder / "model.safetensors", random_tensors(seed=1))
    write_config(folder)
    (folder / "tokenizer.json").symlink_to(published / "tokenizer.json")
    return folder


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' converted models are kept: made once a session, by the first that needs them."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def serve() -> Callable[[Any], contextlib.AbstractContextManager[str]]:
    return served


def hashed_vector(text: str, dimensions: int) -> np.ndarray:
    """A vector of the words of `text`, not of unit length; equal texts, equal vectors."""
    vector = np.full(dimensions, 1e-3, np.float32)
    for word in text.lower().split():
        vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % dimensions] += 3
    return vector


@dataclass
class Reply:
    """How the server answers one request instead of properly."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    change: Callable[[dict[str, Any]], object] | None = None
    """Applied to the proper answer before it is sent."""
    cut: int = 0
    """So many bytes of the body are promised and not sent."""
    delay_s: float = 0.0


@dataclass
class EmbeddingServer:
    """The embeddings interface that Voyage and OpenAI share, on the loopback, with faults on order."""

    dimensions: int = 1024
    key: str = "test-key"
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The JSON bodies received, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    faults: list[Reply] = field(default_factory=list)
    """Taken from the front, one a request; without one the answer is proper."""
    url: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        sent = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.headers.append(sent)
        request = json.loads(body)
        self.requests.append(request)
        reply = self.faults.pop(0) if self.faults else Reply()
        await asyncio.sleep(reply.delay_s)
        status, answer = self._answer(scope["path"], sent, request, reply)
        await self._send(send, status, answer, reply)

    def _answer(
        self, path: str, headers: dict[str, str], request: dict[str, Any], reply: Reply
    ) -> tuple[int, bytes]:
        if path != "/v1/embeddings":
            return 404, b'{"detail": "no such path"}'
        if headers.get("authorization") != f"Bearer {self.key}":
            quoted = f"Incorrect API key provided: {headers.get('authorization')}"
            return 401, json.dumps({"error": {"message": quoted, "code": "invalid_api_key"}}).encode()
        if reply.status != 200 or reply.body is not None:
            quoted = json.dumps({"detail": f"refused: {request['input']}"}).encode()
            return reply.status, reply.body if reply.body is not None else quoted
        answer = self._proper(request)
        if reply.change is not None:
            reply.change(answer)
        return 200, json.dumps(answer).encode()

    def _proper(self, request: dict[str, Any]) -> dict[str, Any]:
        dimensions = request.get("output_dimension") or request.get("dimensions") or self.dimensions
        vectors = [hashed_vector(text, dimensions) for text in request["input"]]
        encode = request.get("encoding_format") == "base64"
        return {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": base64.b64encode(vector.tobytes()).decode() if encode else vector.tolist(),
                }
                for index, vector in enumerate(vectors)
            ],
            "model": request["model"],
            "usage": {"total_tokens": 1, "prompt_tokens": 1},
        }

    async def _send(self, send: Any, status: int, body: bytes, reply: Reply) -> None:
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        sent = body[: len(body) - reply.cut]
        await send({"type": "http.response.body", "body": sent, "more_body": False})


@pytest.fixture(scope="session")
def _switchboard() -> Iterator[tuple[str, list[EmbeddingServer]]]:
    """One listening socket for the session, whose requests go to the last server in the list."""
    current: list[EmbeddingServer] = []

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        await current[-1](scope, receive, send)

    with served(forward) as address:
        yield address, current


@pytest.fixture
def embedding_server(_switchboard: tuple[str, list[EmbeddingServer]]) -> EmbeddingServer:
    address, current = _switchboard
    server = EmbeddingServer(url=f"{address}/v1")
    current.append(server)
    return server


@pytest.fixture(scope="session")
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
async def collected_errors() -> AsyncIterator[list[dict[str, Any]]]:
    """What the event loop was told about while nobody was looking, such as an exception never retrieved."""
    loop = asyncio.get_running_loop()
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: told.append(context))
    yield told
    loop.set_exception_handler(None)
