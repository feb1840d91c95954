"""The model-backed chat: OpenAI's own client against a provider on this machine, streamed to whoever asks."""

from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import echoic
from echoic.adapters.connections import Limits
from echoic.types import Turn
from memory.test_assurance import PLANTED, QUESTION, plant
from server.conftest import serving, settings_of
from server.scripted_model import ScriptedModel, Spoken

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def provider():
    scripted = ScriptedModel()
    scripted.start()
    yield scripted
    scripted.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def talking(start, provider):
    """A server whose agent is a model."""
    client = AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    async with start(model=model) as server:
        yield server
    await client.close()


async def stream(server, identity, text, **fields):
    """Every event of an answer, in order."""
    found = []
    async with server.client.stream(
        "POST", "/api/chat/stream", json={"text": text, **fields}, headers=identity.headers
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
    return found


def prompts(request):
    return "\n".join(m["content"] or "" for m in request["messages"] if m["role"] in {"system", "developer"})


async def test_what_is_said_beside_a_secret_is_learned(talking, provider):
    provider.says = lambda _request: Spoken(words=("Lisbon it is.",))
    ana = await talking.identity()
    *_, (last, said) = await stream(talking, ana, "I moved to Lisbon and my PIN is 4821.")
    assert last == "said"
    assert said["heard"]["text"] == "I moved to Lisbon and my PIN is [PIN]."
    assert [(m["key"], m["text"]) for m in said["stored"]] == [("home", "Lisbon")]


async def test_an_answer_comes_word_by_word_and_whole_and_what_was_said_is_learned(talking, provider):
    provider.says = lambda _request: Spoken(words=("Haifa, ", "by the ", "sea."))
    ana = await talking.identity()
    *words, (last, said) = await stream(talking, ana, "I live in Haifa.")
    assert words == [("text", {"text": text}) for text in ("Haifa, ", "by the ", "sea.")]
    assert (last, said["text"], said["agent"]) == ("said", "Haifa, by the sea.", "assistant")
    assert [(m["key"], m["text"]) for m in said["stored"]] == [("home", "Haifa")]
    assert said["heard"]["text"] == "I live in Haifa."
    assert {"recall", "first words", "answer", "distil"} <= set(said["timings"])
    exported = (await talking.client.get("/api/export", headers=ana.headers)).json()
    (conversation,) = exported["conversations"]
    assert [(turn["speaker"], turn["text"]) for turn in conversation["turns"]] == [
        ("user", "I live in Haifa."),
        ("agent", "Haifa, by the sea."),
    ]
    about = (await talking.client.get("/api/about")).json()
    assert (about["agent"], about["model"]) == ("assistant", "openai:scripted")


async def test_the_next_conversation_begins_with_what_is_known_and_no_one_elses(talking, provider):
    ana, eve = await talking.identity(), await talking.identity()
    await stream(talking, ana, "I live in Haifa.")
    await stream(talking, ana, "Where do I live?")
    last = provider.requests[-1]
    assert "Haifa" not in prompts(last), "what people said is no message of the operator's"
    assert any('"Haifa"' in str(m["content"]) for m in last["messages"] if m["role"] == "user")
    assert "I live in Haifa." not in [m["content"] for m in provider.requests[-1]["messages"]]
    await stream(talking, eve, "Where do I live?")
    assert "Haifa" not in json.dumps(provider.requests[-1])


async def test_a_conversation_goes_on_with_what_was_said_in_it(talking, provider):
    provider.says = lambda _request: Spoken(words=("I see.",))
    ana = await talking.identity()
    begun = (await talking.client.post("/api/conversations", headers=ana.headers)).json()
    first = (await stream(talking, ana, "I keep bees.", conversation=begun["conversation"]))[-1][1]
    await stream(talking, ana, "How many do I keep?", conversation=first["conversation"])
    said = [(m["role"], m["content"]) for m in provider.requests[-1]["messages"] if m["role"] != "system"]
    assert said == [("user", "I keep bees."), ("assistant", "I see."), ("user", "How many do I keep?")]


async def test_the_model_uses_memory_and_it_is_told(talking, provider):
    def says(request):
        if any(message["role"] == "tool" for message in request["messages"]):
            return Spoken(words=("Noted.",))
        call = ("agentMemory", {"operation": "set", "key": "pet", "value": "an axolotl"})
        return Spoken(calls=(call,))

    provider.says = says
    ana = await talking.identity()
    events = await stream(talking, ana, "Please remember my axolotl.")
    assert [name for name, _ in events] == ["tool", "text", "said"]
    assert events[0][1] == {"name": "agentMemory"}
    assert (await talking.memory_of(ana, "get", key="pet")).json()["result"]["text"] == "an axolotl"


@pytest.mark.parametrize(
    "spoken",
    [Spoken(status=500), Spoken(status=429), Spoken(), Spoken(words=("Half an",), cut=True)],
    ids=["error", "too often", "nothing", "cut off"],
)
async def test_a_model_that_fails_is_said_and_what_the_caller_said_is_kept(talking, provider, spoken):
    provider.says = lambda _request: spoken
    ana = await talking.identity()
    events = await stream(talking, ana, "I live in Haifa.")
    whole = await talking.client.post("/api/chat", json={"text": "I live in Haifa."}, headers=ana.headers)
    if spoken.cut:  # a stream that ends early is an answer that ends early: the client cannot tell
        assert events[-1][0] in {"problem", "said"}
    else:
        assert events[-1][0] == "problem"
        assert events[-1][1]["code"] == "model_unavailable"
        assert (whole.status_code, whole.json()["code"]) == (503, "model_unavailable")
        assert "Retry-After" in whole.headers
    exported = (await talking.client.get("/api/export", headers=ana.headers)).json()
    kept = [
        turn["text"] for c in exported["conversations"] for turn in c["turns"] if turn["speaker"] == "user"
    ]
    assert kept == ["I live in Haifa."] * 2


async def test_what_cannot_be_kept_is_refused_before_anything_is_streamed(talking, provider):
    ana = await talking.identity()
    answer = await talking.client.post("/api/chat/stream", json={"text": " "}, headers=ana.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert provider.requests == []


async def test_a_caller_who_hangs_up_ends_the_answer_and_nothing_else(talking, provider):
    provider.says = lambda _request: Spoken(words=("word ",) * 200, pause_s=0.05)
    ana = await talking.identity()
    async with talking.client.stream(
        "POST", "/api/chat/stream", json={"text": "I live in Haifa."}, headers=ana.headers
    ) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                break
    provider.says = lambda _request: Spoken(words=("Yes.",))
    assert (await stream(talking, ana, "Are you there?"))[-1][1]["text"] == "Yes."
    exported = (await talking.client.get("/api/export", headers=ana.headers)).json()
    said = [turn["text"] for c in exported["conversations"] for turn in c["turns"]]
    assert said == ["I live in Haifa.", "Are you there?", "Yes."]


async def test_what_was_forgotten_is_in_no_later_prompt(talking, provider):
    ana = await talking.identity()
    first = (await stream(talking, ana, "I live in Haifa."))[-1][1]
    await talking.client.post("/api/forget", json={"everything": True}, headers=ana.headers)
    await stream(talking, ana, "Where do I live?", conversation=first["conversation"])
    assert "Haifa" not in json.dumps(provider.requests[-1])


async def test_without_a_model_the_whole_answer_comes_at_once(own, ana):
    events = await stream(own, await own.identity(), "I live in Haifa.")
    assert [(name, data["agent"]) for name, data in events] == [("said", "keyless")]


async def test_a_model_that_cannot_be_is_refused_when_the_server_is_made(start):
    from echoic.errors import InvalidInput

    with pytest.raises(InvalidInput, match="nobody"):
        async with start(model="nobody:knows"):
            pass


# -- memory as it forms


class Listener:
    """Somebody who listens to their own memory."""

    def __init__(self, server, identity):
        self.events: asyncio.Queue = asyncio.Queue()
        self._task = asyncio.create_task(self._listen(server, identity))

    async def _listen(self, server, identity):
        async with server.client.stream(
            "GET", "/api/events", headers=identity.headers, timeout=None
        ) as answer:
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith(":"):
                    self.events.put_nowait(("beat", None))
                elif line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.put_nowait((name, json.loads(line.removeprefix("data: "))))

    async def next(self):
        return await asyncio.wait_for(self.events.get(), 60)

    @property
    def ended(self):
        return self._task

    async def stop(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_what_is_learned_of_a_caller_is_told_to_them_and_to_nobody_else(own):
    ana, eve = await own.identity(), await own.identity()
    theirs, hers = Listener(own, eve), Listener(own, ana)
    assert await theirs.next() == await hers.next() == ("beat", None)
    await own.say(ana, "I live in Haifa.")
    name, learned = await hers.next()
    assert (name, learned["reader"]) == ("learned", "rules")
    assert [m["text"] for m in learned["added"]] == ["Haifa"]
    assert learned["durationMs"] > 0
    await own.say(ana, "Actually I moved to Jaffa.")
    name, learned = await hers.next()
    assert [m["text"] for m in learned["superseded"]] == ["Haifa"]
    await own.client.post("/api/forget", json={"everything": True}, headers=ana.headers)
    assert await hers.next() == ("forgotten", {"what": "everything"})
    assert theirs.events.empty()
    await theirs.stop()
    await hers.stop()
    await own.say(ana, "I live in Haifa.")  # to nobody, and nothing breaks


async def test_a_page_that_listens_is_sent_signs_of_life(start):
    async with start(url="memory://", beat_s=0.05) as server:
        listener = Listener(server, await server.identity())
        assert [await listener.next() for _ in range(3)] == [("beat", None)] * 3
        await listener.stop()


async def test_who_listens_with_an_identity_that_ends_is_told_nothing_more(start):
    async with start(url="memory://", token_lifetime_s=6) as server:
        ana, eve = await server.identity(), await server.identity()
        revoked, expiring = Listener(server, ana), Listener(server, eve)
        assert await revoked.next() == await expiring.next() == ("beat", None)
        await server.client.post("/api/identity/revoke", headers=ana.headers)
        for user in (ana.user, eve.user):
            if user == eve.user:
                await asyncio.sleep(7.1)
            call = await server.memory.user(user).conversation("elsewhere")
            await call.append(Turn(speaker="user", text="I live in Haifa."))
        for listener in (revoked, expiring):
            await asyncio.wait_for(listener.ended, 60)
            assert listener.events.empty()


async def test_too_many_pages_of_one_caller_end_the_oldest(own):
    ana = await own.identity()
    listeners = []
    for _ in range(9):
        listeners.append(Listener(own, ana))
        await listeners[-1].next()
    await asyncio.wait_for(listeners[0].ended, 60)
    assert not listeners[1].ended.done()
    for listener in listeners:
        await listener.stop()


@pytest.mark.parametrize("limits", [Limits(streams=3), Limits(streams_per_address=3)], ids=["all", "address"])
async def test_too_many_pages_in_all_end_the_oldest_and_leave_room_for_requests(start, limits):
    async with start(limits=limits) as own:
        listeners = []
        for _ in range(5):
            listeners.append(Listener(own, await own.identity()))
            await listeners[-1].next()
        for listener in listeners[:2]:
            await asyncio.wait_for(listener.ended, 60)
        assert not any(listener.ended.done() for listener in listeners[2:])
        for listener in listeners:
            await listener.stop()


async def test_a_server_that_stops_does_not_wait_for_pages_that_listen(start):
    async with start(url="memory://") as server:
        listener = Listener(server, await server.identity())
        await listener.next()
        server.uvicorn.should_exit = True
        # uvicorn would have waited for the line to end, and then cut it; it is ended in an orderly way
        await asyncio.wait_for(listener.ended, 60)
    assert listener.ended.exception() is None


async def test_what_an_agent_would_be_given_is_shown_with_its_tokens(own):
    ana = await own.identity()
    await own.say(ana, "I'm Ana and I live in Haifa. I'm allergic to peanuts.")
    await own.memory.user(ana.user).set_directives(pacing="slow", small_talk="none before coffee")
    profile = (await own.client.get("/api/profile", headers=ana.headers)).json()
    assert (profile["name"], profile["home"], profile["age"]) == ("Ana", "Haifa", None)
    assert profile["directives"]["pacing"] == "slow"
    assert profile["directives"]["free"] == {"small_talk": "none before coffee"}
    block = (await own.client.get("/api/block", headers=ana.headers)).json()
    texts = {section["name"]: section["text"] for section in block["sections"]}
    assert "Ana" in texts["profile"]
    assert "peanuts" in texts["memories"]
    assert all(section["tokens"] > 0 for section in block["sections"])
    assert 0 < block["tokens"] <= block["budgetTokens"] == 600
    small = (await own.client.get("/api/block?budgetTokens=80", headers=ana.headers)).json()
    assert small["tokens"] <= 80
    assert small["leftOut"] > 0
    assert (await own.client.get("/api/block?budgetTokens=0", headers=ana.headers)).status_code == 422


async def test_jobs_are_the_callers_own(start, provider):
    client = AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    async with start(distils_with=model) as server:
        ana, eve = await server.identity(), await server.identity()
        said = await server.say(ana, "I play the accordion on Thursdays.")
        call = await server.memory.user(ana.user).conversation(said["conversation"])
        await call.distil()  # the provider answers 500
        jobs = (await server.client.get("/api/jobs", headers=ana.headers)).json()
        assert (jobs["failing"], jobs["parked"], jobs["embeddingFailure"]) == (1, [], None)
        for _ in range(4):
            await call.distil()
        jobs = (await server.client.get("/api/jobs", headers=ana.headers)).json()
        (parked,) = jobs["parked"]
        assert (parked["conversation"], parked["attempts"]) == (said["conversation"], 5)
        assert jobs["failing"] == 0
        others = (await server.client.get("/api/jobs", headers=eve.headers)).json()
        assert (others["waiting"], others["failing"], others["parked"]) == (0, 0, [])
    await client.close()


async def test_what_holds_no_longer_is_listed_with_what_took_its_place(own):
    ana = await own.identity()
    user = own.memory.user(ana.user)
    await user.set("home", "Haifa")
    await user.set("home", "Jaffa")
    await user.set("pet", "a cat")
    await user.delete("pet")
    listed = (await own.client.get("/api/memories?history=true", headers=ana.headers)).json()
    (home,) = listed["memories"]
    old, cat = listed["past"]
    assert (old["text"], old["supersededBy"], old["deleted"]) == ("Haifa", home["id"], False)
    assert (cat["text"], cat["supersededBy"], cat["current"]) == ("a cat", None, False)
    assert cat["deleted"] is True


async def test_the_model_is_sent_no_more_than_its_caller_may_be_told(tmp_path, provider):
    client = AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
    memory = echoic.open(
        f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", assurance={"device": "personal"}
    )
    async with serving(memory, settings_of(model=model)) as server:
        ana = await server.identity()
        await plant(memory, ana.user)
        await server.say(ana, QUESTION)
    await client.close()
    told = json.dumps(provider.requests).replace(QUESTION, "")
    assert PLANTED["personal"] in told
    assert PLANTED["sensitive"] not in told


async def test_a_turn_that_a_model_answered_is_shown_with_its_stages_tools_and_what_the_model_was_given(
    talking, provider, operator
):
    def says(request):
        if any(message["role"] == "tool" for message in request["messages"]):
            return Spoken(words=("In Haifa, ", "noted."))
        return Spoken(calls=(("agentMemory", {"operation": "set", "key": "pet", "value": "an axolotl"}),))

    ana = await talking.identity()
    await talking.say(ana, "I live in Haifa.")
    provider.says = says
    said = (await stream(talking, ana, "Where do I live?"))[-1][1]
    answer = await talking.client.get(
        f"/api/calls/{said['conversation']}", params={"user": ana.user}, headers=operator
    )
    page = answer.json()
    assert (page["call"]["channel"], page["call"]["model"]) == ("text", "scripted")
    (exchange,) = page["exchanges"]
    stages = exchange["stages"]
    assert exchange["userTurn"] == page["turns"][0]["id"]
    assert stages["transcript"] <= stages["recall_began"] <= stages["recalled"] <= stages["first_audio"]
    assert stages["first_audio"] <= stages["generated"]
    (tool,) = exchange["tools"]
    assert (tool["name"], tool["outcome"]) == ("agentMemory", "success")
    assert stages["recalled"] <= tool["beganMs"] <= tool["endedMs"] <= stages["first_audio"]
    home = next(hit for hit in exchange["recall"]["hits"] if hit["key"] == "home")
    assert home["fate"] in {"shown", "in_block"}
    given = {text["role"]: text["text"] for text in exchange["given"]}
    assert "axolotl" in given["tool-return"]
    assert "Haifa" in "".join(text["text"] for text in exchange["given"] if text["role"] == "memory")
