"""What is older than a deployment keeps it is destroyed in the background, unless it is on hold."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from echoic import InvalidInput, NotAllowed
from echoic.embedding import LexicalEmbedder
from echoic.errors import StoreCorrupt
from echoic.memory import erasure, retention
from echoic.memory.retention import rules_from
from echoic.memory.service import MemoryService
from echoic.memory.sharing import GLOBAL_KINDS
from echoic.stores import store_of
from echoic.types import Turn

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.days = 0.0

    def __call__(self):
        return START + timedelta(days=self.days)


@pytest.fixture
def clock():
    return Clock()


def service_at(path, clock, keep_for):
    store = store_of(f"sqlite:///{path}/echoic.db")
    return MemoryService(store, LexicalEmbedder(), clock=clock, keep_for=keep_for)


async def talk(service, name, words, deployment="default"):
    ana = service.user("ana", deployment)
    call = await ana.conversation(name)
    await call.append(Turn(speaker="user", text=words, said_at=service._parts.clock()))
    return ana


async def test_what_is_too_old_is_in_no_byte_of_the_store_and_the_rest_stays(tmp_path, clock):
    async with service_at(tmp_path, clock, "conversations=90,memories=30,acme:conversations=10") as service:
        ana = await talk(service, "old", "the quokka is on the roof")
        await ana.set("pet", "numbat")
        await talk(service, "old", "the bilby is in the barn", "acme")
        clock.days = 20
        await talk(service, "new", "the potoroo is in the shed")
        assert await service.enforce_retention() == 1, "acme keeps conversations for ten days"
        clock.days = 95
        assert await service.enforce_retention() == 2
        assert await service.enforce_retention() == 0
        assert [c.id for c in await ana.conversations()] == ["new"]
        assert await ana.get("pet") is None
        assert await service.user("ana", "acme").conversations() == []
    left = b"".join(path.read_bytes() for path in tmp_path.glob("echoic.db*") if path.is_file())
    assert not [word for word in (b"quokka", b"bilby", b"numbat") if word in left]
    assert b"potoroo" in left, "control"


async def test_a_conversation_is_as_old_as_its_last_turn_however_long_it_has_been_going_on(tmp_path, clock):
    """As a thread of a messenger, which has one id for years."""
    async with service_at(tmp_path, clock, "conversations=90") as service:
        for day in (0, 40, 80, 95):
            clock.days = day
            ana = await talk(service, "thread", f"the quokka of day {day} is on the roof")
            await talk(service, f"call {day}", "the bilby is in the barn")
        clock.days += 1 / 24 / 60
        assert await service.enforce_retention() == 1
        assert len(await (await ana.conversation("thread")).turns()) == 4
        assert {c.id for c in await ana.conversations()} == {"thread", "call 40", "call 80", "call 95"}
        clock.days = 95 + 91
        assert await service.enforce_retention() == 4
        assert await ana.conversations() == []


async def test_a_conversation_that_went_on_while_others_were_destroyed_stays(tmp_path, clock, monkeypatch):
    async with service_at(tmp_path, clock, "conversations=90") as service:
        ana = await talk(service, "first", "the bilby is in the barn")
        await talk(service, "second", "the quokka is on the roof")
        clock.days = 91
        forget = erasure.Erasing.forget

        async def slowly(self, *args, **options):
            await talk(service, "second", "the quokka is still there")
            return await forget(self, *args, **options)

        monkeypatch.setattr(erasure.Erasing, "forget", slowly)
        assert await service.enforce_retention() == 1
        assert [c.id for c in await ana.conversations()] == ["second"]


@pytest.mark.parametrize("damage", ['{"text":', "{}"], ids=["not JSON", "not a memory"])
async def test_a_user_who_cannot_be_read_keeps_what_is_too_old_of_nobody_else(tmp_path, clock, damage):
    async with service_at(tmp_path, clock, "memories=30") as service:
        for name in ("ana", "bob", "cleo"):
            await service.user(name).set("pet", "numbat")
    connection = apsw.Connection(str(tmp_path / "echoic.db"))
    bobs = "scope = (select id from scopes where user = 'bob') and kind = 'memory'"
    connection.execute(f"update records set data = ? where {bobs}", (damage,))
    connection.close()
    async with service_at(tmp_path, clock, "memories=30") as service:
        clock.days = 31
        assert await service.enforce_retention() == 2
        for name in ("ana", "cleo"):
            assert await service.user(name).get("pet") is None
        if damage != "{}":
            with pytest.raises(StoreCorrupt):
                await service.user("bob").get("pet")


@pytest.mark.parametrize("days", ["inf", "1e6"])
async def test_a_deployment_without_a_limit_does_not_keep_the_sweep_from_the_others(tmp_path, clock, days):
    async with service_at(tmp_path, clock, f"memories=30,acme:memories={days}") as service:
        kept, gone = service.user("ana", "acme"), service.user("ana")
        await kept.set("pet", "numbat")
        await gone.set("pet", "numbat")
        clock.days = 95
        assert await service.enforce_retention() == 1
        assert (await kept.get("pet")).text == "numbat"
        assert await gone.get("pet") is None


async def test_an_old_version_of_what_was_said_again_takes_no_fresh_words_along(tmp_path, clock):
    async with service_at(tmp_path, clock, "memories=365") as service:
        said = {
            0: "I live in Leeds.",
            100: "I live in London.",
            360: "I moved back to Leeds and I have a dog.",
        }
        for day, words in said.items():
            clock.days = day
            ana = await talk(service, f"day-{day}", words)
            await service.distil()
        before = [memory.text for memory in await ana.history("home")]
        assert before == ["Leeds", "London", "Leeds"]
        clock.days = 370
        assert await service.enforce_retention() == 1
        assert [memory.text for memory in await ana.history("home")] == ["London", "Leeds"]
        [turn] = await (await ana.conversation("day-360")).turns()
        assert turn.text == said[360]
        clock.days = 470
        assert await service.enforce_retention() == 1
        [turn] = await (await ana.conversation("day-100")).turns()
        assert "London" not in turn.text


async def test_what_waits_to_become_global_goes_with_the_memory_it_was_made_of(tmp_path, clock):
    store = store_of(f"sqlite:///{tmp_path}/echoic.db")
    service = MemoryService(
        store, LexicalEmbedder(), clock=clock, keep_for="memories=30", global_writes="propose"
    )
    async with service:
        await service.user("ana").set("opening_hours", "The store is open Monday to Friday, ten to five.")
        assert len(await service.proposals().list()) == 1
        clock.days = 31
        assert await service.enforce_retention() == 1
        assert await service.proposals().list() == []


async def test_the_background_does_it(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(retention, "_SWEEP_AFTER_S", 0.0)
    monkeypatch.setattr(retention, "_SWEEP_EVERY_S", 0.01)
    async with service_at(tmp_path, clock, {"conversations": 90}) as service:
        ana = await talk(service, "old", "the quokka is on the roof")
        clock.days = 91
        while await ana.conversations():
            await asyncio.sleep(0.01)


async def test_what_is_on_hold_is_destroyed_by_nothing_until_it_is_released(tmp_path, clock):
    async with service_at(tmp_path, clock, "conversations=90") as service:
        ana = await talk(service, "old", "the quokka is on the roof")
        notes = ana.items("notes")
        await notes.set("one", "the bilby is in the barn")
        await ana.hold()
        clock.days = 91
        assert await service.enforce_retention() == 0
        for destroy in (
            ana.forget(),
            ana.forget(conversation="old"),
            ana.forget(since=START),
            notes.delete("one"),
        ):
            with pytest.raises(NotAllowed, match="on hold"):
                await destroy
        with pytest.raises(NotAllowed, match="proof of who"):
            await ana.at("attested").hold(on=False)
        assert await ana.held()
        assert await ana.conversations()
        await ana.hold(on=False)
        assert await service.enforce_retention() == 1


async def test_without_a_rule_everything_stays(tmp_path, clock):
    async with service_at(tmp_path, clock, None) as service:
        ana = await talk(service, "old", "the quokka is on the roof")
        clock.days = 10_000
        assert await service.enforce_retention() == 0
        assert await ana.conversations()


@pytest.mark.parametrize(
    "given", ["turns=3", "memories=0", "memories=soon", "acme:memories", {"memories": -1}]
)
def test_a_rule_that_cannot_be_meant_is_refused(given):
    with pytest.raises(InvalidInput, match="number of days above 0"):
        rules_from(given)


async def test_what_was_said_again_stays_where_the_older_version_is_destroyed(tmp_path, clock):
    async with service_at(tmp_path, clock, "memories=30") as service:
        for day, words in (
            (0, "I live in Leeds."),
            (10, "I moved, I live in York now."),
            (20, "I live in Leeds again now, near my sister Ann."),
        ):
            clock.days = day
            ana = await talk(service, f"day {day}", words)
            await service.distil()
        clock.days = 31
        assert await service.enforce_retention() >= 1
        task = await ana.task("day 20")
        assert [turn.text for turn in task.turns] == ["I live in Leeds again now, near my sister Ann."]
        assert "Leeds" not in (await ana.task("day 0")).turns[0].text
        assert (await ana.get("home")).text == "Leeds"
        assert "York" in (await ana.task("day 10")).turns[0].text


async def test_what_a_user_made_global_since_is_another_memory(tmp_path, clock):
    store = store_of(f"sqlite:///{tmp_path}/echoic.db")
    open_ = "The store is open Monday to Friday, ten to five."
    sharing = {"global_writes": "auto", "global_kinds": GLOBAL_KINDS}
    async with MemoryService(
        store, LexicalEmbedder(), clock=clock, keep_for="memories=30", **sharing
    ) as service:
        ana = service.user("ana")
        first = await ana.set("opening_hours", "We open at nine.", visibility="private")
        clock.days = 29
        shared = await ana.set("opening_hours", open_)
        assert shared.visibility == "global"
        assert shared.id != first.id
        clock.days = 31
        assert await service.enforce_retention() == 1
        assert (await ana.get("opening_hours")).text == open_
        clock.days = 32
        again = await ana.set("opening_hours", "We open at ten.", visibility="private")
        clock.days = 33
        shared = await ana.set("opening_hours", open_)
        await ana.forget(id=again.id)
        assert (await ana.get("opening_hours")).text == open_
