"""What to say to a question, from what was found. Pure: nothing is looked up, and nothing is made up.

A direct answer needs a memory of the slot that is asked for, or one that has every word that matters. Less is
given as what it is: the closest there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from echoic.english import listen
from echoic.memory.keyless.intents import intent_of
from echoic.memory.keyless.questions import QuestionSubject, somebody_in
from echoic.memory.keyless.wording import listed, said_back
from echoic.types import Hit, Memory, Recall
from echoic.words import content_words

UNKNOWN: Final = "I don't know that. You haven't told me, as far as I can find."
NOT_LOOKED: Final = "I couldn't look everywhere just now, so I can't say. Please ask me again in a moment."
NOTHING_AT_ALL: Final = "Nothing yet. Tell me something about yourself, and I'll keep it."
_NEAR: Final = 0.45
"""A cosine of the local model from which a sentence is on the same subject: paraphrases in the field's MiniLM
evaluations lie above it, and unrelated pairs under 0.3."""
_LIKELY: Final = 0.1
"""The relevance under which a memory is on another subject, though it shares words with the question."""
_MOST: Final = 12
"""Memories said in one answer."""


def everything(facts: Sequence[Memory]) -> str:
    """All that is known, as far as one can listen to it."""
    if not facts:
        return NOTHING_AT_ALL
    said = listed(said_back(memory) for memory in facts[-_MOST:])
    rest = len(facts) - _MOST
    more = f" And {rest} more; the list has them all." if rest > 0 else ""
    return f"I remember this: {said}{more}"


def of_slot(asked: QuestionSubject, question: str, facts: Iterable[Memory]) -> str:
    """The answer from the slot that is asked for; empty where nothing of it is known."""
    words = _stems(question)
    kinds = words & _KINDS
    # asked for a cat or a daughter, a dog or a son is no answer
    fitting = [memory for memory in facts if asked.means(memory.key) and not _of_another_kind(memory, kinds)]
    # "my dog's name": of all pets the dogs, where that is known
    closer = [memory for memory in fitting if words & _stems(memory.statement or "")]
    chosen = closer or fitting
    if not chosen:
        return ""
    if len(chosen) == 1:
        return said_back(chosen[0])
    said = listed(said_back(memory) for memory in chosen[-_MOST:])
    return said[:1].upper() + said[1:]


def _of_another_kind(memory: Memory, kinds: set[str]) -> bool:
    known = _stems(memory.statement or "") & _KINDS
    return bool(kinds and known) and known.isdisjoint(kinds)


def of_now_only(said: str) -> str:
    """`said`, which holds now, to a question for what held before; empty where it is."""
    return f"I know only how it is now: {listed([said])}" if said else ""


def of_the_past(versions: Sequence[Memory]) -> str:
    """What held under a key before what holds now; empty where nothing did."""
    past = [memory for memory in versions if not memory.current]
    return f"Before, you told me: {listed([said_back(past[-1])])}" if past else ""


def taken_back(versions: Sequence[Memory]) -> str:
    """That it was known once and taken back, without saying what it was; empty where it was not so."""
    gone = versions and not versions[-1].current and versions[-1].superseded_by is None
    return "You asked me to no longer hold on to that." if gone else ""


def of_hits(asked: QuestionSubject, question: str, recall: Recall, *, holding: Iterable[Memory]) -> str:
    """The answer from what a search found.

    Args:
        asked: what the question is about. Where that is a slot of which nothing is known, words that share
            its own ("my wife lives in Rome", to "where do I live") are close and no more.
        question: as asked.
        recall: what was found for it.
        holding: everything that holds; a turn is quoted only if what was heard in it still does.
    """
    held = {(memory.key, memory.text.casefold()) for memory in holding}
    words = _stems(question)
    # a memory says it in the fewest words; a turn only where nothing was learned from it
    quotable = [
        hit
        for hit in recall.apart().hits
        if _quotable(hit, held)
        and asked.others <= somebody_in(_all_of(hit))
        and not (asked.before and _holds_now(hit, asked))
    ]
    candidates = sorted(quotable, key=lambda hit: hit.memory is None)
    for hit in candidates:
        if words and words <= _stems(_all_of(hit)) and (asked.key is None or hit.memory):
            return _said(hit)
    for hit in candidates:
        if _near(hit, words):
            return f"The closest I remember: {_said(hit)}"
    return UNKNOWN if recall.outcome == "complete" else NOT_LOOKED


def covering(what: str, hits: Iterable[Hit]) -> Memory | None:
    """The first keyed memory of the user's own that has every word of `what`; None if there is none."""
    words = _stems(what)
    for hit in (each for found in hits for each in found.apart()):
        if hit.memory and hit.memory.key and hit.scope.user and words and words <= _stems(_all_of(hit)):
            return hit.memory
    return None


def _quotable(hit: Hit, held: set[tuple[str | None, str]]) -> bool:
    if hit.memory is not None:
        return hit.memory.current
    if hit.turn is None or hit.turn.speaker != "user" or not hit.text or "?" in hit.text:
        return False
    # recognisers write no question marks; and what was to be forgotten is not said back
    wanted = intent_of(hit.text)
    if wanted.question is not None or wanted.forget is not None or wanted.erase:
        return False
    heard = [item for item in listen(hit.text, []) if not item.retracts]
    return all((item.key, item.text.casefold()) in held for item in heard)


def _holds_now(hit: Hit, asked: QuestionSubject) -> bool:
    """Whether it says how the slot asked for is now, which is no answer for how it was."""
    if hit.memory is not None:
        return asked.means(hit.memory.key)
    return any(asked.means(heard.key) for heard in listen(hit.text, []))


def _near(hit: Hit, words: set[str]) -> bool:
    if hit.relevance < _LIKELY:
        return False
    vector = hit.ranks.get("vector")
    if vector is not None and vector.score >= _NEAR:
        return True
    return 2 * len(words & _stems(_all_of(hit))) >= len(words) > 0


def _said(hit: Hit) -> str:
    if hit.memory is not None:
        return said_back(hit.memory)
    return (
        f"you told me, “{hit.text}”" if hit.text.endswith((".", "!", "…")) else f"you told me, “{hit.text}.”"
    )


def _all_of(hit: Hit) -> str:
    if hit.memory is None:
        return hit.text
    parts = (hit.memory.key or "", hit.memory.text, hit.memory.statement or "", hit.memory.context or "")
    return " ".join(parts).replace("_", " ").replace(":", " ")


def _stems(text: str) -> set[str]:
    return {word.stem for word in content_words(text)}


_KINDS: Final = _stems("dog cat puppy kitten rabbit parrot hamster horse son daughter")


__all__ = [
    "NOT_LOOKED",
    "UNKNOWN",
    "covering",
    "everything",
    "of_hits",
    "of_now_only",
    "of_slot",
    "of_the_past",
    "taken_back",
]
