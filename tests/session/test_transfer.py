# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import numpy as np
import pytest

from echoic import InvalidInput
from echoic.session import VoiceAgent, VoiceSession, read_call
from echoic.session.agents import TRANSFER_TOOL
from echoic.session.checkpoints import store_of
from echoic.testing.realtime import Calls, Reply, Says, Script, ToolCall, UserSays

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
                import asyncio

                while True:
                    await session.send_audio(mic.frame())
                    await asyncio.sleep(0.004)

            line._mic = mark
            async with line:
                await eventually(lambda: len(server.sessions) == 2 and server.sessions[1].script_over, 20)
                await eventually(lambda: session.live.kept == 5, 20)
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
    call = await read_call(store_of(memory.user("ana")), memory.user("ana").scope, "t")
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
            await eventually(lambda: len(server.sessions) == 2 and session.current_agent == "billing", 20)
            await eventually(lambda: "invoice seven please" in str(server.sessions[1].record.received()))
            told = str(server.sessions[1].record.received())
    assert "You do the bills." in told
    assert "front desk" not in told
    assert "Lisbon" in told


async def test_an_agent_that_cannot_be_reached_leaves_the_call_with_the_one_before(
    memory, serve, phone, eventually
):
    from echoic.testing.realtime import Refusal

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
            await eventually(lambda: server.sessions[0].script_over, 20)
            await eventually(lambda: session.live.kept == 4, 20)
            assert session.current_agent == "front"
            assert session.state == "active"


async def test_a_call_goes_only_to_agents_of_the_session(memory, serve):
    async with (
        serve("openai", Script(open_ended=True)) as (_, model),
        VoiceSession(memory, user="ana", agents=[VoiceAgent(name="front")], model=model) as session,
    ):
        with pytest.raises(InvalidInput, match="no agent 'nobody'"):
            await session.transfer("nobody")
