"""How uvicorn serves what others reach: it waits for nobody for ever, and logs neither paths nor words."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 10.0
"""How long the head of a request may take to arrive, from the connection or its own first byte on."""
READ_S: Final = 60.0
"""How long somebody may take nothing of an answer that waits for them."""


class Connection(H11Protocol):
    """uvicorn's, which would wait for a head, and for its answer to be read, for ever: as many connections as
    it serves, of somebody who does neither, would shut it for everybody else.
    """

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Somebody connected, and is to say what for."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        """Whatever arrives, the head must be whole in time; of what follows it the guards take care."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._in_time()
        self._read_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More of an answer waits than is sent ahead."""
        super().pause_writing()
        self._read_on()
        self._unread = self.loop.call_later(READ_S, self._look, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._read_on()

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:  # whoever reads slowly reads
            self._unread = self.loop.call_later(READ_S, self._look, left)

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def guarded() -> dict[str, Any]:
    """Options of `uvicorn.Config`, with which neither a path (it may hold a ticket) nor a word is logged."""
    # `access_log=False` only takes its handlers away; one that is added later would get paths again
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(_wordless)
    return {
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        # another parser, if one is installed, takes requests with two Host headers
        "http": Connection,
        "ws": "websockets-sansio",
        "h11_max_incomplete_event_size": 16 * 1024,
        "timeout_graceful_shutdown": 10,
        "log_config": None,
    }


def _wordless(record: logging.LogRecord) -> bool:
    """Whether uvicorn's record holds no content: of a socket it would log the path with its ticket and, where
    everything is logged, each message.
    """
    return record.levelno > logging.DEBUG and "WebSocket %s" not in str(record.msg)


__all__ = ["HEAD_S", "READ_S", "Connection", "guarded"]
