"""Whether anything of what was erased can still be read in a folder. Blocking; only looks.

What is searched: the files of the scope itself, temporary ones included, and every file in its folder that is
nobody's, such as an editor's backup. Another user's file is left out: it is written from that user's records
alone, who may well live in the same town.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.stores.base import Record

_SAMPLES = 200
"""Of texts and of vectors, spread evenly."""
_NEEDLE_BYTES = 40
_LEAST_BYTES = 8
"""Shorter texts are somebody else's too, more often than not."""


def needles(records: Sequence[Record], vectors: Sequence[NDArray[np.float32]]) -> list[bytes]:
    """What to look for after `records` and `vectors` are gone."""
    found = [needle for record in _sample(records) for needle in _of_text(record)]
    found += [needle for vector in _sample(vectors) if len(needle := _of_vector(vector))]
    return list(dict.fromkeys(found))


def without_living(
    wanted: Iterable[bytes], records: Iterable[Record], vectors: Iterable[NDArray[np.float32]]
) -> list[bytes]:
    """Those of `wanted` that no living record says as well, and no living vector holds."""
    texts = b"\0".join(form for record in records for text in _strings(record.data) for form in _forms(text))
    same = {_of_vector(vector) for vector in vectors}
    return [needle for needle in wanted if needle not in texts and needle not in same]


def search(
    folder: Path, is_suspect: Callable[[str], bool], wanted: Sequence[bytes]
) -> tuple[set[bytes], int]:
    """Which of `wanted` the files of `folder` still hold, and how many bytes were looked at.

    Args:
        folder: where the scope's files lie.
        is_suspect: whether a file of that name is to be looked at.
        wanted: what to look for.
    """
    found: set[bytes] = set()
    read = 0
    for name in filter(is_suspect, os.listdir(folder)):  # noqa: PTH208 - names are all that is wanted
        try:
            data = (folder / name).read_bytes()
        except OSError:  # a folder, or gone meanwhile
            continue
        read += len(data)
        found.update(needle for needle in wanted if needle in data)
    return found, read


def _of_text(record: Record) -> Iterator[bytes]:
    longest = max(_strings(record.data), key=len, default="")
    for form in _forms(longest):
        if len(form) >= _LEAST_BYTES:
            yield form[:_NEEDLE_BYTES]


def _of_vector(vector: NDArray[np.float32]) -> bytes:
    """The part that holds most: a vector of words is zero nearly everywhere, as is what was overwritten."""
    width = _NEEDLE_BYTES // vector.itemsize
    full = np.convolve(vector != 0, np.ones(width, int), "valid" if len(vector) >= width else "same")
    at = int(full.argmax())
    return vector[at : at + width].tobytes() if full[at] > width // 2 else b""


def _forms(text: str) -> tuple[bytes, bytes]:
    """A text as JSON has it, and as a line of Markdown has it."""
    said = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    return said, text.encode("utf-8", "replace")


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)


def _sample(items: Sequence[Any]) -> list[Any]:
    step = max(1, len(items) // _SAMPLES)
    return list(items[::step])


__all__ = ["needles", "search", "without_living"]
