"""How varied texts are, by themselves and beside those of another data set."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, quantiles
from typing import Any

from echoic_corpus.checking import grams, words
from echoic_corpus.model import Caller

ENOUGH_WORDS, ENOUGH_TEXTS = 10_000, 1_000
"""How much is drawn of each kind of text, so that more and less of it can be compared."""
_DRAWS = 5
_ASKING = {
    "what, which": "what which",
    "who, whose": "who whose whom",
    "when": "when",
    "where": "where",
    "why": "why",
    "how": "how",
}
_VERBS = frozenset(
    "is are was were am do does did has have had can could may might must will would shall should isn aren"
    " wasn weren don doesn didn hasn haven hadn can couldn won wouldn shouldn".split()
)
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Chats:
    """Another data set's texts: turns, questions, and the words of those turns that answer each."""

    turns: tuple[str, ...]
    questions: tuple[str, ...]
    gold: tuple[tuple[str, str], ...]


def locomo(folder: Path) -> Chats:
    """LoCoMo's texts: what was written in turns, without photos; all questions."""
    samples = [
        sample for path in sorted(folder.rglob("*.json")) for sample in json.loads(path.read_text("utf-8"))
    ]
    turns, asked, gold = list[str](), list[str](), list[tuple[str, str]]()
    for sample in samples:
        sessions = [each for each in sample["conversation"].values() if isinstance(each, list)]
        said = {turn["dia_id"]: turn["text"] for session in sessions for turn in session}
        turns += said.values()
        for question in sample["qa"]:
            asked.append(question["question"])
            found = _EVIDENCE.findall(" ".join(question["evidence"]))
            texts = [said[name] for name in (f"D{a}:{b}" for a, b in found) if name in said]
            if texts and question["category"] != 5:  # those have no answer
                gold.append((question["question"], " ".join(texts)))
    return Chats(tuple(turns), tuple(asked), tuple(gold))


def answered(callers: Iterable[Caller]) -> list[tuple[str, str]]:
    """Every question that has an answer, and the words of its gold turns."""
    return [
        (question.text, " ".join(caller.turns[name].text for name in question.turns))
        for caller in callers
        for question in caller.questions
        if question.answerable
    ]


def copied(gold: Iterable[tuple[str, str]]) -> float:
    """Share of the longer words of questions that stand in a gold turn: low is hard for search by words."""
    shared = []
    for question, turns in gold:
        if asked := {word for word in words(question) if len(word) > 3}:
            shared.append(len(asked & set(words(turns))) / len(asked))
    return fmean(shared) if shared else 0.0


def variety(texts: Sequence[str]) -> dict[str, float]:
    """Lengths, 4-grams, openings and vocabulary of `texts`."""
    lengths = [len(words(text)) for text in texts]
    tenths = quantiles(lengths, n=10) if len(lengths) > 1 else lengths * 9
    opened = Counter(" ".join(words(text)[:3]) for text in texts)
    return {
        "texts": len(texts),
        "words": sum(lengths),
        "words a text, mean": fmean(lengths),
        "words a text, a tenth has at most": tenths[0],
        "words a text, half": tenths[4],
        "words a text, nine tenths": tenths[8],
        "distinct 4-grams": _distinct(texts),
        "once-only 4-grams": _once(texts),
        "distinct 4-grams of 10,000 words": _drawn(texts, _distinct, ENOUGH_WORDS, count=False),
        "once-only 4-grams of 10,000 words": _drawn(texts, _once, ENOUGH_WORDS, count=False),
        "distinct openings": len(opened) / len(texts),
        "distinct openings of 1,000 texts": _drawn(texts, _openings, ENOUGH_TEXTS),
        "the commonest opening": opened.most_common(1)[0][1] / len(texts),
        "vocabulary of 1,000 texts": _drawn(texts, _vocabulary, ENOUGH_TEXTS),
        "vocabulary of 10,000 words": _drawn(texts, _vocabulary, ENOUGH_WORDS, count=False),
    }


def _drawn(
    texts: Sequence[str], measure: Callable[[Sequence[str]], float], enough: int, *, count: bool = True
) -> float:
    """The mean measure of texts drawn by chance, so many or until they have so many words."""
    found = []
    for seed in range(_DRAWS):
        order = Random(seed).sample(texts, len(texts))  # noqa: S311 - a sample, not a secret
        total = 0
        for at, text in enumerate(order, 1):
            total += 1 if count else len(words(text))
            if total >= enough:
                order = order[:at]
                break
        found.append(measure(order))
    return fmean(found)


def _distinct(texts: Sequence[str]) -> float:
    """Of the 4-grams of all texts, how many are different ones."""
    seen = [gram for text in texts for gram in grams(text)]
    return len(set(seen)) / max(1, len(seen))


def _once(texts: Sequence[str]) -> float:
    """Of the different 4-grams, how many occur in one text only; 1.0 is never repeating oneself."""
    seen = Counter(gram for text in texts for gram in grams(text))
    return sum(times == 1 for times in seen.values()) / max(1, len(seen))


def _openings(texts: Sequence[str]) -> float:
    return len({" ".join(words(text)[:3]) for text in texts}) / len(texts)


def _vocabulary(texts: Sequence[str]) -> int:
    return len({word for text in texts for word in words(text)})


def asked_with(questions: Sequence[str]) -> dict[str, float]:
    """Shares of questions by their first word, and of those that have a question word anywhere."""
    kinds = {word: kind for kind, several in _ASKING.items() for word in several.split()}
    cut = [[word.partition("'")[0] for word in words(text)] for text in questions]
    first = Counter(
        kinds.get(said[0]) or ("a verb, as in “is it”" if said[0] in _VERBS else "another word")
        for said in cut
        if said
    )
    anywhere = sum(any(word in kinds for word in said) for said in cut)
    order = (*_ASKING, "a verb, as in “is it”", "another word")
    shares = {f"begin with {kind}": first[kind] / len(questions) for kind in order}
    return shares | {"have a question word anywhere": anywhere / len(questions)}


def of_chats(chats: Chats) -> dict[str, Any]:
    """What is kept of another data set: figures, and none of its words."""
    return {
        "turns": variety(chats.turns),
        "questions": variety(chats.questions),
        "asked with": asked_with(chats.questions),
        "copied": copied(chats.gold),
    }


def of_callers(callers: Sequence[Caller]) -> dict[str, Mapping[str, float]]:
    """`variety` of what each kind of speaker says, of all turns and of questions and remarks."""
    turns = [turn for caller in callers for turn in caller.turns.values()]
    texts = {
        f"{role}s": [turn.text for turn in turns if turn.role == role]
        for role in ("caller", "agent", "other")
    }
    texts["all turns"] = [turn.text for turn in turns]
    texts["questions"] = [question.text for caller in callers for question in caller.questions]
    return {name: variety(said) for name, said in texts.items() if said}


__all__ = ["Chats", "answered", "asked_with", "copied", "locomo", "of_callers", "of_chats", "variety"]
