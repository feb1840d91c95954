"""Retries after write conflicts, periodic sweeps, and coalesced runs for each user."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar

from echoic.errors import StoreUnavailable, WriteConflict, brief
from echoic.memory.audit import working
from echoic.types import Scope

T = TypeVar("T")
log = logging.getLogger(__name__)

_CANCEL_AGAIN_S = 30.0
"""Long enough for what a cancelled task has to put away."""
_ATTEMPTS = 40
"""An attempt fails only if another writer succeeded, so this many failures mean overload."""


async def load(*modules: str) -> None:
    """Import `modules` in a thread, so that their first use does not delay audio."""
    for name in modules:
        if name not in sys.modules:
            await asyncio.to_thread(import_module, name)


async def until_written(attempt: Callable[[], Awaitable[T]], what: str, name: str | None = None) -> T:
    """Retry `attempt` after `WriteConflict`; StoreUnavailable after too many, with nothing written.

    The message says that `what` kept changing, which has the key or id `name`, if it is one of many.
    """
    for number in range(_ATTEMPTS):
        try:
            return await attempt()
        except WriteConflict:
            # random, so that writers do not collide again; short, since a caller waits
            await asyncio.sleep(random.uniform(0, 0.002 * number))  # noqa: S311 - no secret
    what = what if name is None else f"{what} {brief(name)}"
    raise StoreUnavailable(f"{what} kept changing while it was written ({_ATTEMPTS} attempts); try again")


async def stop_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel `tasks`, except the one that asks, and wait for their end, cancelling again what goes on.

    Code of others may lose a cancellation, as asyncio.wait_for of Python 3.11 does with one that arrives
    together with a result; a loop around it would go on, and closing would wait for ever.
    """
    left = {*tasks} - {asyncio.current_task()}
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_S)
        for task in done:
            noted(task)


class Sweeper:
    """Runs `sweep` in the background `after_s` after the start, and then every `every_s` (None: only once).

    `later` says in the log what a failed sweep postpones; `job` is its name in the audit log. Without a
    `sweep` nothing runs.
    """

    def __init__(
        self,
        sweep: Callable[[], Awaitable[object]] | None,
        *,
        after_s: float,
        every_s: float | None = None,
        later: str,
        job: str,
    ) -> None:
        self._job = job
        self._sweep, self._after_s, self._every_s, self._later = sweep, after_s, every_s, later
        self._sweeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start. May be called twice."""
        if self._sweeping is None and self._sweep is not None:
            self._sweeping = asyncio.create_task(self._run(self._sweep), name="echoic-sweep")

    async def aclose(self) -> None:
        """Stop at once; the next process does the rest. May be called twice."""
        if self._sweeping is not None:
            await stop_tasks([self._sweeping])
            self._sweeping = None

    def abandon(self) -> None:
        """Drop the task of an event loop that has ended."""
        self._sweeping = None

    async def _run(self, sweep: Callable[[], Awaitable[object]]) -> None:
        working(self._job)
        await asyncio.sleep(self._after_s)
        while True:
            try:
                await sweep()
            except Exception as error:  # noqa: BLE001 - the outermost frame: nothing ends this task unseen
                log.warning("%s: %s later", type(error).__name__, self._later)
            if self._every_s is None:
                return
            await asyncio.sleep(self._every_s)


AT_ONCE: Final = 4
"""Users worked for at the same time: model answers are awaited in parallel, within rate limits."""

Wanted = Mapping[str, bool]
"""The names requested for a run, and whether each is urgent."""


class RunsPerUser:
    """Coalesces requests into runs, one at a time for each user and `at_once` users in parallel.

    `work` handles everything in a `Wanted` for one user and returns the names to request again, with the
    seconds after which. It must not raise.
    """

    def __init__(
        self, work: Callable[[Scope, Wanted], Awaitable[Mapping[str, float]]], at_once: int = AT_ONCE
    ) -> None:
        self._work = work
        self._at_once = asyncio.Semaphore(at_once)
        self._wanted: dict[Scope, dict[str, bool]] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] = {}
        self._timers: dict[tuple[Scope, str], asyncio.TimerHandle] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing is requested and nothing runs; requests planned for later do not count."""
        return not self._tasks

    def want(self, scope: Scope, name: str, *, urgent: bool = False) -> None:
        """Request `name` for `scope`: done in the next run, which starts now unless one is in progress."""
        wanted = self._wanted.setdefault(scope, {})
        wanted[name] = wanted.get(name, False) or urgent
        if scope not in self._tasks:
            self._tasks[scope] = asyncio.create_task(self._run(scope), name="echoic-distilling")

    async def settle(self) -> None:
        """Wait until nothing runs."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def stop(self) -> None:
        self._wanted.clear()
        await stop_tasks(self._tasks.values())
        self._tasks.clear()  # a run that had not started has not removed itself
        for timer in self._timers.values():  # last: a run that ended meanwhile may have planned another
            timer.cancel()
        self._timers.clear()

    async def _run(self, scope: Scope) -> None:
        try:
            while self._wanted.get(scope):
                async with self._at_once:
                    wanted = self._wanted.pop(scope)
                    later = await self._work(scope, wanted)
                for name, seconds in later.items():
                    self._plan(scope, name, seconds, urgent=wanted.get(name, False))
        finally:
            self._wanted.pop(scope, None)
            self._tasks.pop(scope, None)

    def _plan(self, scope: Scope, name: str, seconds: float, *, urgent: bool) -> None:
        planned = self._timers.pop((scope, name), None)
        if planned is not None:
            planned.cancel()

        def due() -> None:
            del self._timers[scope, name]
            self.want(scope, name, urgent=urgent)

        self._timers[scope, name] = asyncio.get_running_loop().call_later(seconds, due)


def noted(work: asyncio.Future[T]) -> None:
    """Retrieve the exception of a late task, so that the loop does not log it as never retrieved."""
    if not work.cancelled():
        work.exception()
