"""Keeps, as a sentence, what a user stated durably and no rule has a slot for. Needs the local encoder.

An extractor like any other: it reads behind the caller's back, with a cursor of its own, and what it proposes
is checked and reconciled as a language model's proposals are. Where the embedder is not the one its weights
were made for there is none, and rules learn alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from echoic.embedding.base import Embedder
from echoic.memory.distilling.changes import Add, Change, Fact, Reading
from echoic.memory.distilling.clause_reader import MODEL, Clause, Read, clauses, read_clauses, weights
from echoic.memory.distilling.consistent import MOST_CHANGES
from echoic.memory.distilling.duplicates import statement_of
from echoic.memory.distilling.grounded import instructs
from echoic.memory.distilling.withheld import of_user
from echoic.types import Memory, Turn
from echoic.words import content_words

_PER_TURN = 24
"""Clauses of one turn that are weighed: more is no speech, and each costs the encoder some milliseconds."""
_HEARD = 0.5
"""Share of a clause's content words from which on what the rules heard in it says enough of it."""


class SentenceExtractor:
    """Weighs the clauses of what a user said; see `clause_reader`.

    Args:
        embedder: makes their vectors; opened and closed by whoever made it.
    """

    name = "sentences"
    timeout_s = 60.0

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def fitting(cls, embedder: Embedder | None) -> SentenceExtractor | None:
        """One that reads with `embedder`; None where its vectors are not those the weights know."""
        return cls(embedder) if embedder is not None and embedder.spec.model.startswith(MODEL) else None

    async def open(self) -> None:
        """Nothing to do: the weights are read with the first sentence."""

    async def aclose(self) -> None:
        """Nothing was taken."""

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """See `Extractor`.

        Raises:
            EmbedderUnavailable: there are no vectors to read by.
        """
        said = [(turn, clause) for turn in reading.turns for clause in _readable(turn, reading)]
        if not said:
            return []
        vectors = await self._embedder.embed([clause.text for _, clause in said], "document")
        turns = {id(clause): turn for turn, clause in said}
        known = await asyncio.to_thread(weights)  # a file, the first time
        found = read_clauses([clause for _, clause in said], vectors, known)
        likeliest = sorted(found, key=lambda read: -read.likely)[:MOST_CHANGES]
        return [_add(read, turns[id(read.clause)]) for read in found if read in likeliest]


def _readable(turn: Turn, reading: Reading) -> list[Clause]:
    """The clauses of `turn` that may be kept and that the rules did not hear."""
    if not of_user(turn) or turn.id in reading.withheld:
        return []
    heard = [memory for memory in reading.known if turn.id in memory.source]
    read = [clause for clause in clauses(turn.heard_text)[:_PER_TURN] if not instructs(clause.text)]
    return [clause for clause in read if not any(_says(memory, clause) for memory in heard)]


def _says(memory: Memory, clause: Clause) -> bool:
    """Whether what is known from the same turn leaves little of `clause` unsaid."""
    told = {word.stem for word in content_words(clause.text)}
    known = {
        word.stem for word in content_words(f"{memory.text} {statement_of(memory)} {memory.context or ''}")
    }
    return not told or len(told & known) >= _HEARD * len(told)


def _add(read: Read, turn: Turn) -> Add:
    text = read.clause.text
    fact = Fact(text=text[0].upper() + text[1:], category=read.category, sure=read.sure)
    return Add(fact=fact, source=(turn.id,))
