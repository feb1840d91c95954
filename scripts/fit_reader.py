"""Fit the weights of `echoic.memory.distilling.clause_reader`, and write them beside it.

    PYTHONPATH=packages/echoic-corpus/src python scripts/fit_reader.py --cache /tmp/reader-vectors

Fitted to the telephone corpus's `train` callers and to the sentences in `reader_sentences.txt`. From which
likelihood on a clause is kept, and from which it is sure, is chosen on `train` and `dev` callers by five-fold
cross-validation grouped by caller. Nothing here reads the `test` callers. A clause of the corpus is a
statement where it shares half of its content words with the words or the value of a labelled fact of its
turn, or stands in `reader_unlabelled.txt`: labels name what matters most in a turn, not all that is durable.
The same data gives the same weights: there is no chance in it but the order of folds, which is fixed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echoic.embedding import embedder_from
from echoic.memory.distilling import clause_reader
from echoic.memory.distilling.changes import FACT_CATEGORIES
from echoic.memory.distilling.clause_reader import Clause, Floats, clauses, features, likelihoods, terms_of
from echoic.words import content_words
from echoic_corpus import Caller, read_all, splits

HERE = Path(__file__).parent
SENTENCES, UNLABELLED = HERE / "reader_sentences.txt", HERE / "reader_unlabelled.txt"
WRITTEN = "written"
"""Who says the sentences that were written to train on."""
WRITTEN_WEIGHT = 1.5
"""Of one written sentence, beside 1 of a clause of the corpus: they are few, and plain."""
RIDGE = 10.0
LEAST_SEEN = 10
"""Callers, or written sentences, that a term must occur with to count."""
FOLDS = 5
MOST_WAYS = 8
"""Sentences made of one line with choices."""
_BATCH = 64
_SAME = 0.5


@dataclass(frozen=True, slots=True)
class Example:
    """A clause and what is to become of it."""

    clause: Clause
    who: str
    """The caller, or the line it was made of."""
    split: str
    category: str | None
    """None: it is not to be kept."""
    trap: bool


def examples() -> list[Example]:
    """Of `train` and `dev` callers, and those written."""
    split = splits()
    durable = frozenset(_lines(UNLABELLED))
    found = [_written(line) for line in _lines(SENTENCES)]
    for caller in read_all()[0]:
        if split[caller.id] in {"train", "dev"}:
            found += [_of_caller(caller, split[caller.id], durable)]
    return [example for some in found for example in some]


def _lines(path: Path) -> list[str]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def _written(line: str) -> list[Example]:
    head, text = line.split("\t")
    keep, kind = head[0] == "+", head[2:]
    texts = _chosen(text)
    return [
        Example(clause, f"{WRITTEN} {text}", WRITTEN, kind if keep else None, not keep)
        for each in texts
        for clause in clauses(each)
    ]


def _chosen(text: str) -> list[str]:
    """`text` with its choices made, in some of the possible ways, spread over all of them."""
    parts = [part.split("|") for part in re.split(r"[{}]", text)]
    ways = ["".join(way) for way in itertools.product(*parts)]
    step = max(1, len(ways) // MOST_WAYS)
    # of neighbouring ways only the last choice differs: a stride without a common factor takes all of them
    while step > 1 and math.gcd(step, len(ways)) > 1:
        step += 1
    return list(dict.fromkeys(" ".join(ways[at * step % len(ways)].split()) for at in range(MOST_WAYS)))


def _of_caller(caller: Caller, split: str, durable: frozenset[str]) -> list[Example]:
    named = {turn.name: turn.id for turn in caller.turns.values() if turn.name}
    facts: dict[str, list[tuple[frozenset[str], frozenset[str], str]]] = defaultdict(list)
    for fact in caller.facts:
        quote = _stems(" ".join(span.quote for span in fact.spans))
        for turn in {fact.turn, *(named[name] for name in fact.also if name in named)}:
            facts[turn].append((quote, _stems(fact.value), fact.category))
    traps: dict[str, list[frozenset[str]]] = defaultdict(list)
    for trap in caller.traps:
        traps[trap.turn].append(_stems(trap.span.quote))
    found = []
    for turn in caller.turns.values():
        for clause in clauses(turn.text) if turn.role == "caller" else ():
            told = _stems(clause.text)
            scored = [(max(_share(told, q), _share(v, told)), kind) for q, v, kind in facts[turn.id]]
            best = max(scored, default=(0.0, ""))
            kind = best[1] if best[0] >= _SAME else "fact" if clause.text in durable else None
            trapped = any(max(_share(bait, told), _share(told, bait)) >= _SAME for bait in traps[turn.id])
            found.append(Example(clause, caller.id, split, kind, trapped))
    return found


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in content_words(text))


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part & whole) / len(part) if part else 0.0


def embedded(texts: Sequence[str], cache: Path | None) -> Floats:
    """[texts, 384] Their vectors, from `cache` where it has them."""
    known: dict[str, Floats] = {}
    stored = cache / "vectors.npz" if cache else None
    if stored and stored.exists():
        with np.load(stored) as held:
            known = dict(zip(map(str, held["names"]), held["vectors"].astype(np.float32), strict=True))
    names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = dict.fromkeys(text for name, text in zip(names, texts, strict=True) if name not in known)
    if new:
        made = asyncio.run(_embed(list(new)))
        known |= {hashlib.sha256(text.encode()).hexdigest(): row for text, row in zip(new, made, strict=True)}
        if stored:
            stored.parent.mkdir(parents=True, exist_ok=True)
            np.savez(stored, names=list(known), vectors=np.stack(list(known.values())))
    return np.stack([known[name] for name in names])


async def _embed(texts: list[str]) -> Floats:
    embedder = embedder_from("local")
    await embedder.open()
    try:
        made = [
            await embedder.embed(texts[at : at + _BATCH], "document") for at in range(0, len(texts), _BATCH)
        ]
    finally:
        await embedder.aclose()
    return np.concatenate(made)


def terms_in(some: Sequence[Example]) -> tuple[str, ...]:
    """Words and pairs of words that enough callers or written sentences have."""
    seen: dict[str, set[str]] = defaultdict(set)
    for example in some:
        for term in terms_of(example.clause.words):
            seen[term].add(example.who)
    return tuple(sorted(term for term, who in seen.items() if len(who) >= LEAST_SEEN))


def fitted(table: Floats, right: NDArray[np.bool_], weight: Floats, ridge: float = RIDGE) -> Floats:
    """The logistic regression with that ridge, by Newton's method; the last column is the bias."""
    known, of = table.astype(np.float64), weight.astype(np.float64)
    found = np.zeros(known.shape[1])
    shrink = np.full(known.shape[1], ridge)
    shrink[-1] = 1e-6
    for _ in range(20):
        likely = 1 / (1 + np.exp(-np.clip(known @ found, -30, 30)))
        slope = known.T @ (of * (likely - right)) + shrink * found
        curve = (known * (of * likely * (1 - likely))[:, None]).T @ known
        curve[np.diag_indices(len(found))] += shrink + 1e-9
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-5:
            break
    return found.astype(np.float32)


def folds_of(some: Sequence[Example]) -> NDArray[np.int64]:
    """Which fold each is left out of: all of a caller, or of a written line, are in one only."""
    who = sorted({example.who for example in some})
    np.random.default_rng(1).shuffle(who)
    place = {name: at % FOLDS for at, name in enumerate(who)}
    return np.array([place[example.who] for example in some])


def out_of_fold(some: Sequence[Example], table: Floats, right: NDArray[np.bool_], weight: Floats) -> Floats:
    """How likely each is, as told by what was fitted to the others' folds."""
    folds, likely = folds_of(some), np.zeros(len(some), np.float32)
    for fold in range(FOLDS):
        rest = folds != fold
        likely[~rest] = likelihoods(table[~rest], fitted(table[rest], right[rest], weight[rest]))
    return likely


def from_where(likely: Floats, right: NDArray[np.bool_], precision: float) -> float:
    """The lowest likelihood from which on so many are right."""
    order = np.argsort(-likely, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(share >= precision)
    return float(likely[order][enough[-1]]) if len(enough) else 1.0


def figures(
    name: str, likely: Floats, right: NDArray[np.bool_], trap: NDArray[np.bool_], floor: float
) -> str:
    """Precision, recall and traps kept at `floor`, as a line."""
    kept = likely >= floor
    precision = right[kept].mean() if kept.any() else float("nan")
    return (
        f"{name:10s} from {floor:.3f}: {kept.sum()} of {len(kept)} kept, precision {precision:.3f}, "
        f"recall {kept[right].mean():.3f}, traps kept {kept[trap & ~right].mean():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, help="a folder that keeps the vectors")
    parser.add_argument("--floor", type=float, default=0.85, help="precision from which a clause is kept")
    parser.add_argument("--sure", type=float, default=0.9, help="precision from which it is sure")
    parser.add_argument("--into", type=Path, default=Path(clause_reader.__file__).with_suffix(".npz"))
    given = parser.parse_args()
    some = examples()
    vectors = embedded([example.clause.text for example in some], given.cache)
    split = np.array([example.split for example in some])
    right = np.array([example.category is not None for example in some])
    trap = np.array([example.trap for example in some])
    weight = np.where(split == WRITTEN, WRITTEN_WEIGHT, 1.0).astype(np.float32)
    learned = split != "dev"
    terms = terms_in([example for example in some if example.split != "dev"])
    places = {term: at for at, term in enumerate(terms)}
    table = features([example.clause for example in some], vectors, places)
    likely = out_of_fold(some, table, right, weight)
    corpus = split != WRITTEN
    floor, sure = (from_where(likely[corpus], right[corpus], share) for share in (given.floor, given.sure))
    keep = fitted(table[learned], right[learned], weight[learned])
    for name in ("train", "dev", WRITTEN):
        those = split == name
        shown = likelihoods(table[those], keep) if name == "dev" else likely[those]
        for level in (floor, sure, 0.5, 0.6, 0.7, 0.8, 0.9):
            print(figures(name, shown, right[those], trap[those], level))
    stated = learned & right
    kind = np.array([example.category or "" for example in some])[stated]
    kinds = [fitted(table[stated], kind == one, weight[stated]) for one in FACT_CATEGORIES]
    np.savez_compressed(
        given.into,
        terms=np.array(terms),
        keep=keep.astype(np.float16),
        kinds=np.stack(kinds).astype(np.float16),
        categories=np.array(FACT_CATEGORIES),
        floor=np.float32(floor),
        sure=np.float32(sure),
    )
    print(f"{given.into.stat().st_size:,} bytes, {len(terms)} terms")


if __name__ == "__main__":
    main()
