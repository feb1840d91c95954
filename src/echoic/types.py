"""The data types of memory. Pure: no I/O."""

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
    USER,
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
"""private: visible to the user alone. proposed: the same, until an operator approves it. global: visible in
the whole deployment."""
Sharing = Literal["auto", "private"]
"""Who may see a value that is set. auto: decided by rules, private when in doubt. private: the user alone,
whatever the rules say."""
Consent = Literal["keep", "ask", "never"]
"""Whether what a user says may be stored. never: nothing is stored. ask: nothing is stored until the user
agrees, in each conversation. A change applies from the next write on, also in a running conversation."""
ConversationStatus = Literal["created", "active", "completed", "failed"]
Outcome = Literal["complete", "deadline", "unavailable"]
"""complete: everything was searched. deadline: the best results in time. unavailable: the search failed."""
Cut = Literal["own", "global", "shared", "newest", "vector", "date", "unembedded"]
"""A step that a search left out.

- "own", "global", "shared": these memories were not loaded in time.
- "newest": the store could not be asked for new records.
- "vector": the query was not embedded, in time or at all.
- "date": the time named in the query was not parsed, or was parsed in an assumed time zone; or it is all that
  is asked for ("what did I say today?"), of a memory so large that the database searches it.
- "unembedded": many memories have no vector yet, as after an import or a change of the model, and were
  searched by their words alone.
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of a memory. Every read and write names one; it is never taken from what was said."""

    deployment: str
    user: str | None
    """None for what is global in the deployment."""

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
    """The identity of an embedding model. A store records it and never mixes vectors of two specs."""

    model: str
    """Model and variant, for example "local:all-MiniLM-L6-v2:fp32"."""
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance."""

    speaker: str
    """"user", "agent", or a person's name where several people talk ("Ana"). Frameworks' names for the two
    roles ("assistant", "human", "Caller") are mapped to these. Memories are formed from the user's turns
    only; turns of other people are stored and searched under their names."""
    text: str
    heard: str | None = None
    """The part of an agent's words that the caller heard; None for all of it."""
    said_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it was said (aware, UTC), not when it was stored. Up to 14 hours ahead of the memory's clock, it
    becomes the time of `append`."""
    confidence: float | None = None
    """The speech recogniser's confidence, 0 to 1; None if it reported none."""
    id: str = ""
    """Unique within its conversation; appending the same id again changes nothing. Where another conversation
    of the user has the id, `append` stores and returns "conversation:id". Empty: generated on append."""
    conversation: str = ""
    """The id of its conversation; set on append."""

    def __post_init__(self) -> None:
        if self.speaker is not USER:  # as of every turn that is read
            speaker = checked_speaker(checked_name(self.speaker, "speaker"))
            object.__setattr__(self, "speaker", speaker)
        checked_text(self.text, "turn text", if_empty="Where nothing was said there is no turn to keep.")
        if self.heard is not None and self.heard != "":
            checked_text(self.heard, "heard text")
        if self.id:
            checked_name(self.id, "turn id")
        sure = self.confidence
        if sure is not None and (
            isinstance(sure, bool) or not isinstance(sure, (int, float)) or not 0 <= sure <= 1
        ):
            raise InvalidInput(f"confidence must be a number from 0 to 1, not {brief(sure)}")
        object.__setattr__(self, "said_at", checked_time(self.said_at, "said_at"))

    @property
    def heard_text(self) -> str:
        """The words that were heard, which memories are formed from. May be empty."""
        return self.text if self.heard is None else self.heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One known thing, at one version. A correction is a new Memory; the old one stays as history."""

    id: str
    text: str
    key: str | None = None
    statement: str | None = None
    """A self-contained sentence, where `text` is only a value ("Tel Aviv")."""
    category: Category = "fact"
    context: str | None = None
    """When and under which conditions it applies."""
    visibility: Visibility = "private"
    author: str | None = None
    """The user who said it; None for a global memory that an operator approved."""
    source: tuple[str, ...] = ()
    """Ids of the turns it was learned from; empty if a tool or a person wrote it."""
    valid_from: datetime
    """When it was said (aware, UTC)."""
    valid_until: datetime | None = None
    """When it stopped being true; None while it holds."""
    supersedes: str | None = None
    """The id of the memory that it corrected."""
    superseded_by: str | None = None
    """The id of the memory that corrected it; None with `valid_until` set means it was retracted."""
    deleted: bool = False
    """Whether its user deleted it, or asked to forget it: then no question about the past finds it. False
    where an earlier version of Echoic did so."""
    confirmed: bool = True
    redacted: tuple[str, ...] = ()
    """Kinds of personal data removed before it was shared, such as "EMAIL"."""
    times_said: int = 1
    """The number of turns that said it, if it was learned from speech."""
    last_said_at: datetime | None = None
    """When it was last repeated (aware, UTC); None if it was said once."""
    reason: str | None = field(default=None, compare=False)
    """Why `visibility` has its value, one of `echoic.memory.sharing.REASONS`; None if it was not set."""

    @property
    def current(self) -> bool:
        """Whether it still holds."""
        return self.valid_until is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """An ordered log of turns. It is also a task, with an agent and a status."""

    id: str
    agent: str | None = None
    status: ConversationStatus = "created"
    distilled: bool = False
    """Whether it is completed and memories were formed from all of its turns."""
    started_at: datetime
    updated_at: datetime
    recall_key: str | None = None
    """The words by which a caller refers to it."""
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The rank of a hit in one channel."""

    rank: int
    """From 1."""
    score: float
    """The channel's score; comparable only within one channel and query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A search result, and how it was found.

    A memory and the turn it was learned from form one hit. A turn that answers by other words than those of
    the memory is a hit by itself.
    """

    text: str
    """The memory's text; for a turn, the part that was heard."""
    score: float
    """The fused score; comparable only within one query."""
    ranks: Annotated[Mapping[str, Rank], AsDict()]
    """Rank and score by channel: "vector", "text", "fuzzy", …; channels that did not find it are absent."""
    scope: Scope
    memory: Memory | None = None
    turn: Turn | None = None
    """At least one of `memory` and `turn` is set. Both: the memory was learned from the turn."""
    relevance: float = 1.0
    """The estimated probability, 0 to 1, that it answers the query. Calibrated on telephone calls; too high
    on other conversations, see docs/relevance.md. 1 where it was not estimated."""
    also: tuple[Memory, ...] = ()
    """Other memories found that were learned from the same turn, best first."""

    def apart(self) -> tuple[Hit, ...]:
        """Its parts as hits of their own: the memories first, then the turn."""
        if self.memory is None or (self.turn is None and not self.also):
            return (self,)
        told = [replace(self, text=each.text, memory=each, turn=None, also=()) for each in self.memories]
        if self.turn is None:
            return tuple(told)
        return (*told, replace(self, text=self.turn.heard_text, memory=None, also=()))

    @property
    def memories(self) -> tuple[Memory, ...]:
        """All memories in it."""
        return () if self.memory is None else (self.memory, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a search, and whether it is complete."""

    hits: tuple[Hit, ...]
    outcome: Outcome
    cut: tuple[Cut, ...] = ()
    """The steps that were left out, see `Cut`; empty if the search was complete."""
    pipeline: tuple[dict[str, Any], ...] = field(default=(), compare=False, repr=False)
    """The steps of the search as JSON: where it searched, and the weight of each channel. For a scope
    searched in a database, the database's query too. See docs/ranking.md."""
    withheld: bool = False
    """Whether a result was withheld until the caller's identity is proved."""

    def apart(self) -> Recall:
        """This recall with every part of a hit as a hit of its own: a memory, then the turn it was learned
        from.
        """
        return replace(self, hits=tuple(each for hit in self.hits for each in hit.apart()))

    def without(self, is_known: Callable[[Turn], bool]) -> Recall:
        """This recall without the turns that the reader already has; memories learned from them stay."""
        left = [
            replace(hit, turn=None) if hit.turn is not None and is_known(hit.turn) else hit
            for hit in self.hits
        ]
        return replace(self, hits=tuple(hit for hit in left if hit.memory or hit.turn))


KeptBecause = Literal["means something else", "learned from it", "others taught it too"]
"""Why an erasure keeps a record that is close to what it destroys.

- "means something else": turns that contain the same value with another meaning.
- "learned from it": memories learned in a conversation that is forgotten; `forget(key=…)` destroys them.
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
    """Turns, summaries and other records that stay, with the words that said it destroyed."""
    kept_because: Annotated[Mapping[KeptBecause, int], AsDict()] = field(default_factory=dict)
    """The number of records that stay though they are close to what was destroyed, by reason."""
    verified: bool = False
    """Whether the stored bytes were searched afterwards and contained none of it."""
    bytes_searched: int = 0
    signed: Annotated[Mapping[str, str], AsDict()] = field(default_factory=dict, compare=False)
    """For an auditor: `statement`, this receipt as JSON text, with its Ed25519 `signature` and the public
    `key` in base64. Empty without a compliance folder or without `cryptography` (docs/audit.md)."""

    @property
    def kept(self) -> int:
        """The number of records that stay though they are close to what was destroyed."""
        return sum(self.kept_because.values())

    @property
    def records(self) -> int:
        """The number of records removed, of any kind."""
        return self.memories + self.turns + self.conversations + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The user's profile as they stated it: a view of their keyed memories, not a second copy."""

    name: str | None = None
    age: int | None = None
    """In years, as the user said it, at the time they said it."""
    home: str | None = None
    occupation: str | None = None
    interests: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    """Including how to communicate: languages, hours, length of replies."""
    avoid_topics: tuple[str, ...] = ()
    """Topics they do not want to talk about."""
    unconfirmed: tuple[str, ...] = ()
    """Fields of the above that are based on something the user was unsure of or that may have been
    misheard."""


Pacing = Literal["slow", "normal", "fast"]
Verbosity = Literal["brief", "normal", "detailed"]
Formality = Literal["casual", "neutral", "formal"]
PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"pacing": get_args(Pacing), "verbosity": get_args(Verbosity), "formality": get_args(Formality)}
)
"""Directives that every agent understands, and the values that are put to it in Echoic's words."""
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
    """One of `PRESETS`, put to the agent in Echoic's words, or any short text, passed on as the user's
    wish."""
    verbosity: Verbosity | str | None = None
    formality: Formality | str | None = None
    language: str | None = None
    """A BCP 47 tag, such as "en" or "pt-BR"."""
    free: Annotated[Mapping[str, str], AsDict()] = field(default_factory=dict)
    """Other directives by name: at most 16, each a short text in the user's words."""

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
"""waiting: for an operator's approval; not in any prompt. approved: in the agent's prompt. withdrawn: in no
prompt, however often it is learned again."""
EXPERIENCE_KINDS: tuple[ExperienceKind, ...] = get_args(ExperienceKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Something an agent learned by serving people. It is about nobody in particular."""

    id: str
    kind: ExperienceKind
    text: str
    times: int = 1
    """How often it was learned; a repeated lesson is counted, not stored twice."""
    state: LessonState = "approved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What one agent of a deployment learned, shared with all its users."""

    agent: str
    lessons: tuple[Lesson, ...] = ()
    """By kind in the order of `EXPERIENCE_KINDS`; within a kind in the order they were learned."""

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
    """`value` as a `Sharing`.

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


__all__ = [
    "CATEGORIES",
    "EXPERIENCE_KINDS",
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
