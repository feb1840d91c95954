"""Answers that only their question gives a meaning: "And how old are you?" – "Seventy four.".

A short answer to a question about the speaker is put behind the words that the question asks them to go on
with ("I'm seventy four"). Whether that is to be kept is then decided as for any other statement.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english.lexicon import pattern, table
from echoic.english.sentences import Sentence, sentences

MOST_WORDS: Final = 12
"""Words of an answer, up to the first comma where it is longer: more stands by itself."""
_OPENINGS: Final = tuple((re.compile(asked), words) for asked, words in table("answers.openings").items())
_LEADING: Final = pattern("answers.leading")
# What is no answer: a refusal, a question, or a statement that stands by itself.
_NO_ANSWER: Final = pattern("answers.no_answer")


def completed(question: str, answer: str) -> str:
    """`answer` with its first sentence as a statement; as it was said where `question` gives it no meaning.

    Args:
        question: what the agent said right before; its last sentence counts.
        answer: what the speaker said.
    """
    asked, said = sentences(question)[-1:], sentences(answer)
    opening = _opening(asked[0]) if asked else ""
    statement = _stated(opening, said[0]) if opening and said else ""
    if not statement:
        return answer
    rest = [one.text(0, len(one)) + ("?" if one.question else ".") for one in said[1:]]
    return " ".join([statement + ".", *rest])


def _opening(asked: Sentence) -> str:
    for found, words in _OPENINGS:
        if match := found.search(asked.line):
            return words.format(**match.groupdict())
    return ""


def _stated(opening: str, said: Sentence) -> str:
    """The opening and the answer, without a preposition twice: "I live in", "in Bristol"."""
    leading = _LEADING.match(said.line)
    start = said.at.get(leading.end(), 0) if leading else 0
    last = opening.rpartition(" ")[2]
    start += said.low(start) == last or (last == "in" and said.low(start) in {"at", "near", "on"})
    end = len(said)
    if end - start > MOST_WORDS:
        end = next((at for at in range(start + 1, end) if said.gap(at)), end)
    if said.question or not 0 < end - start <= MOST_WORDS or said.match(_NO_ANSWER, start):
        return ""
    behind = f". {said.text(end, len(said))}" if end < len(said) else ""
    return f"{opening} {said.text(start, end)}{behind}"
