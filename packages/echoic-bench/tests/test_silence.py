"""What is measured of silence, on figures that can be worked out by hand, and on a store of two callers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from echoic.embedding import embedder_from
from echoic.ranking.relevance import SILENCE, SILENCE_AMONG_PEOPLE
from echoic.types import Turn
from echoic_bench.labelled import Labelled, Question, checked
from echoic_bench.offtopic import CHOOSING, FILLERS, KNOWLEDGE, MEASURING
from echoic_bench.silence import (
    OTHERS,
    OWN,
    Heard,
    SilenceFound,
    auroc,
    calibration_error,
    measure_silence,
    renamed,
)

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def whose(user, said, question, names):
    turn = Turn(speaker="user", text=said, id=f"{user}/t", conversation=f"{user}/c", said_at=NOON)
    asked = Question(text=question, evidence=frozenset([turn.id]))
    return Labelled(
        user=user, items=(turn,), questions=(asked,), sessions={turn.id: turn.conversation}, names=names
    )


ANA = whose(
    "ana", "My brother Tom keeps bees in Leeds.", "What does my brother Tom keep?", (("Ana",), ("Tom",))
)
BEN = whose(
    "ben", "My aunt Ida repairs church organs.", "Which organs does Ida repair?", (("Ben",), ("Ida",))
)


def test_a_question_about_another_life_has_this_callers_names():
    assert (
        renamed("Which organs does Ida repair for Ben?", BEN, ANA) == "Which organs does Tom repair for Ana?"
    )
    assert renamed("What is Ida's trade?", BEN, ANA) == "What is Tom's trade?"


def test_auroc_counts_pairs_and_ties_by_half():
    assert auroc(np.array([0.9, 0.5]), np.array([0.5, 0.1])) == pytest.approx((1 + 1 + 0.5 + 1) / 4)


def test_the_calibration_error_is_what_promises_and_what_is_right_lie_apart():
    promised = np.array([0.05, 0.05, 0.95, 0.95])
    assert calibration_error(promised, np.array([False, False, True, False])) == pytest.approx(
        (0.1 + 0.9) / 4
    )


def test_a_floor_costs_what_own_questions_it_silences_found():
    found = SilenceFound(name="two")
    found.heard[OWN] = [Heard((0.8, 0.2), (0.5, 0.5), (True, True)), Heard((0.02,), (1.0,), (True,))]
    found.heard[OTHERS] = [Heard((0.01,), (0.0,), (False,)), Heard((), (), ())]
    assert found.recall() == 1.0
    assert found.recall(0.05) == 0.5
    assert found.silent(OTHERS, 0.05) == 1.0
    assert found.silent(OTHERS, 0.01) == 0.5
    assert found.as_json()["AUROC"] == {OTHERS: 1.0}


def test_the_lines_are_many_and_no_half_knows_the_other():
    assert len(set(FILLERS.splitlines())) >= 200
    assert len(set(KNOWLEDGE.splitlines())) >= 100
    for name, lines in CHOOSING.items():
        assert not set(lines) & set(MEASURING[name])
        assert abs(len(lines) - len(MEASURING[name])) <= 2


async def test_own_questions_are_answered_and_remarks_are_not():
    dataset = checked("two", [ANA, BEN])
    lines = {"fillers": ("Okay.", "Thanks, bye!")}
    found = await measure_silence(dataset, embedder_from("lexical"), lines=lines, most=2)
    assert found.recall() == 1.0
    assert found.silent("fillers", 0.01) == 1.0
    assert found.silent(OTHERS, 0.0) == 0.0
    assert found.as_json()["default"] == [SILENCE]


async def test_the_default_of_conversations_between_people_is_told_as_theirs():
    named = replace(ANA, items=tuple(replace(turn, speaker="Ana") for turn in ANA.items))
    dataset = checked("named", [named, BEN])
    found = await measure_silence(dataset, embedder_from("lexical"), lines={}, most=1)
    assert found.as_json()["default"] == [SILENCE, SILENCE_AMONG_PEOPLE]
