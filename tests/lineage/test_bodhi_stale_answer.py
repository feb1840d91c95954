"""Bodhi's `MemoryCacheManager`: a refresh that fails keeps the last answer. Shown on a real PostgreSQL.

There the failure is silent; here the answer says that it may not be the newest, and what needs the server says
that it could not look.
"""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime

import pytest

import echoic
from echoic import StoreUnavailable, Turn
from echoic.memory.profile import TimeReader
from stores.postgres_server import PostgresServer

pytestmark = pytest.mark.crash


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
            dated = await ana.recall("who did I say is coming in May?")
            assert "Maya" in dated.hits[0].text, "a question that names a time is answered too"
            assert "date" in dated.cut, "its days are those of the zone that was known last"
            assert dated.outcome == "unavailable"
            assert "date" not in again.cut
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


async def test_while_the_server_is_away_days_are_those_of_the_zone_that_was_read_last(server):
    """From UTC+14 to UTC-11 there is no hour at which both have the same day."""
    now = datetime(2026, 5, 4, 11, 30, tzinfo=UTC)
    url = server.url(wait_s=5)
    async with echoic.open(url, embedder="lexical") as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        await ana.set("timezone", "Pacific/Kiritimati")
        recaller = ana._parts.recaller
        hers, his = (TimeReader(ana.backing_store, recaller, lambda: now) for _ in range(2))
        question = "what did I say yesterday?"
        before = await hers.read(ana.scope, question)
        assert not before.assumed
        in_utc = await his.read(bob.scope, question, "UTC")
        assert before.ranges != in_utc.ranges
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        away = await hers.read(ana.scope, question)
        assert away.assumed
        assert away.ranges == before.ranges
        unknown = await his.read(bob.scope, question)
        assert unknown.assumed
        assert unknown.ranges == in_utc.ranges
        given = await hers.read(ana.scope, question, "UTC")
        assert not given.assumed, "what is given need not be looked up"
        assert not (await hers.read(ana.scope, "what is my home?")).assumed
