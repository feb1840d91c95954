"""Key/value memories: does "what's my name?" find the name, and is what holds before what held?

    python -m benchmarks.keyvalue                    # 500 people

`echoic bench keyvalue` with the default embedder; and, for fewer people, with the fusions it is compared with
and with the embedder that knows no meaning. `run` asks the ranking itself, for the tests that pin it, and can
leave the question's vector out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.filled import Filled, Searchable
from echoic.embedding import embedder_from
from echoic.ranking import query_of, rank
from echoic.ranking.query import Query
from echoic.types import Memory, Scope, Turn
from echoic_bench.attributes import ATTRIBUTES
from echoic_bench.callers import START, Question, people, told
from echoic_bench.keyvalue import measure_keyvalue
from echoic_bench.plots import plot_recall

__all__ = ["ATTRIBUTES", "START", "System", "measure", "people", "run"]


@dataclass
class Tally:
    """Of each question: was it plain, and at which place is the memory that answers it (0: nowhere)."""

    plain: list[bool] = field(default_factory=list)
    place: list[int] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        plain, place = np.array(self.plain), np.array(self.place)
        kinds = {"plain": plain, "paraphrased": ~plain, "all": plain | ~plain}
        return {
            kind: {f"hit@{cut}": _percent((place[of] > 0) & (place[of] <= cut)) for cut in (1, 5)}
            for kind, of in kinds.items()
        }


def _percent(values: np.ndarray) -> float:
    return round(100 * float(np.mean(values)), 1)


@dataclass(frozen=True)
class System:
    fusion: str = "blend"
    with_vector: bool = True
    floor: float | None = None


async def run(embedder: str, systems: dict[str, System], count: int) -> dict[str, Any]:
    """Every question of `count` people to every system, and how corrected values come out."""
    filled = Filled(embedder_from(embedder))
    await filled.open()
    tallies = {name: Tally() for name in systems}
    corrected: list[bool] = []
    for number, person in enumerate(people(count)):
        searched = await filled.add(Scope("keyvalue", f"person-{number}"), told(person))
        queries = await filled.queries([question.text for question in person.questions])
        keys = {memory.key for memory in person.memories if not memory.current}
        for question, query in zip(person.questions, queries, strict=True):
            for name, system in systems.items():
                place = _place(searched, question, query, system)
                tallies[name].plain.append(not question.paraphrased)
                tallies[name].place.append(place)
            if question.key in keys:
                first = _current_first(searched, question, query, next(iter(systems.values())))
                corrected += [] if first is None else [first]
    return {
        "questions": len(next(iter(tallies.values())).place),
        **{name: tally.summary() for name, tally in tallies.items()},
        "corrected values found with their past": len(corrected),
        "the current one comes before its past": _percent(np.array(corrected)),
    }


def _place(searched: Searchable, question: Question, query: Query, system: System) -> int:
    query = query if system.with_vector else query_of(question.text)
    hits = rank(query, [searched.partition], limit=5, fusion=system.fusion, floor=system.floor)
    return next((n for n, hit in enumerate(hits, 1) if _answers(searched.items[hit.row], question)), 0)


def _current_first(searched: Searchable, question: Question, query: Query, system: System) -> bool | None:
    """With the past included, whether what holds stands before what held; None unless both are found."""
    query = replace(query if system.with_vector else query_of(question.text), include_past=True)
    hits = rank(query, [searched.partition], limit=100, fusion=system.fusion, floor=system.floor)
    found = [item for hit in hits if _answers(item := searched.items[hit.row], question)]
    current = [item.current for item in found if isinstance(item, Memory)]
    return current[0] if len(set(current)) == 2 else None


def _answers(item: Memory | Turn, question: Question) -> bool:
    return isinstance(item, Memory) and item.key == question.key


COMPARED = 40
"""People asked by every fusion, and with the embedder that knows no meaning: enough to tell them apart."""


async def measure(count: int, cache: Path | None, plots: Path | None) -> dict[str, Any]:
    some = min(count, COMPARED)
    default = await measure_keyvalue(embedder_from("local"), people=count, fusions=["blend"], folder=cache)
    compared = await measure_keyvalue(embedder_from("local"), people=some, folder=cache)
    lexical = await measure_keyvalue(embedder_from("lexical"), people=some, fusions=["blend"], folder=cache)
    if plots:
        plot_recall(compared.recall, plots)
    return {
        "people": count,
        "local": default.as_json(),
        f"local, every fusion, {some} people": compared.as_json(),
        f"lexical, {some} people": lexical.as_json(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--cache", type=Path, help="keep what was embedded here, for the next run")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    machine.one_core()
    plots = None if args.dry else machine.RESULTS / "plots"
    measured = asyncio.run(measure(args.people, args.cache, plots))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("keyvalue", measured))


if __name__ == "__main__":
    main()
