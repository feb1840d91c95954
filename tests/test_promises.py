"""Every promise names a test that exists; every command and name in the documents is real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [
    line for line in (ROOT / "PROMISES.md").read_text().splitlines() if line.startswith("|") and "::" in line
]


def test_there_are_promises():
    assert len(ROWS) >= 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_a_promise_names_a_test_that_exists(row):
    named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", row)
    assert named, f"no test in {row}"
    for file, path in named:
        text = (ROOT / file).read_text()
        for part in path.split("::"):
            assert re.search(rf"(def|class) {part}\b|^{part} = ", text, re.MULTILINE), f"{file} has no {part}"
