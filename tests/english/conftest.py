"""The labelled utterances, and how what was heard is scored against them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from echoic.english import SelfStatement, listen

Label = dict[str, Any]


class Score(NamedTuple):
    """Counts over one labelled part. An entry is right if key, value and retraction all are."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)


def hear_label(label: Label) -> list[SelfStatement]:
    previous: list[SelfStatement] = []
    for earlier in label.get("previous", ()):
        previous = listen(earlier, previous) or previous
    return listen(label["text"], previous)


@pytest.fixture(scope="session")
def labelled() -> Callable[[str], list[Label]]:
    def read(part: str) -> list[Label]:
        lines = Path(__file__).with_name(part).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def score() -> Callable[[list[Label]], Score]:
    def count(labels: list[Label]) -> Score:
        right = wrong = missed = 0
        for label in labels:
            heard = {(one.key, one.text, one.retracts) for one in hear_label(label)}
            meant = {(one["key"], one["text"], one["retracts"]) for one in label["expect"]}
            right += len(heard & meant)
            wrong += len(heard - meant)
            missed += len(meant - heard)
        return Score(right, wrong, missed)

    return count


@pytest.fixture
def texts() -> Callable[..., dict[str, str]]:
    """What is kept of an utterance: value by key, retractions left out."""

    def hear(text: str, previous: list[SelfStatement] | tuple[SelfStatement, ...] = ()) -> dict[str, str]:
        return {one.key: one.text for one in listen(text, previous) if not one.retracts}

    return hear
