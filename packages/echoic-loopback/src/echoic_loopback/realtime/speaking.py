"""How speech of the script goes out: in chunks, the words ahead of their audio, with what happens
meanwhile."""

from __future__ import annotations

import asyncio
from typing import Protocol

from echoic_loopback.realtime.audio import Speech
from echoic_loopback.realtime.script import Says
from echoic_loopback.realtime.session import Session


class Voice(Protocol):
    """Where speech goes."""

    @property
    def over(self) -> bool:
        """It was cut; nothing more is to be said."""

    def write(self, text: str) -> None:
        """More of the transcript."""

    def sound(self, pcm: bytes) -> None:
        """More of the audio."""

    def generated(self) -> None:
        """That was all."""


async def speak(session: Session, says: Says, spoken: Speech, voice: Voice) -> None:
    """Says it, until it is said or cut. Steps due after the last sample happen once all is generated."""
    pending = sorted((session.passing_ms(at_ms), steps) for at_ms, steps in says.during)
    told = 0
    for start_ms in range(0, spoken.duration_ms, says.chunk_ms):
        while pending and pending[0][0] <= start_ms:
            for step in pending.pop(0)[1]:
                await step(session)
        if voice.over:
            return
        end_ms = min(start_ms + says.chunk_ms, spoken.duration_ms)
        due = sum(word.start_ms < end_ms for word in spoken.words) + says.lead_words
        voice.write("".join(word.text for word in spoken.words[told:due]))
        told = max(told, due)
        voice.sound(spoken.between(start_ms, end_ms))
        await session.flush()
        await asyncio.sleep((end_ms - start_ms) / 1000 * says.pace)
    voice.generated()
    await session.flush()
    for _, steps in pending:
        for step in steps:
            await step(session)


__all__ = ["Voice", "speak"]
