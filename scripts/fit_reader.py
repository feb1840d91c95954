"""Fit the weights of `echoic.memory.extraction.clause_reader`, and write them beside it.

    PYTHONPATH=packages/echoic-corpus/src python scripts/fit_reader.py --cache /tmp/reader-vectors

Fitted to what stands in `scripts/reader` and to the telephone corpus's `train` and `dev` callers:

- `author_a.tsv`, `author_b.tsv`, `author_d.tsv` to `author_j.tsv`, `author_p.tsv` to `author_z.tsv`:
  sentences of twenty authors who did not see one another's;
- `author_c.tsv`: sentences written beside this script, some after reading what was misread of A's and B's;
- `author_k.tsv` to `author_o.tsv`: five voices of one author, who had read some of the others' traps;
- `calls_a.txt` to `calls_u.txt`: telephone calls of 21 other authors, who marked in them what an
  attentive person would note of the caller; what a caller says besides is no statement;
- `asides.txt`: what people say around a sentence, put around those of the authors;
- `sentences.txt`, and `frames.txt`, of whose frames sentences are made;
- `unlabelled.txt`: clauses of the corpus that no label names and that are durable all the same.

From which likelihood on a clause is kept, and from which it is sure, is chosen on the sentences of those
twenty by cross-validation: what reads an author's is fitted without them. `--cross` prints that, and how
the clauses of the calls fare, and writes nothing. The corpus's `test` callers and
`tests/memory/others_sentences.tsv` are not read. A clause of the corpus is a statement where it shares half
of its content words with the words or the value of a labelled fact of its turn, one of the marked calls
where it shares half of either's with a mark. The same data gives the same weights: all chance is seeded.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echoic.embedding import embedder_from
from echoic.memory.extraction import clause_reader
from echoic.memory.extraction.clause_reader import (
    CATEGORIES,
    PIECE_SCALE,
    PIECES,
    Clause,
    Floats,
    attention,
    beside,
    clauses,
    terms_of,
    with_bias,
)
from echoic.memory.extraction.rule_reader import told_by_user
from echoic.memory.extraction.turns import answers_about_another
from echoic.text import content_words
from echoic.types import Turn
from echoic_corpus import Caller, read_all, splits

HERE = Path(__file__).parent / "reader"
AUTHORS = "abcdefghijklmnopqrstuvwxyz"
JUDGED = "abdefghijpqrstuvwxyz"
"""The authors whose sentences judge: who wrote C's, and K's to O's, had read some of theirs."""
CALLERS = "ABCDEFGHIJKLMNOPQRSTU"
"""The authors of marked calls, whose files are named in lower case."""
FOLDS = ("agpvAFKP", "bhqwBGLQ", "dirxCHMRU", "ejsyDINS", "ftuzEJOT")
"""The authors that are judged by what was fitted without them."""
GENERATED, CORPUS = "generated", "corpus"
WRITTEN_WEIGHT, GENERATED_WEIGHT, CORPUS_WEIGHT, TRAP_WEIGHT = 1.0, 0.3, 0.1, 0.5
"""Of an example: what the corpus does not label may be durable all the same, what it calls a trap is none."""
MOST_WAYS = 8
"""Sentences made of one frame."""
LEAST_SEEN = 20
"""Clauses that a term must occur in to count."""
AXES, HEADS, HIDDEN, NETWORKS = 128, 4, 40, 3
EPOCHS, BATCH, RATE, DECAY, DROPPED = 8, 96, 1e-3, 0.02, 0.3
ALL_ALIKE, HARD = 2, 3.0
"""Epochs in which all clauses count alike; how much more a trap counts later that looks like a statement."""
ALIKE = 16
"""Batches among which examples of a length are gathered."""
BESIDE = 0.2
"""Weight of telling the kinds of statements and traps apart, beside telling statements from traps."""
ALONE = -1
CALLS_WEIGHT, PART_WEIGHT = 1.0, 0.5
"""Of a clause of a marked call, and of one that another is cut into."""
_MARK = re.compile(r"\{(?P<kind>\w+)(?P<asked>\??): (?P<words>[^{}]*)\}")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_LISTED = re.compile(r"\{@(\w+)\}")
_FIRST_PERSON = re.compile(r"(?:i|i'\w+|my|our|we|we'\w+)\b", re.IGNORECASE)
_SAME = 0.5
_NONE = Clause("", ())


@dataclass(frozen=True, slots=True)
class Example:
    """A clause and what is to become of it."""

    clause: Clause
    source: str
    """An author, `GENERATED` or `CORPUS`."""
    keep: bool
    kind: str
    """Of a statement, or of a trap; "" where it is not known."""
    weight: float
    said: int = ALONE
    """The number of the statement that it is a clause of, where there are others."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A sentence of an author, and the places of its clauses among the examples."""

    source: str
    keep: bool
    kind: str
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What an author marked in a turn of a call."""

    kind: str
    stems: frozenset[str]
    states: bool
    """Whether it is a statement as the reader gets it."""


@dataclass(frozen=True, slots=True)
class Table:
    """Examples as the networks see them."""

    vectors: Floats
    """[examples, dimensions + 1]"""
    around: Floats
    """[examples, dimensions + 1] Of the clauses next to each."""
    pieces: Floats
    """[examples, PIECES, AXES]"""
    there: NDArray[np.bool_]
    """[examples, PIECES] Which of the pieces there are."""
    terms: tuple[frozenset[str], ...]
    keep: NDArray[np.bool_]
    kind: NDArray[np.int64]
    """[examples] The place of its kind among all; -1 where it is not known."""
    weight: Floats
    said: NDArray[np.int64]
    """[examples] `Example.said` of each."""

    def some(self, those: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """The rows of `those`."""
        terms = tuple(self.terms[at] for at in np.arange(len(self.terms))[those])
        rows = (self.vectors, self.around, self.pieces, self.there)
        labels = (self.keep, self.kind, self.weight, self.said)
        return Table(*(row[those] for row in rows), terms, *(label[those] for label in labels))

    def told(self, terms: Sequence[str]) -> Told:
        """Which of `terms` each example has."""
        places = {term: at for at, term in enumerate(terms)}
        found = [sorted(places[term] for term in has if term in places) for has in self.terms]
        ends = np.cumsum([0, *map(len, found)])
        return Told(np.array([at for one in found for at in one], np.int64), ends, len(terms))


@dataclass(frozen=True, slots=True)
class Told:
    """Which terms examples have, one behind the other."""

    places: NDArray[np.int64]
    """Of the terms of every example."""
    ends: NDArray[np.int64]
    """[examples + 1] Where those of each begin, and end."""
    terms: int
    """How many terms there are."""

    def times(self, term: Floats) -> Floats:
        """[examples] The sum of the weights of each one's terms."""
        sums = np.concatenate([[0.0], np.cumsum(term[self.places], dtype=np.float64)])
        found: Floats = (sums[self.ends[1:]] - sums[self.ends[:-1]]).astype(np.float32)
        return found

    def back(self, off: Floats) -> Floats:
        """[terms] The sum of `off` over the examples that have each."""
        every = np.repeat(off, np.diff(self.ends))
        return np.bincount(self.places, every, self.terms).astype(np.float32)

    def some(self, rows: NDArray[np.int64]) -> Told:
        """Those of `rows`."""
        parts = [self.places[self.ends[row] : self.ends[row + 1]] for row in rows]
        ends = np.cumsum([0, *map(len, parts)])
        return Told(np.concatenate(parts) if parts else self.places[:0], ends, self.terms)


def examples() -> tuple[list[Example], list[Judged]]:
    """Of all sources, and the authors' sentences with the places of their clauses."""
    found: list[Example] = []
    judged: list[Judged] = []
    numbers = itertools.count()
    asides = [line.split("\t") for line in _lines(HERE / "asides.txt")]
    for author in AUTHORS:
        for line in _lines(HERE / f"author_{author}.tsv"):
            label, kind, text = line.split("\t")
            keep = label == "+"
            read = _of_one(text, Example(_NONE, author, keep, kind, WRITTEN_WEIGHT), numbers)
            judged.append(Judged(author, keep, kind, tuple(range(len(found), len(found) + len(read)))))
            found += read
            found += _put_in_asides(text, author, kind, asides, numbers, keep=keep)
        found += _run_together(author)
    for author in CALLERS:
        read = [*_of_calls(author)]
        judged += (
            Judged(author, one.keep, one.kind, (at,))
            for at, one in enumerate(read, len(found))
            if one.weight == CALLS_WEIGHT  # not a part of a clause, nor an answer without its question
        )
        found += read
    frames = _lines(HERE / "frames.txt")
    lists = dict(line[2:].split("\t") for line in frames if line[0] == "=")
    for line in _lines(HERE / "sentences.txt") + [line for line in frames if line[0] in "+-"]:
        for way in _ways(line.split("\t")[1], lists):
            found += [Example(c, GENERATED, line[0] == "+", "", GENERATED_WEIGHT) for c in clauses(way)]
    durable = frozenset(_lines(HERE / "unlabelled.txt"))
    split = splits()
    for caller in read_all()[0]:
        if split[caller.id] in {"train", "dev"}:
            found += _of_caller(caller, durable)
    return found, judged


def _put_in_asides(
    text: str, author: str, kind: str, asides: Sequence[Sequence[str]], numbers: Iterator[int], *, keep: bool
) -> list[Example]:
    """`text` with words around it that change nothing, and, if it is a statement, with some that do."""
    draw, bare = random.Random(text), text.rstrip(".!?…")
    found = []
    for sign in "=-" if _FIRST_PERSON.match(text) and keep else "=":
        around = draw.choice([line[1] for line in asides if line[0] == sign])
        made = around.replace("…", bare)
        same = sign == "="
        alike = Example(_NONE, author, keep and same, kind if same else "", GENERATED_WEIGHT)
        found += _of_one(made, alike, numbers)
    return found


def _of_one(text: str, alike: Example, numbers: Iterator[int]) -> list[Example]:
    """The clauses of one sentence, each `alike` but for its words."""
    read = clauses(text)
    number = next(numbers) if alike.keep and len(read) > 1 else ALONE
    return [replace(alike, clause=clause, said=number) for clause in read]


def _run_together(author: str) -> list[Example]:
    """An author's sentences, two or three to a turn, as a recogniser without punctuation writes them."""
    lines = [line.split("\t") for line in _lines(HERE / f"author_{author}.tsv")]
    draw = random.Random(author)
    draw.shuffle(lines)
    found = []
    while lines:
        some = [lines.pop() for _ in range(min(draw.choice((2, 2, 3)), len(lines)))]
        spoken = [_spoken(text) for _, _, text in some]
        for clause in clauses(" ".join(spoken)):
            whose = [line for line, said in zip(some, spoken, strict=True) if _spoken(clause.text) in said]
            label, kind, _ = whose[0] if len(whose) == 1 else ("", "", "")
            # one that is cut wrong teaches nothing, but stands beside others
            weight = GENERATED_WEIGHT if label else 0.0
            found.append(Example(clause, author, label == "+", kind, weight))
    return found


def _spoken(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s'’-]", " ", text.lower()).split())


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def _ways(text: str, lists: dict[str, str]) -> list[str]:
    """`text` with its choices made, in some of the possible ways."""
    draw = random.Random(text)
    ways = {_one_way(text, lists, draw) for _ in range(4 * MOST_WAYS)}
    return sorted(ways, key=lambda way: hashlib.sha256(way.encode()).digest())[:MOST_WAYS]


def _one_way(text: str, lists: dict[str, str], draw: random.Random) -> str:
    while "{" in text:  # a choice may stand in a choice, and a list in a list
        text = _LISTED.sub(lambda named: draw.choice(lists[named[1]].split("|")), text)
        text = _CHOICE.sub(lambda choice: draw.choice(choice[1].split("|")), text)
    return " ".join(text.split()).replace(" ,", ",").replace(" '", "'")


def _of_caller(caller: Caller, durable: frozenset[str]) -> list[Example]:
    named = {turn.name: turn.id for turn in caller.turns.values() if turn.name}
    facts: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = defaultdict(list)
    for fact in caller.facts:
        quote = _stems(" ".join(span.quote for span in fact.spans))
        for turn in {fact.turn, *(named[name] for name in fact.also if name in named)}:
            facts[turn].append((quote, _stems(fact.value)))
    traps: dict[str, list[frozenset[str]]] = defaultdict(list)
    for trap in caller.traps:
        traps[trap.turn].append(_stems(trap.span.quote))
    found = []
    for turn in caller.turns.values():
        for clause in clauses(turn.text) if turn.role == "caller" else ():
            told = _stems(clause.text)
            best = max((max(_share(told, q), _share(v, told)) for q, v in facts[turn.id]), default=0.0)
            keep = best >= _SAME or clause.text in durable
            bait = any(max(_share(bait, told), _share(told, bait)) >= _SAME for bait in traps[turn.id])
            weight = TRAP_WEIGHT if bait and not keep else CORPUS_WEIGHT
            found.append(Example(clause, CORPUS, keep, "", weight))
    return found


def _of_calls(author: str) -> Iterator[Example]:
    """The clauses of an author's marked calls as the reader gets them, and what each may be cut into."""
    for call in (HERE / f"calls_{author.lower()}.txt").read_text("utf-8").split("# call: ")[1:]:
        lines = [line for line in call.splitlines()[1:] if line]
        turns = [
            Turn(id=str(at), speaker="agent" if line[0] == "A" else "user", text=_MARK.sub(_words, line[3:]))
            for at, line in enumerate(lines)
        ]
        told = told_by_user(turns, answers_about_another(turns)[0])
        for turn, line in zip(turns, lines, strict=True):
            text = told.get(turn.id, "")
            # an answer states nothing where its question is not put before it
            marks = [
                Mark(mark["kind"], _stems(mark["words"]), states=not mark["asked"] or text != turn.text)
                for mark in _MARK.finditer(line)
            ]
            said = clauses(text)
            yield from (_of_call(clause, author, marks, CALLS_WEIGHT) for clause in said)
            parts = (part for clause in said for part in clause.parts)
            yield from (_of_call(part, author, marks, PART_WEIGHT) for part in parts)


def _words(mark: re.Match[str]) -> str:
    return mark["words"]


def _of_call(clause: Clause, author: str, marks: Sequence[Mark], weight: float) -> Example:
    told = _stems(clause.text)
    near = [(max(_share(told, mark.stems), _share(mark.stems, told)), mark) for mark in marks]
    best, mark = max(near, key=lambda one: (one[0], one[1].states), default=(0.0, None))
    if mark is None or best < _SAME:
        return Example(clause, author, keep=False, kind="", weight=weight)
    return Example(clause, author, keep=True, kind=mark.kind, weight=weight if mark.states else 0.0)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in content_words(text))


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part & whole) / len(part) if part else 0.0


def encoded(texts: Sequence[str], cache: Path | None) -> tuple[Floats, list[Floats]]:
    """[texts, 384] Their vectors, and the word pieces of each, from `cache` where it has them."""
    known: dict[str, tuple[Floats, Floats]] = {}
    stored = cache / "encoded.npz" if cache else None
    if stored and stored.exists():
        with np.load(stored) as held:
            pieces = np.split(held["pieces"], np.cumsum(held["lengths"])[:-1])
            known = dict(zip(map(str, held["names"]), zip(held["vectors"], pieces, strict=True), strict=True))
    new = [text for text in dict.fromkeys(texts) if _name(text) not in known]
    if new:
        known |= asyncio.run(_encode(sorted(new, key=len)))
        if stored:
            stored.parent.mkdir(parents=True, exist_ok=True)
            lengths = [len(pieces) for _, pieces in known.values()]
            vectors = np.stack([vector for vector, _ in known.values()])
            pieces = np.concatenate([pieces for _, pieces in known.values()])
            np.savez(stored, names=list(known), vectors=vectors, pieces=pieces, lengths=lengths)
    rows = [known[_name(text)] for text in texts]
    return np.stack([row[0] for row in rows]), [row[1] for row in rows]


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def _encode(texts: list[str]) -> dict[str, tuple[Floats, Floats]]:
    embedder = embedder_from("local")
    await embedder.open()
    found = {}
    try:
        for at in range(0, len(texts), BATCH):
            made = await embedder.embed_pieces(texts[at : at + BATCH], "document")  # type: ignore[attr-defined]
            for text, vector, pieces in zip(texts[at : at + BATCH], made.vectors, made.pieces, strict=True):
                # half precision: the cache is a third of a gigabyte otherwise
                found[_name(text)] = (vector, pieces.hidden[:PIECES].astype(np.float16))
    finally:
        await embedder.aclose()
    return found


def axes_of(pieces: Sequence[Floats]) -> Floats:
    """[dimensions, AXES] The directions in which word pieces differ most."""
    every = np.concatenate(list(pieces)).astype(np.float64)
    _, directions = np.linalg.eigh(every.T @ every)
    found = directions[:, ::-1][:, :AXES]
    return (found * np.sign(found[np.abs(found).argmax(axis=0), range(AXES)])).astype(np.float32)


def table_of(some: Sequence[Example], vectors: Floats, pieces: Sequence[Floats], axes: Floats) -> Table:
    """The examples as the networks see them."""
    kinds = sorted({(example.keep, example.kind) for example in some if example.kind})
    places = {kind: at for at, kind in enumerate(kinds)}
    projected = np.zeros((len(some), PIECES, AXES), np.float32)
    there = np.zeros((len(some), PIECES), np.bool_)
    for at, one in enumerate(pieces):
        projected[at, : len(one)] = (one.astype(np.float32) @ axes) * np.float32(PIECE_SCALE)
        there[at, : len(one)] = True
    return Table(
        with_bias(vectors.astype(np.float32)),
        with_bias(beside(vectors.astype(np.float32), [example.clause.place for example in some])),
        projected,
        there,
        tuple(frozenset(terms_of(example.clause)) for example in some),
        np.array([example.keep for example in some]),
        np.array([places.get((example.keep, example.kind), -1) for example in some]),
        np.array([example.weight for example in some], np.float32),
        np.array([example.said for example in some]),
    )


def terms_in(table: Table) -> list[str]:
    """Words and pairs of words that enough examples have."""
    seen = Counter(term for has in table.terms for term in has)
    return sorted(term for term, count in seen.items() if count >= LEAST_SEEN and "\n" not in term)


class Network:
    """One network while it is fitted: Adam with weight decay, and the gradients by hand.

    Args:
        terms: how many terms count.
        dimensions: of a sentence vector, with its bias.
        kinds: how many kinds of statements and traps there are.
        seed: of all chance in it.
    """

    def __init__(self, terms: int, dimensions: int, kinds: int, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        shapes = {
            "term": ((terms,), 0.0),
            "direct": ((dimensions,), 0.0),
            "heads": ((AXES, HEADS), 0.05),
            "pooled": ((HEADS * AXES, HIDDEN), 0.03),
            "sentence": ((dimensions, HIDDEN), 0.05),
            "around": ((dimensions, HIDDEN), 0.05),
            "out": ((HIDDEN,), 0.1),
            "beside": ((HIDDEN, kinds), 0.1),
        }
        self.of = {
            name: (self._draw.normal(size=shape) * size).astype(np.float32)
            for name, (shape, size) in shapes.items()
        }
        self._mean = {name: np.zeros_like(value) for name, value in self.of.items()}
        self._square = {name: np.zeros_like(value) for name, value in self.of.items()}
        self._steps = 0

    def fit(self, table: Table, told: Told) -> None:
        """Fit to `table`, whose terms are `told`."""
        lengths = table.there.sum(axis=1)
        counts = np.flatnonzero(table.weight > 0)
        given = table.weight
        for epoch in range(EPOCHS):
            if epoch >= ALL_ALIKE:
                table = replace(table, weight=self._weights(table, told, given))
            batches = [counts[rows] for rows in self._batches(lengths[counts])]
            for at, rows in enumerate(batches):
                rate = RATE * (1 - (epoch + at / len(batches)) / EPOCHS)
                self._step(table, told, rows, rate)

    def _weights(self, table: Table, told: Told, given: Floats) -> Floats:
        """`given`, more for traps that look like statements, less for clauses that look less like one.

        Of "your driver went to Bristol, I moved to Bath in May" only one clause is a statement.
        """
        scores, weight = self.scores(table, told), given.copy()
        weight[~table.keep] *= 1 + HARD / (1 + np.exp(-np.clip(scores[~table.keep], -30, 30)))
        shared = np.flatnonzero(table.said != ALONE)
        _, of = np.unique(table.said[shared], return_inverse=True)
        highest = np.full(len(shared), -np.inf, np.float32)
        np.maximum.at(highest, of, scores[shared])
        weight[shared] *= np.exp(scores[shared] - highest[of])
        return weight

    def _batches(self, lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Every example once, each with others of about its length: little is padded."""
        order = self._draw.permutation(len(lengths))
        some = [order[at : at + ALIKE * BATCH] for at in range(0, len(order), ALIKE * BATCH)]
        alike = [rows[np.argsort(lengths[rows], kind="stable")] for rows in some]
        batches = [rows[at : at + BATCH] for rows in alike for at in range(0, len(rows), BATCH)]
        return [batches[at] for at in self._draw.permutation(len(batches))]

    def scores(self, table: Table, told: Told) -> Floats:
        """[examples] The log odds of each."""
        _, _, hidden = self._forward(table.vectors, table.around, table.pieces, table.there)
        of = self.of
        found: Floats = hidden @ of["out"] + table.vectors @ of["direct"] + told.times(of["term"])
        return found

    def _forward(
        self, vectors: Floats, around: Floats, pieces: Floats, there: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        scores = np.where(there[:, :, None], pieces @ self.of["heads"], np.float32(-1e9))
        seen = attention(scores.transpose(1, 0, 2), np.eye(HEADS, dtype=np.float32)).transpose(1, 0, 2)
        pooled = (seen.transpose(0, 2, 1) @ pieces).reshape(len(vectors), -1)
        before = vectors @ self.of["sentence"] + around @ self.of["around"] + pooled @ self.of["pooled"]
        hidden = np.maximum(before, 0)
        return seen, pooled, hidden

    def _step(self, table: Table, told: Told, rows: NDArray[np.int64], rate: float) -> None:
        longest = int(table.there[rows].sum(axis=1).max())
        pieces, there = table.pieces[rows, :longest], table.there[rows, :longest]
        vectors, around, terms, of = table.vectors[rows], table.around[rows], told.some(rows), self.of
        seen, pooled, hidden = self._forward(vectors, around, pieces, there)
        kept = ((self._draw.random(hidden.shape) >= DROPPED) / (1 - DROPPED)).astype(np.float32)
        shown = hidden * kept
        score = shown @ of["out"] + vectors @ of["direct"] + terms.times(of["term"])
        likely = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
        weight = table.weight[rows]
        off = ((likely - table.keep[rows]) * weight / weight.sum()).astype(np.float32)
        wrong = self._wrong_kinds(shown, table.kind[rows], weight)
        back = (np.outer(off, of["out"]) + wrong @ of["beside"].T) * kept * (hidden > 0)
        to_pooled = (back @ of["pooled"].T).reshape(len(rows), HEADS, AXES)
        to_seen = pieces @ to_pooled.transpose(0, 2, 1)
        to_scores = seen * (to_seen - (seen * to_seen).sum(axis=1, keepdims=True))
        self._take(
            {
                "term": terms.back(off),
                "direct": vectors.T @ off,
                "heads": pieces.reshape(-1, AXES).T @ to_scores.reshape(-1, HEADS),
                "pooled": pooled.T @ back,
                "sentence": vectors.T @ back,
                "around": around.T @ back,
                "out": shown.T @ off,
                "beside": shown.T @ wrong,
            },
            rate,
        )

    def _wrong_kinds(self, shown: Floats, kind: NDArray[np.int64], weight: Floats) -> Floats:
        """[rows, kinds] The slope of telling the kinds apart."""
        scores = shown @ self.of["beside"]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        wrong = odds / odds.sum(axis=1, keepdims=True)
        known = kind >= 0
        wrong[known, kind[known]] -= 1
        share: Floats = np.where(known, weight, 0) * np.float32(BESIDE) / weight.sum()
        return (wrong * share[:, None]).astype(np.float32)

    def _take(self, slopes: dict[str, Floats], rate: float) -> None:
        self._steps += 1
        for name, slope in slopes.items():
            mean, square = self._mean[name], self._square[name]
            mean += np.float32(0.1) * (slope - mean)
            square += np.float32(0.001) * (slope * slope - square)
            step = mean / (1 - 0.9**self._steps) / (np.sqrt(square / (1 - 0.999**self._steps)) + 1e-8)
            # a word is seen in few sentences: it is held back more
            decay = DECAY * (3 if name == "term" else 1)
            self.of[name] -= (rate * (step + decay * self.of[name])).astype(np.float32)


def fitted(table: Table, terms: Sequence[str]) -> list[Network]:
    """Networks fitted to `table`, alike but for chance."""
    told = table.told(terms)
    kinds = int(table.kind.max()) + 1
    networks = [Network(len(terms), table.vectors.shape[1], kinds, seed) for seed in range(NETWORKS)]
    for network in networks:
        network.fit(table, told)
    return networks


def likelihoods(networks: Sequence[Network], table: Table, terms: Sequence[str]) -> Floats:
    """[examples] How likely each is a durable statement."""
    told = table.told(terms)
    scores = sum(network.scores(table, told) for network in networks) / len(networks)
    found: Floats = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
    return found


def crossed(table: Table, sources: NDArray[np.str_]) -> Floats:
    """[examples] How likely each is, by what was fitted without its author; 0 for those of no fold."""
    found = np.zeros(len(sources), np.float32)
    for authors in FOLDS:
        theirs = np.isin(sources, list(authors))
        rest = table.some(~theirs)
        terms = terms_in(rest)
        found[theirs] = likelihoods(fitted(rest, terms), table.some(theirs), terms)
    return found


def curve(table: Table, sources: NDArray[np.str_], judged: Sequence[Judged]) -> None:
    """Print how well sentences of an author are told from traps, by how many of the others were fitted to."""
    for others in range(len(FOLDS)):
        likely = np.zeros(len(sources), np.float32)
        for at, authors in enumerate(FOLDS):
            theirs = np.isin(sources, list(authors))
            told = [FOLDS[(at + step) % len(FOLDS)] for step in range(1, others + 1)]
            rest = table.some(~np.isin(sources, list(JUDGED)) | np.isin(sources, list("".join(told))))
            terms = terms_in(rest)
            likely[theirs] = likelihoods(fitted(rest, terms), table.some(theirs), terms)
        best, right = best_of(judged, likely)
        level = float(np.quantile(best[~right], 0.97))
        print(
            f"{others} of {len(FOLDS) - 1} other pairs of authors: {figures('all', best, right, level)}",
            flush=True,
        )


def fitted_kinds(vectors: Floats, kind: NDArray[np.str_], names: Sequence[str]) -> Floats:
    """[kinds, dimensions + 1] Softmax regression with a ridge, by steps down the slope."""
    target = (kind[:, None] == np.array(names)[None]).astype(np.float64)
    known, found = vectors.astype(np.float64), np.zeros((len(names), vectors.shape[1]))
    for _ in range(400):
        scores = known @ found.T
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely = odds / odds.sum(axis=1, keepdims=True)
        found -= 0.3 * ((likely - target).T @ known / len(known) + 0.003 * found)
    return found.astype(np.float32)


def best_of(
    judged: Sequence[Judged], likely: Floats, authors: str = JUDGED
) -> tuple[Floats, NDArray[np.bool_]]:
    """For each sentence of `authors`, its likeliest clause, and whether it is to be kept."""
    theirs = [one for one in judged if one.source in authors]
    best = [max((float(likely[at]) for at in one.at), default=0.0) for one in theirs]
    return np.array(best, np.float32), np.array([one.keep for one in theirs])


def from_where(likely: Floats, right: NDArray[np.bool_], precision: float) -> float:
    """The lowest likelihood from which on so many are right."""
    order = np.argsort(-likely, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(share >= precision)
    return float(likely[order][enough[-1]]) if len(enough) else 1.0


def figures(name: str, likely: Floats, right: NDArray[np.bool_], floor: float) -> str:
    """Precision, recall and traps kept at `floor`, as a line."""
    kept = likely >= floor
    precision = right[kept].mean() if kept.any() else float("nan")
    return (
        f"{name:9s} from {floor:.3f}: precision {precision:.3f}, recall {kept[right].mean():.3f}, "
        f"traps kept {kept[~right].mean():.3f}"
    )


def _report(judged: Sequence[Judged], likely: Floats, levels: Sequence[float]) -> None:
    for authors in (*JUDGED, JUDGED, *CALLERS, CALLERS):
        best, right = best_of(judged, likely, authors)
        for level in levels:
            print(figures(authors, best, right, level))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, help="a folder that keeps the vectors")
    parser.add_argument(
        "--floor", type=float, default=0.35, help="likelihood from which one that replaces is kept"
    )
    parser.add_argument("--keep", type=float, default=0.97, help="precision from which a clause is kept")
    parser.add_argument(
        "--keep-in-calls", type=float, default=0.55, help="likelihood from which one of a call is kept"
    )
    parser.add_argument("--sure", type=float, default=0.98, help="precision from which it is sure")
    parser.add_argument("--cross", action="store_true", help="cross-validate, and write nothing")
    parser.add_argument("--curve", action="store_true", help="vary the number of authors, and write nothing")
    parser.add_argument("--into", type=Path, default=Path(clause_reader.__file__).with_suffix(".npz"))
    given = parser.parse_args()
    some, judged = examples()
    sources = np.array([example.source for example in some])
    print(", ".join(f"{count} of {source}" for source, count in Counter(sources).items()))
    vectors, pieces = encoded([example.clause.text for example in some], given.cache)
    axes = axes_of(
        [one for one, source in zip(pieces, sources, strict=True) if source not in JUDGED + CALLERS]
    )
    table = table_of(some, vectors, pieces, axes)
    if given.curve:
        curve(table, sources, judged)
        return
    likely = crossed(table, sources)
    best, right = best_of(judged, likely)
    levels = {name: from_where(best, right, getattr(given, name)) for name in ("keep", "sure")}
    levels |= {"floor": given.floor, "keep_in_calls": given.keep_in_calls}
    _report(judged, likely, (*levels.values(), 0.5, 0.6, 0.7, 0.8, 0.9))
    if not given.cross:
        _write(given.into, table, some, axes, levels)


def _write(into: Path, table: Table, some: Sequence[Example], axes: Floats, levels: dict[str, float]) -> None:
    terms = terms_in(table)
    networks = fitted(table, terms)
    stated = np.array([example.keep and example.kind in CATEGORIES for example in some])
    kind = np.array([example.kind for example in some])[stated]
    names = tuple(CATEGORIES)
    share = np.float32(1 / len(networks))
    each = {name: [network.of[name] for network in networks] for name in networks[0].of}
    arrays = {
        **{name: sum(each[name]) * share for name in ("term", "direct")},
        **{name: np.stack(each[name]) for name in ("heads", "pooled", "sentence", "around")},
        "out": np.stack(each["out"]) * share,
        "axes": axes,
        "kinds": fitted_kinds(table.vectors[stated], kind, names),
    }
    np.savez_compressed(
        into,
        terms=np.array("\n".join(terms)),
        names=np.array(names),
        **{name: np.float32(value) for name, value in levels.items()},
        **{name: array for pair in arrays.items() for name, array in _in_bytes(*pair).items()},
    )
    print(f"{into.stat().st_size:,} bytes, {len(terms)} terms")


def _in_bytes(name: str, array: Floats) -> dict[str, NDArray[np.generic]]:
    """`array` in steps of one byte, with the size of a step of each column."""
    scale = np.maximum(np.abs(array).max(axis=-2 if array.ndim > 1 else None, keepdims=True), 1e-9) / 127
    return {name: np.round(array / scale).astype(np.int8), f"{name}_scale": scale.astype(np.float32)}


if __name__ == "__main__":
    main()
