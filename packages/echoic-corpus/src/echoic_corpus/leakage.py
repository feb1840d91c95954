"""What splits, and another data set, have in common with each other, counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from echoic_corpus.checking import (
    SHARES,
    contents,
    foreign,
    grams,
    near_duplicates,
    sentences,
    shareable,
    spoken,
)
from echoic_corpus.model import Caller

LOOSE = 0.3
"""A weaker likeness than that of near-duplicates, to see how many are just below."""
_KINDS = {
    "the sentence": "sentences of six words and more",
    "the person": "names of callers and of others on the line",
    "the agent": "agents' names",
    "the business": "businesses",
}
IDENTIFYING = "values that identify (name, address, phone, account, pet, employer and so on)"


def shared(callers: Sequence[Caller], split: Mapping[str, str]) -> list[tuple[str, int, int, int]]:
    """What is compared, how many there are, and how many of them two callers or two splits share."""
    holders: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for caller in callers:
        for what, text, _ in shareable(caller):
            holders[_KINDS.get(what, IDENTIFYING)][what, text].add(caller.id)
    rows = []
    for kind in (*_KINDS.values(), IDENTIFYING):
        held = holders[kind].values()
        apart = [{split.get(name, "") for name in who} for who in held]
        rows.append((kind, len(held), sum(len(who) > 1 for who in held), sum(len(who) > 1 for who in apart)))
    return rows


def near(callers: Sequence[Caller], split: Mapping[str, str], least: float) -> tuple[int, int, int]:
    """How many texts there are, and how many pairs of them are alike, in all and between splits."""
    texts = {name: text for caller in callers for name, (text, _) in spoken(caller).items()}
    pairs = [
        [split.get(name.partition("/")[0]) for name in pair[1:]] for pair in near_duplicates(texts, least)
    ]
    return len(texts), len(pairs), sum(one != other for one, other in pairs)


def common(callers: Sequence[Caller], split: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Of the different 4-grams of one split's turns, the share that another split's turns have too."""
    found = {
        name: {
            gram
            for caller in callers
            if split.get(caller.id) == name
            for turn in caller.turns.values()
            for gram in grams(turn.text)
        }
        for name in SHARES
    }
    return {
        (one, other): len(found[one] & found[other]) / max(1, len(found[one]))
        for other, one in combinations(SHARES, 2)
    }


def abroad(callers: Sequence[Caller], folder: Path) -> dict[str, float]:
    """What the corpus shares with another data set's JSON files."""
    theirs, their_grams = contents(folder)
    texts = [text for caller in callers for text, _ in spoken(caller).values()]
    ours = {gram for text in texts for gram in grams(text)}
    own = {sentence for text in texts for sentence in sentences(text)}
    return {
        "their sentences": len(theirs),
        "their 4-grams": len(their_grams),
        "our sentences": len(own),
        "shared sentences": len(own & theirs),
        "texts found": len({(problem.file, problem.line) for problem in foreign(callers, folder)}),
        "share of 4-grams": len(ours & their_grams) / max(1, len(ours)),
    }


__all__ = ["IDENTIFYING", "LOOSE", "abroad", "common", "near", "shared"]
