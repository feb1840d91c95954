from __future__ import annotations

import asyncio

import aiohttp
import numpy as np
from aiohttp import web

from echoic.adapters.twilio.media import TELEPHONE_HZ
from echoic_loopback.twilio.simulated_stream import SimulatedStream


async def test_who_is_speaking_when_the_server_goes_away_does_not_wait_to_be_heard() -> None:
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: lost.append(context))

    async def leaves(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if "media" in str(message.data):
                break
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/", leaves)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with aiohttp.ClientSession() as client, client.ws_connect(_url(runner)) as socket:
            stream = SimulatedStream(socket, "CA1")
            await stream.open()
            minute = np.zeros(60 * TELEPHONE_HZ, np.int16)
            async with asyncio.timeout(30):
                await stream.say(minute)
                await stream.say(minute)
            assert stream.ended
            await stream.aclose()
    finally:
        await runner.cleanup()
    assert lost == []


def _url(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}/"
