"""Histories of a whole service for as long as it is given, or the one of a seed: see `simulation.world`.

PYTHONPATH=tests .venv/bin/python -m simulation --minutes 5
PYTHONPATH=tests .venv/bin/python -m simulation --histories 2000 --save   # for scripts/fault_table.py
PYTHONPATH=tests .venv/bin/python -m simulation --seed 4711      # exactly as it went
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context

from simulation.world import KINDS, Outcome, lived_alone


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--histories", type=int, help="so many, however long it takes")
    parser.add_argument("--save", action="store_true", help="keep the counts in benchmarks/results")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, help="only this history")
    given = parser.parse_args()
    if given.seed is not None:
        outcome = lived_alone(given.seed)
        print(outcome)
        return bool(outcome.wrong)
    lives = 0
    faults, struck, acknowledged = Counter[str](), Counter[str](), Counter[str]()
    for outcome in _lived(given):
        if outcome.wrong:
            again = f"PYTHONPATH=tests {sys.executable} -m simulation --seed {outcome.seed}"
            print(f"simulation: {outcome.wrong}\nagain: {again}")
            return 1
        for kind in ("all", *outcome.faults):
            struck[kind] += 1
            acknowledged[kind] += outcome.acknowledged
        faults += outcome.faults
        lives += outcome.lives
    print(
        f"simulation: {struck['all']} histories of {lives} processes, {acknowledged['all']} acknowledged, 0 lost"
    )
    print(*(f"  {faults[kind]:7} × {kind}" for kind in KINDS), sep="\n")
    print(f"  {sum(faults.values()):7} faults")
    if given.save:
        from benchmarks.machine import save

        kinds = [
            {
                "kind": kind,
                "injected": faults[kind],
                "histories": struck[kind],
                "acknowledged": acknowledged[kind],
            }
            for kind in KINDS
        ]
        counts = {"histories": struck["all"], "processes": lives, "acknowledged": acknowledged["all"]}
        print(save("faults", {**counts, "lost": 0, "kinds": kinds}))
    return 0


def _lived(given: argparse.Namespace) -> Iterator[Outcome]:
    """Histories until the time is over, or as many as were asked for."""
    ends, first = time.monotonic() + 60 * given.minutes, secrets.randbelow(10**9)
    seeds = itertools.count(first)
    if given.histories is not None:
        seeds = iter(range(first, first + given.histories))
    with get_context("spawn").Pool(given.workers) as pool:
        # one chunk of seeds after another: `imap` alone would take all of them at once
        while given.histories is not None or time.monotonic() < ends:
            chunk = list(itertools.islice(seeds, 8 * given.workers))
            if not chunk:
                return
            yield from pool.imap_unordered(lived_alone, chunk)


if __name__ == "__main__":
    sys.exit(main())
