"""The event loop a service lives in. Its tasks, locks and connections work in no other."""

from __future__ import annotations

import asyncio

from echoic.errors import NotOpen

_WAY_OUT = (
    "Open it inside the loop that uses it, as in `async with echoic.open(…) as memory:`, "
    "or use echoic.sync, which works from any thread."
)


class HomeLoop:
    """Remembers the loop, and tells whoever comes from another one.

    Without it a verb used elsewhere would seem to work: what it writes is durable, but the tasks that embed
    it and learn from it are in the other loop, and nothing would ever wake them.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def ended(self) -> bool:
        """Whether the loop is closed and nothing in it can be awaited any more."""
        return self._loop is not None and self._loop.is_closed()

    def enter(self) -> bool:
        """Be at home in the running loop; whether that is new.

        Raises:
            NotOpen: the home is another loop.
        """
        self.check()
        entered, self._loop = self._loop is None, asyncio.get_running_loop()
        return entered

    def leave(self) -> None:
        """Have no home: the next loop may be it."""
        self._loop = None

    def check(self) -> None:
        """Nothing, where the running loop is the home, or there is none.

        Raises:
            NotOpen: it is another one.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._loop is None or self._loop is running:
            return
        if self.ended:
            raise NotOpen(
                "the event loop this memory was opened in has ended, and with it all that embeds and learns. "
                + _WAY_OUT
            )
        raise NotOpen("this memory was opened in another event loop and works in that one only. " + _WAY_OUT)


__all__ = ["HomeLoop"]
