"""Sockets: what is no HTTP, what is half a handshake, what is left open."""

# ruff: noqa: SIM117 - a client in its server reads as it is
from __future__ import annotations

import asyncio
import json

import httpx
import pytest
import websockets

from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Script, loopback_authority
from echoic_loopback.realtime.websocket import WebSocket

KEY = {"Authorization": "Bearer sk"}


async def exchange(server, data):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"GARBAGE\r\n\r\n", b"HTTP/1.1 400"),
        (b"POST /v1/realtime/calls HTTP/1.1\r\nContent-Length: 4\r\n\r\n", b"HTTP/1.1 400"),  # no host
        (b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 401"),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n\r\n", b"HTTP/1.1 404"),
        (b"OPTIONS /v1/realtime/calls HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 204"),
    ],
)
async def test_what_is_no_request_of_ours_is_answered_and_hurts_nothing(sent, answered):
    async with OpenAIRealtimeServer(Script()) as server:
        assert (await exchange(server, sent)).startswith(answered)


async def test_a_connection_that_says_nothing_or_stops_halfway_hurts_nothing():
    async with OpenAIRealtimeServer(Script()) as server:
        _, silent = await asyncio.open_connection("127.0.0.1", server.port)
        _, half = await asyncio.open_connection("127.0.0.1", server.port)
        half.write(b"GET /v1/realtime?model=x HTTP/1.1\r\nUpgrade: websocket\r\n")
        await half.drain()
        half.close()
        async with websockets.connect(f"{server.url}?model=m", additional_headers=KEY) as socket:
            assert json.loads(await socket.recv())["type"] == "session.created"
        silent.close()


async def test_a_body_in_chunks_is_read_whole():
    async def parts():
        yield b'{"session": {"type": '
        yield b'"realtime"}}'

    async with OpenAIRealtimeServer(Script()) as server, httpx.AsyncClient() as client:
        url = f"{server.base_url}/realtime/client_secrets"
        answer = await client.post(url, content=parts(), headers=KEY)
    assert answer.status_code == 200


async def test_a_message_in_fragments_is_read_whole_and_a_large_one_too():
    event = json.dumps(
        {"type": "session.update", "session": {"type": "realtime", "instructions": "x" * 2_000_000}}
    )
    async with (
        OpenAIRealtimeServer(Script()) as server,
        websockets.connect(f"{server.url}?model=m", additional_headers=KEY, max_size=None) as socket,
    ):
        await socket.recv()
        await socket.send([event[:7], event[7:1_000_000], event[1_000_000:]])
        assert json.loads(await socket.recv())["type"] == "session.updated"


async def test_a_cut_delivers_first_what_was_sent_to_a_client_that_reads_late():
    sent = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        socket = WebSocket(reader, writer)
        await socket.accept(socket.read_request(await reader.readuntil(b"\r\n\r\n")))
        count = 0
        while not writer.transport.get_write_buffer_size():  # until the kernel takes no more
            count += 1
            await socket.send(f"{count:04}" * 1000)
        sent.set_result(count)
        await socket.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        head = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        writer.write(head + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        count = await asyncio.wait_for(sent, 10)
        received = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert received.endswith(f"{count:04}".encode() * 1000)


async def test_pings_are_answered():
    async with OpenAIRealtimeServer(Script()) as server:
        async with websockets.connect(f"{server.url}?model=m", additional_headers=KEY) as socket:
            await asyncio.wait_for(await socket.ping(), 60)


async def test_leaving_the_server_ends_what_is_still_connected():
    async with OpenAIRealtimeServer(Script()) as server:
        socket = await websockets.connect(f"{server.url}?model=m", additional_headers=KEY)
        await socket.recv()
    with pytest.raises(websockets.ConnectionClosed):
        await asyncio.wait_for(socket.recv(), 60)
    await socket.close()


async def test_a_server_that_is_not_entered_has_no_address():
    with pytest.raises(RuntimeError, match="enter it with `async with` first"):
        _ = OpenAIRealtimeServer().base_url


def test_the_environment_is_as_it_was_when_trust_ends(monkeypatch):
    import os

    authority = loopback_authority()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with authority.trusted() as path:
        assert os.environ["SSL_CERT_FILE"] == str(path)
        assert path.read_bytes() == authority.pem
    assert "SSL_CERT_FILE" not in os.environ
    assert not path.exists()
    monkeypatch.setenv("SSL_CERT_FILE", "mine")
    with authority.trusted():
        pass
    assert os.environ["SSL_CERT_FILE"] == "mine"


async def test_both_stand_ins_run_at_once():
    async with OpenAIRealtimeServer(Script()) as one, GeminiLiveServer(Script()) as other:
        assert one.port != other.port
