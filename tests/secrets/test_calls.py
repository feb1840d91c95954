"""Secrets of whole calls, made by others: callers of the voice corpus that rules may be made on."""

from __future__ import annotations

import pytest

from echoic.secrets import Said, mask_turn
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
