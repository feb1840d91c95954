"""The audit log: who read, wrote, exported or erased which kind of a user's records, when and why.
Append-only.

It is written at the store, which every access passes, so no surface can bypass it. It holds no content: users
are pseudonyms, and a record is named by its kind only. Code that acts for somebody says so with `acting`;
inside it reads and writes of each kind are logged once, and every erasure and export.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from echoic.errors import StoreError
from echoic.memory.compliance import ChainedLog, Compliance
from echoic.types import Scope

log = logging.getLogger(__name__)

Did = Literal["read", "write", "erase", "export"]
_AGAIN_S: Final = 60.0
"""Seconds in which a repeated access outside `acting` is logged only once."""
_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Actor:
    """The person or service that access is logged under."""

    role: str
    who: str
    why: str
    logged: set[tuple[str, Scope, str]] = field(default_factory=set, compare=False)


_actor: ContextVar[Actor | None] = ContextVar("echoic.audit.actor", default=None)
_job: ContextVar[str] = ContextVar("echoic.audit.job", default="")


@contextlib.contextmanager
def acting(who: str, why: str, *, role: str = "application") -> Iterator[None]:
    """Name the person or service that memory is used for inside the block, for the audit log.

    Args:
        who: such as a member of staff or a service; not a caller, whom the log names by a pseudonym.
        why: such as "ticket 4711".
        role: such as "operator".
    """
    token = _actor.set(Actor(role, who, why))
    try:
        yield
    finally:
        _actor.reset(token)


def act(role: str, who: str, why: str) -> None:
    """As `acting`, for the rest of the running task."""
    _actor.set(Actor(role, who, why))


def working(job: str) -> None:
    """Log the rest of this task under the background job `job`."""
    _actor.set(None)
    _job.set(job)


class AuditLog:
    """The audit log of one compliance folder."""

    def __init__(self, compliance: Compliance) -> None:
        self.log = ChainedLog(compliance.folder / "audit.jsonl")
        self._compliance = compliance
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="echoic-audit")
        self._waiting: list[dict[str, Any]] = []
        self._unsynced = False
        """Whether something was written that may not be on disk yet."""
        self._recently: dict[tuple[str, str, Scope, str], float] = {}
        self.failure: str | None = None
        """Why the log cannot be written at the moment; None if it can."""

    def note(self, did: Did, scope: Scope, kind: str) -> None:
        """Queue an entry, in order. Reads of the global scope concern no user and are skipped."""
        if scope.user is None and did == "read":
            return
        actor, what, job = _actor.get(), (did, scope, kind), _job.get()
        if did in {"erase", "export"}:
            pass
        elif actor is None:
            now = time.monotonic()
            if now - self._recently.get((job, *what), -_AGAIN_S) < _AGAIN_S:
                return
            if len(self._recently) > _REMEMBERED:
                self._recently = {k: at for k, at in self._recently.items() if now - at < _AGAIN_S}
            self._recently[job, *what] = now
        elif what in actor.logged:
            return
        else:
            actor.logged.add(what)
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "role": actor.role if actor else "process",
            "who": actor.who if actor else job,
            "why": actor.why if actor else "in the background" if job else "by a program that does not say",
            "did": did,
            "kind": kind,
            "deployment": scope.deployment,
            "scope": scope,
        }
        self._waiting.append(entry)
        self._thread.submit(self._write, False)

    async def flush(self) -> None:
        """Wait until every entry is on disk; after StoreUnavailable the access must not happen."""
        error = await asyncio.wrap_future(self._thread.submit(self._write, True))
        if error is not None:
            raise error

    async def aclose(self) -> None:
        """Write the remaining entries. The log can be used again afterwards."""
        await asyncio.wrap_future(self._thread.submit(self._write, True))

    def _write(self, durable: bool) -> StoreError | None:
        entries, self._waiting = self._waiting, []
        if not entries and not (durable and self._unsynced):
            return None
        told = []
        try:
            self._compliance.key()  # which creates the folder
            for entry in entries:
                scope = entry["scope"]
                whom = "everyone" if scope.user is None else self._compliance.pseudonym(scope)
                told.append({**entry, "scope": whom})
            self.log.append(*told, durable=durable)
            self._unsynced = not durable
        except StoreError as error:
            self._waiting = entries + self._waiting
            if self.failure is None:
                log.warning("the audit log cannot be written: %s", type(error).__name__)
            self.failure = type(error).__name__
            return error
        self.failure = None
        return None
