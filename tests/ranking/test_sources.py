"""A memory and the turn it was learned from are one thing found."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from echoic.partition import Partition, Segment
from echoic.ranking import entry_of_memory, entry_of_turn
from echoic.ranking.bm25 import find, rows_saying
from echoic.ranking.layout import Candidates, Layout, Sources
from echoic.ranking.query import query_of
from echoic.ranking.rank import rank
from echoic.text import word_of


@pytest.fixture
def talk(turn):
    return [
        turn("My sister is called Marta.", minute=0, id="t0"),
        turn("Noted: your sister is called Marta.", speaker="agent", minute=1, id="t1"),
        turn("I live in Porto and work at Tesco.", minute=2, id="t2"),
    ]


@pytest.fixture
def learned(memory):
    return [
        memory("Marta", "sister_name", source=("t0",)),
        memory("Porto", "home", source=("t2",)),
        memory("Tesco", "employer", source=("t2", "t0")),
        memory("Prefers tea", source=("elsewhere",)),
    ]


def test_each_memory_is_paired_with_those_of_its_turns_that_are_there(talk, learned, partition):
    made = partition([*talk, *learned])
    with made.lock:
        pairs = Sources.of(made)
    found = sorted(zip(pairs.memories.tolist(), pairs.turns.tolist(), strict=True))
    assert found == [(3, 0), (4, 2), (5, 0), (5, 2)]


def test_what_is_patched_is_paired_anew(talk, learned, partition, memory, turn):
    made = partition([*talk, *learned])
    with made.lock:
        Sources.of(made)
        segment = Segment()
        for row, item in enumerate([*talk[:2], turn("Never mind.", minute=2, id="t9")]):
            segment.put(row, entry_of_turn(item))
        segment.put(3, entry_of_memory(memory("Marta", "sister_name", source=("t9",))))
        made.patch([(0, segment)])
        pairs = Sources.of(made)
    assert list(zip(pairs.memories.tolist(), pairs.turns.tolist(), strict=True)) == [(3, 2)]
    fresh = Partition()
    fresh.patch([(0, segment)])
    with fresh.lock:
        assert np.array_equal(Sources.of(fresh).turns, pairs.turns)


def test_they_share_a_place_and_no_other_row_is_lost(talk, learned, partition):
    made = partition([*talk, *learned])
    found = rank(query_of("my sister, my home, where I live, my employer, where I work"), [made])
    rows = [row for one in found for row in (one.row, *one.beside)]
    assert len(rows) == len(set(rows))
    assert {0, 1, 2, 3, 4, 5} <= set(rows)
    together = [{one.row, *one.beside} for one in found]
    assert {0, 3} in together
    assert any({2, 4, 5} <= each for each in together), together


def test_a_turn_that_its_memory_alone_finds_is_shown_with_it(turn, memory, partition):
    made = partition(
        [
            turn("She is the best.", id="t0"),
            memory("Marta", "sister_name", source=("t0",)),
            turn("Rain again."),
        ]
    )
    (first, *_) = rank(query_of("sister"), [made])
    assert {first.row, *first.beside} == {0, 1}


def test_what_a_turn_and_a_memory_both_say_is_counted_once(turn, memory, partition):
    """Else learning would make the words of what is learned common, and so worth less."""
    turns = [turn(f"I bought a {thing}.", minute=n, id=f"t{n}") for n, thing in enumerate("lamp rug".split())]
    made = partition([*turns, memory("The user bought a lamp", source=("t0",))])
    with made.lock:
        assert Layout.of(made).current.count == 2
    with made.lock:
        place = Candidates.of(made)
        own = find(place, np.array([word_of("lamp").term], np.uint32))
        assert rows_saying([place], [own]).tolist() == [1]


def test_what_no_longer_holds_stands_by_itself(turn, memory, partition):
    old = memory("Leeds", "home", source=("t0",))
    ended = memory("Leeds", "home", source=("t0",), valid_until=old.valid_from + timedelta(days=1))
    made = partition([turn("I live in Leeds.", id="t0"), ended])
    found = rank(query_of("home Leeds", include_past=True), [made])
    assert sorted((one.row, one.beside) for one in found) == [(0, ()), (1, ())]


def test_learning_changes_no_score_of_a_turn_that_taught_nothing(turn, memory, closely):
    make, ask = closely
    turns = [
        turn("My sister Marta came by on the train.", id="t0"),
        turn("The sister ship sails.", conversation="other", id="t1"),
        turn("Rain again.", conversation="third"),
    ]
    asked = ask("sister Marta", [0, 1])
    before = {one.row: one.score for one in rank(asked, [make(turns, [[0, 2], [0], [5]])])}
    learned = memory("sister Marta", source=("t0",))
    after = rank(asked, [make([*turns, learned], [[0, 2], [0], [5], [0, 1]])])
    assert {one.row: one.score for one in after if one.row == 1} == pytest.approx({1: before[1]})


def test_without_word_pieces_the_memory_that_says_most_of_the_question_is_first(turn, memory, partition):
    said = [turn("The bike is gone, so it is the tram now.", id="t0"), turn("Tom moved in.", id="t1")]
    learned = [
        memory("The user takes the tram to the clinic.", source=("t0",)),
        memory("Tom", "lodger_name", statement="The user's lodger is called Tom.", source=("t1",)),
    ]
    first = rank(query_of("how does the user get to the clinic?"), [partition([*said, *learned])])[0]
    assert first.row == 2


def test_a_value_under_a_key_stands_no_higher_than_its_turn_unless_it_is_liker(turn, memory, closely):
    make, ask = closely
    said = [turn(f"Leeds number {n}.", conversation=f"c{n}", id=f"t{n}") for n in range(12)]
    axes = [[5], [0, 1], *[[6 + n] for n in range(10)]]
    unlike = make([*said, memory("Leeds", "home", source=("t0",))], [*axes, [5]])
    asked = ask("ab", [0, 1])
    assert rank(asked, [unlike])[0].row == 1
    like = make([*said, memory("Leeds", "home", source=("t0",))], [*[[5], [2, 3]], *axes[2:], [0, 1]])
    first = rank(asked, [like])[0]
    assert {first.row, *first.beside} == {0, 12}


def test_a_turn_answers_for_the_key_that_was_learned_from_it(turn, memory, closely):
    make, ask = closely
    said = [turn(f"Leeds number {n}.", conversation=f"c{n}", id=f"t{n}") for n in range(12)]
    made = make([*said, memory("Marta", "sister name", source=("t7",))], [[5]] * 13)
    first = rank(ask("sister name", [0, 1]), [made])[0]
    assert {first.row, *first.beside} == {7, 12}


AXES = np.eye(4, dtype=np.float32)


def ended(memory, text, key):
    return memory(text, key, source=("t0",), valid_until=memory(text).valid_from + timedelta(days=1))


@pytest.mark.parametrize(
    ("like", "outdated"),
    [(0.4, (1,)), (0.2, ())],
    ids=["what the question finds", "something else that the turn says"],
)
def test_a_turn_tells_what_the_question_finds_in_it_that_no_longer_holds(
    turn, memory, partition, like, outdated
):
    items = [turn("I live in Leeds.", id="t0"), ended(memory, "Leeds", "home"), memory("York", "home")]
    vectors = [[0.6, 0.8, 0, 0], [like, 0, (1 - like**2) ** 0.5, 0], [0.2, 0, 0, 0.98]]
    found, new = rank(query_of("where do I live", AXES[0]), [partition(items, vectors, 4)])
    assert (found.row, found.beside, found.outdated) == (0, (), outdated)
    assert (new.row, new.outdated) == (2, ())


def test_a_turn_that_a_memory_still_holding_answers_is_not_outdated(turn, memory, partition):
    items = [
        turn("I live in Leeds and my dog is called Rex.", id="t0"),
        ended(memory, "Leeds", "home"),
        memory("Rex", "pet:rex", source=("t0",)),
    ]
    items.append(memory("York", "home"))
    vectors = [[0.6, 0.8, 0, 0], [0.5, 0, 0.866, 0], [0.8, 0, 0, 0.6], [0.2, 0, 0, 0.98]]
    made = partition(items, vectors, 4)
    assert [one.outdated for one in rank(query_of("my dog", AXES[0]), [made])] == [(), ()]


@pytest.mark.parametrize("asked", [{"include_past": True}, {"spans": ((0, 2**45),)}], ids=["past", "a time"])
def test_where_the_past_is_asked_for_nothing_is_outdated(turn, memory, partition, asked):
    items = [turn("I live in Leeds.", id="t0"), ended(memory, "Leeds", "home"), memory("York", "home")]
    made = partition(items, [AXES[0]] * 3, 4)
    assert not any(one.outdated for one in rank(query_of("where did I live", AXES[0], **asked), [made]))
