"""Only facts about the business become global; everything else, and every doubt, stays private."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import InvalidInput
from echoic.memory.sharing import REASONS, Classifier, RuleClassifier, Together, Verdict, agree, classify

GLOBAL = Verdict("global", "hours")
PRIVATE = Verdict("private", "person")


def test_no_private_line_becomes_global_and_most_facts_do(classification):
    shared = [line for line in classification if classify(line["text"], line["key"]).visibility == "global"]
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
    assert classify(text, None).reason == reason
    assert REASONS[reason]


@pytest.mark.parametrize(
    "key",
    """user_name favorite_store preferences birthday address email phone first_name zbigniew_hours anaHours
    5551234567 her_store __ \u043a\u043b\u044e\u0447 ana@example.com hours_5551234567 wife_shop
    medical_notes""".split(),
)
def test_a_key_that_speaks_of_a_person_keeps_any_text_private(key):
    assert classify("The store opens at 9 am", None).visibility == "global"
    assert classify("The store opens at 9 am", key) == Verdict("private", "key")


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
    assert classify(text.format(name), None).visibility == "private"


@settings(deadline=None)
@given(st.text(max_size=80), st.none() | st.text(max_size=20))
def test_the_verdict_is_always_the_same_and_never_an_error(text, key):
    verdict = classify(text, key)
    assert verdict == classify(text, key)
    assert verdict.reason in REASONS


@settings(deadline=None)
@given(st.text("\u0400\u0416\u044f\u05d0\u3042\u6f22 ", min_size=1, max_size=40))
def test_a_language_the_rules_cannot_read_stays_private(text):
    assert classify(text, None).visibility == "private"


@pytest.mark.parametrize(
    ("a", "b", "agreed"),
    [
        (GLOBAL, GLOBAL, GLOBAL),
        (GLOBAL, PRIVATE, PRIVATE),
        (PRIVATE, GLOBAL, PRIVATE),
        (PRIVATE, Verdict("private", "doubt"), PRIVATE),
    ],
)
def test_private_wins_every_disagreement(a, b, agreed):
    assert agree(a, b) == agreed


class Says:
    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.asked = 0

    async def classify(self, text: str, key: str | None) -> Verdict:
        self.asked += 1
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


async def test_a_model_that_fails_keeps_the_text_private():
    both = Together(RuleClassifier(), Says(ConnectionError("no route")))
    assert await both.classify("The store opens at 9 am", None) == Verdict("private", "failed")


async def test_a_model_that_disagrees_keeps_the_text_private():
    both = Together(RuleClassifier(), Says(Verdict("private", "model")))
    assert await both.classify("The store opens at 9 am", None) == Verdict("private", "model")


async def test_a_model_cannot_share_what_the_rules_keep_and_is_not_even_asked():
    model = Says(GLOBAL)
    assert (await Together(RuleClassifier(), model).classify("Ana likes tea", None)).visibility == "private"
    assert model.asked == 0


async def test_where_all_agree_the_text_is_global():
    assert await Together(RuleClassifier(), Says(GLOBAL)).classify("The store opens at 9 am", None) == GLOBAL


def test_the_rules_are_a_classifier():
    assert isinstance(RuleClassifier(), Classifier)


@pytest.mark.parametrize(
    ("visibility", "reason"), [("public", "hours"), ("global", "because"), ("", "doubt")]
)
def test_a_verdict_that_is_not_documented_cannot_be_made(visibility, reason):
    with pytest.raises(InvalidInput):
        Verdict(visibility, reason)


def test_no_classifier_is_no_judgement():
    with pytest.raises(InvalidInput):
        Together()
