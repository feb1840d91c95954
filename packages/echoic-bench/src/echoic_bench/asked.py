"""Questions with everything ranking knows of every row, so that weights can be tried on them. No searching.

What is costly about a question, its channels, is computed once; weighing them anew is all that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import embedded
from echoic.memory.records import index
from echoic.ranking import FLOOR, LEXICAL_FLOOR
from echoic.ranking.channels import Channels
from echoic.ranking.fusion import FusionWeights, blend
from echoic.ranking.layout import Candidates
from echoic.ranking.query import query_of
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope
from echoic_bench.corpus import DEPLOYMENT, Corpus, Progress, silent
from echoic_bench.labelled import Labelled, Question
from echoic_bench.metrics import DEPTH, Tally

Floats = NDArray[np.float32]
_DISCOUNTS = 1 / np.log2(np.arange(2, 12))


class KeptChannels(Channels):
    """The channels of one question, computed; `blend` takes them as it takes the living ones."""

    # what the living ones are made from is let go of: nothing is computed again
    def __init__(self, channels: Channels) -> None:
        """Computes all of `channels`; whoever holds their partitions' locks calls this."""
        dict.__init__(self, {name: scores.copy() for name, scores in channels.items()})
        rows = np.arange(len(self["text_window"]))
        closer = channels.look_closer(rows)
        self._closer = None if closer is None else closer.copy()
        if self._closer is not None:
            self["late"] = self._closer
        self.asked = None  # everything was compared
        self.missed = channels.missed
        self.sources = channels.sources
        self.among_people, self.in_calls = channels.among_people, channels.in_calls

    def look_closer(self, candidates: NDArray[np.intp]) -> Floats | None:
        """[candidates] As `Channels.look_closer`; None without word pieces."""
        return None if self._closer is None else self._closer[candidates]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, ready to be weighed."""

    whose: Labelled
    question: Question
    channels: KeptChannels
    ids: Sequence[str]
    """[rows] The item each row holds."""
    right: NDArray[np.bool_]
    """[rows] Whether it answers."""

    def found(self, broad: FusionWeights, close: FusionWeights) -> list[tuple[str, ...]]:
        """Ids of the first hits under these weights: of one hit those of all that shares its place."""
        order = blend(self.channels, DEPTH, broad, close)
        beside = order.beside or ((),) * len(order.rows)
        return [
            tuple(self.ids[row] for row in (first, *others))
            for first, others in zip(order.rows.tolist(), beside, strict=True)
        ]

    def ndcg(self, broad: FusionWeights, close: FusionWeights) -> float:
        """nDCG@10 under these weights, as `metrics` counts it, without the other figures."""
        order = blend(self.channels, 10, broad, close)
        right = self.right[order.rows]
        if order.beside:
            right |= np.array([self.right[list(others)].any() for others in order.beside], np.bool_)
        ideal = float(_DISCOUNTS[: min(10, self.whose.relevant(self.question))].sum())
        return min(1.0, float(_DISCOUNTS[: len(right)][right].sum()) / ideal)


async def asked_of(corpus: Corpus, progress: Progress = silent) -> list[Asked]:
    """Every question of `corpus` with its channels.

    Raises:
        EmbedderUnavailable: a question could not be embedded.
    """
    store = SQLiteStore(corpus.path)
    await store.open(corpus.embedder.spec, index)
    floor = FLOOR if corpus.embedder.semantic else LEXICAL_FLOOR
    found: list[Asked] = []
    try:
        for whose in corpus.dataset.users:
            scope = Scope(DEPLOYMENT, whose.user)
            partition = await store.load(scope)
            ids = [record.id for record in await store.rows(scope, range(partition.size))]
            for question in whose.answerable:
                made = await embedded(corpus.embedder, [question.text], "query")
                pieces = made.pieces[0] if made.pieces else None
                query = query_of(question.text, made.vectors[0], pieces=pieces)
                with partition.lock:
                    place = Candidates.of(partition, include_past=False)
                    kept = KeptChannels(Channels(query, [place], floor))
                right = np.array([bool(whose.answers_for[i] & question.evidence) for i in ids], np.bool_)
                found.append(Asked(whose, question, kept, ids, right))
                progress(len(found), corpus.dataset.questions)
    finally:
        await store.aclose()
    return found


def tally_of(asked: Sequence[Asked], broad: FusionWeights, close: FusionWeights) -> Tally:
    """What these weights find."""
    tally = Tally()
    for one in asked:
        tally.add(one.found(broad, close), one.whose, one.question)
    return tally


def ndcg_of(asked: Sequence[Asked], broad: FusionWeights, close: FusionWeights) -> NDArray[np.float64]:
    """[questions] nDCG@10 under these weights."""
    return np.array([one.ndcg(broad, close) for one in asked], np.float64)


__all__ = ["Asked", "KeptChannels", "asked_of", "ndcg_of", "tally_of"]
