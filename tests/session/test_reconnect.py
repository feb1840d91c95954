"""The line to the provider breaks and is dialled anew: what was asked is answered, and answered once."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from pydantic_ai.realtime.google import GoogleRealtimeConnection
from pydantic_ai.realtime.openai import OpenAIRealtimeConnection

from echoic.session import VoiceAgent, VoiceSession
from echoic_loopback.realtime import (
    Calls,
    Drop,
    Pause,
    Refusal,
    Reply,
    Says,
    Script,
    SendsRaw,
    ToolCall,
    UserSays,
)

ASKED = UserSays("what is my dog called", after_ms=300)
LONG = "one two three four five six seven eight nine ten eleven twelve"


def asked_for_replies(session):
    """How often a provider's session was asked to say something.

    OpenAI has an event for it. Gemini answers a turn that is complete, where the caller has the last word: a
    history that ends with the model's prompts nothing.
    """
    count = 0
    for event in session.record.received():
        body = str(event.body)
        complete = event.kind == "client_content" and "'turnComplete': True" in body
        count += event.kind == "response.create"
        count += complete and body.rfind("'role': 'user'") > body.rfind("'role': 'model'")
    return count


def test_what_tells_that_a_reply_was_asked_for_again_is_still_there():
    for connection, name in (
        (OpenAIRealtimeConnection, "_response_active"),
        (GoogleRealtimeConnection, "_uncovered_typed_turns"),
        (GoogleRealtimeConnection, "self._dial("),
        (GoogleRealtimeConnection, "self._session.receive()"),
        (GoogleRealtimeConnection, "self._map_message(message)"),
    ):
        assert name in Path(inspect.getfile(connection)).read_text("utf-8")


@pytest.fixture
def call(memory, provider, serve, phone, eventually):
    """A call through `scripts`, a connection each: what is stored of it, and the provider's last session."""

    async def called(*scripts, agent=None, do=None):
        robin = agent or VoiceAgent(name="robin")
        async with serve(provider, *scripts) as (server, model):
            session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="c")
            async with session, phone(session):
                if do:
                    await do(session, server)
                await eventually(lambda: len(server.sessions) == len(scripts), 90)
                await eventually(lambda: server.sessions[-1].script_over, 90)
                await eventually(lambda: session.live.playback.idle, 90)
                await eventually(lambda: not session.live.provider.speaking)
                last = server.sessions[-1]
        turns = [(t.speaker, t.text) for t in (await memory.user("ana").task("c")).turns]
        return turns, last

    return called


@pytest.mark.parametrize("when", ["before the reply", "in mid reply"])
async def test_a_question_whose_answer_the_line_took_along_is_answered_on_the_next_one(call, when):
    reply = [Drop()] if when == "before the reply" else [Says(LONG).at(400, Drop())]
    turns, last = await call(
        Script(ASKED, *reply),
        Script(Says("it is called Rex"), open_ended=True),
    )
    assert turns[0] == ("user", "what is my dog called")
    assert turns[-1] == ("agent", "it is called Rex")
    assert asked_for_replies(last) == 1
    assert "what is my dog called" in str(last.record.received())


async def test_a_question_survives_several_lines_that_break_in_a_row(call):
    turns, last = await call(
        Script(ASKED, Drop()),
        Script(Says(LONG).at(300, Drop())),
        Script(Pause(0.2), Drop()),
        Script(Says("it is called Rex"), open_ended=True),
    )
    assert [text for _, text in turns if text in {"what is my dog called", "it is called Rex"}] == [
        "what is my dog called",
        "it is called Rex",
    ]
    assert asked_for_replies(last) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_question_survives_a_provider_that_refuses_the_next_line_at_first(call, status):
    refused = [Script(refuse=Refusal(status=status, message="no"))] * 2
    turns, last = await call(
        Script(ASKED, Drop()),
        *refused,
        Script(Says("it is called Rex"), open_ended=True),
    )
    assert turns == [("user", "what is my dog called"), ("agent", "it is called Rex")]
    assert asked_for_replies(last) == 1


async def test_a_provider_that_no_longer_takes_the_key_ends_the_call(memory, serve, phone):
    refused = Script(refuse=Refusal(status=401, message="no"))
    async with serve("gemini", Script(ASKED, Drop()), refused) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[VoiceAgent(name="robin")], model=model)
        async with asyncio.timeout(30), session, phone(session):
            assert await session.wait_closed() == "lost"
        assert len(server.requests) == 2


NO_BASE64 = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "!"}}
UNREADABLE = {
    "gemini": [
        "this is not json",
        {"somethingNew": {"x": 1}},
        {"serverContent": {"modelTurn": {"parts": [NO_BASE64]}}},
    ],
    "openai": ["this is not json", {"type": "response.output_audio.delta", "delta": "!"}],
}


async def test_a_message_that_cannot_be_read_is_skipped(call, provider, caplog):
    unreadable = [SendsRaw(body) for body in UNREADABLE[provider]]
    turns, last = await call(
        Script(ASKED, *unreadable, Says("it is called Rex"), open_ended=True),
    )
    assert turns == [("user", "what is my dog called"), ("agent", "it is called Rex")]
    assert asked_for_replies(last) == (provider == "openai")
    assert "not json" not in caplog.text


@pytest.mark.parametrize("provider", ["gemini"], indirect=True)
async def test_a_line_on_which_nothing_can_be_read_is_dialled_anew(call):
    turns, last = await call(
        Script(ASKED, *[SendsRaw("this is not json")] * 9, open_ended=True),
        Script(Says("it is called Rex"), open_ended=True),
    )
    assert turns == [("user", "what is my dog called"), ("agent", "it is called Rex")]
    assert asked_for_replies(last) == 1


async def test_what_was_answered_before_the_line_broke_is_not_answered_again(call):
    _, last = await call(
        Script(ASKED, Says("it is called Rex"), Drop()),
        Script(Pause(0.5), open_ended=True),
    )
    assert asked_for_replies(last) == 0


async def test_a_reply_that_was_made_whole_and_is_still_played_is_not_asked_for_again(call):
    """All of it is here: what the caller has heard of it when the line breaks is no matter."""
    turns, last = await call(
        Script(ASKED, Says(LONG, word_ms=900), Drop()),
        Script(Pause(0.5), open_ended=True),
    )
    assert turns == [("user", "what is my dog called"), ("agent", LONG)]
    assert asked_for_replies(last) == 0


async def test_a_line_that_breaks_while_nobody_asked_anything_stays_quiet(call):
    _, last = await call(
        Script(Pause(0.3), Drop()),
        Script(Pause(0.5), open_ended=True),
    )
    assert asked_for_replies(last) == 0


async def test_a_question_whose_tool_was_under_way_is_answered_on_the_next_line(call):
    began = asyncio.Event()

    async def look_up(what: str) -> str:
        """Look something up."""
        began.set()
        await asyncio.Event().wait()
        return what

    async def drop_in_the_middle(_session, server):
        await asyncio.wait_for(began.wait(), 20)
        await server.sessions[0].drop()

    turns, last = await call(
        Script(ASKED, Calls(ToolCall("look_up", {"what": "dog"})), open_ended=True),
        Script(Says("it is called Rex"), open_ended=True),
        agent=VoiceAgent(name="robin", tools=[look_up], tool_timeout_s=60),
        do=drop_in_the_middle,
    )
    assert turns[-1] == ("agent", "it is called Rex")
    assert asked_for_replies(last) == 1


async def test_a_tool_that_the_model_answers_without_words_leaves_nothing_to_ask_for(
    call, provider, eventually
):
    async def note(what: str) -> str:
        """Note something."""
        return what

    async def rest_and_drop(session, server):
        await eventually(lambda: server.sessions[0].script_over, 60)
        await eventually(lambda: session._at().handler.at_rest(session.live.provider))
        await server.sessions[0].drop()

    _, last = await call(
        Script(ASKED, Calls(ToolCall("note", {"what": "dog"})), Reply(), open_ended=True),
        Script(Pause(0.5), open_ended=True),
        agent=VoiceAgent(name="robin", tools=[note]),
        do=rest_and_drop,
    )
    assert asked_for_replies(last) == 0


async def test_a_reply_the_caller_cut_off_is_not_brought_back_by_a_broken_line(call, provider, eventually):
    async def cut_and_drop(session, server):
        await eventually(lambda: session.live.provider.utterances and not session.live.playback.idle, 60)
        await eventually(
            lambda: any(said.fed_bytes for said in session.live.provider.utterances.values()), 20
        )
        session.barge_in()
        await server.sessions[0].drop()

    _, last = await call(
        Script(ASKED, Says(LONG, word_ms=900, pace=0.2), open_ended=True),
        Script(Pause(0.5), open_ended=True),
        do=cut_and_drop,
    )
    assert asked_for_replies(last) == 0


@pytest.mark.parametrize("how", ["types", "has the agent asked"])
async def test_what_cut_a_reply_off_is_answered_though_the_line_takes_its_answer_along(call, eventually, how):
    async def cut(session, server):
        await eventually(
            lambda: any(said.fed_bytes for said in session.live.provider.utterances.values()), 20
        )
        if how == "types":
            await session.send_text("what is my cat called")
        else:
            session.barge_in()
            await session.prompt("Ask what the cat is called.")

    _, last = await call(
        Script(ASKED, Says(LONG, word_ms=900, pace=0.2), Says(LONG).at(400, Drop())),
        Script(Says("it is called Tom"), open_ended=True),
        do=cut,
    )
    assert asked_for_replies(last) == 1


async def test_a_typed_question_is_answered_once_as_well(call, eventually):
    async def type_and_drop(session, server):
        await session.send_text("what is my dog called")
        await eventually(lambda: "what is my dog called" in str(server.sessions[0].record.received()))
        await server.sessions[0].drop()

    turns, last = await call(
        Script(open_ended=True),
        Script(Says("it is called Rex"), open_ended=True),
        do=type_and_drop,
    )
    assert turns[-1] == ("agent", "it is called Rex")
    assert asked_for_replies(last) == 1


async def test_what_is_typed_while_the_connection_is_down_is_sent_once_on_the_next(call, eventually):
    async def drop_and_type(session, server):
        await eventually(lambda: server.sessions[0].script_over, 60)
        await session.wait_spoken(10)
        await server.sessions[0].drop()
        await asyncio.sleep(0.1)
        await session.send_text("and my cat")
        await session.send_text("is called Tom")

    turns, last = await call(
        Script(ASKED, Says("it is called Rex"), open_ended=True),
        Script(Says("a cat"), Says("a good name"), open_ended=True, accept_after_s=0.3),
        do=drop_and_type,
    )
    received = str(last.record.received())
    assert [received.count(text) for text in ("and my cat", "is called Tom")] == [1, 1]
    said = [text for speaker, text in turns if speaker == "user"]
    assert said == ["what is my dog called", "and my cat", "is called Tom"]
