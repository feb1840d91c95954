"""What becomes of the labelled secrets of the voice corpus when its calls are kept with the door on.

    PYTHONPATH=packages/echoic-corpus/src:tests python tests/secrets_kept.py train --show

prints counts by class: secrets whose words, or digits, are still somewhere in what is kept of their caller, and
turns that were masked although no secret is labelled in them. `--show` lists both, and only of the callers that
rules may be made on.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import echoic
from echoic import Turn
from echoic_corpus import DATA, Caller, Trap, read, splits
from echoic_corpus.digits import runs

_LEAST_PART = 6
"""Digits that are not said again by chance inside a longer number."""
_TURN_S = 8


@dataclass
class Kept:
    """What was kept of some callers."""

    turns: int = 0
    secrets: list[tuple[str, Trap, bool]] = field(default_factory=list)
    """By caller; whether its words or digits are still there."""
    touched: list[tuple[str, str, str]] = field(default_factory=list)
    """Turns with no labelled secret that were masked: id, as said, as kept."""
    texts: dict[str, str] = field(default_factory=dict)
    """Every turn as it is kept, by id."""

    @property
    def left(self) -> list[tuple[str, Trap]]:
        return [(caller, trap) for caller, trap, kept in self.secrets if kept]


def callers_of(split: str, *names: str) -> list[Caller]:
    """The callers of a split, or those that are named."""
    callers = []
    for name in [name for name, side in splits().items() if side == split and (not names or name in names)]:
        caller, problems = read(DATA / "callers" / f"{name}.txt")
        assert not problems, problems[:3]
        callers.append(caller)
    return callers


async def kept_of(callers: Sequence[Caller]) -> Kept:
    """Play the calls of `callers`, turn by turn, and look at everything that is kept."""
    kept = Kept()
    for caller in callers:
        async with echoic.open("memory://", embedder="lexical") as memory:
            user = memory.user(caller.id)
            for call in caller.calls:
                conversation = await user.conversation(f"{caller.id}/{call.number}")
                for place, turn in enumerate(call.turns):
                    await conversation.append(
                        Turn(
                            id=turn.id,
                            speaker={"caller": "user", "agent": "agent"}.get(turn.role, turn.speaker),
                            text=turn.text,
                            heard=None if turn.heard is None else turn.heard_text,
                            said_at=call.at + timedelta(seconds=_TURN_S * place),
                        )
                    )
                await conversation.complete()
                await conversation.distil()
                kept.texts |= {turn.id: turn.text for turn in await conversation.turns()}
            everything = list(_strings(await user.export()))
        _count(kept, caller, everything)
    return kept


def _count(kept: Kept, caller: Caller, everything: list[str]) -> None:
    words = [_words(text) for text in everything]
    numbers = {run for text in everything for run in runs(text)}
    labelled = set()
    for trap in caller.traps:
        if trap.reason == "secret":
            labelled.add(trap.turn)
            kept.secrets.append((caller.id, trap, _is_there(trap.span.quote, words, numbers)))
    kept.turns += len(caller.turns)
    for turn in caller.turns.values():
        if turn.id not in labelled and kept.texts[turn.id] != turn.text:
            kept.touched.append((turn.id, turn.text, kept.texts[turn.id]))


def _is_there(secret: str, words: list[str], numbers: set[str]) -> bool:
    said = _words(secret)
    if any(f" {said} " in f" {each} " for each in words):
        return True
    digits = "".join(runs(secret))
    if len(digits) < 3 or len(digits) < sum(sign.isalpha() for sign in secret) / 12:
        return False
    return digits in numbers or (len(digits) >= _LEAST_PART and any(digits in number for number in numbers))


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("’", "'")))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _strings(each)]
    return []


def main(split: str, *, show: bool) -> None:
    callers = callers_of(split)
    kept = asyncio.run(kept_of(callers))
    all_of = Counter(trap.kind for _, trap, _ in kept.secrets)
    left = Counter(trap.kind for _, trap in kept.left)
    for kind, count in all_of.most_common():
        print(f"{kind}: {left[kind]} of {count} kept")
    print(
        f"{split}: {left.total()} of {all_of.total()} kept; touched {len(kept.touched)} of {kept.turns} turns"
    )
    if show and split == "train":
        for caller, trap in kept.left:
            print(f"\nKEPT {trap.kind} {trap.span.quote!r}")
            turns = list(
                {turn.id: turn for each in callers if each.id == caller for turn in each.turns.values()}
            )
            at = turns.index(trap.turn)
            for name in turns[max(0, at - 2) : at + 2]:
                print(f"  {name} {kept.texts[name]}")
        for name, said, text in kept.touched:
            print(f"\nTOUCHED {name} {said}\n     -> {text}")


if __name__ == "__main__":
    main(sys.argv[1], show="--show" in sys.argv)
