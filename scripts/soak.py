"""Random histories, kills and power cuts, at growing scale, for as long as it is given.

A third of the time goes to whole services that are simulated from a seed (`tests/simulation`). Then the
tests run once of which `make test` draws some: those marked `slow`, and those marked `repeated`, which say on
another store or in another way what others say. Then each round is the tests marked `crash`, `histories` or
`examples` with another seed. The first is at a quarter of full scale; each next one is twice as large while
the time left is enough for it, then as large as fits.
A failure ends it, and names the seed and the scale that show it again.

    .venv/bin/python scripts/soak.py --minutes 15
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import time

SMALLEST = 0.25
DRAWN = "crash or histories or examples"
SOME_IN_TEST = "repeated or slow"
CONTROL = re.compile(r"^test_(control|a_planted_fault)_\w+")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("places", nargs="*", help="files or folders of tests; all of them otherwise")
    given = parser.parse_args()
    ends = time.monotonic() + 60 * given.minutes
    if not given.places:
        if not _simulated(given.minutes / 3, given.workers):
            return 1
        if not _round(SMALLEST, given.workers, [], chosen=SOME_IN_TEST):
            return 1
    scale, rounds, per_scale = SMALLEST, 0, 0.0
    while True:
        began = time.monotonic()
        if not _round(scale, given.workers, given.places):
            return 1
        rounds += 1
        per_scale = max(per_scale, (time.monotonic() - began) / scale)
        left = ends - time.monotonic()
        affordable = [
            s for s in (2 * scale, scale, scale / 2, SMALLEST) if s >= SMALLEST and s * per_scale <= left
        ]
        if not affordable:
            print(f"soak: {rounds} rounds in {given.minutes - left / 60:.1f} minutes, nothing failed")
            return 0
        scale = affordable[0]


def _simulated(minutes: float, workers: int) -> bool:
    """Live through histories of a whole service; whether nothing was wrong. Each says its seed."""
    words = ["-m", "simulation", "--minutes", f"{minutes:g}", "--workers", str(workers)]
    ran = subprocess.run([sys.executable, *words], env={**os.environ, "PYTHONPATH": "tests"}, check=False)
    return ran.returncode == 0


def _round(scale: float, workers: int, places: list[str], *, chosen: str = DRAWN) -> bool:
    """Run all of the `chosen` once; whether nothing failed. Says what was done."""
    seed = secrets.randbelow(10**9)
    print(f"soak: {chosen}: scale {scale:g}, seed {seed}", flush=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "--workers", str(workers)]
    # pages draw nothing at random
    marked = chosen if chosen == SOME_IN_TEST else f"({chosen}) and not browser"
    words = ["--timeout", "3600", "-m", marked, *places]
    ran = subprocess.run(
        [*pytest, *words],
        env={**os.environ, "ECHOIC_TEST_SEED": str(seed), "ECHOIC_TEST_SCALE": str(scale)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    found = [line for line in lines if CONTROL.match(line)]
    print("\n".join(f"  {line}" for line in lines if line.startswith("test_")))
    print(f"  {len(found)} planted faults were looked for with these, and found")
    print(f"  {lines[-1] if lines else 'pytest said nothing'}", flush=True)
    if ran.returncode:
        print(ran.stdout)
        print(f"again: ECHOIC_TEST_SEED={seed} ECHOIC_TEST_SCALE={scale:g} {' '.join([*pytest, *words])}")
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
