"""The real command, in processes of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)


@pytest.fixture(scope="session")
def user_cache(tmp_path_factory):
    """A home of the tests' own, where the local model is converted once a session."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def environment(user_cache):
    """No setting but the embedder that needs nothing, and no network."""
    return _environment(user_cache)


def _environment(home: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ECHOIC_", "HF_"))}
    return {
        **clean,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "HF_HUB_OFFLINE": "1",
        "ECHOIC_EMBEDDER": "lexical",
        "COLUMNS": "200",
    }


class Nursery:
    """Runs commands in children of a process that has imported what they need; see nursery.py."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._folder = folder
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("nursery.py")), str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._link = ours
        self._answers = ours.makefile("rb")

    def run(self, words: tuple[str, ...], stdin: bytes, cwd: Path, env: dict[str, str]) -> Ran:
        """The command, run to its end."""
        names = {stream: self._folder / stream for stream in ("in", "out", "err")}
        for stream, path in names.items():
            path.write_bytes(stdin if stream == "in" else b"")
        command = {"words": words, "cwd": str(cwd), "env": env, **{k: str(v) for k, v in names.items()}}
        self._link.sendall(f"{json.dumps(command)}\n".encode())
        code = int(self._answers.readline())
        return Ran(code, names["out"].read_bytes().decode(), names["err"].read_bytes().decode())

    def close(self) -> None:
        """End the process."""
        self._answers.close()
        self._link.close()
        self._process.wait()


@pytest.fixture(scope="session")
def nursery(user_cache, tmp_path_factory):
    """One for the session; None where processes cannot be forked."""
    if not hasattr(os, "fork"):
        yield None
        return
    started = Nursery(_environment(user_cache), tmp_path_factory.mktemp("streams"))
    yield started
    started.close()


@pytest.fixture
def echoic(tmp_path: Path, environment: dict[str, str], nursery: Nursery | None) -> Callable[..., Ran]:
    """Runs `echoic` in a process and a folder of its own: `echoic("get", "name", ECHOIC_USER="ana")`.

    `fresh=True` starts an interpreter for it; else it is forked from one that has imported what is needed.
    """

    def run(
        *words: str, stdin: str | bytes = "", cwd: Path = tmp_path, fresh: bool = False, **variables: str
    ) -> Ran:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        env = {**environment, **variables}
        if nursery is not None and not fresh:
            return nursery.run(words, given, cwd, env)
        done = subprocess.run(
            [sys.executable, "-m", "echoic.cli", *words],
            input=given,
            capture_output=True,
            cwd=cwd,
            env=env,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def jsonl(tmp_path):
    """Writes objects, or lines as they are, to a file."""

    def write(name, *lines):
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return path

    return write


@pytest.fixture
def document(tmp_path):
    """Writes a JSON document to a file."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        return path

    return write
