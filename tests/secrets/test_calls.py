"""Secrets of whole calls, made by others: callers of the voice corpus that rules may be made on."""

from __future__ import annotations

import re
import time

import pytest

from echoic.secrets import MARKER, Said, mask_turn
from secrets_kept import callers_of, kept_of

CALLERS = ("c02", "c06", "c14", "c18", "c22", "c26", "c31", "c37")


async def test_no_secret_of_a_call_is_kept_and_little_else_is_masked():
    callers = callers_of("train", *CALLERS)
    assert len(callers) == len(CALLERS)
    kept = await kept_of(callers)
    assert len(kept.secrets) >= 20
    assert kept.left == []
    assert len(kept.touched) <= kept.turns / 100, kept.touched


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("The gate is stiff.", "Gate twenty-two, flight six one nine four."),
        ("Which card did you pay with?", "The one ending four four oh one."),
        ("What's the reading on the dial?", "Four four one nine two."),
        ("How high is the door?", "Door one nine eight one millimetres, I think."),
        ("Can I have a number?", "Oh one six three two, nine six oh, four one one."),
    ],
)
def test_other_numbers_beside_things_that_are_opened_stay(line, said):
    assert mask_turn(Said("user", said), [Said("agent", line)]).masked.text == said


def told(*lines):
    """A dialogue as it is kept; a line begins with "A" or "U"."""
    kept = []
    for line in lines:
        said = Said("agent" if line[0] == "A" else "user", line[2:])
        masked = mask_turn(said, kept[-10:])
        for place, earlier in masked.earlier.items():
            at = place + max(0, len(kept) - 10)
            kept[at] = Said(kept[at].speaker, earlier.text)
        kept.append(Said(said.speaker, masked.masked.text))
    return [one.text for one in kept]


@pytest.mark.parametrize(
    "lines",
    [
        # the agent lets the caller go on
        (
            "U Can I give you my card number?",
            "A Go ahead.",
            "U four five three nine one two",
            "A yep",
            "U double eight",
        ),
        ("U Can I pay that by card?", "A Sure, whenever you're ready.", "U 4539 1488"),
        ("A Go ahead with the card.", "U four nine two nine", "A Yes", "U one two three four"),
        ("A I've texted you a six digit code.", "U Got it. Three three one", "A Yes?", "U nine oh six"),
        # it was wrong, or not all of it
        (
            "A What's the code on your screen?",
            "U Nine nine two.",
            "A I need six digits.",
            "U Oh sorry, nine nine two seven one four.",
        ),
        (
            "A What's the code on your screen?",
            "U Nine nine two seven.",
            "A That didn't work.",
            "U Try nine nine two eight then.",
        ),
        (
            "A What's your PIN?",
            "U Four four one two.",
            "A It says that's wrong.",
            "U Oh, maybe it's four four two one.",
        ),
        (
            "A And your password?",
            "U Bluebird.",
            "A Sorry, it's not accepting that.",
            "U Bluebird seven then.",
        ),
        # some of its letters or digits
        ("A What's the first digit of your passcode?", "U Five.", "A And the last?", "U Uh, eight I think."),
        (
            "A Could you give me the second and fourth digits of your PIN?",
            "U Second is seven, fourth's a two.",
        ),
        (
            "A What's the third letter of your password?",
            "U The third, let me count. It's a G.",
            "A And the sixth?",
            "U That's a P for Peter.",
        ),
        # what a question is for
        ("A Just a security question. Which primary school did you go to?", "U St Bride's, in Paisley."),
        ("A A couple of security questions for you. Which street did you grow up on?", "U Marlborough Road."),
        (
            "U It keeps rejecting my password.",
            "A What are you typing?",
            "U Sunflower, capital S, and then ninety nine.",
        ),
    ],
)
def test_each_answer_to_a_question_for_a_secret_is_masked(lines):
    left = " ".join(
        MARKER.sub("", text) for text, line in zip(told(*lines), lines, strict=True) if line[0] == "U"
    )
    for secret in (
        *(
            "four",
            "nine",
            "eight",
            "six",
            "seven",
            "five",
            "4539",
            "Bluebird",
            "Sunflower",
            "Peter",
            "It's a G",
            "a two",
        ),
        *("Bride", "Paisley", "Marlborough"),
    ):
        assert re.search(rf"\b{secret}\b", left) is None, left


@pytest.mark.parametrize(
    "lines",
    [
        (
            "U Can I pay by card?",
            "A Yes of course.",
            "U Great, it's for 4 people on the 24th, order 4417.",
        ),
        ("U Can I pay by card?", "A Sure.", "U Lovely. Table for six at half past seven then."),
        ("U Let me tell you about my card.", "A Go ahead.", "U I lost it on the 14th."),
        ("A Are you ready with your card order?", "U Yes, 250 cards please."),
        ("A And which card would you like to use?", "U The one ending 4412."),
        ("A I've sent you a discount code.", "U Thanks. My order was 4417 9980."),
        (
            "A I've sent you a code for the promotion. Anything else?",
            "U Yes, my phone number is 07700 900123.",
        ),
        (
            "A Could you tell me the last digit of the meter reading?",
            "U Seven.",
            "A And the first?",
            "U Oh, three.",
        ),
        ("A What's your name?", "U Sam.", "A And the last?", "U Okafor."),
        ("A What's the third word on the sign?", "U It's a K."),
        ("A We have a security question policy. Which branch do you use?", "U Bristol, on Park Street."),
        (
            "A You can reset it with a security question. Where are you calling from?",
            "U Bristol, on Park Street.",
        ),
        ("A That was the last security question, thank you. What's your postcode?", "U BS1 4DJ."),
        (
            "A That's the security questions done. What can I do for you?",
            "U I'd like to book Rosewood House.",
        ),
        (
            "U My password isn't working.",
            "A What have you tried?",
            "U I've tried turning it off and on again.",
        ),
        ("U My password isn't working.", "A What are you using?", "U An iPhone 12."),
    ],
)
def test_what_is_said_beside_a_question_for_no_secret_stays(lines):
    assert told(*lines) == [line[2:] for line in lines]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("That's correct, thank you. And your house number?", "Nineteen."),
        ("Thanks. And the first line of your address?", "Nineteen Acacia Avenue."),
        ("It's not the usual Monday, is it?", "No, the 24th, at half past seven, for six people."),
        ("Sorry, I didn't catch that.", "I said I want to speak to a person."),
    ],
)
def test_what_is_said_after_a_secret_stays(agent, said):
    assert told("A What's your PIN?", "U Four four one two.", f"A {agent}", f"U {said}")[-1] == said


@pytest.mark.parametrize("unit", ["can i ", "let me 1 ", "what's the first ", "first and second and "])
def test_a_long_turn_before_is_read_at_once(unit):
    before = [Said("agent", unit * 2000), Said("user", unit * 2000)]
    began = time.process_time()
    mask_turn(Said("user", "4 4 1 2"), before)
    assert time.process_time() - began < 2
