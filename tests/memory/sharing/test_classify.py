"""Only facts about the business become global; everything else, and every doubt, stays private."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import InvalidInput
from echoic.memory.sharing import REASONS, Shareable, Verdict, weigh


def visibility(text: str, key: str | None = None) -> str:
    return "global" if isinstance(weigh(text, key), Shareable) else "private"


def test_no_private_line_becomes_global_and_most_facts_do(classification):
    shared = [line for line in classification if visibility(line["text"], line["key"]) == "global"]
    leaked = [line["text"] for line in shared if line["visibility"] == "private"]
    facts = sum(line["visibility"] == "global" for line in classification)
    assert leaked == []
    assert (len(shared) - len(leaked)) / facts >= 0.85


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The store opens at 9 am", "hours"),
        ("The large pizza costs 12 dollars", "price"),
        ("Returns are accepted within 30 days", "policy"),
        ("The laptop comes with a charger", "product"),
        ("The restrooms are on the second floor", "location"),
        ("The store's phone number is 212-555-0187", "contact"),
        ("The lasagna contains gluten", "menu"),
        ("Happy hour is from 4 to 6 pm on weekdays", "event"),
        ("To reset the router, hold the button for ten seconds", "procedure"),
        ("The SSN is 078-05-1120", "identifier"),
        ("We open at nine", "business"),
        ("We open our presents at nine", "person"),
        ("The wife opens the store at nine", "relation"),
        ("Likes the store", "preference"),
        ("The patient has asthma", "health"),
        ("The rent is 900 dollars", "belonging"),
        ("The store was closed", "episode"),
        ("Always recommend the large pizza", "instruction"),
        ("Zbigniew opens the store at nine", "name"),
        ("Some text", "doubt"),
    ],
)
def test_a_verdict_says_why(text, reason):
    assert weigh(text, None).reason == reason
    assert REASONS[reason]


@pytest.mark.parametrize(
    "key",
    """user_name favorite_store preferences birthday address email phone first_name zbigniew_hours anaHours
    5551234567 her_store __ \u043a\u043b\u044e\u0447 ana@example.com hours_5551234567 wife_shop
    medical_notes""".split(),
)
def test_a_key_that_speaks_of_a_person_keeps_any_text_private(key):
    assert visibility("The store opens at 9 am") == "global"
    assert weigh("The store opens at 9 am", key).reason in {"key", "identifier"}


@pytest.mark.parametrize(
    "name", ["Zbigniew", "Xiomara", "Okonkwo", "Rose", "Mark", "Will", "Bill", "Grace", "April"]
)
@pytest.mark.parametrize(
    "text",
    [
        "{} opens the store at 9 am",
        "The store opens at 9 am for {}",
        "The store opens at 9 am, says {}",
        "The {} store opens at 9 am",
    ],
)
def test_a_name_anywhere_keeps_a_fact_private(name, text):
    assert visibility(text.format(name)) == "private"


@settings(deadline=None)
@given(st.text(max_size=80), st.none() | st.text(max_size=20))
def test_the_verdict_is_always_the_same_and_never_an_error(text, key):
    verdict = weigh(text, key)
    assert verdict == weigh(text, key)
    assert verdict.reason in REASONS


@settings(deadline=None)
@given(st.text("\u0400\u0416\u044f\u05d0\u3042\u6f22 ", min_size=1, max_size=40))
def test_a_language_the_rules_cannot_read_stays_private(text):
    assert visibility(text) == "private"


@pytest.mark.parametrize(
    ("visibility", "reason"), [("public", "hours"), ("global", "because"), ("", "doubt")]
)
def test_a_verdict_that_is_not_documented_cannot_be_made(visibility, reason):
    with pytest.raises(InvalidInput):
        Verdict(visibility, reason)
