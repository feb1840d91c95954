"""LoCoMo: how often the turns that answer a question are among the first found.

    python -m benchmarks.locomo --data dev.json      # or ECHOIC_LOCOMO=dev.json

Retrieval only, no language model. The data (snap-research/LoCoMo, CC BY-NC 4.0) is not part of Echoic: get
it there and give its path. Every conversation is a user of one deployment, every turn a turn, every question
of the categories 1 to 4 that names its evidence a query. A second run keeps the data's observations as
memories instead: short facts, each with the turns it comes from.

Systems: `text` is BM25 alone, `vector` cosine alone, `hybrid` reciprocal rank fusion with MongoDB's weights
of 0.7 and 0.3, `echoic` the default. All are `echoic.ranking` over the same partitions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.filled import Filled, Searchable
from echoic.embedding import embedder_from
from echoic.ranking import rank
from echoic.ranking.query import Query
from echoic.types import Memory, Scope, Turn

DEPLOYMENT = "locomo"
DEPTH = 50
CUTS = (5, 10, 20, 50)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
SYSTEMS = ("text", "vector", "hybrid", "echoic")
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # "D8:6; D9:17" and "D:11:26" occur
PAIRED_DRAWS = 2000


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]
    category: int


@dataclass
class Conversation:
    user: str
    turns: list[Turn] = field(default_factory=list)
    observations: list[Memory] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def load(path: Path) -> list[Conversation]:
    return [_conversation(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    found = Conversation(sample["sample_id"])
    talk = sample["conversation"]
    names = sorted((n for n in talk if re.fullmatch(r"session_\d+", n)), key=lambda n: int(n[8:]))
    said_at = {}
    for name in names:
        said_at[name] = datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for said in talk[name]:
            found.turns.append(_turn(said, name, said_at[name]))
    known = {turn.id for turn in found.turns}
    for name in names:
        found.observations += _observations(
            sample["observation"].get(f"{name}_observation", {}), name, said_at[name]
        )
    for asked in sample["qa"]:
        evidence = frozenset(_turn_ids(asked["evidence"])) & known
        if asked["category"] in CATEGORIES and evidence:
            found.questions.append(Question(asked["question"], evidence, asked["category"]))
    return found


def _turn(said: dict[str, Any], session: str, said_at: datetime) -> Turn:
    caption = said.get("blip_caption")
    text = f"{said['text']} [shares a photo: {caption}]" if caption else said["text"]
    return Turn(speaker=said["speaker"], text=text, id=said["dia_id"], conversation=session, said_at=said_at)


def _observations(by_speaker: dict[str, Any], session: str, said_at: datetime) -> Iterator[Memory]:
    for speaker, observed in by_speaker.items():
        for number, (text, source) in enumerate(observed):
            ids = tuple(_turn_ids(source if isinstance(source, list) else [source]))
            name = f"{session}-{speaker}-{number}"
            yield Memory(id=name, text=text, author=speaker, source=ids, valid_from=said_at)


def _turn_ids(written: Sequence[str]) -> list[str]:
    return [f"D{int(a)}:{int(b)}" for text in written for a, b in EVIDENCE.findall(text)]


@dataclass
class Tally:
    """One system's figures, question by question."""

    recall: list[list[float]] = field(default_factory=list)
    """[questions, CUTS]"""
    hit: list[float] = field(default_factory=list)
    reciprocal: list[float] = field(default_factory=list)
    ndcg: list[float] = field(default_factory=list)
    session_recall: list[float] = field(default_factory=list)
    category: list[int] = field(default_factory=list)
    leaks: int = 0

    def add(
        self, found: list[frozenset[str]], evidence: frozenset[str], relevant: int, category: int
    ) -> None:
        """Count a list of hits, each given by the turns it stands for; `relevant` rows there are in all."""
        right = [bool(turns & evidence) for turns in found]
        cuts = [frozenset().union(*found[:cut]) for cut in CUTS]
        self.recall.append([len(evidence & cut) / len(evidence) for cut in cuts])
        self.hit.append(float(any(right[:10])))
        self.reciprocal.append(next((1 / place for place, is_right in enumerate(right, 1) if is_right), 0.0))
        gained = sum(1 / np.log2(place + 1) for place, is_right in enumerate(right[:10], 1) if is_right)
        ideal = sum(1 / np.log2(place + 1) for place in range(1, min(10, relevant) + 1))
        self.ndcg.append(gained / ideal)
        sessions = list(dict.fromkeys(_session(turn) for turns in found for turn in sorted(turns)))[:5]
        wanted = {_session(turn) for turn in evidence}
        self.session_recall.append(len(wanted & set(sessions)) / len(wanted))
        self.category.append(category)

    def summary(self) -> dict[str, Any]:
        recall = np.array(self.recall)
        of = np.array(self.category)
        percent = {f"R@{cut}": _percent(recall[:, i]) for i, cut in enumerate(CUTS)}
        percent |= {
            "hit@10": _percent(self.hit),
            "MRR": _percent(self.reciprocal),
            "nDCG@10": _percent(self.ndcg),
        }
        percent["session R@5"] = _percent(self.session_recall)
        categories = {name: _percent(recall[of == number, 1]) for number, name in CATEGORIES.items()}
        return {**percent, "R@10 by category": categories, "leaks": self.leaks}


def _session(turn: str) -> str:
    return turn.partition(":")[0]


def _percent(values: Sequence[float] | np.ndarray) -> float:
    return round(100 * float(np.mean(values)), 1)


def ask(
    tally: Tally,
    system: str,
    query: Query,
    question: Question,
    searched: Searchable,
    stands_for: dict[int, frozenset[str]],
) -> None:
    """One question to one system."""
    name = {"hybrid": "rrf", "echoic": "blend"}.get(system, system)
    # The systems compared with take whatever is nearest, however far it is.
    floor = None if system == "echoic" else -1.0
    hits = rank(query, [searched.partition], limit=DEPTH, fusion=name, floor=floor)
    tally.leaks += sum(hit.row not in stands_for for hit in hits)
    covered = frozenset().union(*stands_for.values()) & question.evidence
    relevant = sum(bool(turns & covered) for turns in stands_for.values())
    tally.add([stands_for.get(hit.row, frozenset()) for hit in hits], covered, relevant, question.category)


async def run(
    conversations: Sequence[Conversation],
    embedder: str,
    items: Callable[[Conversation], list[Memory] | list[Turn]],
) -> dict[str, Tally]:
    """All conversations in one store, each as its own user; every question to every system."""
    filled = Filled(embedder_from(embedder))
    await filled.open()
    tallies = {system: Tally() for system in SYSTEMS}
    searched = [await filled.add(Scope(DEPLOYMENT, c.user), items(c)) for c in conversations]
    for conversation, place in zip(conversations, searched, strict=True):
        stands_for = {
            row: frozenset([item.id] if isinstance(item, Turn) else item.source)
            for row, item in place.items.items()
        }
        everything = frozenset().union(*stands_for.values())
        questions = [q for q in conversation.questions if q.evidence & everything]
        queries = await filled.queries([q.text for q in questions])
        for question, query in zip(questions, queries, strict=True):
            for system, tally in tallies.items():
                ask(tally, system, query, question, place, stands_for)
    return tallies


def gain(ours: Tally, theirs: Tally) -> dict[str, list[float]]:
    """Difference in points, with its 95 % interval by paired bootstrap over questions."""
    draw = np.random.default_rng(0)
    apart = {
        "R@10": 100 * (np.array(ours.recall)[:, 1] - np.array(theirs.recall)[:, 1]),
        "nDCG@10": 100 * (np.array(ours.ndcg) - np.array(theirs.ndcg)),
    }
    found = {}
    for name, difference in apart.items():
        drawn = draw.integers(0, len(difference), (PAIRED_DRAWS, len(difference)))
        low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
        found[name] = [round(float(value), 1) for value in (difference.mean(), low, high)]
    return found


async def measure(path: Path, embedder: str) -> dict[str, Any]:
    conversations = load(path)
    turns = await run(conversations, embedder, lambda c: c.turns)
    print("turns", {name: tally.summary() for name, tally in turns.items()}, file=sys.stderr)
    facts = await run(conversations, embedder, lambda c: c.observations)
    return {
        "conversations": [c.user for c in conversations],
        "embedder": embedder,
        "turns": _table(turns, sum(len(c.turns) for c in conversations)),
        "observations": _table(facts, sum(len(c.observations) for c in conversations)),
    }


def _table(tallies: dict[str, Tally], rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "questions": len(tallies["echoic"].hit),
        **{name: tally.summary() for name, tally in tallies.items()},
        "echoic over hybrid, 95 % interval": gain(tallies["echoic"], tallies["hybrid"]),
        "echoic over text, 95 % interval": gain(tallies["echoic"], tallies["text"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file"
    )
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    machine.one_core()
    measured = asyncio.run(measure(Path(args.data), args.embedder))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("locomo", measured))


if __name__ == "__main__":
    main()
