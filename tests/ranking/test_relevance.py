"""How likely a hit is to answer: bounds, what always passes, what never does, and what must change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from echoic.ranking import FLOOR, FUSIONS, query_of, rank
from echoic.ranking.channels import Channels
from echoic.ranking.layout import Candidates
from echoic.ranking.relevance import (
    ANSWERED_BY,
    CHATTER,
    KINDS,
    NAMED,
    RIGHT_BY,
    SILENCE,
    SILENCE_AMONG_PEOPLE,
    WEIGHTS,
    _logistic,
    default_floor,
)

TOLD = [
    "I moved to Leeds in spring.",
    "My sister Marta keeps bees.",
    "The dentist is on Monday at ten.",
    "I never eat mushrooms, they make me ill.",
]


@pytest.fixture
def told(partition, turn):
    return partition([turn(text, minute=minute) for minute, text in enumerate(TOLD)])


def relevances(partition, text, **options):
    return [one.relevance for one in rank(query_of(text), [partition], **options)]


def test_there_is_a_weight_for_every_feature_and_a_constant():
    for kind in KINDS:
        assert len(WEIGHTS["answered"][kind]) == len(ANSWERED_BY[kind]) + 1
        assert len(WEIGHTS["right"][kind]) == len(RIGHT_BY[kind]) + 1


@pytest.mark.parametrize("fusion", FUSIONS)
def test_relevance_lies_between_0_and_1_for_every_fusion(told, fusion):
    found = relevances(told, "What does my sister Marta keep?", fusion=fusion)
    assert all(0 <= each <= 1 for each in found)
    assert found or fusion == "vector"  # nothing here has a vector


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_how_many_are_asked_for_changes_no_relevance(told, limit):
    question = "When did my sister and I go to the dentist?"
    assert relevances(told, question, limit=limit) == relevances(told, question, limit=10)[:limit]


@pytest.mark.parametrize("kind", KINDS)
def test_how_likely_a_row_answers_is_the_same_to_the_last_bit_alone_and_among_others(kind):
    draw = np.random.default_rng(1)
    names, weights = RIGHT_BY[kind], WEIGHTS["right"][kind]
    for _ in range(200):
        known = {name: draw.normal(size=7).astype(np.float32) for name in names}
        alone = {name: values[:1] for name, values in known.items()}
        assert _logistic(alone, names, weights, 1) == _logistic(known, names, weights, 7)[0]


def test_what_answers_is_likelier_than_what_does_not(told):
    right = relevances(told, "What does my sister Marta keep?")[0]
    assert right > max(relevances(told, "Which ferry leaves Marseille on Monday?"), default=0)


@pytest.mark.parametrize(
    "remark", ["Okay.", "thanks, bye", "Uh huh", "can you hear me?", "Right, great!", "you"]
)
def test_a_backchannel_has_no_relevance_even_where_it_was_said_before(partition, turn, remark):
    spoken = partition([turn(remark), turn("I moved to Leeds.", minute=1)])
    assert not any(relevances(spoken, remark))


def test_the_key_that_is_asked_for_is_answered_in_a_store_of_one(partition, memory):
    assert relevances(partition([memory("Pavel", "user_name")]), "What's my name?")[0] >= NAMED


def test_a_bare_name_finds_what_says_it(told):
    assert relevances(told, "Marta")[0] >= SILENCE


def test_a_question_asked_before_is_no_answer(partition, turn):
    asked = "What is the name of my dentist?"
    alone = partition([turn(asked)])
    assert max(relevances(alone, asked), default=0) < SILENCE
    answered = partition(
        [turn(asked, conversation="a"), turn("The name of my dentist is Rao", conversation="b")]
    )
    best = max(rank(query_of(asked), [answered]), key=lambda one: one.relevance)
    assert best.row == 1
    assert best.relevance >= SILENCE


def test_an_empty_place_beside_it_changes_no_relevance(told, partition):
    question = "What does my sister Marta keep?"
    beside = [one.relevance for one in rank(query_of(question), [told, partition([])])]
    assert beside == relevances(told, question)


def test_chatter_holds_no_word_that_a_life_is_about():
    about = "allergy birthday coffee daughter dog doctor home job medicine name sister time tomorrow work"
    assert CHATTER.isdisjoint(about.split())


def test_the_default_threshold_among_people_is_lower_for_fewer_turns_and_in_calls_the_same(partition, turn):
    def floor(turns, speaker, kind):
        told = partition([turn(f"Turn {minute}", speaker=speaker, minute=minute) for minute in range(turns)])
        return default_floor(Channels(query_of("Marta"), [Candidates.of(told)], FLOOR), kind)

    among_people = [floor(turns, "Ana", "people") for turns in (1, 32, 33, 96, 192, 352, 353, 600)]
    assert among_people == [0.01, 0.01, 0.023, 0.038, 0.087, 0.18, SILENCE_AMONG_PEOPLE, SILENCE_AMONG_PEOPLE]
    assert floor(1, "Ana", "words") == SILENCE_AMONG_PEOPLE
    assert {floor(turns, "user", "pieces") for turns in (1, 96, 600)} == {SILENCE}
