"""Turns that say again what a question asks, or what a request wants forgotten, by their rare words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from echoic_corpus.digits import runs, spoken
from echoic_corpus.model import EVERYTHING, Caller

RARE = 5
"""A word that stands in more turns of one caller tells nothing about which of them answers."""
_STEM = 6
_COMMON = frozenset(
    "the and for with from are was not but has had have she her his him they their them you your our this"
    " that there than then what when who yes one two per both all each any now new about like out"
    " thing".split()
)


def telling(text: str) -> frozenset[str]:
    """The words of `text` that may tell something, cut to their stems, and its numbers in figures."""
    said = [word.removesuffix("'s") for word in spoken(text)]
    told = {word[:_STEM] for word in said if word.isalpha() and len(word) > 2 and word not in _COMMON}
    return frozenset(told | set(runs(text)))


def echoes(caller: Caller) -> Iterator[str]:
    """Agents' turns that answer a question too, as it seems, and are not among its gold.

    Such a turn was heard before the question is asked and has every word of the answer that the gold has, one
    of them rare; and it has two such words, or one that the question has too.
    """
    said = {turn.id: telling(turn.heard_text) for turn in caller.turns.values()}
    times = Counter(word for each in said.values() for word in each)
    for question in caller.questions:
        gold = frozenset[str]().union(*(said[name] for name in question.turns))
        key = telling(question.answer or "") & gold
        if not any(times[word] <= RARE for word in key):
            continue
        asked = telling(question.text)
        for turn in caller.turns.values():
            has = said[turn.id]
            if turn.role != "agent" or turn.id in question.turns or turn.call >= question.at_call:
                continue
            if key <= has and (len(key) > 1 or asked & has):
                about = f"{caller.id}.txt:{question.line}: {question.text} => {question.answer}"
                yield f"{about}: {turn.id} (line {turn.line}) {turn.heard_text!r}"


def said_again(caller: Caller) -> Iterator[tuple[int, str]]:
    """Requests that say again what they want forgotten: memory would keep it in the request's own turn."""
    said = {turn.id: telling(turn.text) for turn in caller.turns.values()}
    times = Counter(word for each in said.values() for word in each)
    for forget in caller.forgets:
        facts = [caller.fact[name] for name in forget.reaches if name in caller.fact]
        if caller.turns[forget.turn].name in forget.reaches or EVERYTHING in forget.reaches:
            continue
        for fact in (each for each in facts if each.turn != forget.turn):
            told = telling(" ".join((fact.value, *(span.quote for span in fact.spans))))
            again = told & said[forget.turn]
            number = any(word.isdigit() and len(word) > 1 for word in again)
            if (number or len(again) > 1) and any(times[word] <= RARE for word in again):
                words = ", ".join(sorted(again))
                text = f"the request says again what {fact.id!r} says ({words}): let it reach itself too"
                yield forget.line, text


__all__ = ["echoes", "said_again", "telling"]
