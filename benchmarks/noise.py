"""What is found on LoCoMo when a recogniser mishears the questions, or what was said and kept.

    python -m benchmarks.noise --data dev.json       # or ECHOIC_LOCOMO=dev.json

`echoic bench noise` in both modes and four strengths, for the default and its comparisons.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.arguments import parsed, parser_for_locomo
from echoic.embedding import embedder_from
from echoic_bench.hearing import HEARD, measure_noise
from echoic_bench.plots import plot_noise
from echoic_bench.reading import read

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
    args = parsed(parser_for_locomo(__doc__))
    machine.one_core()
    plots = None if args.dry else machine.RESULTS / "plots"
    measured = asyncio.run(measure(args.data, args.embedder, args.cache, plots))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("noise", measured))


if __name__ == "__main__":
    main()
