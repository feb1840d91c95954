"""No stored word speaks for the operator on a live line: all that the real clients send to a provider is looked at."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from echoic.memory.checkpoints import Checkpoint, RecordSessionStore
from echoic.session import VoiceAgent, VoiceSession
from echoic.types import Turn
from echoic_loopback.realtime import Drop, Pause, Says, Script, UserSays

PLANTED = {
    "memory": "quokka",
    "key": "numbat",
    "profile": "bilby",
    "conversation": "dunnart",
    "summary of a conversation": "potoroo",
    "directive": "bettong",
    "wish": "kultarr",
    "lesson": "weather",
    "what a turn recalls": "mulgara",
    "summary of the call": "wallaby",
    "last words before the line broke": "pademelon",
}


def operators(event) -> str:
    """What of an event a model takes for the operator's: instructions, system messages, descriptions of tools."""
    body = event.body
    session = body.get("session") or body.get("setup") or {}
    found = [session.get(name) for name in ("instructions", "systemInstruction", "tools")]
    if body.get("item", {}).get("role") in {"system", "developer"}:
        found.append(body["item"])
    # where a provider has no such role in the middle of a conversation, PydanticAI marks its text so
    return json.dumps([*found, re.findall(r"<system>.*?</system>", json.dumps(body), re.DOTALL)])


async def plant(service):
    ana = service.user("ana")
    await ana.set(PLANTED["key"], f"keeps a {PLANTED['memory']}")
    await ana.set("user_name", PLANTED["profile"])
    await ana.set_directives(**{PLANTED["directive"]: f"as a {PLANTED['wish']}"})
    call = await ana.conversation("old", agent="robin")
    await call.append(
        Turn(speaker="user", text=f"The {PLANTED['what a turn recalls']} is on the roof of the barn.")
    )
    await call.store(f"the {PLANTED['conversation']} talk", f"about a {PLANTED['summary of a conversation']}")
    films = service.experience("robin")
    await films.adopt((await films.add("strategy", f"Ask about the {PLANTED['lesson']} first.")).id)
    await ana.conversation("c", agent="robin")
    checkpoint = Checkpoint(
        session="c",
        conversation="c",
        agent="robin",
        messages="[]",
        summary=f"The caller came about a {PLANTED['summary of the call']}.",
        evicted=2,
        saved_at=datetime.now(UTC),
    )
    await RecordSessionStore(ana.backing_store).save(ana.scope, checkpoint)


async def test_no_stored_word_is_in_instructions_system_messages_or_tools(
    memory, provider, serve, phone, eventually
):
    await plant(memory)
    agents = [VoiceAgent(name=name, instructions=f"You are {name}.") for name in ("robin", "desk")]
    scripts = [
        Script(
            UserSays("where is the mulgara", after_ms=300),
            Says("on the roof"),
            UserSays("and where is the pademelon", after_ms=300),
            Drop(),
        ),
        Script(Says("in the barn"), Pause(1), open_ended=True),
        Script(Pause(0.2), open_ended=True),
    ]
    async with serve(provider, *scripts) as (server, model):
        session = await VoiceSession.resume(memory, "c", user="ana", agents=agents, model=model)
        async with session, phone(session):
            await eventually(lambda: len(server.sessions) == 2)
            await eventually(lambda: server.sessions[1].script_over)
            await session.transfer("desk")
            await eventually(lambda: server.sessions[2].script_over)
        events = [event for each in server.sessions for event in each.record.received()]
    told = json.dumps([event.body for event in events if event.kind != "input_audio_buffer.append"])
    assert {place for place, word in PLANTED.items() if word not in told} == set(), "control: all is told"
    said = " ".join(map(operators, events))
    assert "You are desk." in said, "control: what the operator says is found"
    assert {place for place, word in PLANTED.items() if word in said} == set()
