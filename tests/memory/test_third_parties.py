"""What a deployment keeps of the people a user tells of."""

from __future__ import annotations

import pytest

import echoic
from echoic import InvalidInput, Turn
from echoic.memory.extraction.reconciliation import is_dropped

OWN = [
    "I live in Lisbon and I am allergic to peanuts.",
    "My name is Ana Flores.",
    "I work as a teacher.",
]
ADULTS = ["My sister's name is Ruth.", "My husband is called Ivo."]
CHILDREN = ["I have a daughter called Mia.", "My son's name is Tom."]
KEPT = {"keep": (True, True), "adults": (True, False), "drop": (False, False)}
"""Whether other adults and children are kept."""


@pytest.mark.parametrize("rule", KEPT)
async def test_only_those_people_whom_the_deployment_keeps_become_memories(rule, tmp_path):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with echoic.open(url, embedder="lexical", third_parties=rule) as service:
        ana = service.user("ana")
        call = await ana.conversation()
        await call.append(*(Turn(speaker="user", text=text) for text in [*OWN, *ADULTS, *CHILDREN]))
        await call.complete()
        await service.settle()
        learned = " ".join(f"{fact.key} {fact.text} {fact.statement}" for fact in await ana.facts())
        adults, children = KEPT[rule]
        assert all(word in learned for word in ("Lisbon", "peanuts", "Ana"))
        assert [word in learned for word in ("Ruth", "Ivo")] == [adults] * 2
        assert [word in learned for word in ("Mia", "Tom")] == [children] * 2
        for key, value, kept in (
            ("sister_name", "Ruth", adults),
            ("note", "Her husband has diabetes", adults),
            ("child:mia", "Mia", children),
            ("note", "the user's daughter is seven", children),
            ("job", "teacher", True),
        ):
            if kept:
                await ana.set(key, value)
                continue
            with pytest.raises(InvalidInput, match="keeps nothing about") as refused:
                await ana.set(key, value)
            assert value not in str(refused.value)
            async with echoic.open("memory://", embedder="lexical") as elsewhere:
                await elsewhere.user("ana").set(key, value, visibility="private")
                exported = await elsewhere.user("ana").export()
            with pytest.raises(InvalidInput, match="keeps nothing about"):
                await service.user("bob").restore(exported)
            assert await service.user("bob").facts() == []


def test_what_a_user_says_of_themselves_names_nobody_else():
    for text in (
        "I am a doctor",
        "The user works as a teacher",
        "has a doctor's appointment on Friday",
        "grew up as an only child",
        "prefers a quiet room",
        "has a cat called Mother",
        "Nan bread is what I like",
        "you can call me grandpa joe",
        "they've made me manager",
        "my dog Bertie's on insulin",
        "my girlish laugh",
        "He's put me on statins",
        "Sheffield is where I live",
        "It's vegan",
    ):
        assert not is_dropped("drop", None, text), text
    for text in (
        "my older brother snores",
        "our neighbour plays drums",
        "The user has two kids",
        "her ex-husband",
        "Dad can't have grapefruit",
        "just me brother and his dog",
        "The missus is allergic to bee stings",
        "my grandads diabetic",
        "I'm her carer",
        "my boy is autistic",
        "our youngest has asthma",
        "My oldest's on insulin",
        "my hubby is a vegan",
        "She's coeliac",
        "shes on the blood thinner",
        "He can't have nuts",
        "Natalie's vegetarian",
        "Tom is diabetic",
    ):
        assert is_dropped("drop", None, text), text
    assert not is_dropped("adults", None, "my older brother snores")
    assert not is_dropped("adults", None, "Dad can't have grapefruit")
    assert is_dropped("adults", None, "my boy is autistic")


def test_an_unknown_rule_is_refused():
    with pytest.raises(InvalidInput, match="'keep', 'adults' or 'drop'"):
        echoic.open("memory://", embedder="lexical", third_parties="some")


@pytest.mark.parametrize("rule", ["keep", "drop"])
async def test_what_is_told_of_relatives_is_kept_only_where_it_may_be(rule):
    told = """My daughter Priya is allergic to penicillin.|me brother keith can't have nuts|The missus is a vegan.
    |Dad's diabetic.|my boy is autistic|I'm here with my husband Graham.|It's me and Colin, that's my partner.
    |Natalie's vegetarian. My girlfriend.|My wife's here. She's coeliac.|its our lad hes autistic""".split(
        "|"
    )
    async with echoic.open("memory://", embedder="local", third_parties=rule) as service:
        ana = service.user("ana")
        call = await ana.conversation()
        await call.append(*(Turn(speaker="user", text=text.strip()) for text in told))
        await call.append(Turn(speaker="agent", text="And your mother?"))
        await call.append(Turn(speaker="user", text="Mariam eats anything."))
        await call.complete()
        await call.distil()
        await service.settle()
        facts = await ana.facts()
    assert bool(facts) == (rule == "keep")
    assert not [fact for fact in facts if fact.key and fact.key.startswith(("allergy", "diet", "user_name"))]
