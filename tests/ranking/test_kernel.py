"""The compiled kernel against numpy: the same order, and scores within TOLERANCE, whatever instructions it uses."""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.partition import (
    AXES,
    MEMORY,
    SEGMENT_ROWS,
    TURN,
    Entry,
    Flag,
    Partition,
    Pieces,
    Segment,
    number_of,
)
from echoic.ranking import FUSIONS, channels, fusion, kernel, query_of, rank, relevance
from echoic.ranking.bm25 import Postings, word_scores
from echoic.ranking.channels import Channels
from echoic.ranking.fusion import BROAD, CLOSE, blend, parts_of, scaled, top
from echoic.ranking.fusion import _weighed as weighed
from echoic.ranking.indexing import key_facet, source_facet, speaker_facet
from echoic.ranking.late_interaction import late
from echoic.ranking.layout import Candidates
from echoic.ranking.rank import FLOOR
from echoic.ranking.relevance import kind_of
from echoic.text import content_words, word_of
from scale import many

with_kernel = pytest.mark.skipif(
    kernel.compiled is None,
    reason="echoic-kernel is not installed: there is no C compiler here, or it is turned off",
)
KERNEL = kernel.compiled
TOLERANCE = 1e-3
DIMENSIONS = 40
WORDS = "tea coffee dog rex name lisbon porto sister caitlin kaitlyn monday ticket garden allergic peanuts train".split()
QUESTIONS = [
    "What's my dog's name?",
    "When did Caitlin go to Porto?",
    "who is Katelin",
    "alergic peanuts garden",
    "tea coffee monday ticket train sister",
    "how many tickets did you book for lisbon",
]
seeds = st.integers(0, 2**32 - 1)


@contextmanager
def ranking_by(module):
    before, kernel.compiled = kernel.compiled, module
    try:
        yield
    finally:
        kernel.compiled = before


@contextmanager
def using(instructions):
    before = KERNEL.use(instructions)
    try:
        with ranking_by(KERNEL):
            yield
    finally:
        KERNEL.use(before)


def unit(rng, *shape):
    drawn = rng.standard_normal(shape).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def entry(rng, row):
    text = " ".join(rng.choice(WORDS, int(rng.integers(1, 8))))
    words = Entry.counted(content_words(text))
    flags = Flag.NONE
    for flag, share in ((Flag.ASKING, 0.2), (Flag.QUESTION, 0.2), (Flag.TIME, 0.2), (Flag.NUMBER, 0.2)):
        flags |= flag if rng.random() < share else Flag.NONE
    said_at = int(rng.integers(0, 10**9))
    if rng.random() < 0.3:
        flags |= Flag.PAST if rng.random() < 0.2 else Flag.NONE
        if rng.random() < 0.5:
            flags |= Flag.KEYED
            words = (*words, (key_facet([word_of("dog"), word_of("name")]), 0))
        words = (*words, (source_facet(f"turn {int(rng.integers(60))}"), 0))
        return Entry(
            text=text, kind=MEMORY, words=words, characters=len(text), said_at_ms=said_at, flags=flags
        )
    speaker = str(rng.choice(["user", "agent", "caitlin"]))
    if speaker == "caitlin":
        words = (*words, (speaker_facet(speaker), 0))
    words = (*words, (source_facet(f"turn {row}"), 0))
    flags |= Flag.UNHEARD if rng.random() < 0.05 else Flag.NONE
    return Entry(
        text=text,
        kind=TURN,
        words=words,
        characters=len(text),
        session=int(rng.integers(1, 4)),
        speaker=number_of(speaker),
        said_at_ms=said_at,
        flags=flags,
    )


def partition(rng, rows):
    """Rows of all kinds, with gaps, some without a vector or word pieces; a part of them patched again."""
    made, segments, all_embedded = Partition(DIMENSIONS), {}, rng.random() < 0.5

    def put(row):
        segment = segments.setdefault(row // SEGMENT_ROWS, Segment())
        segment.put(row % SEGMENT_ROWS, entry(rng, row))
        if all_embedded or rng.random() < 0.8:
            packed = Pieces(
                unit(rng, int(rng.integers(1, 30)), AXES), np.zeros((0, 0), np.float32), ()
            ).packed()
            has_pieces = all_embedded or rng.random() < 0.8
            segment.attach(row % SEGMENT_ROWS, unit(rng, DIMENSIONS), packed if has_pieces else None)

    for row in range(rows):
        if rng.random() >= 0.1:
            put(row)
    made.patch(sorted(segments.items()))
    if segments and rng.random() < 0.7:
        Postings.of(made)  # filled before the patch, so that it is looked through as it is
        number = int(rng.choice(list(segments)))
        for slot in rng.integers(0, SEGMENT_ROWS, 4).tolist():
            put(number * SEGMENT_ROWS + slot)
        made.patch([(number, segments[number])])
    return made


def question(rng, text=None):
    text = text or str(rng.choice(QUESTIONS))
    spans = [(at, at + len(word)) for word in text.split() for at in [text.index(word)]]
    spans = spans * int(rng.integers(1, 4))  # up to two blocks of pieces
    pieces = Pieces(unit(rng, len(spans), AXES), unit(rng, len(spans), DIMENSIONS), tuple(sorted(spans)))
    vector = unit(rng, DIMENSIONS) if rng.random() < 0.8 else None
    return query_of(
        text, vector, pieces=pieces if rng.random() < 0.8 else None, include_past=rng.random() < 0.3
    )


def same(by_numpy, found):
    """Whether the same rows stand in the same order, but for those whose scores are within TOLERANCE."""
    worth = {(hit.place, hit.row): hit.score for hit in by_numpy}
    order = [(hit.place, hit.row) for hit in found]
    assert sorted(worth) == sorted(order)
    for hit in found:
        assert hit.score == pytest.approx(worth[hit.place, hit.row], abs=TOLERANCE)
    for first, second in pairwise(order):
        assert worth[first] >= worth[second] - TOLERANCE
    relevance = {(hit.place, hit.row): hit.relevance for hit in by_numpy}
    for hit in found:
        assert hit.relevance == pytest.approx(relevance[hit.place, hit.row], abs=0.02)


def compare(rng, module, name="blend"):
    places = [partition(rng, int(rng.integers(1, 32))) for _ in range(int(rng.integers(1, 3)))]
    how = {"limit": 100, "fusion": name, "without": {1} if rng.random() < 0.2 else ()}
    query = question(rng)
    with ranking_by(None):
        expected = rank(query, places, **how)
    with ranking_by(module):
        same(expected, rank(query, places, **how))


@with_kernel
@settings(max_examples=many(300, least=40), deadline=None)
@given(seeds, st.sampled_from(sorted(FUSIONS)), st.integers(0, 3))
def test_the_kernel_ranks_as_numpy_does(seed, name, which):
    known = KERNEL.instructions()
    with using(known[which % len(known)]):
        compare(np.random.default_rng(seed), KERNEL, name)


class Faulty:
    """The kernel, with one function that gives something slightly wrong."""

    def __init__(self, name, fault):
        self._name, self._fault = name, fault

    def __getattr__(self, name):
        function = getattr(KERNEL, name)
        if name != self._name:
            return function

        def wrong(*given):
            return self._fault(given, function(*given))

        return wrong


def bend(place, by):
    def fault(given, result):
        given[place][:] = by(given[place])
        return result

    return fault


FAULTS = {
    "likeness": bend(-1, lambda like: like * np.float32(0.98)),
    "words": bend(7, lambda window: np.roll(window, 1)),
    "fused": lambda _given, found: found and (found[0], bytes(len(found[1])), *found[2:]),
    "find": lambda _given, found: (found[0], bytes(len(found[1]))),
    "channels": bend(-2, lambda meaning: -meaning),
    "answers": bend(-1, lambda answer: answer + np.float32(0.1)),
    "parts": bend(-3, lambda meaning: np.roll(meaning, 1)),
    "scaled": bend(-1, lambda moved: moved + np.float32(0.01) * np.arange(len(moved), dtype=np.float32)),
    "weighed": bend(-1, lambda total: total * np.float32(1.01)),
    "evidence": bend(-1, lambda odds: odds + 1),
    "likely": bend(-1, lambda likely: likely * np.float32(0.5)),
    "top": lambda _given, kept: kept[8:] + kept[:8],
}


@with_kernel
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_any_function_is_noticed(name):
    if name == "likeness" and KERNEL.instructions() == ["plain"]:
        pytest.skip("numpy multiplies where the processor has no instructions for it")
    rng = np.random.default_rng(7)

    def runs():
        for _ in range(40):
            compare(rng, Faulty(name, FAULTS[name]))

    with pytest.raises(AssertionError):
        runs()


@with_kernel
def test_a_large_scope_is_ranked_as_if_every_vector_were_read_whole(monkeypatch):
    monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
    monkeypatch.setattr(channels, "SPREAD_QUERIES", 1)
    rng = np.random.default_rng(5)
    made = partition(rng, 1200)
    for text in QUESTIONS:
        query = question(np.random.default_rng(1), text)
        with ranking_by(KERNEL):
            found = rank(query, [made])
        monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 10**9)
        with ranking_by(None):
            expected = rank(query, [made])
        monkeypatch.setattr(channels, "LEAST_COARSE_ROWS", 1000)
        same(expected, found)
    with ranking_by(KERNEL):
        if not kernel.multiplies():
            pytest.skip("numpy multiplies where the processor has no instructions for it")
    assert made.scratch["ranking.coarse"].halved


# ---- each function by itself


def by_each(call):
    """What `call` gives with numpy, and with each set of instructions."""
    with ranking_by(None):
        yield call()
    for name in KERNEL.instructions():
        with using(name):
            yield call()


@with_kernel
@settings(max_examples=many(100, least=15), deadline=None)
@given(seeds, st.integers(1, 40))
def test_late_interaction_is_numpys_and_the_same_bits_on_every_processor(seed, count):
    rng = np.random.default_rng(seed)
    place = Candidates.of(partition(rng, 90))
    rows = np.sort(rng.choice(place.partition.size, min(20, place.partition.size), replace=False))
    asked = Pieces(unit(rng, count, AXES), np.zeros((count, 0), np.float32), ((0, 1),) * count)
    weights = rng.random(count).astype(np.float32) * (rng.random(count) < 0.8)
    weights[0] = 1
    expected, *found = by_each(lambda: late(asked, weights, [place], [rows]))
    for closer in found:
        np.testing.assert_allclose(closer.scores, expected.scores, atol=3e-5)
        np.testing.assert_allclose(closer.own[0], expected.own[0], atol=3e-5)
        np.testing.assert_allclose(closer.likeness[0], expected.likeness[0], atol=3e-5)
        np.testing.assert_array_equal(closer.likeness[0], found[0].likeness[0])


@with_kernel
@settings(max_examples=many(200, least=40), deadline=None)
@given(seeds, st.sampled_from([0, 1, 2, 20, 70]), st.integers(1, 3))
def test_words_are_scored_as_numpy_scores_them(seed, rows, count):
    rng = np.random.default_rng(seed)
    partitions = [partition(rng, rows) for _ in range(count)]
    without = {1} if rng.random() < 0.3 else ()
    places = [Candidates.of(p, include_past=rng.random() < 0.5, without=without) for p in partitions]
    query = question(rng)
    (statistics, *expected), *found = by_each(lambda: word_scores(query, places))
    for compiled in found:
        assert compiled.rows == statistics
        text, near, _ = compiled[1:]
        assert text.worth == expected[0].worth
        assert text.unsaid == expected[0].unsaid
        for own, nameless, window, i in zip(text.own, text.nameless, text.window, range(count), strict=True):
            np.testing.assert_array_equal(own, expected[0].own[i])  # to the last bit
            np.testing.assert_array_equal(nameless, expected[0].nameless[i])
            np.testing.assert_allclose(window, expected[0].window[i], rtol=1e-5)
        assert (near is None) == (expected[1] is None)
        for i in range(0 if near is None else count):
            np.testing.assert_allclose(near.own[i], expected[1].own[i], rtol=1e-6)
            np.testing.assert_allclose(near.window[i], expected[1].window[i], rtol=1e-5)


@with_kernel
@settings(max_examples=many(100, least=15), deadline=None)
@given(seeds, st.integers(0, 20), st.sampled_from([1, 7, 31, 32, 33, 64, 384]))
def test_products_of_16_bit_floats_are_the_same_bits_on_every_processor(seed, rows, width):
    rng = np.random.default_rng(seed)
    vectors = (unit(rng, max(rows, 1), width)[:rows] * rng.choice([1e-7, 1e-4, 1, 100])).astype(np.float16)
    asked, found = unit(rng, width), []
    for name in KERNEL.instructions():
        out = np.full(rows, np.nan, np.float32)
        with using(name):
            KERNEL.cosines(vectors, asked, out)
        np.testing.assert_array_equal(out, found[0] if found else out)
        found.append(out)
    np.testing.assert_allclose(found[0], vectors.astype(np.float64) @ asked, rtol=1e-4, atol=1e-6)


@with_kernel
@settings(max_examples=many(200, least=30), deadline=None)
@given(
    st.lists(st.one_of(st.just(float("nan")), st.integers(-3, 3), st.floats(-1, 1, width=32))),
    st.integers(1, 70),
)
def test_the_highest_are_numpys(scores, count):
    scores = np.array(scores, np.float32)
    expected, *found = by_each(lambda: top(scores, count))
    np.testing.assert_array_equal(found[0], expected)


@with_kernel
@settings(max_examples=many(200, least=30), deadline=None)
@given(
    st.lists(st.one_of(st.just(float("nan")), st.floats(-1, 1, width=32)), min_size=1),
    seeds,
    st.sampled_from([0, 0.35]),
)
def test_scores_are_scaled_as_numpy_scales_them(scores, seed, least):
    scores = np.array(scores, np.float32)
    ranged = np.random.default_rng(seed).random(len(scores)) < 0.5
    ranged[0] = True
    for among in (None, ranged):
        with np.errstate(invalid="ignore"):
            expected, *found = by_each(lambda among=among: scaled(scores, least, among))
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)


@with_kernel
@settings(max_examples=many(200, least=40), deadline=None)
@given(seeds, st.sampled_from([0, 1, 2, 20, 70]), st.integers(1, 3))
def test_channels_and_their_weighing_are_numpys(seed, rows, count):
    rng = np.random.default_rng(seed)
    partitions = [partition(rng, rows) for _ in range(count)]
    places = [Candidates.of(p, include_past=rng.random() < 0.5) for p in partitions]
    query, picked = question(rng), rng.integers(0, 1 + sum(p.size for p in partitions), 9)

    def computed():
        with np.errstate(invalid="ignore"):
            made = Channels(query, places, FLOOR)
            parts = parts_of(made, made.sources)
            at = picked[picked < made.starts[-1]]
            return made, made.missed, parts, weighed(parts, BROAD), weighed(parts, CLOSE, at)

    (made, *expected), *found = by_each(computed)
    for compiled, *rest in found:
        assert compiled.keys() == made.keys()
        for name in made:
            np.testing.assert_allclose(compiled[name], made[name], rtol=1e-5, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(rest[0], expected[0])
        assert list(rest[1]) == list(expected[1])
        for name, part in expected[1].items():
            np.testing.assert_allclose(rest[1][name], part, rtol=1e-5, atol=1e-5, err_msg=name)
        for by_kernel, by_numpy in zip(rest[2:], expected[2:], strict=True):
            np.testing.assert_allclose(by_kernel, by_numpy, rtol=1e-5, atol=1e-5)


@with_kernel
@settings(max_examples=many(300, least=60), deadline=None)
@given(seeds, st.sampled_from([1, 2, 20, 70]), st.integers(1, 3), st.sampled_from([1, 5, 100]))
def test_fusion_in_one_call_is_that_of_its_steps(seed, rows, count, limit):
    """To the last digits, and with all that relevance takes of it."""
    rng = np.random.default_rng(seed)
    partitions = [partition(rng, rows) for _ in range(count)]
    without = {1} if rng.random() < 0.3 else ()
    places = [Candidates.of(p, include_past=rng.random() < 0.5, without=without) for p in partitions]
    query = question(rng)

    def computed():
        made = Channels(query, places, FLOOR)
        return blend(made, limit), made

    with ranking_by(KERNEL), np.errstate(invalid="ignore"):
        found, in_one = computed()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fusion, "_compiled", lambda *_: None)
            expected, in_steps = computed()
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.beside == expected.beside
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(in_one.get("late"), in_steps.get("late"))
    if in_steps.looked_at is not None:
        looked, known = in_one.looked_at, in_steps.looked_at
        np.testing.assert_array_equal(looked.rows, known.rows)
        np.testing.assert_array_equal(looked.closer.scores, known.closer.scores)
        assert looked.closer.missing == known.closer.missing
        for each, other in zip(looked.closer[1:3], known.closer[1:3], strict=True):
            np.testing.assert_array_equal(np.concatenate(each), np.concatenate(other))


@with_kernel
@settings(max_examples=many(200, least=30), deadline=None)
@given(
    st.lists(
        st.one_of(st.just(float("nan")), st.floats(-(2.0**100), 2.0**100, width=32), st.integers(-2, 2)),
        max_size=40,
    ),
    seeds,
)
def test_parts_have_the_bits_of_their_steps(scores, seed):
    """Against the functions by which other fusions scale and weigh, whatever the scores are."""
    rng = np.random.default_rng(seed)
    window, meaning, own = (rng.permutation(np.array(scores, np.float32)) for _ in range(3))
    ranged = rng.random(len(scores)) < 0.7 if rng.random() < 0.5 else None
    keyed = (rng.random(len(scores)) < 0.3).astype(np.float32)
    room = floats(4, len(scores))
    with ranking_by(KERNEL), np.errstate(all="ignore"):
        told = KERNEL.parts(window, meaning, own, keyed, ranged, 0.35, *room)
        text, like, mine = scaled(window, 0, ranged), scaled(meaning, 0.35, ranged), scaled(own, 0.35, ranged)
        assert told == (not (~np.isnan(text) & (np.isnan(like) | np.isnan(mine))).any())
        text[keyed > 0] = np.fmax(text, like)[keyed > 0]
        for made, expected in zip(room, (text, like, mine, np.where(keyed > 0, like, 0)), strict=True):
            np.testing.assert_array_equal(made, expected)
        rows, weights = rng.integers(0, max(len(scores), 1), 5 * bool(scores)), (0.45, -0.08, 1e20)
        out, total = floats(len(rows)), floats(len(rows))
        KERNEL.weighed((text, like, mine), weights, rows, out)
        for part, weight in zip((text, like, mine), weights, strict=True):
            total += np.float32(weight) * part[rows]
        np.testing.assert_array_equal(out, total)


@with_kernel
@settings(max_examples=many(300, least=60), deadline=None)
@given(seeds, st.sampled_from([1, 2, 20, 70]), st.integers(1, 3), st.sampled_from([1, 2, 10, 100]))
def test_evidence_has_numpys_bits(seed, rows, count, limit):
    rng = np.random.default_rng(seed)
    partitions = [partition(rng, rows) for _ in range(count)]
    places = [Candidates.of(p, include_past=rng.random() < 0.5) for p in partitions]
    query = question(rng)
    if query.vector is None or query.pieces is None:
        return
    with ranking_by(KERNEL), np.errstate(invalid="ignore"):
        made = Channels(query, places, FLOOR, calls=rng.random() < 0.5)
        made.among_people = made.among_people or rng.random() < 0.5
        order = blend(made, limit)
        kind = kind_of(made, semantic=True)
        if not len(order.rows) or kind not in relevance.CLOSE:
            return
        given = made, relevance.hits_of(order.rows, order.beside), kind, float(order.scores[0])
        expected, known = relevance._likely(*given), relevance.features(*given)
        found = relevance._compiled(*given)
        assert (found is None) == np.isnan(known["like"]).any()
        if found is not None:
            np.testing.assert_array_equal(found[0], expected)
            assert found[1] == (known["asking"] > 0).any()


@with_kernel
def test_a_question_of_which_an_encoder_keeps_no_piece_is_ranked():
    made = partition(np.random.default_rng(4), 40)
    pieces = Pieces(floats(0, AXES), floats(0, DIMENSIONS), ())
    query = query_of("dog tea", unit(np.random.default_rng(1), DIMENSIONS), pieces=pieces)
    expected, *found = by_each(lambda: rank(query, [made], limit=40))
    for hits in found:
        same(expected, hits)


@with_kernel
def test_rows_that_are_equal_have_equal_scores_wherever_they_stand():
    rng = np.random.default_rng(3)
    made, segment = Partition(DIMENSIONS), Segment()
    packed = Pieces(unit(rng, 9, AXES), np.zeros((0, 0), np.float32), ()).packed()
    vector = unit(rng, DIMENSIONS)
    words = Entry.counted(content_words("rex the dog loves tea"))
    for slot in range(SEGMENT_ROWS):
        segment.put(slot, Entry(text="", kind=MEMORY, words=words, characters=20))
        segment.attach(slot, vector, packed)
    made.patch([(0, segment), (1, segment)])
    with ranking_by(KERNEL):
        found = rank(question(np.random.default_rng(1), "dog tea"), [made], limit=64)
    assert [hit.row for hit in found] == list(range(64))
    assert len({hit.score for hit in found}) == 1


# ---- what it is given


def floats(*shape):
    return np.zeros(shape, np.float32)


def longs(*values):
    return np.array(values, np.int64)


def ints(*values):
    return np.array(values, np.int32)


FIRST, NOBODY, NONE, TWO = longs(0), ints(), longs(), longs(4, 5)  # rows 0 and 1 sit in slots 4 and 5 of ten
UNSAID, UNCOUNTED = np.zeros(0, np.uint32), np.zeros(0, np.uint8)
ROW_AT = ints(*[-1] * 4, 0, 1, *[-1] * 4)


def likeness_of(tokens=None, rows=FIRST, slot_of=TWO, row_at=ROW_AT, **given):
    pieces = floats(1, AXES)
    head = given.get("head", 10)
    out = given.get("out", floats(len(rows), 1))
    return (
        {0: bytes(64)} if tokens is None else tokens,
        *(rows, slot_of, row_at, head, np.zeros(2, np.uint8), 1),
        *(given.get("axes", pieces), np.ones(1, np.float32), np.ones(9, np.float32), 0.97, 0.5),
        *(out, floats(len(rows), 1), given.get("scores", floats(len(rows)))),
    )


def words_of(row=(0, 1), starts=(0, 1, 2), slot_of=TWO, row_at=ROW_AT, head=10, fresh=NOBODY, **given):
    row, rows = ints(*row), given.get("rows", 2)
    patched = given.get("stale", np.zeros(0, np.bool_)), fresh, *given.get("late", (UNSAID, UNCOUNTED))
    postings = row, np.arange(len(row), dtype=np.uint32), np.ones(len(row), np.uint8), ints(*starts), *patched
    layout = slot_of, row_at, floats(2), floats(len(row_at))
    place = (
        KERNEL.hold(given.get("segment_rows", 1), *postings),
        KERNEL.hold(head, *layout),
        KERNEL.hold(
            0, given.get("eligible", np.ones(2, np.bool_)), given.get("counted", np.zeros(0, np.bool_))
        ),
    )
    return (
        given.get("places", (place,)),
        given.get("asked", {0: 1, 1: 2}),
        given.get("rarity", np.ones(4, np.float32)),
        np.ones(4, np.float32),
        np.ones(given.get("width", 9), np.float32),
        given.get("names", frozenset({1})),
        *(floats(rows), floats(rows), floats(rows)),
    )


def find_of(starts=(0, 1, 2), stale=None, eligible=None, fresh=NOBODY, bounds=2):
    terms = np.array([1], np.uint32)
    kept = ints(0, 40), np.array([0, 1], np.uint32), np.ones(2, np.uint8), ints(*starts), SEGMENT_ROWS, stale
    patched = fresh, np.zeros(len(fresh), np.uint32), np.zeros(len(fresh), np.uint8)
    return (terms, *kept, *patched, eligible, np.zeros(bounds, np.int64))


def channels_of(
    turns=(0, 1), slots=TWO, head=10, width=10, rows=2, hidden=NONE, blind=NONE, near=None, held=None
):
    at = longs(*turns), slots, np.ones(width, np.float32)
    held = KERNEL.hold(head, TWO, ROW_AT, floats(2), floats(10), *at) if held is None else held
    by_row = floats(2), near, floats(2), floats(2)
    room = floats(rows), floats(2), floats(2), np.zeros(2, np.bool_)
    return (held, *by_row, hidden, blind, 0.1, np.ones(5, np.float32), *room)


def answers_of(asked=(0,), answered=(1,), start=0, size=2):
    at = NONE, NONE, floats(10), longs(*asked), ints(*answered)
    return floats(size), KERNEL.hold(10, TWO, ROW_AT, floats(2), floats(10), *at), start, floats(size)


def evidence_of(looked=(0, 1), rows=(1,), place=(0,), size=2, asked=(0.5, 0, 4), channels=None, **given):
    compared = floats(given.get("compared", len(looked)))
    by_row = floats(size), floats(2), given.get("speaker")
    of_rows = longs(*rows), longs(*place), (None,) * 6 if channels is None else channels
    numbers = np.zeros(given.get("logs", 4)), 1.0, 0.1, list(asked)
    weights = floats(len(asked) + given.get("more", 1)), floats(given.get("right", 16))
    return (
        longs(*looked),
        compared,
        compared,
        *by_row,
        *of_rows,
        *numbers,
        *weights,
        floats(given.get("out", 2)),
    )


def fused_of(size=2, places=None, layout=None, tokens=None, pairs=((0,), (1,)), **given):
    def weights(count=14):
        return np.ones(count, np.float32)

    at = NONE, NONE, floats(10), NONE, ints(), np.zeros(given.get("flags", 2), np.uint8)
    held = KERNEL.hold(given.get("head", 10), given.get("slot_of", TWO), ROW_AT, floats(2), floats(10), *at)
    place = held if layout is None else layout, {0: bytes([1]) * AXES} if tokens is None else tokens
    channels = given.get("channels", (floats(size), floats(2), floats(2), None))
    signals = given.get("signals", (None, None, floats(2), *[None] * 6))
    missed = given.get("missed", np.zeros(2, np.bool_))
    sources = (*map(np.array, pairs), given.get("ranged", np.ones(2, np.bool_))) if pairs else (None,) * 3
    weighed = given.get("weights", (weights(), weights()))
    pieces = given.get(
        "pieces", (np.ones((1, AXES), np.float32), np.ones(1, np.float32), np.ones(9, np.float32))
    )
    how = given.get("how", (0.35, 0.97, 0.5, 1))
    limits = given.get("limit", 10), given.get("candidates", 64), floats(given.get("late", 2))
    return (places or (place,), channels, signals, missed, sources, weighed, pieces, how, *limits)


GIVEN = {
    "fused": fused_of,
    "evidence": evidence_of,
    "words": words_of,
    "channels": channels_of,
    "answers": answers_of,
}

REFUSED = {
    "rows behind the end": ("likeness", likeness_of(rows=longs(2))),
    "rows below 0": ("likeness", likeness_of(rows=longs(-1))),
    "slots behind the end": ("likeness", likeness_of(slot_of=longs(7, 5))),
    "slots before the first": ("likeness", likeness_of(slot_of=longs(3, 5))),
    "neighbours that are no rows": ("likeness", likeness_of(row_at=ints(*[-1] * 4, 0, 99, *[-1] * 4))),
    "half a word piece": ("likeness", likeness_of(tokens={0: bytes(63)})),
    "word pieces that are no bytes": ("likeness", likeness_of(tokens={0: "said"})),
    "tokens that are no dict": ("likeness", likeness_of(tokens=[])),
    "too little room": ("likeness", likeness_of(out=floats(0))),
    "room for fewer scores": ("likeness", likeness_of(scores=floats(0))),
    "other axes": ("likeness", likeness_of(axes=floats(1, AXES - 1))),
    "floats of 64 bits": ("likeness", likeness_of(axes=np.zeros((1, AXES)))),
    "every other axis": ("likeness", likeness_of(axes=floats(1, 2 * AXES)[:, ::2])),
    "room that is not to be written to": ("likeness", likeness_of(out=np.frombuffer(bytes(4), np.float32))),
    "postings of no row": ("words", {"row": (0, 2)}),
    "postings of row -1": ("words", {"row": (-1, 0)}),
    "fresh postings of no row": (
        "words",
        {"fresh": ints(2), "late": (np.zeros(1, np.uint32), np.ones(1, np.uint8))},
    ),
    "buckets beyond its postings": ("words", {"starts": (0, 1, 3)}),
    "buckets that descend too far": ("words", {"starts": (0, 3, 2)}),
    "buckets of which one is no power": ("words", {"starts": (0, 1, 1, 2)}),
    "not one bucket": ("words", {"starts": (0,)}),
    "segments without rows": ("words", {"segment_rows": 0}),
    "fewer segments than rows": ("words", {"stale": np.zeros(1, np.bool_)}),
    "a slot that is not there": ("words", {"slot_of": longs(4, 10)}),
    "a slot of a row that is not there": ("words", {"row_at": ints(*[-1] * 4, 0, 2, *[-1] * 4)}),
    "more sessions than slots": ("words", {"head": 11}),
    "less room than rows": ("words", {"rows": 1}),
    "a mask of fewer rows": ("words", {"eligible": np.ones(1, np.bool_)}),
    "a mask of fewer counted rows": ("words", {"counted": np.ones(1, np.bool_)}),
    "terms said more often than known": ("words", {"rarity": np.ones(1, np.float32)}),
    "terms that are no numbers": ("words", {"asked": {"dog": 1}}),
    "terms of 33 bits": ("words", {"asked": {1 << 32: 1}}),
    "groups that are no dicts": ("words", {"asked": [(1, 2)]}),
    "terms in a tuple": ("words", {"asked": (1, 2)}),
    "names that are no set": ("words", {"names": 1}),
    "places in a list": ("words", {"places": []}),
    "places that hold nothing": ("words", {"places": ((None, None, None),)}),
    "places that hold too little": ("words", {"places": ((KERNEL and KERNEL.hold(1),) * 3,)}),
    "a window without a middle": ("words", {"width": 8}),
    "buckets beyond the postings": ("find", find_of(starts=(0, 1, 3))),
    "buckets that descend": ("find", find_of(starts=(0, 3, 2))),
    "three buckets": ("find", find_of(starts=(0, 1, 1, 2))),
    "no buckets": ("find", find_of(starts=(0,))),
    "rows beyond the segments": ("find", find_of(stale=np.zeros(1, np.bool_))),
    "rows beyond those that may be found": ("find", find_of(eligible=np.zeros(40, np.bool_))),
    "fresh rows beyond them": ("find", find_of(eligible=np.zeros(41, np.bool_), fresh=ints(41))),
    "room for fewer bounds": ("find", find_of(bounds=1)),
    "turns that are not there": ("channels", {"turns": (0, 2)}),
    "turns of fewer slots": ("channels", {"slots": longs(4)}),
    "slots behind the head": ("channels", {"slots": longs(4, 10)}),
    "slots below 0": ("channels", {"slots": longs(-1, 4)}),
    "a head behind the slots": ("channels", {"width": 9}),
    "channels of fewer rows": ("channels", {"rows": 1}),
    "hidden rows that are not there": ("channels", {"hidden": longs(2)}),
    "rows below 0 without a vector": ("channels", {"blind": longs(-1)}),
    "near words of fewer rows": ("channels", {"near": floats(1)}),
    "a layout that is none": ("channels", {"held": 1}),
    "text of fewer rows": ("fused", {"size": 1}),
    "no text": ("fused", {"channels": (None, floats(2), floats(2), None)}),
    "three channels": ("fused", {"channels": (floats(2), floats(2), floats(2))}),
    "eight signals": ("fused", {"signals": (None,) * 8}),
    "a signal of fewer rows": ("fused", {"signals": (floats(1), *[None] * 8)}),
    "found rows that are not there": ("fused", {"missed": np.zeros(3, np.bool_)}),
    "memories that are not there": ("fused", {"pairs": ((2,), (1,))}),
    "source turns that are not there": ("fused", {"pairs": ((0,), (-1,))}),
    "fewer source turns than memories": ("fused", {"pairs": ((0, 1), (1,))}),
    "a range of fewer rows": ("fused", {"ranged": np.ones(1, np.bool_)}),
    "no range": ("fused", {"ranged": None}),
    "weights of thirteen parts": ("fused", {"weights": (floats(14), floats(13))}),
    "no second weights": ("fused", {"weights": (floats(14), None)}),
    "pieces of fewer shares": ("fused", {"pieces": (floats(2, AXES), floats(1), floats(9))}),
    "no shares": ("fused", {"pieces": (floats(1, AXES), None, floats(9))}),
    "no window": ("fused", {"pieces": (floats(1, AXES), floats(1), None)}),
    "a way that is a word": ("fused", {"how": ("least", 0.97, 0.5, 1)}),
    "no hits wanted": ("fused", {"limit": 0}),
    "no candidates wanted": ("fused", {"candidates": 0}),
    "room for fewer similarities": ("fused", {"late": 1}),
    "places that are no tuples": ("fused", {"places": (1,)}),
    "a layout without flags": ("fused", {"layout": KERNEL and KERNEL.hold(10, TWO, ROW_AT)}),
    "flags of other rows": ("fused", {"flags": 3}),
    "pieces of a text that are words": ("fused", {"tokens": {0: "said"}}),
    "texts in a list": ("fused", {"tokens": []}),
    "places of fewer rows than channels": ("fused", {"slot_of": longs(4), "flags": 1}),
    "a slot that no window fits around": ("fused", {"slot_of": longs(3, 5)}),
    "questions that are not there": ("answers", {"asked": (2,)}),
    "answers that are not there": ("answers", {"answered": (-1,)}),
    "fewer answers than questions": ("answers", {"asked": (0, 1)}),
    "rows behind the last score": ("answers", {"start": 1}),
    "a start behind the last score": ("answers", {"start": 3}),
    "scores of fewer rows": ("answers", {"size": 1}),
    "compared rows that are not there": ("evidence", {"looked": (0, 2)}),
    "similarities of fewer rows": ("evidence", {"compared": 1}),
    "channels of other rows": ("evidence", {"size": 1}),
    "a speaker of other rows": ("evidence", {"speaker": floats(1)}),
    "hits that are not there": ("evidence", {"rows": (2,)}),
    "hits below 0": ("evidence", {"rows": (-1,)}),
    "no hits": ("evidence", {"rows": (), "place": (), "out": 1}),
    "hits without a place": ("evidence", {"rows": (0, 1), "out": 3}),
    "places behind the logarithms": ("evidence", {"place": (4,)}),
    "features that are not known": ("evidence", {"asked": (5,)}),
    "features that are words": ("evidence", {"asked": ("size",)}),
    "more features than there can be": ("evidence", {"asked": (0.5,) * 33}),
    "a weight too few": ("evidence", {"more": 0}),
    "weights of other features": ("evidence", {"right": 15}),
    "room for the hits alone": ("evidence", {"out": 1}),
    "five channels": ("evidence", {"channels": (None,) * 5}),
    "a channel of other rows": ("evidence", {"channels": (*[None] * 5, floats(1))}),
    "odds without those of an answer": ("likely", (floats(2), longs(0, 0), 1.0, 1e-3, 0.99, floats(2))),
    "places of fewer rows": ("likely", (floats(3), longs(0), 1.0, 1e-3, 0.99, floats(2))),
    "other dimensions": ("cosines", (np.zeros((2, 3), np.float16), floats(4), floats(2))),
    "rows of other floats": ("cosines", (floats(2, 4), floats(4), floats(2))),
    "parts of other lengths": ("weighed", ((floats(3), floats(2)), (1.0, 1.0), None, floats(3))),
    "fewer weights": ("weighed", ((floats(3),), (), None, floats(3))),
    "weights that are no numbers": ("weighed", ((floats(3),), ("much",), None, floats(3))),
    "weighed rows that are not there": ("weighed", ((floats(3),), (1.0,), longs(0, 3), floats(2))),
    "weighed rows below 0": ("weighed", ((floats(3),), (1.0,), longs(-1), floats(1))),
    "room for fewer weighed rows": ("weighed", ((floats(3),), (1.0,), longs(0, 1), floats(1))),
    "parts of other rows": ("parts", (floats(3), floats(2), floats(3), None, None, 0.35, *floats(4, 3))),
    "less room for parts under keys": ("parts", (*floats(4, 3), None, 0.35, *floats(3, 3), floats(2))),
    "less room for text": ("parts", (*floats(3, 3), None, None, 0.35, floats(2), *floats(3, 3))),
    "keys of other rows": ("parts", (*floats(3, 3), floats(2), None, 0.35, *floats(4, 3))),
    "ranged parts of other rows": ("parts", (*floats(3, 3), None, np.ones(2, np.bool_), 0.35, *floats(4, 3))),
    "a negative count": ("top", (floats(3), -1)),
    "too few arguments": ("top", (floats(3),)),
    "scaled into less": ("scaled", (floats(3), 0.0, None, floats(2))),
    "ranged that is no mask": ("scaled", (floats(3), 0.0, floats(3), floats(3))),
}


@with_kernel
@pytest.mark.parametrize("what", sorted(REFUSED))
def test_what_does_not_fit_together_is_refused(what):
    name, given = REFUSED[what]
    given = GIVEN[name](**given) if isinstance(given, dict) else given
    with pytest.raises((IndexError, ValueError, TypeError, BufferError)):
        getattr(KERNEL, name)(*given)


@with_kernel
def test_what_fits_together_is_taken():
    assert KERNEL.likeness(*likeness_of()) == 0
    assert KERNEL.words(*words_of()) == [1.0, 1.0]
    assert KERNEL.words(*words_of(asked=[{0: 0.5, 9: 1.0}, {}])) == [1.0, None]
    assert KERNEL.words(*words_of(places=(), rows=0)) == [None, None]
    assert KERNEL.words(*words_of(asked={})) == []
    KERNEL.find(*find_of(eligible=np.ones(41, np.bool_), stale=np.zeros(2, np.bool_), fresh=ints(3)))
    KERNEL.channels(*channels_of(hidden=longs(0, 1), blind=longs(1), near=floats(2)))
    assert KERNEL.evidence(*evidence_of()) == (False, False)
    assert KERNEL.evidence(*evidence_of(looked=(), rows=(0, 1), place=(0, 3), out=3)) == (True, False)
    KERNEL.likely(floats(1), longs(), 1.0, 1e-3, 0.99, floats(0))
    KERNEL.answers(*answers_of())
    rows, _, beside, looked, *_, missing = KERNEL.fused(*fused_of())
    assert (rows, beside, looked) == (longs(0).tobytes(), ((1,),), longs(0, 1).tobytes())
    assert missing == 1
    assert KERNEL.fused(*fused_of(pairs=None, limit=1))[2] is None
    assert KERNEL.fused(*fused_of(tokens={})) is None
    blind = floats(2), floats(2), np.full(2, np.nan, np.float32), None
    assert KERNEL.fused(*fused_of(channels=blind)) is None
    KERNEL.answers(*answers_of(start=1, size=3))


@with_kernel
def test_what_is_not_a_number_stays_unknown():
    axes = np.full((1, AXES), np.nan, np.float32)
    given = likeness_of(axes=axes, tokens={0: bytes([1]) * AXES})
    assert KERNEL.likeness(*given) == 1
    assert np.isnan(given[-3]).all()
    assert np.isnan(given[-1]).all()


@with_kernel
def test_instructions_that_the_processor_lacks_cannot_be_chosen():
    with pytest.raises(ValueError, match="'mmx'"):
        KERNEL.use("mmx")


# ---- whether it is used


@with_kernel
def test_where_there_is_only_plain_c_numpy_multiplies():
    class Plain:
        def instructions(self):
            return ["plain"]

        def __getattr__(self, name):
            assert name not in {"likeness", "cosines", "fused"}
            return getattr(KERNEL, name)

    with ranking_by(Plain()):
        assert kernel.name() == "plain"
        assert not kernel.multiplies()
    compare(np.random.default_rng(2), Plain())


def test_it_is_turned_off_by_the_environment(monkeypatch):
    monkeypatch.setitem(sys.modules, "echoic_kernel", types.SimpleNamespace(INTERFACE=kernel.INTERFACE))
    assert kernel.load() is not None
    monkeypatch.setenv(kernel.VARIABLE, "off")
    assert kernel.load() is None


def test_a_kernel_of_another_release_is_left_alone_with_one_line(monkeypatch, caplog):
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "echoic_kernel", types.SimpleNamespace(INTERFACE=kernel.INTERFACE + 1))
    assert kernel.load() is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "ranking uses numpy" in caplog.text


def test_without_the_package_numpy_ranks_and_nothing_is_said(monkeypatch, caplog):
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "echoic_kernel", None)
    assert kernel.load() is None
    assert not caplog.records
    with ranking_by(None):
        assert kernel.name() == "numpy"
        compare(np.random.default_rng(1), None)
