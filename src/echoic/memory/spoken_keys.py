"""Which of a caller's stored conversations they mean, from a key as it was heard."""

from __future__ import annotations

from collections.abc import Mapping

from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein

from echoic.words import STOP, cut, sound

ENOUGH = 0.6
"""Of the words of the shorter key, the share that must be found in the other, by spelling or sound."""


def match_keys(spoken: str, keys: Mapping[str, str]) -> list[tuple[str, float]]:
    """The ids whose key `spoken` may mean, the likeliest first, with how alike they are (1: the same words).

    Args:
        spoken: the key as the recogniser wrote it.
        keys: id -> key as it was stored.
    """
    said = _words(spoken)
    scored = [(name, _likeness(said, _words(key))) for name, key in keys.items()]
    return sorted(((n, s) for n, s in scored if s >= ENOUGH), key=lambda found: -found[1])


def _words(key: str) -> list[str]:
    words = cut(key)
    return [word for word in words if word not in STOP] or words


def _likeness(said: list[str], key: list[str]) -> float:
    if said == key:
        return 1.0
    if not said or not key:
        return 0.0
    short, long = sorted((said, key), key=len)
    found = sum(max(_alike(a, b) for b in long) for a in short) / len(short)
    whole = fuzz.ratio("".join(said), "".join(key)) / 100  # "oven ready" heard as "ovenready"
    # a key said in part is meant, but one said in full is meant more
    return min(0.99, max(found * (0.85 + 0.15 * len(short) / len(long)), whole if whole > 0.8 else 0.0))


def _alike(a: str, b: str) -> float:
    """0 to 1: the same word, nearly the same spelling, or the same sound."""
    if a == b:
        return 1.0
    edits = DamerauLevenshtein.distance(a, b, score_cutoff=2)
    if edits == 1 and min(len(a), len(b)) >= 4:
        return 0.85
    codes_a, codes_b = sound(a), sound(b)
    if set(codes_a) & set(codes_b):
        return 0.8
    if edits == 2 and min(len(a), len(b)) >= 7:
        return 0.7
    near = any(DamerauLevenshtein.distance(x, y) <= 1 and x[0] == y[0] for x in codes_a for y in codes_b)
    return 0.6 if near and min(len(a), len(b)) >= 4 else 0.0
