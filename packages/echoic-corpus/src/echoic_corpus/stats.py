"""How much the corpus has of everything, and how varied it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean, quantiles
from typing import Any

from echoic_corpus.checking import counts, grams, words
from echoic_corpus.model import Caller


def totals(callers: Sequence[Caller]) -> dict[str, int]:
    """The sum of every caller's counts."""
    return dict(sum((counts(caller) for caller in callers), Counter[str]()))


def diversity(callers: Sequence[Caller]) -> dict[str, Any]:
    """Lengths by speaker, distinct 4-grams, openings and questions' first words."""
    turns = [turn for caller in callers for turn in caller.turns.values()]
    roles = {
        role: [turn.text for turn in turns if turn.role == role] for role in ("caller", "agent", "other")
    }
    asked = [question.text for caller in callers for question in caller.questions]
    return {
        "words a turn": {role: _lengths(texts) for role, texts in roles.items() if len(texts) > 1},
        "words a question": _lengths(asked) if len(asked) > 1 else {},
        "distinct 4-grams": {role: _distinct(texts) for role, texts in roles.items() if texts},
        "openings of the caller": _openings(roles["caller"]),
        "openings of the agent": _openings(roles["agent"]),
        "openings of questions": _openings(asked),
        "questions' words in their gold": _copied(callers),
        "kinds of question": dict(Counter(q.kind for caller in callers for q in caller.questions)),
        "traps": dict(Counter(trap.reason for caller in callers for trap in caller.traps)),
        "secrets": dict(Counter(trap.kind for caller in callers for trap in caller.traps if trap.kind)),
        "slots": dict(Counter(fact.slot or "-" for caller in callers for fact in caller.facts)),
        "domains": dict(Counter(call.domain for caller in callers for call in caller.calls)),
    }


def _lengths(texts: Sequence[str]) -> dict[str, float]:
    counted = [len(words(text)) for text in texts]
    tenths = quantiles(counted, n=10)
    return {"mean": round(mean(counted), 1), "p10": tenths[0], "p50": tenths[4], "p90": tenths[8]}


def _copied(callers: Sequence[Caller]) -> float:
    """Share of the longer words of questions that stand in a gold turn: low is hard for search by words."""
    shared = []
    for caller in callers:
        for question in caller.questions:
            asked = {word for word in words(question.text) if len(word) > 3}
            gold = {word for name in question.turns for word in words(caller.turns[name].text)}
            if question.answerable and asked:
                shared.append(len(asked & gold) / len(asked))
    return round(mean(shared), 3) if shared else 0.0


def _distinct(texts: Sequence[str]) -> float:
    """Share of 4-grams that occur in one text only; 1.0 is never repeating oneself."""
    seen = Counter(gram for text in texts for gram in grams(text))
    return round(sum(times == 1 for times in seen.values()) / max(1, len(seen)), 3)


def _openings(texts: Sequence[str]) -> dict[str, Any]:
    """How many ways of beginning there are, by the first three words, and the commonest."""
    first = Counter(" ".join(words(text)[:3]) for text in texts)
    return {"distinct": round(len(first) / max(1, len(texts)), 3), "commonest": dict(first.most_common(5))}


__all__ = ["diversity", "totals"]
