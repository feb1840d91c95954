# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio
from functools import partial

import numpy as np
import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, SpeechPart
from pydantic_ai.realtime import RealtimeError

from echoic import InvalidInput
from echoic.errors import NotOpen
from echoic.session import VoiceAgent, VoiceSession, read_call
from echoic.session.agents import TRANSFER_TOOL
from echoic.session.call_state import CallState
from echoic.session.history import masked_messages
from echoic.session.playback import Utterance
from echoic.session.speech_alignment import SpeechTrace
from echoic_loopback.realtime import Calls, Refusal, Reply, Says, Script, ToolCall, UserSays, speech
from session.conftest import BY_ONE_PROVIDER

TO_BILLING = Calls(ToolCall(TRANSFER_TOOL, {"agent": "billing"}))


class Marked:
    """A microphone whose frames carry their number, so that order and loss can be told at the other end."""

    def __init__(self, rate):
        self.size = rate * 20 // 1000
        self.sent = 0

    def frame(self):
        self.sent += 1
        return np.full(self.size, self.sent, dtype="<i2").tobytes()


def numbers(audio, size):
    samples = np.frombuffer(bytes(audio), dtype="<i2")
    return samples[::size].tolist()


@BY_ONE_PROVIDER
async def test_frames_arrive_in_order_and_none_is_lost_while_a_slow_line_is_opened(
    memory, provider, serve, phone, eventually
):
    entered = []

    async def on_enter(ctx):
        entered.append(ctx.agent)

    async def on_exit(ctx):
        entered.append(f"-{ctx.agent}")

    agents = [
        VoiceAgent(name="front", instructions="You are the front desk.", on_enter=on_enter, on_exit=on_exit),
        VoiceAgent(
            name="billing",
            instructions="You do the bills.",
            on_enter=on_enter,
            on_exit=on_exit,
            greeting="Say hello.",
        ),
    ]
    first = Script(UserSays("my bill please", after_ms=300), TO_BILLING, Says("one moment"), open_ended=True)
    second = Script(
        Says("billing here"),
        UserSays("invoice seven", after_ms=600),
        Says("it is paid"),
        accept_after_s=0.15,
        open_ended=True,
    )
    transfers = []

    async def listener(_ctx, event):
        if event.what == "transfer":
            transfers.append(event.details["gap_ms"])

    async with serve(provider, first, second) as (server, model):
        async with VoiceSession(
            memory, user="ana", agents=agents, model=model, session_id="t", listener=listener
        ) as session:
            line = phone(session, speed=5)
            mic = Marked(session.profile.input_hz)

            async def mark():
                while True:
                    await session.send_audio(mic.frame())
                    await asyncio.sleep(0.004)

            line._mic = mark
            async with line:
                await eventually(lambda: len(server.sessions) == 2 and server.sessions[1].script_over, 60)
                await eventually(lambda: session.recorder.kept == 5, 60)
                assert session.current_agent == "billing"
                assert session.state == "active"
        a, b = (numbers(each.input_audio, mic.size) for each in server.sessions[:2])
    assert a == list(range(1, len(a) + 1))
    assert b == list(range(len(a) + 1, len(a) + len(b) + 1))
    assert len(a) + len(b) >= mic.sent - 1
    assert entered == ["front", "-front", "billing", "-billing"]
    assert [turn.text for turn in (await memory.user("ana").task("t")).turns] == [
        "my bill please",
        "one moment",
        "billing here",
        "invoice seven",
        "it is paid",
    ]
    assert len(transfers) == 1
    call = await read_call(memory.user("ana").backing_store, memory.user("ana").scope, "t")
    assert call.agents == ["front", "billing"]


async def test_the_next_agent_has_its_own_instructions_the_memory_and_what_was_said(
    memory, provider, serve, phone, eventually
):
    await memory.user("ana").set("home", "Lisbon")
    agents = [
        VoiceAgent(name="front", instructions="You are the front desk."),
        VoiceAgent(name="billing", instructions="You do the bills."),
    ]
    first = Script(
        UserSays("invoice seven please", after_ms=300), Reply(Says("gladly"), TO_BILLING), open_ended=True
    )
    async with serve(provider, first, Script(open_ended=True)) as (server, model):
        async with VoiceSession(memory, user="ana", agents=agents, model=model) as session, phone(session):
            await eventually(lambda: len(server.sessions) == 2 and session.current_agent == "billing", 60)
            await eventually(lambda: "invoice seven please" in str(server.sessions[1].record.received()))
            told = str(server.sessions[1].record.received())
    assert "You do the bills." in told
    assert "front desk" not in told
    assert "Lisbon" in told


async def test_what_the_first_agent_was_asked_to_say_is_asked_of_no_other(
    memory, provider, serve, phone, eventually
):
    """Neither of the next agent, nor again after a resume on the same or another provider's line."""

    async def on_turn(ctx, text):
        if "invoice" in text:
            await ctx.say("Tell the caller that it takes a moment.")

    agents = [
        VoiceAgent(
            name="front",
            instructions="You are the front desk.",
            greeting="Greet the caller and ask for the number of the order.",
            on_turn_completed=on_turn,
        ),
        VoiceAgent(name="billing", instructions="You do the bills.", greeting="Say that billing is here."),
    ]
    first = Script(
        Says("welcome"),
        UserSays("invoice seven please", after_ms=900),
        TO_BILLING,
        Says("gladly"),
        open_ended=True,
    )
    scripts = [first, Script(Says("billing here"), open_ended=True), Script(open_ended=True)]
    asked_once = ["number of the order", "takes a moment"]
    async with serve(provider, *scripts) as (server, model):
        session = VoiceSession(memory, user="ana", agents=agents, model=model, session_id="t")
        async with session, phone(session):
            await eventually(lambda: len(server.sessions) == 2 and server.sessions[1].script_over, 60)
            await eventually(lambda: "billing here" in str(session.live.provider.all_messages()), 60)
            await session.inject("The office closes at six.")
            await eventually(lambda: "closes at six" in str(server.sessions[1].record.received()), 60)
            await eventually(lambda: session.live.playback.idle)
            await session.suspend()
        assert asked_once[0] in str(server.sessions[0].record.received())
        told = str(server.sessions[1].record.received())
        assert "invoice seven please" in told
        assert not [request for request in asked_once if request in told]
        again = await VoiceSession.resume(memory, "t", user="ana", agents=agents, model=model)
        async with again:
            assert again.current_agent == "billing"
            await eventually(lambda: "invoice seven please" in str(server.sessions[2].record.received()), 60)
            assert "closes at six" in str(again.live.provider.all_messages()), "the operator's word holds on"
            told = str(server.sessions[2].record.received())
    assert not [request for request in [*asked_once, "billing is here"] if request in told]


async def test_an_agent_that_cannot_be_reached_leaves_the_call_with_the_one_before(
    memory, serve, phone, eventually
):
    agents = [VoiceAgent(name="front"), VoiceAgent(name="billing")]
    first = Script(
        UserSays("my bill", after_ms=300),
        TO_BILLING,
        Says("that did not work"),
        UserSays("never mind", after_ms=1500),
        Says("all right"),
    )
    async with serve("openai", first, Script(refuse=Refusal(status=503, message="busy"))) as (server, model):
        async with (
            VoiceSession(memory, user="ana", agents=agents, model=model, session_id="stay") as session,
            phone(session),
        ):
            await eventually(lambda: server.sessions[0].script_over, 60)
            await eventually(lambda: session.recorder.kept == 4, 60)
            assert session.current_agent == "front"
            assert session.state == "active"


async def test_a_call_goes_only_to_agents_of_the_session(memory, serve):
    async with (
        serve("openai", Script(open_ended=True)) as (_, model),
        VoiceSession(memory, user="ana", agents=[VoiceAgent(name="front")], model=model) as session,
    ):
        with pytest.raises(InvalidInput, match="no agent 'nobody'"):
            await session.transfer("nobody")


AGENTS = [VoiceAgent(name="front"), VoiceAgent(name="billing"), VoiceAgent(name="desk")]


async def test_a_transfer_that_failed_forbids_no_later_one(memory, serve):
    away = Script(refuse=Refusal(status=503, message="busy"))
    async with serve("openai", Script(open_ended=True), away, Script(open_ended=True)) as (_, model):
        async with VoiceSession(memory, user="ana", agents=AGENTS, model=model) as session:
            with pytest.raises(ModelHTTPError):
                await session.transfer("billing")
            await session.transfer("billing")
            assert session.current_agent == "billing"
            assert session.state == "active"


async def test_transfers_that_are_asked_for_at_once_happen_one_after_the_other(memory, serve):
    opening, most = [], []
    async with serve("openai", *[Script(open_ended=True)] * 4) as (_, model):
        async with VoiceSession(memory, user="ana", agents=AGENTS, model=model) as session:
            lines = session._running._lines
            plain = lines.open

            async def counted(agent, *given):
                opening.append(agent.name)
                most.append(len(opening))
                try:
                    return await plain(agent, *given)
                finally:
                    opening.remove(agent.name)

            lines.open = counted
            await asyncio.gather(*(session.transfer(agent) for agent in ("billing", "desk", "front")))
            assert most == [1, 1, 1]
            assert session.current_agent == "front"
            assert [provider.setup.agent.name for provider in session.live.providers if provider.is_open] == [
                "front"
            ]
            assert session.recorder.log.call.agents == ["front", "billing", "desk", "front"]


async def test_a_call_that_ends_is_handed_to_nobody(memory, serve):
    refused = []
    async with serve("openai", Script(open_ended=True), Script(open_ended=True)) as (server, model):
        async with VoiceSession(memory, user="ana", agents=AGENTS, model=model) as session:
            recorder = session._running._collector
            plain = recorder.finish

            async def finish(**given):
                try:
                    await session.transfer("billing")
                except NotOpen as error:
                    refused.append(error)
                return await plain(**given)

            recorder.finish = finish
        assert len(refused) == 1
        assert len(server.sessions) == 1
        assert session.state == "closed"


async def test_a_line_that_is_opened_while_the_caller_hangs_up_is_closed_again(memory, serve, eventually):
    opened = []
    async with serve("openai", Script(open_ended=True), Script(open_ended=True)) as (_, model):
        async with VoiceSession(memory, user="ana", agents=AGENTS, model=model) as session:
            running = session._running
            plain = running._lines.open

            async def noted(*given):
                opened.append(await plain(*given))
                return opened[-1]

            running._lines.open = noted
            async with running.live.sending:  # a frame is on its way to a slow line
                moving = asyncio.create_task(session.transfer("billing"))
                await eventually(lambda: opened)
                await session.close()
            with pytest.raises(asyncio.CancelledError):
                await moving
            assert not opened[0].is_open


async def test_of_what_is_said_while_a_line_is_opened_the_next_agent_is_told_what_was_heard(
    memory, serve, eventually, monkeypatch
):
    spoken = speech("one two three four five", word_ms=200)
    trace = SpeechTrace(24_000)
    trace.wrote("one two three four five")
    trace.sounded(len(spoken.pcm))
    cut = Utterance("t", "front", trace, cut=True, ended=True, played_bytes=len(spoken.pcm) * 2 // 5)
    said = [
        ModelResponse(parts=[SpeechPart(speaker="assistant", transcript=trace.text)]),
        ModelRequest(parts=[SpeechPart(speaker="user", transcript="my PIN is 8361")]),
    ]
    masked = partial(masked_messages, masked=lambda text: text.replace("8361", "hidden"))
    monkeypatch.setattr(CallState, "history_so_far", lambda _, messages: masked(messages))
    async with serve("openai", Script(open_ended=True), Script(open_ended=True)) as (server, model):
        async with VoiceSession(memory, user="ana", agents=AGENTS, model=model) as session:
            lines, old = session._running._lines, session.live.provider
            plain = lines.open

            async def opened(*given):
                new = await plain(*given)
                old.utterances[0] = cut
                monkeypatch.setattr(old, "new_messages", lambda: said)
                return new

            monkeypatch.setattr(lines, "open", opened)
            await session.transfer("billing")
            await eventually(lambda: "meanwhile" in str(server.sessions[1].record.received()))
            told = str(server.sessions[1].record.received())
    assert 'Your colleague said: "one two"' in told
    assert "three" not in told
    assert 'The caller said: "my PIN is hidden"' in told
    assert "8361" not in told


async def test_an_agent_who_cannot_be_told_what_was_said_meanwhile_serves_all_the_same(
    memory, serve, monkeypatch
):
    entered = []

    async def on_enter(ctx):
        entered.append(ctx.agent)

    said = [ModelRequest(parts=[SpeechPart(speaker="user", transcript="are you there")])]
    agents = [VoiceAgent(name="front"), VoiceAgent(name="billing", on_enter=on_enter)]
    async with serve("openai", Script(open_ended=True), Script(open_ended=True)) as (_, model):
        async with VoiceSession(memory, user="ana", agents=agents, model=model) as session:
            lines, old = session._running._lines, session.live.provider
            plain = lines.open

            async def broken(*_given, **_more):
                raise RealtimeError("gpt-realtime", "the line broke")

            async def opened(*given):
                new = await plain(*given)
                monkeypatch.setattr(old, "new_messages", lambda: said)
                monkeypatch.setattr(new.session, "send", broken)
                return new

            monkeypatch.setattr(lines, "open", opened)
            await session.transfer("billing")
            assert entered == ["billing"]
            assert session.current_agent == "billing"
