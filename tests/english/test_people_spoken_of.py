"""Whom of the caller's own "he" and "she" mean."""

from __future__ import annotations

import pytest

from echoic.english.facts import PeopleSpokenOf
from echoic.english.sentences import sentences


def meant(call: str) -> list[str]:
    """Whom the pronouns of the last turn mean, in order."""
    people = PeopleSpokenOf()
    found: list[dict[int, str]] = []
    for turn in call.split("|"):
        found = people.hear(sentences(turn.removeprefix(">")), by_agent=turn.startswith(">"))
    return [words for sentence in found for words in sentence.values()]


@pytest.mark.parametrize(
    ("call", "who"),
    [
        ("My daughter's coming. She's nine.", "my daughter"),
        ("me mam's here shes deaf", "my mam"),
        ("Dad's here. He's deaf.", "my dad"),
        ("the missus is here and shes vegan", "my missus"),
        ("We've got a whippet. He's on Metacam.", "my whippet"),
        ("I've an old greyhound called Biscuit. He's blind.", "my greyhound"),
        ("My wee boy's in. He's four.", "my boy"),
        ("my sister in laws coming shes coeliac", "my sister in law"),
        ("My wife, Ann, rang. She's in bed.", "my wife"),
        ("It's Ann, my wife, and she's in bed.", "my wife"),
        ("My son. He's called Tom.|>And how old is Tom?|He's six.", "my son"),
        (">And your husband?|He's vegan.", "my husband"),
        ("My mum gave me your number.|>And your wife?|She's vegan.", "my wife"),
        ("My husband's here.|>Thanks, Ann.|He's deaf.", "my husband"),
        ("he's not in and my nephew Harry he's away", "my nephew"),
    ],
)
def test_it_is_the_one_of_the_callers_own_of_whom_the_call_speaks(call, who):
    assert who in meant(call)


@pytest.mark.parametrize(
    "call",
    [
        "She's nine.",
        "My son's coming. She's nine.",
        "My son and my brother are here. He's nine.",
        "My son saw the doctor. He's nice.",
        "My son met Mr Khan. He's nice.",
        "My son's teacher rang. He's nice.",
        "My wife's sister rang. She's nice.",
        "Her son's here. He's nine.",
        "My other son's here. He's nine.",
        "My ex husband's here. He's nine.",
        'My lad said "he\'s nine".',
        ">My son's the same.|He's nine, is he?",
        "My son's here.|>Is Steve in?|He's nine.",
        "He's deaf, my dad.|>My brother is too.|He's old.",
        "My dad let him in.|>Good.|He's old.",
        "My mum's here.|>Fine.|The boiler's off.|>OK.|It's leaking.|>OK.|She's old.",
    ],
)
def test_in_doubt_it_is_nobody(call):
    assert meant(call) == []


def test_what_was_not_to_be_read_is_not_known():
    people = PeopleSpokenOf()
    people.hear(sentences("My daughter's coming."))
    people.forget()
    assert people.hear(sentences("She's nine.")) == [{}]
