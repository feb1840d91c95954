"""Text for a model: the block a session starts with, and answers. Quoted data, within a budget. Pure.

What people said is one line between quotes, which nothing in it can close. What is left out is left out for
the model alone: memory keeps every text as it was said.
"""

from __future__ import annotations

import re
import unicodedata
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


MAX_QUOTED_CHARACTERS: Final = 300
"""The longest text in a block. A memory is a sentence; what is longer is found by asking for it."""

_TAG = re.compile(r"<[^<>]{0,200}>")
_HEADING = re.compile(r"#{2,}")
# Brackets of any markup become plain ones, every double quote a single one; what only markup uses goes.
_BLANKS: Final = "<>|\u2039\u203a\u2329\u232a\u3008\u3009\u27e8\u27e9\u276e\u276f\u2770\u2771"
_OPENING: Final = "[{\u3010\u301a"
_CLOSING: Final = "]}\u3011\u301b"
_QUOTES: Final = '"`\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2036\u301d\u301e\u301f\u275d\u275e'
_PLAIN: Final = str.maketrans(
    dict.fromkeys(_BLANKS, " ")
    | dict.fromkeys(_OPENING, "(")
    | dict.fromkeys(_CLOSING, ")")
    | dict.fromkeys(_QUOTES, "'")
    | {"\\": "/"}
    | dict.fromkeys((*range(32), 127), " ")
)


def quoted(text: str, limit: int = MAX_QUOTED_CHARACTERS) -> str:
    """`text` on one line between double quotes, with no markup and no further double quote in it.

    Lookalikes are folded first (NFKC), so that a full-width bracket is a bracket; characters that are not
    seen are taken out. Empty where nothing is left.

    Args:
        text: any.
        limit: characters at most; what is cut off shows as "…".
    """
    # normalising can lengthen a text eighteenfold; what lies behind the cut need not be looked at
    start = text[: 4 * limit]
    seen = start if start.isascii() else _seen(unicodedata.normalize("NFKC", start))
    plain = _HEADING.sub(" ", _TAG.sub(" ", seen).translate(_PLAIN))
    words = " ".join(plain.split())
    cut = words if len(words) <= limit else words[: limit - 1].rstrip() + "…"
    return f'"{cut}"' if cut else ""


def _seen(text: str) -> str:
    """`text` without what no reader sees; what breaks a line becomes a blank."""
    return "".join(
        " " if category in {"Cc", "Zl", "Zp"} else "" if category[0] == "C" else character
        for character in text
        for category in (unicodedata.category(character),)
    )
