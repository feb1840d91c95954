"""BM25, and the founding article's fusion of it with vectors: what anybody writes in an afternoon."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from echoic.ranking.fusion import RRF_DEPTH, RRF_K
from echoic.text import content_words
from echoic_bench.peers.base import About, Kept, Vector

K1, B = 1.2, 0.75
"""As in Lucene."""
_STANDARD = re.compile(r"\w+(?:'\w+)*")
Analyser = Callable[[str], Sequence[str]]


def standard(text: str) -> list[str]:
    """Words in small letters, as Lucene's standard analyser makes them: nothing stemmed, nothing left out."""
    return _STANDARD.findall(text.lower().replace("’", "'"))


def stemmed(text: str) -> list[str]:
    """Stems of the words that are no stop words."""
    return [word.stem for word in content_words(text)]


class Bm25:
    """Okapi BM25 (Robertson and Walker 1994) over one user's texts."""

    about = About(name="bm25", packages=(), form="lists in memory", durable=False)

    def __init__(self, analyser: Analyser = standard) -> None:
        """Nothing is kept yet. `analyser` cuts texts and questions into terms."""
        self._analyser = analyser
        self._texts: dict[str, dict[str, Counter[str]]] = defaultdict(dict)
        self._with: dict[str, Counter[str]] = defaultdict(Counter)

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Nothing to make ready."""
        del folder, vectors, dimensions

    async def add(self, user: str, one: Kept) -> None:
        """Count its terms."""
        counted = Counter(self._analyser(one.text))
        self._texts[user][one.item.id] = counted
        self._with[user].update(counted.keys())

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The first that share a term with the question."""
        texts, holding = self._texts[user], self._with[user]
        mean = sum(text.total() for text in texts.values()) / max(1, len(texts))
        scores: dict[str, float] = defaultdict(float)
        for term in self._analyser(question):
            rarity = math.log(1 + (len(texts) - holding[term] + 0.5) / (holding[term] + 0.5))
            for name, text in texts.items():
                if times := text[term]:
                    length = K1 * (1 - B + B * text.total() / mean)
                    scores[name] += rarity * times * (K1 + 1) / (times + length)
        return _first(scores, limit)

    async def forget(self, user: str, item: str) -> None:
        """Drop it."""
        self._with[user].subtract(self._texts[user].pop(item, Counter()).keys())

    async def aclose(self) -> None:
        """Nothing to close."""


class Article(Bm25):
    """Rank fusion of vectors and BM25 as MongoDB's $rankFusion computes it, 0.7 to 0.3 by default."""

    about = About(name="article", packages=(), form="lists in memory", durable=False)

    def __init__(self, analyser: Analyser = standard, vector_weight: float = 0.7) -> None:
        """As `Bm25`; the other leg weighs the rest."""
        super().__init__(analyser)
        self._weight = vector_weight
        self._kept: dict[str, dict[str, Vector]] = defaultdict(dict)

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Take the vectors."""
        del folder, dimensions
        self._vectors = vectors

    async def add(self, user: str, one: Kept) -> None:
        """Keep both."""
        await super().add(user, one)
        self._kept[user][one.item.id] = one.vector

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The first of both legs."""
        asked = self._vectors[question]
        near = {name: float(asked @ vector) for name, vector in self._kept[user].items()}
        fused: dict[str, float] = defaultdict(float)
        legs = (_first(near, RRF_DEPTH), await super().search(user, question, RRF_DEPTH))
        for weight, leg in zip((self._weight, 1 - self._weight), legs, strict=True):
            for rank, (name, _) in enumerate(leg, 1):
                fused[name] += weight / (RRF_K + rank)
        return _first(fused, limit)

    async def forget(self, user: str, item: str) -> None:
        """Drop both."""
        await super().forget(user, item)
        self._kept[user].pop(item, None)


def _first(scores: Mapping[str, float], limit: int) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda each: -each[1])[:limit]


__all__ = ["Article", "Bm25", "standard", "stemmed"]
