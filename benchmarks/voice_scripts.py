"""What happens on the calls of `benchmarks.voice`: steps and scripts that another process can import."""

# ruff: noqa: B023 - what is waited for is this round's

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Any

from echoic_loopback.openai_realtime import OpenAISession
from echoic_loopback.openai_realtime.transcripts import KIND as TRANSCRIPTION
from echoic_loopback.realtime import Says, Script, UserSays

WORD_MS = 400
"""150 words a minute."""
SILENCE_MS = 500
"""OpenAI's detector ends a turn after so much silence, by default."""
PAUSES_MS = (400, 1400)
"""Between the agent's last chunk and the caller's first word; of several callers none in step."""
LATE_WORD_MS = 20
"""From word to word, where a recogniser begins when the turn has ended."""
SPEED = 4
"""Of lines on which nothing is timed: silence is sent, and speech generated, faster than life."""
UNDER_WAY = 0.3
"""Share of the replies that are cut while they are still being generated."""
QUIET_MS = 4000
"""Of silence before the caller interrupts a reply that is all there: what is on its way when the microphone
is muted must not count."""
WORDS = "a an on at of the and gate seven flight table booked representative international o'clock".split()


@dataclass(frozen=True, slots=True)
class WordByWord:
    """The user says it, and a recogniser shows it word by word.

    `late`: not while it is said but afterwards, all words in a row, and then that this is all.
    """

    text: str
    after_ms: int
    late: bool = False

    async def __call__(self, session: Any) -> None:
        words = self.text.split()
        pieces = [word if not place else f" {word}" for place, word in enumerate(words)]
        lasts_ms = len(words) * WORD_MS + SILENCE_MS
        session.speech_began_ms = None
        showing = asyncio.create_task(self._show(session, pieces)) if not self.late else None
        is_openai = isinstance(session, OpenAISession)
        held = UserSays(
            self.text, after_ms=self.after_ms, lasts_ms=lasts_ms, final="held" if is_openai else "missing"
        )
        await session.hear(held)
        if showing is None:
            for piece in pieces:
                self._emit(session, piece)
                await asyncio.sleep(LATE_WORD_MS / 1000)
        else:
            await showing
        if is_openai:
            await session.release_transcripts()

    async def _show(self, session: Any, pieces: list[str]) -> None:
        await session.until(lambda: session.speech_began_ms is not None, "the user to speak")
        for number, piece in enumerate(pieces):
            due_ms = session.speech_began_ms + (number + 1) * WORD_MS
            await session.until(lambda: session.input_ms >= due_ms, "a word to be spoken")
            self._emit(session, piece)

    def _emit(self, session: Any, piece: str) -> None:
        if isinstance(session, OpenAISession):
            item = session.record.sent("input_audio_buffer.speech_started")[-1].body["item_id"]
            session.emit(f"{TRANSCRIPTION}.delta", item_id=item, content_index=0, delta=piece)
        else:
            session.emit(serverContent={"inputTranscription": {"text": piece}})


@dataclass(frozen=True, slots=True)
class Reply:
    says: Says
    lengths: tuple[int, ...]
    cut_ms: int
    under_way: bool
    """Whether it is cut while it is still being generated."""


def random_reply(rng: random.Random) -> Reply:
    words = rng.choices(WORDS, k=rng.randint(6, 20))
    while words[0] == words[1]:
        # PydanticAI 2.68 takes a second piece that begins like all before it for the whole so far, and
        # doubles the text: a fault of transcripts, not of where they are cut
        words = rng.choices(WORDS, k=len(words))
    text = " ".join(words)
    lengths = tuple(int((60 + 45 * len(word)) * rng.uniform(0.8, 1.25)) for word in text.split())
    says = Says(
        text,
        word_ms=lengths,
        gap_ms=rng.choice((0, 0, 0, 60)),
        lead_words=rng.choice((0, 0, 2, 4)),
        chunk_ms=rng.choice((40, 100, 400)),
    )
    duration_ms = sum(lengths) + says.gap_ms * len(lengths)
    return Reply(says, lengths, rng.randint(20, duration_ms - 20), under_way=rng.random() < UNDER_WAY)


def cut_off(reply: Reply) -> Script[Any]:
    wait = UserSays("wait", after_ms=1 if reply.under_way else QUIET_MS)
    says = (
        [replace(reply.says, pace=1 / SPEED).at(reply.cut_ms, wait)]
        if reply.under_way
        else [reply.says, wait]
    )
    return Script(UserSays("go on", after_ms=300), *says, Says("yes"), open_ended=True)


class InTurn:
    """A question and an answer, counted on the stand-in's session."""

    async def __call__(self, session: Any) -> None:
        number = getattr(session, "heard_turns", 0)
        await session.hear(UserSays(f"this is sentence number {number}", after_ms=800, lasts_ms=400))
        session.heard_turns = number + 1
        await Says(f"answer number {number}")(session)
