"""What of an agent's words was heard, and a history that holds no more than that. Pure.

Whoever was interrupted has not heard the rest; a model that believes it said so would rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def heard_part(said: str, until: str) -> str:
    """The beginning of `said` that was heard, where `until` is what speech output reports it had come to.

    The report may begin later than `said` (with the last utterance), and differ in blanks, case and signs.
    Its words are looked for in order; what cannot be found was not heard.
    """
    words = [(match.group().casefold(), match.end()) for match in _WORD.finditer(said)]
    wanted = [match.group().casefold() for match in _WORD.finditer(until)]
    if not wanted or not words:
        return ""
    names = [word for word, _ in words]
    start = next((at for at in range(len(names)) if names[at : at + len(wanted)] == wanted), None)
    if start is not None:
        last = start + len(wanted) - 1
    else:
        # the last word may be cut in the middle, or written otherwise: as far as both agree from a start
        last = (
            max(_agreeing(names, wanted, at) for at in range(len(names)) if names[at] == wanted[0])
            if (wanted[0] in names)
            else -1
        )
    return _with_signs(said, words[last][1]) if last >= 0 else ""


def says(said: str, until: str) -> bool:
    """Whether the words of `until` stand in `said`, one behind the other."""
    names = [match.group().casefold() for match in _WORD.finditer(said)]
    wanted = [match.group().casefold() for match in _WORD.finditer(until)]
    return bool(wanted) and any(names[at : at + len(wanted)] == wanted for at in range(len(names)))


def _agreeing(names: Sequence[str], wanted: Sequence[str], start: int) -> int:
    """The place in `names` of the last word that both have, going on from `start`."""
    count = 0
    for name, want in zip(names[start:], wanted, strict=False):
        if name != want:
            break
        count += 1
    return start + count - 1


def _with_signs(said: str, end: int) -> str:
    """`said` up to `end`, with the signs that belong to its last word."""
    while end < len(said) and not said[end].isspace() and not said[end].isalnum():
        end += 1
    return said[:end]


def estimated_part(said: str, seconds: float, characters_per_s: float) -> str:
    """The beginning of `said` that can have been spoken in `seconds`, in whole words."""
    room = int(max(0.0, seconds) * characters_per_s)
    if room >= len(said):
        return said
    return said[: said.rfind(" ", 0, room + 1) + 1].rstrip() if " " in said[: room + 1] else ""


def trimmed(messages: Sequence[ModelMessage], start: int, heard: str) -> list[ModelMessage]:
    """`messages` where the agent's text from place `start` on is cut to the `heard` beginning of it.

    What tools were called and gave stays: it happened, whoever heard of it. A response of which nothing is
    left goes.
    """
    left = _signs(heard)
    kept = list(messages[:start])
    for message in messages[start:]:
        if not isinstance(message, ModelResponse):
            kept.append(message)
            continue
        parts: list[ModelResponsePart] = []
        cut = False
        for part in message.parts:
            if isinstance(part, TextPart):
                text = _first(part.content, left)
                left -= _signs(text)
                cut = cut or text != part.content
                parts += [replace(part, content=text)] if text else []
            else:
                parts.append(part)
        if parts:
            kept.append(replace(message, parts=parts, state="interrupted") if cut else message)
    return kept


def _signs(text: str) -> int:
    """Characters but blanks: those between two parts are nobody's."""
    return sum(not character.isspace() for character in text)


def _first(text: str, signs: int) -> str:
    """The beginning of `text` that has so many characters but blanks; all of it where it has no more."""
    if _signs(text) <= signs:
        return text
    seen = 0
    for at, character in enumerate(text):
        if seen == signs:
            return text[:at].rstrip() if signs else ""
        seen += not character.isspace()
    return text


__all__ = ["estimated_part", "heard_part", "says", "trimmed"]
