"""What is being said, word by word, for whoever shows it while it is spoken. What is kept are turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic_ai.messages import PartDeltaEvent, PartEndEvent, PartStartEvent, SpeechPart, SpeechPartDelta
from pydantic_ai.realtime import RealtimeEvent

from echoic.session.leg import Leg


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """All that is known by now of one thing that is said."""

    id: str
    """Of the turn it becomes."""
    speaker: Literal["user", "agent"]
    agent: str
    """Who serves."""
    text: str
    final: bool
    """Whether no more words will come. How much of an agent's words is heard, the turn tells."""


Captions = Callable[[Caption], None]
"""Told each; must not wait."""


def caption_of(leg: Leg, event: RealtimeEvent) -> Caption | None:
    """What an event adds, once `leg` has taken it in; None: no words."""
    if isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
        return _caption(leg, event.index, event.part.speaker, final=isinstance(event, PartEndEvent))
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
        if event.delta.transcript is None:
            return None
        return _caption(leg, event.index, event.delta.speaker, final=False)
    return None


def _caption(leg: Leg, index: int, speaker: str | None, *, final: bool) -> Caption | None:
    agent = leg.setup.agent.name
    if speaker == "assistant":
        utterance = leg.utterances.get(index)
        if utterance is None or not utterance.trace.text:
            return None
        return Caption(
            id=utterance.turn_id, speaker="agent", agent=agent, text=utterance.trace.text, final=final
        )
    said = leg.said.get(index)
    if said is None or not said.text:
        return None
    return Caption(id=said.turn_id, speaker="user", agent=agent, text=said.text, final=final)


__all__ = ["Caption", "Captions", "caption_of"]
