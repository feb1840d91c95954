"""google-genai against the Gemini stand-in: every scripted feature and every rule, as that client sees them."""

# ruff: noqa: PT012, SIM117 - it is leaving the server that raises, not the client in it
from __future__ import annotations

import asyncio
import contextlib
import json
import ssl

import pytest
import websockets
from google.genai import errors, types

from echoic_loopback.gemini_live import Expires, GeminiLiveServer, GoAway, Handle
from echoic_loopback.realtime import (
    Calls,
    ClientSends,
    Drop,
    HeldTranscripts,
    LoopbackFailure,
    Pause,
    Reply,
    Says,
    Script,
    SendsRaw,
    ToolCall,
    UserSays,
    silence,
    speech,
    words_heard,
)
from loopback_agents import google

MODEL = "gemini-3.8-live"
PCM = "audio/pcm;rate=16000"
TRANSCRIBED = {
    "response_modalities": ["AUDIO"],
    "input_audio_transcription": {},
    "output_audio_transcription": {},
}


@contextlib.asynccontextmanager
async def connected(server, **config):
    async with google(server).aio.live.connect(model=MODEL, config={**TRANSCRIBED, **config}) as session:
        yield session


async def turn(session):
    """All messages of one turn."""
    async with asyncio.timeout(10):
        return [message async for message in session.receive()]


async def until(session, wanted):
    """Messages until one has what is wanted, over as many turns as it takes."""
    messages = []
    async with asyncio.timeout(10):
        while True:
            async for message in session.receive():
                messages.append(message)
                if wanted(message):
                    return messages


def contents(messages):
    return [message.server_content for message in messages if message.server_content]


def written(messages, which="output_transcription"):
    return "".join(getattr(c, which).text for c in contents(messages) if getattr(c, which))


def sounding(messages):
    parts = [part for c in contents(messages) if c.model_turn for part in c.model_turn.parts]
    return b"".join(part.inline_data.data for part in parts if part.inline_data)


async def mic(session, ms=400, pcm=None):
    await session.send_realtime_input(audio=types.Blob(data=pcm or silence(ms, 16_000), mime_type=PCM))


async def ask(session, text="hello"):
    await session.send_client_content(turns=types.Content(role="user", parts=[types.Part(text=text)]))


async def test_a_spoken_turn_is_transcribed_and_answered(gemini_server):
    async with (
        gemini_server(Script(UserSays("my name is Pavel"), Says("Hello Pavel"))) as server,
        connected(server) as session,
    ):
        await mic(session)
        messages = await turn(session)
        context = server.sessions[0].context
    assert written(messages, "input_transcription") == "my name is Pavel"
    assert written(messages) == "Hello Pavel"
    assert sounding(messages) == speech("Hello Pavel").pcm
    done = messages[-1]
    assert done.server_content.turn_complete
    assert done.usage_metadata.response_token_count == 10  # 400 ms at 25 tokens a second
    assert [c.generation_complete for c in contents(messages)].count(True) == 1
    assert [part["text"] for content in context for part in content["parts"]] == [
        "my name is Pavel",
        "Hello Pavel",
    ]


async def test_a_client_that_did_not_ask_for_transcripts_gets_none(gemini_server):
    async with gemini_server(Script(UserSays("hello"), Says("yes"))) as server:
        async with google(server).aio.live.connect(
            model=MODEL, config={"response_modalities": ["AUDIO"]}
        ) as session:
            await mic(session)
            messages = await turn(session)
    assert not written(messages)
    assert not written(messages, "input_transcription")
    assert sounding(messages)


async def test_a_text_session_is_answered_with_text(gemini_server):
    async with (
        gemini_server(Script(Says("Hello there"))) as server,
        google(server).aio.live.connect(model=MODEL, config={"response_modalities": ["TEXT"]}) as session,
    ):
        await ask(session)
        messages = await turn(session)
    assert "".join(message.text or "" for message in messages) == "Hello there"


async def test_partials_finals_and_copies_come_as_the_script_says(gemini_server):
    said = UserSays("my dog Rex", partials=("my", " dog"), copies=2)
    async with (
        gemini_server(Script(said, Says("nice")), marks_finished=True) as server,
        connected(server) as session,
    ):
        await mic(session)
        heard = [c.input_transcription for c in contents(await turn(session)) if c.input_transcription]
    assert [(t.text, bool(t.finished)) for t in heard] == [
        ("my", False),
        (" dog", False),
        (" Rex", True),
        (" Rex", True),
    ]


async def test_a_held_transcript_comes_after_the_turn(gemini_server):
    script = Script(UserSays("my dog", final="held"), Says("nice"), HeldTranscripts())
    async with gemini_server(script) as server, connected(server) as session:
        await mic(session)
        assert not written(await turn(session), "input_transcription")
        late = await until(session, lambda m: m.server_content and m.server_content.input_transcription)
    assert written(late, "input_transcription") == "my dog"


async def test_the_loudness_of_the_audio_decides_where_the_script_says_so(gemini_server):
    spoken = speech("my name is Pavel", rate_hz=16_000)
    async with (
        gemini_server(Script(UserSays("hello", by_voice=True), Says("yes"))) as server,
        connected(server) as session,
    ):
        await mic(session, 500)
        await mic(session, pcm=spoken.pcm)
        await mic(session, 600)
        await turn(session)
        heard = bytes(server.sessions[0].input_audio)
    assert words_heard(heard, spoken) == [0, 1, 2, 3]


async def test_audio_at_another_rate_is_resampled(gemini_server):
    spoken = speech("my name is Pavel", rate_hz=48_000)
    async with gemini_server(Script(Pause(0))) as server, connected(server) as session:
        await session.send_realtime_input(audio=types.Blob(data=spoken.pcm, mime_type="audio/pcm;rate=48000"))
        live = await server.session()
        await live.until(lambda: live.input_ms == 800, "the audio")
        assert words_heard(bytes(live.input_audio), spoken, rate_hz=16_000) == [0, 1, 2, 3]


async def test_a_client_that_marks_activity_ends_turns_itself(gemini_server):
    manual = {"automatic_activity_detection": {"disabled": True}}
    script = Script(UserSays("my name is Pavel"), Says("Hello Pavel"))
    async with gemini_server(script) as server, connected(server, realtime_input_config=manual) as session:
        await session.send_realtime_input(activity_start=types.ActivityStart())
        await mic(session)
        await session.send_realtime_input(activity_end=types.ActivityEnd())
        assert written(await turn(session)) == "Hello Pavel"


async def test_a_realtime_text_is_answered(gemini_server):
    async with gemini_server(Script(Says("Hello"))) as server, connected(server) as session:
        await session.send_realtime_input(text="hi")
        assert written(await turn(session)) == "Hello"


async def test_content_that_does_not_end_the_turn_waits(gemini_server):
    async with gemini_server(Script(Says("Hello"))) as server, connected(server) as session:
        part = types.Content(role="user", parts=[types.Part(text="The dog is Rex.")])
        await session.send_client_content(turns=part, turn_complete=False)
        await ask(session, "what is my dog called")
        assert written(await turn(session)) == "Hello"
        texts = [content["parts"][0]["text"] for content in server.sessions[0].context]
    assert texts == ["The dog is Rex.", "what is my dog called", "Hello"]


async def test_content_that_does_not_end_the_turn_interrupts_what_is_generated(gemini_server):
    said = Says("one two three four five six", pace=1)
    async with gemini_server(Script(said, open_ended=True)) as server, connected(server) as session:
        await ask(session, "count")
        await until(session, lambda m: m.server_content and m.server_content.model_turn)
        part = types.Content(role="user", parts=[types.Part(text="The dog is Rex.")])
        await session.send_client_content(turns=part, turn_complete=False)
        await until(session, lambda m: m.server_content and m.server_content.interrupted)


async def test_initial_history_is_not_answered(gemini_server):
    history = {"initial_history_in_client_content": True}
    async with (
        gemini_server(Script(Says("Hello"))) as server,
        connected(server, history_config=history) as session,
    ):
        await ask(session, "long ago")
        await ask(session, "now")
        await turn(session)
        live = server.sessions[0]
        await live.finished()
        assert [content["parts"][0]["text"] for content in live.context] == ["long ago", "now", "Hello"]


class TestTools:
    async def answer(self, session, messages, **override):
        calls = [call for m in messages if m.tool_call for call in m.tool_call.function_calls]
        responses = [
            types.FunctionResponse(**{"id": c.id, "name": c.name, "response": {"output": "ok"}, **override})
            for c in calls
        ]
        await session.send_tool_response(function_responses=responses)
        return [(call.name, call.args) for call in calls]

    async def test_two_in_one_turn_and_a_chained_third(self, gemini_server):
        script = Script(
            Calls(ToolCall("recall", {"query": "dog"}), ToolCall("recall", {"query": "cat"})),
            Calls(ToolCall("store", {"fact": "both"}, id="mine")),
            Says("done"),
        )
        async with gemini_server(script) as server, connected(server) as session:
            await ask(session)
            first = await self.answer(session, await until(session, lambda m: m.tool_call))
            second = await self.answer(session, await until(session, lambda m: m.tool_call))
            assert written(await turn(session)) == "done"
            assert server.sessions[0].results["mine"] == {"output": "ok"}
        assert first == [("recall", {"query": "dog"}), ("recall", {"query": "cat"})]
        assert second == [("store", {"fact": "both"})]

    async def test_the_model_goes_on_only_when_every_result_is_there(self, gemini_server):
        script = Script(Calls(ToolCall("a", id="1"), ToolCall("b", id="2")), Says("done"))
        async with gemini_server(script) as server, connected(server) as session:
            await ask(session)
            await until(session, lambda m: m.tool_call)
            await session.send_tool_response(
                function_responses=types.FunctionResponse(id="2", name="b", response={})
            )
            live = server.sessions[0]
            await live.until(lambda: "2" in live.results, "the result")
            assert live.pending == {"1": "a"}
            await asyncio.sleep(0.05)
            assert not [kind for kind in live.record.kinds("server") if kind.startswith("serverContent")]
            await session.send_tool_response(
                function_responses=types.FunctionResponse(id="1", name="a", response={})
            )
            assert written(await turn(session)) == "done"

    async def test_speech_takes_calls_back_that_wait_for_results(self, gemini_server):
        script = Script(Calls(ToolCall("slow", id="1")), UserSays("never mind"), Says("all right"))
        async with gemini_server(script) as server, connected(server) as session:
            await ask(session)
            await until(session, lambda m: m.tool_call)
            await mic(session)
            messages = await until(session, lambda m: m.server_content and m.server_content.turn_complete)
            messages += await turn(session)
        assert [m.tool_call_cancellation.ids for m in messages if m.tool_call_cancellation] == [["1"]]
        assert written(messages) == "all right"

    async def test_no_handle_is_given_while_calls_are_open(self, gemini_server):
        script = Script(Calls(ToolCall("recall", id="1")), Says("done"))
        resuming = {"session_resumption": {}}
        async with gemini_server(script) as server, connected(server, **resuming) as session:
            await ask(session)
            messages = await until(session, lambda m: m.tool_call)
            await self.answer(session, messages)
            messages += await until(session, lambda m: m.session_resumption_update)
        updates = [m.session_resumption_update for m in messages if m.session_resumption_update]
        assert [(bool(u.resumable), bool(u.new_handle)) for u in updates] == [(False, False), (True, True)]

    async def test_arguments_as_text_are_a_fault_of_the_script(self, gemini_server):
        with pytest.raises(LoopbackFailure, match="as a structure, not as text"):
            async with (
                gemini_server(Script(Calls(ToolCall("recall", "{")))) as server,
                connected(server) as session,
            ):
                await ask(session)
                await asyncio.sleep(0.1)


class TestInterruption:
    async def test_speech_cuts_the_turn_where_it_was(self, gemini_server):
        reply = Says("one two three four", word_ms=100, chunk_ms=100).at(200, UserSays("stop", 0, 100))
        async with gemini_server(Script(reply, Says("all right"))) as server, connected(server) as session:
            await ask(session)
            await until(session, lambda m: m.voice_activity)
            await mic(session)
            messages = await turn(session)
            await turn(session)
        assert messages[0].server_content.interrupted
        assert not any(c.generation_complete for c in contents(messages))
        assert server.sessions[0].generation.text == "all right"
        assert {"role": "model", "parts": [{"text": "one two"}]} in server.sessions[0].context

    async def test_speech_over_what_was_generated_but_not_yet_played_cuts_it_too(self, gemini_server):
        reply = Says("one two three four").at(10_000, UserSays("stop", 0, 100))
        async with gemini_server(Script(reply, Says("all right"))) as server, connected(server) as session:
            await ask(session)
            messages = await until(
                session, lambda m: m.server_content and m.server_content.generation_complete
            )
            await until(session, lambda m: m.server_content and m.server_content.interrupted)
            await mic(session)
            await until(session, lambda m: m.server_content and m.server_content.turn_complete)
        assert written(messages) == "one two three four"

    async def test_speech_does_not_interrupt_where_the_client_said_so(self, gemini_server):
        config = {"realtime_input_config": {"activity_handling": "NO_INTERRUPTION"}}
        reply = Says("one two three four", chunk_ms=200).at(200, UserSays("mhm", 0, 100))
        script = Script(reply, open_ended=True)
        async with gemini_server(script) as server, connected(server, **config) as session:
            await ask(session)
            messages = await until(session, lambda m: bool(sounding([m])))
            await mic(session)
            messages += await turn(session)
        assert written(messages) == "one two three four"

    async def test_content_cuts_the_generation_under_way(self, gemini_server):
        reply = Says("one two three four", chunk_ms=200).at(
            400, ClientSends("client_content", lambda e: "wait" in str(e.body))
        )
        async with gemini_server(Script(reply, Says("yes"))) as server, connected(server) as session:
            await ask(session)
            await until(session, lambda m: m.server_content and m.server_content.output_transcription)
            await ask(session, "wait")
            await until(session, lambda m: m.server_content and m.server_content.interrupted)
            await turn(session)
            assert written(await turn(session)) == "yes"


class TestResumption:
    async def test_a_handle_brings_the_conversation_back(self, gemini_server):
        async with gemini_server(Script(Says("first")), Script(Says("second"))) as server:
            async with connected(server, session_resumption={}) as session:
                await ask(session, "one")
                messages = await until(session, lambda m: m.session_resumption_update)
            handle = messages[-1].session_resumption_update.new_handle
            async with connected(server, session_resumption={"handle": handle}) as session:
                await ask(session, "two")
                await turn(session)
            texts = [content["parts"][0]["text"] for content in server.sessions[1].context]
        assert server.sessions[1].resumed_from == handle
        assert texts == ["one", "first", "two", "second"]

    async def test_who_did_not_ask_for_handles_gets_none(self, gemini_server):
        async with gemini_server(Script(Says("first"), Handle())) as server, connected(server) as session:
            await ask(session)
            messages = await turn(session)
            await server.sessions[0].finished()
            assert server.sessions[0].handles == []
        assert not [m for m in messages if m.session_resumption_update]

    async def test_an_unknown_handle_is_refused(self, gemini_server):
        async with gemini_server(Script(), tolerate={"session_not_found"}) as server:
            with pytest.raises(errors.APIError) as refused:
                async with connected(server, session_resumption={"handle": "unknown"}):
                    pass
        assert refused.value.code == 1008


class TestTrouble:
    async def test_a_drop_is_no_goodbye(self, gemini_server):
        async with (
            gemini_server(Script(Says("one two").at(200, Drop()))) as server,
            connected(server) as session,
        ):
            await ask(session)
            with pytest.raises(errors.APIError) as cut:
                await turn(session)
        assert cut.value.code == 1006

    async def test_going_away_is_announced_then_done(self, gemini_server):
        async with gemini_server(Script(GoAway(10), Expires())) as server, connected(server) as session:
            messages = await until(session, lambda m: m.go_away)
            with pytest.raises(errors.APIError) as gone:
                await turn(session)
        assert messages[-1].go_away.time_left == "10s"
        assert (gone.value.code, "Deadline expired" in str(gone.value)) == (1011, True)

    async def test_anything_at_all_can_be_sent(self, gemini_server):
        raw = SendsRaw({"serverContent": {"waitingForInput": True}})
        async with gemini_server(Script(raw, Says("yes"))) as server, connected(server) as session:
            await ask(session)
            assert any(c.waiting_for_input for c in contents(await turn(session)))


SETUP = {"setup": {"model": "models/gemini-3.8-live", "generationConfig": {"responseModalities": ["AUDIO"]}}}
AUDIO = {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=16000"}}}
REFUSED = [
    # messages, code, close code, reason
    (["not json"], "invalid_json", 1007, "Invalid JSON payload received."),
    ([[1]], "invalid_json", 1007, "Expected an object"),
    ([{}], "invalid_argument", 1007, "exactly one"),
    ([AUDIO], "setup_missing", 1007, "first message must be setup"),
    ([SETUP, SETUP], "setup_repeated", 1007, "only once"),
    ([{"setup": {"model": "gemini"}}], "invalid_argument", 1007, "models/"),
    (
        [{"setup": {**SETUP["setup"], "proactive": 1}}],
        "unknown_name",
        1007,
        "Unknown name \"proactive\" at 'setup': Cannot find field.",
    ),
    (
        [{"setup": {**SETUP["setup"], "realtimeInputConfig": {"vad": 1}}}],
        "unknown_name",
        1007,
        "at 'setup.realtimeInputConfig'",
    ),
    (
        [{"setup": {**SETUP["setup"], "systemInstruction": "be kind"}}],
        "invalid_value",
        1007,
        "Invalid value at 'setup.systemInstruction'",
    ),
    (
        [{"setup": {**SETUP["setup"], "generationConfig": {"responseModalities": ["AUDIO", "TEXT"]}}}],
        "invalid_argument",
        1007,
        "One response modality",
    ),
    (
        [SETUP, {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/opus"}}}],
        "invalid_argument",
        1007,
        "audio/opus",
    ),
    (
        [SETUP, {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=fast"}}}],
        "invalid_argument",
        1007,
        "What rate",
    ),
    (
        [SETUP, {"realtimeInput": {"audio": {"data": "!", "mimeType": "audio/pcm"}}}],
        "invalid_value",
        1007,
        "base64",
    ),
    ([SETUP, {"realtimeInput": {"sound": {}}}], "unknown_name", 1007, 'Unknown name "sound"'),
    (
        [SETUP, {"realtimeInput": {"activityStart": {}}}],
        "invalid_argument",
        1007,
        "Explicit activity control",
    ),
    (
        [SETUP, {"toolResponse": {"functionResponses": {"id": "x"}}}],
        "invalid_value",
        1007,
        "toolResponse.functionResponses",
    ),
    ([SETUP, {"toolResponse": {}, "clientContent": {}}], "invalid_argument", 1007, "exactly one"),
]


@pytest.mark.parametrize(
    ("messages", "code", "close_code", "reason"), REFUSED, ids=lambda value: str(value)[:50]
)
async def test_what_the_provider_refuses_closes_and_fails_the_test(
    gemini_server, messages, code, close_code, reason
):
    with pytest.raises(LoopbackFailure) as failure:
        async with gemini_server(Script()) as server:
            context = server.authority.client()
            headers = {"x-goog-api-key": "k"}
            async with websockets.connect(server.url, ssl=context, additional_headers=headers) as socket:
                for message in messages:
                    await socket.send(message if isinstance(message, str) else json.dumps(message))
                await asyncio.wait_for(socket.wait_closed(), 60)
    assert socket.close_code == close_code
    assert reason in failure.value.violations[0].message
    assert [violation.code for violation in failure.value.violations] == [code]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ({"id": "unknown", "name": "recall"}, "unknown_function_id"),
        ({"id": "1", "name": "other"}, "wrong_function_name"),
    ],
)
async def test_a_result_nobody_waits_for_fails_the_test(gemini_server, response, code):
    script = Script(Calls(ToolCall("recall", id="1")), open_ended=True)
    with pytest.raises(LoopbackFailure) as failure:
        async with gemini_server(script) as server, connected(server) as session:
            await ask(session)
            await until(session, lambda m: m.tool_call)
            result = types.FunctionResponse(**response, response={})
            await session.send_tool_response(function_responses=result)
            live = server.sessions[0]
            await live.until(lambda: bool(live.violations), "the result")
    assert [violation.code for violation in failure.value.violations] == [code]


async def test_both_spellings_of_names_are_taken(gemini_server):
    snake = {"realtime_input": {"audio": {"data": "_-8=", "mime_type": "audio/pcm"}}}
    camel = {"realtimeInput": {"audio": {"data": "/+8=", "mimeType": "audio/pcm"}}}
    async with gemini_server(Script()) as server:
        headers = {"x-goog-api-key": "k"}
        async with websockets.connect(
            server.url, ssl=server.authority.client(), additional_headers=headers
        ) as socket:
            for message in (SETUP, snake, camel):
                await socket.send(json.dumps(message))
            live = await server.session()
            await live.until(lambda: live.input_bytes == 4, "both")
        assert bytes(live.input_audio) == b"\xff\xef\xff\xef"
        assert live.record.kinds("client") == ["setup", "realtime_input.audio", "realtime_input.audio"]


class TestWhoMay:
    async def test_without_a_key_nothing_opens(self, gemini_server):
        async with gemini_server(Script()) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(server.url, ssl=server.authority.client())
        assert refused.value.response.status_code == 403

    async def test_a_wrong_key_is_closed_with_the_reason(self, gemini_server):
        async with gemini_server(Script(), api_key="right", tolerate={"invalid_api_key"}) as server:
            with pytest.raises(errors.APIError, match="API key not valid") as refused:
                async with google(server, "wrong").aio.live.connect(model=MODEL, config=TRANSCRIBED):
                    pass
        assert refused.value.code == 1007

    async def test_an_unknown_model_is_refused(self, gemini_server):
        async with gemini_server(Script(), models={"gemini-3.1"}, tolerate={"model_not_found"}) as server:
            with pytest.raises(errors.APIError) as refused:
                async with google(server).aio.live.connect(model=MODEL, config=TRANSCRIBED):
                    pass
        assert refused.value.code == 1008

    async def test_another_path_is_not_found(self, gemini_server):
        async with gemini_server(Script()) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(server.url + "x", ssl=server.authority.client())
        assert refused.value.response.status_code == 404

    async def test_a_client_that_does_not_trust_the_authority_does_not_connect(self):
        async with GeminiLiveServer(Script()) as server:
            with pytest.raises(ssl.SSLCertVerificationError):
                await websockets.connect(server.url, ssl=ssl.create_default_context())


async def test_speech_and_a_call_in_one_turn(gemini_server):
    async with gemini_server(Script(Reply(Says("let me see"), Calls(ToolCall("recall", id="1"))))) as server:
        async with connected(server) as session:
            await ask(session)
            messages = await until(session, lambda m: m.tool_call)
    assert written(messages) == "let me see"
    assert not any(c.turn_complete for c in contents(messages))
