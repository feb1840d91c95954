"""What docs/loopback.md and the examples show is what happens."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import echoic_loopback.gemini_live
import echoic_loopback.openai_realtime
import echoic_loopback.realtime
import forked

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "loopback.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
MODULES = (echoic_loopback.realtime, echoic_loopback.openai_realtime, echoic_loopback.gemini_live)


def ran(*command):
    return forked.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_page_prints_what_the_page_says(program):
    promised = re.search(r"# prints (.+)", program)[1]
    assert ran("-c", program).strip() == promised


def test_there_are_two_programs():
    assert len(PROGRAMS) == 2


def test_every_step_of_the_page_exists_and_every_step_that_exists_is_on_the_page():
    table = PAGE.split("| step | effect |")[1].split("\n\n")[0]
    shown = set(re.findall(r"\b([A-Z][A-Za-z]+)(?=\(|`)", table))
    public = {name for module in MODULES for name in module.__all__}
    assert shown <= public
    steps = {
        name
        for module in MODULES
        for name in module.__all__
        if getattr(getattr(module, name), "__module__", "").endswith((".script", ".steps"))
    }
    assert steps - {"Script", "Refusal", "Step"} <= shown


def test_a_barge_in_is_known_by_three_witnesses_of_whom_one_is_wrong():
    played, told, history = ran(ROOT / "examples" / "loopback_barge_in.py").splitlines()
    assert played.endswith(": your flight leaves at nine")
    assert told.endswith(": " + " " * 4 + "your flight leaves at nine")
    assert history.endswith("your flight leaves at nine from gate seven (interrupted after 1010 ms)")


def test_a_dead_line_comes_back_on_both_providers():
    out = ran(ROOT / "examples" / "loopback_drop.py")
    assert out.count("agent (interrupted): your order number") == 2
    assert out.count("agent (complete): as I said, four two") == 2
    assert re.findall("restored: (.*)", out) == ["False", "True"]
