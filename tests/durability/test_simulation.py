"""A whole service with its callers, from one seed: what was acknowledged is there, whatever failed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import scale
from simulation.planted import PLANTED, outcome_of
from simulation.world import KINDS, Outcome

pytestmark = pytest.mark.histories
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lived() -> Iterator[Callable[..., Outcome]]:
    """What comes of a seed, in a process of its own: what other tests left running draws from its chance as well."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield lambda seed, planted=None: process.submit(outcome_of, seed, planted).result()


def test_what_was_acknowledged_is_there_once_whatever_failed(
    lived: Callable[..., Outcome], tally: Callable[[str], None]
) -> None:
    faults: Counter[str] = Counter()
    acknowledged = lives = 0
    histories = scale.many(24, least=6)
    for seed in range(scale.SEED, scale.SEED + histories):
        outcome = lived(seed)
        assert not outcome.wrong, f"python -m simulation --seed {seed}: {outcome.wrong}"
        faults += outcome.faults
        acknowledged += outcome.acknowledged
        lives += outcome.lives
    assert lives > histories, "no process died"
    told = ", ".join(f"{faults[kind]} × {kind}" for kind in KINDS)
    tally(f"{histories} histories, {acknowledged} acknowledged, 0 lost; {told}")


def test_the_table_of_faults_is_of_a_run_that_is_kept_and_no_kind_is_missing() -> None:
    subprocess.run([sys.executable, "scripts/fault_table.py", "--check"], cwd=ROOT, check=True, timeout=60)
    told = json.loads((ROOT / "benchmarks/results/faults.json").read_text())
    assert [of["kind"] for of in told["kinds"]] == list(KINDS)
    assert told["lost"] == 0


def test_a_seed_replays_exactly(lived: Callable[..., Outcome]) -> None:
    first, again = lived(scale.SEED), lived(scale.SEED)
    assert (first.digest, first.steps, first.faults) == (again.digest, again.steps, again.faults)
    assert lived(scale.SEED + 1).digest != first.digest


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_found(planted: str, lived: Callable[..., Outcome]) -> None:
    for seed in range(scale.SEED, scale.SEED + 60):
        if lived(seed, planted).wrong:
            return
    pytest.fail(f"60 histories did not show it: {planted}")
