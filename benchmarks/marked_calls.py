"""What is learned from whole calls in which everything worth keeping is marked.

    python -m benchmarks.marked_calls            # `--show` prints what is missing and what is stored besides

`marked_calls/` holds 44 calls by each of five authors, language models that saw neither the code nor one
another's calls. Lines begin with "A: " (agent) or "C: " (caller); what an attentive person would note of the
caller stands in braces behind its kind, with a question mark where only the agent's question makes it a
statement. No rule or weight was chosen on them.

A fact states a mark of the turn that it was learned from if either has half of the other's content words. All
else that is stored counts as not marked, whether it is wrong or only not worth keeping.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import echoic
from benchmarks.whole_calls import LEARNED_S
from echoic.text import content_words
from echoic.types import Turn

FOLDER = Path(__file__).with_name("marked_calls")
MARK = re.compile(r"\{(?P<kind>\w+)(?P<asked>\??): (?P<words>[^{}]*)\}")
ENOUGH = 0.5
ALONE, ASKED = "said in full", "answers"


@dataclass
class Call:
    """A call, and the marks of each of its turns."""

    turns: list[Turn] = field(default_factory=list)
    marks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By turn, whether each was said in full, and its words."""


def calls(path: Path) -> Iterator[Call]:
    """Those of one author."""
    for told in path.read_text("utf-8").split("# call: ")[1:]:
        call = Call()
        for at, line in enumerate(line for line in told.splitlines()[1:] if line):
            text = MARK.sub(lambda mark: mark["words"], line[3:])
            call.turns.append(Turn(id=f"t{at}", speaker="agent" if line[0] == "A" else "user", text=text))
            marks = [(ASKED if mark["asked"] else ALONE, mark["words"]) for mark in MARK.finditer(line)]
            call.marks[f"t{at}"] = marks
        yield call


def alike(one: str, other: str) -> bool:
    """Whether either has half of the other's content words."""
    first, second = (
        {word.stem for word in content_words(text)} or set(text.split()) for text in (one, other)
    )
    return len(first & second) >= ENOUGH * min(len(first), len(second))


async def measured(memory: echoic.MemoryService, user: str, call: Call, *, show: bool) -> Counter[str]:
    """How many marks of `call` are known and not, and how many facts state a mark and none."""
    conversation = await memory.user(user).conversation("call")
    for turn in call.turns:
        await conversation.append(turn)
    await conversation.complete()
    await conversation.distil()
    if not await memory.settle(LEARNED_S):
        raise TimeoutError(f"not everything of {user} was learned in time")
    facts = await memory.user(user).facts()
    count: Counter[str] = Counter()
    texts = [(fact, f"{fact.text} {fact.statement or ''}") for fact in facts]
    for turn, marks in call.marks.items():
        for how, words in marks:
            known = any(turn in fact.source and alike(text, words) for fact, text in texts)
            count[how, known] += 1
            if show and not known:
                print(f"- {how}: {words}")
    for fact, text in texts:
        stated = any(alike(text, words) for turn in fact.source for _, words in call.marks.get(turn, ()))
        count["fact", stated] += 1
        if show and not stated:
            print(f"+ {fact.key or ''}: {fact.text}")
    return count


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print what is missing or not marked")
    show = parser.parse_args().show
    every: Counter[str] = Counter()
    for path in sorted(FOLDER.glob("*.txt")):
        count: Counter[str] = Counter()
        async with echoic.open("memory://", embedder="local") as memory:
            for at, call in enumerate(calls(path)):
                count += await measured(memory, f"{path.stem}-{at}", call, show=show)
        _print(path.stem, count)
        every += count
    _print("all", every)


def _print(name: str, count: Counter[str]) -> None:
    parts = [
        f"{how}: {count[how, True]} of {count[how, True] + count[how, False]} known" for how in (ALONE, ASKED)
    ]
    facts = count["fact", True] + count["fact", False]
    print(f"{name}: {', '.join(parts)}; {count['fact', True]} of {facts} facts are marked", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
