"""What a speech recogniser writes for a turn: two versions, the same at every run. No audio, no recogniser.

A recogniser puts words that sound alike and are common in place of others, loses small words, adds some, and
hits names hardest; it writes neither capitals nor punctuation. Confusions come from the caller's own
`misheard:` list for names, and else from the corpus's vocabulary by Double Metaphone (Philips 2000) and
spelling. Word error rates aim at 10 and 20 %; names are wrong three times as often as other words.
Confidences are drawn so that wrong words are less sure than right ones, but not always. Partial transcripts
grow word by word with the time spoken; the last word of one is not settled yet.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from metaphone import doublemetaphone
from rapidfuzz.distance import Levenshtein

from echoic_corpus.checking import words
from echoic_corpus.model import Caller, Question, Turn

RATES: Mapping[str, float] = {"wer10": 0.10, "wer20": 0.20}
_NAMES_WORSE = 3.0
_SUBSTITUTED, _DELETED = 0.65, 0.9
"""Below the first an error is a substitution, below the second a deletion, else an insertion."""
_CLOSEST = 5
_MAX_APART = 0.4
_SMALL = frozenset("the a an and to it i of in is that you he she we so um uh oh my for on at be was".split())
_ADDED = ("the", "a", "and", "uh", "to", "it", "i", "um", "is", "that")
_NO_NAMES = frozenset(
    "january february march april may june july august september october november december monday tuesday"
    " wednesday thursday friday saturday sunday i'm i'll i've i'd okay god english".split()
)
_MS_A_WORD, _MS_A_LETTER, _PARTIAL_EVERY_MS = 120, 45, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word as heard."""

    text: str
    confidence: float
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A turn as heard."""

    text: str
    words: tuple[Word, ...]
    partials: tuple[tuple[int, str], ...]
    """(milliseconds into the turn, text so far), the last one final."""
    spoken: int
    """Words that were said."""
    wrong: int
    """Words substituted, deleted or inserted."""


class Recogniser:
    """Mishears turns. Equal turns of equal corpora are heard equally."""

    def __init__(self, callers: Iterable[Caller], seed: int = 18) -> None:
        """Takes its vocabulary from everything that `callers` say."""
        self._seed = seed
        callers = list(callers)
        said = (word for caller in callers for turn in caller.turns.values() for word in words(turn.text))
        self._counts = Counter(said)
        self._names = {caller.id: _names(caller) for caller in callers}
        self._by_sound: dict[str, list[tuple[str, str]]] = defaultdict(list)
        anybody = frozenset().union(*self._names.values())
        for word in sorted(self._counts.keys() - anybody):
            for code in filter(None, doublemetaphone(word)):
                self._by_sound[code[0]].append((word, code))
        self._near: dict[str, list[str]] = {}
        self._rates = {caller.id: self._shared_out(caller) for caller in callers}

    def hear(self, caller: Caller, spoken: Turn | Question, version: str) -> Heard:
        """A turn, as far as it was heard, or a question, in the version `wer10` or `wer20`."""
        draw = random.Random(f"{self._seed} {version} {spoken.id} {spoken.text}")  # noqa: S311 - meant to repeat
        names = self._names[caller.id]
        rate, name_rate = (RATES[version] * part for part in self._rates[caller.id])
        heard: list[Word] = []
        said = words(spoken.heard_text if isinstance(spoken, Turn) else spoken.text)
        at = 0
        for word in said:
            lasts = _MS_A_WORD + _MS_A_LETTER * len(word) + draw.randrange(80)
            bare = word.removesuffix("'s")
            wrong = draw.random() < min(0.9, name_rate if bare in names else rate)
            for text in self._instead(caller, bare, word[len(bare) :], draw) if wrong else [word]:
                sure = draw.betavariate(3, 2.5) if wrong else draw.betavariate(12, 1.2)
                share = at + lasts // max(1, text.count(" ") + 1)
                heard += [
                    Word(text=each, confidence=round(sure, 2), start_ms=at, end_ms=share)
                    for each in text.split()
                ]
            at += lasts
        text = " ".join(word.text for word in heard)
        errors = Levenshtein.distance(said, text.split())
        return Heard(
            text=text,
            words=tuple(heard),
            partials=self._partials(heard, draw),
            spoken=len(said),
            wrong=errors,
        )

    def _instead(self, caller: Caller, bare: str, ending: str, draw: random.Random) -> list[str]:
        given = {name.lower(): forms for name, forms in caller.misheard.items()}
        if bare in given:
            return [draw.choice(given[bare]).lower() + ending]
        kind = draw.random()
        if bare in self._names[caller.id] or kind < _SUBSTITUTED:
            return [self._confused(bare, draw) + ending]
        return [] if kind < _DELETED else [bare + ending, draw.choice(_ADDED)]

    def _confused(self, word: str, draw: random.Random) -> str:
        near = self.confusions(word)
        if not near:  # nothing sounds like it: it is cut short or gets an ending
            return word[:-1] if len(word) > 2 else f"{word}s"
        return draw.choices(near, weights=[1 + self._counts[other] ** 0.25 for other in near])[0]

    def confusions(self, word: str) -> list[str]:
        """Words that may be heard in place of `word`, nearest first."""
        if word not in self._near:
            apart: dict[str, float] = {}
            for code in filter(None, doublemetaphone(word)):
                for other, code_of_other in self._by_sound[code[0]]:
                    by_sound = Levenshtein.normalized_distance(code, code_of_other)
                    if other != word and by_sound <= _MAX_APART and (other in _SMALL) == (word in _SMALL):
                        by_spelling = Levenshtein.normalized_distance(word, other)
                        apart[other] = min(apart.get(other, 9.0), 2 * by_sound + by_spelling)
            self._near[word] = sorted(apart, key=lambda other: (apart[other], other))[:_CLOSEST]
        return self._near[word]

    def _partials(self, heard: list[Word], draw: random.Random) -> tuple[tuple[int, str], ...]:
        made: list[tuple[int, str]] = []
        due = _PARTIAL_EVERY_MS
        for number, word in enumerate(heard[:-1], 1):
            if word.end_ms >= due:
                unsettled = self._confused(word.text, draw) if draw.random() < 0.25 else word.text
                made.append((word.end_ms, " ".join([*(w.text for w in heard[: number - 1]), unsettled])))
                due = word.end_ms + _PARTIAL_EVERY_MS
        return (*made, (heard[-1].end_ms, " ".join(word.text for word in heard))) if heard else ()

    def _shared_out(self, caller: Caller) -> tuple[float, float]:
        """Factors of the rate for other words and for names, so that both together come to the rate."""
        said = [word for turn in caller.turns.values() for word in words(turn.heard_text)]
        share = sum(word.removesuffix("'s") in self._names[caller.id] for word in said) / max(1, len(said))
        other = 1 / (1 - share + _NAMES_WORSE * share)
        return other, _NAMES_WORSE * other


def _names(caller: Caller) -> frozenset[str]:
    """Names that the file declares, and words that are only ever written with a capital inside a sentence."""
    declared = (caller.about["name"], *caller.voices, *caller.agents, *caller.misheard)
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for turn in caller.turns.values():
        tokens = turn.text.split()
        for before, token in pairwise(tokens):
            for word in words(token)[:1]:
                inside = before[-1] not in ".!?…:"
                (capital if token[0].isupper() and inside else small)[word.removesuffix("'s")] += 1
    only = {word for word in capital if not small[word] and len(word) > 2}
    only -= {word for word in only if word in _SMALL or word.removesuffix("s") in _NO_NAMES}
    return frozenset(only) | {word for name in declared for word in words(name)}


__all__ = ["RATES", "Heard", "Recogniser", "Word"]
