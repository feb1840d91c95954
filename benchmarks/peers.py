"""Echoic beside mem0, Chroma and LangGraph's store: the same texts, vectors and questions in one run.

    pip install mem0ai chromadb langgraph            # into an environment of their own
    python -m benchmarks.peers --data dev.json       # or ECHOIC_LOCOMO=dev.json

`echoic bench peers`; what is not installed is left out, and the result says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path

from benchmarks import machine
from echoic.bench.peers.comparing import measure_peers
from echoic.bench.plots import plot_peers
from echoic.bench.reading import read
from echoic.embedding import embedder_from


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file"
    )
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--folder", type=Path, help="where to put the stores (a disk, not a RAM disk)")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    machine.one_core()
    found = asyncio.run(
        measure_peers(read(Path(args.data)), embedder_from(args.embedder), folder=args.folder)
    )
    if args.dry:
        print(json.dumps(found.as_json(), indent=1))
        return
    plot_peers(found, machine.RESULTS / "plots")
    print(machine.save("peers", found.as_json()))


if __name__ == "__main__":
    main()
