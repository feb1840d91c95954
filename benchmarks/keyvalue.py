"""Key/value memories among long transcripts: does "what's my name?" find the name?

Everything here is made up from lists in this file and a fixed seed, so the set is the same everywhere. Each person
has some fifteen memories, a few of them corrected up to three times, and 500 turns of calls about other things.
Questions are asked in the words of the key and in other words.

    python benchmarks/keyvalue.py [--embedder local|lexical] [--out benchmarks/results/keyvalue.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from echoic.partition import SEGMENT_ROWS, Entry, Partition, Segment
from echoic.ranking import entry_of_memory, entry_of_turn, query_of, rank
from echoic.types import Category, Memory, Turn

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Attribute:
    """One kind of thing a caller tells about themselves."""

    key: str
    values: Sequence[str]
    plain: Sequence[str]
    """Questions that share a word with the key."""
    paraphrased: Sequence[str]
    """Questions that share none."""
    category: Category = "fact"
    statement: str | None = None
    """With {} for the value; None where a tool wrote only key and value."""


ATTRIBUTES = (
    Attribute(
        "user_name",
        "Pavel Ana Kaitlyn Joaquin Stephen Mei Thabo Ingrid Rosalind Farid Saoirse Tomasz".split(),
        ["What's my name?", "Do you remember my name?", "Can you tell me what my name is?"],
        ["Who am I?", "What should you call me?"],
    ),
    Attribute(
        "home_city",
        "Lisbon Leeds Gdansk Porto Nairobi Osaka Tampere Valencia Galway Ghent".split(),
        ["What city is my home in?", "Which city do I live in?"],
        ["Where do I live?", "Where am I based?"],
        statement="The user lives in {}.",
    ),
    Attribute(
        "occupation",
        ["nurse", "structural engineer", "pastry chef", "bus driver", "tax adviser", "luthier", "midwife"],
        ["What's my occupation?"],
        ["What do I do for a living?", "What is my job?", "What kind of work do I do?"],
    ),
    Attribute(
        "employer",
        ["Harbour Clinic", "Nordwind Logistics", "Bellwether Books", "Kestrel Aviation", "Old Mill Bakery"],
        ["Who is my employer?"],
        ["Which company do I work for?", "Where do I work?"],
        statement="The user works for {}.",
    ),
    Attribute(
        "birthday",
        ["4 May 1988", "19 November 1975", "30 January 1993", "11 August 1969", "23 March 2001"],
        ["When is my birthday?", "What date is my birthday?"],
        ["When was I born?"],
    ),
    Attribute(
        "wife_name",
        "Beatrix Yuki Samira Oluchi Marta Helene Carmen Divya".split(),
        ["What's my wife's name?", "What is my wife called?"],
        ["Who am I married to?"],
        category="entity",
    ),
    Attribute(
        "daughter_name",
        "Greta Nadia Isla Paloma Freya Amina Zofia".split(),
        ["What's my daughter's name?", "What is my daughter called?"],
        ["What did we name our little girl?"],
        category="entity",
    ),
    Attribute(
        "dog",
        ["Rex, a border collie", "Biscuit, a beagle", "Moss, a lurcher", "Olive, a dachshund"],
        ["What's my dog called?", "What breed is my dog?"],
        ["Which pet do I have?", "What is the name of my puppy?"],
        category="entity",
    ),
    Attribute(
        "allergy",
        ["peanuts", "shellfish", "penicillin", "bee stings", "latex", "sesame"],
        ["What allergies do I have?", "Do I have an allergy?"],
        ["What am I allergic to?", "Is there anything that makes me ill?"],
        category="requirement",
    ),
    Attribute(
        "diet",
        ["vegetarian", "vegan", "gluten-free", "low salt", "halal"],
        ["What's my diet?", "Am I on a diet?"],
        ["Is there anything I don't eat?", "What should the kitchen know before cooking for me?"],
        category="requirement",
    ),
    Attribute(
        "favorite_food",
        ["ramen", "moussaka", "fish tacos", "pierogi", "mushroom risotto", "jollof rice"],
        ["What's my favorite food?"],
        ["Which dish do I like best?", "What do I love to eat?"],
        category="preference",
    ),
    Attribute(
        "favorite_color",
        ["teal", "burgundy", "mustard yellow", "forest green", "lilac"],
        ["What's my favorite color?", "What color do I like best?"],
        ["Should the gift wrap be red or something I like better?"],
        category="preference",
    ),
    Attribute(
        "seat_preference",
        ["aisle, near the front", "window, over the wing", "exit row", "aisle, at the back"],
        ["What's my seat preference?", "Which seat do I prefer on a plane?"],
        ["Where do I like to sit when I fly?"],
        category="preference",
    ),
    Attribute(
        "coffee_order",
        ["oat flat white", "double espresso", "decaf cappuccino", "iced americano"],
        ["What's my usual coffee order?", "How do I take my coffee?"],
        ["What do I drink in the morning?"],
        category="preference",
    ),
    Attribute(
        "contact_preference",
        ["e-mail, never by phone", "text message after six", "phone in the morning", "post only"],
        ["What's my contact preference?", "How do I prefer to be contacted?"],
        ["What is the best way to reach me?"],
        category="preference",
    ),
    Attribute(
        "car",
        ["grey Volvo estate", "red Fiat Panda", "blue Kia Niro", "white Toyota Hilux"],
        ["What car do I drive?", "Which car is mine?"],
        ["What vehicle do I own?"],
        category="entity",
    ),
    Attribute(
        "doctor",
        ["Dr Okafor", "Dr Lindqvist", "Dr Moreau", "Dr Banerjee"],
        ["Who is my doctor?", "What's the name of my doctor?"],
        ["Which physician treats me?"],
        category="entity",
    ),
    Attribute(
        "medication",
        ["metformin twice a day", "ramipril 5 mg", "levothyroxine before breakfast", "cetirizine at night"],
        ["What medication do I take?", "Which medication am I on?"],
        ["What pills have I been prescribed?"],
    ),
    Attribute(
        "shoe_size",
        ["38", "41", "43 and a half", "46"],
        ["What's my shoe size?", "What size shoes do I wear?"],
        ["How big are my feet?"],
    ),
    Attribute(
        "hobby",
        ["sea kayaking", "restoring clocks", "bell ringing", "bird watching", "salsa dancing"],
        ["What's my hobby?", "What hobbies do I have?"],
        ["What do I do in my free time?"],
        category="preference",
    ),
    Attribute(
        "delivery_instructions",
        ["leave it with the neighbour at 12", "ring twice", "the blue side door", "behind the bins"],
        ["What are my delivery instructions?"],
        ["Where should the parcel be left if I'm out?", "How do I want packages handed over?"],
        category="requirement",
    ),
    Attribute(
        "preferred_language",
        ["Portuguese", "Polish", "Welsh", "Mandarin", "Dutch"],
        ["What's my preferred language?", "Which language do I prefer?"],
        ["What do I like to be spoken to in?"],
        category="preference",
    ),
    Attribute(
        "football_team",
        ["Sporting", "Leeds United", "Real Sociedad", "Celtic", "Ajax"],
        ["What's my football team?", "Which team do I support?"],
        ["Who do I cheer for on match days?"],
        category="preference",
    ),
    Attribute(
        "loyalty_number",
        ["KX 4471", "TR 9026", "BA 1180", "QN 3345"],
        ["What's my loyalty number?", "Can you read me my loyalty number?"],
        ["What's my membership code?"],
    ),
)

_WHO = ["my sister", "a colleague", "my neighbour", "the plumber", "my manager", "an old friend", "the courier"]
_THING = "lamp kettle suitcase bicycle blender tent printer jacket mattress router camera rug".split()
_PLACE = ["the station", "the airport", "the old town", "the harbour", "the museum", "the market", "the lake"]
_DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_TIME = ["half past eight", "ten", "noon", "a quarter to three", "five", "seven in the evening"]

# Calls about other things, in which the words of keys and questions fall all the time.
_EXCHANGES = (
    ("Could I take the name on the booking?", "It's under {who}, not under mine."),
    ("Which name should go on the parcel?", "Just put the company's name on it."),
    ("And the city you're flying to?", "I haven't decided, maybe somewhere near {place}."),
    ("Is there anything else you'd like to order?", "Yes, a {thing} please, the cheaper one."),
    ("How was the food at the hotel near {place}?", "Fine, but the coffee was cold by the time it came."),
    ("Would {day} at {time} work for the delivery?", "No, {time} is too late, {who} will be out."),
    ("What colour would you like for the {thing}?", "Whatever is in stock, I don't mind at all."),
    ("Do you have a seat left on the {time} train?", "I do, two of them, in the quiet carriage."),
    ("Has the doctor's office called you back?", "Not yet, they said {day} at the earliest."),
    ("I'm calling because the {thing} I ordered never arrived.", "Let me look that up for you, one moment."),
    ("Can you book a table near {place} for {day}?", "Of course, for how many people, and at what time?"),
    ("Is the car park by {place} open at {time}?", "It is, and it stays open until midnight."),
    ("My order number should be on the receipt for the {thing}.", "Thank you, I can see it here now."),
    ("What does it cost to send a {thing} to {place}?", "About twelve, and it takes three working days."),
    ("Someone at work told me you repair a {thing}.", "We do, it takes about a week and you get a loan one."),
    ("Which language is the tour of {place} in?", "English at {time}, and French an hour later."),
    ("How big is the {thing}, does it fit in the boot?", "It's about a metre long, so it should."),
    ("Was the pet carrier delivered with the {thing}?", "No, that comes separately, on {day}."),
    ("Tell {who} that we'll meet at {place} at {time}.", "I'll send the message straight away."),
    ("I'd like to change the phone contract for {who}.", "I can do that, do you have the number there?"),
    ("Are there any birthday cards left in the shop by {place}?", "A few, next to the till."),
    ("Did the team finish moving the {thing} on {day}?", "They did, though it took all morning."),
    ("What's the weather like around {place} on {day}?", "Rain until {time}, and then it clears up."),
    ("Please remind me to collect the {thing} at {time}.", "I've set a reminder for {day} at {time}."),
    ("Is the clinic near {place} open on {day}?", "Only in the morning, from {time}."),
)


@dataclass(frozen=True)
class Question:
    text: str
    key: str
    paraphrased: bool


@dataclass(frozen=True)
class Person:
    """A made-up caller: memories, oldest version first, turns, and questions with the key that answers them."""

    memories: list[Memory]
    turns: list[Turn]
    questions: list[Question] = field(default_factory=list)


def people(count: int, *, turns: int = 500, seed: int = 7) -> Iterator[Person]:
    """`count` people, the same for the same arguments."""
    for number in range(count):
        yield _person(random.Random(seed * 100_003 + number), turns)


def _person(draw: random.Random, turns: int) -> Person:
    known = draw.sample(ATTRIBUTES, 15)
    memories = [memory for attribute in known for memory in _versions(draw, attribute)]
    questions = [Question(text, a.key, text in a.paraphrased) for a in known for text in (*a.plain, *a.paraphrased)]
    return Person(memories, list(_calls(draw, turns)), questions)


def _versions(draw: random.Random, attribute: Attribute) -> Iterator[Memory]:
    """One to four values, each correcting the one before."""
    values = draw.sample(list(attribute.values), min(len(attribute.values), draw.choice((1, 1, 1, 2, 3, 4))))
    for number, value in enumerate(values):
        last = number == len(values) - 1
        yield Memory(
            id=f"{attribute.key}-{number}",
            key=attribute.key,
            text=value,
            statement=attribute.statement.format(value) if attribute.statement else None,
            category=attribute.category,
            valid_from=START + timedelta(days=30 * number),
            valid_until=None if last else START + timedelta(days=30 * (number + 1)),
            superseded_by=None if last else f"{attribute.key}-{number + 1}",
            supersedes=f"{attribute.key}-{number - 1}" if number else None,
        )


def _calls(draw: random.Random, turns: int) -> Iterator[Turn]:
    for number in range(turns):
        call, place = divmod(number, 20)
        if place % 2 == 0:
            exchange = draw.choice(_EXCHANGES)
            words = {"who": draw.choice(_WHO), "thing": draw.choice(_THING), "place": draw.choice(_PLACE)}
            words |= {"day": draw.choice(_DAY), "time": draw.choice(_TIME)}
        asks_first = exchange[0][0] in "CWHIADEBS" and place % 4 == 0
        yield Turn(
            speaker="agent" if asks_first == (place % 2 == 0) else "user",
            text=exchange[place % 2].format(**words),
            id=f"turn-{number}",
            conversation=f"call-{call}",
            said_at=START + timedelta(days=3 * call, seconds=6 * place),
        )
