"""What people said as one line between quotes, which nothing in it can close. Pure.

What is left out is left out for the model's eyes only: memory itself keeps every text as it was said.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

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
