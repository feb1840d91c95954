"""The worked example: a movie is recommended, and next day both sides have learned from it."""

from __future__ import annotations

import json

import pytest
from pydantic_ai import Agent

import echoic
from echoic.capability import Memory, reflect
from echoic.memory.tasks import Result

LESSONS = [
    {"kind": "strategy", "text": "Ask for the genre before recommending a movie."},
    {"kind": "pitfall", "text": "Ana does not like to wait."},
    {"kind": "procedure", "text": "Search once the genre is known, then offer one title."},
    {"kind": "gossip", "text": "No such kind."},
]


def concierge(call_tool):
    """The model of the film agent, as a script over what it is sent."""

    def answer(request):
        last = request["messages"][-1]
        if last["role"] == "tool":
            titles = json.loads(last["content"])
            return {"content": f"How about {titles[0]}?"}
        if "action" in last["content"]:
            return call_tool("search_movies", genre="action")
        return {"content": "With pleasure. Which genre do you like?"}

    return answer


def reviewer(call_tool):
    """The model that looks back: it proposes lessons, good and bad ones."""

    def answer(request):
        assert "Recommend me a movie" in request["messages"][-1]["content"]
        return call_tool(request["tools"][0]["function"]["name"], lessons=LESSONS)

    return answer


def film_agent(model, service, caller):
    agent = Agent(
        model,
        deps_type=caller,
        name="films",
        instructions="You recommend films.",
        capabilities=[Memory(service, user="user_id")],
    )

    @agent.tool_plain
    def search_movies(genre: str) -> list[str]:
        """Films of a genre, the best first."""
        return {"action": ["Heat", "Ronin"]}.get(genre, [])

    return agent


async def first_day(url, chat, call_tool, caller, *, reviewed):
    """The conversation, the end of the task, and what is learned from it."""
    async with echoic.open(url, embedder="lexical") as service:
        _, model = await chat(concierge(call_tool))
        agent = film_agent(model, service, caller)
        asked = await agent.run("Recommend me a movie", deps=caller("ana"), conversation_id="monday")
        assert asked.output == "With pleasure. Which genre do you like?"
        done = await agent.run(
            "I prefer action movies", deps=caller("ana"), message_history=asked.all_messages()
        )
        assert done.output == "How about Heat?"
        await (await service.user("ana").conversation("monday")).complete()
        await service.distil()
        looking_back = (await chat(reviewer(call_tool)))[1] if reviewed else None
        reflected = await reflect(service, "monday", user="ana", model=looking_back)
        for lesson in reflected.lessons:  # as an operator does
            await service.experience("films").adopt(lesson.id)
        return reflected, await service.user("ana").task("monday")


async def next_day(url, chat, caller):
    """What the model is told before the first word of a new conversation, in a new process."""
    async with echoic.open(url, embedder="lexical") as service:
        served, model = await chat(lambda _: {"content": "Welcome back."})
        await film_agent(model, service, caller).run("Hello", deps=caller("ana"))
        (request,) = served.requests
        return "\n".join(m["content"] for m in request["messages"] if m["role"] == "user")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/films.db"


async def test_next_day_the_block_holds_the_preference_and_the_experience(url, chat, call_tool, caller):
    reflected, task = await first_day(url, chat, call_tool, caller, reviewed=True)
    assert [lesson.text for lesson in reflected.lessons] == [
        "Completed tasks used search_movies.",
        LESSONS[0]["text"],
        LESSONS[2]["text"],
    ]
    assert len(reflected.refused) == 2
    assert not any("Ana" in why for why in reflected.refused)
    assert task.conversation.status == "completed"
    assert [(r.name, r.value) for r in task.results] == [
        ("search_movies", ["Heat", "Ronin"]),
        ("reflection", {"lessons": 3, "turns": len(task.turns), "tools": 1}),
    ]

    told = await next_day(url, chat, caller)
    assert '<memory part="memories">\n- "The user prefers action movies."\n</memory>' in told
    assert '- strategy: "Ask for the genre before recommending a movie."' in told
    assert '- procedure: "Search once the genre is known, then offer one title."' in told
    assert '- tool pattern: "Completed tasks used search_movies."' in told
    assert "does not like to wait" not in told
    assert "Heat" not in told, "what the agent and its tools said is no memory of the user"


async def test_without_a_model_to_look_back_rules_reach_as_far(url, chat, call_tool, caller):
    reflected, _ = await first_day(url, chat, call_tool, caller, reviewed=False)
    assert [lesson.text for lesson in reflected.lessons] == ["Completed tasks used search_movies."]
    told = await next_day(url, chat, caller)
    assert '- "The user prefers action movies."' in told
    assert '- tool pattern: "Completed tasks used search_movies."' in told


async def test_the_task_can_be_looked_up_by_what_it_was(url, chat, call_tool, caller):
    await first_day(url, chat, call_tool, caller, reviewed=False)
    async with echoic.open(url, embedder="lexical") as service:
        assert [user for user, _ in await service.conversations(agent="films", status="completed")] == ["ana"]
        task = await service.user("ana").task("monday")
        assert [(turn.speaker, turn.text) for turn in task.turns] == [
            ("user", "Recommend me a movie"),
            ("agent", "With pleasure. Which genre do you like?"),
            ("user", "I prefer action movies"),
            ("agent", "How about Heat?"),
        ]
        assert isinstance(task.results[0], Result)
