"""Echoic beside mem0, Chroma and LangGraph's store: the same texts, vectors and questions in one run.

    pip install mem0ai chromadb langgraph            # into an environment of their own
    python -m benchmarks.peers --data dev.json       # or ECHOIC_LOCOMO=dev.json

`echoic bench peers`; what is not installed is left out, and the result says so.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from benchmarks import machine
from benchmarks.arguments import parsed, parser_for_locomo
from echoic.embedding import embedder_from
from echoic_bench.peers.comparing import measure_peers
from echoic_bench.plots import plot_peers
from echoic_bench.reading import read


def main() -> None:
    parser = parser_for_locomo(__doc__, cache=False)
    parser.add_argument("--folder", type=Path, help="where to put the stores (a disk, not a RAM disk)")
    args = parsed(parser)
    machine.one_core()
    found = asyncio.run(measure_peers(read(args.data), embedder_from(args.embedder), folder=args.folder))
    if args.dry:
        print(json.dumps(found.as_json(), indent=1))
        return
    plot_peers(found, machine.RESULTS / "plots")
    print(machine.save("peers", found.as_json()))


if __name__ == "__main__":
    main()
