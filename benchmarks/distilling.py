"""What comes to be known from whole conversations, and how well duplicates are told.

python -m benchmarks.distilling [--model PROVIDER:MODEL]

`distilling_set.jsonl`: spoken conversations with corrections, barge-ins, hypotheticals, other people, what
agents say, moves, jokes, "forget that" and instructions meant for the agent. Each is said to a user of its
own through the real service, turn after turn, and what is known afterwards is compared with what an attentive
person would have kept (`expect`: the slot, and words the value holds). A memory nobody expected counts as
wrong; so does a second one for the same expectation. Without --model the rules are measured alone; with it,
both.

The conversations were written before the rules were run on them, and the rules were not changed afterwards;
of the labels, three were renamed to the slot the rules use (a daughter is a `child`) and one that had been
forgotten was added. The pairs of statements in `duplicates_set.jsonl` are what the threshold in
`memory/extraction/known_facts.py` was chosen on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import echoic
from benchmarks import machine
from echoic.embedding import embedder_from
from echoic.memory.extraction.known_facts import ALIKE, same_meaning, same_words
from echoic.types import Memory, Turn

SET = Path(__file__).parent / "distilling_set.jsonl"
PAIRS = Path(__file__).parent / "duplicates_set.jsonl"
START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


@dataclass
class Score:
    """Counts over conversations."""

    right: int = 0
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    from_the_agent: list[tuple[str, str]] = field(default_factory=list)
    contradictions: list[tuple[str, str]] = field(default_factory=list)
    turn_s: list[float] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + len(self.wrong))

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + len(self.missed))


def conversations() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]


async def measure(model: str | None = None) -> Score:
    """Say every conversation to a user of its own, and count."""
    score = Score()
    async with echoic.open("memory://", embedder="lexical", model=model) as memory:
        for labelled in conversations():
            user = memory.user(f"user-{labelled['id']}")
            call = await user.conversation(f"call-{labelled['id']}")
            for at, (speaker, text, *heard) in enumerate(labelled["turns"]):
                turn = Turn(
                    speaker=speaker,
                    text=text,
                    heard=heard[0] if heard else None,
                    said_at=START + timedelta(seconds=10 * at),
                    id=str(at),
                )
                await call.append(turn)
                began = time.perf_counter()
                await call.distil()
                score.turn_s.append(time.perf_counter() - began)
            count(score, labelled, await user.facts())
    return score


def count(score: Score, labelled: dict[str, Any], facts: list[Memory]) -> None:
    """Compare what is known after a conversation with what was to be known."""
    left = list(labelled["expect"])
    for memory in facts:
        found = next((expected for expected in left if _matches(expected, memory)), None)
        if found is None:
            score.wrong.append((labelled["id"], memory.key or "", memory.text))
        else:
            score.right += 1
            left.remove(found)
        speakers = {labelled["turns"][int(name)][0] for name in memory.source}
        if speakers != {"user"}:
            score.from_the_agent.append((labelled["id"], memory.text))
    score.missed += [(labelled["id"], expected["slot"], expected["says"]) for expected in left]
    keys = Counter(memory.key for memory in facts if memory.key)
    score.contradictions += [(labelled["id"], key) for key, times in keys.items() if times > 1]


def _matches(expected: dict[str, str], memory: Memory) -> bool:
    slot = (memory.key or "fact").partition(":")[0]
    said = f"{memory.text} {memory.statement or ''}".casefold()
    return slot == expected["slot"] and expected["says"] in said


async def duplicates() -> dict[str, Any]:
    """How many pairs that say the same are told, by words and by meaning, and how many that do not."""
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    embedder = embedder_from("local")
    await embedder.open()
    texts = list(dict.fromkeys(text for pair in pairs for text in pair["texts"]))
    vectors = dict(zip(texts, await embedder.embed(texts, "document"), strict=True))
    await embedder.aclose()

    def alike(one: str, other: str) -> bool:
        return same_meaning(one, other, float(vectors[one] @ vectors[other]))

    same = [pair["texts"] for pair in pairs if pair["same"]]
    different = [pair["texts"] for pair in pairs if not pair["same"]]
    return {
        "cosine_from": ALIKE,
        "same": len(same),
        "told_by_words": sum(same_words(*pair) for pair in same),
        "told_by_meaning": sum(alike(*pair) for pair in same),
        "different": len(different),
        "wrongly_the_same": sum(alike(*pair) for pair in different),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a language model that joins the rules")
    arguments = parser.parse_args()
    score = asyncio.run(measure(arguments.model))
    measured = {
        "model": arguments.model,
        "conversations": len(conversations()),
        "stored": score.right + len(score.wrong),
        "expected": score.right + len(score.missed),
        "precision": round(score.precision, 3),
        "recall": round(score.recall, 3),
        "from_the_agent": score.from_the_agent,
        "contradictions": score.contradictions,
        "wrong": score.wrong,
        "missed": score.missed,
        "turn": machine.percentiles(score.turn_s),
        "duplicates": asyncio.run(duplicates()),
    }
    path = machine.save("distilling" if arguments.model is None else "distilling_model", measured)
    print(json.dumps(measured, indent=1), path, sep="\n")


if __name__ == "__main__":
    main()
