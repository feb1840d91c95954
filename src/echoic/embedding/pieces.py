"""From an encoder's token vectors to the word pieces that are kept: projected to a few axes, unit length.

The axes are the first right singular vectors, not centred, of token vectors of lines of random words, which
scripts/axes.py made: no conversation is in them. MiniLM's tokens live in far fewer directions than it has.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.texts import unit
from echoic.partition import AXES, Pieces


@cache
def axes() -> NDArray[np.float32]:
    """[dimensions, AXES] The shipped axes of all-MiniLM-L6-v2, for its fp32 and int8 variants alike."""
    with (files("echoic.embedding") / "axes.npy").open("rb") as stream:
        found: NDArray[np.float32] = np.load(stream, allow_pickle=False).astype(np.float32)
    assert found.shape[1] == AXES
    return found


def pieces_of(hidden: NDArray[np.float32], spans: tuple[tuple[int, int], ...]) -> Pieces:
    """The word pieces of one text.

    Args:
        hidden: [pieces, dimensions], as they leave the encoder, without those of [CLS] and [SEP].
        spans: the characters each stands for.
    """
    # a copy: a view would keep the whole batch in memory
    return Pieces(axes=unit(hidden @ axes()), hidden=hidden.copy(), spans=spans)


__all__ = ["axes", "pieces_of"]
