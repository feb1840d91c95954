"""The real command, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import forked


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
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ECHOIC_", "HF_"))}
    return {
        **clean,
        "HOME": str(user_cache),
        "XDG_CACHE_HOME": str(user_cache / "cache"),
        "HF_HUB_OFFLINE": "1",
        "ECHOIC_EMBEDDER": "lexical",
        "COLUMNS": "200",
    }


@pytest.fixture
def echoic(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Ran]:
    """Runs `echoic` in a process and a folder of its own: `echoic("get", "name", ECHOIC_USER="ana")`.

    `fresh=True` starts an interpreter for it; else it is forked from one that has imported what is needed.
    """

    def run(
        *words: str, stdin: str | bytes = "", cwd: Path = tmp_path, fresh: bool = False, **variables: str
    ) -> Ran:
        done = (subprocess if fresh else forked).run(
            [sys.executable, "-m", "echoic.cli", *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=cwd,
            env={**environment, **variables},
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
