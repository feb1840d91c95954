"""A whole service with its callers, from one seed: what was acknowledged is there, whatever failed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import scale
from durability import controls
from echoic.memory.background import Background
from echoic.memory.conversation import OpenConversation
from echoic.memory.recall import Recaller
from echoic.types import Scope
from simulation.world import KINDS, Plant, lived

pytestmark = pytest.mark.histories


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """A history logs every fault; what is wrong is in its outcome."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_what_was_acknowledged_is_there_once_whatever_failed(
    scratch: Path, tally: Callable[[str], None]
) -> None:
    faults: Counter[str] = Counter()
    acknowledged = lives = 0
    histories = scale.many(24, least=6)
    for seed in range(scale.SEED, scale.SEED + histories):
        outcome = lived(seed, scratch)
        assert not outcome.wrong, f"python -m simulation --seed {seed}: {outcome.wrong}"
        faults += outcome.faults
        acknowledged += outcome.acknowledged
        lives += outcome.lives
    assert lives > histories, "no process died"
    told = ", ".join(f"{faults[kind]} × {kind}" for kind in KINDS)
    tally(f"{histories} histories, {acknowledged} acknowledged, 0 lost; {told}")


def test_a_seed_replays_exactly(scratch: Path) -> None:
    first, again = lived(scale.SEED, scratch), lived(scale.SEED, scratch)
    assert (first.digest, first.steps, first.faults) == (again.digest, again.steps, again.faults)
    assert lived(scale.SEED + 1, scratch).digest != first.digest


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


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_found(planted: str, scratch: Path) -> None:
    for seed in range(scale.SEED, scale.SEED + 60):
        if lived(seed, scratch, PLANTED[planted]).wrong:
            return
    pytest.fail(f"60 histories did not show it: {planted}")
