"""The programs that are shown run, and do what is said of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import forked

ROOT = Path(__file__).parents[2]


def run(*command, cwd, **env):
    full = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "ECHOIC_EMBEDDER": "lexical", **env}
    ran = forked.run(
        [sys.executable, *command],
        cwd=cwd,
        env=full,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_example_remembers_from_one_process_to_the_next(tmp_path):
    example = str(ROOT / "examples" / "text_agent.py")
    run(example, "ana", "I prefer action movies", cwd=tmp_path)
    second = run(example, "ana", "Recommend me a movie", cwd=tmp_path)
    assert '- "The user prefers action movies."' in second
    assert "action" not in run(example, "bob", "Recommend me a movie", cwd=tmp_path)


def test_the_program_in_the_document_prints_what_the_document_says(tmp_path):
    page = (ROOT / "docs" / "capability.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    promised = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
    assert run("-c", program, cwd=tmp_path) == promised


@pytest.mark.parametrize("name", ["budget_tokens", "timeout_s", "recall_on_prompt", "capture", "agent"])
def test_the_options_have_the_defaults_that_are_documented(name):
    from dataclasses import fields

    from echoic.capability import Memory

    default = next(field.default for field in fields(Memory) if field.name == name)
    page = (ROOT / "docs" / "capability.md").read_text()
    shown = re.search(rf"\| `{name}` \| (.+?) \|", page)[1]
    assert shown == ("the agent's name" if default is None else str(default))
