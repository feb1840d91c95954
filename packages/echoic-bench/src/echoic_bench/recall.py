"""What is found: every fusion asked every question of a data set, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echoic.errors import InvalidInput
from echoic_bench.corpus import Corpus, Progress, silent
from echoic_bench.metrics import Interval, Tally, gain, table

FUSIONS = ("blend", "rrf", "text", "vector")
COMPARED = ("R@5", "R@10", "nDCG@10", "session R@5", "hit@1", "MRR")
"""The metrics of tables; results hold all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFound:
    """What each fusion found of one data set."""

    corpus: Corpus
    tallies: Mapping[str, Tally]
    """By fusion, in the order asked for."""

    @property
    def first(self) -> str:
        """The fusion the others are compared with."""
        return next(iter(self.tallies))

    def gains(self) -> dict[str, dict[str, Interval]]:
        """By other fusion and metric: what the first finds more."""
        ours = self.tallies[self.first]
        others = {name: tally for name, tally in self.tallies.items() if name != self.first}
        return {name: {m: gain(ours, tally, m) for m in COMPARED} for name, tally in others.items()}

    def as_json(self) -> dict[str, Any]:
        """Everything, in percent."""
        dataset = self.corpus.dataset
        return {
            "data": dataset.name,
            "users": len(dataset.users),
            "rows": dataset.rows,
            "questions": dataset.questions,
            "embedder": self.corpus.embedder.spec.model,
            "fusions": {name: table(tally, dataset.categories) for name, tally in self.tallies.items()},
            f"{self.first} over": {
                name: {metric: found.points() for metric, found in gains.items()}
                for name, gains in self.gains().items()
            },
            "leaks": sum(tally.leaks for tally in self.tallies.values()),
        }


async def measure_recall(
    corpus: Corpus, fusions: Sequence[str] = FUSIONS, progress: Progress = silent
) -> RecallFound:
    """Ask every fusion every question of `corpus`.

    Raises:
        InvalidInput: there is no such fusion.
    """
    checked_fusions(fusions)
    tallies: dict[str, Tally] = {}
    for name in fusions:
        tallies[name] = await corpus.ask(name, progress=progress)
    return RecallFound(corpus=corpus, tallies=tallies)


def checked_fusions(fusions: Sequence[str]) -> list[str]:
    """`fusions`, each once.

    Raises:
        InvalidInput: there is none, or one is not known.
    """
    from echoic.ranking.fusion import FUSIONS as KNOWN

    unknown = [name for name in fusions if name not in KNOWN]
    if unknown or not fusions:
        named = unknown[0] if unknown else ""
        raise InvalidInput(f"unknown fusion {named!r}: use some of {', '.join(KNOWN)}, with commas between")
    return list(dict.fromkeys(fusions))


__all__ = ["COMPARED", "FUSIONS", "RecallFound", "checked_fusions", "measure_recall"]
