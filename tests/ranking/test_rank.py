from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic.errors import EmbeddingMismatch, InvalidInput
from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.ranking import FUSIONS, LEXICAL_FLOOR, entry_of_memory, entry_of_turn, query_of, rank
from echoic.types import Memory, Turn
from scale import many

DIMENSIONS = 8
START = datetime(2026, 1, 1, tzinfo=UTC)

WORDS = "tea coffee dog rex name lisbon porto sister caitlin kaitlyn monday ticket garden allergic".split()
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
questions = st.one_of(
    texts,
    st.sampled_from(
        ["What's my dog's name?", "When did I go to Porto?", "who is Katelin", "alergic", "no idea"]
    ),
)
seeds = st.integers(0, 2**32 - 1)


def unit(seed):
    # few directions, so that equal vectors and equal scores come up
    vector = np.random.default_rng(seed % 7).standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


@st.composite
def items(draw):
    """A memory or a turn, as an entry."""
    text, number = draw(texts), draw(st.integers(0, 40))
    said_at = START + timedelta(days=number)
    if draw(st.booleans()):
        ended = said_at + timedelta(days=1) if draw(st.integers(0, 3)) == 0 else None
        key = draw(st.sampled_from([None, "user_name", "dog_name", "home"]))
        return entry_of_memory(Memory(id="m", text=text, key=key, valid_from=said_at, valid_until=ended))
    speaker = draw(st.sampled_from(["user", "agent", "Caitlin"]))
    heard = "" if draw(st.integers(0, 7)) == 0 else None
    conversation = draw(st.sampled_from(["a", "b"]))
    return entry_of_turn(
        Turn(
            speaker=speaker,
            text=text + draw(st.sampled_from(["", "?"])),
            heard=heard,
            said_at=said_at,
            conversation=conversation,
        )
    )


changes = st.tuples(st.integers(0, 70), st.one_of(items(), items(), st.just("drop"), st.just("attach")))
histories = st.lists(changes, max_size=40)


class Scope:
    """What a store does with a partition: changes go to segments, changed segments into the partition."""

    def __init__(self, history=()):
        self.segments, self.partition = {}, Partition(DIMENSIONS)
        self.apply(history)

    def apply(self, history):
        touched = set()
        for row, change in history:
            number, slot = divmod(row, SEGMENT_ROWS)
            segment = self.segments.setdefault(number, Segment())
            if change == "drop":
                segment.drop(slot)
            elif change == "attach":
                if segment.rows[slot]["kind"]:
                    segment.attach(slot, unit(row))
            else:
                segment.put(slot, change)
            touched.add(number)
        with self.partition.lock:
            self.partition.patch((number, self.segments[number]) for number in sorted(touched))

    def anew(self):
        """The same segments, loaded into a partition that was never patched or asked."""
        fresh = Scope()
        copies = {
            number: Segment.from_bytes(s.to_bytes(), None if s.vectors is None else s.vectors.tobytes())
            for number, s in self.segments.items()
        }
        fresh.partition.patch(sorted(copies.items()))
        return fresh


def order(found):
    return [(hit.place, hit.row) for hit in found]


def asked(text, seed, **how):
    return query_of(text, unit(seed) if seed % 3 else None, **how)


@settings(max_examples=many(80, least=10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(histories, min_size=1, max_size=4),
    questions,
    seeds,
    st.booleans(),
    st.sampled_from(sorted(FUSIONS)),
)
def test_a_patched_partition_ranks_as_one_built_anew(rounds, text, seed, past, fusion):
    scope = Scope()
    query = asked(text, seed, include_past=past)
    for history in rounds:
        scope.apply(history)
        found = rank(query, [scope.partition], limit=200, fusion=fusion)
        fresh = rank(query, [scope.anew().partition], limit=200, fusion=fusion)
        assert order(found) == order(fresh)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in fresh], abs=1e-5)
        assert [hit.ranks for hit in found] == [hit.ranks for hit in fresh] or fusion == "blend"


@settings(max_examples=many(80, least=10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, histories, questions, seeds, st.sampled_from(sorted(FUSIONS)), st.integers(1, 30))
def test_a_shorter_list_is_the_beginning_of_a_longer_one(own, everyones, text, seed, fusion, limit):
    partitions = [Scope(own).partition, Scope(everyones).partition]
    query = asked(text, seed)
    everything = rank(query, partitions, limit=500, fusion=fusion)
    assert rank(query, partitions, limit=limit, fusion=fusion) == everything[:limit]
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    assert len(set(order(everything))) == len(everything)


@settings(max_examples=many(80, least=10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, questions, seeds, st.sampled_from(sorted(FUSIONS)), st.booleans())
def test_nothing_empty_unheard_or_past_is_found_unless_the_past_is_asked_for(
    history, text, seed, fusion, past
):
    scope = Scope(history)
    for hit in rank(
        asked(text, seed, include_past=past), [scope.partition], limit=500, fusion=fusion, floor=-1
    ):
        row = scope.partition.rows[hit.row]
        assert row["kind"]
        assert not row["flags"] & Flag.UNHEARD
        assert past or not row["flags"] & Flag.PAST


@settings(max_examples=many(80, least=10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, histories, questions, seeds, st.sampled_from(sorted(FUSIONS)))
def test_what_others_said_changes_nothing(mine, others, text, seed, fusion):
    query = asked(text, seed)
    scope = Scope(mine)
    before = rank(query, [scope.partition], limit=100, fusion=fusion)
    rank(query, [Scope(others).partition, scope.partition], limit=100, fusion=fusion)
    rank(query, [Scope(others).partition], limit=100, fusion=fusion)
    assert rank(query, [scope.partition], limit=100, fusion=fusion) == before


@settings(max_examples=many(80, least=10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, questions, seeds)
def test_every_hit_says_by_which_channels_and_where(history, text, seed):
    scope = Scope(history)
    found = rank(asked(text, seed), [scope.partition], limit=500)
    for hit in found:
        assert set(hit.ranks) <= set(FUSIONS["blend"].finding)
        assert hit.ranks
        assert ("text" not in hit.ranks) or ("window" in hit.ranks)
    for name in FUSIONS["blend"].finding:
        places = sorted(hit.ranks[name].rank for hit in found if name in hit.ranks)
        assert places == list(range(1, len(places) + 1))
        by_rank = sorted((hit for hit in found if name in hit.ranks), key=lambda hit: hit.ranks[name].rank)
        scores = [hit.ranks[name].score for hit in by_rank]
        assert scores == sorted(scores, reverse=True)


@settings(max_examples=many(40, least=10), deadline=None)
@given(st.lists(items(), min_size=1, max_size=20), questions, seeds, st.randoms(use_true_random=False))
def test_where_a_row_stands_does_not_change_its_score(entries, text, seed, random):
    entries = [e for e in entries if e.kind == 1]  # turns mean something by what stands beside them
    shuffled = list(range(len(entries)))
    random.shuffle(shuffled)
    query = asked(text, seed)

    def scores(positions):
        scope = Scope([(at, entries[i]) for at, i in enumerate(positions)])
        return {positions[hit.row]: hit.score for hit in rank(query, [scope.partition], limit=100)}

    assert scores(shuffled) == pytest.approx(scores(range(len(entries))), abs=1e-5)


def test_equal_rows_stand_in_the_order_they_were_written_own_before_everyones(partition, memory):
    vector = np.random.default_rng(3).standard_normal(384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    mine = partition([memory("tea at four")] * 45, [vector] * 45)
    everyones = partition([memory("tea at four")] * 3, [vector] * 3)
    for fusion in FUSIONS:
        found = rank(query_of("tea", vector + 0.1), [mine, everyones], limit=48, fusion=fusion)
        expected = [(0, row) for row in range(45)] + [(1, row) for row in range(3)]
        assert order(found) == (expected[:30] if fusion == "rrf" else expected)


def test_nothing_known_is_an_empty_list(partition, memory):
    held = partition([memory("Rex", "dog"), memory("Lisbon", "home")])
    assert rank(query_of("blood type"), [held]) == []
    assert rank(query_of("what?"), [held]) == []
    assert rank(query_of(""), [held]) == []
    assert rank(query_of("Rex"), []) == []
    assert rank(query_of("Rex"), [Partition(), Partition(384)]) == []


def test_a_cosine_below_the_floor_finds_nothing(partition, memory):
    held = partition([memory("Rex", "dog"), memory("Lisbon", "home")], [[1, 0], [0, 1]])
    query = query_of("anything known", np.array([1.0, 0.3]))
    assert order(rank(query, [held])) == [(0, 0), (0, 1)]
    assert order(rank(query, [held], floor=0.5)) == [(0, 0)]
    assert rank(query_of("anything known", np.array([-1.0, -1.0])), [held]) == []
    assert order(rank(query_of("my dog", np.array([-1.0, -1.0])), [held])) == [(0, 0)]
    assert rank(query, [held], floor=LEXICAL_FLOOR, fusion="vector")[0].ranks["vector"].rank == 1


def test_rows_that_cannot_be_found_take_no_part_in_the_scale(partition, memory):
    gone = memory("tea", valid_until=START)
    found = rank(
        query_of("tea"), [partition([memory("tea"), memory("a tea garden party of coffee drinkers"), gone])]
    )
    # the better of the two has 1 for its words, the other 0; what the words say stands in for the vectors
    expected = [0.45 + 0.45 * 0.5 + 0.12, 0.45 * -0.5 + 0.12]
    assert [hit.score for hit in found] == pytest.approx(expected, abs=1e-6)


def test_what_waits_for_its_vector_is_found_by_its_words_at_once(partition, turn):
    talk = [turn(f"small talk number {i} about the weather", minute=i) for i in range(60)]
    vectors = [unit(i) for i in range(60)]
    held = partition([*talk, turn("My parcel went to Gdansk.", minute=60)], [*vectors, None])
    found = rank(query_of("Where did my parcel go?", unit(3)), [held])
    assert found[0].row == 60
    assert "vector" not in found[0].ranks


def test_without_a_vector_words_do(partition, turn):
    held = partition(
        [turn("My parcel went to Gdansk."), turn("Rain again.", conversation="b")], [unit(1), unit(2)]
    )
    assert order(rank(query_of("parcel"), [held])) == [(0, 0)]


def test_what_holds_comes_before_what_held(partition, memory):
    old = memory("Rome", "home_city", valid_until=START)
    new = memory("Lisbon", "home_city")
    held = partition([old, new, memory("Rome is noisy", "remark")])
    assert order(rank(query_of("my home city"), [held])) == [(0, 1)]
    assert order(rank(query_of("my home city", include_past=True), [held])) == [(0, 1), (0, 0)]


CALL = [
    ("agent", "Which name should I put on booking {}?"),
    ("user", "Not my name, put the company's name on it, please."),
    ("agent", "Thank you. Shall I send the ticket to your wife?"),
    ("user", "No, my daughter collects parcel {} at noon."),
    ("agent", "And is the dog coming along on trip {}?"),
    ("user", "My dog stays at home with a neighbour this time."),
]


def test_the_callers_name_stands_above_five_hundred_turns_that_speak_of_names(partition, turn, memory):
    said = [turn(CALL[i % 6][1].format(i), CALL[i % 6][0], f"call-{i // 20}", minute=i) for i in range(500)]
    known = [memory("Pavel", "user_name"), memory("Ines", "wife_name"), memory("Rex", "dog")]
    held = partition([*said[:250], *known, *said[250:]])
    for text in ("what's my name?", "do you remember my name", "Tell me my name again, please."):
        assert rank(query_of(text), [held])[0].row == 250
    assert rank(query_of("what's my wife's name?"), [held])[0].row == 251
    assert rank(query_of("what is my dog called?"), [held])[0].row == 252


def test_an_answer_stands_above_the_question_it_was_given_to(partition, turn):
    held = partition(
        [
            turn("Good morning!", "agent", minute=0),
            turn("Where did you go on holiday?", "agent", minute=1),
            turn("Paris, mostly for the food.", "user", minute=2),
            turn("Let me book that parcel for you.", "agent", conversation="b"),
        ]
    )
    assert [hit.row for hit in rank(query_of("Where did I go on holiday?"), [held])] == [2, 1, 0]


def test_a_vector_of_another_model_is_refused(partition, memory):
    held = partition([memory("tea")], [[1.0, 0.0]])
    with pytest.raises(EmbeddingMismatch, match="3 dimensions and the rows have 2"):
        rank(query_of("tea", np.ones(3)), [held])
    assert rank(query_of("tea", np.ones(3)), [partition([memory("tea")], dimensions=2)])


def test_a_wrong_limit_or_fusion_is_refused(partition, memory):
    held = partition([memory("tea")])
    with pytest.raises(InvalidInput, match="limit"):
        rank(query_of("tea"), [held], limit=0)
    with pytest.raises(InvalidInput, match="blend, rrf"):
        rank(query_of("tea"), [held], fusion="best")


def test_the_locks_are_held_while_scanning_and_let_go_whatever_happens(partition, memory):
    held = partition([memory("tea")], [[1.0, 0.0]])
    with pytest.raises(EmbeddingMismatch):
        rank(query_of("tea", np.ones(3)), [held, held])
    assert not held.lock.locked()
    held.lock.acquire()
    found = []
    scan = threading.Thread(target=lambda: found.append(rank(query_of("tea"), [held])))
    scan.start()
    scan.join(0.2)
    assert scan.is_alive()
    held.lock.release()
    scan.join()
    assert len(found[0]) == 1


def test_readers_of_common_partitions_do_not_wait_for_one_another_forever(partition, memory):
    partitions = [partition([memory(f"tea {i}")]) for i in range(3)]
    done = []

    def scan(mine):
        for _ in range(50):
            rank(query_of("tea"), mine)
        done.append(len(mine))

    orders = [partitions, partitions[::-1], [partitions[1], partitions[2], partitions[0]]]
    threads = [threading.Thread(target=scan, args=(mine,), daemon=True) for mine in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done == [3, 3, 3]
