"""What every embedder does with its input and output: refuse what cannot be encoded, bring to unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from echoic.embedding.base import Kind, Vectors
from echoic.errors import InvalidInput

KINDS: tuple[Kind, ...] = get_args(Kind)


def checked_texts(texts: Sequence[str], kind: Kind, *, blank: bool = True) -> list[str]:
    """`texts` as a list of strings that can be encoded.

    Args:
        texts: any Unicode, of any length.
        kind: what they are.
        blank: whether a text without a visible character is let through.

    Raises:
        InvalidInput: a single string was given, a value is no string or holds half a character, a text is
            blank where that is not allowed, or `kind` is neither "query" nor "document".
    """
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {kind!r}: use one of {', '.join(KINDS)}")
    if isinstance(texts, str):
        raise InvalidInput("texts must be a sequence of strings, not one string: write embed([text], kind)")
    return [_checked(text, position, blank=blank) for position, text in enumerate(texts)]


def _checked(text: object, position: int, *, blank: bool) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"text {position} must be a string, not {type(text).__name__}")
    if not blank and not text.strip():
        raise InvalidInput(f"text {position} is blank: a hosted model has no vector for it. Leave it out.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"text {position} holds half a character (a lone surrogate) at position {error.start}. "
                "Decode it again, with errors='replace' if need be."
            ) from None  # the cause would carry the text itself
    return text


def unit(vectors: Vectors) -> Vectors:
    """`vectors` [n, dimensions] with each row at length 1. A row of zeros has no direction and stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
    return scaled


__all__ = ["KINDS", "checked_texts", "unit"]
