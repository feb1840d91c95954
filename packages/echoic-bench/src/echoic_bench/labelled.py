"""Labelled questions: what is kept of each user, what is asked, and which of it answers. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from echoic.errors import InvalidInput
from echoic.types import Memory, Turn

Item = Memory | Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something asked, and what answers it."""

    text: str
    evidence: frozenset[str]
    """Ids of the turns or memories that answer it; empty only where nothing does."""
    category: str = ""
    """The kind of question; "" where the data names none."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """One user: what is kept and what is asked."""

    user: str
    items: tuple[Item, ...]
    """In the order they were said. Their ids occur with no other user, so that a leak shows."""
    questions: tuple[Question, ...]
    sessions: Mapping[str, str]
    """Turn id -> its session, of the turns that are not kept as well."""
    unanswered: tuple[Question, ...] = ()
    """Questions that nothing kept answers; their evidence is empty."""
    names: tuple[tuple[str, ...], ...] = ()
    """Names of people and places in groups that are alike for every user, such as the user's own, friends',
    agents'. A question about somebody else's life is put to this user with these in place of the other's."""

    @cached_property
    def answers_for(self) -> Mapping[str, frozenset[str]]:
        """Item id -> the ids it stands for: a memory for the turns it comes from, else for itself."""
        return {item.id: stands_for(item) for item in self.items}

    def stood_for(self, name: str) -> frozenset[str]:
        """The ids that finding the item of that id counts for; none for one of another user."""
        return self.answers_for.get(name, frozenset())

    @cached_property
    def answerable(self) -> tuple[Question, ...]:
        """The questions of which some evidence is kept, with only that."""
        kept = frozenset[str]().union(*self.answers_for.values())
        return tuple(replace(q, evidence=q.evidence & kept) for q in self.questions if q.evidence & kept)

    @cached_property
    def _holders(self) -> Mapping[str, frozenset[str]]:
        holders: dict[str, set[str]] = {}
        for name, ids in self.answers_for.items():
            for each in ids:
                holders.setdefault(each, set()).add(name)
        return {each: frozenset(names) for each, names in holders.items()}

    def relevant(self, question: Question) -> int:
        """How many hits could answer `question`: turns that do, and what stands for those that are not kept.

        A memory beside the turn it was learned from is no further hit.
        """
        kept = question.evidence & self.answers_for.keys()
        held = (self._holders.get(each, frozenset[str]()) for each in question.evidence - kept)
        return len(kept) + len(frozenset[str]().union(*held))

    def session(self, evidence: str) -> str:
        """The session a piece of evidence is of; a memory without one is its own."""
        return self.sessions.get(evidence, evidence)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Users that share one deployment."""

    name: str
    users: tuple[Labelled, ...]

    @property
    def questions(self) -> int:
        """How many questions can be answered from what is kept."""
        return sum(len(each.answerable) for each in self.users)

    @property
    def rows(self) -> int:
        """How many turns and memories are kept."""
        return sum(len(each.items) for each in self.users)

    @property
    def categories(self) -> list[str]:
        """The kinds of questions, in alphabetical order."""
        return sorted({q.category for each in self.users for q in each.answerable})

    def asked(self) -> Iterator[tuple[Labelled, Question]]:
        """Every question that can be answered, with its user."""
        return ((each, question) for each in self.users for question in each.answerable)

    def fingerprint(self) -> str:
        """A name that follows from what is kept: equal for equal items, whatever is asked."""
        digest = blake2b(digest_size=10)
        for each in self.users:
            for item in each.items:
                digest.update(repr((each.user, item)).encode())
        return digest.hexdigest()


def stands_for(item: Item) -> frozenset[str]:
    """The ids that finding `item` counts for."""
    return frozenset(item.source or [item.id]) if isinstance(item, Memory) else frozenset([item.id])


def checked(name: str, users: Sequence[Labelled]) -> Dataset:
    """`users` as a data set of `name`.

    Raises:
        InvalidInput: nothing is kept, nothing is asked, or none of what is asked can be answered.
    """
    dataset = Dataset(name=name, users=tuple(users))
    if not dataset.rows:
        raise InvalidInput(f"{name} holds no turns and no memories to search")
    if not dataset.questions:
        asked = sum(len(each.questions) for each in dataset.users)
        raise InvalidInput(
            f"{name} holds {asked} questions, and none names evidence that is kept: a question needs the ids "
            'of the turns or memories that answer it, as in {"text": "…", "evidence": ["t1"], "user": "ana"}'
        )
    return dataset


__all__ = ["Dataset", "Item", "Labelled", "Question", "checked", "stands_for"]
