"""Every promise names a test that exists; every command and name in the documents is real."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [
    line for line in (ROOT / "PROMISES.md").read_text().splitlines() if line.startswith("|") and "::" in line
]


def test_there_are_promises():
    assert len(ROWS) >= 20


def test_each_group_of_promises_has_its_proofs():
    page, _, proofs = (ROOT / "PROMISES.md").read_text().partition("\n# Proofs\n")
    groups = re.findall(r"^## (.+)$", page, re.MULTILINE)
    proved = {
        name: rows
        for name, rows in re.findall(
            r"^### Proofs: ([^\n]+)$(.*?)(?=^###|\Z)", proofs, re.MULTILINE | re.DOTALL
        )
        if "::" in rows
    }
    assert sorted(groups) == sorted([*proved, "Not promised"])
    assert len(page.splitlines()) < 200


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_a_promise_names_a_test_that_exists(row):
    named = re.findall(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::([\w:]+)`", row)
    assert named, f"no test in {row}"
    for file, path in named:
        text = (ROOT / file).read_text()
        for part in path.split("::"):
            assert re.search(rf"(def|class) {part}\b|^{part} = ", text, re.MULTILINE), f"{file} has no {part}"


def test_make_test_runs_every_promise_whatever_the_scale():
    """It chooses nothing: not by name, mark, folder or file. Scale is how much of each, never which."""
    asked = ["make", "-n", "test", "WORKERS=4"]
    made = subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    ).stdout
    lines = [line for line in made.splitlines() if line.startswith(".venv/bin/pytest")]
    (command,) = [line for line in lines if "--collect-only" not in line]
    words = command.split()[1:]
    assert words == ["-n", "4", "--dist", "loadscope", "--no-loadscope-reorder"]
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'testpaths = ["tests", "packages/echoic-corpus/tests"]' in settings
    assert 'addopts = ["--strict-config", "--strict-markers", "-ra", "--import-mode=importlib"]' in settings


def test_no_promised_test_is_skipped_by_what_it_says_itself():
    named = {name for row in ROWS for name in re.findall(r"`tests/([\w/]+\.py)::", row)}
    for file in named:
        text = (ROOT / "tests" / file).read_text()
        assert not re.search(r"mark\.skip\(|pytest\.mark\.xfail", text), file
