"""What somebody is told by the level of proof of who they are: every surface, every level, every sensitivity."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import echoic
from assured import ABOUT, AGENT_ASKS, PLANTED, QUESTION, allowed, plant, words_in
from echoic import InvalidInput, NotAllowed
from echoic.capability import Memory
from echoic.integrations import tools
from echoic.integrations.call_memory import CallMemory
from echoic.integrations.hosted_agents import HostedWebhooks
from echoic.memory.assurance import LEVELS, TABLE, is_sensitive, table_from
from echoic.memory.conversation import OpenConversation
from echoic.memory.records import MEMORY, TURN, scan_all
from echoic.memory.user import UserMemory
from echoic.session.turn_recall import CallRecall
from echoic.stores.base import latest
from echoic.types import Turn

PROPERTIES = {tool.name: tool.properties for tool in tools.TOOLS}


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(
        f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", global_writes="auto"
    ) as opened:
        await plant(opened)
        yield opened


async def prompt_of(ana, level):
    sent = []

    def answer(messages, info):
        sent.append(f"{info.instructions} {messages}")
        if len(sent) > 1:
            return ModelResponse(parts=[TextPart("ok")])
        return ModelResponse(parts=[ToolCallPart(name, ask) for name, ask in AGENT_ASKS])

    capability = Memory(ana.service, user=lambda _: "ana", level=level, capture=False)
    await Agent(FunctionModel(answer), capabilities=[capability]).run("hello there", conversation_id="now")
    return "".join(sent)


async def listened(ana, level):
    listening = ana.at(level).listen(min_relevance=0)
    listening.partial(QUESTION)
    return await listening.final(QUESTION)


async def of_a_call(ana, level):
    call = CallMemory(ana.at(level), deadline_ms=60_000)
    told = [await call.block(), (await call.memory_for(QUESTION)).text]
    await call.aclose()
    return told


async def each(ana, level, verb):
    return [await verb(ana.at(level), sensitivity) for sensitivity in ABOUT]


async def exported(ana, level):
    try:
        return await ana.at(level).export()
    except NotAllowed:
        return ""


SURFACES = {
    "facts": lambda ana, level: ana.at(level).facts(),
    "past": lambda ana, level: ana.at(level).past(),
    "get": lambda ana, level: each(ana, level, lambda m, s: m.get(f"{s}_pet")),
    "history": lambda ana, level: each(ana, level, lambda m, s: m.history(f"{s}_pet")),
    "query": lambda ana, level: ana.at(level).query(QUESTION, min_relevance=0),
    "recall": lambda ana, level: ana.at(level).recall(QUESTION, min_relevance=0, include_past=True),
    "brief": lambda ana, level: ana.at(level).brief(QUESTION, min_relevance=0),
    "block": lambda ana, level: ana.at(level).block(moment=QUESTION, budget_tokens=5000, min_relevance=0),
    "profile": lambda ana, level: ana.at(level).profile(),
    "directives": lambda ana, level: ana.at(level).directives(),
    "conversations": lambda ana, level: ana.at(level).conversations(),
    "find_conversation": lambda ana, level: each(ana, level, lambda m, s: m.find_conversation(f"old-{s}")),
    "recall_conversation": lambda ana, level: each(
        ana, level, lambda m, s: m.recall_conversation(f"the {s} chat")
    ),
    "task": lambda ana, level: each(ana, level, lambda m, s: m.task(f"old-{s}")),
    "turns": lambda ana, level: each(ana, level, turns_of),
    "info": lambda ana, level: each(ana, level, info_of),
    "append": lambda ana, level: each(ana, level, appended),
    "truncate": lambda ana, level: each(ana, level, truncated),
    "find_memory": lambda ana, level: each(ana, level, by_id),
    "find_turns": lambda ana, level: each(ana, level, lambda m, s: m.find_turns([f"said-{s}"])),
    "visible_store": lambda ana, level: seen_in_the_store(ana.at(level)),
    "listen": listened,
    "export": exported,
    "an agent's prompt and tools": prompt_of,
    "a call in another framework": of_a_call,
}


async def seen_in_the_store(memory):
    store, keys = memory.visible_store, [(memory.scope, f"old-{sensitivity}") for sensitivity in ABOUT]
    return [
        *[await scan_all(store, memory.scope, kind) for kind in (MEMORY, TURN)],
        await latest(store, TURN, keys),
    ]


async def turns_of(memory, sensitivity):
    return await (await memory.conversation(f"old-{sensitivity}", begin=False)).turns()


async def info_of(memory, sensitivity):
    return await (await memory.conversation(f"old-{sensitivity}", begin=False)).info()


async def appended(memory, sensitivity):
    """A turn with the id of one that was said before."""
    call = await memory.conversation(f"old-{sensitivity}", begin=False)
    return await call.append(Turn(speaker="user", text="Hello.", id=f"said-{sensitivity}"))


async def truncated(memory, sensitivity):
    call = await memory.conversation(f"old-{sensitivity}", begin=False)
    return await call.truncate(fraction=1, after=f"said-{sensitivity}")


async def by_id(memory, sensitivity):
    known = await memory.at("account").get(f"{sensitivity}_pet")
    return await memory.find_memory(known.id)


def by_tool(name):
    """One of the tools that integrations, MCP and hosted platforms hand to a model."""

    async def used(ana, level):
        told = []
        for sensitivity in ABOUT:
            given = {
                "key": f"{sensitivity}_pet",
                "query": QUESTION,
                "value": "x",
                "id": f"said-{sensitivity}",
            }
            given = {k: v for k, v in given.items() if k in PROPERTIES[name] and k != "id"}
            try:
                told.append(await tools.call(ana.at(level), name, given))
            except NotAllowed as error:
                told.append(error)
        return told

    return used


async def hosted(ana, level):
    async def whose(_caller):
        return "ana"

    hooks = HostedWebhooks(ana.service, whose, "default", level)
    user = await hooks.user("vapi", "+15550100001", {}, outbound=True)
    asks = [await hooks.use(user, "get_memory", {"key": f"{each}_pet"}) for each in ABOUT]
    return [await hooks.block(user), await hooks.documents(user, QUESTION), *asks]


SURFACES |= {"a hosted platform": hosted}
SURFACES |= {f"tool {name}": by_tool(name) for name in ("search_memory", "get_memory")}
TELLS_NOTHING_KEPT = {
    *("add_result", "asks_first", "at", "check_loop", "consent", "conversation", "delete", "fail", "forget"),
    *("held", "hold", "items", "jobs", "keeps_nothing", "remember", "restore", "sees_everything", "set"),
    *("set_consent", "set_directives", "step_up", "tell_tool_use", "warm", "withholds"),
    *("append", "asking", "begin", "complete", "distil", "learn", "learn_soon", "off_the_record", "silent"),
    *("store", "set_memory", "delete_memory"),
}
"""Verbs that write, count or destroy; what they may not destroy is tested below."""
TELLS_EVERYTHING = {"backing_store"}
"""As its own documentation says: for what is built on a memory."""
ELSEWHERE = {"pack": "brief", "asked_to_forget": "turns", "recalled_turns": "turns"}
"""What is made of the same hits, and what reads the same turns."""


def test_every_verb_and_tool_has_a_row_in_the_matrix():
    verbs = {
        name for kind in (UserMemory, OpenConversation) for name in vars(kind) if not name.startswith("_")
    }
    named = {*(name.removeprefix("tool ") for name in SURFACES), *ELSEWHERE}
    missing = (verbs | {tool.name for tool in tools.TOOLS}) - named - TELLS_NOTHING_KEPT - TELLS_EVERYTHING
    assert not missing, "what may each of these tell somebody of whom little is known?"


@pytest.mark.parametrize("surface", SURFACES)
async def test_nobody_is_told_anything_above_their_level(service, surface):
    ana = service.user("ana")
    ana.service = service
    whole = words_in(await SURFACES[surface](ana, "account"))
    for level in LEVELS:
        told = words_in(await SURFACES[surface](ana, level))
        may = allowed(TABLE[level])
        assert told == (whole & may if surface != "export" or "sensitive" in may else set()), level
    if surface not in {"past", "profile", "directives"}:
        assert "sensitive" in whole, "control: to an account all is told"


@pytest.mark.parametrize("level", [level for level in LEVELS if TABLE[level] != "sensitive"])
async def test_nobody_destroys_what_they_are_not_told(service, level):
    ana, theirs = service.user("ana"), service.user("ana").at(level)
    before = str(await ana.export()).count(PLANTED["sensitive"])
    for destroy in (
        theirs.forget(),
        theirs.forget(key="sensitive_pet"),
        theirs.forget(id="said-sensitive"),
        theirs.forget(conversation="old-sensitive"),
        theirs.forget(learned_from=["said-sensitive"]),
        theirs.forget(asked="said-sensitive"),
        theirs.delete("sensitive_pet"),
        theirs.delete(id="said-sensitive"),
        theirs.forget(key="nothing of the kind"),
    ):
        with pytest.raises(NotAllowed, match="proof of who is asking"):
            await destroy
    with pytest.raises(NotAllowed):
        theirs.items("notes")
    assert str(await ana.export()).count(PLANTED["sensitive"]) == before


async def test_a_recall_of_a_higher_level_is_packed_without_what_is_withheld(service):
    ana = service.user("ana")
    recall = await ana.recall(QUESTION, min_relevance=0)
    for level in LEVELS:
        packed = await ana.at(level).pack(recall)
        assert words_in(packed.text) <= allowed(TABLE[level]), level


async def test_what_is_withheld_takes_no_place_from_what_may_be_told(service):
    bob = service.user("bob")
    for number in range(30):
        await bob.remember(f"My sister Marta has diabetes, says doctor {number}.")
    await bob.remember("Marta is my sister.")
    await service.settle()
    assert "diabetes" in str((await bob.recall("Does my sister Marta have diabetes?", limit=3)).hits)
    told = await bob.at("attested").recall("Does my sister Marta have diabetes?", limit=3)
    assert [hit.text for hit in told.hits] == ["Marta is my sister."]
    assert told.withheld


async def test_what_is_withheld_does_not_lift_what_answers_nothing_above_the_floor(service):
    bob = service.user("bob")
    for said in ("My doctor in Porto prescribed insulin for diabetes.", "Is the meeting in Porto?"):
        call = await bob.conversation()
        await call.append(Turn(speaker="user", text=said), learn=False)
    await service.settle()
    asked = "Which doctor prescribed insulin for my diabetes in Porto?"
    assert len((await bob.recall(asked)).hits) == 2
    told = await bob.at("attested").recall(asked)
    assert told.hits == ()
    assert told.withheld
    assert (await bob.at("attested").recall(asked, min_relevance=0)).hits


async def test_an_attested_caller_is_told_that_there_is_more_and_a_stranger_is_not(service):
    ana = service.user("ana")
    assert (await ana.at("attested").recall("insulin", min_relevance=0)).withheld
    assert "once they prove" in (await ana.at("attested").brief("insulin", min_relevance=0)).text
    assert "once they prove" in (await ana.at("attested").block()).section("withheld")
    for level in ("unattested", "account"):
        theirs = ana.at(level)
        assert not (await theirs.recall("insulin", min_relevance=0)).withheld
        assert not (await theirs.block()).section("withheld")
    seen = ana.at("attested")
    assert await seen.get("sensitive_pet") is None
    seen.step_up("proved")
    assert await seen.get("sensitive_pet") is not None
    assert await seen.forget(key="sensitive_pet")


@pytest.mark.parametrize("level", ["attested", "unattested", "account"])
async def test_what_a_model_is_given_says_that_there_is_more_to_an_attested_caller_alone(service, level):
    ana = service.user("ana")
    theirs = ana.at(level)
    ahead = CallRecall(theirs, "now", lambda: "", deadline_ms=60_000)
    ahead.partial("insulin")
    hooks = HostedWebhooks(service, lambda _: "ana", "default", level)
    told = {
        "search_memory": await tools.call(theirs, "search_memory", {"query": "insulin"}),
        "get_memory": await tools.call(theirs, "get_memory", {"key": "sensitive_pet"}),
        "documents": await hooks.documents(theirs, "insulin"),
        "memory_for": await CallMemory(theirs, deadline_ms=60_000).memory_for("insulin"),
        "in a turn": await (await ahead.in_turn("insulin")).recall("insulin", limit=3),
    }
    hints = {
        name for name, what in told.items() if "once they prove" in str(what) or "withheld=True" in str(what)
    }
    assert hints == (set(told) if level == "attested" else set())


async def test_a_deployment_changes_the_table_in_one_setting(tmp_path):
    url = f"sqlite:///{tmp_path}/other.db"
    async with echoic.open(url, embedder="lexical", assurance="attested=sensitive, device=open") as service:
        await plant(service)
        assert len(await service.user("ana").at("attested").facts()) == 4
        assert await service.user("ana").at("device").facts() == []
    with pytest.raises(InvalidInput, match="levels are device, unattested"):
        table_from("root=sensitive")
    with pytest.raises(InvalidInput, match="open, personal, sensitive"):
        table_from({"device": "everything"})


@pytest.mark.parametrize(
    "text",
    [
        "I have asthma",
        "my salary is 40,000",
        "I live at 12 Baker Street",
        "my [PIN] opens it",
        "I take ibuprofen for the pain",
        "we are behind on our mortgage",
        "write to ana@example.com",
        "my allergy medication is cetirizine",
        "my credit card was stolen",
    ],
)
def test_health_money_addresses_and_credentials_are_sensitive(text):
    assert is_sensitive(text)


@pytest.mark.parametrize(
    "text",
    [
        "I like jazz",
        "my sister is called Ana",
        "an aisle seat, please",
        "I work at the library",
        "allergies:peanuts",
        "I'm allergic to penicillin",
    ],
)
def test_the_rest_is_not(text):
    assert not is_sensitive(text)


async def test_off_the_record_destroys_nothing_above_the_callers_level(memory):
    """What was said in a call that the caller began is theirs to take back, whatever it was."""
    ana = memory.user("ana")
    old = await ana.conversation("old")
    await old.append(Turn(speaker="user", text="I have diabetes."))
    attested = ana.at("attested")
    again = await attested.conversation("old")
    with pytest.raises(NotAllowed):
        await again.off_the_record()
    await again.append(Turn(speaker="user", text="Don't remember this call."))
    assert [turn.text for turn in await old.turns()] == ["I have diabetes."]
    assert again.verdict == "off the record"
    new = await attested.conversation("new")
    await new.append(Turn(speaker="user", text="I have asthma and diabetes."))
    await (await attested.conversation("new", begin=False)).off_the_record()
    assert await (await ana.conversation("new", begin=False)).turns() == []
    await ana.conversation("open")
    await (await ana.conversation("open")).append(Turn(speaker="user", text="I like the aisle."))
    await (await attested.conversation("open")).off_the_record()
    assert await ana.find_conversation("open") is None


async def test_off_the_record_destroys_what_callers_of_the_level_added_from_any_process(tmp_path):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with echoic.open(url, embedder="lexical") as one, echoic.open(url, embedder="lexical") as other:
        began = await one.user("ana").at("attested").conversation("call")
        await began.append(Turn(speaker="user", text="I live in Porto and have diabetes.", id="asked"))
        await began.append(Turn(speaker="agent", text="Diabetes, noted. We open at nine."))
        await began.truncate(words=2, after="asked")
        await one.user("ana").at("attested").add_result("call", "note", "diabetes")
        await began.store("diabetes call", "They have diabetes.")
        await began.distil()
        stranger = await other.user("ana").at("unattested").conversation("call")
        with pytest.raises(NotAllowed):
            await stranger.off_the_record()
        assert len(await one.user("ana").history("home")) == 1, "control"
        await (await other.user("ana").at("attested").conversation("call")).off_the_record()
        assert await one.user("ana").history("home") == []
        assert await one.user("ana").find_conversation("call") is None
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"iabetes" in path.read_bytes()] == []


@pytest.mark.parametrize("kind", ["turn", "result"])
async def test_off_the_record_destroys_nothing_that_a_caller_who_is_told_more_added(memory, kind):
    """Neither where a caller of this level began the conversation."""
    ana = memory.user("ana")
    began = await ana.at("attested").conversation("call")
    await began.append(Turn(speaker="user", text="I have asthma."))
    if kind == "turn":
        await (await ana.conversation("call")).append(Turn(speaker="user", text="I have diabetes."))
    else:
        await ana.add_result("call", "note", "diabetes")
    with pytest.raises(NotAllowed):
        await began.off_the_record()
    task = await ana.task("call")
    assert "diabetes" in f"{task.turns} {task.results}"


async def test_whose_a_turn_is_stays_known_when_it_is_rewritten(memory):
    ana = memory.user("ana")
    attested = ana.at("attested")
    began = await attested.conversation("call")
    await began.append(Turn(speaker="user", text="I have asthma. My dog is called Rex.", id="both"))
    await began.append(Turn(speaker="user", text="I live in Porto, and I have diabetes.", id="home"))
    await began.distil()
    await ana.delete("home")
    await ana.forget(key="home")
    left = [turn.text for turn in (await ana.task("call")).turns]
    assert "Porto" not in f"{left}"
    assert "asthma" in f"{left}"
    await began.off_the_record()
    assert await ana.find_conversation("call") is None


async def test_a_proof_in_mid_call_reaches_the_open_conversation(memory):
    caller = memory.user("ana").at("attested")
    call = await caller.conversation("call")
    await call.append(Turn(speaker="user", text="I have asthma."))
    assert await call.turns() == []
    caller.step_up("proved")
    await call.append(Turn(speaker="user", text="I have diabetes."))
    await caller.add_result("call", "note", "diabetes")
    assert len(await call.turns()) == 2
    with pytest.raises(NotAllowed):
        await (await memory.user("ana").at("attested").conversation("call", begin=False)).off_the_record()
    await call.off_the_record()
    assert await memory.user("ana").find_conversation("call") is None
