"""What is learned without a language model from sentences of an author apart from those it was fitted to."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TRAINED_ON = HERE.parents[1] / "scripts" / "reader"
MARKED_CALLS = HERE.parents[1] / "benchmarks" / "marked_calls"


def figures():
    """`learning_figures.py` as a module."""
    spec = importlib.util.spec_from_file_location("learning_figures", HERE / "learning_figures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["learning_figures"] = module
    spec.loader.exec_module(module)
    return module


of = figures()


@pytest.fixture(scope="module")
def said():
    return asyncio.run(of.said_in(of.OTHERS))


def test_plain_statements_are_learned_and_traps_are_not(said):
    durable = {one.kind for one in said if one.durable}
    traps = [one for one in said if not one.durable]
    assert len(said) >= 400
    assert len(durable) >= 25
    assert len(traps) >= len(said) / 2
    # a little below what was measured: docs/learning.md
    assert of.precision(said) >= 0.96
    assert of.recall(said) >= 0.87
    assert of.share_stored(traps) <= 0.032


async def test_corrections_leave_only_what_is_so():
    found = await of.corrected("test")
    assert len({kind for kind, _ in found}) >= 12
    assert sum(right for _, right in found) >= 0.8 * len(found)


async def test_no_secret_is_learned():
    [found] = await of.learned(
        [
            [
                "please remember my pin code is five one seven three",
                "remember that my password is bluebird seven",
                "my card number is 4111 1111 1111 1111 and I live in a bungalow",
            ]
        ]
    )
    told = " ".join(f"{memory.key} {memory.text} {memory.statement or ''}" for memory in found).casefold()
    # nor that there is one
    words = ("five one seven", "5173", "bluebird", "4111", "pin", "password")
    assert not [word for word in words if word in told]


def test_no_sentence_that_is_measured_was_trained_on():
    measured = {_bare(text) for _, _, text in of.rows(of.OTHERS)}
    trained = [line for path in sorted(TRAINED_ON.iterdir()) for line in path.read_text().splitlines()]
    assert len(trained) > 2000
    assert not measured & {_bare(line.rpartition("\t")[2]) for line in trained}
    of_calls = [part for line in trained for part in re.split(r"^[AC]: |{\w+\??: |}|[.!?]+ ", line)]
    assert not measured & set(map(_bare, of_calls))


def test_no_turn_of_the_measured_calls_was_trained_on():
    """But for those of a word or two."""
    measured, trained = (
        {_bare(words) for path in paths for words in re.findall(r"^C: (.*)", path.read_text(), re.MULTILINE)}
        for paths in (MARKED_CALLS.glob("*.txt"), TRAINED_ON.glob("calls_*.txt"))
    )
    assert len(measured) > 2000
    assert len(trained) > 2000
    assert all(len(text.split()) <= 2 for text in measured & trained)


def _bare(text):
    return re.sub(r"\{\w+\??: |[^a-z0-9 ]", "", text.casefold()).strip()
