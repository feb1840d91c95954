"""Silence in small memories: how often questions about ten to forty turns get no answer, and others do.

    python -m benchmarks.small_stores                      # the stores that choices are made on
    python -m benchmarks.small_stores --split test
    python -m benchmarks.small_stores --data dev.json --sessions 1      # LoCoMo, a store for each session

`small_stores/` holds twelve short memories, written for this by one author in different styles: chats between
people, calls, notes. Each has questions in other words than the turn that answers, questions about what was
never told, and general ones. A store is a file:

    kind: people                 people called by name, or a call
    split: develop               develop: choices may be made on it; test: look once they are made
    == 2026-02-03 19:10          a conversation begins
    Zoe: you alive?              a turn
    ? Is Zoe alive?              a question that the turn above answers
    - What did Zoe earn?         a question that nothing here answers
    ~ How tall is Everest?       a question that no memory answers

Questions go through `recall` at the default threshold, or at `--min-relevance`. Every store is asked twice:
as it was written, and told as the other kind, with names for roles or roles for names. Of LoCoMo, every
second session (or run of `--sessions`) is a store. It is asked the questions whose evidence it holds, as many
about the other conversations with names replaced, and four general questions and remarks of each kind; only
sums are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echoic.embedding import embedder_from
from echoic.types import Turn
from echoic_bench.corpus import DEPLOYMENT, Corpus, corpus_of, ids_of
from echoic_bench.labelled import Dataset, Labelled, Question
from echoic_bench.locomo import users_of
from echoic_bench.offtopic import CHOOSING
from echoic_bench.silence import about_others

FOLDER = Path(__file__).with_name("small_stores")
OWN, UNTOLD, GENERAL = "own", "never told", "general"
_MARKS = {"?": OWN, "-": UNTOLD, "~": GENERAL}
_ROLES = ("user", "agent")
_NAMES = ("Robin", "Sam")
"""What caller and agent are called where a call is told as a conversation between people."""


@dataclass(frozen=True, slots=True)
class Told:
    """One small memory, and what is asked of it."""

    kind: str
    split: str
    turns: tuple[Turn, ...]
    asked: tuple[tuple[str, Question], ...]
    """Each with its kind: `OWN`, `UNTOLD` or `GENERAL`."""


def read(path: Path) -> Told:
    """The store in a file."""
    told: dict[str, str] = {}
    turns: list[Turn] = []
    asked: list[tuple[str, Question]] = []
    conversation, at = 0, datetime(2026, 1, 1, tzinfo=UTC)
    for line in path.read_text("utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "==":
            conversation, at = conversation + 1, datetime.fromisoformat(text).replace(tzinfo=UTC)
        elif mark in _MARKS:
            evidence = frozenset([turns[-1].id]) if mark == "?" else frozenset[str]()
            asked.append((_MARKS[mark], Question(text=text, evidence=evidence)))
        elif conversation:
            speaker, _, said = line.partition(": ")
            turns.append(
                Turn(
                    id=f"{path.stem}/{len(turns)}",
                    speaker=speaker,
                    text=said,
                    conversation=f"{path.stem}/{conversation}",
                    said_at=at.replace(microsecond=len(turns)),
                )
            )
        else:
            name, _, value = line.partition(": ")
            told[name] = value
    return Told(told["kind"], told["split"], tuple(turns), tuple(asked))


def as_other_kind(told: Told) -> Told:
    """The same, told as a call if it was between people, and between people if it was a call."""
    if told.kind == "call":
        called = dict(zip(_ROLES, _NAMES, strict=True))
    else:
        first, *others = dict.fromkeys(turn.speaker for turn in told.turns)
        called = {first: "user", **dict.fromkeys(others, "agent")}
    turns = tuple(replace(turn, speaker=called[turn.speaker]) for turn in told.turns)
    return replace(told, kind="people" if told.kind == "call" else "call", turns=turns)


def stores(split: str) -> dict[str, Told]:
    """By name, the stores of a split as they were written."""
    every = {path.stem: read(path) for path in sorted(FOLDER.glob("*.txt"))}
    return {name: told for name, told in every.items() if told.split == split}


def parts_of_locomo(path: Path, sessions: int) -> dict[str, Told]:
    """By name, runs of so many sessions of each conversation, every second run, as stores of their own."""
    draw = random.Random(sessions)
    users = list(users_of(json.loads(path.read_text("utf-8")), "turns"))
    told: dict[str, Told] = {}
    for whose in users:
        others = [other for other in users if other is not whose]
        order = list(dict.fromkeys(whose.sessions.values()))
        for first in range(0, len(order) - sessions + 1, 2 * sessions):
            name = f"{whose.user}-{first}"
            turns = [
                replace(item, id=f"{name}/{item.id}")
                for item in whose.items
                if isinstance(item, Turn) and item.conversation in order[first : first + sessions]
            ]
            here = {turn.id for turn in turns}
            own = [
                replace(each, evidence=frozenset(f"{name}/{one}" for one in each.evidence))
                for each in whose.questions
            ]
            asked = [(OWN, each) for each in own if each.evidence <= here]
            beside = [(UNTOLD, text) for text in about_others(whose, others, max(4, len(asked)), draw)]
            beside += [(GENERAL, text) for lines in CHOOSING.values() for text in draw.sample(lines, 4)]
            asked += [(kind, Question(text=text, evidence=frozenset())) for kind, text in beside]
            told[name] = Told("people", "locomo", tuple(turns), tuple(asked))
    return told


def dataset_of(told: dict[str, Told], name: str) -> Dataset:
    """The stores as users of one deployment."""
    users = tuple(
        Labelled(
            user=user,
            items=each.turns,
            questions=tuple(question for kind, question in each.asked if kind == OWN),
            sessions={turn.id: turn.conversation for turn in each.turns},
        )
        for user, each in told.items()
    )
    return Dataset(name=name, users=users)


async def ask(
    corpus: Corpus, told: dict[str, Told], min_relevance: float | None = None
) -> list[dict[str, Any]]:
    """How each question fared at the default threshold, or another: a row a store."""
    rows = []
    async with corpus.opened() as memory:
        for name, each in told.items():
            user = memory.user(name, DEPLOYMENT)
            answered: dict[str, list[bool]] = {OWN: [], UNTOLD: [], GENERAL: []}
            found: list[bool] = []
            for kind, question in each.asked:
                recall = await user.recall(question.text, limit=10, min_relevance=min_relevance)
                answered[kind].append(bool(recall.hits))
                if kind == OWN:
                    found.append(any(question.evidence & {*ids} for ids in ids_of(recall)))
            rows.append(
                {
                    "store": name,
                    "kind": each.kind,
                    "turns": len(each.turns),
                    "questions": {kind: len(one) for kind, one in answered.items()},
                    "silent": {kind: one.count(False) for kind, one in answered.items()},
                    "found": sum(found),
                }
            )
    return rows


def lines_of(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """`rows` as a table, with a sum for each kind."""
    yield f"{'store':16} {'kind':7} turns  own silent   found  never told silent  general silent"
    sums = [
        {
            "store": "all",
            "kind": kind,
            "turns": sum(row["turns"] for row in rows if row["kind"] == kind),
            "found": sum(row["found"] for row in rows if row["kind"] == kind),
            **{
                name: {
                    each: sum(row[name][each] for row in rows if row["kind"] == kind)
                    for each in (OWN, UNTOLD, GENERAL)
                }
                for name in ("questions", "silent")
            },
        }
        for kind in dict.fromkeys(row["kind"] for row in rows)
    ]
    for row in [*rows, *sums]:
        silent, asked = row["silent"], row["questions"]
        untold = f"{silent[UNTOLD]:10} of {asked[UNTOLD]:3}"
        yield (
            f"{row['store']:16} {row['kind']:7} {row['turns']:5}  {silent[OWN]:4} of {asked[OWN]:3}"
            f"  {row['found']:6}  {untold}  {silent[GENERAL]:7} of {asked[GENERAL]:3}"
        )


async def measure(
    tellings: Sequence[dict[str, Told]], embedder: str, min_relevance: float | None
) -> list[dict[str, Any]]:
    """Ask every store of each telling."""
    rows = []
    for told in tellings:
        async with corpus_of(dataset_of(told, "small-stores"), embedder_from(embedder)) as corpus:
            rows += await ask(corpus, told, min_relevance)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", choices=("develop", "test"), default="develop")
    parser.add_argument("--data", type=Path, help="LoCoMo's JSON, instead of small_stores/")
    parser.add_argument("--sessions", type=int, default=1, help="of LoCoMo, how many are one store")
    parser.add_argument("--min-relevance", type=float, help="instead of the default threshold")
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    if args.data:
        tellings = [parts_of_locomo(args.data, args.sessions)]
    else:
        written = stores(args.split)
        tellings = [written, {name: as_other_kind(each) for name, each in written.items()}]
    rows = asyncio.run(measure(tellings, args.embedder, args.min_relevance))
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        print(
            "\n".join(line for line in lines_of(rows) if not args.data or line.startswith(("store ", "all ")))
        )


if __name__ == "__main__":
    main()
