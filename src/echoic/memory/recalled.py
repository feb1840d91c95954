"""What of the hits a model is told: no phrases of an agent's own, and statements before questions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from echoic.ranking.indexing import AGENT
from echoic.ranking.relevance import is_phatic
from echoic.types import Hit
from echoic.words import content_words

_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")
_KNOWS_NOTHING: Final = re.compile(
    r"\W*(?:(?:sorry|i'm sorry|i'm afraid|so far|no|well|hm+)\W+)*(?:i|we)(?: really| still)?"
    r" (?:know nothing|(?:do not|don't) (?:know|remember|recall)\b|have no (?:record|memory|idea|note)\b"
    r"|(?:do not|don't) have (?:any |a )?(?:records?|memory|notes?|information)\b)",
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"\W*(?:hello|hi|hey|good (?:morning|afternoon|evening)|welcome|thanks? (?:you )?for calling)\b"
    r"|.{0,60}\b(?:speaking|here)[.!]*\s*$",
    re.IGNORECASE | re.DOTALL,
)
_OPENING_WORDS: Final = 8
_SAME: Final = 0.6
"""Share of a question's words that another question has which asks the same."""
_ACKNOWLEDGED: Final = frozenset(
    word.stem for word in content_words("noted written saved remembered understood confirmed okay got thanks")
)


def worth_telling(hits: Sequence[Hit], question: str) -> tuple[Hit, ...]:
    """`hits` without an agent's own phrases, and with questions that ask the same behind what is stated.

    An agent's own are greetings, "I know nothing about you yet", questions back, and what only repeats
    another hit. What an agent says besides is known by nobody else, and stays.

    Args:
        hits: best first.
        question: what they were found for.
    """
    others = [_stems(hit.text) for hit in hits if not _of_agent(hit)] if any(map(_of_agent, hits)) else []
    told = [hit for hit in hits if not (_of_agent(hit) and (_is_own_phrase(hit) or _repeats(hit, others)))]
    asked = {word.stem for word in content_words(question)}
    again = [hit for hit in told if _asks_the_same(hit, asked)]
    return tuple(hit for hit in told if hit not in again) + tuple(again) if again else tuple(told)


def _of_agent(hit: Hit) -> bool:
    return not hit.memories and hit.turn is not None and hit.turn.speaker.casefold() == AGENT


def _is_own_phrase(hit: Hit) -> bool:
    sentences = [found.group() for found in _SENTENCE.finditer(hit.text) if found.group().strip()]
    return bool(sentences) and all(map(_says_nothing, sentences))


def _says_nothing(sentence: str) -> bool:
    if sentence.rstrip().endswith("?") or _KNOWS_NOTHING.match(sentence) or is_phatic(sentence):
        return True
    return _OPENS.match(sentence) is not None and len(sentence.split()) <= _OPENING_WORDS


def _repeats(hit: Hit, others: Sequence[set[str]]) -> bool:
    """Whether an agent's turn says no word that one of the hits that are not an agent's does not say."""
    said = _stems(hit.text) - _ACKNOWLEDGED
    return any(said <= other for other in others)


def _asks_the_same(hit: Hit, asked: set[str]) -> bool:
    """Whether a turn is nothing but a question with the words of what is asked."""
    text = hit.text.strip()
    if hit.memories or not text.endswith("?") or len(_SENTENCE.findall(text)) > 1 or not asked:
        return False
    return len(asked & _stems(text)) >= _SAME * len(asked)


def _stems(text: str) -> set[str]:
    return {word.stem for word in content_words(text)}


__all__ = ["worth_telling"]
