"""Stored conversations on the telephone: which one a spoken key means, and what of it helps now. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from echoic.memory.conversation import match_keys
from echoic.prompt import estimate_tokens
from echoic.types import Conversation, Turn
from echoic.words import STOP, content_words, cut, sound

CLOSE: Final = 0.05
"""Two keys whose likeness to what was said differs by no more are not told apart by it."""
_OVERHEAD_TOKENS: Final = 12
"""Of a passage's frame: who said it, and the signs around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What a spoken key means."""

    conversation: Conversation | None = None
    likeness: float = 0.0
    choices: tuple[Conversation, ...] = ()
    """Where it may be one of several: these are to be asked back."""


def meant_by(spoken: str, stored: Sequence[Conversation]) -> Meant:
    """Which of `stored`, oldest first, `spoken` means. Of two under the same words the newer."""
    newest: dict[tuple[str, ...], Conversation] = {}
    for conversation in stored:
        newest[tuple(_words(conversation.recall_key or ""))] = conversation
    keys = {c.id: c.recall_key or "" for c in reversed(newest.values())}
    by_id = {c.id: c for c in newest.values()}
    matches = match_keys(spoken, keys)
    if not matches:
        return Meant()
    name, likeness = matches[0]
    alike = [
        by_id[other]
        for other, score in matches[1:]
        # where one was said word for word, only what sounds the same can have been meant as well
        if (likeness < 1 and likeness - score <= CLOSE) or sound_alike(keys[other], keys[name])
    ]
    if alike:
        return Meant(choices=(by_id[name], *alike[:3]), likeness=likeness)
    return Meant(conversation=by_id[name], likeness=likeness)


def sound_alike(a: str, b: str) -> bool:
    """Whether two keys sound the same, word by word."""
    first, second = _words(a), _words(b)
    if len(first) != len(second):
        return False
    return all(x == y or bool(set(sound(x)) & set(sound(y))) for x, y in zip(first, second, strict=True))


def _words(key: str) -> list[str]:
    words = cut(key)
    return [word for word in words if word not in STOP] or words


def passages(
    turns: Sequence[Turn], moment: str, budget_tokens: int, *, found: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """As many of `turns` as the budget holds: what matches the moment with its neighbours, then the end.

    In the order they were said; what was left out shows as {"turns_left_out": n}.

    Args:
        turns: of one conversation, in order.
        moment: what the call is at.
        budget_tokens: by `estimate_tokens`.
        found: by the id of a turn, where a search by meaning put it, from 0.
    """
    heard = [turn for turn in turns if turn.heard_text.strip()]
    scores = _scores(heard, moment, found or {})
    order = [at for at in sorted(range(len(heard)), key=lambda at: -scores[at]) if scores[at] > 0]
    wanted = [near for at in order for near in (at, at + 1, at - 1) if 0 <= near < len(heard)]
    wanted += reversed(range(len(heard)))  # what it came to stands at the end
    chosen: set[int] = set()
    room = budget_tokens
    for at in dict.fromkeys(wanted):
        cost = estimate_tokens(heard[at].heard_text) + _OVERHEAD_TOKENS
        if cost <= room:
            chosen.add(at)
            room -= cost
    return _shown(heard, chosen)


def page(turns: Sequence[Turn], number: int, budget_tokens: int) -> tuple[list[dict[str, Any]], int]:
    """Page `number`, from 1, of all that was said, and how many pages there are."""
    heard = [turn for turn in turns if turn.heard_text.strip()]
    pages: list[set[int]] = [set()]
    room = budget_tokens
    for at, turn in enumerate(heard):
        cost = estimate_tokens(turn.heard_text) + _OVERHEAD_TOKENS
        if cost > room and pages[-1]:
            pages.append(set())
            room = budget_tokens
        pages[-1].add(at)
        room -= cost
    place = min(max(number, 1), len(pages)) - 1
    return [_said(heard[at]) for at in sorted(pages[place])], len(pages)


def _scores(turns: Sequence[Turn], moment: str, found: Mapping[str, int]) -> list[float]:
    """By words and sounds shared with the moment, the rarer the better, and by what a search found."""
    asked = {code for word in content_words(moment) for code in (word.stem, *word.codes)}
    said = [
        {code for word in content_words(turn.heard_text) for code in (word.stem, *word.codes)}
        for turn in turns
    ]
    often = Counter(code for codes in said for code in codes)
    scores = []
    for turn, codes in zip(turns, said, strict=True):
        shared = sum(log(1 + len(turns) / often[code]) for code in codes & asked)
        place = found.get(turn.id)
        scores.append(shared + (0 if place is None else 3 / (1 + place)))
    return scores


def _shown(turns: Sequence[Turn], chosen: set[int]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    missing = 0
    for at, turn in enumerate(turns):
        if at not in chosen:
            missing += 1
            continue
        if missing:
            shown.append({"turns_left_out": missing})
        missing = 0
        shown.append(_said(turn))
    return [*shown, {"turns_left_out": missing}] if missing else shown


def _said(turn: Turn) -> dict[str, Any]:
    return {"said_by": turn.speaker, "text": turn.heard_text}
