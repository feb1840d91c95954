"""The extractor seam: turns and what is known go in, changes to what is known come out. Never a new list.

An extractor proposes. Whether a change takes effect is decided in `reconcile`, for every extractor alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from echoic.errors import EchoicError
from echoic.types import Category, Memory, Turn

FACT_CATEGORIES: tuple[Category, ...] = ("preference", "entity", "decision", "requirement", "fact")
"""What may be learned from speech; experience is an agent's own and is learned elsewhere."""


class Unusable(EchoicError):
    """What an extractor gave cannot be used, or would change too much. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an extractor is shown."""

    turns: tuple[Turn, ...]
    """Turns nobody has learned from yet, in order. Facts may rest on the user's among them, on no others."""
    context: tuple[Turn, ...] = ()
    """The turns before, read again for what the new ones refer to."""
    known: tuple[Memory, ...] = ()
    """What holds of the user that the turns may repeat, correct or take back."""
    withheld: frozenset[str] = field(default_factory=frozenset)
    """Ids of turns of which the user asked that they be not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing said of the user."""

    text: str
    """The value where there is a key ("Lisbon"), else a sentence."""
    key: str | None = None
    """The slot it fills; a later value of the same slot supersedes it."""
    statement: str | None = None
    """A sentence that stands by itself, where `text` is only a value."""
    category: Category = "fact"
    context: str | None = None
    """When and under which conditions it applies."""
    sure: bool = True
    """Whether it may be relied on without asking back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Something is so. If it is known it is confirmed; if its slot holds something else, that ends."""

    fact: Fact
    source: tuple[str, ...]
    """Ids of the turns it was said in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """Something known is so no longer, because this is."""

    known: tuple[str, ...]
    """Ids of the memories that end."""
    fact: Fact
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Something known was said again."""

    known: str
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retract:
    """Something known is no longer so, and nothing takes its place."""

    known: tuple[str, ...]
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack:
    """The user took back what a slot holds."""

    key: str
    text: str
    """The value that is taken back; empty for any."""
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearn:
    """The user asked that these turns be not kept: what was learned from them holds no longer."""

    turns: frozenset[str]
    source: tuple[str, ...]


Change = Add | Supersede | Confirm | Retract | TakeBack | Unlearn


@runtime_checkable
class Extractor(Protocol):
    """Reads what was said and proposes changes.

    May raise anything: then nothing is changed, and the same turns are read again later.
    """

    @property
    def name(self) -> str:
        """Of the reader whose cursor says how far it has read: two extractors never share one."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long one reading may take."""
        ...

    async def open(self) -> None:
        """Make ready.

        Raises:
            InvalidInput: it cannot work as it was set up.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `open` took. May be called twice."""
        ...

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """The changes that `reading` calls for, in the order in which they were said.

        Ids in them are of memories and turns in `reading`; whose memory it is, is not the extractor's to say.
        """
        ...


class Summarizer(Protocol):
    """Says what a call was about, for whoever goes on with it."""

    async def summarize(self, before: str | None, turns: Sequence[Turn]) -> str:
        """The summary `before` taken further by `turns`; None: there is none yet. May raise anything."""
        ...

    async def aclose(self) -> None:
        """Let go of what it holds. May be called twice."""
        ...
