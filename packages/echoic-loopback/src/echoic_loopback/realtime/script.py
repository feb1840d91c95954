"""What happens on a scripted call, as plain values: who says what, when, and what goes wrong.

A step is anything that can be called with the session and awaited; those here work on every provider's. A
step of your own is a coroutine function. Nothing is spoken unasked: a reply waits until the provider would
speak, that is for the end of the user's turn, for the client's request, or for the results of its tool
calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from echoic_loopback.realtime.audio import Speech, speech
from echoic_loopback.realtime.record import Event, Record


class Stage(Protocol):
    """What steps act on: a session, of whichever provider."""

    record: Record
    step_began: int
    speed: float

    async def hear(self, said: UserSays) -> None:
        """Hears a turn of the user."""

    async def release_transcripts(self) -> None:
        """Sends the transcripts that were held back."""

    async def reply(self, reply: Reply) -> None:
        """Answers, as soon as an answer is due."""

    async def send_raw(self, body: Mapping[str, Any] | str | bytes) -> None:
        """Sends a message that nobody checked."""

    async def drop(self) -> None:
        """Cuts every connection, after what was sent before is delivered."""

    async def close(self, code: int, reason: str) -> None:
        """Closes every connection with a close frame."""

    async def until(self, ready: Callable[[], bool], what: str) -> None:
        """Waits for the client; `what` is told if it does not come."""


S = TypeVar("S", bound=Stage)
S_contra = TypeVar("S_contra", bound=Stage, contravariant=True)
Step: TypeAlias = Callable[[S], Awaitable[None]]
Final: TypeAlias = Literal["on_time", "held", "missing", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The handshake is answered with an HTTP error instead."""

    status: int
    message: str
    retry_after_s: int | None = None


class Script(Generic[S_contra]):
    """The steps of one session, and how its connection begins.

    Args:
        steps: in order; the next begins when the one before it is over.
        accept_after_s: until the WebSocket handshake is answered.
        ready_after_s: from then until the session says it is ready.
        refuse: answer the handshake with an HTTP error.
        open_ended: what is asked after the last step is left unanswered; without it, it is a fault.
    """

    def __init__(
        self,
        *steps: Callable[[S_contra], Awaitable[None]],
        accept_after_s: float = 0.0,
        ready_after_s: float = 0.0,
        refuse: Refusal | None = None,
        open_ended: bool = False,
    ) -> None:
        self.steps = steps
        self.accept_after_s = accept_after_s
        self.ready_after_s = ready_after_s
        self.refuse = refuse
        self.open_ended = open_ended


@dataclass(frozen=True, slots=True)
class UserSays:
    """The user speaks a turn, and the provider hears and transcribes it.

    Speech starts when `after_ms` of audio came in since the stand-in last said anything, and stops
    `lasts_ms` later: a client that sends nothing is never heard. With `by_voice` the loudness of the audio
    decides. Where the client ends turns itself, its commit does.
    """

    text: str
    """The whole transcript."""
    after_ms: int = 100
    lasts_ms: int = 200
    by_voice: bool = False
    partials: tuple[str, ...] = ()
    """Pieces of the transcript that come before it is complete; joined they should be a beginning of
    `text`."""
    early: bool = False
    """The partials come while the user still speaks, not after."""
    final: Final = "on_time"
    """`held`: it comes with the `HeldTranscripts` step, that is late. `failed`: an event says so, where
    there is one."""
    copies: int = 1
    """How often the complete transcript is sent."""
    confidence: float | None = None
    """Of every word, 0 to 1, where the provider tells it and the client asked for it."""

    async def __call__(self, session: Stage) -> None:
        await session.hear(self)


@dataclass(frozen=True, slots=True)
class HeldTranscripts:
    """The transcripts held back so far arrive."""

    async def __call__(self, session: Stage) -> None:
        await session.release_transcripts()


@dataclass(frozen=True, slots=True)
class Says:
    """The agent speaks. The audio is `speech(text)`: which word sounds when is known (see `audio`)."""

    text: str
    word_ms: int | tuple[int, ...] = 200
    gap_ms: int = 0
    chunk_ms: int = 100
    """Audio in one event. Chunks and words have nothing to do with each other, as in life."""
    pace: float = 0.0
    """Of generation: 0 at once, 1 as fast as it is spoken."""
    lead_words: int = 0
    """By how many words the transcript runs ahead of the audio."""
    during: tuple[tuple[int, tuple[Step[Any], ...]], ...] = field(default=(), repr=False)

    def at(self, ms: int, *steps: Step[Any]) -> Says:
        """The same, but when `ms` of audio have been sent, `steps` happen; generation goes on after them."""
        return replace(self, during=(*self.during, (ms, steps)))

    def speech(self, rate_hz: int, *, speed: float = 1.0) -> Speech:
        lengths_ms = (self.word_ms,) if isinstance(self.word_ms, int) else self.word_ms
        scaled = [round(length_ms / speed) for length_ms in lengths_ms]
        words = scaled[0] if isinstance(self.word_ms, int) else scaled
        return speech(self.text, rate_hz=rate_hz, word_ms=words, gap_ms=round(self.gap_ms / speed))

    async def __call__(self, session: Stage) -> None:
        await session.reply(Reply(self))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A string is sent as it is, well-formed or not, where the provider sends arguments as text."""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """The agent calls tools, all in one reply."""

    calls: tuple[ToolCall, ...]

    def __init__(self, *calls: ToolCall) -> None:
        object.__setattr__(self, "calls", calls)

    async def __call__(self, session: Stage) -> None:
        await session.reply(Reply(self))


@dataclass(frozen=True, slots=True)
class Reply:
    """One response with several outputs: speech, then tool calls, say."""

    outputs: tuple[Says | Calls, ...]

    def __init__(self, *outputs: Says | Calls) -> None:
        object.__setattr__(self, "outputs", outputs)

    async def __call__(self, session: Stage) -> None:
        await session.reply(self)


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing happens for a while: silence on the line."""

    seconds: float

    async def __call__(self, session: Stage) -> None:
        await asyncio.sleep(self.seconds / session.speed)


@dataclass(frozen=True, slots=True)
class Drop:
    """The network is lost: no close frame, no goodbye."""

    async def __call__(self, session: Stage) -> None:
        await session.drop()


@dataclass(frozen=True, slots=True)
class Close:
    """The provider closes the connection."""

    code: int = 1000
    reason: str = ""

    async def __call__(self, session: Stage) -> None:
        await session.close(self.code, self.reason)


@dataclass(frozen=True, slots=True)
class ClientSends:
    """Waits until the client sent an event of this kind, since the step before began."""

    kind: str
    where: Callable[[Event], bool] = lambda _: True

    async def __call__(self, session: Stage) -> None:
        seen = session.step_began

        def arrived() -> bool:
            return any(
                event.by == "client" and event.kind == self.kind and self.where(event)
                for event in session.record.since(seen)
            )

        await session.until(arrived, f"the client to send {self.kind!r}")


@dataclass(frozen=True, slots=True)
class SendsRaw:
    """Sends a message as it is, right or wrong. The only way to make a stand-in break the protocol."""

    body: Mapping[str, Any] | str | bytes

    async def __call__(self, session: Stage) -> None:
        await session.send_raw(self.body)


class Together(Generic[S_contra]):
    """Steps that happen at the same time. Over when all are."""

    def __init__(self, *steps: Callable[[S_contra], Awaitable[None]]) -> None:
        self.steps = steps

    async def __call__(self, session: S_contra) -> None:
        async with asyncio.TaskGroup() as group:
            for step in self.steps:
                group.create_task(_awaited(step(session)))


class InOrder(Generic[S_contra]):
    """Steps one after the other, as one step."""

    def __init__(self, *steps: Callable[[S_contra], Awaitable[None]]) -> None:
        self.steps = steps

    async def __call__(self, session: S_contra) -> None:
        for step in self.steps:
            await step(session)


class Repeat(Generic[S_contra]):
    """A step again and again, `times` or for ever."""

    def __init__(self, step: Callable[[S_contra], Awaitable[None]], *, times: int | None = None) -> None:
        self.step = step
        self.times = times

    async def __call__(self, session: S_contra) -> None:
        done = 0
        while self.times is None or done < self.times:
            await self.step(session)
            done += 1


async def _awaited(step: Awaitable[None]) -> None:
    await step


__all__ = [
    "Calls",
    "ClientSends",
    "Close",
    "Drop",
    "Final",
    "HeldTranscripts",
    "InOrder",
    "Pause",
    "Refusal",
    "Repeat",
    "Reply",
    "Says",
    "Script",
    "SendsRaw",
    "Stage",
    "Step",
    "Together",
    "ToolCall",
    "UserSays",
]
