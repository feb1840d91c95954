"""Bodhi's `MemoryCacheManager`: a refresh that fails keeps the last answer. Shown on a real PostgreSQL.

There the failure is silent; here the answer says that it may not be the newest, and what needs the server says
that it could not look.
"""

from __future__ import annotations

import asyncio
import signal

import pytest

import echoic
from echoic import StoreUnavailable, Turn
from stores.postgres_server import PostgresServer


@pytest.fixture
def server():
    served = PostgresServer()
    served.start()
    yield served
    served.remove()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
async def test_the_last_answer_stands_and_says_so_while_the_server_is_away(server, how):
    url = server.url(wait_s=5)
    async with echoic.open(url, embedder="lexical") as memory, echoic.open(url, embedder="lexical") as other:
        ana = memory.user("ana")
        await ana.set("home", "Porto")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="my sister Maya is coming in May"))
        await memory.settle(60)
        before = await ana.recall("what is my home?")
        assert (before.outcome, before.hits[0].text) == ("complete", "Porto")

        await asyncio.to_thread(server.stop, how)
        try:
            stale = await ana.recall("what is my home?")
            assert stale.outcome == "unavailable", "it says that the store could not be asked"
            assert "newest" in stale.cut
            assert [hit.text for hit in stale.hits] == [hit.text for hit in before.hits]
            again = await ana.recall("is my sister Maya coming?")
            assert "Maya" in again.hits[0].text, "another question is answered from what is loaded"
            with pytest.raises(StoreUnavailable):
                await ana.set("home", "Lisbon")
            with pytest.raises(StoreUnavailable):  # of a stranger nothing is loaded; not: nothing is known
                await memory.user("bob").recall("what is my home?")
        finally:
            await asyncio.to_thread(server.start)

        async with asyncio.timeout(60):
            while True:  # connections come back one by one
                try:
                    await other.user("ana").set("home", "Lisbon")
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.1)
            while (fresh := await ana.recall("what is my home?")).outcome != "complete":
                await asyncio.sleep(0.1)
        assert fresh.hits[0].text == "Lisbon"
        assert "Porto" not in [hit.text for hit in fresh.hits if hit.memory and hit.memory.current]
