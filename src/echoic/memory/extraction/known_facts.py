"""Known facts: a user's current memories, and whether a new statement is a paraphrase of one.

A wrong "yes" loses what was said, a wrong "no" stores it twice. Vectors cannot tell: all-MiniLM-L6-v2 scores
"moves to a bigger flat" and "moves to a smaller flat" 0.98, "studies Italian" and "is learning Italian" 0.82.
So words decide: both must say the same about the same things, and a vector only judges whether extra words in
one of them add anything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedder
from echoic.errors import EmbedderError
from echoic.memory.records import MEMORY, memory_of, scan_all
from echoic.stores.base import Record, Store
from echoic.text import content_stems, content_words, cut, fold, word_of
from echoic.types import Memory, Scope, Turn

log = logging.getLogger(__name__)

ALIKE: Final = 0.92
"""Cosine (all-MiniLM-L6-v2) from which words that only one of two statements has add nothing. Chosen on the
labelled pairs of `benchmarks/distilling.py`, where no two different statements reach it."""

# Words that reverse a statement, which vectors hardly represent.
_DECIDING: Final = frozenset(
    """no not never none nothing without neither nor hardly except unless stopped quit former formerly
    dislikes dislike hates hate avoids avoid allergic used ex until before after away left right less more
    most least only first last next one two three four five six seven eight nine ten eleven twelve""".split()
)
# Interchangeable verbs and nouns of statements; the words of a line are synonyms.
_FRAMES: Final = """
    like likes liked enjoy enjoys love loves prefer prefers preferred want wants wanted fond
    live lives living home resides reside residence
    work works working job profession occupation employed
    need needs needed require requires required
    learn learns learning study studies studying
    afraid fear fears scared
    end ends ended cancel cancels cancelled
    drink drinks take takes eat eats
"""
_FRAME_OF: Final = {
    word: f"={line.split()[0]}" for line in _FRAMES.strip().splitlines() for word in line.split()
}
_EMPTY: Final = frozenset("user user's name called named has have had own owns got decided decide".split())
_COMPARES: Final = frozenset("than over rather instead to from".split())
_NAME: Final = re.compile(r"(?<![.!?] )(?<!^)\b[^\W\d_a-z][\w'’-]*")


def statement_of(memory: Memory) -> str:
    """The content of a memory, as a sentence if it has one."""
    return memory.statement or memory.text


def same_words(one: str, other: str) -> bool:
    """Whether two statements say the same about the same things, in synonymous words."""
    return _decided_alike(one, other) and _told(one) == _told(other)


def same_meaning(one: str, other: str, cosine: float) -> bool:
    """`same_words`, or extra words in one that add nothing at this cosine."""
    if not _decided_alike(one, other):
        return False
    left, right = _told(one), _told(other)
    return left == right or (cosine >= ALIKE and (left < right or right < left))


def known_as(
    said: str,
    known: Sequence[Memory],
    vector: NDArray[np.float32] | None = None,
    vectors: NDArray[np.float32] | None = None,
) -> Memory | None:
    """The memory of `known` that says what `said` says; None if there is none.

    `vector` is [dimensions], unit length, and `vectors` [len(known), dimensions] with zeros where there is
    none yet; without `vector`, words alone decide.
    """
    cosines = np.zeros(len(known), np.float32) if vector is None or vectors is None else vectors @ vector
    found = [
        (float(cosine), memory)
        for cosine, memory in zip(cosines, known, strict=True)
        if same_meaning(said, statement_of(memory), float(cosine))
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _decided_alike(one: str, other: str) -> bool:
    return _deciding(one) == _deciding(other) and _order(one) == _order(other)


def _told(text: str) -> frozenset[str]:
    words = (word for word in content_words(text) if word.text not in _EMPTY)
    return frozenset(_FRAME_OF.get(word.text, word.stem) for word in words)


def _deciding(text: str) -> frozenset[str]:
    """Numbers, names and words that change a meaning."""
    words = [word.replace("’", "'") for word in cut(text)]
    found = {"not" if word.endswith("n't") else word for word in words if word in _DECIDING}
    found |= {"not" for word in words if word.endswith("n't")}
    found |= {word for word in words if any(map(str.isdigit, word))}
    return frozenset(found | {fold(name).removesuffix("'s") for name in _NAME.findall(text)})


def _order(text: str) -> tuple[str, ...]:
    """The words after a comparison or "from … to", in order: "tea over coffee" is not "coffee over tea"."""
    words = cut(text)
    at = next((at for at, word in enumerate(words) if word in _COMPARES), None)
    compares = {"prefer", "prefers", "than", "over", "rather", "instead"} & set(words)
    if at is None or not (compares or {"from", "to"} <= set(words)):
        return ()
    return tuple(word_of(word).stem for word in words[at + 1 :])


SHOWN = 100
"""The most memories an extractor is shown, about 2,500 tokens of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMemories:
    """The memories of one user."""

    memories: tuple[Memory, ...] = ()
    """The memories that hold."""
    past: tuple[Memory, ...] = ()
    """Corrected and retracted memories."""
    rows: tuple[int, ...] = ()
    """Their rows in the partition of the scope."""
    vectors: NDArray[np.float32] | None = None
    """[memories, dimensions], zeros where there is none yet; None to compare by words."""
    said: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """The vectors of new statements, by statement."""

    def duplicate(self, said: str, kept: Sequence[Memory]) -> Memory | None:
        """The memory that says what `said` says, or one of `kept` that says it in the same words."""
        found = known_as(said, self.memories, self.said.get(said), self.vectors)
        return found or known_as(said, [memory for memory in kept if memory.current])

    def undone(self, said: str, at: datetime) -> bool:
        """Whether what `said` says, said at `at`, was corrected or retracted later."""
        ended = (memory for memory in self.past if memory.valid_until and memory.valid_until > at)
        return any(same_words(said, statement_of(memory)) for memory in ended)

    def nearest(self, turns: Sequence[Turn], limit: int = SHOWN) -> tuple[Memory, ...]:
        """At most `limit` memories, oldest first: those that share the most words with `turns`.

        Memories with a key of their own, such as name and home, precede those that share no word: agents
        often ask for them.
        """
        if len(self.memories) <= limit:
            return self.memories
        spoken = {word.stem for turn in turns for word in content_words(turn.heard_text)}

        def worth(at: int) -> tuple[int, bool, int]:
            memory = self.memories[at]
            shared = content_stems(statement_of(memory)) & spoken
            return (len(shared), memory.key is not None and ":" not in memory.key, at)

        best = sorted(range(len(self.memories)), key=worth, reverse=True)[:limit]
        return tuple(self.memories[at] for at in sorted(best))


async def known_of(store: Store, scope: Scope) -> KnownMemories:
    """The current and past memories of `scope` that its own user stated; without vectors."""
    own = [r for r in await scan_all(store, scope, MEMORY) if r.data.get("author") == scope.user]
    held = [record for record in own if _holds(record)]
    return KnownMemories(
        memories=tuple(map(memory_of, held)),
        past=tuple(memory_of(record) for record in own if not _holds(record)),
        rows=tuple(record.seq for record in held),
    )


async def compared(
    known: KnownMemories, store: Store, scope: Scope, embedder: Embedder | None, statements: Sequence[str]
) -> KnownMemories:
    """`known`, ready to be compared with `statements`; by meaning if there is an embedder."""
    if embedder is None or not embedder.semantic or not statements or not known.memories:
        return known
    try:
        said = np.asarray(await embedder.embed(statements, "document"))
    except EmbedderError as error:
        log.warning("duplicates are told by words only: %s", type(error).__name__)
        return known
    partition = await store.load(scope)
    with partition.lock:
        vectors = partition.vectors[np.array(known.rows)].copy()
    if vectors.shape[1] != said.shape[1]:  # nothing has been embedded yet
        return known
    return replace(known, vectors=vectors, said=dict(zip(statements, said, strict=True)))


def _holds(record: Record) -> bool:
    return record.data.get("valid_until") is None
