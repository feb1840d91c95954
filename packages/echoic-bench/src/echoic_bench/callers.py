"""Made-up callers: what they told about themselves, much of it corrected, among calls about other matters.

The same for the same arguments, everywhere: nothing is read, and the only source of chance is a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from echoic.types import Memory, Turn
from echoic_bench.attributes import ATTRIBUTES, Attribute
from echoic_bench.exchanges import DAY, EXCHANGES, PLACE, THING, TIME, WHO
from echoic_bench.labelled import Dataset, Item, Labelled, checked
from echoic_bench.labelled import Question as LabelledQuestion

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TOLD = 15
"""Things each caller told."""
_VERSIONS = (1, 1, 1, 2, 3, 4)
"""How often a thing was told, drawn from these: every second one is corrected at least once."""
_TURNS_A_CALL = 20


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for one of the things told."""

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
    """`count` people with `turns` turns each, the same for the same arguments."""
    for number in range(count):
        # the same at every run is meant; nothing here is a secret
        yield _person(random.Random(seed * 100_003 + number), turns)  # noqa: S311


def dataset_of(count: int, *, turns: int = 100, seed: int = 7) -> Dataset:
    """The same as labelled questions: each is answered by the memory that holds, in one of two categories."""
    return checked(
        f"callers-{count}-{turns}",
        [_labelled(f"caller-{n}", person) for n, person in enumerate(people(count, turns=turns, seed=seed))],
    )


def told(person: Person) -> list[Item]:
    """A person's memories and turns in the order they were written: before, between and after the calls."""
    third, half = len(person.memories) // 3, len(person.turns) // 2
    first, second, last = (
        person.memories[:third],
        person.memories[third : 2 * third],
        person.memories[2 * third :],
    )
    return [*first, *person.turns[:half], *second, *person.turns[half:], *last]


def _labelled(user: str, person: Person) -> Labelled:
    holds = {memory.key: f"{user}/{memory.id}" for memory in person.memories if memory.current}
    items = tuple(_owned(user, item) for item in told(person))
    questions = tuple(
        LabelledQuestion(
            text=question.text,
            evidence=frozenset([holds[question.key]]),
            category="paraphrased" if question.paraphrased else "plain",
        )
        for question in person.questions
    )
    sessions = {item.id: item.conversation for item in items if isinstance(item, Turn)}
    return Labelled(user=user, items=items, questions=questions, sessions=sessions)


def _owned(user: str, item: Item) -> Item:
    if isinstance(item, Turn):
        return replace(item, id=f"{user}/{item.id}")
    return replace(
        item,
        id=f"{user}/{item.id}",
        author=user,
        supersedes=item.supersedes and f"{user}/{item.supersedes}",
        superseded_by=item.superseded_by and f"{user}/{item.superseded_by}",
    )


def _person(draw: random.Random, turns: int) -> Person:
    known = draw.sample(ATTRIBUTES, TOLD)
    memories = [memory for attribute in known for memory in _versions(draw, attribute)]
    questions = [
        Question(text, a.key, text in a.paraphrased) for a in known for text in (*a.plain, *a.paraphrased)
    ]
    return Person(memories, list(_calls(draw, turns)), questions)


def _versions(draw: random.Random, attribute: Attribute) -> Iterator[Memory]:
    """One to four values, each correcting the one before."""
    values = draw.sample(list(attribute.values), min(len(attribute.values), draw.choice(_VERSIONS)))
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
        call, place = divmod(number, _TURNS_A_CALL)
        words = {"who": draw.choice(WHO), "thing": draw.choice(THING), "place": draw.choice(PLACE)}
        words |= {"day": draw.choice(DAY), "time": draw.choice(TIME)}
        speakers, said = draw.choice(EXCHANGES)
        for later, (speaker, text) in enumerate(zip(speakers, said, strict=True)):
            yield Turn(
                speaker=speaker,
                text=text.format(**words),
                id=f"turn-{number + later}",
                conversation=f"call-{call}",
                said_at=START + timedelta(days=3 * call, seconds=6 * (place + later)),
            )


__all__ = ["START", "Person", "Question", "dataset_of", "people", "told"]
