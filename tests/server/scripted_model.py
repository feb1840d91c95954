"""Chat completions on this machine, as OpenAI's client asks for them: whole or streamed, answered by a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Spoken:
    """What the model says: words as they come, before them calls of tools; or a status that is no answer."""

    words: tuple[str, ...] = ()
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200
    pause_s: float = 0.0
    """Before each piece."""
    cut: bool = False
    """End the line in the middle."""


@dataclass
class ScriptedModel:
    """A provider in a thread of its own. Set `says` for what it streams, `learns` for what it answers whole."""

    says: Callable[[dict[str, Any]], Spoken] = field(default=lambda _request: Spoken(words=("Hm.",)))
    learns: Callable[[dict[str, Any]], dict[str, Any] | None] = field(default=lambda _request: None)
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def start(self) -> None:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            request = json.loads(await reader.readexactly(length))
            self.requests.append(request)
            if request.get("stream"):
                await self._stream(request, writer)
            else:
                self._whole(request, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        spoken = self.says(request)
        if spoken.status != 200:
            _write(writer, spoken.status, b'{"error": {"message": "no"}}')
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        deltas: list[dict[str, Any]] = [
            {"tool_calls": [{"index": at, "id": f"call-{len(self.requests)}-{at}", "type": "function",
                             "function": {"name": name, "arguments": json.dumps(given)}}]}
            for at, (name, given) in enumerate(spoken.calls)
        ] + [{"role": "assistant", "content": words} for words in spoken.words]  # fmt: skip
        for delta in deltas:
            await asyncio.sleep(spoken.pause_s)
            writer.write(_chunk(delta, None))
            await writer.drain()
        if spoken.cut:
            return
        writer.write(_chunk({}, "tool_calls" if spoken.calls else "stop") + b"data: [DONE]\n\n")

    def _whole(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        arguments = self.learns(request)
        if arguments is None:
            _write(writer, 500, b'{"error": {"message": "no"}}')
            return
        name = request["tools"][0]["function"]["name"]
        call = {
            "id": "call",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "scripted"}
        _write(writer, 200, json.dumps({**body, "choices": [choice], "usage": usage}).encode())


def _write(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)


def _chunk(delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
    }
    return f"data: {json.dumps(body)}\n\n".encode()
