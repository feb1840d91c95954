"""The word pieces of a text as an encoder understands them there: what late interaction compares.

A store keeps them packed, beside the pooled vector they go with; it never looks inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput

AXES = 64
"""Directions in which a piece is kept. LoCoMo: 64 find as much as 128, and 384 find 0.4 of R@10 more."""
MAX_PIECES = 128
"""The first pieces of a text that are kept: what one says in a breath, in a transcript a minute."""
MAX_BYTES = AXES * MAX_PIECES

_SCALE = 127


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of one text, without the marks an encoder puts around it."""

    axes: NDArray[np.float32]
    """[pieces, AXES], unit length."""
    hidden: NDArray[np.float32]
    """[pieces, dimensions], as they leave the encoder: their mean is the direction of the text's vector."""
    spans: tuple[tuple[int, int], ...]
    """The characters of the text each piece stands for: first, and the one behind the last."""

    def packed(self) -> bytes:
        """The form a store keeps: at most `MAX_PIECES`, a signed byte per axis."""
        return np.round(_SCALE * self.axes[:MAX_PIECES]).astype(np.int8).tobytes()


def unpacked(blobs: list[bytes]) -> NDArray[np.float32]:
    """[pieces, AXES] of all texts, one behind the other; unit length but for the rounding.

    Raises:
        InvalidInput: these are not what `Pieces.packed` makes.
    """
    axes, scale = as_packed(blobs)
    return axes * np.float32(scale)


def as_packed(blobs: list[bytes]) -> tuple[NDArray[np.float32], float]:
    """`unpacked`, and what it still has to be multiplied with.

    Raises:
        InvalidInput: these are not what `Pieces.packed` makes.
    """
    data = np.frombuffer(b"".join(blobs), np.int8)
    if data.size % AXES:
        raise InvalidInput(f"{data.size} bytes are no whole word pieces of {AXES} axes each")
    return data.reshape(-1, AXES).astype(np.float32), 1 / _SCALE


def checked_tokens(tokens: bytes | None) -> bytes | None:
    """`tokens`, if a store can keep them.

    Raises:
        InvalidInput: they are longer than any text's.
    """
    if tokens is not None and len(tokens) > MAX_BYTES:
        raise InvalidInput(f"{len(tokens)} bytes of word pieces: a text has {MAX_BYTES} at most")
    return tokens
