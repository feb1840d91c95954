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


def made(target):
    """The words after `pytest` of the one run of tests that `make` starts for `target`."""
    asked = ["make", "-n", target, "WORKERS=4"]
    lines = subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    ).stdout.splitlines()
    (command,) = [line for line in lines if line.startswith(".venv/bin/pytest")]
    return command.split()[1:]


@pytest.mark.parametrize(("target", "places"), [("test", []), ("test-packages", ["packages"])])
def test_ci_runs_every_promise_whatever_the_scale(target, places):
    """It chooses nothing: not by name, mark, folder or file. Scale is how much of each, never which."""
    assert made(target) == ["--workers", "4", *places]
    assert f"make {target}" in (ROOT / ".ci" / "run").read_text().splitlines()
    settings = (ROOT / "pyproject.toml").read_text()
    assert '"tests/typed.py"]' in settings
    assert 'testpaths = ["tests"]' in settings
    assert 'addopts = ["--strict-config", "--strict-markers", "-ra", "--import-mode=importlib"]' in settings


def test_every_promised_test_is_where_one_of_them_looks():
    named = {name for row in ROWS for name in re.findall(r"`([\w/.-]+\.py)::", row)}
    outside = {n for n in named if not re.match(r"tests/|packages/[\w-]+/tests/", n)}
    # suites for stores and embedders, which tests subclass
    assert {n for n in outside if not n.startswith("src/echoic/testing/")} == set()


def test_no_promised_test_is_skipped_by_what_it_says_itself():
    named = {n for row in ROWS for n in re.findall(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::", row)}
    for file in named:
        text = (ROOT / file).read_text()
        assert not re.search(r"mark\.skip\(|pytest\.mark\.xfail", text), file
