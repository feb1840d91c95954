"""What is found on LoCoMo when a recogniser mishears the questions, or what was said and kept.

    python -m benchmarks.noise --data dev.json       # or ECHOIC_LOCOMO=dev.json

`echoic bench noise` in both modes and four strengths, for the default and its comparisons.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

from benchmarks import machine
from echoic.bench.hearing import HEARD, measure_noise
from echoic.bench.plots import plot_noise
from echoic.bench.reading import read
from echoic.embedding import embedder_from

FUSIONS = ("blend", "rrf", "text", "vector")


async def measure(path: Path, embedder: str, cache: Path | None, plots: Path | None) -> dict[str, Any]:
    measured: dict[str, Any] = {"embedder": embedder}
    for heard in HEARD:
        found = await measure_noise(
            read(path), embedder_from(embedder), fusions=FUSIONS, heard=heard, folder=cache
        )
        measured[heard] = found.as_json()
        if plots:
            plot_noise(found, plots)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file"
    )
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--cache", type=Path, help="keep what was embedded here, for the next run")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    machine.one_core()
    plots = None if args.dry else machine.RESULTS / "plots"
    measured = asyncio.run(measure(Path(args.data), args.embedder, args.cache, plots))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("noise", measured))


if __name__ == "__main__":
    main()
