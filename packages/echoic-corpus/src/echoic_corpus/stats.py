"""How much the corpus has of everything, and how varied it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from echoic_corpus.checking import counts
from echoic_corpus.model import Caller
from echoic_corpus.variety import answered, asked_with, copied, of_callers


def totals(callers: Iterable[Caller]) -> dict[str, int]:
    """The sum of every caller's counts."""
    return dict(sum((counts(caller) for caller in callers), Counter[str]()))


def census(callers: Iterable[Caller]) -> defaultdict[str, Counter[str]]:
    """How much there is of everything, by group and kind; the kind "" is the group's sum."""
    found = defaultdict[str, Counter[str]](Counter)
    for caller in callers:
        for group, kind in _pieces(caller):
            found[group].update({"", kind})
    return found


def _pieces(caller: Caller) -> Iterator[tuple[str, str]]:
    yield "callers", ""
    yield from (("calls", call.domain) for call in caller.calls)
    for turn in caller.turns.values():
        yield "turns", {"caller": "of callers", "agent": "of agents"}.get(turn.role, "of other people")
        if turn.heard is not None:
            yield "agents' turns that are cut off", ""
    yield from (("facts", fact.category) for fact in caller.facts)
    yield from (("facts that replace another", "") for fact in caller.facts if fact.replaces)
    yield from (("facts with a condition", "") for fact in caller.facts if fact.condition)
    yield from (("facts about somebody else", "") for fact in caller.facts if fact.about)
    yield from (("facts without a slot", "") for fact in caller.facts if not fact.slot)
    yield from (("words not to learn from", trap.reason) for trap in caller.traps)
    yield from (("secrets", trap.kind) for trap in caller.traps if trap.kind)
    yield from (("requests to forget", "ambiguous" if each.ambiguous else "") for each in caller.forgets)
    yield from (("consents", f"{consent.act} {consent.what}") for consent in caller.consents)
    for question in caller.questions:
        yield f"questions {'with' if question.answerable else 'without'} an answer", question.kind
    yield from (("remarks for silence", "") for _ in caller.silence)
    yield from (("names with misheard forms", "") for _ in caller.misheard)


def spread(callers: Sequence[Caller]) -> dict[str, tuple[int, float, int]]:
    """How much and how many kinds a caller has: least, median, most."""
    each = [_of_one(caller) for caller in callers]
    return {
        what: (min(values), median(values), max(values))
        for what in each[0]
        for values in ([one[what] for one in each],)
    }


def _of_one(caller: Caller) -> dict[str, int]:
    return {
        "calls": len(caller.calls),
        "turns": len(caller.turns),
        "days from first to last call": (caller.calls[-1].at.date() - caller.calls[0].at.date()).days,
        "domains": len({call.domain for call in caller.calls}),
        "people on the line beside the caller": len(caller.voices),
        "facts": len(caller.facts),
        "slots of facts": len({fact.slot for fact in caller.facts}),
        "reasons not to learn": len({trap.reason for trap in caller.traps}),
        "questions": len(caller.questions),
        "kinds of question": len({question.kind for question in caller.questions}),
    }


def diversity(callers: Sequence[Caller]) -> dict[str, Any]:
    """Variety of what is said, kinds of everything and kinds per caller."""
    return {
        "variety": of_callers(callers),
        "questions": asked_with([question.text for caller in callers for question in caller.questions]),
        "questions' words in their gold": copied(answered(callers)),
        "per caller": spread(callers),
        "slots": dict(Counter(fact.slot or "-" for caller in callers for fact in caller.facts)),
        "kinds": {group: dict(kinds) for group, kinds in census(callers).items()},
    }


__all__ = ["census", "diversity", "spread", "totals"]
