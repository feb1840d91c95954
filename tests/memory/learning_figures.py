"""What is learned from other people's sentences, end to end: each is all that one user ever said.

    python tests/memory/learning_figures.py tests/memory/others_sentences.tsv

A line of the file is a label ("+": durable, "-": a trap), a kind and a sentence, with tabs between.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import echoic

HERE = Path(__file__).parent
OTHERS = HERE / "others_sentences.tsv"
CORRECTIONS = HERE / "corrections.tsv"
AT_ONCE = 16
"""Callers who speak at the same time: short texts that are embedded together cost less."""


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence, and what became of it."""

    durable: bool
    kind: str
    text: str
    stored: bool
    sure: bool
    """Whether something was stored that is not marked as unconfirmed."""


def rows(path: Path) -> list[list[str]]:
    """The columns of each line that is no comment."""
    lines = path.read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


async def learned(calls: Sequence[Sequence[str]]) -> list[tuple[echoic.Memory, ...]]:
    """What is known after each of `calls`: the turns of a user of its own."""
    async with echoic.open("memory://", embedder="local") as memory:

        async def hold(at: int) -> None:
            call = await memory.user(f"user-{at}").conversation("call")
            for text in calls[at]:
                await call.append(echoic.Turn(speaker="user", text=text))
            await call.complete()
            # what happens behind the caller's back anyway, here and now
            await call.distil()

        for first in range(0, len(calls), AT_ONCE):
            await asyncio.gather(*map(hold, range(first, min(first + AT_ONCE, len(calls)))))
        return [tuple(await memory.user(f"user-{at}").facts()) for at in range(len(calls))]


async def said_in(path: Path) -> list[Said]:
    """The sentences of `path`, and what became of each."""
    lines = rows(path)
    known = await learned([[text] for _, _, text in lines])
    return [
        Said(label == "+", kind, text, bool(found), any(memory.confirmed for memory in found))
        for (label, kind, text), found in zip(lines, known, strict=True)
    ]


def precision(said: Sequence[Said]) -> float:
    """Of the sentences of which something was stored, the share that is durable."""
    stored = [one for one in said if one.stored]
    return sum(one.durable for one in stored) / len(stored)


def recall(said: Sequence[Said]) -> float:
    """Of the durable sentences, the share of which something was stored."""
    return share_stored([one for one in said if one.durable])


def share_stored(said: Sequence[Said]) -> float:
    """Of `said`, the share of which something was stored."""
    return sum(one.stored for one in said) / len(said)


async def corrected(half: str) -> list[tuple[str, bool]]:
    """The kind of each correction of `half` in `CORRECTIONS`, and whether only what is so now is known."""
    lines = [row[1:] for row in rows(CORRECTIONS) if row[0] == half]
    known = await learned([turns.split(" | ") for _, turns, _, _ in lines])
    return [
        (kind, _only(new, old, [f"{memory.key or ''} {memory.statement or memory.text}" for memory in found]))
        for (kind, _, new, old), found in zip(lines, known, strict=True)
    ]


def _only(new: str, old: str, known: Sequence[str]) -> bool:
    texts = [text.casefold().rstrip(".") for text in known]
    return any(_in(new, text) for text in texts) and not any(
        _in(old, text) and not _in(new, text) for text in texts
    )


def _in(words: str, text: str) -> bool:
    words = words.casefold()
    return text.endswith(words[:-1]) if words.endswith("$") else words in text


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", default=OTHERS)
    said = await said_in(parser.parse_args().path)
    sure = [Said(one.durable, one.kind, one.text, one.sure, one.sure) for one in said]
    traps = [one for one in said if not one.durable]
    for name, some in (("stored", said), ("sure", sure)):
        traps = [one for one in some if not one.durable]
        print(
            f"{name}: precision {precision(some):.3f}, recall {recall(some):.3f}, "
            f"traps stored {share_stored(traps):.3f} of {len(traps)}"
        )
    by_kind = defaultdict(list)
    for one in said:
        by_kind["+" if one.durable else "-", one.kind].append(one)
    for (label, kind), some in sorted(by_kind.items()):
        print(f"{label} {kind:14s} {sum(one.stored for one in some)} of {len(some)}")
    for half in ("dev", "test"):
        found = await corrected(half)
        print(f"corrections, {half}: {sum(right for _, right in found)} of {len(found)}")


if __name__ == "__main__":
    asyncio.run(_main())
