"""Fit the weights of `echoic.ranking.relevance` and write them to `relevance.json` beside it.

    PYTHONPATH=packages/echoic-corpus/src python scripts/fit_relevance.py --cache /tmp/relevance

Fitted to the telephone corpus's `train` callers, to stores of a few rows of the same lives, and to the
made-up callers of `echoic bench keyvalue`. Asked are their own questions, plain ones
(`scripts/relevance/questions.txt`), questions about other callers' lives with the names replaced, questions
without an answer, remarks, and the lines of `scripts/relevance/` and those of `echoic_bench.offtopic` that
are for choosing. For conversations between people the same calls are told with names instead of roles, and
the plain questions are asked. Nothing here reads the `test` callers, and nothing LoCoMo. What was embedded is
kept under --cache: with it, all callers take some eight minutes of a processor, and without it about as long
again. `--callers 8` tries a change on a few of them; what is shipped was fitted to all.

The models without word pieces keep the weights in the file, which were fitted before there were plain
questions; `--blind` fits them anew. They then tell remarks better from questions, but at the default floor
lose twice as many answers of dev callers (words alone: 10.8 points of R@10 instead of 5.0).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from echoic.embedding import embedder_from
from echoic.memory.records import index
from echoic.partition import Partition, Pieces
from echoic.ranking import FLOOR, query_of
from echoic.ranking.channels import Channels
from echoic.ranking.fusion import FUSIONS
from echoic.ranking.layout import Candidates
from echoic.ranking.relevance import ANSWERED_BY, CLOSE, IDLE_FROM, KINDS, RIGHT_BY, features, hits_of
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Memory, Scope, Turn
from echoic_bench.attributes import ATTRIBUTES
from echoic_bench.callers import dataset_of
from echoic_bench.corpus import DEPLOYMENT, Corpus, corpus_of
from echoic_bench.labelled import Dataset, Item, Labelled, Question
from echoic_bench.offtopic import CHOOSING
from echoic_bench.silence import about_others
from echoic_bench.telephone import callers_of
from echoic_corpus import Caller, read_all

TARGET = Path(__file__).parents[1] / "src/echoic/ranking/relevance.json"
WRITTEN = Path(__file__).parent / "relevance"
WEIGHTS = {"own": 1.0, "plain": 2.0, "fact": 0.5, "others": 0.7, "others' plain": 2.0, "others' facts": 0.5}
WEIGHTS |= {"unanswered": 0.3, "fillers": 2.0, "knowledge": 2.0, "remarks": 2.0}
WEIGHTS_AMONG_PEOPLE = {"plain": 1.5, "others' plain": 1.5, "swapped": 0.7}
WEIGHTS_AMONG_PEOPLE |= {"fillers": 0.7, "knowledge": 0.7, "remarks": 1.0}
"""How much a question of each kind counts when it is learned whether there is an answer."""
SPLITS = ("train", "keyed", "people")
KEYED_WEIGHT = 0.4
"""Of the made-up callers, whose questions are many and alike."""
SHARE = {"train": 0.4, "few": 0.3, "keyed": 0.15}
"""Of all questions, how many are asked: enough for some hundred weights."""
PENALTY, IDLE_PENALTY = 5.0, 3.0
ANSWERED = frozenset({"own", "plain", "fact"})
IDLE = frozenset({"fillers", "knowledge", "remarks"})
FOLDS, VECTOR_SCALE = 5, 20.0
"""Parts of which each is scored by what was learned from the others; a unit vector's numbers are small."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question put to one store."""

    kind: str
    text: str
    evidence: frozenset[str]


@dataclass
class Learned:
    """Features and labels of one kind of model."""

    rows: list[dict[str, Floats]] = field(default_factory=list)
    right: list[NDArray[np.bool_]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


def stores(split: str, most: int | None) -> Iterator[Labelled]:
    """The callers of `split`, and small stores of the same lives: one call, facts alone, one to four rows."""
    draw = random.Random(11)
    raw = {caller.id: caller for caller in read_all()[0]}
    for whose in callers_of(split)[:most]:
        yield whose
        calls = sorted({item.conversation for item in whose.items if isinstance(item, Turn)})
        chosen = draw.choice(calls)
        said = [item for item in whose.items if isinstance(item, Turn) and item.conversation == chosen]
        yield part_of(whose, "call", said)
        facts = list(memories_of(raw[whose.user], draw))
        yield part_of(whose, "facts", facts)
        for number in range(4):
            few = draw.sample(facts, min(len(facts), number + 1))
            yield part_of(whose, f"few{number}", few)
            start = draw.randrange(len(said))
            yield part_of(whose, f"said{number}", said[start : start + number + 1])


def part_of(whose: Labelled, name: str, items: Sequence[Item]) -> Labelled:
    """A store of some of a caller's items, under ids of its own."""
    user = f"{whose.user}-{name}"
    questions = tuple(
        replace(each, evidence=each.evidence | {f"{user}/{one}" for one in each.evidence})
        for each in whose.questions
    )
    kept = tuple(replace(item, id=f"{user}/{item.id}") for item in items)
    return replace(whose, user=user, items=kept, questions=questions)


def memories_of(caller: Caller, draw: random.Random) -> Iterator[Memory]:
    """The caller's facts as memories: under a key, or in a sentence."""
    names: set[str] = set()
    for fact in caller.facts:
        slot = fact.slot if fact.slot not in (None, "-") else None
        about = f"{fact.about}'s " if fact.about else ""
        call = caller.calls[caller.turns[fact.turn].call - 1]
        key = f"{about}{slot}".replace("'s ", " ").replace(" ", "_").lower() if slot else None
        keyed = key is not None and key not in names and draw.random() < 0.5
        if keyed:
            names.add(key or "")
        named = slot and draw.random() < 0.6
        text = fact.value if keyed else f"{about}{slot}: {fact.value}" if named else fact.value
        if not keyed and fact.about and about not in text:
            text = f"{fact.about}: {fact.value}"
        yield Memory(
            id=f"fact-{fact.id}",
            text=text,
            key=key if keyed else None,
            category=fact.category,
            source=(fact.turn, *fact.also),
            author=caller.id,
            valid_from=call.at,
        )


def questions_of(dataset: Dataset, split: str) -> Iterator[tuple[Labelled, list[Asked]]]:
    """What every store is asked."""
    draw = random.Random(5)
    raw = {caller.id: caller for caller in read_all()[0]}
    whole = [whose for whose in dataset.users if "-" not in whose.user]
    for whose in dataset.users:
        asked = [Asked("own", each.text, each.evidence) for each in whose.answerable]
        if split == "keyed":
            asked += untold(whose, draw)
        else:
            many = min(len(asked), 120) if whose in whole else min(max(len(asked), 6), 40)
            others = [other for other in whole if other.user != whose.user.split("-")[0]]
            asked += [Asked("others", text, frozenset()) for text in about_others(whose, others, many, draw)]
        few = 14 if whose in whole else 3
        if whose in whole:
            asked += of_whole(whose, raw, others, draw)
        share = SHARE["keyed" if split == "keyed" else "train" if whose in whole else "few"]
        asked = [one for one in asked if draw.random() < share]
        asked += beside_the_matter(few, draw)
        if split != "keyed" and whose in whole:
            asked += plainly(whose, whole, draw)
        yield whose, asked


def beside_the_matter(count: int, draw: random.Random) -> list[Asked]:
    """Lines of each kind that ask memory for nothing."""
    kinds = {name: (*written_lines(name), *CHOOSING.get(name, ())) for name in sorted(IDLE)}
    return [
        Asked(name, text, frozenset()) for name, all_ in kinds.items() for text in draw.sample(all_, count)
    ]


def written_lines(name: str) -> list[str]:
    """The lines of one file of `scripts/relevance`."""
    lines = (WRITTEN / f"{name}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def plain_questions() -> dict[str, tuple[Question, ...]]:
    """Plain questions by caller, with the turns that answer them."""
    raw = {caller.id: {fact.id: fact for fact in caller.facts} for caller in read_all()[0]}
    asked: dict[str, list[Question]] = {}
    for line in written_lines("questions"):
        user, name, text = line.split(" ", 2)
        fact = raw[user][name]
        asked.setdefault(user, []).append(Question(text=text, evidence=frozenset([fact.turn, *fact.also])))
    return {user: tuple(questions) for user, questions in asked.items()}


def plainly(whose: Labelled, everyone: Sequence[Labelled], draw: random.Random) -> list[Asked]:
    """Plain questions to a caller, and about others."""
    plain = plain_questions()
    others = [
        replace(other, questions=plain[other.user])
        for other in everyone
        if other.user in plain and other is not whose
    ]
    asked = [Asked("plain", each.text, each.evidence) for each in plain.get(whose.user, ())]
    return asked + [
        Asked("others' plain", text, frozenset()) for text in about_others(whose, others, 20, draw)
    ]


def people(most: int | None) -> Iterator[Labelled]:
    """The callers who are asked plain questions, in conversations between people: names instead of roles."""
    raw, plain = {caller.id: caller for caller in read_all()[0]}, plain_questions()
    for whose in callers_of("train")[:most]:
        if whose.user not in plain:
            continue
        name = raw[whose.user].about["name"].split()[0]
        friend = min(raw[whose.user].agents).split()[0]
        called = {"user": name, "agent": friend}
        told = part_of(whose, "people", whose.items)
        items = [
            replace(turn, speaker=called.get(turn.speaker, turn.speaker.split()[0]))
            for turn in told.items
            if isinstance(turn, Turn)
        ]
        questions = tuple(
            replace(each, evidence=frozenset(f"{told.user}/{one}" for one in each.evidence))
            for each in plain[whose.user]
        )
        names = ((name,), whose.names[1], (friend,), *whose.names[3:])
        yield replace(told, items=tuple(items), questions=questions, unanswered=(), names=names)


def questions_of_people(dataset: Dataset) -> Iterator[tuple[Labelled, list[Asked]]]:
    """What is asked of conversations between people: also what another of them said of themselves."""
    draw = random.Random(5)
    for whose in dataset.users:
        asked = [Asked("plain", each.text, each.evidence) for each in whose.answerable]
        others = [other for other in dataset.users if other is not whose]
        asked += [Asked("others' plain", text, frozenset()) for text in about_others(whose, others, 25, draw)]
        yield whose, [*asked, *swapped(whose, draw), *beside_the_matter(14, draw)]


def swapped(whose: Labelled, draw: random.Random) -> Iterator[Asked]:
    """Questions about what one person said of themselves, asked about another who is on the line."""
    turns = [item for item in whose.items if isinstance(item, Turn)]
    often, by = Counter(turn.speaker for turn in turns), {turn.id: turn.speaker for turn in turns}
    name, voices = whose.names[0][0], [each for each in whose.names[1] if often[each] >= 4]
    for each in whose.answerable:
        said_by = {by[one] for one in each.evidence}
        for mine in (name, *voices):
            if mine in said_by and re.search(rf"\b{mine}\b", each.text) and voices:
                other = draw.choice(voices) if mine == name else name
                yield Asked("swapped", re.sub(rf"\b{mine}\b", other, each.text), frozenset())


def untold(whose: Labelled, draw: random.Random) -> list[Asked]:
    """Questions for what a made-up caller did not tell."""
    keys = {item.key for item in whose.items if isinstance(item, Memory)}
    pool = [text for each in ATTRIBUTES if each.key not in keys for text in (*each.plain, *each.paraphrased)]
    return [Asked("others", text, frozenset()) for text in draw.sample(pool, min(len(pool), 25))]


def of_whole(
    whose: Labelled, raw: dict[str, Caller], others: Sequence[Labelled], draw: random.Random
) -> list[Asked]:
    """What only a whole caller is asked: what has no answer, remarks, and statements instead of questions."""
    asked = [Asked("unanswered", each.text, frozenset()) for each in whose.unanswered]
    asked += [Asked("remarks", text, frozenset()) for text in raw[whose.user].silence]
    for fact in draw.sample(raw[whose.user].facts, 12):
        text = f"{fact.about}: {fact.value}" if fact.about else fact.value
        asked.append(Asked("fact", text, frozenset([fact.turn, *fact.also])))
    for other in draw.choices(others, k=12):
        fact = draw.choice(raw[other.user].facts)
        text = f"{fact.about}: {fact.value}" if fact.about else fact.value
        stated = replace(other, questions=(Question(text=text, evidence=frozenset()),))
        asked += [
            Asked("others' facts", each, frozenset()) for each in about_others(whose, [stated], 1, draw)
        ]
    return asked


async def learn(split: str, cache: Path, most: int | None, kinds: Sequence[str]) -> dict[str, Learned]:
    """Features and labels by kind of model, of `most` callers."""
    if split == "keyed":
        dataset = dataset_of(150, turns=20, seed=23)
    else:
        told = people(most) if split == "people" else stores(split, most)
        dataset = Dataset(name=f"telephone-{split}", users=tuple(told))
    asked = list(questions_of_people(dataset) if split == "people" else questions_of(dataset, split))
    learned = {kind: Learned() for kind in kinds}
    async with corpus_of(dataset, embedder_from("local"), cache) as corpus:
        made = await embedded_once(
            [one.text for _, each in asked for one in each], corpus, cache / f"{split}.pkl"
        )
        store = SQLiteStore(corpus.path)
        await store.open(corpus.embedder.spec, index)
        for whose, each in asked:
            scope = Scope(DEPLOYMENT, whose.user)
            partition = await store.load(scope)
            ids = {record.seq: record.id for record in await store.rows(scope, range(partition.size))}
            for one in each:
                take(
                    learned,
                    whose,
                    one,
                    made[one.text],
                    partition=partition,
                    ids=ids,
                    split=split,
                )
        await store.aclose()
    return learned


async def embedded_once(
    texts: Sequence[str], corpus: Corpus, kept: Path
) -> dict[str, tuple[NDArray[np.float32], Pieces]]:
    """Vectors and word pieces of questions, from an earlier run where there was one."""
    known = read_kept(kept)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    for first in range(0, len(new), 64):
        some = new[first : first + 64]
        made = await corpus.embedder.embed_pieces(some, "query")
        for text, vector, pieces in zip(some, made.vectors, made.pieces or (), strict=True):
            known[text] = vector, (pieces.axes, pieces.hidden.astype(np.float16), pieces.spans)
    if new:
        write_kept(kept, known)
    return {
        text: (vector, Pieces(axes.astype(np.float32), hidden.astype(np.float32), spans))
        for text, (vector, (axes, hidden, spans)) in known.items()
    }


def read_kept(path: Path) -> dict[str, Any]:
    """What an earlier run of this script left; nothing else is to be put there."""
    return cast("dict[str, Any]", pickle.loads(path.read_bytes())) if path.exists() else {}


def write_kept(path: Path, known: dict[str, Any]) -> None:
    """Leave it for the next run."""
    path.write_bytes(pickle.dumps(known))


def take(
    learned: dict[str, Learned],
    whose: Labelled,
    one: Asked,
    made: tuple[NDArray[np.float32], Pieces],
    *,
    partition: Partition,
    ids: dict[int, str],
    split: str,
) -> None:
    """Put one question to a store as each kind of model sees it."""
    vector, pieces = made
    queries = {
        "people" if split == "people" else "pieces": query_of(one.text, vector, pieces=pieces),
    }
    if split != "people":
        queries |= {"meaning": query_of(one.text, vector), "words": query_of(one.text)}
    with partition.lock, np.errstate(invalid="ignore"):
        for kind, query in queries.items():
            if kind not in learned:
                continue
            channels = Channels(query, [Candidates.of(partition)], FLOOR)
            order = FUSIONS["blend"].fuse(channels, 10)
            if not len(order.rows) or (kind in CLOSE and channels.looked_at is None):
                continue
            hits = hits_of(order.rows, order.beside)
            into = learned[kind]
            known = features(channels, hits, kind, float(order.scores[0]))
            into.rows.append(
                {
                    name: np.broadcast_to(value, len(hits.rows)).astype(np.float64)
                    for name, value in known.items()
                }
            )
            right = [bool(whose.stood_for(ids[row]) & one.evidence) for row in hits.rows.tolist()]
            into.right.append(np.array(right))
            into.kinds.append(one.kind)
            into.texts.append(one.text)
            into.weights.append(KEYED_WEIGHT if split == "keyed" else 1.0)


def fitted(parts: Sequence[Learned], kind: str) -> tuple[Floats, Floats]:
    """The weights of both models."""
    rows = [each for part in parts for each in part.rows]
    right = [each for part in parts for each in part.right]
    kinds = [each for part in parts for each in part.kinds]
    weights = [each for part in parts for each in part.weights]
    firsts = np.array([[row[name][0] for name in ANSWERED_BY[kind]] for row in rows])
    own = np.array([each in ANSWERED for each in kinds])
    worth = WEIGHTS_AMONG_PEOPLE if kind == "people" else WEIGHTS
    counted = np.array([weight * worth[each] for each, weight in zip(kinds, weights, strict=True)])
    answered = logistic(firsts, own, counted)
    mine = [number for number, is_own in enumerate(own) if is_own]
    table = np.concatenate(
        [np.column_stack([rows[number][name] for name in RIGHT_BY[kind]]) for number in mine]
    )
    labels = np.concatenate([right[number] for number in mine])
    shares = np.concatenate([np.full(len(right[number]), weights[number]) for number in mine])
    return answered, logistic(table, labels, shares)


def idle(parts: Sequence[Learned], vectors: dict[str, NDArray[np.float32]]) -> Floats:
    """The weights of what asks memory for nothing, by the question's vector; puts it among the features.

    Each question that is learned from is scored by what was learned from the others.
    """
    kinds = {
        text: kind for part in parts for text, kind in zip(part.texts, part.kinds, strict=True)
    } | dict.fromkeys(written_lines("service"), "service")
    texts = sorted(kinds)
    table = VECTOR_SCALE * np.array([vectors[text] for text in texts], np.float64)
    labels = np.array([kinds[text] in IDLE for text in texts])
    asking = 2 * labels.sum() / (~labels).sum()
    weights = np.where(labels, 1.0, asking)
    folds = np.array([crc32(text.encode()) % FOLDS for text in texts])
    known: dict[str, float] = {}
    for fold in range(FOLDS):
        here = folds == fold
        found = logistic(table[~here], labels[~here], weights[~here], penalty=IDLE_PENALTY, scale=False)
        scores = table[here] @ found[:-1] + found[-1]
        known |= dict(
            zip(np.array(texts)[here].tolist(), np.clip(scores + IDLE_FROM, 0, 8).tolist(), strict=True)
        )
    for part in parts:
        for text, row in zip(part.texts, part.rows, strict=True):
            row["idle"] = np.full_like(row["idle"], known[text])
    found = logistic(table, labels, weights, penalty=IDLE_PENALTY, scale=False)
    return np.append(VECTOR_SCALE * found[:-1], found[-1])


def scale_of(parts: Sequence[Learned], kind: str, answered: Floats, right: Floats) -> float:
    """What makes the product of both models as high as hits are right on the average.

    Over own questions and those about others: of the rest nobody asks as many.
    """
    promised = there = 0.0
    for part in parts:
        for row, is_right, asked in zip(part.rows, part.right, part.kinds, strict=True):
            if asked in {"own", "plain", "others", "others' plain"}:
                table = np.column_stack([row[name] for name in RIGHT_BY[kind]])
                likely = sigmoid(np.nan_to_num(table) @ right[:-1] + right[-1])
                first = np.array([row[name][0] for name in ANSWERED_BY[kind]])
                best = likely[row["first"] > 0].max()
                promised += float(
                    (sigmoid(first @ answered[:-1] + answered[-1]) * likely / np.sqrt(best)).sum()
                )
                there += float(is_right.sum())
    return there / promised


def sigmoid(odds: Any) -> Any:
    """The probability of log odds."""
    return 1 / (1 + np.exp(-np.clip(odds, -30, 30)))


def logistic(
    table: Floats,
    labels: NDArray[np.bool_],
    weights: Floats,
    *,
    penalty: float = PENALTY,
    scale: bool = True,
) -> Floats:
    """Weights of the columns as they are, and the constant behind them: Newton's method with a ridge."""
    table = np.nan_to_num(table)
    wide = table.shape[1]
    mean, spread = (
        (table.mean(axis=0), table.std(axis=0) + 1e-6) if scale else (np.zeros(wide), np.ones(wide))
    )
    scaled = np.column_stack([(table - mean) / spread, np.ones(len(table))])
    ridge = np.diag([penalty] * wide + [1e-6])
    found = np.zeros(scaled.shape[1])
    for _ in range(40):
        guessed = sigmoid(scaled @ found)
        slope = scaled.T @ (weights * (guessed - labels)) + ridge @ found
        curve = (scaled * (weights * guessed * (1 - guessed))[:, None]).T @ scaled + ridge
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    by_column = found[:-1] / spread
    return np.append(by_column, found[-1] - by_column @ mean)


def written(
    answered: dict[str, Floats], right: dict[str, Floats], idle_weights: Floats, scale: dict[str, float]
) -> str:
    """The file of weights: a line for each model."""
    models = []
    for name, by_kind in (("answered", answered), ("right", right)):
        lines = [f'    "{k}": [{", ".join(f"{weight:.4f}" for weight in ws)}]' for k, ws in by_kind.items()]
        models.append(f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }")
    models.append(f'  "idle": [{", ".join(f"{weight:.2f}" for weight in idle_weights)}]')
    told = ", ".join(f'"{kind}": {each:.4f}' for kind, each in scale.items())
    models.append(f'  "scale": {{{told}}}')
    return "{\n" + ",\n".join(models) + "\n}\n"


async def vectors_of(texts: Sequence[str], cache: Path) -> dict[str, NDArray[np.float32]]:
    """The vectors of questions, from what the splits left and anew."""
    known = {
        text: vector for split in SPLITS for text, (vector, _) in read_kept(cache / f"{split}.pkl").items()
    }
    new = [text for text in texts if text not in known]
    if new:
        embedder = embedder_from("local")
        await embedder.open()
        known |= dict(zip(new, await embedder.embed(new, "query"), strict=True))
        await embedder.aclose()
    return known


def main() -> None:
    """Learn and write."""
    parser = argparse.ArgumentParser(description="Fit the weights of a hit's relevance.")
    parser.add_argument("--cache", type=Path, required=True, help="where stores and vectors are kept")
    parser.add_argument("--callers", type=int, help="how many training callers; by default all")
    parser.add_argument("--blind", action="store_true", help="fit the models without word pieces too")
    given = parser.parse_args()
    if given.callers is not None and given.callers < 2:
        parser.error("--callers: two at least, for each is asked about the others")
    kinds = KINDS if given.blind else CLOSE
    cache: Path = given.cache
    cache.mkdir(parents=True, exist_ok=True)
    by_split = {split: asyncio.run(learn(split, cache, given.callers, kinds)) for split in SPLITS}
    parts = {
        kind: [by_split[split][kind] for split in (["people"] if kind == "people" else ["train", "keyed"])]
        for kind in kinds
    }
    close = list(chain.from_iterable(parts[kind] for kind in CLOSE))
    idle_weights = idle(close, asyncio.run(vectors_of(written_lines("service"), cache)))
    before = json.loads(TARGET.read_text())
    made = {
        kind: fitted(parts[kind], kind)
        if kind in kinds
        else (np.array(before["answered"][kind]), np.array(before["right"][kind]))
        for kind in KINDS
    }
    answered, right = ({kind: both[each] for kind, both in made.items()} for each in (0, 1))
    scale = {kind: scale_of(parts[kind], kind, answered[kind], right[kind]) for kind in CLOSE}
    TARGET.write_text(written(answered, right, idle_weights, scale))


if __name__ == "__main__":
    main()
