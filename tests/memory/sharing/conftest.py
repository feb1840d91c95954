"""The labelled sets, and how redaction is scored against them.

The rules were developed on `redaction.jsonl` and `classification.jsonl`. The held-out sets were written when the
rules stood, and counted once before anything was changed: 66 of 67 things found and none of 48 harmless lines
touched; 36 of 40 facts and none of 74 private lines made global. Once their errors are looked at they belong to
development (the one miss, a code after "pound", was mended), and new ones have to be written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from echoic.memory.sharing import Redacted, redact

HERE = Path(__file__).parent


def lines(name: str) -> list[dict[str, Any]]:
    with (HERE / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def covered(redacted: Redacted) -> set[int]:
    return {place for finding in redacted.found for place in range(finding.start, finding.end)}


def spans(line: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of each personal thing in a line, in order."""
    place = 0
    for personal in line["personal"]:
        start = line["text"].index(personal["value"], place)
        place = start + len(personal["value"])
        yield personal["kind"], start, place


@dataclass
class Score:
    expected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    negatives: int = 0
    false: list[str] = field(default_factory=list)
    excess: list[str] = field(default_factory=list)
    """Lines in which something was taken out far from, or far beyond, what is personal."""

    def recall(self, kind: str) -> float:
        return self.found[kind] / self.expected[kind]

    @property
    def false_share(self) -> float:
        return len(self.false) / self.negatives


def score(labelled: Iterable[dict[str, Any]]) -> Score:
    result = Score()
    for line in labelled:
        redacted = redact(line["text"])
        if line["personal"]:
            _score_positive(result, line, redacted)
        else:
            result.negatives += 1
            if redacted.found:
                result.false.append(f"{line['text']} -> {redacted.text}")
    return result


def _score_positive(result: Score, line: dict[str, Any], redacted: Redacted) -> None:
    text, taken = line["text"], covered(redacted)
    expected: set[int] = set()
    for kind, start, end in spans(line):
        expected |= set(range(start, end))
        result.expected[kind] += 1
        # Every letter and digit must be gone, and under the right name.
        gone = {place for place in range(start, end) if text[place].isalnum()} <= taken
        named = any(f.kind == kind and f.start < end and f.end > start for f in redacted.found)
        if gone and named:
            result.found[kind] += 1
        else:
            result.missed.append(f"{kind}: {text} -> {redacted.text}")
    stray = any(expected.isdisjoint(range(f.start, f.end)) for f in redacted.found)
    beyond = sum(text[place].isalnum() for place in taken - expected)
    if stray or beyond > 20:
        result.excess.append(f"{text} -> {redacted.text}")


@pytest.fixture(scope="session")
def redaction_score() -> Score:
    return score(lines("redaction"))


@pytest.fixture(scope="session")
def held_out_score() -> Score:
    return score(lines("redaction_held_out"))


@pytest.fixture(scope="session", params=["classification", "classification_held_out"])
def classification(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return lines(request.param)
