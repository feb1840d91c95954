"""The profile is a view of keyed memories: one truth, in two shapes."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from echoic import InvalidInput, Turn
from echoic.types import Profile


async def told(memory, *sentences, user="ana"):
    ana = memory.user(user)
    call = await ana.conversation("call-1")
    await call.append(*(Turn(speaker="user", text=text) for text in sentences))
    await call.distil()
    return ana


async def test_of_a_new_user_nothing_is_known(memory):
    assert await memory.user("ana").profile() == Profile()


async def test_what_was_said_in_passing_fills_it(memory):
    ana = await told(
        memory,
        "Hi, I'm Ana, I'm 34 and I live in Tel Aviv.",
        "I work as a nurse. I love jazz and hiking, and I hate opera.",
        "I speak French. Please call me after six.",
    )
    assert await ana.profile() == Profile(
        name="Ana",
        age=34,
        home="Tel Aviv",
        occupation="nurse",
        interests=("jazz", "hiking"),
        preferences=("speaks French", "call after six"),
    )


async def test_a_correction_is_in_it_at_once_because_nothing_is_copied(memory):
    ana = await told(memory, "I'm Ana and I live in New York.")
    await ana.set("home", "Boston")
    assert (await ana.profile()).home == "Boston"
    await ana.delete("home")
    assert (await ana.profile()).home is None


async def test_it_is_of_one_user_and_one_deployment(memory):
    await told(memory, "I'm Ana and I live in Haifa.")
    assert await memory.user("bob").profile() == Profile()
    assert await memory.user("ana", deployment="other").profile() == Profile()


async def test_an_age_that_is_no_number_of_years_is_left_out(memory):
    ana = memory.user("ana")
    await ana.set("age", "older than you think")
    assert (await ana.profile()).age is None
    await ana.set("age", "41")
    assert (await ana.profile()).age == 41


class Guest(BaseModel):
    name: str | None = None
    age: int | None = Field(default=None, ge=18)
    interests: list[str] = []
    allergy: list[str] = []
    loyalty_tier: str = "none"
    city: str | None = None


async def test_a_model_of_ones_own_is_filled_by_the_names_of_its_fields(memory):
    ana = await told(
        memory, "I'm Ana. I'm allergic to peanuts and shellfish. I love jazz.", "I live in Haifa"
    )
    await ana.set("loyalty_tier", "gold")
    guest = await ana.profile(Guest, keys={"city": "home"})
    assert guest == Guest(
        name="Ana", interests=["jazz"], allergy=["peanuts", "shellfish"], loyalty_tier="gold", city="Haifa"
    )


async def test_a_value_the_model_refuses_is_unknown_and_costs_no_other_field(memory):
    ana = await told(memory, "I'm Ana and I'm 12 years old.")
    assert await ana.profile(Guest) == Guest(name="Ana")


async def test_one_value_where_the_model_wants_several_is_a_list_of_one(memory):
    ana = memory.user("ana")
    await ana.set("allergy", "peanuts")
    assert (await ana.profile(Guest)).allergy == ["peanuts"]


async def test_a_model_that_needs_what_is_not_known_says_what(memory):
    class Demanding(BaseModel):
        passport: str

    with pytest.raises(InvalidInput, match="passport is missing"):
        await memory.user("ana").profile(Demanding)
    with pytest.raises(InvalidInput, match="Pydantic model class"):
        await memory.user("ana").profile(dict)
