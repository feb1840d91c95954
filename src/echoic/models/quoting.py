"""What was said, made into data a model can read and cannot mistake for anything else. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

# Tags of any markup, the tokens models mark roles with, and code fences.
_MARKUP: Final = re.compile(
    r"<\|.{0,40}?\|>|</?[A-Za-z!?][^<>]{0,200}>|\[/?(?:INST|SYS|SYSTEM|ASSISTANT|USER|TOOL)\]|`{3,}|#{3,}|={4,}",
    re.IGNORECASE,
)
# Characters a reader does not see: directions, joiners, tags, private use and half characters.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_LEFT: Final = str.maketrans({"<": "‹", ">": "›"})


def stripped(text: str, limit: int) -> str:
    """`text` without markup and hidden characters, cut to `limit` characters."""
    shown = "".join(
        character if unicodedata.category(character) not in _HIDDEN else " "
        for character in text[: 4 * limit]
    )
    bare = _MARKUP.sub(" ", shown)
    return " ".join(bare.split()).translate(_LEFT)[:limit]


def quoted(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` as JSON, one a line: nothing in them can end its string, its line or the list."""
    return "\n".join(json.dumps(dict(row), ensure_ascii=False) for row in rows)
