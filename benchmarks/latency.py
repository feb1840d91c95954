"""How long a caller waits, question encoded and not, one caller and four at once.

    python -m benchmarks.latency                     # 1,000, 10,000 and 100,000 turns of one user

`echoic bench latency` on the cores there are: the encoder may use them, as in production.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from benchmarks import machine
from echoic.embedding import embedder_from
from echoic_bench.latency import CALLERS, SIZES, measure_latency
from echoic_bench.plots import plot_latency


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--folder", type=Path, help="where to put the stores (a disk, not a RAM disk)")
    parser.add_argument("--dry", action="store_true", help="small sizes; print, write nothing to results/")
    args = parser.parse_args()
    sizes = SIZES[:1] if args.dry else SIZES
    found = asyncio.run(
        measure_latency(embedder_from(args.embedder), sizes=sizes, callers=CALLERS, folder=args.folder)
    )
    measured = {"embedder": args.embedder, "by_size": [one.as_json() for one in found]}
    if args.dry:
        print(json.dumps(measured, indent=1))
        return
    plot_latency(found, machine.RESULTS / "plots")
    print(machine.save("latency", measured))


if __name__ == "__main__":
    main()
