"""What may stand between a client and the server: a line that is cut at a chosen moment, and a real PgBouncer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from stores.postgres_server import PostgresServer

Moment = Literal["before the commit", "after the commit"]
_COMMIT = b"COMMIT;\0"
_PORT = 5432
"""Part of the name of a Unix socket; no port is used."""


@dataclass
class _Lost:
    """What becomes of the server's answers on one connection."""

    from_now_on: bool = False
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    heard: bool = True
    """Whether the server spoke last."""


class Line:
    """Passes bytes on between a socket of its own and the server's, and cuts a connection that commits.

    `before the commit`: the server never hears of it. `after the commit`: it commits, and its answer is lost.
    """

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._target = str(server.folder / f".s.PGSQL.{_PORT}")
        self.folder = folder
        self.cut: Moment | None = None
        self.cuts = 0
        self.round_trips = 0
        """How often a client spoke after it had listened."""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncIterator[Line]:
        """While it is there."""
        listening = await asyncio.start_unix_server(self._connected, str(self.folder / f".s.PGSQL.{_PORT}"))
        try:
            yield self
        finally:
            listening.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, back = await asyncio.open_unix_connection(self._target)
        lost = _Lost()
        passing = [
            asyncio.ensure_future(self._from_client(reader, back, lost)),
            asyncio.ensure_future(_from_server(there, writer, lost)),
        ]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in passing:
                one.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            for end in (writer, back):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()
            self._tasks.discard(task)

    async def _from_client(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, lost: _Lost
    ) -> None:
        while data := await reader.read(1 << 16):
            self.round_trips += lost.heard
            lost.heard = False
            moment = self.cut if _COMMIT in data else None
            if moment == "before the commit":
                self._count()
                return
            if moment == "after the commit":
                lost.from_now_on = True
            back.write(data)
            await back.drain()
            if moment == "after the commit":
                await lost.answered.wait()
                self._count()
                return

    def _count(self) -> None:
        self.cut, self.cuts = None, self.cuts + 1


async def _from_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: _Lost) -> None:
    while data := await reader.read(1 << 16):
        if lost.from_now_on:
            lost.answered.set()
            continue
        lost.heard = True
        writer.write(data)
        await writer.drain()


@contextlib.contextmanager
def pgbouncer(server: PostgresServer, folder: Path, *users: str) -> Iterator[Path]:
    """A PgBouncer in transaction mode before `server`, for a superuser and `users`; the folder of its socket.

    Skips where there is none.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer: apt-get install pgbouncer")
    folder.chmod(0o777)
    (folder / "users").write_text("".join(f'"{user}" ""\n' for user in ("postgres", *users)))
    (folder / "ini").write_text(
        f"[databases]\npostgres = host={server.folder} dbname=postgres pool_size=4\n"
        f"[pgbouncer]\nlisten_addr =\nunix_socket_dir = {folder}\nlisten_port = {_PORT}\n"
        f"auth_type = trust\nauth_file = {folder / 'users'}\npool_mode = transaction\n"
        f"logfile = {folder / 'log'}\npidfile =\nserver_reset_query =\n"
    )
    as_other = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        [program, "-q", folder / "ini"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_other
    )
    try:
        until = time.monotonic() + 10
        while not (folder / f".s.PGSQL.{_PORT}").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, "pgbouncer did not start"
            time.sleep(0.02)
        yield folder
    finally:
        process.kill()
        process.wait()


__all__ = ["Line", "Moment", "pgbouncer"]
