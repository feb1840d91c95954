"""`forget(since=…, until=…)`: everything from yesterday."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.types import Turn

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
