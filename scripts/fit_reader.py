"""Fit the weights of `echoic.memory.distilling.clause_reader`, and write them beside it.

    PYTHONPATH=packages/echoic-corpus/src python scripts/fit_reader.py --cache /tmp/reader-vectors

Fitted to what stands in `scripts/reader` and to the telephone corpus's `train` and `dev` callers:

- `author_a.tsv`, `author_b.tsv`: sentences of two authors who did not see one another's;
- `author_c.tsv`: sentences written beside this script, some after reading what was misread of A's and B's;
- `asides.txt`: what people say around a sentence, put around those of the authors;
- `sentences.txt`, and `frames.txt`, of whose frames sentences are made;
- `unlabelled.txt`: clauses of the corpus that no label names and that are durable all the same.

From which likelihood on a clause is kept, and from which it is sure, is chosen on the sentences of authors A
and B by cross-validation: what reads A's is fitted without them, and the reverse. `--cross` prints that and
writes nothing. The corpus's `test` callers and `tests/memory/others_sentences.tsv` are not read. A clause
of the corpus is a statement where it shares half of its content words with the words or the value of a
labelled fact of its turn. The same data gives the same weights: all chance is seeded.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echoic.embedding import embedder_from
from echoic.memory.distilling import clause_reader
from echoic.memory.distilling.clause_reader import (
    CATEGORIES,
    PIECE_SCALE,
    PIECES,
    Clause,
    Floats,
    attention,
    clauses,
    terms_of,
    with_bias,
)
from echoic.words import content_words
from echoic_corpus import Caller, read_all, splits

HERE = Path(__file__).parent / "reader"
AUTHORS = "abc"
JUDGED = "ab"
"""The authors whose sentences judge: who wrote C's also wrote this script."""
GENERATED, CORPUS = "generated", "corpus"
WRITTEN_WEIGHT, GENERATED_WEIGHT, CORPUS_WEIGHT, TRAP_WEIGHT = 1.0, 0.3, 0.1, 0.5
"""Of an example: what the corpus does not label may be durable all the same, what it calls a trap is none."""
MOST_WAYS = 8
"""Sentences made of one frame."""
LEAST_SEEN = 8
"""Clauses that a term must occur in to count."""
AXES, HEADS, HIDDEN, NETWORKS = 128, 4, 24, 3
EPOCHS, BATCH, RATE, DECAY, DROPPED = 10, 64, 1e-3, 0.02, 0.3
_CHOICE = re.compile(r"\{([^{}]*)\}")
_LISTED = re.compile(r"\{@(\w+)\}")
_FIRST_PERSON = re.compile(r"(?:i|i'\w+|my|our|we|we'\w+)\b", re.IGNORECASE)
_SAME = 0.5


@dataclass(frozen=True, slots=True)
class Example:
    """A clause and what is to become of it."""

    clause: Clause
    source: str
    """An author, `GENERATED` or `CORPUS`."""
    keep: bool
    kind: str
    """Of those of `CATEGORIES`; "" where it is not known."""
    weight: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A sentence of an author, and the places of its clauses among the examples."""

    source: str
    keep: bool
    kind: str
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Examples as the networks see them."""

    vectors: Floats
    """[examples, dimensions + 1]"""
    pieces: Floats
    """[examples, PIECES, AXES]"""
    there: NDArray[np.bool_]
    """[examples, PIECES] Which of the pieces there are."""
    terms: tuple[frozenset[str], ...]
    keep: NDArray[np.bool_]
    weight: Floats

    def some(self, those: NDArray[np.bool_]) -> Table:
        """The rows of `those`."""
        terms = tuple(self.terms[at] for at in np.flatnonzero(those))
        rows = (self.vectors, self.pieces, self.there)
        return Table(*(row[those] for row in rows), terms, self.keep[those], self.weight[those])

    def told(self, terms: Sequence[str]) -> Floats:
        """[examples, terms] 1 where an example has the term."""
        places = {term: at for at, term in enumerate(terms)}
        told = np.zeros((len(self.terms), len(terms)), np.float32)
        for row, has in zip(told, self.terms, strict=True):
            row[[places[term] for term in has if term in places]] = 1
        return told


def examples() -> tuple[list[Example], list[Judged]]:
    """Of all sources, and the authors' sentences with the places of their clauses."""
    found: list[Example] = []
    judged: list[Judged] = []
    asides = [line.split("\t") for line in _lines(HERE / "asides.txt")]
    for author in AUTHORS:
        for line in _lines(HERE / f"author_{author}.tsv"):
            label, kind, text = line.split("\t")
            read = _read(text, author, kind if label == "+" else "", WRITTEN_WEIGHT)
            judged.append(
                Judged(author, label == "+", kind, tuple(range(len(found), len(found) + len(read))))
            )
            found += read
            found += _put_in_asides(text, author, kind if label == "+" else "", asides)
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


def _read(text: str, source: str, kind: str, weight: float) -> list[Example]:
    return [Example(clause, source, bool(kind), kind, weight) for clause in clauses(text)]


def _put_in_asides(text: str, author: str, kind: str, asides: Sequence[Sequence[str]]) -> list[Example]:
    """`text` with words around it that change nothing, and, if it is a statement, with some that do."""
    draw, bare = random.Random(text), text.rstrip(".!?…")
    found = []
    for sign in "=-" if _FIRST_PERSON.match(text) and kind else "=":
        around = draw.choice([line[1] for line in asides if line[0] == sign])
        made = around.replace("…", bare)
        found += _read(made, author, kind if sign == "=" else "", GENERATED_WEIGHT)
    return found


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
    projected = np.zeros((len(some), PIECES, AXES), np.float32)
    there = np.zeros((len(some), PIECES), np.bool_)
    for at, one in enumerate(pieces):
        projected[at, : len(one)] = (one.astype(np.float32) @ axes) * np.float32(PIECE_SCALE)
        there[at, : len(one)] = True
    return Table(
        with_bias(vectors.astype(np.float32)),
        projected,
        there,
        tuple(frozenset(terms_of(example.clause.words)) for example in some),
        np.array([example.keep for example in some]),
        np.array([example.weight for example in some], np.float32),
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
        seed: of all chance in it.
    """

    def __init__(self, terms: int, dimensions: int, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        shapes = {
            "term": ((terms,), 0.0),
            "direct": ((dimensions,), 0.0),
            "heads": ((AXES, HEADS), 0.05),
            "pooled": ((HEADS * AXES, HIDDEN), 0.03),
            "sentence": ((dimensions, HIDDEN), 0.05),
            "out": ((HIDDEN,), 0.1),
        }
        self.of = {
            name: (self._draw.normal(size=shape) * size).astype(np.float32)
            for name, (shape, size) in shapes.items()
        }
        self._mean = {name: np.zeros_like(value) for name, value in self.of.items()}
        self._square = {name: np.zeros_like(value) for name, value in self.of.items()}
        self._steps = 0

    def fit(self, table: Table, told: Floats) -> None:
        """Fit to `table`, whose terms are `told`."""
        count = len(table.keep)
        for epoch in range(EPOCHS):
            order = self._draw.permutation(count)
            for at in range(0, count, BATCH):
                rate = RATE * (1 - (epoch * count + at) / (EPOCHS * count))
                self._step(table, told, order[at : at + BATCH], rate)

    def scores(self, table: Table, told: Floats) -> Floats:
        """[examples] The log odds of each."""
        _, _, hidden = self._forward(table.vectors, table.pieces, table.there)
        of = self.of
        found: Floats = hidden @ of["out"] + table.vectors @ of["direct"] + told @ of["term"]
        return found

    def _forward(
        self, vectors: Floats, pieces: Floats, there: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        scores = np.where(there[:, :, None], pieces @ self.of["heads"], np.float32(-1e9))
        seen = attention(scores.transpose(1, 0, 2), np.eye(HEADS, dtype=np.float32)).transpose(1, 0, 2)
        pooled = (seen.transpose(0, 2, 1) @ pieces).reshape(len(vectors), -1)
        hidden = np.maximum(vectors @ self.of["sentence"] + pooled @ self.of["pooled"], 0)
        return seen, pooled, hidden

    def _step(self, table: Table, told: Floats, rows: NDArray[np.int64], rate: float) -> None:
        longest = int(table.there[rows].sum(axis=1).max())
        pieces, there = table.pieces[rows, :longest], table.there[rows, :longest]
        vectors, terms, of = table.vectors[rows], told[rows], self.of
        seen, pooled, hidden = self._forward(vectors, pieces, there)
        kept = ((self._draw.random(hidden.shape) >= DROPPED) / (1 - DROPPED)).astype(np.float32)
        score = (hidden * kept) @ of["out"] + vectors @ of["direct"] + terms @ of["term"]
        likely = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
        weight = table.weight[rows]
        off = ((likely - table.keep[rows]) * weight / weight.sum()).astype(np.float32)
        back = np.outer(off, of["out"]) * kept * (hidden > 0)
        to_pooled = (back @ of["pooled"].T).reshape(len(rows), HEADS, AXES)
        to_seen = pieces @ to_pooled.transpose(0, 2, 1)
        to_scores = seen * (to_seen - (seen * to_seen).sum(axis=1, keepdims=True))
        self._take(
            {
                "term": terms.T @ off,
                "direct": vectors.T @ off,
                "heads": pieces.reshape(-1, AXES).T @ to_scores.reshape(-1, HEADS),
                "pooled": pooled.T @ back,
                "sentence": vectors.T @ back,
                "out": (hidden * kept).T @ off,
            },
            rate,
        )

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
    networks = [Network(len(terms), table.vectors.shape[1], seed) for seed in range(NETWORKS)]
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
    """[examples] How likely each is, by what was fitted without its author; 0 for others than `JUDGED`."""
    found = np.zeros(len(sources), np.float32)
    for author in JUDGED:
        theirs = sources == author
        rest = table.some(~theirs)
        terms = terms_in(rest)
        found[theirs] = likelihoods(fitted(rest, terms), table.some(theirs), terms)
    return found


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


def best_of(judged: Sequence[Judged], likely: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """For each sentence of the judging authors, its likeliest clause, and whether it is to be kept."""
    theirs = [one for one in judged if one.source in JUDGED]
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
    for authors in (*JUDGED, JUDGED):
        best, right = best_of([one for one in judged if one.source in authors], likely)
        for level in levels:
            print(figures(authors, best, right, level))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, help="a folder that keeps the vectors")
    parser.add_argument(
        "--floor", type=float, default=0.94, help="precision from which one that replaces is kept"
    )
    parser.add_argument("--keep", type=float, default=0.96, help="precision from which a clause is kept")
    parser.add_argument("--sure", type=float, default=0.98, help="precision from which it is sure")
    parser.add_argument("--cross", action="store_true", help="cross-validate, and write nothing")
    parser.add_argument("--into", type=Path, default=Path(clause_reader.__file__).with_suffix(".npz"))
    given = parser.parse_args()
    some, judged = examples()
    sources = np.array([example.source for example in some])
    print(", ".join(f"{count} of {source}" for source, count in Counter(sources).items()))
    vectors, pieces = encoded([example.clause.text for example in some], given.cache)
    axes = axes_of([one for one, source in zip(pieces, sources, strict=True) if source not in JUDGED])
    table = table_of(some, vectors, pieces, axes)
    likely = crossed(table, sources)
    best, right = best_of(judged, likely)
    floor, keep, sure = (from_where(best, right, share) for share in (given.floor, given.keep, given.sure))
    _report(judged, likely, (floor, keep, sure, 0.5, 0.6, 0.7, 0.8, 0.9))
    if not given.cross:
        _write(given.into, table, some, axes, floor=floor, keep=keep, sure=sure)


def _write(
    into: Path,
    table: Table,
    some: Sequence[Example],
    axes: Floats,
    *,
    floor: float,
    keep: float,
    sure: float,
) -> None:
    terms = terms_in(table)
    networks = fitted(table, terms)
    stated = np.array([bool(example.kind) for example in some])
    kind = np.array([example.kind for example in some])[stated]
    names = tuple(CATEGORIES)
    share = np.float32(1 / len(networks))
    each = {name: [network.of[name] for network in networks] for name in networks[0].of}
    arrays = {
        **{name: sum(each[name]) * share for name in ("term", "direct")},
        **{name: np.stack(each[name]) for name in ("heads", "pooled", "sentence")},
        "out": np.stack(each["out"]) * share,
        "axes": axes,
        "kinds": fitted_kinds(table.vectors[stated], kind, names),
    }
    np.savez_compressed(
        into,
        terms=np.array("\n".join(terms)),
        names=np.array(names),
        floor=np.float32(floor),
        keep=np.float32(keep),
        sure=np.float32(sure),
        **{name: value.astype(np.float16) for name, value in arrays.items()},
    )
    print(f"{into.stat().st_size:,} bytes, {len(terms)} terms")


if __name__ == "__main__":
    main()
