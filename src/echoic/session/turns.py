"""From what a provider's session remembers to turns: whose words a part is, and what of it was heard.

Nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SpeechPart,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

from echoic.checks import storable
from echoic.prompt.block import parts_in
from echoic.session.call_record import Exchange, Spoken
from echoic.session.history import looked_up, utterance_of
from echoic.session.playback import Utterance
from echoic.session.provider_session import CallerUtterance, Leg
from echoic.types import Turn

NOTHING: Final = Turn(speaker="agent", text="-")
"""Stands for a part in which nothing was said."""


def resumption_of(leg: Leg) -> str | None:
    """The handle Gemini gave for this session, if any. A hint that nothing depends on.

    PydanticAI keeps it to itself; `tests/session/test_resume.py` fails when an upgrade moves it.
    """
    connection = getattr(leg.session if leg.is_open else None, "_connection", None)
    handle = getattr(connection, "_resumption_handle", None)
    return handle if isinstance(handle, str) else None


def parts_of(messages: Sequence[ModelMessage]) -> list[tuple[ModelMessage, Any]]:
    """What was spoken or typed, in order."""
    return [
        (message, part)
        for message in messages
        for part in message.parts
        if isinstance(part, (SpeechPart, UserPromptPart)) and not looked_up(part)
    ]


def whose(
    part: Any, spoken: list[Utterance], said: list[CallerUtterance]
) -> tuple[Utterance | None, CallerUtterance | None]:
    """What is known of a part of the history besides its words; taken out of the lists."""
    if isinstance(part, SpeechPart) and part.speaker == "assistant":
        return utterance_of(part, spoken), None
    text = text_of(part)
    typed = isinstance(part, UserPromptPart)
    alike = next((one for one in said if one.text == text and one.final), None)
    found = alike or (None if typed else next((one for one in said if one.final), None))
    if found is not None:
        said.remove(found)
    return None, found


def agent_turn(text: str, utterance: Utterance | None, leg: Leg, place: int) -> Turn | None:
    """What the agent said, divided into heard and unheard; None where it said nothing."""
    text = storable(text)
    if not text.strip():
        return None
    if utterance is None:
        return Turn(speaker="agent", text=text, id=f"{leg.name}-{place}")
    divided = utterance.divided()
    whole = divided.source == "whole" or divided.heard == text
    return Turn(
        speaker="agent",
        text=text,
        heard=None if whole else storable(divided.heard),
        said_at=utterance.started_at,
        id=utterance.turn_id,
    )


def unrecorded(leg: Leg) -> list[ModelMessage]:
    """What is being said right now, for the history of whoever goes on."""
    recorded = list(leg.utterances.values()), list(leg.said.values())
    for _, part in parts_of(leg.new_messages()):
        whose(part, *recorded)
    spoken, said = recorded
    open_: list[tuple[datetime, ModelMessage]] = [
        (one.at, ModelRequest(parts=[SpeechPart(speaker="user", transcript=one.text)]))
        for one in said
        if one.text.strip()
    ]
    for one in spoken:
        heard = one.divided().heard
        if heard.strip():
            part = SpeechPart(speaker="assistant", transcript=heard)
            open_.append((one.started_at, ModelResponse(parts=[part], state="interrupted")))
    return [message for _, message in sorted(open_, key=lambda pair: pair[0])]


def note_turn(exchange: Exchange, turn: Turn, utterance: Utterance | None) -> None:
    """Write into the record of an exchange that `turn` was kept."""
    if turn.speaker == "user":
        exchange.user_turn = turn.id
        if exchange.recall is not None:
            exchange.recall = replace(exchange.recall, turn_id=turn.id)
        return
    rate = 2 * utterance.trace.rate_hz / 1000 if utterance else 1.0
    exchange.spoken.append(
        Spoken(
            turn=turn.id,
            played_ms=utterance.played_bytes / rate if utterance else 0.0,
            generated_ms=utterance.trace.audio_ms if utterance else 0.0,
            source=utterance.divided().source if utterance else "whole",
        )
    )


def given_in(messages: Sequence[ModelMessage]) -> list[tuple[str, str, str]]:
    """What a model was given in `messages` beside what was spoken: role, name and text of each."""
    given: list[tuple[str, str, str]] = []
    for part in (part for message in messages if isinstance(message, ModelRequest) for part in message.parts):
        if memory := looked_up(part):
            given += [("memory", name, text) for name, text in parts_in(memory).items()]
        elif isinstance(part, SystemPromptPart):
            given.append(("system-prompt", "", part.content))
        elif isinstance(part, ToolReturnPart):
            given.append(("tool-return", part.tool_name, part.model_response_str()))
        elif part.part_kind.startswith("instruction"):
            content: Any = getattr(part, "content", None)
            if isinstance(content, str) and content:
                given.append((part.part_kind, getattr(part, "name", None) or "", content))
    return given


def text_of(part: Any) -> str:
    """The words of a part."""
    if isinstance(part, SpeechPart):
        return part.transcript or ""
    content = part.content
    return (
        content if isinstance(content, str) else " ".join(each for each in content if isinstance(each, str))
    )
