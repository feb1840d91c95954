"""What each weight of the ranking is worth on LoCoMo, and how delicate it is: the tables of docs/ranking.md.

    python -m benchmarks.weights --data dev.json     # or ECHOIC_LOCOMO=dev.json

Every question's channels are computed once; then the second look's weights are left out one by one, and
multiplied one by one, and the number of candidates is changed. Nothing is fitted here: see `echoic tune`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from echoic.embedding import embedder_from
from echoic.ranking import fusion
from echoic.ranking.fusion import BROAD, CLOSE, FusionWeights
from echoic_bench.asked import Asked, asked_of, tally_of
from echoic_bench.corpus import corpus_of
from echoic_bench.reading import read

LEFT_OUT = ("late", "text", "meaning", "speaker", "date", "answer", "when", "asking", "length", "many")
MULTIPLIED = ("late", "text", "meaning", "speaker", "date", "answer")
FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5)
CANDIDATES = (16, 32, 64, 128)
SHOWN = ("R@5", "R@10", "nDCG@10", "session R@5")


def figures(asked: Sequence[Asked], close: FusionWeights) -> dict[str, Any]:
    found = tally_of(asked, BROAD, close).percent()
    return {name: found[name] for name in SHOWN}


def with_candidates(asked: Sequence[Asked], count: int) -> float:
    usual = fusion.CANDIDATES
    fusion.CANDIDATES = count
    try:
        return figures(asked, CLOSE)["R@10"]
    finally:
        fusion.CANDIDATES = usual


async def asked_in(path: Path, *, facts: bool) -> list[Asked]:
    async with corpus_of(read(path, facts=facts), embedder_from("local")) as corpus:
        return await asked_of(corpus)


async def measure(path: Path) -> dict[str, Any]:
    turns, facts = [await asked_in(path, facts=facts) for facts in (False, True)]
    variants = {"nothing": CLOSE} | {name: replace(CLOSE, **{name: 0.0}) for name in LEFT_OUT}
    return {
        "questions": {"turns": len(turns), "facts": len(facts)},
        "left out": {
            name: figures(turns, close) | {"facts R@10": figures(facts, close)["R@10"]}
            for name, close in variants.items()
        },
        "R@10, multiplied": {
            name: {
                str(factor): figures(turns, replace(CLOSE, **{name: factor * getattr(CLOSE, name)}))["R@10"]
                for factor in FACTORS
            }
            for name in MULTIPLIED
        },
        "R@10, candidates": {str(count): with_candidates(turns, count) for count in CANDIDATES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file"
    )
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    machine.one_core()
    print(machine.save("weights", asyncio.run(measure(Path(args.data)))))


if __name__ == "__main__":
    main()
