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

from echoic.stores.base import Record

_SAMPLES = 200
"""Of texts and of vectors, spread evenly."""
_NEEDLE_BYTES = 40
_LEAST_BYTES = 8
"""Shorter texts are somebody else's too, more often than not."""


def needles(records: Sequence[Record], vectors: Sequence[bytes]) -> list[bytes]:
    """What to look for after `records` and `vectors` are gone."""
    texts = [needle for record in _sample(records) for needle in _of_text(record)]
    return [*dict.fromkeys(texts), *(vector[:_NEEDLE_BYTES] for vector in _sample(vectors))]


def without_living(found: Iterable[bytes], records: Iterable[Record]) -> list[bytes]:
    """Those of `found` that no living record says as well."""
    living = b"\\0".join(
        form for record in records for text in _strings(record.data) for form in _forms(text)
    )
    return [needle for needle in found if needle not in living]


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
