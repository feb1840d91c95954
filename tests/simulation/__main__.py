"""Histories of a whole service for as long as it is given, or the one of a seed: see `simulation.world`.

PYTHONPATH=tests .venv/bin/python -m simulation --minutes 5
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

from simulation.world import KINDS, lived_alone


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, help="only this history")
    given = parser.parse_args()
    if given.seed is not None:
        outcome = lived_alone(given.seed)
        print(outcome)
        return bool(outcome.wrong)
    ends, first = time.monotonic() + 60 * given.minutes, secrets.randbelow(10**9)

    def seeds() -> Iterator[int]:
        return itertools.takewhile(lambda _: time.monotonic() < ends, itertools.count(first))

    faults: Counter[str] = Counter()
    histories = acknowledged = lives = 0
    with get_context("spawn").Pool(given.workers) as pool:
        # one chunk of seeds after another: `imap` alone would take all of them at once
        while chunk := list(itertools.islice(seeds(), 8 * given.workers)):
            for outcome in pool.imap_unordered(lived_alone, chunk):
                if outcome.wrong:
                    print(
                        f"simulation: {outcome.wrong}\nagain: PYTHONPATH=tests {sys.executable} -m simulation --seed {outcome.seed}"
                    )
                    return 1
                histories, lives = histories + 1, lives + outcome.lives
                acknowledged += outcome.acknowledged
                faults += outcome.faults
            first += len(chunk)
    print(f"simulation: {histories} histories of {lives} processes, {acknowledged} acknowledged, 0 lost")
    print(*(f"  {faults[kind]:7} × {kind}" for kind in KINDS), sep="\n")
    print(f"  {sum(faults.values()):7} faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
