"""A telephone whose server is flooded, and callers who may keep no more."""

from __future__ import annotations

import asyncio
import contextlib

import httpx

import echoic
from echoic import Quota


async def test_silent_sockets_of_one_address_keep_no_call_from_being_answered(line):
    phone = await line(lambda said, _given: f"You said {said}.")
    port = httpx.URL(phone.url).port
    opened = set()

    async def hold(number):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                opened.add(number)
                try:
                    await reader.read()
                finally:
                    writer.close()

    holding = [asyncio.create_task(hold(number)) for number in range(330)]
    try:
        async with asyncio.timeout(60):
            while len(opened) < len(holding):
                await asyncio.sleep(0.01)
        call = await phone.call()
        assert "You said one." in await call.say("one")
        await call.hang_up()
    finally:
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)


async def test_a_caller_who_may_keep_no_more_is_still_answered(line):
    async with echoic.open("memory://", embedder="lexical", quota=Quota(user_bytes=1500)) as service:
        phone = await line(lambda said, _given: "I hear you.", service=service)
        call = await phone.call()
        for number in range(6):
            assert "I hear you." in await call.say(f"number {number} " + "and so on " * 30)
        await call.hang_up()
        kept = (await phone.turns(call)).turns
        assert 0 < len(kept) < 12
        other = await phone.call("+15550100002")
        assert "I hear you." in await other.say("Hello there")
        await other.hang_up()
        assert [t.text for t in (await phone.turns(other, "+15550100002")).turns if t.speaker == "user"]
