"""The vectors of one user, in a file beside the memory: a cache that may be lost, but is never wrong.

A header names the model; then row after row, each at its own place, with a digest of the text it was made of
and a checksum. A row is written in place and is there whole or not at all: one that was cut short fails its
check, one of another text or model is not ours to use, and the record waits for a vector again.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.partition import MAX_BYTES
from echoic.stores.files import disk
from echoic.types import EmbeddingSpec


class Stored(NamedTuple):
    """What is kept of one text."""

    text: bytes
    """Its digest, 16 bytes."""
    vector: NDArray[np.float32]
    tokens: bytes | None = None
    """Its word pieces, packed, where there are any."""


_MAGIC = b"ECV2"
_HEADER = struct.Struct("<4sI16s8x")  # magic, dimensions, the model's digest
_CHECK = struct.Struct("<II")  # checksum, bytes of word pieces


class VectorFile:
    """Vectors of one model at `path`. Blocking; the holder of the user's lock alone may write."""

    def __init__(self, path: Path, spec: EmbeddingSpec) -> None:
        self.path = path
        model = blake2b(spec.model.encode(), digest_size=16).digest()
        self._header = _HEADER.pack(_MAGIC, spec.dimensions, model)
        self._row = np.dtype(
            [
                ("text", "V16"),
                ("check", "<u4"),
                ("size", "<u4"),
                ("vector", "<f4", (spec.dimensions,)),
                ("tokens", f"V{MAX_BYTES}"),
            ]
        )

    def read(self) -> dict[int, Stored]:
        """Every vector that is whole, by row; none where the file is missing or of another model."""
        try:
            data = disk.read(self.path)
        except FileNotFoundError:
            return {}
        if not data.startswith(self._header):
            return {}
        count = (len(data) - _HEADER.size) // self._row.itemsize
        rows = np.frombuffer(data, self._row, count, _HEADER.size)
        there = np.flatnonzero(rows["check"]).tolist()
        found = {}
        for row in there:
            stored = Stored(
                rows["text"][row].tobytes(),
                rows["vector"][row],
                rows["tokens"][row].tobytes()[: rows["size"][row]] or None,
            )
            if _checksum(stored) == rows["check"][row]:
                found[row] = stored
        return found

    def write(self, rows: Mapping[int, Stored]) -> disk.FileStamp:
        """Put vectors at their rows, durable when it returns. A file of another model is begun anew."""
        pieces = {self._at(row): self._packed(stored) for row, stored in rows.items()}
        if not self._is_ours():
            return disk.replace(self.path, self._whole(pieces), overwrite_old=True)
        return disk.patch(self.path, pieces)

    def clear(self, rows: Iterable[int]) -> disk.FileStamp | None:
        """Overwrite the vectors at `rows` with zeros, durable when it returns."""
        state = disk.seen(self.path)
        inside = [row for row in rows if state is not None and self._at(row) < state.size]
        if not inside or not self._is_ours():
            return state
        return disk.patch(self.path, {self._at(row): bytes(self._row.itemsize) for row in inside})

    def _is_ours(self) -> bool:
        try:
            with self.path.open("rb") as stream:
                return stream.read(_HEADER.size) == self._header
        except FileNotFoundError:
            return False

    def _at(self, row: int) -> int:
        return _HEADER.size + row * self._row.itemsize

    def _packed(self, stored: Stored) -> bytes:
        tokens = stored.tokens or b""
        check = _CHECK.pack(_checksum(stored), len(tokens))
        used = stored.text + check + np.ascontiguousarray(stored.vector, "<f4").tobytes() + tokens
        # the whole place: what lay there before may have been longer
        return used.ljust(self._row.itemsize, b"\0")

    def _whole(self, pieces: Mapping[int, bytes]) -> bytes:
        data = bytearray(self._header)
        for offset in sorted(pieces):
            data += bytes(offset - len(data)) + pieces[offset]
        return bytes(data)


def _checksum(stored: Stored) -> int:
    said = stored.text + np.ascontiguousarray(stored.vector, "<f4").tobytes() + (stored.tokens or b"")
    return zlib.crc32(said) or 1  # 0 is what an empty row holds
