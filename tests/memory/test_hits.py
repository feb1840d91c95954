"""What is told of the hits of a search, and in which order."""

from __future__ import annotations

import pytest

from echoic import Hit, Scope, Turn
from echoic.memory.hits import worth_telling


def hit(text, speaker="agent"):
    turn = Turn(speaker=speaker, text=text)
    return Hit(text=text, score=1.0, ranks={}, scope=Scope("demo", "ana"), turn=turn)


@pytest.mark.parametrize("asked", ["whats your address", "Where is your address"])
def test_a_question_with_the_words_of_the_one_asked_comes_last_without_its_mark_too(asked):
    hits = worth_telling([hit(asked), hit("nine lime street", "user")], "What is my address?")
    assert [one.text for one in hits] == ["nine lime street", asked]


@pytest.mark.parametrize("told", ["where i live is hull", "what i teach is history"])
def test_what_only_begins_like_a_question_keeps_its_place(told):
    hits = worth_telling([hit(told, "user"), hit("nine lime street", "user")], "Where do I live?")
    assert hits[0].text == told
