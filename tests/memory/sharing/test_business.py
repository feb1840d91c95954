"""What looks like business is proposed to an operator; what is personal never is, whatever it looks like.

The rules were developed on `business.jsonl`. `business_blind.jsonl` and `business_blind_2.jsonl` were written when
the rules stood and counted once before anything was changed: 16 of 30 and 15 of 30 facts proposed, none of 60
personal lines. Their misses were looked at since, so they belong to development now.
"""

from __future__ import annotations

import pytest

from echoic.memory.sharing import DEFAULT_GLOBAL_KINDS, Shareable, weigh

from .conftest import lines, share

FLOORS = {"business": 0.85, "business_blind": 0.9, "business_blind_2": 0.6}


@pytest.mark.parametrize("name", FLOORS)
def test_no_personal_line_is_proposed_and_most_business_is(name):
    labelled = lines(name)
    proposed = [line for line in labelled if share(line["text"], line["key"]) is not None]
    assert [line["text"] for line in proposed if line["visibility"] == "private"] == []
    business = sum(line["visibility"] == "proposed" for line in labelled)
    assert len(proposed) / business >= FLOORS[name]


def test_what_only_looks_like_business_waits_for_an_operator():
    for line in lines("business"):
        weighed = weigh(line["text"], line["key"])
        if isinstance(weighed, Shareable) and weighed.reason == "business":
            assert not weighed.states <= DEFAULT_GLOBAL_KINDS


@pytest.mark.parametrize(
    ("name", "surname"), [("Zbigniew", "Okonkwo"), ("Xiomara", "Achterberg"), ("Siobhan", "Nguyen")]
)
@pytest.mark.parametrize(
    "text",
    [
        "We ship worldwide, ask {0} for a label",
        "We offer {0} free consultations",
        "We accept Visa and {0}'s vouchers",
        "Our vegan menu was written by {0} {1}",
        "{0} was founded in 1998 by {1}",
        "Our mechanics are {0} and {1}",
        "We are open 9 to 17, {0} has the key",
        "Orders over 50 euros are packed by {1}",
        "Free returns within 60 days to {0} {1}",
    ],
)
def test_somebody_s_name_in_what_looks_like_business_keeps_it_private(text, name, surname):
    assert share(text.format(name, surname), None) is None


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ("The trial lasts fourteen days", True),
        ("Support answers within one working day", True),
        ("Bicycles are allowed on board", True),
        ("Reservations can be cancelled until noon", True),
        ("My trial lasts fourteen days", False),
        ("Our membership is not ready", False),
        ("Visits are allowed on Sundays at the prison", False),
        ("Her refund takes five working days", False),
    ],
)
def test_what_only_a_business_has_is_proposed_and_somebody_s_own_is_not(text, proposed):
    assert (share(text, None) is not None) == proposed
