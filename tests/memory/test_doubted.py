"""What was heard with doubt is marked so as it is learned, on every channel, and confirmed by a later turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from echoic.embedding import embedder_from
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.types import Turn

NAME = "my name is Siobhan"


class Caller:
    """Says things in one conversation; the rules read each by itself."""

    def __init__(self, user, call):
        self.user = user
        self.call = call
        self.at = datetime(2026, 5, 4, tzinfo=UTC)

    async def hears(self, text, *, heard=None):
        await self._turn(Turn(speaker="agent", text=text, heard=heard, said_at=self.at))

    async def says(self, text, confidence=None):
        await self._turn(Turn(speaker="user", text=text, confidence=confidence, said_at=self.at))

    async def _turn(self, turn):
        self.at += timedelta(seconds=5)
        await self.call.append(turn)
        await self.call.learn()

    async def is_sure(self, key="user_name"):
        return (await self.user.get(key)).confirmed


@pytest.fixture
async def caller():
    async with MemoryService(store_from("memory://"), embedder_from("lexical")) as service:
        user = service.user("ana")
        yield Caller(user, await user.conversation("call"))


@pytest.mark.parametrize(("confidence", "sure"), [(0.4, False), (0.95, True), (None, True)])
async def test_a_name_is_doubted_from_the_moment_it_is_learned(caller, confidence, sure):
    await caller.says(NAME, confidence)
    assert await caller.is_sure() is sure


async def test_what_is_no_name_or_number_is_not_doubted(caller):
    await caller.says("I prefer tea", 0.2)
    facts = await caller.user.facts()
    assert facts
    assert all(fact.confirmed for fact in facts)


@pytest.mark.parametrize(("confidence", "sure"), [(0.95, True), (0.3, False)])
async def test_said_again_it_is_confirmed_if_it_was_heard_clearly(caller, confidence, sure):
    await caller.says(NAME, 0.4)
    first = await caller.user.get("user_name")
    await caller.says(NAME, confidence)
    again = await caller.user.get("user_name")
    assert (again.id, again.times_said, again.confirmed) == (first.id, 2, sure)


@pytest.mark.parametrize(
    ("reads_back", "answer", "sure"),
    [
        ("you are called Siobhan", "yes that is right", True),
        ("you are called Siobhan", "no it is not", False),
        ("how can I help", "yes", False),
    ],
)
async def test_read_back_it_is_confirmed_by_a_yes(caller, reads_back, answer, sure):
    await caller.says(NAME, 0.4)
    await caller.hears(reads_back)
    await caller.says(answer, 0.95)
    assert await caller.is_sure() is sure


async def test_a_name_within_another_word_is_not_read_back(caller):
    await caller.says("my name is Ann", 0.3)
    await caller.hears("Are you planning to travel on Friday?")
    await caller.says("Yes.")
    assert not await caller.is_sure()
    await caller.hears("And you are Ann?")
    await caller.says("Yes.")
    assert await caller.is_sure()


async def test_a_yes_to_words_that_were_not_heard_confirms_nothing(caller):
    await caller.says(NAME, 0.4)
    await caller.hears("is it true that you are called Siobhan", heard="is it true that")
    await caller.says("yes")
    assert not await caller.is_sure()


async def test_another_value_is_doubted_by_its_own_words(caller):
    await caller.says(NAME, 0.95)
    await caller.says("my name is Niamh", 0.3)
    assert (await caller.user.get("user_name")).text == "Niamh"
    assert not await caller.is_sure()
