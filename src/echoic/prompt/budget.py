"""A budget of tokens: how many a text has, by the embedder's own tokenizer or an estimate. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Final, TypeVar

from echoic.errors import InvalidInput, brief

T = TypeVar("T")
Counter = Callable[[str], int]
"""Tokens of a text. The sum over its lines is at least that of the whole."""

_PIECE = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,3}|\s*\n\s*|\s{2,}|[^\sA-Za-z0-9]", re.ASCII)
_WIDE = re.compile("[\u0800-\U0010ffff]")
"""Three bytes of UTF-8 and more."""
_BYTES_AT_MOST: Final = 12
"""A tokenizer that takes a long unknown word for one token is not believed below this."""


def checked_budget(tokens: object) -> int:
    """`tokens` as a budget.

    Raises:
        InvalidInput: it is no whole number above 0.
    """
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        raise InvalidInput(f"budget_tokens must be a whole number above 0, not {brief(tokens)}")
    return tokens


def trimmed(
    parts: Sequence[T], text_of: Callable[[Sequence[T]], str], budget_tokens: int, count: Counter
) -> tuple[list[T], str, int]:
    """`parts` without the last ones that the budget does not hold, their text, and its tokens.

    Lines are counted one by one; a counter may find more in the whole than in its lines. Where not even the
    text of no parts fits, all is empty.
    """
    kept = list(parts)
    while (tokens := count(text := text_of(kept))) > budget_tokens:
        if not kept:
            return [], "", 0
        kept.pop()
    return kept, text, tokens


def estimate_tokens(text: str) -> int:
    """An estimate on the safe side, for byte-pair vocabularies of 100,000 entries and more.

    A word is a token for every 6 letters of English begun, though common ones are one at any length; a number
    is one for every 3 digits, any other sign one for every 2 bytes of UTF-8. A blank goes with the word
    behind it; several, or a line break, are one.
    """
    return len(_PIECE.findall(text)) + (0 if text.isascii() else len(_WIDE.findall(text)))


def counter_of(embedder: Any) -> Counter:
    """How to count: `embedder.count_tokens` where it has one and is loaded, else `estimate_tokens`."""
    counting = getattr(embedder, "count_tokens", None)
    if counting is None:
        return estimate_tokens

    def count(text: str) -> int:
        counted: int | None = counting(text)
        if counted is None:  # not loaded yet
            return estimate_tokens(text)
        return max(counted, ceil(len(text.encode(errors="replace")) / _BYTES_AT_MOST))

    return count
