"""What comes to be known of whole calls by the rules alone, through the public API."""

from __future__ import annotations

import pytest

import echoic
from echoic.types import Turn


@pytest.fixture
async def ana():
    async with echoic.open("memory://", embedder="lexical") as service:
        yield service.user("ana")


async def call(user, *lines):
    """One call; a line that begins with ">" is the agent's."""
    conversation = await user.conversation()
    for line in lines:
        speaker = "agent" if line.startswith(">") else "user"
        await conversation.append(Turn(speaker=speaker, text=line.removeprefix(">")))
        await conversation.learn()


async def known(user):
    return {memory.key: memory.text for memory in await user.facts()}


@pytest.mark.parametrize(
    "lines",
    [
        ("i live in rome", ">where to", "book me a flight to paris", "actually london"),
        ("I live in Rome, book me a flight to Paris", "Actually London"),
        ("i live in rome", "my flight goes to oslo", "no bergen"),
    ],
)
async def test_a_correction_of_something_else_moves_nobody(ana, lines):
    await call(ana, *lines)
    assert await known(ana) == {"home": "Rome"}
    assert [memory.text for memory in await ana.history("home")] == ["Rome"]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("I live in Leeds.", ">And you'd like to fly to Paris?", "No, London."), {"home": "Leeds"}),
        (("I'm 45.", ">So forty boxes?", "No, fifty."), {"age": "45"}),
        (("I live in Leeds.", ">Leeds, in England?", "No, London."), {"home": "London"}),
        (("I live in Leeds.", ">You said Leeds?", "No, London."), {"home": "London"}),
        (("I live in Leeds.", ">Did you say Reading?", "No, London."), {"home": "London"}),
        (("I'm 45.", ">You're forty years old?", "No, fifty."), {"age": "50"}),
        (("I live in Leeds.", ">Thanks, noted.", "No, London."), {"home": "London"}),
        (
            ("I live in Leeds.", ">And you'd like to fly to Paris?", "No, London, not Leeds."),
            {"home": "London"},
        ),
        (("I'm 45.", ">Forty-five?", "No, fifty."), {"age": "50"}),
        (("I'm 45.", ">How many tickets?", "Sorry, fifty."), {"age": "45"}),
        (("I live in Leeds.", ">Where are you flying to?", "Sorry, Paris."), {"home": "Leeds"}),
        (("My name is Ruth.", ">Is the appointment for Tim?", "No, Tom."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Ruth, is the appointment for Tim?", "No, Tom."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Did Emma book it?", "No, Sarah."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Who is it for?", "Sorry, Tom."), {"user_name": "Ruth"}),
        (("My name is Tim.", ">Tom?", "No, Tim."), {"user_name": "Tim"}),
        (("My name is Tom.", ">Tom, is it?", "No, Tim."), {"user_name": "Tim"}),
        (("My name is Ruth.", ">And your name is Tim?", "No, Tom."), {"user_name": "Tom"}),
        (("My name is Ruth.", ">How can I help you, Ruth?", "Sorry, it's Rachel."), {"user_name": "Rachel"}),
        (("My wife is called Ann.", ">And your daughter is Beth?", "No, Clara."), {"wife_name": "Ann"}),
        (("My wife is called Ann.", ">Your wife is Anna?", "No, Hannah."), {"wife_name": "Hannah"}),
        (
            ("My phone number is 0161 496 0123.", ">Are you in room 123?", "No, 321."),
            {"phone": "01614960123"},
        ),
        (
            ("My phone number is 0161 496 0123.", ">And your order number is 123456?", "No, 654321."),
            {"phone": "01614960123"},
        ),
        (
            ("My phone number is 0161 496 0123.", ">That is 0161 496 0123?", "No, 124."),
            {"phone": "01614960124"},
        ),
        (("My phone number is 0161 496 0123.", ">Ending 123?", "No, 124."), {"phone": "01614960124"}),
        (("My phone number is 0161 496 0123.", ">0123?", "No, 0124."), {"phone": "01614960124"}),
        (("My phone number is 0161 496 0123.", ">Thank you.", "Sorry, 0124."), {"phone": "01614960124"}),
        (
            ("I live at 12 Park Road.", ">Shall we deliver to 14 Elm Close?", "No, 16 Elm Close."),
            {"address": "12 Park Road"},
        ),
        (
            ("I live at 12 Park Road.", ">Shall we deliver to 14 Mill Road?", "No, 16 Mill Road."),
            {"address": "12 Park Road"},
        ),
        (("I live at 12 Park Road.", ">20 Park Road?", "No, 21 Park Road."), {"address": "21 Park Road"}),
        (
            ("My email is ruth@acme.com.", ">Shall I copy in tim@acme.org?", "No, tom@acme.org."),
            {"email": "ruth@acme.com"},
        ),
        (
            ("My email is ruth@acme.com.", ">Was it rut@acme.com?", "No, ruth7@acme.com."),
            {"email": "ruth7@acme.com"},
        ),
        (("I'm a nurse.", ">Would you like a doctor?", "No, a plumber."), {"occupation": "nurse"}),
    ],
)
async def test_an_answer_to_the_agent_corrects_only_what_the_agent_read_back(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("lines", "key", "texts"),
    [
        (("i live in rome", ">sorry", "um", "sorry i mean naples"), "home", ["Rome", "Naples"]),
        (("my name is jon", "can you hear me", "sorry john"), "user_name", ["Jon", "John"]),
        (("my birthday is may third", ">noted", "no wait may fourth"), "birthday", ["May 3", "May 4"]),
    ],
)
async def test_a_correction_a_turn_later_leaves_one_value_and_the_history(ana, lines, key, texts):
    await call(ana, *lines)
    versions = await ana.history(key)
    assert [memory.text for memory in versions] == texts
    assert [memory.current for memory in versions] == [False, True]


@pytest.mark.parametrize(
    ("first", "later", "diets"),
    [
        ("i'm vegan", "i'm vegetarian now", {"diet:vegetarian"}),
        ("I'm a vegetarian.", "We're pescatarian.", {"diet:pescatarian"}),
        ("i'm vegan", "i eat kosher", {"diet:vegan", "diet:kosher"}),
        ("i'm vegan", "i'm gluten free", {"diet:vegan", "diet:gluten-free"}),
    ],
)
async def test_of_diets_that_exclude_each_other_the_last_holds(ana, first, later, diets):
    await call(ana, first)
    await call(ana, later)
    assert set(await known(ana)) == diets


@pytest.mark.parametrize(
    ("first", "later", "times"),
    [
        ("call me in the evening", "don't call me in the evening", {"no_contact_time": "in the evening"}),
        ("never call me after six", "please call me after six", {"contact_time": "after six"}),
        (
            "call me in the evening",
            "don't call me at work",
            {"contact_time": "in the evening", "no_contact_time": "at work"},
        ),
    ],
)
async def test_nobody_wants_to_be_called_and_not_to_be_called_at_one_time(ana, first, later, times):
    await call(ana, first)
    await call(ana, later)
    assert await known(ana) == times


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("forget my peanut allergy", {"allergy:latex", "sister_name", "favourite:colour", "home"}),
        ("forget my sister's name", {"allergy:peanuts", "allergy:latex", "favourite:colour", "home"}),
        ("forget my favorite color", {"allergy:peanuts", "allergy:latex", "sister_name", "home"}),
        ("forget i live in rome", {"allergy:peanuts", "allergy:latex", "sister_name", "favourite:colour"}),
        (
            "forget i live in milan",
            {"allergy:peanuts", "allergy:latex", "sister_name", "favourite:colour", "home"},
        ),
    ],
)
async def test_in_a_later_call_what_is_named_is_forgotten_and_nothing_else(ana, said, left):
    await call(ana, "i'm allergic to peanuts and latex", "my sister is called maya")
    await call(ana, "my favourite colour is red", "i live in rome")
    await call(ana, said)
    assert set(await known(ana)) == left
