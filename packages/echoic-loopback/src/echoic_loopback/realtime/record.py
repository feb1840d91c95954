"""What went over a line, when, and what was wrong with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Side = Literal["client", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One message, as it was sent, except that audio is its number of bytes (see `Session.input_audio`)."""

    at_s: float
    """By `time.monotonic()`."""
    by: Side
    kind: str
    """The provider's name of it: `response.create`, `realtimeInput.audio`."""
    body: Mapping[str, Any]
    line: int = 0
    """Which of the session's connections: 0 is the first, later ones are sidebands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something a client sent that the provider would not take."""

    code: str
    """As the provider codes it, or ours where the provider's is not known."""
    message: str
    kind: str
    """Of the event, empty where it could not be read."""
    body: Any = None
    session: int = 0


@dataclass(slots=True)
class Record:
    """Everything said on one session, in order."""

    limit: int | None = None
    """How many of the last events are kept at least, and at most twice as many; all where None."""
    events: list[Event] = field(default_factory=list)
    forgotten: int = 0
    """Events that were there before those that are."""

    @property
    def position(self) -> int:
        """How many events there have been."""
        return self.forgotten + len(self.events)

    def since(self, position: int) -> list[Event]:
        """The events after the first `position`, as far as they are kept."""
        return self.events[max(0, position - self.forgotten) :]

    def add(self, by: Side, kind: str, body: Mapping[str, Any], *, line: int = 0) -> Event:
        event = Event(at_s=time.monotonic(), by=by, kind=kind, body=body, line=line)
        self.events.append(event)
        if self.limit is not None and len(self.events) >= 2 * self.limit:
            self.forgotten += len(self.events) - self.limit
            del self.events[: -self.limit]
        return event

    def received(self, kind: str | None = None) -> list[Event]:
        """What the client sent, all or of one kind."""
        return list(self._by("client", kind))

    def sent(self, kind: str | None = None) -> list[Event]:
        """What the stand-in sent, all or of one kind."""
        return list(self._by("server", kind))

    def kinds(self, by: Side) -> list[str]:
        """Only the names, in order."""
        return [event.kind for event in self.events if event.by == by]

    def _by(self, by: Side, kind: str | None) -> Iterator[Event]:
        return (event for event in self.events if event.by == by and kind in (None, event.kind))


class ScriptStuck(Exception):
    """A script waited longer than the server's patience for something the client did not do."""


class LoopbackFailure(AssertionError):
    """What a client did wrong or a script could not do, raised where the server is left.

    `violations` has what the provider would have refused, `faults` what went wrong in scripts and handlers.
    """

    def __init__(self, violations: list[Violation], faults: list[BaseException]) -> None:
        self.violations = violations
        self.faults = faults
        lines = [f"{v.code}: {v.message} (session {v.session}, {v.kind or 'unreadable'})" for v in violations]
        lines += [f"{type(fault).__name__}: {fault}" for fault in faults]
        super().__init__("\n".join(["the loopback session went wrong", *lines]))


__all__ = ["Event", "LoopbackFailure", "Record", "ScriptStuck", "Side", "Violation"]
