# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
"""Bodhi's `getMemoryFacts()`: what an agent's hooks and tools are handed are sentences."""

from __future__ import annotations

from pydantic_ai import RunContext

from echoic import Turn
from echoic.session import CallContext, VoiceAgent, VoiceSession
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays


async def test_facts_handed_to_an_agent_are_sentences(memory, provider, serve, phone, eventually):
    ana = memory.user("ana")
    await ana.set("home", "Tel Aviv")
    await ana.set("favourite_coffee", "flat white")
    await ana.set("allergies", "peanuts and shellfish")
    await ana.remember("Prefers e-mail to phone calls", category="preference")
    call = await ana.conversation("earlier")
    await call.append(Turn(speaker="user", text="I work at Acme"))
    await memory.distil()
    handed, told = [], []

    async def on_enter(ctx):
        handed.append([fact.text for fact in await ctx.memory_facts()])
        home = await ctx.user.get("home")
        handed.append(home.text)

    async def known(ctx: RunContext[CallContext]) -> list[str]:
        """What is known of the caller."""
        told.extend(fact.text for fact in await ctx.deps.memory_facts())
        return told

    agent = VoiceAgent(name="robin", instructions="Help.", tools=[known], on_enter=on_enter)
    script = Script(
        UserSays("who am I", after_ms=200), Calls(ToolCall("known", {})), Says("you"), open_ended=True
    )
    async with serve(provider, script) as (server, model):
        async with VoiceSession(memory, user="ana", agents=[agent], model=model) as session:
            async with phone(session):
                await eventually(lambda: server.sessions and server.sessions[0].script_over, 30)
    sentences = [
        "The user lives in Tel Aviv.",
        "The user's favourite coffee is flat white.",
        "The user's allergies are peanuts and shellfish.",
        "Prefers e-mail to phone calls",
        "The user works at Acme.",
    ]
    assert handed == [sentences, "Tel Aviv"]
    assert told == sentences
