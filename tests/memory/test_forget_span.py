"""`forget(since=…, until=…)`: everything from yesterday."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.embedding import embedder_from
from echoic.memory.proposals import put_proposal
from echoic.memory.records import CHECKPOINT, GIVEN, memory_id
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put, Record
from echoic.types import Memory, Turn

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
TUESDAY = MONDAY + timedelta(days=1)


async def story(user: echoic.UserMemory) -> None:
    call = await user.conversation("long")
    await call.append(Turn(speaker="user", text="My dog is called Bruno.", id="1", said_at=MONDAY))
    await call.append(Turn(speaker="user", text="My sister is called Quilla.", id="2", said_at=TUESDAY))
    await call.append(
        Turn(speaker="user", text="I live in Porto.", id="3", said_at=TUESDAY + timedelta(days=1))
    )
    other = await user.conversation("tuesday")
    await other.append(Turn(speaker="user", text="I drive a Zonda.", id="4", said_at=TUESDAY))
    await other.store(key="car", summary="About the Zonda.")


async def test_what_was_said_and_learned_in_a_span_goes_and_the_rest_stays(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/e.db", embedder="lexical") as memory:
        user = memory.user("ana")
        await story(user)
        await memory.distil()
        assert {"Quilla", "Bruno", "Porto"} <= {memory.text for memory in await user.facts()}
        receipt = await user.forget(since=TUESDAY, until=TUESDAY + timedelta(hours=23))
        assert receipt.verified
        # the turn of the other call is destroyed, the one of this call loses its words, each counted once
        assert (receipt.turns, receipt.conversations, receipt.rewritten) == (1, 1, 1)
        assert {memory.text for memory in await user.facts()} == {"Bruno", "Porto"}
        assert [turn.text for turn in (await user.task("long")).turns if "[" not in turn.text] == [
            "My dog is called Bruno.",
            "I live in Porto.",
        ]
        assert await user.task("tuesday") is None
        kept = (tmp_path / "e.db").read_bytes()
        assert b"Bruno" in kept  # the control
        assert b"Quilla" not in kept
        assert b"Zonda" not in kept


async def test_values_kept_in_the_span_by_a_tool_go_as_well(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/e.db", embedder="lexical") as memory:
        user = memory.user("ana")
        before = datetime.now(UTC) - timedelta(minutes=1)
        await user.set("pet", "a goat")
        await user.items("order").set("1", {"of": "a kite"})
        await user.forget(until=before)
        assert await user.get("pet")
        await user.forget(since=before)
        assert (await user.get("pet"), await user.items("order").get("1")) == (None, None)


async def test_results_of_the_span_go_as_well_with_what_quotes_them(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/e.db", embedder="lexical") as memory:
        user = memory.user("ana")
        call = await user.conversation("long")
        await call.append(Turn(speaker="user", text="My dog is called Bruno.", id="1", said_at=MONDAY))
        await user.add_result("long", "lab", {"weight": "nine stone"}, at=MONDAY)
        await user.add_result(
            "long", "lab", {"diagnosis": "zondalgia"}, arguments={"of": "quillonda"}, at=TUESDAY
        )
        given = {"exchange": 0, "role": "tool-return", "name": "lab", "text": "zondalgia", "tokens": 3}
        state = {"conversation": "long", "messages": "zondalgia"}
        await user.backing_store.write(
            user.scope,
            [
                Put(record=Record(kind=GIVEN, id="g", key="long", data=given)),
                Put(record=Record(kind=CHECKPOINT, id="s", data=state)),
            ],
        )
        receipt = await user.forget(since=TUESDAY, until=TUESDAY + timedelta(days=1))
        assert receipt.verified
        assert [result.value for result in (await user.task("long")).results] == [{"weight": "nine stone"}]
        kept = (tmp_path / "e.db").read_bytes()
        assert b"Bruno" in kept  # the control
        assert b"zondalgia" not in kept
        assert b"quillonda" not in kept
        assert not (await user.forget(since=TUESDAY)).records


@pytest.mark.parametrize("mode", ["auto", "propose"])
async def test_what_others_see_since_the_span_goes_as_well(tmp_path, mode):
    now = MONDAY + timedelta(microseconds=1)
    store = store_from(f"sqlite:///{tmp_path}/e.db")
    memory = MemoryService(store, embedder_from("lexical"), global_writes=mode, clock=lambda: now)
    async with memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        await ana.set("garden_hours", "The garden is open from 8 to 16.")
        await ana.set("store_hours", "The store is open from 9 to 17.")
        await ana.set("desk_hours", "The desk is open from 6 to 14.", visibility="private")
        now = TUESDAY + timedelta(microseconds=1)
        await ana.set("desk_hours", "The desk is open from 5 to 13.")
        await ana.set("pool_hours", "The pool is open from 10 to 18.")
        await ana.set("store_hours", "The store is open from 11 to 19.")
        await ana.set("store_hours", "The store is open from 9 to 17.")
        await bob.set("pool_hours", "The pool is open from 7 to 15.")
        # as a process leaves it that was killed before its author's own copy was written
        text, name = "The lobby is open from 12 to 20.", memory_id("ana", "lobby_hours")
        left = Memory(id=name, key="lobby_hours", text=text, author="ana", valid_from=now)
        await ana.backing_store.write(ana.scope.everyone, [put_proposal(left)])

        async def seen():
            everyones = [*await memory.proposals().list(), *await memory.global_facts().list()]
            return {each.text for each in everyones if each.author == "ana"}

        assert len(await seen()) == 5
        assert (await ana.forget(since=TUESDAY)).verified
        assert await seen() == {"The garden is open from 8 to 16."}
        assert [each.text for each in await ana.history("desk_hours")] == ["The desk is open from 6 to 14."]
        assert b"10 to 18" not in (tmp_path / "e.db").read_bytes()
        assert b"12 to 20" not in (tmp_path / "e.db").read_bytes()
        assert b"11 to 19" not in (tmp_path / "e.db").read_bytes()
        assert b"7 to 15" in (tmp_path / "e.db").read_bytes()  # the control: another user's


async def test_a_span_is_asked_for_alone_and_must_hold_something(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/e.db", embedder="lexical") as memory:
        user = memory.user("ana")
        await user.set("pet", "a goat")
        for wrong in (
            {"since": MONDAY, "key": "pet"},
            {"until": MONDAY, "learned_from": []},
            {"since": TUESDAY, "until": MONDAY},
            {"since": MONDAY.replace(tzinfo=None)},
        ):
            with pytest.raises(echoic.InvalidInput):
                await user.forget(**wrong)
        assert await user.get("pet")
