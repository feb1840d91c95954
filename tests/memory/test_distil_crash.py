"""Each turn is distilled exactly once, whoever dies when, and however many work at it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import echoic
import forked
from memory.distilling_workers import BIRDS
from scale import SEED, many

POINTS = many(50, least=5)
KILLED = -9


@pytest.fixture
def workers(tmp_path):
    """Runs processes that distil; what came of each point."""

    def run(what: str, times: int) -> list[dict]:
        print(f"{what}: {times} points, seed {SEED}")
        script = Path(__file__).parent / "distilling_workers.py"
        done = forked.run(
            [sys.executable, str(script), str(tmp_path), what, str(times), str(SEED)],
            env={
                **os.environ,
                "PYTHONPATH": str(Path(echoic.__file__).parent.parent),
                "OPENBLAS_NUM_THREADS": "1",
            },
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.mark.crash
def test_a_worker_killed_at_any_point_leaves_each_turn_distilled_exactly_once(workers):
    points = workers("kill", POINTS)
    assert len(points) == POINTS
    assert {point["code"] for point in points} == {KILLED}
    for point in points:
        assert point["birds"] == BIRDS, point
        assert point["grew"], "no version of the list lost what an earlier one had"
        assert point["current"] == 1
        assert point["statuses"] == ["distilled"]


@pytest.mark.crash
def test_control_a_cursor_written_by_itself_loses_turns(workers):
    for point in workers("split", 3):
        assert point["code"] == KILLED
        assert len(point["birds"]) < len(BIRDS)


@pytest.mark.crash
def test_two_workers_on_one_store_distil_each_turn_exactly_once(workers):
    rounds = workers("share", many(12, least=4))
    for one in rounds:
        assert one["codes"] == [0, 0]
        assert one["birds"] == BIRDS, one
        assert one["grew"]
        assert one["current"] == 1
        assert one["statuses"] == ["distilled"]
