"""Key/value memories as a tool writes them, among calls about other matters: does "what's my name?" find it?

And after corrections: does what holds come before what held, once the past is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echoic.embedding.base import Embedder
from echoic.types import Memory
from echoic_bench.callers import dataset_of
from echoic_bench.corpus import DEPLOYMENT, Corpus, Progress, corpus_of, ids_of, silent
from echoic_bench.labelled import Labelled, Question
from echoic_bench.recall import FUSIONS, RecallFound, measure_recall

_FAR = 100
"""Hits looked through for a value and its past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """How corrected values come out when the past is asked for too."""

    asked: int
    """Questions for a value that was corrected."""
    found: int
    """Of those, how many found both what holds and what held."""
    current_first: int
    """Of those, how many with what holds first."""

    @property
    def share(self) -> float:
        """Of what was found with its past, how much stands before it; 1 where nothing was."""
        return self.current_first / self.found if self.found else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueFound:
    """What was found of made-up callers."""

    recall: RecallFound
    updates: Updates

    def as_json(self) -> dict[str, Any]:
        """Everything, in percent."""
        return {
            **self.recall.as_json(),
            "corrected values asked for": self.updates.asked,
            "found with their past": self.updates.found,
            "the current one comes before its past": round(100 * self.updates.share, 2),
        }


async def measure_keyvalue(
    embedder: Embedder,
    *,
    people: int = 500,
    turns: int = 100,
    fusions: Sequence[str] = FUSIONS,
    folder: Path | None = None,
    progress: Progress = silent,
) -> KeyValueFound:
    """Ask `people` made-up callers everything they told.

    Args:
        embedder: makes vectors; closed at the end.
        people: how many.
        turns: how many each has of calls about other matters.
        fusions: who is asked; updates are asked of the first.
        folder: where the store is kept for the next run; None: nowhere.
        progress: told after every question.

    Raises:
        InvalidInput: a fusion is not known.
        EmbedderUnavailable: something could not be embedded.
    """
    async with corpus_of(dataset_of(people, turns=turns), embedder, folder, progress) as corpus:
        recall = await measure_recall(corpus, fusions, progress)
        return KeyValueFound(recall=recall, updates=await updates(corpus, recall.first, progress))


async def updates(corpus: Corpus, fusion: str, progress: Progress = silent) -> Updates:
    """Ask again, the past included, for every value that was corrected."""
    asked = [(whose, q, past) for whose, q in corpus.dataset.asked() if (past := _past(whose, q))]
    orders: list[bool] = []
    async with corpus.opened(fusion) as memory:
        for number, (whose, question, past) in enumerate(asked, 1):
            user = memory.user(whose.user, DEPLOYMENT)
            recall = await user.recall(question.text, limit=_FAR, include_past=True, min_relevance=0)
            versions = [
                name for names in ids_of(recall) for name in names if name in past | question.evidence
            ]
            if past & set(versions) and question.evidence & set(versions):
                orders.append(versions[0] in question.evidence)
            progress(number, len(asked))
    return Updates(asked=len(asked), found=len(orders), current_first=sum(orders))


def _past(whose: Labelled, question: Question) -> frozenset[str]:
    """Ids of the other values there were under the key of what answers `question`."""
    memories = [item for item in whose.items if isinstance(item, Memory)]
    keys = {memory.key for memory in memories if memory.id in question.evidence}
    return frozenset(memory.id for memory in memories if memory.key in keys) - question.evidence


__all__ = ["KeyValueFound", "Updates", "measure_keyvalue", "updates"]
