"""Starts, traces, kills and awaits the children of the zygote."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import echoic

TESTS = Path(__file__).parent.parent
PATIENCE_S = 60
KILLED = -signal.SIGKILL


@dataclass(slots=True)
class Child:
    """One forked process, waiting at its gate until `go`."""

    pid: int
    gate: Path
    zygote: Zygote
    code: int | None = None
    """Its exit code, once it was awaited."""

    def go(self) -> Child:
        """Let it run."""
        with self.gate.open("wb"):
            pass
        return self

    def kill(self) -> int:
        """As `kill -9` does; its exit code."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def ended(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        descriptor = os.pidfd_open(self.pid)
        try:
            return bool(select.select([descriptor], [], [], seconds)[0])
        finally:
            os.close(descriptor)

    def wait(self) -> int:
        """Its exit code; minus the signal's number if one killed it.

        Raises:
            AssertionError: it hangs. It is killed.
        """
        if self.code is None:
            ended = self.ended(PATIENCE_S)
            if not ended:
                os.kill(self.pid, signal.SIGKILL)
            self.code = self.zygote.ask({"wait": self.pid})
            assert ended, f"process {self.pid} did not end within {PATIENCE_S} s"
        return self.code


class Zygote:
    """The process that forks the others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gates = 0
        path = os.pathsep.join((str(TESTS), str(Path(echoic.__file__).parent.parent)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "durability.zygote"],
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: dict[str, Any]) -> int:
        """One command, one number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, program: str, **arguments: Any) -> Child:
        """Fork a child for `program` of `durability.programs`."""
        self._gates += 1
        gate = self._folder / f"gate-{self._gates}"
        os.mkfifo(gate)
        pid = self.ask({"program": program, "gate": str(gate), "arguments": arguments})
        return Child(pid, gate, self)

    def run(self, program: str, **arguments: Any) -> int:
        """Start it, let it run, and its exit code."""
        return self.start(program, **arguments).go().wait()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


def traced(child: Child, options: list[str], output: Path) -> int:
    """Let `child` run under strace with `options`; its exit code."""
    command = ["strace", "-f", "-qq", "-o", str(output), *options, "-p", str(child.pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
        _attached(tracer, child)
        code = child.go().wait()
        tracer.wait(PATIENCE_S)
    return code


def _attached(tracer: subprocess.Popen[bytes], child: Child) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if "TracerPid:\t0\n" not in Path(f"/proc/{child.pid}/status").read_text():
            return
        assert tracer.poll() is None, f"strace gave up: {tracer.communicate()[1]!r}"
        time.sleep(0.001)
    raise AssertionError("strace did not attach")


def tracing() -> str | None:
    """Why strace cannot be used here; None: it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as target:
        tried = subprocess.run(
            ["timeout", "1", "strace", "-qq", "-e", "trace=none", "-p", str(target.pid)],
            capture_output=True,
            check=False,
        )
        target.communicate(b"\n")
    return None if tried.returncode == 124 else f"strace may not trace here: {tried.stderr.decode().strip()}"


__all__ = ["KILLED", "Child", "Zygote", "traced", "tracing"]
