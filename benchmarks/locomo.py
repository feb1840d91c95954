"""LoCoMo: how often the turns that answer a question are among the first found.

    python -m benchmarks.locomo --data dev.json      # or ECHOIC_LOCOMO=dev.json

`echoic bench recall` over turns, over observations, over both in one store as after learning, and over turns
as a remote embedder would have them: it hands out no word pieces. Figures go by the names the README uses:
`echoic` is the default, `hybrid` is reciprocal rank fusion with MongoDB's weights of 0.7 and 0.3, `text` is
BM25 alone, `vector` cosine alone. The
data (snap-research/LoCoMo, CC BY-NC 4.0) is not part of Echoic.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.arguments import parsed, parser_for_locomo
from echoic.embedding import embedder_from
from echoic.types import Memory, Turn
from echoic_bench.corpus import VectorsOnly, corpus_of
from echoic_bench.locomo import CATEGORIES
from echoic_bench.plots import plot_recall
from echoic_bench.reading import read
from echoic_bench.recall import RecallFound, measure_recall


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]
    category: int | str


@dataclass
class Conversation:
    """One sample, for measurements that go through it turn by turn."""

    user: str
    turns: list[Turn]
    observations: list[Memory]
    questions: list[Question]


def load(path: Path) -> list[Conversation]:
    """Every sample. Ids of turns begin with the user: no two of the data are alike."""
    numbers = {name: number for number, name in CATEGORIES.items()}
    return [
        Conversation(
            turns.user,
            [item for item in turns.items if isinstance(item, Turn)],
            [item for item in facts.items if isinstance(item, Memory)],
            [Question(q.text, q.evidence, numbers[q.category]) for q in turns.questions],
        )
        for turns, facts in zip(read(path).users, read(path, facts=True).users, strict=True)
    ]


SYSTEMS = {"blend": "echoic", "rrf": "hybrid", "text": "text", "vector": "vector"}


async def measure(path: Path, embedder: str, cache: Path | None, plots: Path | None) -> dict[str, Any]:
    measured: dict[str, Any] = {"embedder": embedder}
    for name in ("turns", "observations", "turns and observations", "turns, vectors only"):
        dataset = read(path, facts=name == "observations", mixed=name == "turns and observations")
        made = embedder_from(embedder)
        given = VectorsOnly(made) if name.endswith("vectors only") else made
        async with corpus_of(dataset, given, cache) as corpus:
            found = await measure_recall(corpus, list(SYSTEMS))
        measured["conversations"] = [each.user for each in dataset.users]
        measured[name] = as_json(found)
        print(name, {n: tally.percent() for n, tally in found.tallies.items()}, file=sys.stderr)
        if plots:
            plot_recall(found, plots / name.replace(", ", "-").replace(" ", "-"))
    return measured


def as_json(found: RecallFound) -> dict[str, Any]:
    """As scripts/figures.py reads it."""
    dataset = found.corpus.dataset
    return {
        "rows": dataset.rows,
        "questions": dataset.questions,
        **{SYSTEMS[name]: _system(tally) for name, tally in found.tallies.items()},
        **{
            f"echoic over {SYSTEMS[name]}, 95 % interval": {m: gain.points() for m, gain in gains.items()}
            for name, gains in found.gains().items()
        },
    }


def _system(tally: Any) -> dict[str, Any]:
    by_category = {name: tally.percent(name)["R@10"] for name in CATEGORIES.values()}
    return {**tally.percent(), "R@10 by category": by_category, "leaks": tally.leaks}


def main() -> None:
    args = parsed(parser_for_locomo(__doc__))
    machine.one_core()
    plots = None if args.dry else machine.RESULTS / "plots"
    measured = asyncio.run(measure(args.data, args.embedder, args.cache, plots))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("locomo", measured))


if __name__ == "__main__":
    main()
