"""One WebSocket over asyncio streams, with the two things a stand-in needs and a library hides: a connection
that is cut without a goodbye, and a handshake that takes its time. Framing is the sans-I/O core of
`websockets`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

READ_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Above the 15 MiB an append may have at OpenAI, base64 and all."""
BUFFER_POLL_S = 0.001
"""Between looks whether the kernel took everything; asyncio tells of its buffer's limits, not of its end."""
CLOSE_WAIT_S = 1.0
"""How long TLS has for its own goodbye before the socket goes."""


class WebSocket:
    """The server's side of one connection. Read it in one task only; sending is free."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = ServerProtocol(max_size=MAX_MESSAGE_BYTES)

    def read_request(self, head: bytes) -> Request:
        """The handshake request in `head`, the bytes of the whole HTTP head.

        Raises:
            ValueError: they are no WebSocket handshake.
        """
        self._protocol.receive_data(head)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                return event
        raise ValueError("not a WebSocket handshake")

    async def accept(self, request: Request) -> bool:
        """Answers the handshake; False where the request was malformed and was refused as such."""
        self._protocol.send_response(self._protocol.accept(request))
        await self._flush()
        return self.is_open

    @property
    def is_open(self) -> bool:
        return self._protocol.state is OPEN and not self._writer.is_closing()

    @property
    def close_code(self) -> int | None:
        """The code of the close frame, sent or received; None while open, 1006 where there was none."""
        return self._protocol.close_code

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Messages in order until the connection ends, however it ends."""
        parts: list[bytes] = []
        text = False
        while not self._reader.at_eof():
            try:
                data = await self._reader.read(READ_BYTES)
            except OSError:  # reset, or cut in the middle of TLS
                return
            await self._receive(data)
            for event in self._protocol.events_received():
                if not isinstance(event, Frame) or event.opcode not in (
                    Opcode.TEXT,
                    Opcode.BINARY,
                    Opcode.CONT,
                ):
                    continue
                text = event.opcode is Opcode.TEXT if event.opcode is not Opcode.CONT else text
                parts.append(bytes(event.data))
                if event.fin:
                    whole = b"".join(parts)
                    parts = []
                    yield whole.decode() if text else whole
            if self._protocol.close_expected() and self._protocol.close_rcvd:
                break

    async def send(self, message: str | bytes) -> None:
        """Sends one message; nothing where the connection is no longer open."""
        if not self.is_open:
            return
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        else:
            self._protocol.send_binary(message)
        await self._flush()

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Sends a close frame. A reason is cut at the 123 bytes a frame has room for."""
        if self._protocol.state is not OPEN:
            return
        with suppress(ConnectionError):
            self._protocol.send_close(code, reason.encode()[:123].decode(errors="ignore"))
            await self._flush()

    async def abort(self) -> None:
        """Cuts the connection without a close frame, as a lost network does. What was sent before arrives."""
        while self.is_open and self._writer.transport.get_write_buffer_size():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(BUFFER_POLL_S)
        self._writer.transport.abort()

    async def finish(self) -> None:
        """Lets go of the socket: it is the server that ends the connection once both have said goodbye."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), CLOSE_WAIT_S)

    async def _receive(self, data: bytes) -> None:
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        await self._flush()

    async def _flush(self) -> None:
        for chunk in self._protocol.data_to_send():
            if chunk:
                self._writer.write(chunk)
            elif self._writer.can_write_eof():
                self._writer.write_eof()
        with suppress(ConnectionError):
            await self._writer.drain()


__all__ = ["WebSocket"]
