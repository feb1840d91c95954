"""Packing: what a question costs in tokens, and how much of its evidence stands in what the model gets.

    python -m benchmarks.packing --data dev.json      # or ECHOIC_LOCOMO=dev.json
    python -m benchmarks.packing --split test         # the callers of packages/echoic-corpus

Of LoCoMo (snap-research/LoCoMo, CC BY-NC 4.0, not part of Echoic) or of the corpus, whose calls are learned
from as they end: every question to `UserMemory.brief` in several budgets, against the whole transcript of the
conversation stuffed into the prompt. Tokens are counted as the product counts them, and by the WordPiece
tokenizer of the local encoder (30,000 entries, so it cuts finer than the tokenizers of large models) to see
whether the product's estimate is on the safe side.

`evidence`: the share of a question's evidence turns whose words stand in the text, as a hit or beside one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.locomo import Conversation, Question, load
from echoic.embedding import embedder_from
from echoic.embedding.encoder import WordPieces
from echoic.embedding.weights import find
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.prompt.answer import Packed
from echoic.prompt.block import estimate_tokens, quoted
from echoic.stores import store_from
from echoic.types import Turn
from echoic_bench.locomo import CATEGORIES
from echoic_bench.telephone import callers_of

BUDGETS = (200, 300, 400, 600)
_SEEN_CHARACTERS = 60


@dataclass
class Tally:
    tokens: list[int] = field(default_factory=list)
    word_pieces: list[int] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    category: list[int | str] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    merged: int = 0
    over_budget: int = 0
    leaks: int = 0

    def summary(self) -> dict[str, Any]:
        of = np.array(self.category)
        evidence = np.array(self.evidence)
        return {
            "tokens": _spread(self.tokens),
            "word pieces": _spread(self.word_pieces),
            "evidence": round(100 * float(evidence.mean()), 1),
            "evidence by category": {
                CATEGORIES.get(number, number): round(100 * float(evidence[of == number].mean()), 1)
                for number in dict.fromkeys(self.category)
            },
            "hits shown": round(float(np.mean(self.shown)), 1),
            "merged": self.merged,
            "over budget": self.over_budget,
            "leaks": self.leaks,
        }


def _spread(values: Sequence[int]) -> dict[str, float]:
    p50, p95 = np.percentile(values, [50, 95])
    return {"mean": round(float(np.mean(values)), 1), "p50": float(p50), "p95": float(p95)}


def word_pieces() -> Callable[[str], int]:
    pieces = WordPieces(find(None, "fp32", None).tokenizer)
    return lambda text: sum(1 for _ in pieces.cut(text))


def transcript(conversation: Conversation) -> str:
    """All that was said, as one would stuff it into a prompt: a line a turn, a heading a session."""
    lines: list[str] = []
    for before, turn in zip([None, *conversation.turns], conversation.turns, strict=False):
        if before is None or before.conversation != turn.conversation:
            lines.append(f"{turn.said_at:%d %B %Y}:")
        lines.append(f"{turn.speaker}: {turn.heard_text}")
    return "\n".join(lines)


def add(tally: Tally, made: Packed, question: Question, turns: dict[str, Turn]) -> None:
    stands = [_stands_in(made.text, turns[name]) for name in question.evidence]
    tally.evidence.append(sum(stands) / len(stands))
    tally.tokens.append(made.tokens)
    tally.category.append(question.category)
    tally.shown.append(len(made.shown))
    tally.merged += made.merged


def _stands_in(text: str, turn: Turn) -> bool:
    return quoted(turn.heard_text)[1:-1][:_SEEN_CHARACTERS] in text


def of_corpus(split: str, limit: int | None) -> list[Conversation]:
    return [
        Conversation(
            each.user,
            [item for item in each.items if isinstance(item, Turn)],
            [],
            [Question(q.text, q.evidence, q.category) for q in each.answerable],
        )
        for each in callers_of(split)[:limit]
    ]


async def measure(
    conversations: Sequence[Conversation], embedder: str, budgets: Sequence[int]
) -> dict[str, Any]:
    count = word_pieces()
    tallies = {budget: Tally() for budget in budgets}
    async with MemoryService(store_from("memory://"), embedder_from(embedder)) as service:
        for conversation in conversations:
            await _fill(service.user(conversation.user), conversation)
        if not await service.settle(timeout_s=3600):
            raise RuntimeError("not everything got its vector")
        for conversation in conversations:
            user, turns = service.user(conversation.user), {turn.id: turn for turn in conversation.turns}
            for question in conversation.questions:
                for budget, tally in tallies.items():
                    made = await user.brief(question.text, budget_tokens=budget)
                    add(tally, made, question, turns)
                    tally.word_pieces.append(count(made.text))
                    tally.over_budget += made.tokens > budget
                    tally.leaks += sum(hit.scope.user != user.scope.user for hit in made.shown)
            print(conversation.user, file=sys.stderr)
    whole = [transcript(conversation) for conversation in conversations for _ in conversation.questions]
    stuffed = {text: (estimate_tokens(text), count(text)) for text in dict.fromkeys(whole)}
    return {
        "embedder": embedder,
        "questions": len(whole),
        "whole transcript": {
            "tokens": _spread([stuffed[text][0] for text in whole]),
            "word pieces": _spread([stuffed[text][1] for text in whole]),
        },
        **{f"budget {budget}": tally.summary() for budget, tally in tallies.items()},
    }


async def _fill(user: UserMemory, conversation: Conversation) -> None:
    for session in dict.fromkeys(turn.conversation for turn in conversation.turns):
        call = await user.conversation(session)
        await call.append(*(turn for turn in conversation.turns if turn.conversation == session))
        await call.complete()
        await call.distil()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file")
    parser.add_argument("--split", choices=["train", "dev", "test"], help="of the corpus, instead of LoCoMo")
    parser.add_argument("--limit", type=int, help="only the first so many conversations or callers")
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS, help="in tokens")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    if not args.data and not args.split:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO, or --split")
    logging.getLogger("echoic").setLevel(logging.ERROR)  # that other people are on the line is meant
    machine.one_core()
    asked = of_corpus(args.split, args.limit) if args.split else load(Path(args.data))[: args.limit]
    measured = asyncio.run(measure(asked, args.embedder, args.budgets))
    name = f"packing-corpus-{args.split}" if args.split else "packing"
    print(json.dumps(measured, indent=1) if args.dry else machine.save(name, measured))


if __name__ == "__main__":
    main()
