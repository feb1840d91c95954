"""How the app is run: uvicorn, configured so that it neither logs paths nor waits for ever."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from fastapi import FastAPI

from echoic.adapters.connections import guarded

MAX_MESSAGE = 64 * 1024
"""Bytes of one message on a socket: a second of audio at 24 kHz, and more words than anybody says."""


def uvicorn_config(app: FastAPI, *, host: str = "127.0.0.1", port: int = 8300) -> uvicorn.Config:
    """Configuration for `uvicorn.Server(...)`.

    uvicorn's own access log is off, for it holds paths and query strings; `echoic.access` has method, route,
    status and time. One process: the store has one writer, and the service one background task.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        ws_max_size=MAX_MESSAGE,
        # two lost answers, and a page that went without a word is known to be gone
        ws_ping_interval=10,
        ws_ping_timeout=10,
        lifespan="on",
        timeout_keep_alive=10,
        **guarded(app.state.served.settings.limits),
    )


class MemoryServer(uvicorn.Server):
    """uvicorn's server, which would wait for listening pages until its patience ends: they go first."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; where calls are served, with a garbage collector that does not stop them."""
        await super().startup(sockets)
        app: Any = self.config.app
        served = getattr(app.state, "served", None)  # nothing where the start failed
        if served is not None and served.voice is not None:
            from echoic.session.limits import freeze_heap

            freeze_heap()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let listening pages go and put live calls away, to be resumed by the next; then end as usual."""
        app: Any = self.config.app
        served = app.state.served
        served.live.close()
        if served.voice is not None:
            await served.voice.aclose()
        await super().shutdown(sockets=sockets)


__all__ = ["MemoryServer", "uvicorn_config"]
