"""What to look for after an erasure: bytes of what was removed, a sample where that was much. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from echoic.stores.base import Record

T = TypeVar("T")
NEEDLE_BYTES = 40
TELLING_BYTES = 8
"""Shorter ones stand in any file, for other reasons."""


def text_needles(data: Any, forms: Callable[[str], Iterable[bytes]]) -> list[bytes]:
    """The beginning of the longest text in `data`, in each of the `forms` it may be written in."""
    longest = max(strings(data), key=len, default="")
    return [form[:NEEDLE_BYTES] for form in forms(longest) if len(form) >= TELLING_BYTES]


def as_json(text: str) -> bytes:
    """A text as it stands inside JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


def vector_needle(vector: NDArray[np.float32]) -> bytes:
    """The ten fullest numbers in a row; empty where they are mostly zeros, as any page may hold."""
    width = NEEDLE_BYTES // vector.itemsize
    filled = np.convolve(vector != 0, np.ones(width, int), "valid" if len(vector) >= width else "same")
    at = int(filled.argmax())
    return vector[at : at + width].tobytes() if filled[at] > width // 2 else b""


def sample(items: Sequence[T], most: int) -> list[T]:
    """At most so many of `items`, spread evenly."""
    return list(items[:: max(1, -(-len(items) // most))])


def removed(old: Record, new: Record) -> Record:
    """`old` with no more than the texts that `new` no longer holds, each from where the two begin to differ.

    The words before and behind are still there, and rightly so.
    """
    left = set(strings(new.data))
    gone = [text for text in strings(old.data) if text not in left]
    told = [(text, max(left, key=lambda other: _shared(text, other), default="")) for text in gone]
    return replace(old, data={str(n): text[_shared(text, other) :] for n, (text, other) in enumerate(told)})


def strings(data: Any) -> Iterator[str]:
    """Every text in `data`, which is JSON."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from strings(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from strings(value)


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(min(one, other, key=len))
    )
