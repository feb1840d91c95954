"""pydantic-ai's realtime sessions against both stand-ins: the same script, the same story."""

# ruff: noqa: PERF401, PT012, SIM117 - it is leaving the server that raises, not the client in it
from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import SpeechPart, SystemPromptPart
from pydantic_ai.realtime import (
    RealtimeError,
    RealtimeInputSpeechStartEvent,
    RealtimeSessionErrorEvent,
    RealtimeSessionReconnectEvent,
)

from echoic_loopback.gemini_live import GoAway, Handle
from echoic_loopback.openai_realtime import Expires
from echoic_loopback.realtime import (
    Calls,
    ClientSends,
    Close,
    Drop,
    HeldTranscripts,
    Pause,
    Refusal,
    Reply,
    Says,
    Script,
    ToolCall,
    UserSays,
    speech,
    words_heard,
)
from loopback_agents import (
    QUICK,
    an_agent,
    gemini_model,
    listening,
    mic,
    model_of,
    openai_model,
    said,
    until_kind,
    until_turns,
)


@pytest.fixture(params=["openai", "gemini"])
def serving(request, openai_server, gemini_server):
    return openai_server if request.param == "openai" else gemini_server


async def test_a_spoken_turn_is_answered(serving):
    async with (
        serving(Script(UserSays("my name is Pavel"), Says("Hello Pavel"))) as server,
        an_agent().realtime(model_of(server)).session() as session,
    ):
        await session.send_audio(mic(session))
        await until_turns(session)
        assert said(session.all_messages()) == [("user", "my name is Pavel"), ("assistant", "Hello Pavel")]
        assert session.usage.output_audio_tokens > 0


async def test_two_tools_in_one_reply_and_a_chained_third(serving):
    script = Script(
        UserSays("tell me"),
        Calls(ToolCall("recall", {"query": "dog"}), ToolCall("recall", {"query": "cat"})),
        Calls(ToolCall("recall", {"query": "bird"})),
        Says("all three"),
    )
    agent = an_agent()
    async with serving(script) as server, agent.realtime(model_of(server)).session() as session:
        await session.send_audio(mic(session))
        await until_turns(session)
        assert said(session.all_messages()) == [
            ("user", "tell me"),
            ("call", "dog"),
            ("call", "cat"),
            ("return", "fact about dog"),
            ("return", "fact about cat"),
            ("call", "bird"),
            ("return", "fact about bird"),
            ("assistant", "all three"),
        ]
    assert sorted(agent.ran) == ["bird", "cat", "dog"]


async def test_speech_before_a_call_is_part_of_the_reply(serving):
    script = Script(
        UserSays("x"), Reply(Says("let me see"), Calls(ToolCall("recall", {"query": "dog"}))), Says("Rex")
    )
    async with serving(script) as server, an_agent().realtime(model_of(server)).session() as session:
        await session.send_audio(mic(session))
        await until_turns(session)
        spoken = [text for who, text in said(session.all_messages()) if who == "assistant"]
    assert "".join(spoken).replace(" ", "") == "letmeseeRex"


async def test_arguments_a_tool_does_not_take_are_told_to_the_model(serving):
    script = Script(UserSays("x"), Calls(ToolCall("recall", {"query": 7})), Says("sorry"))
    agent = an_agent()
    async with serving(script) as server, agent.realtime(model_of(server)).session() as session:
        await session.send_audio(mic(session))
        await until_turns(session)
        live = server.sessions[0]
        results = live.results if hasattr(live, "results") else live.conversation.outputs
    assert agent.ran == []
    assert "valid string" in str(next(iter(results.values())))


async def test_the_audio_that_reaches_the_client_holds_the_words_of_the_script(serving):
    text = "the dog is called Rex"
    async with serving(Script(UserSays("x"), Says(text))) as server:
        async with an_agent().realtime(model_of(server)).session() as session:
            stream = session.stream_audio()
            await session.send_audio(mic(session))
            pcm = b""
            async with asyncio.timeout(60):
                while len(pcm) < 48 * 1000:
                    pcm += await anext(stream)
    assert words_heard(pcm, speech(text)) == [0, 1, 2, 3, 4]


async def test_a_typed_turn_is_answered(serving):
    async with serving(Script(Says("Hello"))) as server:
        async with an_agent().realtime(model_of(server)).session() as session:
            await session.send("hi there")
            await until_turns(session)
            assert said(session.all_messages())[-1] == ("assistant", "Hello")


async def test_a_late_transcript_takes_its_place_before_the_reply(serving):
    script = Script(
        UserSays("my dog Rex", final="held"), Says("nice"), Pause(0.02), HeldTranscripts(), Pause(0.02)
    )
    async with serving(script) as server, an_agent().realtime(model_of(server)).session() as session:
        await session.send_audio(mic(session))
        await until_turns(session)
        assert ("user", "my dog Rex") not in said(session.all_messages())
        pump = asyncio.create_task(_drain(session))
        await server.sessions[0].finished()
        await asyncio.sleep(0.1)
        pump.cancel()
    assert ("assistant", "nice") in said(session.all_messages())
    assert ("user", "my dog Rex") in said(session.all_messages())


async def _drain(session):
    async for _ in session:
        pass


async def test_partials_reach_a_client_before_the_turn_is_over(serving):
    script = Script(UserSays("my dog Rex", partials=("my", " dog"), early=True), Says("nice"))
    async with serving(script) as server, an_agent().realtime(model_of(server)).session() as session:
        seen = []

        async def captions():
            async for part in session.stream_transcripts(delta=True):
                if part.speaker == "user":
                    seen.append(part.transcript)

        task = asyncio.create_task(captions())
        await asyncio.sleep(0)
        await session.send_audio(mic(session))
        await until_turns(session)
        task.cancel()
    assert seen[:2] == ["my", "my dog"]


async def test_a_missing_transcript_leaves_the_reply(serving):
    async with serving(Script(UserSays("my dog", final="missing"), Says("nice"))) as server:
        async with an_agent().realtime(model_of(server)).session() as session:
            await session.send_audio(mic(session))
            await until_turns(session)
    assert [line for line in said(session.all_messages()) if line[0] == "assistant"] == [
        ("assistant", "nice")
    ]


async def test_a_drop_without_a_policy_is_told(serving):
    script = Script(Says("one two three", chunk_ms=100).at(200, Drop()))
    async with serving(script) as server:
        with pytest.raises(RealtimeError, match="connection closed"):
            async with an_agent().realtime(model_of(server)).session() as session:
                await session.send("count")
                await until_turns(session)


async def test_a_drop_between_turns_is_survived(serving):
    async with serving(Script(Says("first"), Pause(0.05), Drop()), Script(Says("second"))) as server:
        async with an_agent().realtime(model_of(server, reconnect=QUICK)).session() as session:
            await session.send("one")
            await until_turns(session)
            reconnected = await until_kind(session, RealtimeSessionReconnectEvent)
            assert reconnected.state_restored
            await session.send("two")
            await until_turns(session)
    assert [text for who, text in said(session.all_messages()) if who == "assistant"] == ["first", "second"]


async def test_a_refused_handshake_has_its_status(serving):
    script = Script(refuse=Refusal(status=429, message="Too many requests."))
    async with serving(script) as server:
        with pytest.raises(ModelHTTPError) as refused:
            async with an_agent().realtime(model_of(server)).session():
                pass
    assert refused.value.status_code == 429


async def test_a_session_that_is_never_ready_times_out(serving):
    async with serving(Script(ready_after_s=5)) as server:
        with pytest.raises(RealtimeError, match=r"(?i)timed out"):
            async with an_agent().realtime(model_of(server, handshake_timeout=0.2)).session():
                pass


async def test_a_close_is_told_with_its_reason(serving):
    async with serving(Script(Pause(0.05), Close(1011, "going down"))) as server:
        with pytest.raises(RealtimeError, match="going down"):
            async with an_agent().realtime(model_of(server)).session() as session:
                await until_turns(session)


async def test_a_saved_history_is_taken_by_a_new_session(serving):
    script = Script(UserSays("tell me"), Calls(ToolCall("recall", {"query": "dog"})), Says("Rex"))
    async with serving(script, Script(Says("welcome back"))) as server:
        agent = an_agent()
        async with agent.realtime(model_of(server)).session() as session:
            await session.send_audio(mic(session))
            await until_turns(session)
            history = session.all_messages()
        async with agent.realtime(model_of(server), message_history=history).session() as session:
            await session.send("hello again")
            await until_turns(session)
        # that no violation is raised on leaving is the point: the replayed call has its output, in order
    assert said(session.all_messages())[-1] == ("assistant", "welcome back")


async def test_a_changed_instruction_reaches_the_provider_in_mid_call(serving):
    facts = ["none"]
    agent = Agent("test", instructions="Be kind.")

    @agent.instructions(name="memory")
    def memory() -> str:
        return "Facts: " + ", ".join(facts)

    async with serving(Script(Says("one"), Says("two"))) as server:
        async with agent.realtime(model_of(server)).session() as session:
            await session.send("hello")
            await until_turns(session)
            facts[0] = "the dog is Rex"
            await session.send("and now")
            await until_turns(session)
        assert "the dog is Rex" in str([event.body for event in server.sessions[0].record.received()])


class TestOpenAIOnly:
    async def test_a_barge_in_cuts_the_reply_at_the_byte_that_was_played(self, openai_server):
        script = Script(
            Says("one two three four five", word_ms=200),
            Pause(0.1),
            UserSays("stop", 0, 100),
            Says("all right"),
        )
        async with openai_server(script) as server:
            async with an_agent().realtime(openai_model(server)).session() as session:
                stream = session.stream_audio()
                await session.send("count")
                played = 0
                while played < 48 * 600:
                    played += len(await anext(stream))
                pump = asyncio.create_task(until_kind(session, RealtimeInputSpeechStartEvent))
                await pump
                await session.interrupt(played_bytes=48 * 610)
                await session.send_audio(mic(session))
                await until_turns(session)
                parts = [p for m in session.all_messages() for p in m.parts if isinstance(p, SpeechPart)]
            item = next(item for item in server.sessions[0].conversation if item.truncated_ms is not None)
        assert item.truncated_ms == 610
        assert item.heard == "one two three"
        assert next(part for part in parts if part.interrupted_at_ms is not None).interrupted_at_ms == 610

    async def test_context_can_be_given_before_the_reply_where_the_client_asks_for_it(self, openai_server):
        detection = {"type": "server_vad", "create_response": False}
        async with openai_server(Script(UserSays("what is my dog called"), Says("Rex"))) as server:
            model = openai_model(server, openai_turn_detection=detection)
            async with an_agent().realtime(model).session() as session:
                await session.send_audio(mic(session))
                async with listening(session) as events:
                    async for event in events:
                        part = getattr(event, "part", None)
                        if event.event_kind == "part_end" and getattr(part, "speaker", "") == "user":
                            await session.send(SystemPromptPart("The dog is Rex."), respond=False)
                            await session.create_response()
                            break
                await until_turns(session)
            roles = [item.wire.get("role") for item in server.sessions[0].conversation]
        assert roles == ["user", "system", "assistant"]

    async def test_a_session_that_expires_ends_the_call_or_starts_it_again(self, openai_server):
        async with (
            openai_server(Script(Says("first"), Pause(0.02), Expires()), Script(Says("second"))) as server,
            an_agent().realtime(openai_model(server, reconnect=QUICK)).session() as session,
        ):
            await session.send("one")
            await until_turns(session)
            error = await until_kind(session, RealtimeSessionErrorEvent)
            await until_kind(session, RealtimeSessionReconnectEvent)
            await session.send("two")
            await until_turns(session)
        assert error.code == "session_expired"


class TestGeminiOnly:
    async def test_a_drop_is_resumed_with_the_last_handle(self, gemini_server):
        scripts = Script(Says("first"), Pause(0.05), Drop()), Script(Says("second"))
        async with gemini_server(*scripts) as server:
            async with an_agent().realtime(gemini_model(server, reconnect=QUICK)).session() as session:
                await session.send("one")
                await until_turns(session)
                await until_kind(session, RealtimeSessionReconnectEvent)
                await session.send("two")
                await until_turns(session)
        lost, resumed = server.sessions
        assert resumed.resumed_from == lost.handles[-1]
        assert [turn["parts"][0]["text"] for turn in resumed.context] == ["one", "first", "two", "second"]

    async def test_a_handle_that_has_expired_ends_the_session(self, gemini_server):
        scripts = Script(Says("first"), Handle(), ClientSends("client_content"), Drop()), Script()
        async with gemini_server(*scripts, tolerate={"session_not_found"}) as server:
            model = gemini_model(server, reconnect=QUICK)
            with pytest.raises(RealtimeError):
                async with an_agent().realtime(model).session() as session:
                    await session.send("one")
                    await until_turns(session)
                    server.forget_handles()
                    await session.send("two")
                    await until_turns(session)

    async def test_going_away_is_announced_and_survived(self, gemini_server):
        scripts = (
            Script(Says("first"), GoAway(5), Pause(0.05), Close(1011, "Deadline expired")),
            Script(Says("second")),
        )
        async with gemini_server(*scripts) as server:
            async with an_agent().realtime(gemini_model(server, reconnect=QUICK)).session() as session:
                await session.send("one")
                await until_turns(session)
                await until_kind(session, RealtimeSessionReconnectEvent)
                await session.send("two")
                await until_turns(session)
        assert said(session.all_messages())[-1] == ("assistant", "second")

    async def test_speech_over_a_reply_interrupts_it_where_it_was(self, gemini_server):
        reply = Says("one two three four", word_ms=100, chunk_ms=100).at(200, UserSays("stop", 50, 50))
        async with gemini_server(Script(reply, Says("all right"))) as server:
            async with an_agent().realtime(gemini_model(server)).session() as session:
                await session.send("count")
                await asyncio.sleep(0.1)
                await session.send_audio(mic(session))
                await until_turns(session, 2)
                states = [getattr(m, "state", None) for m in session.all_messages() if m.kind == "response"]
            kinds = server.sessions[0].record.kinds("server")
        assert states[0] == "interrupted"
        assert kinds.index("voiceActivity") < kinds.index("serverContent.interrupted")
        first, second = (text for who, text in said(session.all_messages()) if who == "assistant")
        assert (first, second) == ("one two", "all right")
