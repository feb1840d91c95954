"""What a model is asked to give, and what of it can be used: item by item, so that one bad item loses one
item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from echoic.english.phrases import slug
from echoic.english.slots import SLOTS
from echoic.errors import EchoicError
from echoic.memory.distilling import Add, Change, Confirm, Fact, Retract, Supersede
from echoic.memory.distilling.consistent import MOST_CHANGES
from echoic.memory.distilling.grounded import MAX_CHARACTERS
from echoic.types import Memory, Turn, checked_text

_RELATION: Final = re.compile(r"[a-z][a-z_]{1,30}_name")
_MANY: Final = frozenset("preference decision requirement note pet_kind".split())
_NAMED: Final = frozenset("favourite least_favourite".split())


class ProposedChange(BaseModel):
    """One change to what is known of the user."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["add", "supersede", "confirm", "retract"] = Field(
        description="add: new. supersede: replaces what is known. confirm: known and said again. "
        "retract: known and no longer so, nothing replaces it."
    )
    turns: list[str] = Field(
        min_length=1, max_length=8, description="Handles of the user's turns it was said in, such as t3."
    )
    known: list[str] = Field(
        default=[],
        max_length=8,
        description="Handles of what is known that it replaces, confirms or retracts, such as k2.",
    )
    sentence: str = Field(
        default="",
        max_length=MAX_CHARACTERS,
        description="The fact in one sentence about the user, in the user's own words where possible.",
    )
    slot: str | None = Field(
        default=None,
        max_length=110,
        description="The slot it fills, where there can be only one value; else null.",
    )
    value: str | None = Field(
        default=None, max_length=MAX_CHARACTERS, description="The value alone, where a slot is given."
    )
    category: Literal["preference", "entity", "decision", "requirement", "fact"] = "fact"
    context: str | None = Field(
        default=None,
        max_length=MAX_CHARACTERS,
        description="When or under which conditions it applies, if that was said; else null.",
    )


class ExtractorAnswer(BaseModel):
    """Changes to what is known of the user, in the order in which they were said."""

    model_config = ConfigDict(extra="ignore")

    read_up_to: str = Field(
        default="", description="The handle of the last turn, to show that all were read."
    )
    # described to the model in full, taken in unchecked: each is looked at by itself
    changes: list[Annotated[Any, WithJsonSchema(ProposedChange.model_json_schema())]] = Field(
        description="Empty where nothing is worth keeping."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """What the short names in a question stand for. A model never sees an id, and can name nothing else."""

    turns: Mapping[str, Turn]
    """The user's new turns. Those of others are shown, but are no source of anything."""
    known: Mapping[str, Memory]
    last: str
    """The handle of the last turn."""


def usable(answer: ExtractorAnswer, handles: Handles) -> list[Change] | None:
    """The changes that can be used; None where the answer as a whole cannot.

    An empty answer is one only if it shows that the turns were read; one with more changes than a
    conversation can hold is none.
    """
    if len(answer.changes) > MOST_CHANGES:
        return None
    changes = [change for raw in answer.changes if (change := _change(raw, handles))]
    if not answer.changes:
        return [] if answer.read_up_to.strip() == handles.last else None
    return changes or None


def _change(raw: object, handles: Handles) -> Change | None:
    """One item as a change; None where it is not one."""
    try:
        item = ProposedChange.model_validate(raw, strict=False)
        source = tuple(dict.fromkeys(handles.turns[name].id for name in item.turns))
        known = tuple(dict.fromkeys(handles.known[name].id for name in item.known))
        return _made(item, source, known)
    except (ValidationError, KeyError, TypeError, EchoicError):
        return None


def _made(item: ProposedChange, source: tuple[str, ...], known: tuple[str, ...]) -> Change | None:
    if item.action == "confirm":
        return Confirm(known=known[0], source=source) if len(known) == 1 else None
    if item.action == "retract":
        return Retract(known=known, source=source) if known else None
    fact = _fact(item)
    if item.action == "add":
        return None if known else Add(fact=fact, source=source)
    return Supersede(known=known, fact=fact, source=source) if known else None


def _fact(item: ProposedChange) -> Fact:
    sentence = checked_text(item.sentence.strip(), "sentence")
    value = (item.value or "").strip()
    key = _key((item.slot or "").strip().lower(), value)
    context = (item.context or "").strip() or None
    if key is None:
        return Fact(text=sentence, category=item.category, context=context)
    return Fact(
        text=checked_text(value, "value"),
        key=key,
        statement=sentence,
        category=item.category,
        context=context,
    )


def _key(slot: str, value: str) -> str | None:
    """The key the rules would give; None for a slot they do not have, or one that would hold too much.

    A model that files every preference under "preference" would have each supersede the one before.
    """
    base, _, item = slot.partition(":")
    if not value or base in _MANY:
        return None
    if _RELATION.fullmatch(slot):
        return slot
    known = SLOTS.get(base)
    if known is None or ("{}" in known.key) != bool(item):
        return None
    return known.key.format(slug(item if base in _NAMED else value))[:200] if item else known.key


__all__ = ["ExtractorAnswer", "Handles", "ProposedChange", "usable"]
