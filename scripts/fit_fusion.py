"""Find the weights of the second look in calls, `echoic.ranking.fusion.CLOSE_IN_CALLS`, and print them.

    PYTHONPATH=packages/echoic-corpus/src python scripts/fit_fusion.py --cache /tmp/fusion

Fitted to the telephone corpus's `train` callers: their own questions, and the plain ones of
`scripts/relevance/questions.txt`, which count four times. Of 64 candidates the right ones are to stand first
(listwise softmax, from the weights for conversations between people). Printed beside them: what they gain on
the `dev` callers. Nothing here reads the `test` callers, and nothing LoCoMo. Shipped are rounded weights;
`speaker`, `date`, `answer` and `when` keep the proportion to `late` that they have between people, since the
corpus's questions rarely name a person or a day. What was embedded is kept under --cache.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from fit_relevance import embedded_once, plain_questions
from numpy.typing import NDArray

from echoic.embedding import embedder_from
from echoic.memory.records import index
from echoic.ranking import FLOOR, query_of
from echoic.ranking.channels import Channels
from echoic.ranking.fusion import BROAD, CANDIDATES, CLOSE, CLOSE_IN_CALLS, FusionWeights, blend, parts_of
from echoic.ranking.layout import Candidates
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope
from echoic_bench.asked import asked_of, tally_of
from echoic_bench.corpus import DEPLOYMENT, Corpus, corpus_of
from echoic_bench.labelled import Dataset, Labelled
from echoic_bench.telephone import callers_of

FITTED = (
    "late",
    "text",
    "meaning",
    "own_meaning",
    "length",
    "asking",
    "many",
    "speaker",
    "date",
    "answer",
    "when",
)
PLAIN_WEIGHT = 4.0
TEMPERATURE = 0.12
PENALTY, STEPS, RATE = 0.01, 100, 0.05

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of one question."""

    table: Floats
    """[candidates, FITTED]"""
    right: NDArray[np.bool_]
    weight: float


def with_plain(users: Sequence[Labelled]) -> list[Labelled]:
    """The callers with their plain questions behind their own."""
    plain = plain_questions()
    return [replace(each, questions=(*each.questions, *plain.get(each.user, ()))) for each in users]


async def ranked(corpus: Corpus, cache: Path) -> list[Ranked]:
    """Every question of the corpus that has a right candidate."""
    plain = {question.text for each in plain_questions().values() for question in each}
    texts = [question.text for each in corpus.dataset.users for question in each.answerable]
    made = await embedded_once(texts, corpus, cache / "fusion.pkl")
    store = SQLiteStore(corpus.path)
    await store.open(corpus.embedder.spec, index)
    found = []
    for whose in corpus.dataset.users:
        partition = await store.load(Scope(DEPLOYMENT, whose.user))
        ids = {
            record.seq: record.id
            for record in await store.rows(Scope(DEPLOYMENT, whose.user), range(partition.size))
        }
        for question in whose.answerable:
            vector, pieces = made[question.text]
            with partition.lock, np.errstate(invalid="ignore"):
                channels = Channels(
                    query_of(question.text, vector, pieces=pieces), [Candidates.of(partition)], FLOOR
                )
                rows = np.sort(blend(channels, CANDIDATES).rows)
                parts = parts_of(channels) | {"late": np.nan_to_num(channels["late"])}
            nothing = np.zeros(partition.size, np.float32)
            table = np.stack([parts.get(name, nothing)[rows] for name in FITTED], axis=1)
            right = np.array([bool(whose.stood_for(ids[row]) & question.evidence) for row in rows.tolist()])
            if right.any():
                found.append(Ranked(table, right, PLAIN_WEIGHT if question.text in plain else 1.0))
    await store.aclose()
    return found


def batches(asked: Sequence[Ranked]) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Tables, which rows there are, what is right (a share of 1), weights; padded, some at a time."""
    for first in range(0, len(asked), 500):
        some = asked[first : first + 500]
        tables = np.zeros((len(some), CANDIDATES, len(FITTED)), np.float32)
        there, right = (np.zeros(tables.shape[:2], np.float32) for _ in range(2))
        for number, one in enumerate(some):
            tables[number, : len(one.table)], there[number, : len(one.table)] = one.table, 1
            right[number, : len(one.right)] = one.right / one.right.sum()
        yield tables, there, right, np.array([one.weight for one in some], np.float32)


def fitted(asked: Sequence[Ranked], start: FusionWeights) -> FusionWeights:
    """The weights under which the right candidates stand first; near `start` where little is gained."""
    spread = np.concatenate([one.table for one in asked]).std(axis=0) + 1e-6
    begun = np.array([getattr(start, name) for name in FITTED], np.float32) * spread / TEMPERATURE
    moved, mean, square = (np.zeros(len(FITTED), np.float32) for _ in range(3))
    ready = list(batches(asked))
    total = sum(one.weight for one in asked)
    for step in range(1, STEPS + 1):
        slope = PENALTY * moved
        for tables, there, right, weight in ready:
            scores = np.where(there > 0, (tables / spread) @ (begun + moved), -1e3)
            likely = np.exp(scores - scores.max(axis=1, keepdims=True))
            likely /= likely.sum(axis=1, keepdims=True)
            slope += np.einsum("qc,qcf->f", (likely - right) * weight[:, None], tables / spread) / total
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        rate = RATE * (1 - step / STEPS) / (1 - 0.9**step)
        moved -= rate * mean / (np.sqrt(square / (1 - 0.99**step)) + 1e-6)
    found = (begun + moved) * TEMPERATURE / spread
    return replace(
        start, **{name: round(float(weight), 2) for name, weight in zip(FITTED, found, strict=True)}
    )


async def learn(cache: Path, most: int | None) -> None:
    """Fit to the training callers, and measure on those of `dev`."""
    train = Dataset(name="fusion-train", users=tuple(with_plain(callers_of("train")[:most])))
    async with corpus_of(train, embedder_from("local"), cache) as corpus:
        found = fitted(await ranked(corpus, cache), CLOSE)
    print("fitted", asdict(found))
    dev = Dataset(name="fusion-dev", users=tuple(callers_of("dev")[:most]))
    async with corpus_of(dev, embedder_from("local"), cache) as corpus:
        asked = await asked_of(corpus)
    for name, close in (("between people", CLOSE), ("fitted", found), ("shipped", CLOSE_IN_CALLS)):
        figures = tally_of(asked, BROAD, close).percent()
        print(name, {metric: figures[metric] for metric in ("R@5", "R@10", "nDCG@10")})


def main() -> None:
    """Learn and print."""
    parser = argparse.ArgumentParser(description="Find the weights of the second look in calls.")
    parser.add_argument("--cache", type=Path, required=True, help="where stores and vectors are kept")
    parser.add_argument("--callers", type=int, help="how many callers of each split; by default all")
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    asyncio.run(learn(given.cache, given.callers))


if __name__ == "__main__":
    main()
