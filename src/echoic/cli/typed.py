"""Lines typed or piped in, without holding up the event loop or the end of the process."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from io import BufferedReader
from typing import cast

_CHUNK = 65_536


class TypedLines:
    """What arrives on stdin, line by line. Begins to read when it is made."""

    def __init__(self) -> None:
        """Start the thread that reads; to be made inside the event loop."""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(line: str | None) -> None:
            loop.call_soon_threadsafe(self._lines.put_nowait, line)

        # a daemon of its own: the loop's executor would be waited for at the end, until somebody typed a line
        threading.Thread(target=_read, args=(put,), name="echoic-stdin", daemon=True).start()

    async def next(self) -> str | None:
        """The next line, without its end; None when there are no more."""
        return await self._lines.get()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Every line."""
        while (line := await self.next()) is not None:
            yield line


def _read(put: Callable[[str | None], None]) -> None:
    # unbuffered: the lock of a buffered reader must not be held when the interpreter ends
    stream = cast("BufferedReader", sys.stdin.buffer).raw
    held = b""
    try:
        while chunk := stream.read(_CHUNK):
            *whole, held = (held + chunk).split(b"\n")
            for line in whole:
                put(_decoded(line))
        if held:
            put(_decoded(held))
        put(None)
    except RuntimeError:  # the loop has ended; nobody waits any more
        return


def _decoded(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")


__all__ = ["TypedLines"]
