"""A memory with the condition under which it applies, as Bodhi's facts have their context."""

from __future__ import annotations

import pytest
from pydantic_ai import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import echoic
from echoic.capability.tools import MemoryTools
from echoic.memory.keyless.intents import said_back
from echoic.session.agents import CallContext
from echoic.types import Directives, Turn

TEA = "I prefer tea, but only at work."


async def told(service, *texts, user="ana"):
    ana = service.user(user)
    call = await ana.conversation("call")
    for number, text in enumerate(texts):
        await call.append(Turn(speaker="user", text=text, id=f"t{number}"))
    await service.distil()
    return ana


async def only(service, *texts):
    (fact,) = await (await told(service, *texts)).facts()
    return fact


@pytest.mark.parametrize(
    ("said", "text", "context"),
    [
        (TEA, "prefers tea", "only at work"),
        ("i prefer tea but only at work", "prefers tea", "only at work"),
        ("I prefer tea, though only in the morning.", "prefers tea", "only in the morning"),
        ("I prefer tea, except on Sundays.", "prefers tea", "except on Sundays"),
        ("I prefer tea, but not at work.", "prefers tea", "not at work"),
        ("I like jazz when I'm driving.", "likes jazz", "when they are driving"),
        ("When I'm driving, I like jazz.", "likes jazz", "when they are driving"),
        ("when i'm driving i like jazz", "likes jazz", "when they are driving"),
        ("I like silence while I work.", "likes silence", "while they work"),
        ("I love hiking, unless it rains.", "loves hiking", "unless it rains"),
        ("I like music, except when I'm working.", "likes music", "except when they are working"),
        ("I prefer the bus if it's raining.", "prefers the bus", "if it's raining"),
        ("If it's raining, I prefer the bus.", "prefers the bus", "if it's raining"),
        ("At work I prefer tea.", "prefers tea", "at work"),
        ("For breakfast I like porridge.", "likes porridge", "for breakfast"),
        ("I hate phone calls before noon.", "hates phone calls", "before noon"),
        ("I don't like jazz, except at parties.", "doesn't like jazz", "except at parties"),
        ("I prefer aisle seats, but only on short flights.", "prefers aisle seats", "only on short flights"),
        ("I prefer email during the week.", "prefers email during the week", "during the week"),
        ("I prefer a window seat when I fly overnight.", "prefers a window seat", "when they fly overnight"),
        ("I want short answers when I'm in the car.", "short", "when they are in the car"),
        ("My favourite drink is tea, at least in winter.", "tea", "at least in winter"),
        (
            "I enjoy cooking as long as my kids are asleep.",
            "enjoys cooking",
            "as long as their kids are asleep",
        ),
    ],
)
async def test_a_preference_is_kept_with_the_condition_that_was_said(memory, said, text, context):
    fact = await only(memory, said)
    assert (fact.text, fact.context, fact.category) == (text, context, "preference")


@pytest.mark.parametrize(
    "said",
    [
        "I like jazz, if I remember correctly.",
        "I love pizza if I'm honest.",
        "I prefer tea, if possible.",
        "If you ask me, I prefer tea.",
        "I like jazz if that's okay.",
        "I prefer tea when I was young.",
        "If I were rich I'd like yachts.",
        "Do I like jazz when I'm driving?",
        "My sister likes jazz when she's driving.",
        "I like you when you're funny.",
        "If people know I like jazz, they send me records.",
        "I wish I liked jazz when I'm driving.",
        "He says I prefer tea, but only at work.",
    ],
)
async def test_politeness_suppositions_and_other_peoples_words_are_no_conditions(memory, said):
    ana = await told(memory, said)
    assert not [fact for fact in await ana.facts() if fact.context], said


@pytest.mark.parametrize("said", ["I prefer tea.", "I prefer tea, not coffee.", "I prefer tea right now."])
async def test_a_preference_without_a_condition_has_none(memory, said):
    assert (await only(memory, said)).context is None


async def test_what_follows_a_condition_is_heard_too(memory):
    ana = await told(memory, "I like hiking but not when it's hot and I live in Boston")
    facts = {fact.key: fact for fact in await ana.facts()}
    assert facts["preference:hiking"].context == "not when it's hot"
    assert facts["home"].text == "Boston"
    assert facts["home"].context is None


async def test_the_condition_is_shown_wherever_the_preference_is(memory):
    ana = await told(memory, TEA)
    (hit, *_) = [hit for hit in await ana.query("what does the user like to drink, tea?") if hit.memory]
    assert hit.memory.context == "only at work"
    assert [fact.context for fact in await ana.facts()] == ["only at work"]
    assert "only at work" in (await ana.block()).text
    packed = await ana.brief("which tea does the user prefer?")
    assert 'applies: "only at work"' in packed.text
    assert said_back(hit.memory) == "You prefer tea, only at work."
    tools = MemoryTools(ana, lambda: None, lambda: None, timeout_s=30, changed=_nothing)
    found = await tools.agent_memory("query", query="tea")
    assert "only at work" in [answer.get("context") for answer in found["result"]]

    class Session:
        memory = ana

    context = CallContext(Session(), "robin", Directives(), None)
    assert [fact.text for fact in await context.memory_facts()] == ["The user prefers tea, only at work."]


async def _nothing():
    return None


async def test_a_condition_can_be_asked_for(memory):
    ana = await told(memory, TEA, "I live in Oslo.", "My dog is called Rex.")
    best = next(hit for hit in await ana.query("at work") if hit.memory)
    assert best.memory.text == "prefers tea"


async def test_said_again_without_its_condition_it_holds_always_and_the_history_has_both(memory):
    ana = await told(memory, TEA, "I prefer tea.")
    assert [fact.context for fact in await ana.facts()] == [None]
    assert [version.context for version in await ana.history("preference:tea")] == ["only at work", None]


async def test_said_again_with_a_condition_it_gets_one(memory):
    ana = await told(memory, "I prefer tea.", TEA)
    assert [fact.context for fact in await ana.facts()] == ["only at work"]


def proposing(**item):
    """A model that proposes one memory of the first turn."""
    change = {"action": "add", "turns": ["t1"], "category": "preference", **item}

    def answer(_messages, info):
        tool = info.output_tools[0]
        return ModelResponse(parts=[ToolCallPart(tool.name, {"changes": [change], "read_up_to": "t1"})])

    return FunctionModel(answer)


async def by_model(tmp_path, said, **item):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with echoic.open(url, embedder="lexical", model=proposing(**item)) as service:
        ana = await told(service, said)
        return await ana.facts()


async def test_a_condition_that_a_model_supplies_is_kept(tmp_path):
    said = "Tea is what keeps me going at the office, nowhere else."
    facts = await by_model(tmp_path, said, sentence="Tea keeps the user going.", context="at the office")
    assert [(fact.statement or fact.text, fact.context) for fact in facts] == [
        ("Tea keeps the user going.", "at the office")
    ]


@pytest.mark.parametrize("context", ["only at work", None, "at work"])
async def test_of_what_the_rules_heard_a_model_takes_no_condition_away(tmp_path, context):
    facts = await by_model(tmp_path, TEA, sentence="The user prefers tea.", context=context)
    assert len(facts) == 1
    assert "at work" in facts[0].context


async def test_what_the_rules_heard_without_its_condition_gets_it_from_a_model(tmp_path):
    said = "I prefer tea. Well, that is to say at the office."
    facts = await by_model(tmp_path, said, sentence="The user prefers tea.", context="at the office")
    assert [(fact.key, fact.text, fact.context) for fact in facts] == [
        ("preference:tea", "prefers tea", "at the office")
    ]
