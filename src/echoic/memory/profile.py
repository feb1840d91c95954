"""A user's profile and directives, and the time zone and events that resolve times in their questions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, Protocol, Self, TypeVar, runtime_checkable

from echoic.errors import InvalidInput, StoreUnavailable, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import CONVERSATION, MEMORY, memory_of
from echoic.partition import Partition
from echoic.ranking.bm25 import has_key
from echoic.stores.base import Put, Record, Require, Store
from echoic.temporal import (
    LOOKED_AT,
    ZONE_KEYS,
    Spans,
    moment_of,
    span_around,
    spans_of_phrase,
    zone_of,
)
from echoic.types import (
    MAX_FREE_DIRECTIVES,
    PRESETS,
    Directives,
    Memory,
    Profile,
    Recall,
    Scope,
    checked_name,
)

_NOT_LOADED: Final[Mapping[Scope, Partition]] = {}
KEYS: Final[Mapping[str, str]] = {
    "name": "user_name",
    "age": "age",
    "home": "home",
    "occupation": "occupation",
}
"""The memory key of each plain field of `Profile`."""

_LIKES = re.compile(
    r"(?:loves|likes|enjoys|adores|is (?:really )?into|is fond of|is interested in|is crazy about|"
    r"is an? (?:big |huge |massive )?fan of) (?P<what>.+)",
    re.IGNORECASE,
)
_PREFERS = re.compile(r"prefers .+", re.IGNORECASE)
_REACHED: Final = {
    "contact_time": "call {}",
    "no_contact_time": "do not call {}",
    "answer_length": "wants {} answers",
}
_AGE = re.compile(r"\d{1,3}")


@runtime_checkable
class ProfileModel(Protocol):
    """A Pydantic model class, as far as it is used here."""

    model_fields: Mapping[str, Any]

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """An instance from plain values."""


P = TypeVar("P")


@dataclass(slots=True)
class _ProfileReading:
    """The memories a profile is built from, and the field and value that says one of them in full."""

    memories: Sequence[Memory]
    used: dict[str, tuple[str, str]] = field(default_factory=dict)
    doubtful: list[str] = field(default_factory=list)

    def one(self, name: str, key: str, check: Callable[[str], bool] = bool) -> str | None:
        """The value under `key`, if it is valid for the field `name`."""
        found = next((m for m in reversed(self.memories) if m.key == key and check(m.text)), None)
        return self._use(name, found, found.text) if found else None

    def _use(self, name: str, memory: Memory, value: str, *, in_full: bool = True) -> str:
        if in_full:
            self.used[memory.id] = (name, value)
        if not memory.confirmed and name not in self.doubtful:
            self.doubtful.append(name)
        return value

    def many(
        self, name: str, value_of: Callable[[Memory], str | None], *, in_full: bool = True
    ) -> tuple[str, ...]:
        """`value_of` each memory, without None and duplicates."""
        found = [(memory, value) for memory in self.memories if (value := value_of(memory))]
        return tuple(
            dict.fromkeys(self._use(name, memory, value, in_full=in_full) for memory, value in found)
        )


def profile_of(memories: Sequence[Memory]) -> Profile:
    """The profile built from `memories`, all current."""
    return profile_and_sources(memories)[0]


def profile_and_sources(memories: Sequence[Memory]) -> tuple[Profile, dict[str, tuple[str, str]]]:
    """The profile, and by id the field and value that says a memory in full, which need not be repeated."""
    view = _ProfileReading(memories)
    age = view.one("age", KEYS["age"], lambda text: bool(_AGE.fullmatch(text)))
    profile = Profile(
        name=view.one("name", KEYS["name"]),
        age=int(age) if age else None,
        home=view.one("home", KEYS["home"]),
        occupation=view.one("occupation", KEYS["occupation"]),
        interests=view.many("interests", _interest),
        preferences=(
            *view.many("preferences", _preference),
            # also repeated beside the profile, as a sentence with its condition
            *view.many("preferences", _preferred, in_full=False),
        ),
        avoid_topics=view.many("avoid_topics", _avoided),
        unconfirmed=tuple(view.doubtful),
    )
    return profile, view.used


def model_profile(model: type[P], memories: Sequence[Memory], keys: Mapping[str, str] | None = None) -> P:
    """An instance of the Pydantic model `model`, filled from `memories`.

    A field is filled from the memory under the key that `keys` maps it to; else, if `Profile` has a field of
    that name, like that field; else from the memory under the field's own name. Memories under "key:thing"
    form a list. A value that the model rejects is left out.

    Raises:
        InvalidInput: `model` is not a Pydantic model, or a required field is not known.
    """
    if not (isinstance(model, type) and isinstance(model, ProfileModel)):
        raise InvalidInput(f"a profile is a Pydantic model class, not {brief(model)}")
    named = dict(keys or {})
    plain = profile_of(memories)
    known: dict[str, Any] = {}
    for name in model.model_fields:
        value = getattr(plain, name, None) if name not in named else None
        known[name] = value or _value_of(named.get(name, name), memories)
    return _filled(model, {name: value for name, value in known.items() if value is not None})


def _filled(model: Any, known: dict[str, Any]) -> Any:
    """An instance of `model` from the values of `known` that it accepts."""
    while True:
        try:
            return model.model_validate(known)
        except ValueError as error:  # Pydantic's own; its `errors` say which field it is about
            refused = {str(place[0]) for place in _locations(error) if place and place[0] in known}
            if not refused:
                raise InvalidInput(
                    f"{model.__name__} cannot be filled from what is known: {_places(error)} is missing. "
                    "Give every field of a profile a default: a user may be new."
                ) from error
            # a single value for a list field becomes a list; other values that the model rejects are left out
            again = {name: [known[name]] for name in refused if isinstance(known[name], str)}
            known = {name: value for name, value in known.items() if name not in refused} | again


def _value_of(key: str, memories: Iterable[Memory]) -> str | list[str] | None:
    one: str | None = None
    several: list[str] = []
    for memory in memories:
        if memory.key == key:
            one = memory.text
        elif memory.key and memory.key.startswith(f"{key}:"):
            several.append(memory.text)
    return several or one


def _places(error: ValueError) -> str:
    return ", ".join(sorted({".".join(map(str, place)) for place in _locations(error)})) or "something"


def _locations(error: ValueError) -> list[tuple[Any, ...]]:
    listed: Any = getattr(error, "errors", list)()
    return [tuple(item.get("loc", ())) for item in listed]


def _interest(memory: Memory) -> str | None:
    """The interest in a memory such as "preference:jazz" that says "loves jazz"."""
    if memory.key and memory.key.startswith("hobby:"):
        return _under_condition(memory, memory.text)
    if not memory.key or not memory.key.startswith("preference:"):
        return None
    liked = _LIKES.fullmatch(memory.text)
    return _under_condition(memory, liked["what"]) if liked else None


def _under_condition(memory: Memory, value: str) -> str:
    """`value` with when it applies, so that the profile does not overstate it."""
    return f"{value} ({memory.context})" if memory.context else value


def _preferred(memory: Memory) -> str | None:
    """The preference in a text such as "prefers action movies"."""
    prefers = memory.key and memory.key.startswith("preference:") and _PREFERS.fullmatch(memory.text)
    return _under_condition(memory, memory.text) if prefers else None


def _avoided(memory: Memory) -> str | None:
    """The topic a user does not want to talk about."""
    return memory.text if memory.key and memory.key.startswith("avoid_topic:") else None


def _preference(memory: Memory) -> str | None:
    """How the user likes to be spoken to and reached."""
    reached = _REACHED.get((memory.key or "").partition(":")[0])
    if reached:
        return _under_condition(memory, reached.format(memory.text))
    spoken = memory.key is not None and memory.key.startswith("language:")
    return f"speaks {memory.text}" if spoken else None


DIRECTIVES: Final = "directives"
"""The kind of the records, and the id of the one that applies in every session."""


async def read_directives(
    store: Store, scope: Scope, *, agent: str | None = None, conversation: str | None = None
) -> Directives:
    """The user's directives in force, for this agent and this conversation if given.

    Those for a conversation override those for everything; those for an agent override both.
    """
    names = [DIRECTIVES]
    names += [_id_of(None, conversation)] if conversation is not None else []
    names += [_id_of(agent, None)] if agent is not None else []
    merged = Directives()
    for record in await store.read(scope, DIRECTIVES, names):
        merged = _merged(merged, directives_of(record))
    return merged


async def change_directives(
    store: Store,
    scope: Scope,
    changes: Mapping[str, str | None],
    *,
    agent: str | None = None,
    conversation: str | None = None,
) -> Directives:
    """Set each named directive, or remove it with None; all of them or none. Returns the directives
    afterwards.

    They apply everywhere, or only to `agent` or to `conversation`, with which they are forgotten.

    Raises:
        InvalidInput: a value is out of bounds or not a time zone, or both an agent and a conversation are
            named; nothing was written.
        StoreUnavailable: nothing was written.
    """
    await _check_zones(changes)
    name = _id_of(agent, conversation)
    belongs = [] if conversation is None else [Require(kind=CONVERSATION, id=conversation)]

    async def attempt() -> Directives:
        records = await store.read(scope, DIRECTIVES, [name])
        old = directives_of(records[0]) if records else Directives()
        new = _changed(old, changes)
        if conversation is not None and not await store.read(scope, CONVERSATION, [conversation]):
            raise InvalidInput(f"there is no conversation {conversation!r:.80} to set directives for")
        if new != old:
            held = records[0] if records else None
            record = replace(record_of_directives(new), id=name, key=conversation)
            await store.write(scope, [*belongs, Put.over(held, record)])
        return new

    return await until_written(attempt, "the user's directives")


def _id_of(agent: str | None, conversation: str | None) -> str:
    """The id of the record of the directives for an agent, a conversation, or everything."""
    if agent is not None and conversation is not None:
        raise InvalidInput(
            "directives are for an agent or for a conversation, not for both: set them one by one"
        )
    if agent is not None:
        return f"agent:{checked_name(agent, 'agent')}"
    return (
        DIRECTIVES if conversation is None else f"conversation:{checked_name(conversation, 'conversation')}"
    )


def _merged(wide: Directives, narrow: Directives) -> Directives:
    """Both; the narrower one takes precedence, and the wider one loses what exceeds the limit."""
    named = {name: getattr(narrow, name) or getattr(wide, name) for name in (*PRESETS, "language")}
    free = {**narrow.free, **{name: text for name, text in wide.free.items() if name not in narrow.free}}
    return Directives(**named, free=dict(list(free.items())[:MAX_FREE_DIRECTIVES]))


async def _check_zones(changes: Mapping[str, str | None]) -> None:
    """Refuse an invalid time zone. One that is set already does not block other changes."""
    for name in ZONE_KEYS:
        value = changes.get(name)
        if isinstance(value, str):  # otherwise it is refused like any other directive
            await asyncio.to_thread(zone_of, value)  # the zone database is files


def record_of_directives(directives: Directives) -> Record:
    """`directives` as a record, without unset ones."""
    data: dict[str, Any] = {
        name: value for name in (*PRESETS, "language") if (value := getattr(directives, name)) is not None
    }
    return Record(kind=DIRECTIVES, id=DIRECTIVES, data={**data, "free": dict(directives.free)})


def directives_of(record: Record) -> Directives:
    """The inverse of `record_of_directives`; InvalidInput for an invalid directive."""
    known = {name: record.data.get(name) for name in (*PRESETS, "language")}
    free = record.data.get("free", {})
    if not isinstance(free, Mapping):
        raise InvalidInput(f"free directives must be an object, not {type(free).__name__}")
    return Directives(**known, free=free)


def _changed(old: Directives, changes: Mapping[str, str | None]) -> Directives:
    presets = {name: value for name, value in changes.items() if name in {*PRESETS, "language"}}
    free = {**old.free, **{name: value for name, value in changes.items() if name not in presets}}
    kept = {name: value for name, value in free.items() if value is not None}
    # the name of a removed directive was not checked yet
    for name in free.keys() - kept.keys() - old.free.keys():
        raise InvalidInput(f"there is no directive {brief(name)} to take back")
    return replace(old, free=kept, **presets)


class Searches(Protocol):
    """A search that does not resolve times."""

    async def recall(
        self, scope: Scope, text: str, *, limit: int, besides: str | Collection[str] | None
    ) -> Recall: ...


class TimeReader:
    """Resolves times in one user's questions. It remembers the last zone, in case the store fails."""

    def __init__(self, store: Store, searches: Searches, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._searches = searches
        self._clock = clock
        self.last: tzinfo = UTC
        """The zone that was read last."""

    async def read(
        self,
        scope: Scope,
        text: str,
        zone: str | tzinfo | None = None,
        besides: str | Collection[str] | None = None,
        loaded: Mapping[Scope, Partition] = _NOT_LOADED,
    ) -> Spans:
        """The time ranges in `text`, relative to now; a named event becomes a range if it is unambiguous.

        Events are looked up in the user's own and in global memory, without the ids `besides`. `zone` None
        uses the user's zone, else the global one, else UTC. If the store cannot be read, the last known zone
        is assumed, or UTC, and `Spans.assumed` says so; days are then off by some hours at most. Only looking
        up an event raises StoreUnavailable. What is `loaded` is not read where it has no zone.
        """
        zone = await _given(zone)
        now, assumed = self._clock(), False
        try:
            known = await self.zone(scope, zone, loaded)
        except StoreUnavailable:
            known, assumed = self.last, True
        spans = spans_of_phrase(text, now, known)
        spans = replace(spans, assumed=assumed and bool(spans.ranges or spans.event))
        if spans.event is None:
            return spans
        recall = await self._searches.recall(scope, spans.event.text, limit=LOOKED_AT, besides=besides)
        moment = moment_of(spans.event, recall.hits)
        span = None if moment is None else span_around(spans.event, moment, now, known)
        return spans if span is None else replace(spans, ranges=(span,))

    async def zone(
        self,
        scope: Scope,
        given: str | tzinfo | None = None,
        loaded: Mapping[Scope, Partition] = _NOT_LOADED,
    ) -> tzinfo:
        """The user's time zone: as given, else as remembered, else UTC. InvalidInput if unknown."""
        if (zone := await _given(given)) is not None:
            return zone
        self.last = await remembered_zone(self._store, scope, loaded=loaded) or UTC
        return self.last


async def _given(zone: str | tzinfo | None) -> tzinfo | None:
    if isinstance(zone, str):
        return await asyncio.to_thread(zone_of, zone)
    if zone is not None and not isinstance(zone, tzinfo):
        raise InvalidInput(f"timezone must be a name or a tzinfo, not {type(zone).__name__}")
    return zone


async def remembered_zone(
    store: Store,
    scope: Scope,
    newer: Sequence[Memory] = (),
    loaded: Mapping[Scope, Partition] = _NOT_LOADED,
) -> tzinfo | None:
    """The user's time zone: set, else learned, else global; None if unknown.

    `newer` are memories that are not written yet; `loaded` are current partitions, in which it costs less to
    see that there is none.
    """
    directives = await read_directives(store, scope)
    said = [directives.free[key] for key in ZONE_KEYS if key in directives.free]
    said += [memory.text for memory in newer]
    for whose in (scope, scope.everyone):
        for key in ZONE_KEYS:
            if whose in loaded and not has_key(loaded[whose], key):
                continue
            newest = await store.scan(whose, MEMORY, key=key, limit=1, newest_first=True)
            said += [memory.text for record in newest if (memory := memory_of(record)).current]
    return await first_zone(said)


async def first_zone(names: Iterable[str]) -> tzinfo | None:
    """The first time zone that one of `names` means. Runs in a thread, since the zone database is files."""
    for name in names:
        try:
            return await asyncio.to_thread(zone_of, name)
        except InvalidInput:
            continue  # "wherever I am" names no zone
    return None
