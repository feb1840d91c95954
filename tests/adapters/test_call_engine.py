"""A telephone call has what every call has: a record and `why`, a checkpoint, transfer and captions."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pydantic_ai import Agent

import echoic
import forked
from adapters.conftest import AUTH_TOKEN, Script
from echoic.adapters.twilio.settings import FILLERS
from echoic.memory.conversation import OpenConversation
from echoic.memory.records import CHECKPOINT
from echoic.session import read_call, read_exchanges, read_given
from echoic.session.call_record import exchange_with, found_in, why
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Reply, Says, ToolCall, UserSays
from echoic_loopback.realtime import Script as Play
from echoic_loopback.twilio import SimulatedCall

QUESTION = "What is the name of my boat in the harbour?"


async def recorded(phone, call):
    """The user's turn of the last exchange, once it is written down."""
    memory = phone.memory()
    async with asyncio.timeout(30):
        while not (there := await read_exchanges(memory.backing_store, memory.scope, f"call:{call.sid}")):
            await asyncio.sleep(0.01)
    return there[-1]


def spoken(heard):
    """A reply without what a busy machine may have said to pass the time."""
    return heard.replace(FILLERS[0], "").strip()


async def over(phone, call):
    """Hang up, and wait until all that is kept at the end of a call is kept."""
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_why_is_answered_on_a_telephone_call(line, channel):
    phone = await line(lambda _said, _given: "She is called Nellie.", channel=channel, budget_tokens=120)
    memory = phone.memory()
    for n in range(30):
        await memory.set(f"thing {n}", f"number {n} is in room {n}")
    boat = await memory.set("boat", "the boat in the harbour is called Nellie")
    call = await phone.call()
    await call.say(QUESTION)
    await over(phone, call)
    turn = (await phone.turns(call)).turns[0]
    exchange = await exchange_with(memory.backing_store, memory.scope, turn.id)
    assert exchange.recall.outcome == "complete"
    assert {"transcript", "recalled", "first_audio", "generated"} <= exchange.stages.keys()
    answer = await why(memory.backing_store, memory.scope, exchange, "boat")
    assert answer.id == boat.id
    found = await found_in(memory.backing_store, memory.scope, exchange)
    # the question itself may have been embedded by then
    assert found[0].id == boat.id
    assert answer.reason in {"shown", "in_block"}
    given = await read_given(memory.backing_store, memory.scope, f"call:{call.sid}", f"call:{call.sid}")
    assert "Nellie" in str(given)
    assert {each.reason for each in found} <= {"shown", "in_block", "over_budget"}
    record = await read_call(memory.backing_store, memory.scope, f"call:{call.sid}")
    assert (record.agents, record.reason) == (["robin"], "ended")


async def test_echoic_why_prints_what_became_of_each_hit_of_a_telephone_call(line, tmp_path):
    store = f"sqlite:///{tmp_path}/why.db"
    async with echoic.open(store, embedder="lexical") as service:
        phone = await line(lambda _said, _given: "Nellie.", service=service)
        await phone.memory().set("boat", "the boat in the harbour is called Nellie")
        call = await phone.call()
        await call.say(QUESTION)
        await over(phone, call)
        turn = (await phone.turns(call)).turns[0].id
        user = phone.phone.callers.line_of("+15550100001")
    given = {**os.environ, "ECHOIC_STORE": store, "ECHOIC_USER": user, "ECHOIC_EMBEDDER": "lexical"}
    command = [sys.executable, "-m", "echoic.cli", "why", turn, "boat"]
    ran = await asyncio.to_thread(forked.run, command, env=given, capture_output=True, check=True)
    assert b"the model had it already" in ran.stdout or b"handed to the model" in ran.stdout


async def test_a_tool_of_a_telephone_call_stands_in_its_record(line):
    tool = ("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})
    phone = await line(lambda _said, given: "Noted." if given else [tool])
    call = await phone.call()
    await call.say("An aisle seat, please.")
    await over(phone, call)
    ran = (await recorded(phone, call)).tools
    assert [(run.name, run.outcome) for run in ran] == [("agentMemory", "success")]


@pytest.mark.parametrize("retention", ["ask", "never"])
async def test_nothing_is_recorded_of_a_call_that_is_not_kept(line, retention):
    phone = await line(lambda _said, _given: "Yes.", retention=retention)
    call = await phone.call()
    await call.say("I like opera.")
    await over(phone, call)
    memory = phone.memory()
    assert await read_call(memory.backing_store, memory.scope, f"call:{call.sid}") is None
    assert await memory.backing_store.scan(memory.scope, CHECKPOINT) == []


async def test_a_call_that_is_forgotten_in_mid_call_leaves_neither_record_nor_checkpoint(line):
    phone = await line(lambda _said, _given: "Yes.")
    call = await phone.call()
    await call.say("My sister is called Quillhilda.")
    await recorded(phone, call)
    memory = phone.memory()
    await memory.forget()
    await call.say("And my brother is called Wexcombe.")
    await over(phone, call)
    left = str([await memory.export(), await memory.backing_store.scan(memory.scope, CHECKPOINT)])
    assert "Quillhilda" not in left
    assert "Wexcombe" not in left, "nothing comes back with its end"


async def test_a_turn_is_written_once(line, monkeypatch):
    phone = await line(lambda _said, _given: "Noted.")
    call = await phone.call()
    await call.say("Hello.")
    await recorded(phone, call)
    await phone.service.settle()
    writes, opened = [], []
    write, begin = type(phone.memory().backing_store).write, OpenConversation.begin

    async def counted(self, scope, changes):
        writes.append([change.record.kind for change in changes if hasattr(change, "record")])
        return await write(self, scope, changes)

    async def begun(self):
        opened.append(self.id)
        await begin(self)

    monkeypatch.setattr(type(phone.memory().backing_store), "write", counted)
    monkeypatch.setattr(OpenConversation, "begin", begun)
    await call.say("Where is the harbour?")
    turns = [kinds.count("turn") for kinds in writes if "turn" in kinds]
    assert turns == [2], "what the agent said before, and what the caller says: one write"
    assert opened == [], "the conversation was opened with the first turn"


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_a_telephone_call_is_handed_to_another_agent_which_goes_on_at_once(line, channel):
    def robin(said, given):
        return ("One moment.", [("transfer_call", {"agent": "casey"})]) if "bill" in said else "Hello."

    casey = Script(lambda said, _given: f"Casey here, about {said}")
    phone = await line(robin, channel=channel)
    phone.phone.colleagues = (Agent(casey.model, name="casey"),)
    call = await phone.call()
    await call.say("Good morning.")
    heard = spoken(await call.say("my bill"))
    assert heard.split() == "One moment. Casey here, about my bill".split()
    assert "Good morning." in casey.sent[0], "the next agent knows what was said"
    assert len(phone.script.requests) == 2, "the first one was not asked again"
    assert spoken(await call.say("and my order")) == "Casey here, about and my order"
    await over(phone, call)
    memory = phone.memory()
    record = await read_call(memory.backing_store, memory.scope, f"call:{call.sid}")
    assert record.agents == ["robin", "casey"]
    said = [turn.text.split() for turn in (await phone.turns(call)).turns]
    assert said[3] == "One moment. Casey here, about my bill".split()


async def test_who_cuts_in_on_a_handover_heard_what_both_agents_said_so_far(line):
    def robin(_said, _given):
        return ("One moment.", [("transfer_call", {"agent": "casey"})])

    casey = Script(lambda said, _given: f"Casey here, and the last word is zanzibar, {said}")
    phone = await line(robin, channel="relay")
    phone.phone.colleagues = (Agent(casey.model, name="casey"),)
    call = await phone.call()
    await call.say("my bill", cut_in_after="Casey here,")
    await call.say("go on")
    assert "One moment." in casey.sent[-1]
    assert "Casey here," in casey.sent[-1]
    assert "zanzibar" not in casey.sent[-1].partition("'go on'")[0].rpartition("my bill")[2]


async def test_what_is_said_on_a_telephone_call_is_shown_while_it_is_said(line):
    phone = await line(lambda _said, _given: "She is called Nellie.", channel="relay")
    shown = []
    phone.phone.captions = lambda call, caption: shown.append((call.sid, caption))
    call = await phone.call(interim=True)
    await call.say("My boat?")
    await over(phone, call)
    assert {sid for sid, _ in shown} == {call.sid}
    final = [(caption.speaker, caption.text.strip()) for _, caption in shown if caption.final]
    assert final == [("user", "My boat?"), ("agent", "She is called Nellie.")]
    assert ("user", "My") in [(caption.speaker, caption.text) for _, caption in shown]


SERVER = """
import asyncio, socket, sys
import uvicorn
from pydantic_ai import Agent
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel
sys.path.insert(0, {tests!r})
import echoic
from adapters.conftest import AUTH_TOKEN, SALT, Script
from echoic.adapters.twilio import Pace, Phone, PhoneSettings, phone_app, uvicorn_options

TOOL = [("book_table", {{"people": 4}})]
ROBIN = Script(lambda said, given: ("Booked, I will hand you over.", [("transfer_call", {{"agent": "casey"}})])
    if given else TOOL if "table" in said else "Noted.")
CASEY = Script(lambda said, given: f"Casey: {{said}}, and I know of {{'table 4711' if '4711' in CASEY.sent[-1] else 'nothing'}}")

async def main():
    robin = Agent(ROBIN.model, name="robin")

    @robin.tool_plain
    def book_table(people: int) -> dict:
        return {{"result": "table 4711"}}

    async with echoic.open({store!r}, embedder="lexical") as service:
        voice = {voice!r}
        channel = "media" if voice else "gather"
        settings = PhoneSettings(auth_token=AUTH_TOKEN, salt=SALT, channel=channel, pace=Pace(characters_per_s=1e9))
        phone = Phone(service, robin, settings, colleagues=[Agent(CASEY.model, name="casey")])
        if voice:
            provider = OpenAIProvider(base_url=voice, api_key="none")
            phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        listening = socket.create_server(("127.0.0.1", {port}))
        server = uvicorn.Server(uvicorn.Config(phone_app(phone), **uvicorn_options()))
        print("ready", flush=True)
        await server.serve(sockets=[listening])

asyncio.run(main())
"""


@pytest.fixture
async def server(tmp_path):
    """Starts a phone's server in a process of its own, as asked; all of them on the same port and store."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store = f"sqlite:///{tmp_path}/killed.db"
    tests = str(Path(__file__).parents[1])
    running = []

    async def start(voice=""):
        source = textwrap.dedent(SERVER).format(tests=tests, store=store, port=port, voice=voice)
        process = forked.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
        running.append(process)
        ready = asyncio.to_thread(process.stdout.readline)
        assert (await asyncio.wait_for(ready, 120)).strip() == b"ready"
        return process

    yield start, f"http://127.0.0.1:{port}", store
    for process in running:
        process.kill()
        process.communicate()


async def checkpoint_of(service, call):
    """The checkpoint of a call that says who serves, once it holds what was said last."""
    for scope in await service.user("x").backing_store.scopes("default"):
        for record in await service.user("x").backing_store.scan(scope, CHECKPOINT):
            if record.id == f"call:{call.sid}":
                return record.data
    return None


async def test_a_telephone_call_whose_process_is_killed_is_resumed_from_its_checkpoint(server):
    start, url, store = server
    process = await start()
    async with SimulatedCall(url, AUTH_TOKEN) as call:
        await call.dial()
        assert "Casey" in await call.say("a table for four")
        async with echoic.open(store, embedder="lexical") as service, asyncio.timeout(60):
            while not ((found := await checkpoint_of(service, call)) and "Booked" in str(found["unkept"])):
                await asyncio.sleep(0.05)
        assert found["agent"] == "casey"
        assert "4711" in json.dumps(found), "what the tool gave is in the checkpoint"
        process.kill()
        process.wait()
        await start()
        heard = spoken(await call.say("are you still there"))
        assert heard == "Casey: are you still there, and I know of table 4711"
        await call.hang_up()
    async with echoic.open(store, embedder="lexical") as service:
        async with asyncio.timeout(60):  # the call ended: nobody takes it up again
            while await checkpoint_of(service, call) is not None:
                await asyncio.sleep(0.05)
        for user in await service.users():
            task = await service.user(user).task(f"call:{call.sid}")
            said = [turn.text.strip() for turn in task.turns]
        assert said[0] == "a table for four"
        assert said[1].startswith("Booked, I will hand you over.")
        assert len(said) == 4


async def test_a_media_stream_whose_process_is_killed_is_resumed_from_its_checkpoint(server):
    start, url, store = server
    scripts = [
        Play(
            UserSays("a table for four", after_ms=300),
            Calls(ToolCall("book_table", {"people": 4})),
            Reply(Says("booked"), Calls(ToolCall("transfer_call", {"agent": "casey"}))),
            open_ended=True,
        ),
        Play(Says("casey here"), open_ended=True),
        Play(UserSays("are you still there", after_ms=300), Says("of course"), open_ended=True),
    ]
    async with OpenAIRealtimeServer(*scripts) as voice, SimulatedCall(url, AUTH_TOKEN) as call:
        process = await start(voice.base_url)
        await call.dial()
        async with echoic.open(store, embedder="lexical") as service, asyncio.timeout(90):
            while not ((found := await checkpoint_of(service, call)) and "casey here" in str(found)):
                await asyncio.sleep(0.05)
        assert found["agent"] == "casey"
        process.kill()
        process.wait()
        await start(voice.base_url)
        await call._follow(call._after, {"SessionStatus": "failed", "CallStatus": "in-progress"})
        async with asyncio.timeout(90):
            while len(voice.sessions) < 3 or not voice.sessions[2].script_over:
                await asyncio.sleep(0.05)
        await call.stream.listen()
        await call.hang_up()
        told = str([item.wire for item in voice.sessions[2].conversation])
    assert "table 4711" in told, "what the tool gave is known to the next process"
    async with echoic.open(store, embedder="lexical") as service:
        async with asyncio.timeout(60):  # the call ended: nobody takes it up again
            while await checkpoint_of(service, call) is not None:
                await asyncio.sleep(0.05)
        (user,) = await service.users()
        task = await service.user(user).task(f"call:{call.sid}")
    assert [turn.text for turn in task.turns] == [
        "a table for four",
        "booked",
        "casey here",
        "are you still there",
        "of course",
    ]


async def test_who_is_cut_off_by_a_kill_and_calls_anew_is_known_by_what_was_said(server):
    start, url, store = server
    process = await start()
    async with SimulatedCall(url, AUTH_TOKEN) as call:
        await call.dial()
        await call.say("My name is Quillhilda.")
        process.kill()
        process.wait()
    await start()
    async with SimulatedCall(url, AUTH_TOKEN) as call:
        await call.dial()
        assert await call.say("Who am I?")
        await call.hang_up()
    async with echoic.open(store, embedder="lexical") as service:
        (user,) = await service.users()
        assert (await service.user(user).profile()).name == "Quillhilda"
