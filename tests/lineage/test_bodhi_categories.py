"""Bodhi's categories, heard by rules: entities, decisions and requirements of the user's own, and of nobody else."""

from __future__ import annotations

import pytest

import echoic
from echoic import Turn
from echoic.memory.listening import listen

ENTITIES = {
    "I work at Acme.": "Acme",
    "i work for lufthansa": "Lufthansa",
    "I'm employed by Siemens": "Siemens",
    "I've been working at Google for three years": "Google",
    "my employer is Initech": "Initech",
    "I just started working at Spotify.": "Spotify",
    "I got a job at Nokia": "Nokia",
    "We work at Acme and live in Porto": "Acme",
    "I'm an engineer at Boeing": "Boeing",
    "I currently work for Bosch": "Bosch",
    "I work full time at Ikea": "Ikea",
}
NO_ENTITIES = [
    "Do I work at Acme?",
    "if I worked at Acme I would be rich",
    "my sister works at Acme",
    "I don't work at Acme",
    "I used to work at Acme",
    "does she work for Acme?",
    "he said I work at Acme",
    "I wish I worked at Acme",
    "you work at Acme, right?",
    "imagine I work at Acme",
    "should I work at Acme?",
]
DECISIONS = {
    "I chose the Pro plan": ("plan", "choose the Pro plan"),
    "we went with the annual plan": ("plan", "go with the annual plan"),
    "I've picked the window seat": ("seat", "pick the window seat"),
    "We've chosen the Enterprise tier.": ("tier", "choose the Enterprise tier"),
    "i signed up for the family plan": ("plan", "sign up for the family plan"),
    "we opted for the extended coverage": ("coverage", "go for the extended coverage"),
    "I switched to the basic plan": ("plan", "switch to the basic plan"),
    "We've upgraded to the premium subscription": ("subscription", "upgrade to the premium subscription"),
    "I want monthly billing": ("billing", "have monthly billing"),
    "let's do monthly billing": ("billing", "do monthly billing"),
    "we'll go with annual billing": ("billing", "go with annual billing"),
    "I'd like to be billed quarterly": ("billing", "be billed quarterly"),
    "please bill me monthly": ("billing", "be billed monthly"),
    "let's go with express shipping": ("shipping", "go with express shipping"),
    "I'll take the corner room": ("room", "take the corner room"),
}
NO_DECISIONS = [
    "should I choose the Pro plan?",
    "did I choose the Pro plan?",
    "if I chose the Pro plan what would it cost",
    "my boss chose the Pro plan",
    "they went with the annual plan",
    "I didn't choose the Pro plan",
    "I almost chose the Pro plan",
    "I would have chosen the Pro plan",
    "I chose the Pro plan last year",
    "when I chose the Pro plan it was cheaper",
    "do you have monthly billing?",
    "how does monthly billing work",
    "I don't want monthly billing",
    "what if I want monthly billing",
    "which plan did we choose?",
    "I chose the fish and it was terrible",
    "maybe I chose the Pro plan",
]
REQUIREMENTS = {
    "we need HIPAA-compliant storage": "HIPAA-compliant storage",
    "i need hipaa compliant storage": "hipaa compliant storage",
    "We require SOC 2 certified hosting.": "SOC 2 certified hosting",
    "I need end-to-end encrypted backups": "end-to-end encrypted backups",
    "we need a PCI-compliant payment provider": "a PCI-compliant payment provider",
    "It must be GDPR compliant": "GDPR compliant",
    "our storage must be HIPAA-compliant": "HIPAA-compliant",
    "the platform has to support single sign-on": "support single sign-on",
    "It has to comply with GDPR": "comply with GDPR",
    "I need a dog-friendly flat": "a dog-friendly flat",
    "we must have on-premises hosting": "on-premises hosting",
    "the data must stay in the EU": "stay in the EU",
}
NO_REQUIREMENTS = [
    "do we need HIPAA-compliant storage?",
    "we don't need HIPAA-compliant storage",
    "if we need HIPAA-compliant storage we will call",
    "my client needs HIPAA-compliant storage",
    "is your storage HIPAA-compliant?",
    "your storage is HIPAA-compliant",
    "they said it must be GDPR compliant",
    "does it have to be GDPR compliant?",
    "must it support single sign-on?",
    "I need a break",
    "we need to talk",
    "it has to be him",
]


def of(kind: str, text: str) -> list[tuple[str, str]]:
    return [(one.key, one.text) for one in listen(text) if one.category == kind and not one.retracts]


@pytest.mark.parametrize("text", ENTITIES)
def test_where_one_works_is_an_entity(text):
    assert ("employer", ENTITIES[text]) in of("entity", text)


@pytest.mark.parametrize("text", DECISIONS)
def test_what_was_chosen_is_a_decision(text):
    thing, value = DECISIONS[text]
    assert of("decision", text) == [(f"decision:{thing}", value)]


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_what_something_has_to_be_is_a_requirement(text):
    assert [value for _, value in of("requirement", text)] == [REQUIREMENTS[text]]


@pytest.mark.parametrize("text", NO_ENTITIES)
def test_no_employer_is_made_of_what_is_asked_supposed_denied_or_anothers(text):
    assert not [key for key, _ in of("entity", text) if key == "employer"]


@pytest.mark.parametrize("text", NO_DECISIONS)
def test_no_decision_is_made_of_what_is_asked_supposed_denied_past_or_anothers(text):
    assert of("decision", text) == []


@pytest.mark.parametrize("text", NO_REQUIREMENTS)
def test_no_requirement_is_made_of_what_is_asked_supposed_denied_or_anothers(text):
    assert of("requirement", text) == []


async def test_the_documents_sentences_are_kept_with_their_categories():
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        said = ["I work at Acme.", "I chose the Pro plan.", "Monthly billing, I want monthly billing.",
                "We need HIPAA-compliant storage.", "I prefer dark mode."]  # fmt: skip
        await call.append(*(Turn(speaker="user", text=text) for text in said))
        await call.learn()
        kept = {fact.key: fact.category for fact in await ana.facts()}
        assert kept == {
            "employer": "entity",
            "decision:plan": "decision",
            "decision:billing": "decision",
            "requirement:hipaa-compliant storage": "requirement",
            "preference:dark mode": "preference",
        }
        await call.append(Turn(speaker="user", text="We switched to the Enterprise plan."))
        await call.learn()
        assert (await ana.get("decision:plan")).text == "switch to the Enterprise plan"
        assert next(m.text for m in await ana.history("decision:plan")) == "choose the Pro plan"
