"""How likely a hit answers: from 0 to 1, comparable between questions, scopes, stores and embedders.

The product of two small logistic models: whether memory holds an answer at all, from the question and the
best candidates, and whether it is this hit, if there is one. There are four pairs of them: with word pieces,
for calls and for conversations between people; with vectors alone; and with words alone. In the first two the
second model is damped by the square root of its value for the first hit, because both use how similar that
is. No feature depends on the size of a store, except one that states it, and cosines are measured relative to
unrelated texts.

`scripts/fit_relevance.py` makes the weights in `relevance.json`; docs/relevance.md says what they are worth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Flag, distinct
from echoic.ranking import kernel
from echoic.ranking.bm25 import find
from echoic.ranking.channels import Channels, LookedAt, joined
from echoic.ranking.layout import REACH, Candidates, Floats
from echoic.ranking.query import Query
from echoic.text import Word, content_words, word_of

Rows = NDArray[np.intp]
Features = Mapping[str, Floats | float]
"""Features by name, one for each row, or one of the question for all of them."""

SILENCE, SILENCE_AMONG_PEOPLE = 0.035, 0.2
"""If no hit reaches this, nothing is known: in calls, and in conversations between people who are called by
their names. Either loses about a point of R@10, of callers who ask plainly and of LoCoMo's development half.
docs/relevance.md has the curves."""
_FEW_ROWS, _SILENCE_OF_FEW, _MANY_ROWS = 32, 0.01, 384
"""Between people the floor rises from `_SILENCE_OF_FEW` to `SILENCE_AMONG_PEOPLE` between these numbers of
rows: the best of few wrong rows has a lower relevance than the best of many. Chosen on the corpus's training
callers told as people, sessions of LoCoMo's development half, and the development stores of
benchmarks/small_stores.
"""
NAMED, TIMED = 0.9, 0.9
"""The relevance of a value under exactly the key asked for, and of what was said in a time that is all the
question asks for."""
WORD_FOR_WORD = 0.3
"""The least relevance of a row with every word of a query that only consists of search words, such as a name.
"""
ECHO = 0.02
"""Factor for a question that asks the same: it is no answer."""

CHATTER = frozenset(
    """
    absolutely ah aha alright amazing anyhow anyway awesome blah bless bother brilliant bye byebye cheer
    cheers congratulations cool correct crikey damn dear definitely dokey exactly excellent excuse fab
    fantastic farewell fine funny glad god golly good goodbye goodness gosh gotcha gracious great ha haha
    hang hear heard heaven hello hey hi hiya hm hmm hold hooray huh hurrah hurray hurry indeed joke kidding
    la listen listening lol lovely luck mate maybe mean mhm mind minute mm mmm moment nah never nevermind
    nice noted obviously oi okey oops ouch pardon perfect perhaps ping please possibly probably proceed
    ready repeat right righto say sec second sense seriously shh shush sir sorry speak speaking splendid
    stuff super surely swell ta talk talking terrific test testing thank thanks tick tra ugh uhhuh
    understood voila wait welcome well whatever whoa whoops wonderful worry wow yay yeah yeh yep yikes yo
    yup
    """.split()
)
"""Words that hold a conversation together and have no topic."""
_CHATTER = frozenset(word_of(word).stem for word in CHATTER)
PHATIC = CHATTER | frozenset(
    """
    afternoon again bored cancel carry christmas continue course day echo else evening faster happy human
    interesting later life loud louder machine merry morning new night noise nothing quick quickly robot
    slower sound sounds true weird year
    """.split()
)
"""With these added, words that have a topic in other company; a question of only these has none."""
_PHATIC = frozenset(word_of(word).stem for word in PHATIC)
_PERSONAL = frozenset(
    """
    i me my mine myself i'm i've i'd i'll im ive we us our ours we're we've we'd we'll you your yours you're
    you've you'd you'll he him his she her hers they them their theirs he's she's they're they've they'd he'd
    she'd
    """.split()
)

_SELF = frozenset("i me my mine i'm".split())
_WHAT = frozenset((word,) for word in "who what where when which how whose what's where's who's".split())

_OFFSETS = np.arange(-REACH, REACH + 1)
_RARE = 0.01
"""The largest share of rows that say a rare word."""
_SAME = 0.9
"""Cosine from which a row may repeat the question."""
_STOP_SHARE = 0.1
"""The weight of a stop word such as "what", relative to 1 for a content word."""
_MOST_ROWS = 500
"""Larger stores were not in the training data, and count as this large."""
_SAMPLE = 64
_PRIOR_MEAN, _PRIOR_SPREAD, _PRIOR = 0.10, 0.12, 16
"""Cosines between unrelated texts (all-MiniLM-L6-v2), and the number of rows this prior counts for."""
_KEY = "ranking.relevance"
_UNKNOWN = np.float32(-np.inf)

KINDS = ("people", "pieces", "meaning", "words")
OF_QUERY = ("none", "chatter", "impersonal", "length", "size")
ANSWERED_BY: Mapping[str, Sequence[str]] = {
    "people": ("length", "best_like", "best_around", "best_score", "idle"),
    "pieces": (*OF_QUERY, "best_like", "best_cosine", "best_around", "first_key", "first_memory", "idle"),
    "meaning": (
        *(*OF_QUERY, "unsaid", "first_cosine", "first_around", "first_said", "first_window"),
        *("first_key", "first_memory"),
    ),
    "words": (*OF_QUERY, "unsaid", "first_said", "first_window", "first_near", "first_key", "first_memory"),
}
"""The features of whether there is an answer, by kind of model."""
CLOSE = ("people", "pieces")
"""The kinds that use late interaction."""
_OF_ROW = ("asking", "agent", "memory", "key", "date", "fullness", "place", "first", "size", "few", "far")
RIGHT_BY: Mapping[str, Sequence[str]] = {
    "people": (*_OF_ROW, "own_like", "like", "behind", "around"),
    "pieces": (*_OF_ROW, "own_like", "like", "behind", "around"),
    "meaning": (*_OF_ROW, "cosine", "around", "said", "window", "near", "behind"),
    "words": (*_OF_ROW, "said", "window", "near", "behind"),
}
"""The features of whether a hit is the answer, by kind of model."""


_FITTED = json.loads(Path(__file__).with_name("relevance.json").read_text())
WEIGHTS: Mapping[str, Mapping[str, Floats]] = {
    name: {kind: np.array(weights, np.float32) for kind, weights in _FITTED[name].items()}
    for name in ("answered", "right")
}
"""The weights of both models ("answered", "right") by kind, in the order of features, then the constant."""
_IDLE = np.array(_FITTED["idle"], np.float32)
"""Weights of a question's vector (all-MiniLM-L6-v2) for questions that ask memory for nothing, then the
constant."""
IDLE_FROM, _MOST_IDLE = 2.0, 8.0
"""Log odds below which a question counts as ordinary, and their upper limit."""
_SCALE: Mapping[str, float] = _FITTED["scale"]
"""By kind, a factor that calibrates the product of both models to the average precision of hits."""
_LEAST_RIGHT, _MOST_LIKELY = 1e-3, 0.99


class Hits(NamedTuple):
    """Rows whose relevance is wanted."""

    rows: Rows
    """Numbered over all partitions; those that share a hit's place follow it."""
    places: Rows
    """The hit that each row belongs to."""


def hits_of(rows: Rows, beside: Sequence[Sequence[int]]) -> Hits:
    """The rows of an order, each followed by those that share its place."""
    if not any(beside):
        return Hits(rows, np.arange(len(rows)))
    more = [row for others in beside for row in others]
    shared = [place for place, others in enumerate(beside) for _ in others]
    return Hits(np.array([*rows.tolist(), *more], np.intp), np.array([*range(len(rows)), *shared], np.intp))


TURN_ANSWERS = 0.5
"""The share of a turn's relevance below which the memories learned from it are of another part of the turn.
Chosen on whole calls: where they do hold the answer, the turn says it as well."""


def relevance(
    channels: Channels, rows: Rows, beside: Sequence[Sequence[int]], *, semantic: bool, best_score: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """[hits] How likely each answers, and whether it is its turn that does, by other words than those that
    were learned from it: `TURN_ANSWERS`.

    `rows` are those of the hits, best first, numbered over all partitions; `beside` has, by hit, the other
    rows that share its place. If vectors do not represent meaning (`semantic`), words alone count.
    `best_score` is that of the first hit in `blend`.
    """
    if not len(rows):
        return np.zeros(0, np.float32), np.zeros(0, np.bool_)
    hits = hits_of(rows, beside)
    kind = kind_of(channels, semantic=semantic)
    compiled = (
        None if kernel.compiled is None or kind not in CLOSE else _compiled(channels, hits, kind, best_score)
    )
    found, asks = compiled or (_likely(channels, hits, kind, best_score), True)
    found = _exceptions(channels, hits.rows, found, closely=kind in CLOSE, asks=asks)
    shared = np.zeros(len(rows), np.bool_)
    if len(hits.rows) == len(rows):
        return found.astype(np.float32, copy=False), shared
    best = np.zeros((2, len(rows)), np.float32)
    memories = _joined(channels, hits.rows, [place.layout.memories for place in channels.places])
    np.maximum.at(best, (memories.astype(np.intp), hits.places), found.astype(np.float32))
    shared[hits.places[len(rows) :]] = True
    return best.max(axis=0), shared & (best[1] < TURN_ANSWERS * best[0])


def _likely(channels: Channels, hits: Hits, kind: str, best_score: float) -> Floats:
    """[hits] How likely each row answers, without the exceptions."""
    known = features(channels, hits, kind, best_score)
    found = _modelled(kind, known, len(hits.rows))
    # rows so new that they have no vector yet
    blind = np.isnan(known["like"] if kind in CLOSE else channels["vector_own"][hits.rows])
    if kind != "words" and blind.any():
        by_words = _modelled("words", features(channels, hits, "words", best_score), len(hits.rows))
        found = np.where(blind, by_words, found)
    return found


_KNOWN_THERE: Mapping[str, int] = {
    name: number
    for number, name in enumerate(("best_like", "best_around", "best_cosine", "first_key", "first_memory"))
}
"""Features of the question that the kernel finds, by their numbers there."""


def _compiled(channels: Channels, hits: Hits, kind: str, best_score: float) -> tuple[Floats, bool] | None:
    """`_likely` by the kernel, and whether a row asks; None if a row was not compared."""
    looked = channels.looked_at
    assert kernel.compiled is not None
    assert looked is not None
    share = _shares(channels, looked)
    compared = np.empty((2, len(looked.rows)), np.float32)
    np.matmul(joined(looked.closer.own), share, out=compared[0])
    np.matmul(joined(looked.closer.likeness), share, out=compared[1])
    size, few = _size_of(_rows_of(channels.places))
    known = {**of_query(channels.query), "best_score": best_score, "size": size}
    asked = [known[name] if name in known else _KNOWN_THERE[name] for name in ANSWERED_BY[kind]]
    speaker = channels.get("speaker") if channels.called and channels.among_people else None
    layouts = [place.layout for place in channels.places]
    agents, memories = (
        joined([each.of_agent for each in layouts]),
        joined([each.of_memory for each in layouts]),
    )
    scores = [channels.get(name) for name in ("asking", "key", "date", "length")]
    odds = np.empty(len(hits.rows) + 1, np.float32)
    what = looked.rows, *compared, channels["vector_window"], channels["vector_own"], speaker
    of_rows = hits.rows, hits.places, (scores[0], agents, memories, *scores[1:])
    logs = _logs(1 << len(hits.rows).bit_length())
    weights = WEIGHTS["answered"][kind], WEIGHTS["right"][kind]
    blind, asks = kernel.compiled.evidence(*what, *of_rows, logs, size, few, asked, *weights, odds)
    if blind:
        return None
    found = np.empty(len(hits.rows), np.float32)
    kernel.compiled.likely(np.exp(odds), hits.places, _SCALE[kind], _LEAST_RIGHT, _MOST_LIKELY, found)
    return found, asks


@lru_cache(maxsize=16)
def _logs(size: int) -> NDArray[np.float64]:
    """[size] log(1 + place)."""
    logs: NDArray[np.float64] = np.log1p(np.arange(size))
    return logs


@lru_cache(maxsize=64)
def _size_of(rows: int) -> tuple[float, float]:
    """The features `size` and `few` of so many rows."""
    size = float(np.log(min(rows, _MOST_ROWS)))
    return size, float(np.exp(-size))


def kind_of(channels: Channels, *, semantic: bool) -> str:
    """Which of `KINDS` applies."""
    looked = channels.looked_at
    if looked is not None and looked.closer.missing < len(looked.rows):
        return "people" if channels.among_people else "pieces"
    return "meaning" if semantic and channels.query.vector is not None else "words"


def default_floor(channels: Channels, kind: str) -> float:
    """The default relevance below which nothing is known.

    Args:
        channels: of the query.
        kind: of model, see `kind_of`. Without word pieces the number of rows does not lower the floor.
    """
    if not channels.among_people:
        return SILENCE
    if kind not in CLOSE:
        return SILENCE_AMONG_PEOPLE
    return _floor_among_people(_rows_of(channels.places))


@cache  # of few numbers: whole segments
def _floor_among_people(rows: int) -> float:
    sizes, floors = (_FEW_ROWS, _MANY_ROWS), (_SILENCE_OF_FEW, SILENCE_AMONG_PEOPLE)
    return round(math.exp(np.interp(math.log(rows), np.log(sizes), np.log(floors))), 3)


def features(channels: Channels, hits: Hits, kind: str, best_score: float) -> dict[str, Any]:
    """The features of the models of this kind and of the exceptions; see `Features`."""
    rows = hits.rows
    size, few = _size_of(_rows_of(channels.places))
    place = np.log1p(hits.places)
    found: dict[str, Any] = {
        **of_query(channels.query),
        "best_score": best_score,
        "size": size,
        "few": few,
        "place": place,
        "first": hits.places == 0,
        "far": place * size,
        **_of_rows(channels, rows),
    }
    if kind in CLOSE:
        assert channels.looked_at is not None
        found |= _close(channels, channels.looked_at, rows)
    else:
        found |= _said(channels, rows) | (_meant(channels, rows) if kind == "meaning" else {})
        likest = found["cosine" if kind == "meaning" else "window"]
        found["behind"] = likest - likest[0]
    for name in ("key", "memory", "said", "window", "near", "cosine", "around"):
        if name in found:
            found[f"first_{name}"] = float(found[name][0])
    return found


def _rows_of(places: Sequence[Candidates]) -> int:
    """The number of eligible rows in full segments, so that a single row changes nothing."""
    rows = sum(place.eligible.count for place in places)
    return SEGMENT_ROWS * max(1, -(-rows // SEGMENT_ROWS))


def of_query(query: Query) -> dict[str, float]:
    """Features of the question itself: whether stored data could answer it."""
    meaty = [word for word in query.words if word.stem not in _CHATTER]
    named = bool(query.names - set(query.folded[:1]))
    return {
        "none": float(not meaty),
        "chatter": 1 - len(meaty) / len(query.words) if query.words else 1.0,
        "impersonal": float(not named and _PERSONAL.isdisjoint(query.folded)),
        "length": float(np.log1p(len(query.folded))),
        "idle": _idle(query.vector) if query.shipped else 0.0,
    }


def _idle(vector: Floats | None) -> float:
    """Log odds that a question asks memory for nothing, at least 0; 0 for most questions."""
    if vector is None or len(vector) != len(_IDLE) - 1:
        return 0.0
    return min(max(float(vector @ _IDLE[:-1] + _IDLE[-1] + IDLE_FROM), 0.0), _MOST_IDLE)


def _exceptions(channels: Channels, rows: Rows, found: Floats, *, closely: bool, asks: bool) -> Floats:
    """`found`, corrected where no model is needed. `asks`: whether any of the rows may ask something."""
    query, key, asking = channels.query, channels.get("key"), np.zeros(len(rows), np.bool_)
    if all(word.stem in _PHATIC for word in query.words) and not _asks_of_self(query):
        found = np.zeros_like(found)  # a greeting or a backchannel
    if key is not None:
        found = np.where(key[rows] >= 1, np.maximum(found, NAMED), found)
    is_bare = len(query.words) == len(query.folded)
    if asks and "asking" in channels:
        asking = channels["asking"][rows] > 0
        if closely and np.count_nonzero(asking):  # repeated questions have similar vectors: check only those
            asking &= channels["vector_own"][rows] >= _SAME
    if not (is_bare or np.count_nonzero(asking)):
        return found
    says_all = _said(channels, rows, beside=False)["said"] >= 1
    if is_bare and _is_rare(channels):
        found = np.where(says_all & ~asking, np.maximum(found, WORD_FOR_WORD), found)
    lengths = _joined(channels, rows, [place.layout.row_lengths for place in channels.places])
    return np.where(asking & says_all & (lengths <= len(query.words) + 1), ECHO * found, found)


def is_phatic(text: str) -> bool:
    """Whether a text only holds a conversation together: a greeting, a backchannel."""
    return all(word.stem in _PHATIC for word in content_words(text))


def _is_rare(channels: Channels) -> bool:
    """Whether few rows say some word of the question, so that the question means those."""
    rows = channels.rows
    worth = [channels.words.worth.get(word.term, 0.0) for word in channels.query.words]
    fewest = min(((rows + 1) / np.exp(each) - 0.5 for each in worth), default=rows)  # as BM25 counts them
    return bool(fewest <= max(1.5, _RARE * rows))


def _asks_of_self(query: Query) -> bool:
    """Whether it is a question such as "who am I", without a word to look for."""
    return query.folded[:1] in _WHAT and not _SELF.isdisjoint(query.folded)


def _of_rows(channels: Channels, rows: Rows) -> dict[str, Floats]:
    """Features of a row whatever is asked, and of names and dates in the question."""
    found: dict[str, Floats] = {}
    for name, channel in (("key", "key"), ("date", "date"), ("asking", "asking"), ("fullness", "length")):
        scores = channels.get(channel)
        found[name] = np.zeros(len(rows), np.float32) if scores is None else scores[rows]
    found["agent"] = _joined(channels, rows, [place.layout.of_agent for place in channels.places])
    found["memory"] = _joined(channels, rows, [place.layout.of_memory for place in channels.places])
    return found


def _said(channels: Channels, rows: Rows, *, beside: bool = True) -> dict[str, Any]:
    """The share of the question's words, weighted by rarity, that each row says itself, and with its
    neighbours.

    Without `beside`, neighbours and near words are left out.
    """
    nothing = np.zeros(len(rows), np.float32)
    found: dict[str, Any] = {"said": nothing, "window": nothing, "near": nothing, "unsaid": 0.0}
    asked: dict[int, Word] = {}
    for word in channels.query.words:
        asked.setdefault(word.term, word)
    meaty = np.array([word.stem not in _CHATTER for word in asked.values()], np.float32)
    if not meaty.any():
        return found
    worth = channels.words.worth
    # an unsaid word has the weight of a word in one row of a store of usual size
    share = meaty * np.array([min(worth.get(term, 5.0), 5.0) + 1 for term in asked], np.float32)
    share /= share.sum()
    own, window = _saying(channels, rows, asked, beside=beside)
    found["said"], found["window"] = np.round(own @ share, 5), np.round(window @ share, 5)
    found["unsaid"] = sum(each for term, each in zip(asked, share.tolist(), strict=True) if term not in worth)
    if beside and channels.near_words is not None:
        near = _joined(channels, rows, channels.near_words.own)
        found["near"] = np.minimum(near / np.float32(5), np.float32(1))
    return found


def _saying(channels: Channels, rows: Rows, terms: Collection[int], *, beside: bool) -> tuple[Floats, Floats]:
    """[rows, terms] 1 where a row says a term, and where it or a neighbour does."""
    own, window = np.zeros((2, len(rows), len(terms)), np.float32)
    where = np.searchsorted(channels.starts, rows, "right") - 1
    asked = np.fromiter(terms, np.uint32, len(terms))
    for number, place in enumerate(channels.places):
        here = np.flatnonzero(where == number)
        if not len(here):
            continue
        said = find(place, asked)
        local = rows[here] - channels.starts[number]
        near = _neighbours(place, local) if beside else local[:, None]
        wanted = distinct(near)  # a gap (-1) says nothing
        at = np.minimum(np.searchsorted(wanted, said.row), len(wanted) - 1)
        kept = (wanted[at] == said.row) & (said.count > 0)
        table = np.zeros((len(wanted), len(terms)), np.float32)
        table[at[kept], said.which[kept]] = 1
        own[here] = table[np.searchsorted(wanted, local)]
        window[here] = table[np.searchsorted(wanted, near)].max(axis=1)
    return own, window


def _neighbours(place: Candidates, rows: Rows) -> NDArray[np.int32]:
    """[rows, 2 REACH + 1] Each row with its neighbours in the session, or gaps; a memory alone."""
    layout = place.layout
    slots = layout.slot_of[rows]
    near: NDArray[np.int32] = layout.row_at[np.clip(slots[:, None] + _OFFSETS, 0, layout.width - 1)]
    alone = slots >= layout.head
    near[alone] = -1
    near[:, REACH] = rows
    return near


def _close(channels: Channels, looked: LookedAt, rows: Rows) -> dict[str, Any]:
    """The similarity of the question's topic words to a row, and to the best of all candidates."""
    share, count = _shares(channels, looked), len(looked.rows)
    known = np.full((4, count + 1), np.nan, np.float32)  # the last column is of rows that were not compared
    own, like, around, cosine = known[:, :count]
    np.matmul(np.concatenate(looked.closer.own), share, out=own)
    np.matmul(np.concatenate(looked.closer.likeness), share, out=like)
    around[:] = channels["vector_window"][looked.rows]
    cosine[:] = channels["vector_own"][looked.rows]
    _, best_like, best_around, best_cosine = np.fmax.reduce(known, axis=1, initial=-1.0).tolist()
    at = looked.rows.searchsorted(rows)
    at[looked.rows[np.minimum(at, count - 1)] != rows] = count
    own_of_rows, like_of_rows, around_rows, _ = known[:, at]
    return {
        "best_like": best_like + _misattributed(channels, looked, own),
        "behind": like_of_rows - best_like,
        "best_cosine": best_cosine,
        "best_around": best_around,
        "own_like": own_of_rows,
        "like": like_of_rows,
        "around": _known(around_rows),
    }


def _shares(channels: Channels, looked: LookedAt) -> Floats:
    """[weighted pieces] The weight of each piece; all topic words count the same."""
    spelled, called = channels.spelled, channels.called
    counted = [spelled[piece] for piece in looked.closer.pieces.tolist()]
    worth = {word: 1.0 if any(map(called.isdisjoint, _meaty(word))) else _STOP_SHARE for word in set(counted)}
    share = np.array([worth[word] / counted.count(word) for word in counted], np.float32)
    share /= np.add.reduce(share)
    return share


@lru_cache(maxsize=4096)  # cached: most words of questions are common
def _meaty(word: str) -> tuple[tuple[str, str], ...]:
    """The folded topic words in `word`, as they are and without "'s"."""
    words = (each.text for each in content_words(word) if each.stem not in _CHATTER)
    return tuple((text, text.removesuffix("'s")) for text in words)


def _misattributed(channels: Channels, looked: LookedAt, own: Floats) -> float:
    """How much less similar to the question the named person's words are than others'; at most 0.

    Only between people who are all called by name: a caller's memory mentions many who never speak
    themselves.
    """
    speaker = channels.get("speaker")
    if speaker is None or not channels.called or not channels.among_people:
        return 0.0
    theirs = speaker[looked.rows] > 0
    mine, others = (np.fmax.reduce(own[whose], initial=_UNKNOWN) for whose in (theirs, ~theirs))
    return min(0.0, float(mine - others)) if min(mine, others) > _UNKNOWN else 0.0


def _meant(channels: Channels, rows: Rows) -> dict[str, Floats]:
    """Cosines relative to unrelated texts of this embedder; 0 for a row without a vector."""
    mean, spread = background(channels.places)
    scale = np.float32(1 / spread)
    return {
        "cosine": _known((channels["vector_own"][rows] - np.float32(mean)) * scale),
        "around": _known((channels["vector_window"][rows] - np.float32(mean)) * scale),
    }


def background(places: Sequence[Candidates]) -> tuple[float, float]:
    """Mean and spread of cosines between unrelated texts.

    Estimated from a sample of the rows, and from a prior if there are few. Kept until there are twice as many
    rows.
    """
    largest = max((place.partition for place in places), key=lambda partition: partition.size)
    rows = np.flatnonzero(largest.rows["flags"] & int(Flag.EMBEDDED))
    known = largest.scratch.get(_KEY)
    number = len(rows).bit_length()
    if not isinstance(known, ScoreBackground) or known.number != number:
        known = largest.scratch[_KEY] = ScoreBackground.of(largest.vectors, rows, number)
    return known.mean, known.spread


class ScoreBackground(NamedTuple):
    """The cached values of `background`."""

    number: int
    mean: float
    spread: float

    @classmethod
    def of(cls, vectors: Floats, rows: Rows, number: int) -> ScoreBackground:
        """Measure the background on a sample of `rows`."""
        chosen = rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp)] if len(rows) > _SAMPLE else rows
        count = len(chosen)
        mean, square = _PRIOR_MEAN, _PRIOR_SPREAD**2
        if count > 1:
            pairs = (vectors[chosen] @ vectors[chosen].T)[np.triu_indices(count, 1)]
            weight = count / (count + _PRIOR)
            low = float(np.median(pairs))
            # from the lower half, since some of the upper half are related
            wide = 1.4826 * float(np.median(low - pairs[pairs <= low]))
            mean += weight * (low - mean)
            square += weight * (wide**2 - square)
        return cls(number, mean, float(np.sqrt(max(square, 1e-4))))

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return 24


def _known(scores: Floats) -> Floats:
    """`scores`, 0 where they are not known."""
    known: Floats = np.where(np.isnan(scores), np.float32(0), scores)
    return known


def _joined(channels: Channels, rows: Rows, by_place: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """[rows] Values at the given rows, without concatenating the partitions."""
    if len(by_place) == 1:
        return by_place[0][rows]
    where = np.searchsorted(channels.starts, rows, "right") - 1
    found = np.empty(len(rows), by_place[0].dtype)
    for number, values in enumerate(by_place):
        here = where == number
        found[here] = values[rows[here] - channels.starts[number]]
    return found


def _modelled(kind: str, known: Features, rows: int) -> Floats:
    answered = _logistic(known, ANSWERED_BY[kind], WEIGHTS["answered"][kind], 1)
    right = _logistic(known, RIGHT_BY[kind], WEIGHTS["right"][kind], rows)
    if kind in CLOSE:
        right *= np.float32(damping(kind, right, np.asarray(known["first"], np.bool_)))
    likely: Floats = np.minimum(answered * right, np.float32(_MOST_LIKELY))
    return likely


def damping(kind: str, right: Floats, first: NDArray[np.bool_]) -> float:
    """The factor of `right`: the other model already uses how similar the best hit is."""
    best = float(np.fmax.reduce(right[first], initial=_LEAST_RIGHT))
    return _SCALE[kind] / math.sqrt(best)


def _logistic(known: Features, names: Sequence[str], weights: Floats, rows: int) -> Floats:
    """[rows] The weights are in the order of the names, followed by the constant."""
    table = np.empty((len(names), rows), np.float32)
    for number, name in enumerate(names):
        table[number] = known[name]
    # neither by BLAS nor by `reduce`, whose order of adding depends on the number of hits
    total = np.add.accumulate(weights[:-1, None] * table)[-1] + weights[-1]
    likely: Floats = 1 / (1 + np.exp(-np.minimum(np.maximum(total, -30), 30)))
    return likely
