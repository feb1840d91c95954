"""The PydanticAI documents' user profile: it fills from what is said, call after call."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

import echoic
from echoic import Turn
from echoic.types import Profile

INTERESTS = {
    "I'm interested in astronomy": ["astronomy"],
    "i am really interested in old maps and jazz": ["old maps", "jazz"],
    "we're interested in medieval history": ["medieval history"],
    "my hobby is pottery": ["pottery"],
    "My hobbies are chess and gardening.": ["chess", "gardening"],
    "my main hobby is bird watching": ["bird watching"],
    "our biggest passion is sailing": ["sailing"],
    "I'm a big fan of horror films": ["horror films"],
    "I love jazz": ["jazz"],
    "i'm into climbing": ["climbing"],
    "I really enjoy baking": ["baking"],
}
PREFERENCES = {
    "I prefer action movies": ["prefers action movies"],
    "I prefer window seats": ["prefers window seats"],
    "we prefer trains to planes": ["prefers trains to planes"],
    "keep your answers short": ["wants short answers"],
    "please keep it brief": ["wants short answers"],
    "Could you keep your replies concise?": ["wants short answers"],
    "I'd prefer shorter answers": ["wants short answers"],
    "make your explanations detailed": ["wants detailed answers"],
    "please keep all your answers to the point": ["wants short answers"],
    "I want detailed explanations": ["wants detailed answers"],
}
AVOIDED = {
    "I don't want to talk about politics": ["politics"],
    "please don't bring up my divorce": ["my divorce"],
    "let's not discuss religion": ["religion"],
    "I'd rather not discuss my health": ["my health"],
    "never mention my weight": ["my weight"],
    "Please don't ask about my ex-husband.": ["my ex-husband"],
    "let's avoid talking about football": ["football"],
    "don't ever mention politics": ["politics"],
    "I really don't want to discuss money": ["money"],
    "i do not want to talk about politics or religion": ["politics", "religion"],
}
NOTHING = [
    "are you interested in astronomy?",
    "my brother is interested in chess",
    "if I were interested in art I would go",
    "I'm interested in buying a car",
    "I'm interested in your family plan",
    "I'm interested in the blue one",
    "what is my hobby?",
    "my dad's hobby is fishing",
    "my hobby used to be chess",
    "does he prefer action movies?",
    "my wife prefers action movies",
    "do I prefer action movies?",
    "do you want to talk about politics?",
    "I want to talk about politics",
    "my mother doesn't want to talk about politics",
    "I don't want to talk about it",
    "I don't want to talk about that now",
    "don't mention it",
    "I don't want to talk about this today",
    "she told me to keep my answers short",
    "do I keep my answers short?",
    "keep it short this time",
    "keep your answers short for today",
    "if I wanted short answers I would say so",
]


async def profile_after(*said):
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        for text in said:
            await call.append(Turn(speaker="user", text=text))
            await call.learn()
        return await ana.profile()


@pytest.mark.parametrize("text", INTERESTS)
async def test_an_interest_reaches_the_profile(text):
    assert list((await profile_after(text)).interests) == INTERESTS[text]


@pytest.mark.parametrize("text", PREFERENCES)
async def test_a_preference_reaches_the_profile(text):
    assert list((await profile_after(text)).preferences) == PREFERENCES[text]


@pytest.mark.parametrize("text", AVOIDED)
async def test_a_topic_to_avoid_reaches_the_profile(text):
    assert list((await profile_after(text)).avoid_topics) == AVOIDED[text]


@pytest.mark.parametrize("text", NOTHING)
async def test_what_is_asked_supposed_anothers_or_for_now_only_does_not(text):
    profile = await profile_after(text)
    assert (profile.interests, profile.preferences, profile.avoid_topics) == ((), (), ())


async def test_the_profile_updates_over_conversations_and_reaches_the_next_one(tmp_path):
    url = f"sqlite:///{tmp_path}/e.db"
    days = [["I prefer action movies", "keep your answers short"], ["make your answers detailed"]]
    for number, said in enumerate(days):
        async with echoic.open(url, embedder="lexical") as memory:
            call = await memory.user("ana").conversation(f"day-{number}")
            await call.append(*(Turn(speaker="user", text=text) for text in said))
            await call.complete()
            await memory.distil()
    async with echoic.open(url, embedder="lexical") as memory:
        ana = memory.user("ana")
        assert set((await ana.profile()).preferences) == {"wants detailed answers", "prefers action movies"}
        await (await ana.conversation("day-9")).append(
            Turn(speaker="user", text="I don't want to talk about politics")
        )
        await memory.distil()
        block = await ana.block()
        assert 'avoid topics: "politics"' in block.section("profile")
        assert "action movies" in block.section("profile")
        assert (await memory.user("bob").profile()) == Profile()


async def test_a_condition_is_not_left_out_of_the_profile():
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.set("preference:tea", "prefers tea", category="preference", context="only at work")
        assert (await ana.profile()).preferences == ("prefers tea (only at work)",)


class Viewer(BaseModel):
    """An integrator's own."""

    name: str = ""
    interests: list[str] = []
    preferences: list[str] = []
    avoid_topics: list[str] = []
    answer_length: str = "any"


async def test_an_integrators_own_model_keeps_working():
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        said = ["my name is Ana", "my hobby is pottery", "I prefer action movies", "keep your answers short",
                "let's not discuss religion"]  # fmt: skip
        await call.append(*(Turn(speaker="user", text=text) for text in said))
        await call.learn()
        assert await ana.profile(Viewer) == Viewer(
            name="Ana",
            interests=["pottery"],
            preferences=["wants short answers", "prefers action movies"],
            avoid_topics=["religion"],
            answer_length="short",
        )
