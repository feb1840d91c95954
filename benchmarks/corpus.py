"""The voice-memory corpus played to Echoic, mem0, Chroma, LangGraph's store, BM25 and the article's fusion.

    make bench-corpus                                       # all of it, in an environment that has the peers
    python -m benchmarks.corpus --split dev --limit 2       # what is installed here, two callers

`echoic bench corpus`, kept as results/corpus-SPLIT.json and .md, and plots in results/plots/corpus-SPLIT.
`--redraw` writes table and plots again from the kept result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from echoic.embedding import embedder_from
from echoic_bench.cli.corpus import draw
from echoic_bench.voice_corpus import SYSTEMS, Chosen, measure_corpus
from echoic_corpus.grading import VERSIONS
from echoic_corpus.report import charts, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", default="test", choices=["train", "dev", "test"])
    parser.add_argument("--callers", default="", help="only these, with commas between")
    parser.add_argument("--limit", type=int, help="only the first so many")
    parser.add_argument("--systems", default=";".join(SYSTEMS), help="with semicolons between")
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--folder", type=Path, help="where to put the stores (a disk, not a RAM disk)")
    parser.add_argument("--dry", action="store_true", help="print the table, and write nothing to results/")
    parser.add_argument("--redraw", action="store_true", help="measure nothing")
    args = parser.parse_args()
    name = f"corpus-{args.split}"
    if args.redraw:
        written(name, json.loads((machine.RESULTS / f"{name}.json").read_text()))
        return
    logging.getLogger("echoic").setLevel(logging.ERROR)  # that other people are on the line is meant
    chosen = Chosen.of(args.split, [c for c in args.callers.split(",") if c], args.limit)
    found = asyncio.run(
        measure_corpus(
            chosen,
            embedder_from(args.embedder),
            systems=args.systems.split(";"),
            versions=args.versions.split(","),
            folder=args.folder,
            progress=lambda done, total=None: print(f"{done} of {total} callers", file=sys.stderr),
            keep=None if args.dry else lambda part: save(name, part),
        )
    )
    print(table(found))


def save(name: str, found: dict[str, Any]) -> None:
    path = machine.save(name, found)
    written(name, json.loads(path.read_text()))


def written(name: str, found: dict[str, Any]) -> None:
    draw(machine.RESULTS / "plots" / name, charts(found))
    (machine.RESULTS / f"{name}.md").write_text(f"{about(found)}\n\n{table(found)}\n", "utf-8")


def about(found: dict[str, Any]) -> str:
    """Where and with what: the lines above the table."""
    host, systems = found["machine"], found["systems"]
    versions = {n: v for system in systems.values() for n, v in system["versions"].items()}
    without = "".join(f" Without {name}: {why}." for name, why in found["left out"].items())
    busy = (host["load_average_1m"] or 0) > host["cores_used"]
    shared = " The machine was busy with other work, which hits all systems alike:" if busy else " Always"
    return (
        f"Split {found['split']} of echoic-corpus {found['corpus']}: {len(found['callers'])} callers, "
        f"{found['turns']:,} turns, {found['questions']:,} questions. {host['cpu']}, {host['cores_used']} "
        f"cores, load average {host['load_average_1m']}, Python {host['python']}; "
        f"{', '.join(f'{n} {v}' for n, v in versions.items())}; vectors of all by {found['embedder']}; "
        f"{found['wall_s'] // 60} minutes.{without} Percent unless a unit is named; default / best setting."
        f"{shared} compare times within the table only.{found.get('note', '')}"
    )


if __name__ == "__main__":
    main()
