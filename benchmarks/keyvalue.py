"""Key/value memories among long transcripts: does "what's my name?" find the name?

    python -m benchmarks.keyvalue

Everything is made up from the lists in this file and a fixed seed, so the set is the same everywhere. Each
person has told fifteen things, some corrected up to three times, and has 500 turns of calls about other
matters, in which the words of keys and questions fall all the time. Questions come in the words of the key
(plain) and in others (paraphrased). One is answered at 1 if the first hit is the memory that answers it.

Systems: `echoic` is the default; `words` the same before the query's vector is there; `hybrid`, `text` and
`vector` as in benchmarks.locomo. Under "lexical": the default over the embedder that knows no meaning.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.filled import Filled, Searchable
from echoic.embedding import embedder_from
from echoic.ranking import LEXICAL_FLOOR, query_of, rank
from echoic.ranking.query import Query
from echoic.types import Category, Memory, Scope, Turn

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

_WHO = [
    "my sister",
    "a colleague",
    "my neighbour",
    "the plumber",
    "my manager",
    "an old friend",
    "the courier",
]
_THING = "lamp kettle suitcase bicycle blender tent printer jacket mattress router camera rug".split()
_PLACE = ["the station", "the airport", "the old town", "the harbour", "the museum", "the market", "the lake"]
_DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_TIME = ["half past eight", "ten", "noon", "a quarter to three", "five", "seven in the evening"]

# Calls about other matters, in which the words of keys and questions fall all the time.
_USER_FIRST, _AGENT_FIRST = ("user", "agent"), ("agent", "user")
_EXCHANGES = (
    (_AGENT_FIRST, ("Could I take the name on the booking?", "It's under {who}, not under mine.")),
    (_AGENT_FIRST, ("Which name should go on the parcel?", "Just put the company's name on it.")),
    (_AGENT_FIRST, ("And the city you're flying to?", "I haven't decided, maybe somewhere near {place}.")),
    (
        _AGENT_FIRST,
        ("Is there anything else you'd like to order?", "Yes, a {thing} please, the cheaper one."),
    ),
    (
        _AGENT_FIRST,
        ("How was the food at the hotel near {place}?", "Fine, but the coffee was cold by the time it came."),
    ),
    (
        _AGENT_FIRST,
        ("Would {day} at {time} work for the delivery?", "No, {time} is too late, {who} will be out."),
    ),
    (
        _AGENT_FIRST,
        ("What colour would you like for the {thing}?", "Whatever is in stock, I don't mind at all."),
    ),
    (
        _USER_FIRST,
        ("Do you have a seat left on the {time} train?", "I do, two of them, in the quiet carriage."),
    ),
    (_AGENT_FIRST, ("Has the doctor's office called you back?", "Not yet, they said {day} at the earliest.")),
    (
        _USER_FIRST,
        (
            "I'm calling because the {thing} I ordered never arrived.",
            "Let me look that up for you, one moment.",
        ),
    ),
    (
        _USER_FIRST,
        ("Can you book a table near {place} for {day}?", "Of course, for how many people, and at what time?"),
    ),
    (_USER_FIRST, ("Is the car park by {place} open at {time}?", "It is, and it stays open until midnight.")),
    (
        _USER_FIRST,
        ("My order number should be on the receipt for the {thing}.", "Thank you, I can see it here now."),
    ),
    (
        _USER_FIRST,
        ("What does it cost to send a {thing} to {place}?", "About twelve, and it takes three working days."),
    ),
    (
        _USER_FIRST,
        (
            "Someone at work told me you repair a {thing}.",
            "We do, it takes about a week and you get a loan one.",
        ),
    ),
    (
        _USER_FIRST,
        ("Which language is the tour of {place} in?", "English at {time}, and French an hour later."),
    ),
    (
        _USER_FIRST,
        ("How big is the {thing}, does it fit in the boot?", "It's about a metre long, so it should."),
    ),
    (
        _USER_FIRST,
        ("Was the pet carrier delivered with the {thing}?", "No, that comes separately, on {day}."),
    ),
    (
        _USER_FIRST,
        ("Tell {who} that we'll meet at {place} at {time}.", "I'll send the message straight away."),
    ),
    (
        _USER_FIRST,
        ("I'd like to change the phone contract for {who}.", "I can do that, do you have the number there?"),
    ),
    (_USER_FIRST, ("Are there any birthday cards left in the shop by {place}?", "A few, next to the till.")),
    (
        _USER_FIRST,
        ("Did the team finish moving the {thing} on {day}?", "They did, though it took all morning."),
    ),
    (
        _USER_FIRST,
        ("What's the weather like around {place} on {day}?", "Rain until {time}, and then it clears up."),
    ),
    (
        _USER_FIRST,
        ("Please remind me to collect the {thing} at {time}.", "I've set a reminder for {day} at {time}."),
    ),
    (_USER_FIRST, ("Is the clinic near {place} open on {day}?", "Only in the morning, from {time}.")),
)


@dataclass(frozen=True)
class Question:
    text: str
    key: str
    paraphrased: bool


@dataclass(frozen=True)
class Person:
    """A made-up caller: memories (oldest version first), turns, and questions with the key that answers."""

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
    questions = [
        Question(text, a.key, text in a.paraphrased) for a in known for text in (*a.plain, *a.paraphrased)
    ]
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
    for number in range(0, turns, 2):
        call, place = divmod(number, 20)
        words = {"who": draw.choice(_WHO), "thing": draw.choice(_THING), "place": draw.choice(_PLACE)}
        words |= {"day": draw.choice(_DAY), "time": draw.choice(_TIME)}
        speakers, said = draw.choice(_EXCHANGES)
        for later, (speaker, text) in enumerate(zip(speakers, said, strict=True)):
            yield Turn(
                speaker=speaker,
                text=text.format(**words),
                id=f"turn-{number + later}",
                conversation=f"call-{call}",
                said_at=START + timedelta(days=3 * call, seconds=6 * (place + later)),
            )


def told(person: Person) -> list[Memory | Turn]:
    """A person's memories and turns in the order they were written: before, between and after the calls."""
    third, half = len(person.memories) // 3, len(person.turns) // 2
    first, second, last = (
        person.memories[:third],
        person.memories[third : 2 * third],
        person.memories[2 * third :],
    )
    return [*first, *person.turns[:half], *second, *person.turns[half:], *last]


@dataclass
class Tally:
    """Of each question: was it plain, and at which place is the memory that answers it (0: nowhere)."""

    plain: list[bool] = field(default_factory=list)
    place: list[int] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        plain, place = np.array(self.plain), np.array(self.place)
        kinds = {"plain": plain, "paraphrased": ~plain, "all": plain | ~plain}
        return {
            kind: {f"hit@{cut}": _percent((place[of] > 0) & (place[of] <= cut)) for cut in (1, 5)}
            for kind, of in kinds.items()
        }


def _percent(values: np.ndarray) -> float:
    return round(100 * float(np.mean(values)), 1)


@dataclass(frozen=True)
class System:
    fusion: str = "blend"
    with_vector: bool = True
    floor: float | None = None


SYSTEMS = {
    "echoic": System(),
    "words": System(with_vector=False),
    "hybrid": System(fusion="rrf", floor=-1.0),
    "text": System(fusion="text"),
    "vector": System(fusion="vector", floor=-1.0),
}


async def run(embedder: str, systems: dict[str, System], count: int) -> dict[str, Any]:
    """Every question of `count` people to every system, and how corrected values come out."""
    filled = Filled(embedder_from(embedder))
    await filled.open()
    tallies = {name: Tally() for name in systems}
    corrected: list[bool] = []
    for number, person in enumerate(people(count)):
        searched = await filled.add(Scope("keyvalue", f"person-{number}"), told(person))
        queries = await filled.queries([question.text for question in person.questions])
        keys = {memory.key for memory in person.memories if not memory.current}
        for question, query in zip(person.questions, queries, strict=True):
            for name, system in systems.items():
                place = _place(searched, question, query, system)
                tallies[name].plain.append(not question.paraphrased)
                tallies[name].place.append(place)
            if question.key in keys:
                first = _current_first(searched, question, query, next(iter(systems.values())))
                corrected += [] if first is None else [first]
    return {
        "questions": len(next(iter(tallies.values())).place),
        **{name: tally.summary() for name, tally in tallies.items()},
        "corrected values found with their past": len(corrected),
        "the current one comes before its past": _percent(np.array(corrected)),
    }


def _place(searched: Searchable, question: Question, query: Query, system: System) -> int:
    query = query if system.with_vector else query_of(question.text)
    hits = rank(query, [searched.partition], limit=5, fusion=system.fusion, floor=system.floor)
    return next((n for n, hit in enumerate(hits, 1) if _answers(searched.items[hit.row], question)), 0)


def _current_first(
    searched: Searchable, question: Question, query: Query, system: System
) -> bool | None:
    """With the past included, whether what holds stands before what held; None unless both are found."""
    query = replace(query if system.with_vector else query_of(question.text), include_past=True)
    hits = rank(query, [searched.partition], limit=100, fusion=system.fusion, floor=system.floor)
    found = [item for hit in hits if _answers(item := searched.items[hit.row], question)]
    current = [item.current for item in found if isinstance(item, Memory)]
    return current[0] if len(set(current)) == 2 else None


def _answers(item: Memory | Turn, question: Question) -> bool:
    return isinstance(item, Memory) and item.key == question.key


async def measure(count: int) -> dict[str, Any]:
    return {
        "people": count,
        "local": await run("local", SYSTEMS, count),
        "lexical": await run("lexical", {"echoic": System(floor=LEXICAL_FLOOR)}, count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    machine.one_core()
    measured = asyncio.run(measure(args.people))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("keyvalue", measured))


if __name__ == "__main__":
    main()
