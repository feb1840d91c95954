"""A spoken key finds its conversation or is asked back; what is recalled fits into its budget."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echoic.adapters.twilio.phone_tools import meant_by, page, passages, sound_alike
from echoic.prompt.block import estimate_tokens
from echoic.session.speech_alignment import estimated_part, heard_part
from echoic.types import Conversation, Turn

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def stored(*keys):
    return [
        Conversation(id=f"{n}", recall_key=key, started_at=NOW, updated_at=NOW) for n, key in enumerate(keys)
    ]


@pytest.mark.parametrize("spoken", ["dinner menu", "diner menu", "the dinner menue", "dinnermenu"])
def test_a_key_is_found_as_it_was_heard(spoken):
    assert meant_by(spoken, stored("tax return", "dinner menu")).conversation.recall_key == "dinner menu"


@pytest.mark.parametrize(
    ("spoken", "key"),
    [
        ("alpha 7", "alpha seven"),
        ("alpha 11", "alpha eleven"),
        ("room twelve", "room 12"),
        ("order 4711", "order forty seven eleven"),
        ("order four seven one one", "order 47-11"),
        ("flat 12a", "flat twelve a"),
        ("gate b twelve", "gate B12"),
        ("agent double oh seven", "agent 007"),
        ("number four hundred and twelve", "number 412"),
        ("alfa 7", "alpha seven"),
        ("alpha won", "alpha one"),
        ("oh, the one about the dinner menu", "dinner menu"),
        ("oh two contract", "O2 contract"),
        ("too late for tea", "too late for tea"),
    ],
)
def test_a_number_is_found_in_words_and_in_digits(spoken, key):
    assert meant_by(spoken, stored("tax return", key)).conversation.recall_key == key


@pytest.mark.parametrize(
    ("spoken", "key"),
    [
        ("order 4712", "order 4711"),
        ("order forty seven twelve", "order 4711"),
        ("order 4711", "order"),
        ("flat b7", "flat c seven"),
        ("flat 12 b", "flat 12a"),
        ("blue room one", "blue room two"),
    ],
)
def test_another_number_is_asked_back(spoken, key):
    meant = meant_by(spoken, stored("tax return", key))
    assert meant.conversation is None
    assert [c.recall_key for c in meant.choices] == [key]


@pytest.mark.parametrize("spoken", ["order 4711", "my order", "the order forty seven eleven please"])
def test_one_with_another_number_is_no_choice_beside_the_one_meant(spoken):
    keys = ("order 4711", "garden 4712") if spoken == "my order" else ("order 4711", "order 4712")
    assert meant_by(spoken, stored(*keys)).conversation.recall_key == "order 4711"


@pytest.mark.parametrize(
    ("spoken", "key"),
    [
        ("the one about the dinner menu", "dinner menu"),
        ("that dinner menu one", "dinner menu"),
        ("john f kennedy", "john kennedy"),
        ("t shirt", "tshirt"),
        ("flight 12", "flight 12 gate b"),
        ("too late for tea", "late tea"),
    ],
)
def test_a_word_that_can_be_a_number_is_no_other_number(spoken, key):
    assert meant_by(spoken, stored(key)).conversation.recall_key == key


def test_of_two_with_the_same_number_in_words_and_in_digits_the_newer_is_meant():
    assert meant_by("alpha 7", stored("alpha seven", "alpha 7")).conversation.id == "1"
    assert sound_alike("alpha seven", "alpha 7")


def test_two_keys_that_sound_alike_are_asked_back():
    meant = meant_by("dinner menu", stored("diner menu", "tax return", "dinner menu"))
    assert meant.conversation is None
    assert {c.recall_key for c in meant.choices} == {"diner menu", "dinner menu"}


def test_a_key_that_two_are_equally_like_is_asked_back():
    meant = meant_by("garden", stored("garden shed", "garden party"))
    assert {c.recall_key for c in meant.choices} == {"garden shed", "garden party"}


def test_of_two_under_the_same_words_the_newer_is_meant():
    assert meant_by("dinner menu", stored("dinner menu", "Dinner menu")).conversation.id == "1"


def test_what_is_like_none_means_none():
    meant = meant_by("car insurance", stored("dinner menu"))
    assert meant.conversation is None
    assert meant.choices == ()


def test_keys_sound_alike_word_by_word():
    assert sound_alike("night flight", "knight flight")
    assert not sound_alike("night flight", "night")


def turns(count):
    said = [
        Turn(speaker="user" if n % 2 == 0 else "agent", text=f"line {n} about nothing much", id=f"{n}")
        for n in range(count)
    ]
    said[40] = Turn(speaker="user", text="which wine goes with the duck?", id="40")
    said[41] = Turn(speaker="agent", text="a Pinot from Burgundy", id="41")
    return said


def test_of_a_long_conversation_what_matches_the_moment_comes_with_its_answer_and_the_end():
    shown = passages(turns(300), "what wine was it with the duck", 400)
    texts = [entry["text"] for entry in shown if "text" in entry]
    assert "which wine goes with the duck?" in texts
    assert "a Pinot from Burgundy" in texts
    assert texts[-1] == "line 299 about nothing much"
    assert sum(entry.get("turns_left_out", 0) for entry in shown) + len(texts) == 300
    assert sum(estimate_tokens(text) for text in texts) <= 400


def test_what_a_search_by_meaning_found_comes_as_well():
    texts = [e.get("text") for e in passages(turns(300), "the drink", 200, found={"41": 0})]
    assert "a Pinot from Burgundy" in texts


def test_all_that_was_said_is_there_page_by_page():
    all_said = turns(120)
    pages = page(all_said, 1, 300)[1]
    assert pages > 1
    read = [entry["text"] for n in range(1, pages + 1) for entry in page(all_said, n, 300)[0]]
    assert read == [turn.text for turn in all_said]
    assert page(all_said, 999, 300)[0] == page(all_said, pages, 300)[0]


def test_what_was_not_heard_is_not_recalled():
    unheard = [
        Turn(speaker="agent", text="the secret is out", heard="", id="1"),
        Turn(speaker="user", text="hm", id="2"),
    ]
    assert passages(unheard, "secret", 500) == [{"said_by": "user", "text": "hm"}]


@pytest.mark.parametrize(
    ("until", "heard"),
    [
        ("Order seven", "Order seven"),
        ("order SEVEN", "Order seven"),
        ("ships on Monday", "Order seven ships on Monday,"),
        ("Order seven ships on Mon", "Order seven ships on"),
        ("", ""),
        ("something else", ""),
        (
            "Order seven ships on Monday, and arrives on Wednesday.",
            "Order seven ships on Monday, and arrives on Wednesday.",
        ),
    ],
)
def test_the_part_that_was_heard_is_found_by_its_words(until, heard):
    assert heard_part("Order seven ships on Monday, and arrives on Wednesday.", until) == heard


def test_without_a_report_no_more_was_heard_than_can_have_been_said():
    assert estimated_part("one two three four", 0.5, 15) == "one two"
    assert estimated_part("one two", 60, 15) == "one two"
    assert estimated_part("one two", 0, 15) == ""
