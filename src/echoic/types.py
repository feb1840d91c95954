"""The nouns of memory: what they mean, and which values they take. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from echoic.checks import (
    MAX_KEY_CHARACTERS,
    MAX_TEXT_BYTES,
    AsDict,
    checked_name,
    checked_query,
    checked_speaker,
    checked_text,
    checked_time,
)
from echoic.errors import InvalidInput, brief

Category = Literal["preference", "entity", "decision", "requirement", "fact", "experience"]
Visibility = Literal["private", "proposed", "global"]
"""private: the user alone. proposed: likewise, until an operator approves. global: the whole deployment."""
Sharing = Literal["auto", "private"]
"""What may become of what is set. auto: the rules say who may know it, and doubt means private. private: the
user alone knows it, whatever the rules say."""
Consent = Literal["keep", "ask", "never"]
"""Whether what a user says may be kept. never: nothing of it is, beyond the running call."""
ConversationStatus = Literal["created", "active", "completed", "failed"]
Outcome = Literal["complete", "deadline", "unavailable"]
"""complete: everything was looked at. deadline: the best there was in time. unavailable: could not look."""
Cut = Literal["own", "global", "shared", "newest", "vector", "date", "unembedded"]
"""A step a search left out.

- "own", "global", "shared": these memories were not loaded in time.
- "newest": the store could not be asked what is new.
- "vector": the question was not embedded, in time or at all.
- "date": what the question says about time was not read, or read in an assumed time zone.
- "unembedded": many memories wait for their vector, as after an import or with another model, and were
  searched by their words alone.
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of a memory. Every read and write names one, and it is never taken from what was said."""

    deployment: str
    user: str | None
    """None is what is global within the deployment."""

    def __post_init__(self) -> None:
        checked_name(self.deployment, "deployment")
        if self.user is not None:
            checked_name(self.user, "user")

    @property
    def everyone(self) -> Scope:
        """The global scope of the same deployment."""
        return _everyone(self.deployment)


@lru_cache(maxsize=1024)
def _everyone(deployment: str) -> Scope:
    return Scope(deployment, None)  # asked for several times in every search


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """Identifies an embedding model. A store records it; vectors of two specs are never mixed."""

    model: str
    """Model and variant, such as "local:all-MiniLM-L6-v2:fp32"."""
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance."""

    speaker: str
    """"user", "agent", or a person's name where several talk ("Ana"). The names that frameworks give the two
    roles ("assistant", "human", "Caller") become these. Memories are formed from the user's turns; those of
    other people are kept and found, under their name.
    """
    text: str
    heard: str | None = None
    """The part of an agent's words that the caller heard; None if all of it."""
    said_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it was said (aware, UTC), not when it was stored."""
    confidence: float | None = None
    """The recogniser's, 0 to 1; None where it gave none."""
    id: str = ""
    """Unique within the user; appending it again changes nothing. Empty: one is made at append."""
    conversation: str = ""
    """The id of the conversation it belongs to; set at append."""

    def __post_init__(self) -> None:
        speaker = checked_speaker(checked_name(self.speaker, "speaker"))
        object.__setattr__(self, "speaker", speaker)
        checked_text(self.text, "turn text", if_empty="Where nothing was said there is no turn to keep.")
        if self.heard is not None and self.heard != "":
            checked_text(self.heard, "heard text")
        if self.id:
            checked_name(self.id, "turn id")
        if self.confidence is not None and not (
            isinstance(self.confidence, (int, float)) and 0 <= self.confidence <= 1
        ):
            raise InvalidInput(f"confidence must be a number from 0 to 1, not {brief(self.confidence)}")
        object.__setattr__(self, "said_at", checked_time(self.said_at, "said_at"))

    @property
    def heard_text(self) -> str:
        """The words that were actually heard: what memory rests on. May be empty."""
        return self.text if self.heard is None else self.heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing known, at one version. A correction is a new Memory; the old one stays as history."""

    id: str
    text: str
    key: str | None = None
    statement: str | None = None
    """One sentence that says it on its own, where `text` is only a value ("Tel Aviv")."""
    category: Category = "fact"
    context: str | None = None
    """When and under which conditions it applies."""
    visibility: Visibility = "private"
    author: str | None = None
    """The user who said it; None for a global memory that an operator approved."""
    source: tuple[str, ...] = ()
    """Ids of the turns it was heard in; empty when a tool or a person wrote it."""
    valid_from: datetime
    """When it was said (aware, UTC)."""
    valid_until: datetime | None = None
    """When it stopped being so; None while it holds."""
    supersedes: str | None = None
    """The id of the memory it corrected."""
    superseded_by: str | None = None
    """The id of the memory that corrected it; None with `valid_until` set means it was retracted."""
    confirmed: bool = True
    redacted: tuple[str, ...] = ()
    """Kinds of personal data taken out before it was shared, such as "EMAIL"."""
    times_said: int = 1
    """In how many turns it was said, where it was learned from speech."""
    last_said_at: datetime | None = None
    """When it was said again last (aware, UTC); None: only once."""
    reason: str | None = field(default=None, compare=False)
    """Why `visibility` is what it is, one of `echoic.memory.sharing.REASONS`; None where it was not set."""

    @property
    def current(self) -> bool:
        """Whether it still holds."""
        return self.valid_until is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """An ordered log of turns that is also a task: its agent and its status."""

    id: str
    agent: str | None = None
    status: ConversationStatus = "created"
    distilled: bool = False
    """Whether it was completed and everything in it was learned from."""
    started_at: datetime
    updated_at: datetime
    recall_key: str | None = None
    """The words by which a caller asks for it."""
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The rank of a hit in one channel."""

    rank: int
    """From 1."""
    score: float
    """The channel's own; comparable only within the channel and the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something found, and why.

    A memory and the turn it was learned from are one hit: what is known, and the sentence that said it.
    """

    text: str
    """The memory's text; for a turn, what was heard of it."""
    score: float
    """The score of the fusion; comparable only within one query."""
    ranks: Annotated[Mapping[str, Rank], AsDict()]
    """Rank and score by channel: "vector", "text", "fuzzy", …; channels that did not find it are absent."""
    scope: Scope
    memory: Memory | None = None
    turn: Turn | None = None
    """At least one of the two is set. Both: the memory was learned from the turn."""
    relevance: float = 1.0
    """How likely it is to answer, from 0 to 1. Fitted to calls on the telephone, and close to the share that
    answers there; in other talk it promises too much. See docs/relevance.md. 1 where nobody judged."""
    also: tuple[Memory, ...] = ()
    """Other memories learned from the same turn that were found too, best first."""

    def apart(self) -> tuple[Hit, ...]:
        """Each thing in it as a hit of its own: memories first, then the turn."""
        if self.memory is None or (self.turn is None and not self.also):
            return (self,)
        told = [replace(self, text=each.text, memory=each, turn=None, also=()) for each in self.memories]
        if self.turn is None:
            return tuple(told)
        return (*told, replace(self, text=self.turn.heard_text, memory=None, also=()))

    @property
    def memories(self) -> tuple[Memory, ...]:
        """Every memory in it."""
        return () if self.memory is None else (self.memory, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a search, and whether it is complete."""

    hits: tuple[Hit, ...]
    outcome: Outcome
    cut: tuple[Cut, ...] = ()
    """The steps that were left out, see `Cut`; empty where the search was complete."""
    pipeline: tuple[dict[str, Any], ...] = field(default=(), compare=False, repr=False)
    """What was done to find it, step by step as JSON: where was searched, and what each channel was worth.
    Of a scope searched in a database, what the database was asked. See docs/ranking.md."""
    withheld: bool = False
    """Whether something was found that may be told only once it is proved who asks."""

    def apart(self) -> Recall:
        """This recall with each thing as a hit of its own: a memory, then the turn it was learned from."""
        return replace(self, hits=tuple(each for hit in self.hits for each in hit.apart()))

    def without(self, is_known: Callable[[Turn], bool]) -> Recall:
        """This recall without turns the reader has anyway; memories learned from them stay."""
        left = [
            replace(hit, turn=None) if hit.turn is not None and is_known(hit.turn) else hit
            for hit in self.hits
        ]
        return replace(self, hits=tuple(hit for hit in left if hit.memory or hit.turn))


KeptBecause = Literal["means something else", "learned from it", "others taught it too"]
"""Why an erasure leaves something that is close to what it destroys.

- "means something else": turns that hold the same value and say something else with it.
- "learned from it": memories that were learned in a conversation that is forgotten; `forget(key=…)`
  destroys them.
- "others taught it too": lessons of an agent that other users taught as well, or an operator approved.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure removed, and whether that was verified."""

    memories: int = 0
    turns: int = 0
    conversations: int = 0
    vectors: int = 0
    other: int = 0
    """Records of any other kind, such as proposals."""
    rewritten: int = 0
    """Turns, summaries and other records that stay: in them the words that said it were destroyed."""
    kept_because: Annotated[Mapping[KeptBecause, int], AsDict()] = field(default_factory=dict)
    """How many records stay though they are close to what is gone, by why."""
    verified: bool = False
    """Whether the stored bytes were searched afterwards and held none of it."""
    bytes_searched: int = 0
    signed: Annotated[Mapping[str, str], AsDict()] = field(default_factory=dict, compare=False)
    """For an auditor: a `statement` of all this as JSON text, its Ed25519 `signature` and the public `key` in
    base64. Empty without a compliance folder, or where `cryptography` is not installed (docs/audit.md)."""

    @property
    def kept(self) -> int:
        """How many records stay though they are close to what is gone."""
        return sum(self.kept_because.values())

    @property
    def records(self) -> int:
        """How many records of any kind were removed."""
        return self.memories + self.turns + self.conversations + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The user's profile, as far as they stated it: a view of their keyed memories, never a second copy."""

    name: str | None = None
    age: int | None = None
    """In years, as the user gave it, at the time they gave it."""
    home: str | None = None
    occupation: str | None = None
    interests: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    """Their preferences, also about communication: languages, hours, length of replies."""
    avoid_topics: tuple[str, ...] = ()
    """Topics they do not want to talk about."""
    unconfirmed: tuple[str, ...] = ()
    """Fields of the above that rest on something the user was not sure of, or was misheard in."""


Pacing = Literal["slow", "normal", "fast"]
Verbosity = Literal["brief", "normal", "detailed"]
Formality = Literal["casual", "neutral", "formal"]
PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"pacing": get_args(Pacing), "verbosity": get_args(Verbosity), "formality": get_args(Formality)}
)
"""Directives every agent understands, and the values that it is told in our words."""
MAX_FREE_DIRECTIVES = 16
MAX_DIRECTIVE_CHARACTERS = 200
_DIRECTIVE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """How a user wants to be served, in every session from the first word.

    Raises:
        InvalidInput: a directive is out of bounds.
    """

    pacing: Pacing | str | None = None
    """One of `PRESETS`, which an agent is told in our words, or any short text, told as the user's wish."""
    verbosity: Verbosity | str | None = None
    formality: Formality | str | None = None
    language: str | None = None
    """A BCP 47 tag, such as "en" or "pt-BR"."""
    free: Annotated[Mapping[str, str], AsDict()] = field(default_factory=dict)
    """Any other, by name: at most 16, each a short text in the user's words."""

    def __post_init__(self) -> None:
        for name in PRESETS:
            if getattr(self, name) is not None:
                _checked_wish(name, getattr(self, name))
        if self.language is not None and not _LANGUAGE.fullmatch(str(self.language)):
            raise InvalidInput("language must be a tag such as 'en' or 'pt-BR'")
        if len(self.free) > MAX_FREE_DIRECTIVES:
            raise InvalidInput(
                f"there are {len(self.free)} free directives, {MAX_FREE_DIRECTIVES} at most: drop some first"
            )
        for name, text in self.free.items():
            _checked_directive(name, text)
        object.__setattr__(self, "free", MappingProxyType(dict(self.free)))


def _checked_directive(name: str, text: str) -> None:
    if not _DIRECTIVE.fullmatch(str(name)):
        raise InvalidInput("a directive has a name such as 'small_talk' or 'speechSpeed'")
    if name in PRESETS or name == "language":
        raise InvalidInput(f"{brief(name)} is a preset: set it by its name, not among the free directives")
    _checked_wish(name, text)


def _checked_wish(name: str, text: str) -> None:
    checked_text(text, f"directive {brief(name)}")
    if len(text) > MAX_DIRECTIVE_CHARACTERS:
        raise InvalidInput(
            f"directive {brief(name)} has {len(text)} characters, {MAX_DIRECTIVE_CHARACTERS} at most"
        )


ExperienceKind = Literal[
    "procedure", "scenario", "strategy", "pitfall", "tool_pattern", "heuristic", "feedback", "improvement"
]
"""procedure: how something is done. scenario: what often comes up. strategy: what worked. pitfall: what did
not. tool_pattern: how tools go together. heuristic: a rule of thumb. feedback: what users say of the service.
improvement: what to do better.
"""
LessonState = Literal["waiting", "approved", "withdrawn"]
"""waiting: for an operator; it is in no prompt. approved: the agent knows it. withdrawn: in no prompt any
more, however often it is taught again.
"""
EXPERIENCE_KINDS: tuple[ExperienceKind, ...] = get_args(ExperienceKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One thing an agent learned by serving people. It speaks of nobody in particular."""

    id: str
    kind: ExperienceKind
    text: str
    times: int = 1
    """How often it was learned: the same lesson again counts, and is not kept twice."""
    state: LessonState = "approved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What one agent of one deployment learned, shared with all its users."""

    agent: str
    lessons: tuple[Lesson, ...] = ()
    """By kind in the order of `EXPERIENCE_KINDS`, and within a kind in the order they were learned."""

    def of(self, kind: ExperienceKind) -> tuple[str, ...]:
        """The texts of one kind."""
        return tuple(lesson.text for lesson in self.lessons if lesson.kind == kind)


CATEGORIES: tuple[Category, ...] = get_args(Category)
STATUSES: tuple[ConversationStatus, ...] = get_args(ConversationStatus)


def checked_category(value: object) -> Category:
    """`value` as a category.

    Raises:
        InvalidInput: it is not one of `CATEGORIES`.
    """
    for category in CATEGORIES:
        if value == category:
            return category
    raise InvalidInput(f"unknown category: use one of {', '.join(CATEGORIES)}")


def checked_sharing(value: object) -> Sharing:
    """`value` as what may become of what is set.

    Raises:
        InvalidInput: it is neither "auto" nor "private".
    """
    for sharing in get_args(Sharing):
        if value == sharing:
            chosen: Sharing = sharing
            return chosen
    raise InvalidInput(
        'visibility must be "auto" or "private": nobody makes a memory global by asking for it'
    )


JSON = Mapping[str, Any]

__all__ = [
    "CATEGORIES",
    "EXPERIENCE_KINDS",
    "JSON",
    "MAX_DIRECTIVE_CHARACTERS",
    "MAX_FREE_DIRECTIVES",
    "MAX_KEY_CHARACTERS",
    "MAX_TEXT_BYTES",
    "PRESETS",
    "STATUSES",
    "Category",
    "Consent",
    "Conversation",
    "ConversationStatus",
    "Cut",
    "Directives",
    "EmbeddingSpec",
    "Experience",
    "ExperienceKind",
    "Formality",
    "Hit",
    "Lesson",
    "LessonState",
    "Memory",
    "Outcome",
    "Pacing",
    "Profile",
    "Rank",
    "Recall",
    "Receipt",
    "Scope",
    "Sharing",
    "Turn",
    "Verbosity",
    "Visibility",
    "checked_category",
    "checked_name",
    "checked_query",
    "checked_sharing",
    "checked_text",
    "checked_time",
]
