"""An event loop whose time is virtual and whose order is drawn from a seed, and threads that are none.

What would happen in a thread happens in the loop, one job at a time, after a pause that is drawn as well. So a
run has one order of events, and the seed says which.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

_LONGEST_S = 7 * 24 * 3600.0
"""Of virtual time in which nothing but timers happens."""


class Stuck(AssertionError):
    """Nothing is left that could happen, and somebody waits."""


class SimulatedClock:
    """Time that passes when everybody waits; what a clock on the wall says can jump."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.wall_offset_s = 0.0

    def wall(self) -> datetime:
        """What the clock says."""
        return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=self.now_s + self.wall_offset_s)


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs what is ready in an order drawn from `rng`; when nothing is, time goes on to the next timer."""

    def __init__(self, rng: Random, clock: SimulatedClock) -> None:
        super().__init__()
        self.rng, self.clock = rng, clock
        self.steps = 0
        self.dead = False
        """The process is dead: what was to happen in its threads does not."""
        self.tasks: list[asyncio.Task[Any]] = []
        """All that were created, in order; `asyncio.all_tasks` orders them by where they lie in memory."""
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        return self.clock.now_s

    def create_task(self, coro: Any, **how: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **how)
        self.tasks.append(task)
        return task

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, _events: Any) -> None:
        pass

    def _run_once(self) -> None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        if not ready:
            if not timers:
                raise Stuck("somebody waits for what cannot happen any more")
            if timers[0].when() - self.clock.now_s > _LONGEST_S:
                raise Stuck("somebody waits for a week")
            self.clock.now_s = max(self.clock.now_s, timers[0].when())
        while timers and timers[0].when() <= self.clock.now_s:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        now = list(ready)
        ready.clear()
        self.rng.shuffle(now)
        for handle in now:
            if not handle._cancelled:
                self.steps += 1
                handle._run()

    def run_in_executor(self, _executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """As a thread of its own would, but in the loop."""
        return asyncio.wrap_future(SimulatedThread(self).submit(func, *args), loop=self)

    async def shutdown_default_executor(self, _timeout: float | None = None) -> None:
        pass


class SimulatedThread:
    """In place of a `ThreadPoolExecutor` of one thread: does one job at a time, in the loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._planned = False

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self._jobs.append((done, lambda: work(*args)))
        self._plan()
        return done

    def shutdown(self, wait: bool = True) -> None:
        """What is queued is done all the same."""

    def _plan(self) -> None:
        if self._jobs and not self._planned and not self._loop.dead and not self._loop.is_closed():
            self._planned = True
            self._loop.call_later(self._loop.rng.expovariate(1000), self._next)

    def _next(self) -> None:
        self._planned = False
        if self._loop.dead:
            return
        done, work = self._jobs.popleft()
        if done.set_running_or_notify_cancel():
            try:
                result = work()
            except BaseException as error:
                if not self._loop.dead:
                    done.set_exception(error)
            else:
                if not self._loop.dead:  # it died in the middle of this: nobody hears of it
                    done.set_result(result)
        self._plan()


__all__ = ["SimulatedClock", "SimulatedLoop", "SimulatedThread", "Stuck"]
