"""Marks memories of a call that rest on doubtful transcripts as unconfirmed.

Memories are also checked when they are learned (`memory/extraction/turns.py`), with a global threshold. A
call may have its own threshold, and the caller may affirm what the agent reads back many turns later.

OpenAI's confidence is requested in the session's settings and read from its events, because PydanticAI drops
the log probabilities of transcripts. The model here overrides the two methods that PydanticAI's own derived
models override; `tests/session/test_asr_confidence.py` fails when an upgrade moves them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.realtime.codec import RealtimeCodecEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeConnection, OpenAIRealtimeModel

from echoic.errors import WriteConflict
from echoic.memory.extraction.turns import THRESHOLD, delicate, is_sure, mentions
from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope, Turn


async def weigh(
    store: Store,
    scope: Scope,
    turns: Mapping[str, Turn],
    affirmed: Sequence[str] = (),
    *,
    threshold: float = THRESHOLD,
) -> list[Memory]:
    """Mark memories that rest on doubtful turns, and unmark those that no longer do; returns the changed
    ones.

    Args:
        store: the store.
        scope: the caller.
        turns: turns of the call so far, by id.
        affirmed: what the agent read back and the caller affirmed.
        threshold: confidence below which a turn is doubtful.

    Raises:
        StoreUnavailable: nothing was changed.
    """
    if all(is_sure(turn, threshold) for turn in turns.values()):
        return []
    changed: list[Memory] = []
    for record in await store.scan(scope, MEMORY, newest_first=True):
        memory = memory_of(record)
        cited = [turns[name] for name in memory.source if name in turns]
        if not cited or not memory.current or not delicate(memory):
            continue
        others = len(cited) < len(memory.source)
        sure = others or any(is_sure(turn, threshold) for turn in cited)
        sure = sure or any(mentions(text, memory) for text in affirmed)
        if memory.confirmed != sure and await _mark(store, scope, record, memory, sure=sure):
            changed.append(replace(memory, confirmed=sure))
    return changed


def confidence_of(logprobs: Sequence[float]) -> float | None:
    """A turn's confidence: that of its least certain token, since one wrong letter spoils a name."""
    return min(1.0, math.exp(min(logprobs))) if logprobs else None


async def _mark(store: Store, scope: Scope, record: Record, memory: Memory, *, sure: bool) -> bool:
    marked = record_of_memory(replace(memory, confirmed=sure))
    number = record.data.get("number")
    data = dict(marked.data) | ({"number": number} if number is not None else {})
    try:
        await store.write(scope, [Put.over(record, replace(marked, data=data))])
    except WriteConflict:
        return False  # changed meanwhile; the next turn checks again
    return True


LOGPROBS: Final = "item.input_audio_transcription.logprobs"
_COMPLETED: Final = "conversation.item.input_audio_transcription.completed"
_KEPT: Final = 32


class Confidences:
    """The speech recogniser's confidence in recent transcripts."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, float] = OrderedDict()

    def heard(self, transcript: str, confidence: float) -> None:
        """Record the confidence in a transcript."""
        self._of[transcript.strip()] = confidence
        while len(self._of) > _KEPT:
            self._of.popitem(last=False)

    def of(self, transcript: str) -> float | None:
        """The confidence in a transcript; None if the recogniser gave none."""
        return self._of.get(transcript.strip())


def with_confidence(model: RealtimeModel, confidences: Confidences) -> RealtimeModel:
    """`model`, reporting transcripts' confidence to `confidences`; unchanged if its provider reports none."""
    if type(model) is not OpenAIRealtimeModel:
        return model
    sure = _SureModel.__new__(_SureModel)
    sure.__dict__.update(model.__dict__)
    sure.confidences = confidences
    return sure


class _SureModel(OpenAIRealtimeModel):
    confidences: Confidences

    def _session_config(self, *args: Any, **named: Any) -> dict[str, Any]:
        config = super()._session_config(*args, **named)
        if "transcription" in config["audio"]["input"]:
            config["include"] = [*config.get("include", []), LOGPROBS]
        return config

    def _connection_class(self, model_settings: Any) -> type[OpenAIRealtimeConnection]:
        base: Any = super()._connection_class(model_settings)
        told = self.confidences

        def _map_event(connection: Any, data: dict[str, Any]) -> RealtimeCodecEvent | None:
            if data.get("type") == _COMPLETED and data.get("logprobs"):
                sure = confidence_of([token["logprob"] for token in data["logprobs"]])
                if sure is not None:
                    told.heard(str(data.get("transcript", "")), sure)
            mapped: RealtimeCodecEvent | None = base._map_event(connection, data)  # noqa: SLF001 - overridden here
            return mapped

        return type("SureConnection", (base,), {"_map_event": _map_event})
