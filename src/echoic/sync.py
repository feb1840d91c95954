"""The same memory for code that does not use `await`: an event loop in a thread behind a blocking façade.

    import echoic.sync

    with echoic.sync.open("sqlite:///echoic.db") as memory:
        ana = memory.user("ana")
        ana.set("user_name", "Ana")
        with ana.listen() as listening:
            listening.partial("what is my")             # each partial transcript: returns at once
            recall = listening.final("What is my name?", deadline_ms=150)

Every method runs its asynchronous counterpart to completion in the loop's thread; hooks run there too.
`echoic.blocking` has the types for annotations. Live calls (`echoic.session`) are not available here: audio
that flows both ways needs the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, ParamSpec, Self, cast

from echoic import factory
from echoic.errors import NotAllowed, NotOpen
from echoic.memory.conversation import OpenConversation
from echoic.memory.deployment_keys import DeploymentKeys, Revocations
from echoic.memory.experience import AgentExperience
from echoic.memory.global_facts import GlobalFacts
from echoic.memory.items import Items
from echoic.memory.proposals import Proposals
from echoic.memory.service import MemoryService
from echoic.memory.speculation import Speculation
from echoic.memory.user import UserMemory

if TYPE_CHECKING:
    from echoic.blocking import BlockingMemoryService

P = ParamSpec("P")

_HANDLES = (
    UserMemory,
    OpenConversation,
    Items,
    Proposals,
    GlobalFacts,
    Revocations,
    DeploymentKeys,
    AgentExperience,
)
_CLOSED = "the memory was closed while this was under way: echoic.sync.open() makes another"


class _Thread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="echoic-loop", daemon=True)
        self._taking = threading.Lock()
        self._ended = False

    def start(self) -> None:
        if self._loop.is_closed() or self._thread.is_alive():
            raise NotOpen("this memory was opened before: echoic.sync.open() makes another")
        self._thread.start()

    def run(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of `verb`, called in the loop and awaited if necessary."""
        if not self._thread.is_alive():
            raise NotOpen("the memory is not open: use it inside `with echoic.sync.open(…) as memory:`")
        if threading.current_thread() is self._thread:
            raise NotAllowed(
                "a hook runs in the thread that serves this call, which would wait for itself: "
                "hand the event to a thread of your own, or make the hook asynchronous"
            )
        with self._taking:
            if self._ended:
                raise NotOpen(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(_awaited(verb, args, kwargs), self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise NotOpen(_CLOSED) from error
        except BaseException:
            future.cancel()  # nobody waits any more, for example after Ctrl-C
            raise

    def end(self) -> None:
        """Stop the loop. Calls that wait in other threads raise `NotOpen`."""
        with self._taking:  # no call starts after the loop was told to end
            self._ended = True
        asyncio.run_coroutine_threadsafe(_cancelled(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An asynchronous object with blocking methods. Objects that they return are wrapped as well.

    Raises:
        NotOpen: a method is called before the memory is open or after it was closed.
        NotAllowed: a method is called in a hook that is not asynchronous.
    """

    def __init__(self, handle: object, thread: _Thread) -> None:
        self._handle = handle
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._handle, name)
        if not callable(value):
            return _wrapped(value, self._thread)

        def call(*args: Any, **kwargs: Any) -> Any:
            return _wrapped(self._thread.run(value, *args, **kwargs), self._thread)

        return call

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._handle, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._handle)


class BlockingListening(Blocking):
    """A `Speculation` for `with`. Its methods may be called from one thread at a time, whichever."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.aclose()


class BlockingService(Blocking):
    """A memory service for `with`. Safe to share between threads."""

    def __init__(self, make: Callable[[], MemoryService]) -> None:
        super().__init__(make(), _Thread())

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.open()
        except BaseException:
            self._thread.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.aclose()
        finally:
            self._thread.end()


def _blocking(make: Callable[P, MemoryService]) -> Callable[P, BlockingMemoryService]:
    def opened(*args: P.args, **kwargs: P.kwargs) -> BlockingMemoryService:
        """Open a memory as `echoic.open` does, to be used with `with`."""
        return cast("BlockingMemoryService", BlockingService(lambda: make(*args, **kwargs)))

    return opened


open = _blocking(factory.open)  # noqa: A001 - as echoic.open
"""Opens a memory as `echoic.open` does, with the same arguments, for use with `with`."""


def _wrapped(result: Any, thread: _Thread) -> Any:
    if isinstance(result, Speculation):
        return BlockingListening(result, thread)
    # stores and embedders are whatever has their verbs; what has to be closed belongs to the loop
    is_handle = isinstance(result, _HANDLES) or hasattr(result, "aclose")
    return Blocking(result, thread) if is_handle else result


async def _cancelled() -> None:
    """Cancel every other task of this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _awaited(verb: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = verb(*args, **kwargs)
    return await result if inspect.isawaitable(result) else result


__all__ = ["Blocking", "BlockingListening", "BlockingService", "open"]
