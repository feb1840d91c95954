"""What a turn taught: by the rules that listen, and by what the speaker gave for all.

Learning is the distiller's; here is only read what it changed, for it may have been the background's run that
learned first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from echoic.english import listen
from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless.wording import acknowledged, listed, said_back
from echoic.memory.user import UserMemory
from echoic.types import Memory, Turn


class Steps:
    """Times named steps. A step that runs twice counts once, with the sum."""

    def __init__(self) -> None:
        self.timings_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside as `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + elapsed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChanges:
    """What a turn changed."""

    stored: tuple[Memory, ...] = ()
    superseded: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()
    retracted: tuple[Memory, ...] = ()


async def learn(
    memory: UserMemory,
    conversation: OpenConversation,
    heard: Turn,
    *,
    ours: Iterable[tuple[str, str]],
    before: Sequence[Memory],
    steps: Steps,
) -> TurnChanges:
    """Learn from a turn that was kept.

    Args:
        memory: whose.
        conversation: the one it was said in.
        heard: the turn.
        ours: keys and values given in it for everyone.
        before: everything that held until then.
        steps: where the time it takes is noted.
    """
    with steps.step("distil"):
        await conversation.learn()
    for key, value in [] if conversation.silent else ours:
        with steps.step("set"):
            await memory.set(key, value)
    return _difference(heard, before, await memory.facts())


async def learn_name(memory: UserMemory, name: str, steps: Steps) -> TurnChanges:
    """Keep `name`, which was given as the bare answer to the agent's question for it."""
    with steps.step("set"):
        kept = await memory.set("user_name", name, category="entity")
    return TurnChanges(stored=(kept,))


def _difference(heard: Turn, before: Sequence[Memory], after: Sequence[Memory]) -> TurnChanges:
    held = {_name(memory) for memory in before}
    holds = {_name(memory) for memory in after}
    stored = tuple(memory for memory in after if _name(memory) not in held)
    gone = [memory for memory in before if _name(memory) not in holds]
    # a correction may move a key from the user's own to everyone's, so it is the key that tells
    corrected = {memory.key for memory in stored if memory.key is not None}
    said = {(item.key, item.text.casefold()) for item in listen(heard.text, []) if not item.retracts}
    return TurnChanges(
        stored=stored,
        superseded=tuple(memory for memory in gone if memory.key in corrected),
        known=tuple(m for m in after if _name(m) in held and (m.key, m.text.casefold()) in said),
        retracted=tuple(memory for memory in gone if memory.key not in corrected),
    )


def _name(memory: Memory) -> tuple[bool, str]:
    """What tells a memory from all others: an id is unique only in its scope."""
    return memory.visibility == "global", memory.id


def learned_in_words(learned: TurnChanges) -> str:
    """What was learned, said back so that the speaker can correct it; empty where nothing was."""
    parts = [_met(learned), _stored(learned), _known(learned), _retracted(learned)]
    return " ".join(part for part in parts if part)


def _met(learned: TurnChanges) -> str:
    named = [memory for memory in learned.stored if memory.key == "user_name"]
    if not named:
        return ""
    corrected = any(memory.key == "user_name" for memory in learned.superseded)
    return (
        f"I'll call you {named[0].text} from now on." if corrected else f"Nice to meet you, {named[0].text}."
    )


def _stored(learned: TurnChanges) -> str:
    own = [m for m in learned.stored if m.key != "user_name" and m.visibility == "private"]
    said = []
    if own:
        was = {memory.key: memory.text for memory in learned.superseded}
        before = [was[memory.key] for memory in own if memory.key in was]
        note = f" Before, it was {' and '.join(before)}; I keep that as history." if before else ""
        said.append(f"Noted: {_repeated(own)}{note}")
    shared = [memory for memory in learned.stored if memory.visibility == "global"]
    if shared:
        said.append(f"Noted for everyone who calls: {_repeated(shared)}")
    proposed = [memory for memory in learned.stored if memory.visibility == "proposed"]
    if proposed:
        said.append(
            f"Noted: {_repeated(proposed)} I proposed it for everyone; until the operator approves, "
            "it is yours alone."
        )
    return " ".join(said)


def _known(learned: TurnChanges) -> str:
    return f"I know: {_repeated(learned.known)}" if learned.known and not learned.stored else ""


def _repeated(memories: Iterable[Memory]) -> str:
    return listed(acknowledged(memory) for memory in memories)


def _retracted(learned: TurnChanges) -> str:
    if not learned.retracted:
        return ""
    said = " ".join(said_back(memory) for memory in learned.retracted)
    return (
        f"I no longer go by this: “{said}” It stays in your history, where only you can see it; "
        "“forget everything about me” erases that too."
    )
