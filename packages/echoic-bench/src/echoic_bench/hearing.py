"""How much is found when a recogniser mishears: the questions, or what was said and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from echoic.embedding.base import Embedder
from echoic.types import Memory
from echoic_bench.corpus import Progress, corpus_of, silent
from echoic_bench.labelled import Dataset, Item, Labelled, Question
from echoic_bench.metrics import Interval, Tally, gain, table
from echoic_bench.noise import SEED, STRENGTHS, Errors, Recogniser, Strength, word_errors
from echoic_bench.recall import COMPARED, checked_fusions

Heard = Literal["questions", "transcripts"]
HEARD: tuple[Heard, ...] = ("questions", "transcripts")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFound:
    """What was found of misheard words."""

    dataset: Dataset
    heard: Heard
    """What was misheard."""
    errors: Mapping[Strength, Errors]
    tallies: Mapping[str, Mapping[Strength, Tally]]
    """By fusion and strength."""

    def losses(self, fusion: str) -> dict[Strength, dict[str, Interval]]:
        """By strength and metric: what clean words find more."""
        by_strength = self.tallies[fusion]
        return {
            strength: {metric: gain(by_strength["clean"], tally, metric) for metric in COMPARED}
            for strength, tally in by_strength.items()
            if strength != "clean" and "clean" in by_strength
        }

    def as_json(self) -> dict[str, Any]:
        """Everything, in percent."""
        return {
            "data": self.dataset.name,
            "questions": self.dataset.questions,
            "misheard": self.heard,
            "seed": SEED,
            "word error rate": {name: round(100 * e.rate, 1) for name, e in self.errors.items()},
            "fusions": {
                fusion: {name: table(tally, self.dataset.categories) for name, tally in by_strength.items()}
                for fusion, by_strength in self.tallies.items()
            },
            "clean over": {
                fusion: {
                    name: {metric: found.points() for metric, found in losses.items()}
                    for name, losses in self.losses(fusion).items()
                }
                for fusion in self.tallies
            },
            "leaks": sum(t.leaks for by_strength in self.tallies.values() for t in by_strength.values()),
        }


async def measure_noise(
    dataset: Dataset,
    embedder: Embedder,
    *,
    fusions: Sequence[str] = ("blend",),
    strengths: Sequence[Strength] = STRENGTHS,
    heard: Heard = "questions",
    folder: Path | None = None,
    progress: Progress = silent,
) -> NoiseFound:
    """Ask everything at every strength of mishearing.

    Args:
        dataset: what is kept and asked.
        embedder: makes vectors; closed at the end.
        fusions: who is asked.
        strengths: how badly is heard.
        heard: whether the questions are misheard, or what is kept; the other stays as it was said.
        folder: where stores are kept for the next run; None: nowhere.
        progress: told after every question.

    Raises:
        InvalidInput: a fusion or strength is not known.
        EmbedderUnavailable: something could not be embedded.
    """
    checked_fusions(fusions)
    recogniser = recogniser_of(dataset)
    errors = {strength: _errors(dataset, recogniser, strength, heard) for strength in strengths}
    tallies: dict[str, dict[Strength, Tally]] = {fusion: {} for fusion in fusions}
    for group, kept in _kept(dataset, recogniser, strengths, heard):
        async with corpus_of(kept, embedder, folder, progress) as corpus:
            for strength in group:

                def wording(_whose: Labelled, question: Question, strength: Strength = strength) -> str:
                    return recogniser.hear(question.text, strength if heard == "questions" else "clean")

                for fusion in fusions:
                    tallies[fusion][strength] = await corpus.ask(fusion, wording=wording, progress=progress)
    return NoiseFound(dataset=dataset, heard=heard, errors=errors, tallies=tallies)


def recogniser_of(dataset: Dataset) -> Recogniser:
    """One that knows the words of `dataset`, and its speakers by name."""
    texts = [item.text for each in dataset.users for item in each.items]
    texts += [question.text for each in dataset.users for question in each.questions]
    return Recogniser(texts, _speakers(dataset))


def misheard(dataset: Dataset, recogniser: Recogniser, strength: Strength) -> Dataset:
    """`dataset` with everything kept as it was heard. Who spoke, when, and ids stay."""
    if strength == "clean":
        return dataset
    users = tuple(
        replace(each, items=tuple(_heard(item, recogniser, strength) for item in each.items))
        for each in dataset.users
    )
    return Dataset(name=f"{dataset.name}-{strength}", users=users)


def _heard(item: Item, recogniser: Recogniser, strength: Strength) -> Item:
    return replace(item, text=recogniser.hear(item.text, strength))


def _kept(
    dataset: Dataset, recogniser: Recogniser, strengths: Sequence[Strength], heard: Heard
) -> list[tuple[Sequence[Strength], Dataset]]:
    """What is kept for which strengths."""
    if heard == "questions":
        return [(strengths, dataset)]
    return [([strength], misheard(dataset, recogniser, strength)) for strength in strengths]


def _errors(dataset: Dataset, recogniser: Recogniser, strength: Strength, heard: Heard) -> Errors:
    asked = [question.text for _, question in dataset.asked()]
    said = asked if heard == "questions" else [item.text for each in dataset.users for item in each.items]
    return sum((word_errors(text, recogniser.hear(text, strength)) for text in said), Errors(0, 0))


def _speakers(dataset: Dataset) -> set[str]:
    people = {
        (item.author or "") if isinstance(item, Memory) else item.speaker
        for each in dataset.users
        for item in each.items
    }
    return people - {"", "user", "agent"} - {each.user for each in dataset.users}


__all__ = ["HEARD", "Heard", "NoiseFound", "measure_noise", "misheard", "recogniser_of"]
