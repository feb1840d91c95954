"""Who has the telephone, as far as they say so."""

from __future__ import annotations

import pytest

from echoic.english.sentences import hands_over, is_back, takes_over


@pytest.mark.parametrize(
    "text",
    [
        "I'll hand you over to Mei, she has the thing about the damp.",
        "I'll just pass you to my wife.",
        "Let me put him on.",
        "i'll put my daughter on for you",
        "I'll pass the phone to Tom.",
        "Hang on, here's Tom.",
        "I'll put her on. She's not fond of the telephone.",
        "I give you Aoife again.",
        "And we've a cat. I'm going to hand you back to my mum now.",
    ],
)
def test_who_gives_the_telephone_away_says_so(text):
    assert hands_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'll pass you to my wife, no, never mind.",
        "I'll pass you to Tom. No, never mind.",
        "I'll put the kettle on.",
        "Put me on the list.",
        "I'll put it on the calendar.",
        "Can you put me through to billing?",
        "I'll give you my number.",
        "Here's my number.",
        "Here's the thing.",
        "I gave it to my wife.",
        "You put me on losartan.",
        "I'll put you on speaker.",
        "I'd put him on, but he's asleep.",
        "Oh, here she is now.",
        "",
    ],
)
def test_who_keeps_the_telephone_says_no_such_thing(text):
    assert not hands_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, Mei Tanaka here, I'm the other tenant.",
        "Yes, this is Tom.",
        "Right. It's Mei.",
        "Tom Baker speaking.",
    ],
)
def test_who_was_given_the_telephone_says_a_name(text):
    assert takes_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello? Hello?",
        "Hi, she's busy.",
        "So where were we?",
        "It's Tuesday I want.",
        "it's broken",
        "She's out.",
        "",
    ],
)
def test_who_goes_on_says_none(text):
    assert not takes_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Me again. Did you get that?",
        "Hi, it's me.",
        "I'm back.",
        "Hello, it's Aoife again.",
        "okay, me again",
        "Hi, she doesn't want to talk, so it's still me.",
        "Sorry, that was my wife.",
        "Okay, I've got the phone back.",
    ],
)
def test_who_has_it_back_says_so(text):
    assert is_back(text)


@pytest.mark.parametrize("text", ["It's happened again.", "I have asthma.", "Hello, Mei here.", "Not again."])
def test_who_does_not_say_so_is_not_back(text):
    assert not is_back(text)
