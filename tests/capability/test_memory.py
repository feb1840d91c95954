"""One object gives an agent the memory of its caller: bound, bounded in time, and never silent about failing."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

import echoic
from echoic import InvalidInput, NotAllowed, NotOpen, StoreUnavailable
from echoic.capability import Memory
from echoic.capability.memory import told_in
from echoic.capability.tools import MISSING, UNREADABLE, UNWRITTEN, WRITING
from echoic.embedding import embedder_from
from echoic.memory.service import MemoryService
from echoic.memory.sharing import REASONS
from echoic.prompt.answer import UNREAD
from echoic.stores.in_memory import InMemoryStore


class Script:
    """A model that follows a script: a list of what to do for each request of each run."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.instructions = []
        self.told = []
        self.returns = []

    @property
    def model(self):
        return FunctionModel(self._answer, stream_function=self._stream)

    def _next(self, messages, info):
        self.instructions.append(info.instructions)
        self.told.append(told(messages))
        self.returns += [
            json.loads(part.model_response_str())
            for part in messages[-1].parts
            if isinstance(part, ToolReturnPart)
        ]
        return self.steps.pop(0) if self.steps else "Right."

    def _answer(self, messages, info):
        step = self._next(messages, info)
        calls = step if isinstance(step, list) else []
        words = [TextPart(step)] if isinstance(step, str) else []
        return ModelResponse(parts=[*words, *(ToolCallPart(name, arguments) for name, arguments in calls)])

    async def _stream(self, messages, info):
        step = self._next(messages, info)
        if isinstance(step, str):
            for word in step.split(" "):
                yield word + " "
        else:
            for n, (name, arguments) in enumerate(step):
                yield {n: DeltaToolCall(name=name, json_args=json.dumps(arguments))}


def agent_with(script, capability, caller):
    return Agent(
        script.model, deps_type=caller, name="films", instructions="Be Robin.", capabilities=[capability]
    )


def told(messages):
    """All that the model of these messages was told beside its instructions."""
    return "\n".join(
        part.content
        for message in messages
        for part in message.parts
        if isinstance(message, ModelRequest) and isinstance(part.content, str)
    )


# -- who is served


@pytest.mark.parametrize("nobody", [None, "", "  ", 7])
async def test_a_run_for_nobody_does_not_begin(memory, caller, nobody):
    script = Script()
    agent = agent_with(script, Memory(memory, user="user_id"), caller)
    with pytest.raises(NotAllowed, match="no user is named"):
        await agent.run("hi", deps=caller(nobody))
    with pytest.raises(NotAllowed, match="deps.user_id gave NoneType"):
        await agent.run("hi")
    assert script.instructions == []
    assert await memory.users() == []


async def test_a_run_with_a_service_that_is_not_open_here_does_not_begin(memory, caller):
    script = Script()
    never, was = (echoic.open("memory://", embedder="lexical") for _ in range(2))
    async with was:
        pass
    for service in (never, was):
        with pytest.raises(NotOpen, match="not open"):
            await agent_with(script, Memory(service, user="user_id"), caller).run("hi", deps=caller("ana"))
    agent = agent_with(script, Memory(memory, user="user_id"), caller)
    with pytest.raises(NotOpen, match="another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(agent.run("hi", deps=caller("ana"))))
    assert script.instructions == []


@pytest.mark.parametrize(
    ("user", "deps"),
    [
        (lambda deps: deps["who"], {"who": "ana"}),
        ("who", {"who": "ana"}),
        ("session.user", {"session": {"user": "ana"}}),
    ],
)
async def test_the_caller_is_named_by_a_function_or_a_path(memory, user, deps):
    script = Script([("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})])
    await Agent(script.model, capabilities=[Memory(memory, user=user)]).run("hi", deps=deps)
    assert (await memory.user("ana").get("seat")).text == "aisle"


async def test_the_deployment_comes_from_the_run_as_well(memory, caller):
    script = Script([("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})])
    capability = Memory(memory, user="user_id", deployment=lambda deps: deps.deployment)
    await agent_with(script, capability, caller).run("hi", deps=caller("ana", "acme"))
    assert (await memory.user("ana", "acme").get("seat")).text == "aisle"
    assert await memory.user("ana").get("seat") is None


async def test_callers_at_once_share_an_agent_and_nothing_else(memory, caller):
    names = [f"user-{n}" for n in range(8)]
    for name in names:
        await memory.user(name).set("user_name", name)

    async def answer(messages, info):
        await asyncio.sleep(0)
        return ModelResponse(parts=[TextPart(told(messages))])

    agent = Agent(FunctionModel(answer), deps_type=caller, capabilities=[Memory(memory, user="user_id")])
    runs = await asyncio.gather(*(agent.run("who am I?", deps=caller(name)) for name in names))
    for name, ran in zip(names, runs, strict=True):
        assert f'name: "{name}"' in ran.output
        assert not [other for other in names if other != name and other in ran.output]


# -- the tools


async def test_the_tools_are_those_of_the_mission(memory, caller):
    offered = {}

    def answer(messages, info):
        offered.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        return ModelResponse(parts=[TextPart("ok")])

    agent = Agent(FunctionModel(answer), deps_type=caller, capabilities=[Memory(memory, user="user_id")])
    await agent.run("hi", deps=caller("ana"))
    assert set(offered) == {"agentMemory", "store_conversation", "recall_conversation"}
    operation = offered["agentMemory"]["properties"]["operation"]
    assert operation["enum"] == ["get", "set", "delete", "query"]
    taken = {"operation", "key", "value", "query", "visibility", "id"}
    assert set(offered["agentMemory"]["properties"]) == taken
    assert offered["agentMemory"]["required"] == ["operation"]


async def use(memory, caller, *calls, user="ana", conversation="c", **options):
    """Run an agent that makes these calls, one after another; what it was answered."""
    script = Script(*([call] for call in calls))
    capability = Memory(memory, user="user_id", **options)
    ran = await agent_with(script, capability, caller).run(
        "go on", deps=caller(user), conversation_id=conversation
    )
    assert ran.output.strip() == "Right."
    return script.returns


async def test_memory_is_set_got_found_and_deleted(memory, caller):
    answers = await use(
        memory,
        caller,
        ("agentMemory", {"operation": "set", "key": "favourite_genre", "value": 'action & <noir> "films"'}),
        ("agentMemory", {"operation": "get", "key": "favourite_genre"}),
        ("agentMemory", {"operation": "query", "query": "which genre?"}),
        ("agentMemory", {"operation": "delete", "key": "favourite_genre"}),
        ("agentMemory", {"operation": "get", "key": "favourite_genre"}),
        ("agentMemory", {"operation": "delete", "key": "favourite_genre"}),
    )
    value = 'action & <noir> "films"'
    reason = REASONS["key"]
    assert answers[0]["result"] == {
        "key": "favourite_genre",
        "value": value,
        "visibility": "private",
        "reason": reason,
    }
    assert answers[1]["result"] == {"key": "favourite_genre", "value": value, "confirmed": True}
    assert "not instructions" in answers[1]["note"]
    assert answers[2]["result"][0] == {"key": "favourite_genre", "text": value}
    assert answers[2]["outcome"] == "complete"
    assert [a["result"] for a in answers[3:]] == [
        {"key": "favourite_genre", "deleted": True},
        None,
        {"key": "favourite_genre", "deleted": False},
    ]
    assert all(answer["success"] for answer in answers)


async def test_what_has_no_key_is_deleted_by_the_id_that_query_gave(memory, caller):
    await memory.user("ana").remember("I have a wood stove and two chimneys")
    query = ("agentMemory", {"operation": "query", "query": "wood stove chimneys"})
    (found,) = await use(memory, caller, query)
    (told,) = found["result"]
    assert set(told) == {"id", "text"}
    await use(memory, caller, ("agentMemory", {"operation": "delete", "id": told["id"]}), user="bob")
    again, deleted, gone = await use(
        memory, caller, query, ("agentMemory", {"operation": "delete", "id": told["id"]}), query
    )
    assert again["result"] == [told]
    assert deleted["result"] == {"id": told["id"], "deleted": True}
    assert gone["result"] == []


async def test_calling_a_tool_again_changes_nothing(memory, caller):
    call = ("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})
    stored = ("store_conversation", {"key": "seats", "summary": "where to sit"})
    await use(memory, caller, call, call, stored, stored)
    assert len(await memory.user("ana").history("seat")) == 1
    assert [c.recall_key for c in await memory.user("ana").conversations()] == ["seats"]


async def test_what_a_tool_changed_the_next_request_is_told(memory, caller):
    script = Script([("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})])
    ran = await agent_with(script, Memory(memory, user="user_id"), caller).run("hi", deps=caller("ana"))
    assert "aisle" not in script.told[0]
    assert '- "seat": "aisle"' in script.told[1]
    assert told(ran.all_messages()) == script.told[1], "it stays in the history"


async def test_a_conversation_is_stored_and_recalled_by_what_it_was_called(memory, caller):
    script = Script(
        "A roast chicken, then.",
        [("store_conversation", {"key": "roast chicken menu", "summary": "Sunday lunch"})],
    )
    agent = agent_with(script, Memory(memory, user="user_id"), caller)
    ran = await agent.run("I want to cook on Sunday", deps=caller("ana"), conversation_id="c1")
    await agent.run("keep that", deps=caller("ana"), message_history=ran.all_messages())
    (answer, missing) = await use(
        memory,
        caller,
        ("recall_conversation", {"key": "the rost chicken"}),
        ("recall_conversation", {"key": "tax return"}),
        conversation="c2",
    )
    result = answer["result"]
    assert (result["key"], result["summary"]) == ("roast chicken menu", "Sunday lunch")
    assert result["turns"][:3] == [
        {"said_by": "user", "text": "I want to cook on Sunday"},
        {"said_by": "agent", "text": "A roast chicken, then."},
        {"said_by": "user", "text": "keep that"},
    ]
    assert (missing["success"], missing["result"], missing["say"]) == (True, None, MISSING)
    assert (await use(memory, caller, ("recall_conversation", {"key": "roast chicken"}), user="bob"))[0][
        "result"
    ] is None


async def test_of_a_long_conversation_the_end_is_recalled_and_what_is_left_out_is_said(memory, caller):
    from echoic import Turn

    call = await memory.user("ana").conversation("long")
    await call.append(*(Turn(speaker="user", text=f"{n} " + "many words here " * 40) for n in range(40)))
    await call.store("the long one")
    (answer,) = await use(memory, caller, ("recall_conversation", {"key": "the long one"}))
    turns = answer["result"]["turns"]
    assert turns[-1]["text"].startswith("39 ")
    assert 0 < len(turns) < 40
    assert answer["result"]["turns_left_out"] == 40 - len(turns)


@pytest.mark.parametrize(
    "call",
    [
        ("agentMemory", {"operation": "set", "key": "seat"}),
        ("agentMemory", {"operation": "set", "value": "aisle"}),
        ("agentMemory", {"operation": "get"}),
        ("agentMemory", {"operation": "delete", "key": " "}),
        ("agentMemory", {"operation": "query"}),
        ("agentMemory", {"operation": "set", "key": "k" * 300, "value": "x"}),
        ("store_conversation", {"key": ""}),
        ("recall_conversation", {"key": ""}),
    ],
)
async def test_a_call_that_makes_no_sense_is_answered_with_why(memory, caller, call):
    (answer,) = await use(memory, caller, call)
    assert answer["success"] is False
    assert answer["reason"]
    assert "say" not in answer  # what to say is of an outage, and there is none


# -- when memory fails


class Failing(InMemoryStore):
    """A store that can be told to fail or to hang."""

    def __init__(self):
        super().__init__()
        self.fails = False
        self.hangs = None

    async def _trouble(self):
        if self.fails:
            raise StoreUnavailable("the store is gone")
        if self.hangs:
            await self.hangs.wait()

    async def write(self, scope, changes):
        await self._trouble()
        await super().write(scope, changes)

    async def read(self, scope, kind, ids):
        await self._trouble()
        return await super().read(scope, kind, ids)

    async def scan(self, *args, **options):
        await self._trouble()
        return await super().scan(*args, **options)

    async def load(self, scope):
        await self._trouble()
        return await super().load(scope)


@pytest.fixture
async def failing():
    store = Failing()
    async with MemoryService(store, embedder_from("lexical")) as service:
        yield store, service
        store.fails, store.hangs = False, None


CALLS = {
    "set": ("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"}),
    "get": ("agentMemory", {"operation": "get", "key": "seat"}),
    "delete": ("agentMemory", {"operation": "delete", "key": "seat"}),
    "query": ("agentMemory", {"operation": "query", "query": "seat"}),
    "store": ("store_conversation", {"key": "seats"}),
    "recall": ("recall_conversation", {"key": "seats"}),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_whose_store_is_gone_says_so_and_the_run_goes_on(failing, caller, name, caplog):
    store, service = failing
    store.fails = True
    (answer,) = await use(service, caller, CALLS[name])
    assert answer == {
        "success": False,
        "say": UNWRITTEN if name in {"set", "delete", "store"} else UNREADABLE,
    }
    assert "aisle" not in caplog.text


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_whose_store_hangs_answers_in_time(failing, caller, name):
    store, service = failing
    store.hangs = asyncio.Event()
    async with asyncio.timeout(20):
        (answer,) = await use(service, caller, CALLS[name], timeout_s=0.05)
    assert answer == {"success": False, "say": WRITING if name in {"set", "delete", "store"} else UNREADABLE}
    store.hangs.set()
    store.hangs = None


async def test_what_was_being_written_is_written_though_the_answer_came_first(failing, caller):
    store, service = failing
    store.hangs = gate = asyncio.Event()
    await use(service, caller, CALLS["set"], timeout_s=0.05)
    store.hangs = None
    gate.set()
    async with asyncio.timeout(20):
        while await service.user("ana").get("seat") is None:
            await asyncio.sleep(0.01)


async def test_an_unread_memory_is_not_an_empty_one(failing, caller):
    store, service = failing
    await service.user("ana").set("user_name", "Ana")
    script = Script()
    agent = agent_with(script, Memory(service, user="user_id"), caller)
    store.fails = True
    ran = await agent.run("hi", deps=caller("ana"), conversation_id="c")
    assert UNREAD in script.told[0]
    assert "Ana" not in script.told[0]
    store.fails = False
    again = await agent.run("hi", deps=caller("ana"), message_history=ran.all_messages())
    assert 'name: "Ana"' in "".join(repr(part) for m in again.new_messages() for part in m.parts)
    store.fails = True
    third = await agent.run("hi", deps=caller("ana"), message_history=again.all_messages())
    assert told_in(third.all_messages())["profile"] == told_in(again.all_messages())["profile"]
    assert UNREAD in told_in(third.all_messages())["status"]


async def test_an_outage_is_over_also_for_a_user_of_whom_nothing_is_known(failing, caller):
    store, service = failing
    agent = agent_with(Script(), Memory(service, user="user_id", capture=False), caller)
    store.fails = True
    ran = await agent.run("hi", deps=caller("ana"), conversation_id="c")
    assert UNREAD in told_in(ran.all_messages())["status"]
    store.fails = False
    again = await agent.run("hi", deps=caller("ana"), message_history=ran.all_messages())
    assert UNREAD not in told_in(again.all_messages())["status"]
    last = await agent.run("hi", deps=caller("ana"), message_history=again.all_messages())
    assert told_in(last.new_messages()) == {}, "it is taken back once"


async def test_words_that_could_not_be_kept_are_kept_when_the_store_is_back(failing, caller, caplog):
    store, service = failing

    def answer(messages, info):
        store.fails = False
        return ModelResponse(parts=[TextPart("Good day.")])

    agent = Agent(FunctionModel(answer), deps_type=caller, capabilities=[Memory(service, user="user_id")])
    store.fails = True
    with caplog.at_level(logging.WARNING):
        await agent.run("my secret plan", deps=caller("ana"), conversation_id="c")
    turns = (await service.user("ana").task("c")).turns
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("user", "my secret plan"),
        ("agent", "Good day."),
    ]
    assert "1 turns are not kept: StoreUnavailable" in caplog.text
    assert "secret" not in caplog.text


# -- capture


async def turns_of(memory, conversation="c", user="ana"):
    task = await memory.user(user).task(conversation)
    return [(turn.speaker, turn.text) for turn in task.turns] if task else []


async def test_both_sides_of_a_run_are_kept_in_order_and_by_whom(memory, caller):
    script = Script([("agentMemory", {"operation": "get", "key": "x"})], "Which genre?")
    agent = agent_with(script, Memory(memory, user="user_id"), caller)
    ran = await agent.run("Recommend me a movie", deps=caller("ana"), conversation_id="c")
    await agent.run("Action", deps=caller("ana"), message_history=ran.all_messages())
    assert await turns_of(memory) == [
        ("user", "Recommend me a movie"),
        ("agent", "Which genre?"),
        ("user", "Action"),
        ("agent", "Right."),
    ]
    (conversation,) = await memory.user("ana").conversations(agent="films")
    assert conversation.status == "active"


async def test_a_run_made_again_is_kept_once(memory, caller):
    agent = agent_with(Script(), Memory(memory, user="user_id"), caller)
    for _ in range(3):
        await agent.run("hello", deps=caller("ana"), conversation_id="c", run_id="run-1")
    assert await turns_of(memory) == [("user", "hello"), ("agent", "Right.")]
    await agent.run("hello", deps=caller("ana"), conversation_id="c", run_id="run-2")
    assert len(await turns_of(memory)) == 4, "the same words said again are said again"


async def test_the_users_words_stay_though_the_model_fails(memory, caller):
    def fail(messages, info):
        raise ModelHTTPError(500, "scripted")

    agent = Agent(FunctionModel(fail), deps_type=caller, capabilities=[Memory(memory, user="user_id")])
    with pytest.raises(ModelHTTPError):
        await agent.run("I prefer action movies", deps=caller("ana"), conversation_id="c")
    assert await turns_of(memory) == [("user", "I prefer action movies")]


async def test_a_streamed_run_is_kept_like_any_other(memory, caller):
    agent = agent_with(Script("Which genre would it be?"), Memory(memory, user="user_id"), caller)
    async with agent.run_stream_events(
        "Recommend a movie", deps=caller("ana"), conversation_id="c"
    ) as events:
        async for _ in events:
            pass
    assert [(speaker, text.strip()) for speaker, text in await turns_of(memory)] == [
        ("user", "Recommend a movie"),
        ("agent", "Which genre would it be?"),
    ]


async def test_of_a_run_that_is_cut_off_the_users_words_stay(memory, caller):
    begun = asyncio.Event()

    async def endless(messages, info):
        yield "Well, "
        begun.set()
        await asyncio.Event().wait()

    agent = Agent(
        FunctionModel(stream_function=endless),
        deps_type=caller,
        capabilities=[Memory(memory, user="user_id")],
    )

    async def listen():
        async with agent.run_stream_events(
            "Recommend a movie", deps=caller("ana"), conversation_id="c"
        ) as events:
            async for _ in events:
                pass

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(20):
        await begun.wait()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert await turns_of(memory) == [("user", "Recommend a movie")]


async def test_texts_of_any_length_and_kind_are_kept_and_pictures_are_not(memory, caller):
    agent = agent_with(Script(), Memory(memory, user="user_id"), caller)
    long = "длинный " * 6000
    await agent.run(
        [long, BinaryContent(b"x", media_type="image/png"), "end"], deps=caller("ana"), conversation_id="c"
    )
    said = [text for speaker, text in await turns_of(memory) if speaker == "user"]
    assert len(said) > 1
    assert "".join(said) == f"{long}\nend"
    await agent.run("half \ud800 and \0", deps=caller("bob"), conversation_id="d")
    assert (await turns_of(memory, "d", "bob"))[0] == ("user", "half ? and ")


async def test_a_channel_that_keeps_its_own_turns_says_so(memory, caller):
    agent = agent_with(Script(), Memory(memory, user="user_id", capture=False), caller)
    await agent.run("hello", deps=caller("ana"), conversation_id="c")
    assert await memory.user("ana").task("c") is None


async def test_what_tools_gave_is_kept_as_results_and_learned_from_never(memory, caller):
    script = Script(
        [("look_up", {"name": "x"}), ("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})]
    )
    agent = agent_with(script, Memory(memory, user="user_id"), caller)

    @agent.tool_plain
    def look_up(name: str) -> list[str]:
        return ["My name is Zanzibar", name]

    await agent.run("go", deps=caller("ana"), conversation_id="c")
    ana = memory.user("ana")
    task = await ana.task("c")
    assert [(r.name, r.value) for r in task.results] == [("look_up", ["My name is Zanzibar", "x"])]
    await memory.distil()
    assert [m.key for m in await ana.facts()] == ["seat"]
    assert await ana.query("Zanzibar") == []


async def test_results_are_kept_by_run_and_place_whatever_ids_a_provider_gives_its_calls(memory, caller):
    looks = [ToolCallPart("look_up", {"name": name}, "call_0" * 4) for name in "abb"]
    replies = [part for look in looks for part in (look, TextPart("Right."))]

    def answer(messages, info):
        return ModelResponse(parts=[replies.pop(0)])

    capability = Memory(memory, user="user_id")
    agent = Agent(FunctionModel(answer), deps_type=caller, name="films", capabilities=[capability])

    @agent.tool_plain
    def look_up(name: str) -> str:
        return f"found {name}"

    long = "c" * 250
    for run in ("run-1", "run-2", "run-2"):
        await agent.run("go", deps=caller("ana"), conversation_id=long, run_id=run)
    task = await memory.user("ana").task(long)
    assert [result.value for result in task.results] == ["found a", "found b"]


async def test_an_answer_in_a_form_and_a_tool_that_failed_are_no_results(memory, caller):
    calls = [ToolCallPart("look_up", {"name": ""}), ToolCallPart("look_up", {"name": "x"}), None]

    def answer(messages, info):
        form = ToolCallPart(info.output_tools[0].name, {"response": 7})
        return ModelResponse(parts=[calls.pop(0) or form])

    capability = Memory(memory, user="user_id")
    agent = Agent(
        FunctionModel(answer), deps_type=caller, name="films", output_type=int, capabilities=[capability]
    )

    @agent.tool_plain
    def look_up(name: str) -> str:
        if not name:
            raise ModelRetry("give a name")
        return f"found {name}"

    assert (await agent.run("go", deps=caller("ana"), conversation_id="c")).output == 7
    task = await memory.user("ana").task("c")
    assert [(result.name, result.value) for result in task.results] == [("look_up", "found x")]


async def test_a_history_with_recalled_memory_in_it_teaches_nothing_new(memory, caller):
    ana = memory.user("ana")
    await ana.set("home", "Lisbon")
    agent = agent_with(Script(), Memory(memory, user="user_id"), caller)
    ran = await agent.run("hello", deps=caller("ana"), conversation_id="c")
    for _ in range(3):
        ran = await agent.run("and?", deps=caller("ana"), message_history=ran.all_messages())
    await memory.distil()
    assert [(m.key, m.text) for m in await ana.facts()] == [("home", "Lisbon")]
    assert len(await ana.history("home")) == 1


async def test_a_user_who_is_forgotten_in_a_run_does_not_come_back_with_its_end(memory, caller):
    ana = memory.user("ana")
    await ana.set("home", "Lisbon")
    script = Script([("erase_me", {})], "All about you and Lisbon is erased.")
    agent = agent_with(script, Memory(memory, user="user_id"), caller)

    @agent.tool_plain
    async def erase_me() -> bool:
        return (await ana.forget()).verified

    await agent.run("erase everything about me", deps=caller("ana"), conversation_id="c")
    assert await memory.users() == []
    assert (await ana.export())["conversations"] == []


async def test_who_is_forgotten_in_a_run_that_goes_on_without_new_words_does_not_come_back_either(
    memory, caller
):
    ana = memory.user("ana")

    async def answer(messages, info):
        await ana.forget()
        return ModelResponse(parts=[TextPart("Heat, as you wished.")])

    agent = Agent(FunctionModel(answer), deps_type=caller, capabilities=[Memory(memory, user="user_id")])
    history = [ModelRequest(parts=[UserPromptPart("from a run before")], run_id="before")]
    await agent.run(deps=caller("ana"), conversation_id="c", message_history=history)
    assert await memory.users() == []


async def test_words_that_a_web_front_end_hands_over_in_the_history_are_kept(memory, caller):
    agent = agent_with(Script(), Memory(memory, user="user_id"), caller)
    history = [
        ModelRequest(parts=[UserPromptPart("hello")]),
        ModelResponse(parts=[TextPart("Hi.")]),
        ModelRequest(
            parts=[UserPromptPart(["I'm allergic to peanuts", BinaryContent(b"x", media_type="image/png")])]
        ),
    ]
    await agent.run(deps=caller("ana"), conversation_id="c", message_history=history)
    assert await turns_of(memory) == [("user", "I'm allergic to peanuts"), ("agent", "Right.")]
    await memory.distil()
    assert (await memory.user("ana").get("allergy:peanuts")).text == "peanuts"


async def test_a_run_that_goes_on_without_new_words_is_kept_as_well(memory, caller):
    agent = agent_with(Script(), Memory(memory, user="user_id"), caller)
    history = [ModelRequest(parts=[UserPromptPart("from a run before")], run_id="before")]
    await agent.run(deps=caller("ana"), conversation_id="c", message_history=history)
    assert await turns_of(memory) == [("agent", "Right.")]


@pytest.mark.parametrize(
    "bad", [{"timeout_s": 0}, {"budget_tokens": 0}, {"budget_tokens": 1.5}, {"agent": ""}]
)
async def test_what_could_only_fail_later_is_refused_when_it_is_made(memory, bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        Memory(memory, user="user_id", **bad)


def test_only_requests_hold_prompts():
    """The helper of these tests sees what it should."""
    assert "hi" in told([ModelRequest(parts=[UserPromptPart("hi")])])


async def test_the_user_s_own_may_be_kept_private_by_the_tool(memory, caller):
    said = {"operation": "set", "key": "opening_hours", "value": "The store is open from 9 to 17."}
    offered, kept = await use(
        memory, caller, ("agentMemory", said), ("agentMemory", {**said, "visibility": "private"})
    )
    assert offered["result"]["visibility"] == "proposed"
    assert offered["result"]["reason"] == REASONS["hours"]
    assert (kept["result"]["visibility"], kept["result"]["reason"]) == ("private", REASONS["asked"])
    assert await memory.proposals().list() == []
