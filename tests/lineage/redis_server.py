"""A real Redis on a socket of its own, and as much of a client as the example uses. Proves nothing by itself."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BINARY = shutil.which("redis-server")


class RedisServer:
    """A server that keeps every write on disk before it answers; `stop` and `start` it on the same folder."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="echoic-redis-"))
        self.socket = self.folder / "socket"
        self._process = None
        self.start()

    def start(self):
        command = [BINARY, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self._process = subprocess.Popen([*command, *durable], stdout=subprocess.DEVNULL)
        for _ in range(3000):
            if self._answers():
                return
            time.sleep(0.01)
        raise AssertionError("Redis does not start")

    def _answers(self):
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(str(self.socket))
            except OSError:
                return False
            line.sendall(b"DBSIZE\r\n")  # refused while it loads what it kept
            return line.recv(64).startswith(b":")

    def kill(self):
        self._process.kill()
        self._process.wait()
        self.socket.unlink(missing_ok=True)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)


class Client:
    """Commands over one connection a call, with the names and answers of `redis.asyncio`."""

    def __init__(self, server):
        self._server = server

    async def hget(self, key, field):
        return await self._do("HGET", key, field)

    async def hkeys(self, key):
        return await self._do("HKEYS", key)

    async def eval(self, script, numkeys, *args):
        return await self._do("EVAL", script, numkeys, *args)

    async def scan_iter(self, match, count):
        cursor = b"0"
        while True:
            cursor, keys = await self._do("SCAN", cursor.decode(), "MATCH", match, "COUNT", count)
            for key in keys:
                yield key
            if cursor == b"0":
                return

    async def _do(self, *words):
        reader, writer = await asyncio.open_unix_connection(str(self._server.socket), limit=1 << 26)
        try:
            parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
            head = b"*%d\r\n" % len(parts)
            writer.write(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            await writer.drain()
            return await self._answer(reader)
        finally:
            writer.close()
            await writer.wait_closed()

    async def _answer(self, reader):
        line = (await reader.readline())[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else (await reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"*":
            return [await self._answer(reader) for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest
