"""What is said where nothing is known: questions about other people's lives, without an answer, and remarks.

Everything is asked through `recall` with nothing held back; what a floor would hold back is worked out from
the relevance of the hits, so that one run gives the whole curve.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedder
from echoic.memory.records import index
from echoic.ranking import FLOOR, query_of
from echoic.ranking.channels import Channels
from echoic.ranking.layout import Candidates
from echoic.ranking.relevance import SILENCE, SILENCE_AMONG_PEOPLE, default_floor
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope
from echoic_bench.corpus import DEPLOYMENT, Corpus, Progress, corpus_of, ids_of, silent
from echoic_bench.labelled import Dataset, Labelled, Question

OWN, OTHERS, UNANSWERED = "own", "others", "unanswered"
FLOORS = (0.01, SILENCE, 0.05, 0.1, 0.15, SILENCE_AMONG_PEOPLE, 0.3, 0.5)
"""At which the curve is told."""
DEPTH = 10
BINS = 10
_NAME = re.compile(r"[A-Z][\w-]*")
_SEED = 0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one question."""

    relevances: tuple[float, ...]
    """Of its hits, best first."""
    gained: tuple[float, ...]
    """By hit: the share of the evidence that it is the first to show."""
    right: tuple[bool, ...]
    """By hit: whether it shows any of the evidence."""

    @property
    def best(self) -> float:
        """The highest relevance; 0 without hits."""
        return max(self.relevances, default=0.0)


@dataclass(kw_only=True)
class SilenceFound:
    """What came of all questions, by kind."""

    name: str
    heard: dict[str, list[Heard]] = field(default_factory=dict)
    defaults: set[float] = field(default_factory=set)
    """The floors that hold for these users by default: not the same in calls as between people."""

    def recall(self, floor: float = 0.0) -> float:
        """R@10 of own questions where nothing is said unless the best hit reaches `floor`."""
        own = self.heard[OWN]
        return float(np.mean([sum(one.gained) if one.best >= floor else 0.0 for one in own]))

    def silent(self, kind: str, floor: float) -> float:
        """Which share of the questions of a kind nothing is said to."""
        return float(np.mean([one.best < floor for one in self.heard[kind]]))

    def auroc(self, kind: str) -> float:
        """How often an own question has a likelier best hit than one of `kind`; ties count half."""
        own, other = ([one.best for one in self.heard[each]] for each in (OWN, kind))
        return auroc(np.array(own), np.array(other))

    def calibration_error(self) -> float:
        """Of hits for own questions, questions about others and without an answer."""
        asked = [one for kind in (OWN, OTHERS, UNANSWERED) for one in self.heard.get(kind, ())]
        relevances = np.array([each for one in asked for each in one.relevances])
        return calibration_error(relevances, np.array([each for one in asked for each in one.right]))

    @property
    def kinds(self) -> list[str]:
        """What should be met with silence."""
        return [kind for kind, heard in self.heard.items() if kind != OWN and heard]

    def as_json(self) -> dict[str, Any]:
        """All figures; shares in percent."""
        whole = self.recall()
        return {
            "data": self.name,
            "questions": {kind: len(heard) for kind, heard in self.heard.items()},
            "R@10": round(100 * whole, 1),
            "AUROC": {kind: round(self.auroc(kind), 3) for kind in self.kinds},
            "expected calibration error": round(self.calibration_error(), 4),
            "default": sorted(self.defaults),
            "floors": {
                str(floor): {
                    "R@10 lost": round(100 * (whole - self.recall(floor)), 1),
                    "silent": {kind: round(100 * self.silent(kind, floor), 1) for kind in self.kinds},
                }
                for floor in sorted({*FLOORS, *self.defaults})
            },
        }


async def measure_silence(
    dataset: Dataset,
    embedder: Embedder,
    *,
    lines: Mapping[str, Sequence[str]],
    most: int = 60,
    folder: Path | None = None,
    progress: Progress = silent,
) -> SilenceFound:
    """Ask every user of `dataset` their own questions and everything that nothing should be said to.

    Args:
        dataset: whose memories.
        embedder: makes vectors; closed at the end.
        lines: by kind, remarks and questions that no memory answers.
        most: questions of each kind and user.
        folder: where the store is kept for the next run; None: nowhere.
        progress: told after every user.

    Raises:
        EmbedderUnavailable: something could not be embedded.
    """
    found = SilenceFound(name=dataset.name)
    async with corpus_of(dataset, embedder, folder, progress) as corpus:
        found.defaults = await floors_of(corpus)
        await _ask(corpus, found, lines, most, progress)
    return found


async def floors_of(corpus: Corpus) -> set[float]:
    """The floors that hold for the users of `corpus` by default."""
    store = SQLiteStore(corpus.path)
    await store.open(corpus.embedder.spec, index)
    floors: set[float] = set()
    try:
        for whose in corpus.dataset.users:
            partition = await store.load(Scope(DEPLOYMENT, whose.user))
            with partition.lock:
                place = Candidates.of(partition, include_past=False)
                channels = Channels(query_of(""), [place], FLOOR)
                pieces = "people" if channels.among_people else "pieces"
                floors.add(default_floor(channels, pieces if corpus.embedder.has_pieces else "words"))
    finally:
        await store.aclose()
    return floors


async def _ask(
    corpus: Corpus, found: SilenceFound, lines: Mapping[str, Sequence[str]], most: int, progress: Progress
) -> None:
    dataset = corpus.dataset
    async with corpus.opened() as memory:
        for number, whose in enumerate(dataset.users, 1):
            user = memory.user(whose.user, DEPLOYMENT)
            for kind, question in questions_of(whose, dataset, lines, most):
                recall = await user.recall(question.text, limit=DEPTH, min_relevance=0)
                relevances = tuple(hit.relevance for hit in recall.hits)
                heard = _heard(relevances, ids_of(recall), whose, question)
                found.heard.setdefault(kind, []).append(heard)
            progress(number, len(dataset.users))


def questions_of(
    whose: Labelled, dataset: Dataset, lines: Mapping[str, Sequence[str]], most: int
) -> Iterator[tuple[str, Question]]:
    """What one user is asked, with its kind: the same at every run."""
    draw = random.Random(f"{_SEED}-{whose.user}")  # noqa: S311 - the same at every run is meant
    others = [other for other in dataset.users if other.user != whose.user]
    asked: dict[str, Sequence[Question]] = {
        OWN: whose.answerable,
        UNANSWERED: whose.unanswered,
        OTHERS: [_without_answer(text) for text in about_others(whose, others, most, draw)],
    }
    asked |= {kind: [_without_answer(text) for text in texts] for kind, texts in lines.items()}
    for kind, questions in asked.items():
        yield from ((kind, each) for each in draw.sample(questions, min(most, len(questions))))


def about_others(whose: Labelled, others: Sequence[Labelled], count: int, draw: random.Random) -> list[str]:
    """Questions about the lives of `others`, with their names replaced by this one's."""
    asked = [other for other in others if other.questions]
    chosen = draw.choices(asked, k=count) if asked else []
    return [renamed(draw.choice(other.questions).text, other, whose) for other in chosen]


def renamed(text: str, theirs: Labelled, ours: Labelled) -> str:
    """`text` with each name of `theirs` replaced by one of the same group of `ours`."""
    table: dict[str, str] = {}
    for group, mine in zip(theirs.names, ours.names, strict=False):
        for number, name in enumerate(group):
            if mine:
                table.setdefault(name, mine[number % len(mine)])
    return _NAME.sub(lambda found: table.get(found.group(), found.group()), text)


def auroc(own: Floats, other: Floats) -> float:
    """How often a value of `own` is above one of `other`; ties count half (Hanley and McNeil 1982)."""
    ordered = np.sort(other)
    below = np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right")
    return float(below.mean() / (2 * len(other)))


def calibration_error(relevances: Floats, right: NDArray[np.bool_]) -> float:
    """Between what was promised and what was right, over ten equal bins (Naeini et al. 2015)."""
    bins = np.minimum((relevances * BINS).astype(int), BINS - 1)
    apart = [abs(relevances[bins == each].sum() - right[bins == each].sum()) for each in range(BINS)]
    return float(sum(apart) / max(len(relevances), 1))


def _without_answer(text: str) -> Question:
    return Question(text=text, evidence=frozenset())


def _heard(
    relevances: tuple[float, ...], found: Sequence[tuple[str, ...]], whose: Labelled, question: Question
) -> Heard:
    seen: frozenset[str] = frozenset()
    gained: list[float] = []
    right: list[bool] = []
    for names in found:
        shown = frozenset[str]().union(*map(whose.stood_for, names)) & question.evidence
        right.append(bool(shown))
        gained.append(len(shown - seen) / max(1, len(question.evidence)))
        seen |= shown
    return Heard(relevances, tuple(gained), tuple(right))


__all__ = [
    "FLOORS",
    "OTHERS",
    "OWN",
    "UNANSWERED",
    "Heard",
    "SilenceFound",
    "about_others",
    "auroc",
    "calibration_error",
    "floors_of",
    "measure_silence",
    "questions_of",
    "renamed",
]
