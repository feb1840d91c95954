"""The callers of `echoic-corpus` as labelled questions: made-up people, their calls, what is asked of them.

The corpus is a package of its own, and this one does not need it: whoever measures with it installs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from echoic.errors import InvalidInput
from echoic.types import Turn
from echoic_bench.labelled import Labelled, Question

if TYPE_CHECKING:
    from echoic_corpus import Caller

_ROLES = {"caller": "user", "agent": "agent"}


def callers_of(split: str) -> list[Labelled]:
    """The callers of one split: "train", "dev" or "test".

    Raises:
        InvalidInput: the corpus is not installed, cannot be read, or has no such split.
    """
    try:
        from echoic_corpus import read_all, splits
    except ImportError as error:
        raise InvalidInput(
            "the telephone corpus is not installed: `pip install echoic-corpus`, or in a checkout "
            "PYTHONPATH=packages/echoic-corpus/src"
        ) from error
    callers, problems = read_all()
    if problems:
        raise InvalidInput(f"the corpus cannot be read: {problems[0]}")
    chosen = [labelled(caller) for caller in callers if splits()[caller.id] == split]
    if not chosen:
        raise InvalidInput(f"the corpus has no split {split!r:.40}: use train, dev or test")
    return chosen


def labelled(caller: Caller) -> Labelled:
    """`caller` with everything said in all calls, and everything asked."""
    turns = tuple(_turns(caller))
    sessions = {turn.id: turn.conversation for turn in turns}
    return Labelled(
        user=caller.id,
        items=turns,
        questions=tuple(
            Question(text=each.text, evidence=frozenset(each.turns), category=each.kind)
            for each in caller.questions
            if each.answerable
        ),
        sessions=sessions,
        unanswered=tuple(
            Question(text=each.text, evidence=frozenset(), category=each.kind)
            for each in caller.questions
            if not each.answerable
        ),
        names=tuple(_names(caller)),
    )


def _turns(caller: Caller) -> Iterator[Turn]:
    for call in caller.calls:
        for place, turn in enumerate(call.turns):
            if not turn.heard_text.strip():
                continue
            yield Turn(
                id=turn.id,
                speaker=_ROLES.get(turn.role, turn.speaker),
                text=turn.heard_text,
                conversation=f"{caller.id}/{call.number}",
                said_at=call.at.replace(microsecond=1000 * min(place, 999)),
            )


def _names(caller: Caller) -> Iterator[tuple[str, ...]]:
    """The caller's own, those of everybody else on the line, the agents', and others that come up."""
    own = tuple(caller.about["name"].split())
    others = tuple(word for name in caller.voices for word in name.split()[:1])
    agents = tuple(caller.agents)
    known = {*own, *others, *agents}
    mentioned = tuple(name for name in caller.misheard if re.match(r"[A-Z]", name) and name not in known)
    yield from (own, others, agents, mentioned)


__all__ = ["callers_of", "labelled"]
