"""What of an answer was heard, by the words that speech output reports. The answers are made up."""

from __future__ import annotations

import pytest

from echoic.errors import InvalidInput
from echoic.text.heard_words import heard_ends, share_ends

PRICE = "It costs $5.00 — today only. Dr. Smith will call at 8:30pm 🙂 about the AT&T bill."


@pytest.mark.parametrize(
    ("said", "reported", "heard"),
    [
        (PRICE, "it costs $5.00", "It costs $5.00"),
        (PRICE, "it costs five dollars", "It costs $5.00"),
        (PRICE, "It costs $5.00 - today on", "It costs $5.00 — today"),
        (PRICE, "it costs five dollars today only doctor smith", "It costs $5.00 — today only. Dr. Smith"),
        (
            PRICE,
            "it costs 5 dollars today only doctor smith will call at eight thirty p m about the a t and t bill",
            PRICE,
        ),
        ("Your code is 4242, thanks.", "your code is four two", "Your code is"),
        ("Your code is 4242, thanks.", "your code is four two four two", "Your code is 4242,"),
        ("**Bold** and _soft_ check-in.", "bold and soft check in", "**Bold** and _soft_ check-in."),
        ("I'd say it’s — well — fine.", "id say its well", "I'd say it’s — well"),
        ("The PIN is [PIN], is that right?", "the pin is eight three six one is", "The PIN is [PIN], is"),
        ("The PIN is [PIN], is that right?", "the pin is eight three", "The PIN is"),
        ("你好，世界。今天天气很好。", "你好世界", "你好，世界。"),
        ("🙂 Hello!", "", ""),
    ],
)
def test_words_count_as_heard_however_they_were_read_aloud(said, reported, heard):
    assert said[: heard_ends([said], reported)[0]] == heard


@pytest.mark.parametrize(
    "reported", ["Hello", "it takes five dollars", f"{PRICE} and there is more of it to come"]
)
def test_what_was_not_said_is_refused(reported):
    with pytest.raises(InvalidInput, match="was heard"):
        heard_ends(["It costs a lot.", "Today only."], reported)


def test_a_long_answer_is_compared_to_its_end():
    said = " ".join(f"word{n} costs $5.00," for n in range(500))
    assert heard_ends([said], said)[0] == len(said)


def test_a_fraction_or_a_number_of_words_is_cut_between_words():
    said = ["Half of it.", "And the rest."]
    assert share_ends(said, fraction=0) == [0, 0]
    assert share_ends(said, fraction=0.5) == [len("Half of it."), 0]
    assert share_ends(said, fraction=1) == [len(text) for text in said]
    assert share_ends(said, words=4) == [len("Half of it."), len("And")]
    assert share_ends(said, words=99) == [len(text) for text in said]
