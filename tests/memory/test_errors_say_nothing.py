"""What somebody said stands in no message of an error and in no log; and no message is long, whatever was given."""

from __future__ import annotations

import inspect
import logging
import re
from datetime import UTC, datetime

import pytest

import echoic
from echoic import Turn
from echoic.errors import MESSAGE_CHARACTERS, EchoicError, InvalidInput, bounded, brief
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.conversation import OpenConversation
from echoic.memory.experience import AgentExperience
from echoic.memory.proposals import Proposals
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.types import (
    Directives,
    Scope,
    checked_category,
    checked_name,
    checked_query,
    checked_sharing,
    checked_text,
    checked_time,
)

CANARY = "zanzibar giraffe"
BOUND = 2 * MESSAGE_CHARACTERS  # escapes are longer than what they stand for
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


class Hostile:
    """Says what was said wherever it is shown."""

    def __repr__(self) -> str:
        return CANARY * 100_000

    __str__ = __repr__


HOSTILE = {
    "newlines": "\n" * 2_000_000,
    "long": CANARY * 50_000,
    "nul": f"{CANARY}\0",
    "surrogate": f"{CANARY}\ud800",
    "terminal": f"\x1b[2J{CANARY}\r\n\u202e" * 5_000,
    "bytes": CANARY.encode() * 50_000,
    "list": [CANARY] * 50_000,
    "mapping": {CANARY: CANARY * 50_000},
    "object": Hostile(),
    "naive": datetime(2026, 1, 1),  # noqa: DTZ001 - a time without a zone
    "number": 10**400,
    "nothing": None,
}

VALID = {
    "key": "pet",
    "value": "a goat",
    "text": "a goat",
    "name": "pet",
    "kind": "strategy",
    "user": "ana",
    "agent": "films",
    "conversation_id": "c",
    "conversation": "c",
    "exported": {},
    "turn": Turn(speaker="user", text="A goat."),
    "turns": [],
    "heard": "A goat.",
    "status": "completed",
    "proposal_id": "a-b",
    "memory_id": "a",
    "lesson_id": "a-b",
    "model": None,
    "recall": None,
    "result": None,
    "hook": print,
    "id": "a",
}
LEFT_OUT = {"open", "aclose", "remove_hook", "settle", "listen", "distil", "distil_due", "reindex"}
"""Verbs that take no text, or end what the others need."""


def named_only(message: str) -> str:
    """`message` without what it shows of names, which are bounded by themselves."""
    return re.sub(r"'(?:[^'\\]|\\.)*'…?|\"(?:[^\"\\]|\\.)*\"…?", "", message)


NAMES = frozenset(
    """key name user deployment agent conversation_id conversation id status timezone proposal_id memory_id
    lesson_id by after since until budget_tokens deadline_ms limit kind category model level""".split()
)
"""Names and settings, which a message may show, bounded; of what people say nothing may stand in it."""


def check(error: BaseException, parameter: str = "") -> None:
    message = str(error)
    assert parameter in NAMES or CANARY not in message, (parameter, message)
    assert len(message) <= BOUND, f"{type(error).__name__}: {len(message)} characters"
    assert not CONTROL.search(message)
    assert CANARY not in named_only(message), message
    assert message.count(CANARY) <= 80 // len(CANARY) + 1, message


def verbs(handle):
    for name, verb in inspect.getmembers(handle, callable):
        if not name.startswith("_") and name not in LEFT_OUT:
            try:
                yield name, verb, inspect.signature(verb).parameters
            except (TypeError, ValueError):
                continue


async def tried(verb, *args, **named):
    try:
        answer = verb(*args, **named)
        if inspect.isawaitable(answer):
            await answer
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_verb_repeats_what_it_was_given(what, caplog):
    caplog.set_level(logging.DEBUG)
    raised = 0
    async with echoic.open("memory://", embedder="lexical") as memory:
        for make in (
            lambda: memory,
            lambda: memory.user("ana"),
            memory.proposals,
            lambda: memory.experience("films"),
            lambda: memory.user("ana").conversation("c", agent="films"),
        ):
            handle = make()
            handle = await handle if inspect.isawaitable(handle) else handle
            assert isinstance(
                handle, MemoryService | UserMemory | Proposals | AgentExperience | OpenConversation
            )
            for name, verb, parameters in verbs(handle):
                for hostile in parameters:
                    named = {
                        p.name: HOSTILE[what] if p.name == hostile else VALID.get(p.name)
                        for p in parameters.values()
                        if p.name == hostile
                        or (p.default is p.empty and p.kind not in {p.VAR_KEYWORD, p.VAR_POSITIONAL})
                    }
                    error = await tried(verb, **named)
                    if isinstance(error, EchoicError):
                        raised += 1
                        check(error, hostile)
                    elif error is not None and CANARY in str(error):
                        check(error)  # what Python says of a value of a wrong kind names its type alone
                    assert CANARY not in caplog.text, name
    assert raised > 20


@pytest.mark.parametrize("what", HOSTILE)
def test_no_noun_repeats_what_it_was_given(what):
    hostile = HOSTILE[what]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for make in (
        lambda: Turn(speaker="user", text=hostile),
        lambda: Turn(speaker="agent", text="A goat.", heard=hostile),
        lambda: Directives(free={"tone": hostile}),
        lambda: Directives(pacing=hostile),
        lambda: checked_text(hostile, "value"),
        lambda: checked_query(hostile),
    ):
        try:
            make()
        except InvalidInput as error:
            check(error, "text")
        except (TypeError, AttributeError) as error:
            assert CANARY not in str(error)
    for make in (
        lambda: Turn(speaker=hostile, text="A goat."),
        lambda: Turn(speaker="user", text="A goat.", id=hostile),
        lambda: Turn(speaker="user", text="A goat.", confidence=hostile),
        lambda: Turn(speaker="user", text="A goat.", said_at=hostile),
        lambda: Scope(hostile, None),
        lambda: Scope("default", hostile),
        lambda: Directives(language=hostile),
        lambda: Checkpoint(session=hostile, conversation="c", agent="a", messages="[]", saved_at=now),
        lambda: PendingTool(call="c", name="n", arguments=hostile),
        lambda: checked_name(hostile, "key"),
        lambda: checked_time(hostile, "since"),
        lambda: checked_category(hostile),
        lambda: checked_sharing(hostile),
        lambda: echoic.open("memory://", embedder="lexical", global_kinds=[hostile], global_writes="auto"),
        lambda: echoic.open(f"{hostile!s:.50}://"),
    ):
        try:
            make()
        except InvalidInput as error:
            check(error, "name")
        except (TypeError, AttributeError) as error:
            assert CANARY not in str(error)


async def test_what_the_agent_said_is_in_no_message_when_it_was_cut_otherwise():
    async with echoic.open("memory://", embedder="lexical") as memory:
        call = await memory.user("ana").conversation("c")
        await call.append(Turn(speaker="agent", text="Your goat is well.", id="t"))
        for heard in (CANARY, f"Your goat is well. {CANARY}"):
            error = await tried(call.cut_to_heard, heard) if hasattr(call, "cut_to_heard") else None
            for name, verb, parameters in verbs(call):
                if "heard" in parameters:
                    error = await tried(verb, heard)
                    assert error is None or CANARY not in str(error), name


async def test_an_export_that_cannot_be_read_is_not_quoted():
    async with echoic.open("memory://", embedder="lexical") as memory:
        await memory.user("ana").set("pet", "a goat")
        exported = await memory.user("ana").export()
        for field in (
            "valid_from",
            "text",
            "category",
            "visibility",
            "reason",
            "author",
            "redacted",
            "source",
        ):
            for hostile in (CANARY, [CANARY], {CANARY: 1}, f"{CANARY}\0"):
                changed = {**exported, "memories": [{**exported["memories"][0], field: hostile}]}
                error = await tried(memory.user("bob").restore, changed)
                assert error is None or CANARY not in str(error), field


def test_a_name_in_a_message_is_quoted_escaped_and_cut():
    assert brief("pet") == "'pet'"
    assert brief("x" * 500) == f"'{'x' * 80}'…"
    assert len(brief("\x1b" * 500)) <= 170
    assert brief("a\nb") == r"'a\nb'"
    assert brief(7) == "7"
    assert len(brief(10**400)) <= 80
    assert brief(Hostile()) == "a value of type Hostile"


@pytest.mark.parametrize("given", ["\n" * 2_000_000, "x" * 2_000_000, "\x1b[2J", "\u202e"])
def test_every_message_is_bounded_and_on_one_line(given):
    for kind in (InvalidInput, echoic.errors.StoreUnavailable, echoic.errors.EmbedderMissing):
        assert len(str(kind(given))) <= 6 * MESSAGE_CHARACTERS
        assert not CONTROL.search(str(kind(given)))
    assert bounded("plain words") == "plain words"
