"""What a caller's file says, as frozen values. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

EVERYTHING = "everything"
"""What a forget request reaches when it reaches all that was said before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Words of a turn: `turn.text[start:end] == quote`."""

    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one speaker said, as spoken."""

    id: str
    """`c01/3.4`: the fourth turn of the third call of caller c01."""
    call: int
    line: int
    """Where it stands in the file."""
    speaker: str
    """The speaker's name."""
    role: str
    """`caller`, `agent` or `other`."""
    text: str
    heard: int | None
    """How many characters of an interrupted agent turn were heard; None where all was."""
    name: str | None
    """What labels and questions call this turn by, if anything."""

    @property
    def heard_text(self) -> str:
        """What reached the caller's ear."""
        return self.text if self.heard is None else self.text[: self.heard].rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something durable that a speaker said."""

    id: str
    turn: str
    line: int
    category: str
    slot: str | None
    """None where no slot fits: the statement itself is what is kept."""
    value: str
    spans: tuple[Span, ...]
    about: str | None
    """Whom it is about; None for the caller."""
    condition: str | None
    since: str | None
    until: str | None
    """Years, months or days, as far as they are known: `2024`, `2024-05`, `2024-05-17`."""
    replaces: tuple[str, ...]
    also: tuple[str, ...]
    """Turns that are needed beside its own to understand it, as when the answer is only "yes"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """Words that no fact about the caller may be learned from, and why."""

    turn: str
    line: int
    reason: str
    span: Span
    kind: str | None
    """The class of a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A request to forget."""

    turn: str
    call: int
    line: int
    span: Span
    reaches: tuple[str, ...]
    """Ids of facts and turns, or `EVERYTHING`."""
    keeps: tuple[str, ...]
    """Ids close to what is forgotten that must stay."""
    ambiguous: bool
    """Whether an agent should ask back before it acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the caller allows, refuses or takes back."""

    turn: str
    line: int
    act: str
    what: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something asked of this caller's memory."""

    id: str
    line: int
    kind: str
    text: str
    answer: str | None
    """None for a question without an answer."""
    at_call: int
    """Asked when this call begins: calls before it are memory. One more than the last call: afterwards."""
    turns: tuple[str, ...]
    """Gold turns; for a question without an answer, the turns that might mislead."""
    facts: tuple[str, ...]
    unlabelled: bool
    """It asks for something in its turn that is none of the turn's facts."""

    @property
    def answerable(self) -> bool:
        """Whether memory holds the answer."""
        return self.answer is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One telephone call."""

    number: int
    line: int
    at: datetime
    """When it began, in the zone it was made from."""
    zone: str
    domain: str
    agents: tuple[str, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A person and everything said, labelled and asked."""

    id: str
    about: dict[str, str]
    """Name, age, country, zone, languages, speech, occupation, reasons."""
    agents: dict[str, tuple[str, str]]
    """Agent's name -> domain and business."""
    voices: dict[str, str]
    """Name of everybody else on the line -> who that is."""
    misheard: dict[str, tuple[str, ...]]
    """Name -> what a recogniser writes for it."""
    calls: tuple[Call, ...]
    facts: tuple[Fact, ...]
    traps: tuple[Trap, ...]
    forgets: tuple[Forget, ...]
    consents: tuple[Consent, ...]
    questions: tuple[Question, ...]
    silence: tuple[str, ...]
    """Remarks to which memory has nothing to say."""

    @cached_property
    def turns(self) -> dict[str, Turn]:
        """All turns by id, in order."""
        return {turn.id: turn for call in self.calls for turn in call.turns}

    @cached_property
    def fact(self) -> dict[str, Fact]:
        """All facts by id."""
        return {fact.id: fact for fact in self.facts}

    def asked_at(self, question: Question) -> datetime:
        """When `question` is asked: as its call begins, or a day after the last one."""
        if question.at_call <= len(self.calls):
            return self.calls[question.at_call - 1].at
        return self.calls[-1].at + timedelta(days=1)
