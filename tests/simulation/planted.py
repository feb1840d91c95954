"""Mistakes that are made on purpose in a history: each must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from durability import controls
from echoic.memory.background import Background
from echoic.memory.conversation import OpenConversation
from echoic.memory.recall import Recaller
from echoic.types import Scope
from simulation.world import Outcome, Plant, lived_alone


def store_control(name: str) -> Plant:
    return lambda store: controls.applied(store, name)


def patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Plant:
    return lambda _store: mock.patch.object(owner, name, make(getattr(owner, name)))


def new_ids(append: Any) -> Any:
    async def appended(self: OpenConversation, *turns: Any, **how: Any) -> Any:
        return await append(self, *(replace(turn, id="") for turn in turns), **how)

    return appended


def of_another(search: Any) -> Any:
    async def searched(self: Recaller, scope: Scope, *rest: Any) -> Any:
        return await search(self, Scope(scope.deployment, "ben"), *rest)

    return searched


def never(_embed_waiting: Any) -> Any:
    async def nothing(_self: Background) -> int:
        return 0

    return nothing


def ordered_by_the_clock(turns: Any) -> Any:
    async def ordered(self: OpenConversation) -> Any:
        return sorted(await turns(self), key=lambda turn: turn.said_at)

    return ordered


PLANTED = {
    "acknowledged before it is on the disk": store_control("acknowledge first"),
    "not synced at each commit": store_control("synchronous = normal"),
    "an error of the disk is taken for success": store_control("swallow errors"),
    "a turn that is sent again is kept again": patched(OpenConversation, "append", new_ids),
    "another user's memory is searched": patched(Recaller, "search", of_another),
    "what waits for a vector gets none": patched(Background, "embed_waiting", never),
    "turns are ordered by a clock that jumps": patched(OpenConversation, "turns", ordered_by_the_clock),
}


def outcome_of(seed: int, planted: str | None) -> Outcome:
    """What comes of `seed`, with a mistake of `PLANTED` or without."""
    return lived_alone(seed, PLANTED[planted] if planted else None)
