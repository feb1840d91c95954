"""The example of a server with agents of one's own, run as it stands."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx

import forked
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from server.test_voice_kill import Identity
from server.voice_calling import calling

EXAMPLE = Path(__file__).parents[2] / "examples" / "voice_server.py"


class Running:
    def __init__(self, url, client):
        self.url, self.client = url, client


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


async def test_the_example_looks_an_order_up_and_hands_a_claim_over(tmp_path):
    first = Script(
        Says("hello", word_ms=50),
        UserSays("where is my order 1207", after_ms=300),
        Calls(ToolCall("order", {"number": "1207"})),
        Says("it is due tomorrow", word_ms=50),
        UserSays("another one is broken", after_ms=1500),
        Calls(ToolCall("transfer_call", {"agent": "casey"})),
        Says("one moment", word_ms=50),
        open_ended=True,
    )
    second = Script(Says("this is Casey", word_ms=50), open_ended=True)
    async with OpenAIRealtimeServer(first, second, patience_s=30) as provider:
        keys = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.base_url, "ECHOIC_EMBEDDER": "lexical"}
        process = forked.Popen(
            [sys.executable, str(EXAMPLE), "openai:gpt-realtime", str(free_port())],
            cwd=tmp_path,
            env={**os.environ, **keys},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            url = (await asyncio.to_thread(process.stdout.readline)).strip().rstrip("/")
            async with httpx.AsyncClient(base_url=url, timeout=30) as client:
                ana = await identity(client)
                async with calling(Running(url, client), ana) as page:
                    await page.until_heard("it is due tomorrow", 30)
                    told = await page.until_told("transfer", seconds=30)
                    await page.until_heard("this is Casey", 30)
                known = (await client.get("/api/memories", headers=ana.headers)).json()["memories"]
        finally:
            process.terminate()
            await asyncio.to_thread(process.communicate, timeout=30)
        (result,) = [
            event.body["item"]["output"]
            for event in provider.sessions[0].record.received("conversation.item.create")
            if event.body["item"].get("type") == "function_call_output" and "1207" in str(event.body)
        ]
    assert "due tomorrow" in result
    assert told["agent"] == "casey"
    assert "1207" in {memory["text"] for memory in known}


async def identity(client):
    async with asyncio.timeout(30):
        while True:
            try:
                given = (await client.post("/api/identity", json={})).json()
            except httpx.ConnectError:  # it says its address before it listens
                await asyncio.sleep(0.1)
            else:
                return Identity(given["userCookie"], given["user"])
