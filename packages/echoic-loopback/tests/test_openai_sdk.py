"""The official SDK against the OpenAI stand-in: every scripted feature as that client sees it."""

# ruff: noqa: PERF401, PT012, SIM117 - it is leaving the server that raises, not the client in it
from __future__ import annotations

import asyncio
import base64
import json

import pytest
import websockets

from echoic_loopback.openai_realtime import CutsShort, Expires, Fails, RateLimits, SendsError
from echoic_loopback.realtime import (
    Calls,
    ClientSends,
    Close,
    Drop,
    HeldTranscripts,
    LoopbackFailure,
    Pause,
    Refusal,
    Repeat,
    Reply,
    Says,
    Script,
    SendsRaw,
    Together,
    ToolCall,
    UserSays,
    silence,
    speech,
    words_heard,
)
from loopback_agents import append, of_kind, sdk

MODEL = "gpt-realtime"
WHISPER = {"type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}}}}
MANUAL = {
    "type": "realtime",
    "audio": {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": None}},
}
TRANSCRIPT = "conversation.item.input_audio_transcription"


def kinds(events):
    return [event.type for event in events]


def spoken(events):
    return b"".join(base64.b64decode(e.delta) for e in events if e.type == "response.output_audio.delta")


async def test_a_spoken_turn_is_transcribed_and_answered(openai_server):
    async with (
        openai_server(Script(UserSays("my name is Pavel"), Says("Hello Pavel"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.session.update(session=WHISPER)
        await append(connection, silence(400, 24_000))
        events = await of_kind(connection, "response.done")
    order = [kind for kind in kinds(events) if not kind.startswith("conversation.item.a")]
    assert order[:6] == [
        "session.created",
        "session.updated",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.done",
    ]
    assert [e.transcript for e in events if e.type == f"{TRANSCRIPT}.completed"] == ["my name is Pavel"]
    done = events[-1].response
    assert done.status == "completed"
    assert done.output[0].content[0].transcript == "Hello Pavel"
    assert done.usage.output_token_details.audio_tokens == 400 // 50


async def test_the_audio_of_a_reply_holds_exactly_its_words(openai_server):
    says = Says("the dog is called Rex", word_ms=150, chunk_ms=70)
    async with (
        openai_server(Script(says)) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.create()
        pcm = spoken(await of_kind(connection, "response.done"))
    assert pcm == speech("the dog is called Rex", word_ms=150).pcm
    assert words_heard(pcm, speech("the dog is called Rex", word_ms=150)) == [0, 1, 2, 3, 4]


async def test_a_transcript_can_run_ahead_of_its_audio(openai_server):
    async with (
        openai_server(Script(Says("one two three four", word_ms=100, lead_words=2))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.create()
        events = await of_kind(connection, "response.done")
    first = next(e for e in events if e.type == "response.output_audio_transcript.delta")
    assert first.delta == "one two three"


async def test_a_text_session_is_answered_with_text(openai_server):
    async with (
        openai_server(Script(Says("Hello there"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await connection.response.create()
        events = await of_kind(connection, "response.done")
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Hello there"
    assert not spoken(events)


async def test_a_client_that_did_not_ask_for_transcripts_gets_none(openai_server):
    async with (
        openai_server(Script(UserSays("hello", partials=("hel",)), Says("yes"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await append(connection, silence(400, 24_000))
        events = await of_kind(connection, "response.done")
    assert not [kind for kind in kinds(events) if "transcription" in kind]


class TestTranscripts:
    async def heard(self, openai_server, said, *more, session=WHISPER):
        async with (
            openai_server(Script(said, Says("yes"), *more)) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.session.update(session=session)
            await append(connection, silence(400, 24_000))
            events = await of_kind(connection, "response.done")
            await server.sessions[0].finished()
            await server.sessions[0].flush()
            await connection.input_audio_buffer.clear()
            return events + await of_kind(connection, "input_audio_buffer.cleared")

    async def test_partials_come_before_the_user_has_stopped_where_they_are_early(self, openai_server):
        said = UserSays("my dog Rex", partials=("my", " dog"), early=True)
        events = await self.heard(openai_server, said)
        names = kinds(events)
        assert [e.delta for e in events if e.type == f"{TRANSCRIPT}.delta"] == ["my", " dog"]
        assert names.index(f"{TRANSCRIPT}.delta") < names.index("input_audio_buffer.speech_stopped")

    async def test_a_held_transcript_comes_after_the_reply(self, openai_server):
        events = await self.heard(openai_server, UserSays("my dog Rex", final="held"), HeldTranscripts())
        names = kinds(events)
        assert names.index(f"{TRANSCRIPT}.completed") > names.index("response.done")

    async def test_a_final_can_come_twice(self, openai_server):
        events = await self.heard(openai_server, UserSays("my dog Rex", copies=2))
        assert kinds(events).count(f"{TRANSCRIPT}.completed") == 2

    async def test_a_final_can_be_missing(self, openai_server):
        events = await self.heard(openai_server, UserSays("my dog Rex", final="missing"))
        assert not [kind for kind in kinds(events) if "transcription" in kind]

    async def test_a_transcription_can_fail(self, openai_server):
        events = await self.heard(openai_server, UserSays("my dog Rex", final="failed"))
        failed = next(e for e in events if e.type == f"{TRANSCRIPT}.failed")
        assert failed.error.code == "audio_unintelligible"

    async def test_confidence_is_told_where_it_was_asked_for(self, openai_server):
        said = UserSays("Pavel", confidence=0.5)
        asked = {**WHISPER, "include": ["item.input_audio_transcription.logprobs"]}
        events = await self.heard(openai_server, said, session=asked)
        done = next(e for e in events if e.type == f"{TRANSCRIPT}.completed")
        assert [(p.token, round(p.logprob, 3)) for p in done.logprobs] == [("Pavel", -0.693)]
        events = await self.heard(openai_server, said)
        assert next(e for e in events if e.type == f"{TRANSCRIPT}.completed").logprobs is None


async def test_the_loudness_of_the_audio_decides_where_the_script_says_so(openai_server):
    async with (
        openai_server(Script(UserSays("hello", by_voice=True), Says("yes"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await append(connection, silence(1000, 24_000))
        await append(connection, speech("my name is Pavel", rate_hz=24_000).pcm)
        await append(connection, silence(600, 24_000))
        events = await of_kind(connection, "response.done")
        start = next(e for e in events if e.type == "input_audio_buffer.speech_started")
        stop = next(e for e in events if e.type == "input_audio_buffer.speech_stopped")
        item = server.sessions[0].conversation[start.item_id]
    assert start.audio_start_ms == 1000 - 300  # the detector's padding
    assert abs(stop.audio_end_ms - 1800) <= 10
    assert words_heard(bytes(item.audio), speech("my name is Pavel")) == [0, 1, 2, 3]


async def test_a_client_that_ends_turns_itself_commits_and_asks(openai_server):
    async with (
        openai_server(Script(UserSays("my name is Pavel"), Says("Hello Pavel"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.session.update(session=MANUAL)
        await append(connection, silence(200, 24_000))
        await connection.input_audio_buffer.commit()
        events = await of_kind(connection, f"{TRANSCRIPT}.completed")
        assert "input_audio_buffer.speech_started" not in kinds(events)
        await connection.response.create()
        await of_kind(connection, "response.done")


async def test_without_create_response_the_client_asks_for_the_reply(openai_server):
    detection = {"type": "server_vad", "create_response": False}
    session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
    async with (
        openai_server(Script(UserSays("hello"), Says("Hello Pavel"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.session.update(session=session)
        await append(connection, silence(400, 24_000))
        await of_kind(connection, "conversation.item.done")
        await asyncio.sleep(0.05)
        assert server.sessions[0].response is None
        await connection.response.create()
        await of_kind(connection, "response.done")


class TestTools:
    async def test_two_in_one_reply_and_a_chained_third(self, openai_server):
        script = Script(
            Calls(ToolCall("recall", {"query": "dog"}, id="call_1"), ToolCall("recall", {"query": "cat"})),
            Calls(ToolCall("store", {"fact": "both"})),
            Says("done"),
        )
        async with openai_server(script) as server, sdk(server).realtime.connect(model=MODEL) as connection:
            called = []
            await connection.response.create()
            for _ in range(3):
                done = (await of_kind(connection, "response.done"))[-1].response
                for call in (item for item in done.output if item.type == "function_call"):
                    called.append((call.name, json.loads(call.arguments)))
                    item = {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}
                    await connection.conversation.item.create(item=item)
                if called and done.output[0].type == "function_call":
                    await connection.response.create()
            outputs = server.sessions[0].conversation.outputs
        assert called == [
            ("recall", {"query": "dog"}),
            ("recall", {"query": "cat"}),
            ("store", {"fact": "both"}),
        ]
        assert outputs["call_1"] == "ok"

    async def test_arguments_that_are_no_json_come_as_they_are(self, openai_server):
        async with (
            openai_server(Script(Calls(ToolCall("recall", '{"query": ')))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            done = (await of_kind(connection, "response.done"))[-1].response
        assert done.output[0].arguments == '{"query": '

    async def test_speech_and_calls_in_one_reply(self, openai_server):
        async with (
            openai_server(Script(Reply(Says("let me look"), Calls(ToolCall("recall"))))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            done = (await of_kind(connection, "response.done"))[-1].response
        assert [item.type for item in done.output] == ["message", "function_call"]


class TestInterruption:
    async def test_speech_over_a_reply_cancels_it_where_it_was(self, openai_server):
        reply = Says("one two three four five", word_ms=100, chunk_ms=100).at(300, UserSays("stop", 0, 100))
        async with (
            openai_server(Script(reply, Says("all right"))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.session.update(session=WHISPER)
            await connection.response.create()
            await of_kind(connection, "input_audio_buffer.speech_started")
            await append(connection, silence(200, 24_000))
            events = await of_kind(connection, "response.done", 2)
        first, second = (e.response for e in events if e.type == "response.done")
        assert (first.status, first.status_details.reason) == ("cancelled", "turn_detected")
        assert (first.output[0].status, first.output[0].content[0].transcript) == (
            "incomplete",
            "one two three",
        )
        assert second.output[0].content[0].transcript == "all right"

    async def test_truncating_is_acknowledged_and_what_was_heard_is_known(self, openai_server):
        async with (
            openai_server(Script(Says("one two three four five", word_ms=200))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            item_id = (await of_kind(connection, "response.done"))[-1].response.output[0].id
            await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=610)
            event = (await of_kind(connection, "conversation.item.truncated"))[-1]
            assert (event.item_id, event.audio_end_ms) == (item_id, 610)
            item = server.sessions[0].conversation[item_id]
            assert item.heard == "one two three"
            await connection.conversation.item.retrieve(item_id=item_id)
            seen = (await of_kind(connection, "conversation.item.retrieved"))[-1].item
        assert seen.content[0].transcript == ""  # the unheard text is gone on the server too

    async def test_a_cancel_stops_the_reply(self, openai_server):
        cancelled = ClientSends("response.cancel")
        async with (
            openai_server(Script(Says("one two three four", chunk_ms=200).at(400, cancelled))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            await of_kind(connection, "response.output_audio.delta", 2)
            await connection.response.cancel()
            done = (await of_kind(connection, "response.done"))[-1].response
        assert (done.status, done.status_details.reason) == ("cancelled", "client_cancelled")
        assert done.output[0].content[0].transcript == "one two"

    async def test_a_reply_goes_on_where_speech_may_not_interrupt(self, openai_server):
        detection = {"type": "server_vad", "interrupt_response": False, "create_response": False}
        session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
        reply = Says("one two three four").at(200, UserSays("mhm", 0, 100))
        async with (
            openai_server(Script(reply)) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.session.update(session=session)
            await connection.response.create()
            await of_kind(connection, "input_audio_buffer.speech_started")
            await append(connection, silence(200, 24_000))
            done = (await of_kind(connection, "response.done"))[-1].response
        assert done.output[0].content[0].transcript == "one two three four"


class TestTrouble:
    async def test_a_drop_in_mid_reply_is_no_goodbye_and_loses_nothing_sent_before(self, openai_server):
        async with openai_server(Script(Says("one two three four", chunk_ms=100).at(400, Drop()))) as server:
            async with sdk(server).realtime.connect(model=MODEL) as connection:
                await connection.response.create()
                events = []
                with pytest.raises(websockets.ConnectionClosedError) as cut:
                    async for event in _raw(connection):
                        events.append(event)
            assert cut.value.rcvd is None
            assert kinds(events).count("response.output_audio.delta") == 4

    async def test_a_close_has_its_code_and_reason(self, openai_server):
        async with openai_server(Script(Close(1011, "going down"))) as server:
            async with sdk(server).realtime.connect(model=MODEL) as connection:
                with pytest.raises(websockets.ConnectionClosedError) as closed:
                    async for _ in _raw(connection):
                        pass
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1011, "going down")

    async def test_an_expired_session_says_so_and_closes(self, openai_server):
        async with openai_server(Script(Expires())) as server:
            async with sdk(server).realtime.connect(model=MODEL) as connection:
                events = [event async for event in connection]
        assert events[-1].error.code == "session_expired"

    async def test_a_failed_response_a_rate_limit_and_a_server_error_are_told(self, openai_server):
        script = Script(
            RateLimits(remaining=0), Fails(), SendsError("The server had an error.", "server_error")
        )
        async with openai_server(script) as server, sdk(server).realtime.connect(model=MODEL) as connection:
            await connection.response.create()
            events = await of_kind(connection, "error")
        assert next(e for e in events if e.type == "rate_limits.updated").rate_limits[0].remaining == 0
        failed = next(e for e in events if e.type == "response.done").response
        assert (failed.status, failed.status_details.error.code) == ("failed", "rate_limit_exceeded")
        assert events[-1].error.message == "The server had an error."

    async def test_a_reply_that_is_too_long_is_cut_short(self, openai_server):
        async with (
            openai_server(Script(Says("one two three").at(400, CutsShort()))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            done = (await of_kind(connection, "response.done"))[-1].response
        assert (done.status, done.status_details.reason) == ("incomplete", "max_output_tokens")
        assert done.output[0].content[0].transcript == "one two"

    async def test_a_handshake_can_be_refused(self, openai_server):
        script = Script(refuse=Refusal(status=429, message="Too many requests.", retry_after_s=7))
        async with openai_server(script) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with sdk(server).realtime.connect(model=MODEL):
                    pass
        response = refused.value.response
        assert (response.status_code, response.headers["retry-after"]) == (429, "7")
        assert json.loads(response.body)["error"]["message"] == "Too many requests."

    async def test_a_handshake_can_be_slow(self, openai_server):
        scripts = (
            Script(accept_after_s=30),
            Script(ready_after_s=30),
            Script(accept_after_s=0.01, ready_after_s=0.01),
        )
        async with openai_server(*scripts) as server:
            realtime = sdk(server).realtime
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1), realtime.connect(model=MODEL):
                    pass
            async with realtime.connect(model=MODEL) as connection:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await connection.recv()
            async with realtime.connect(model=MODEL) as connection:
                await of_kind(connection, "session.created")

    async def test_anything_at_all_can_be_sent(self, openai_server):
        unknown = SendsRaw({"type": "unheard.of", "event_id": "x"})
        async with (
            openai_server(Script(unknown, Says("still here"))) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.response.create()
            assert "unheard.of" in kinds(await of_kind(connection, "response.done"))


async def _raw(connection):
    """An SDK's connection, with the error that ended it: its own iterator swallows a normal close."""
    while True:
        yield await connection.recv()


class TestWhatTheTestSees:
    async def test_every_event_is_recorded_with_a_time_and_audio_by_its_size(self, openai_server):
        async with (
            openai_server(Script()) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await connection.session.update(session=WHISPER)
            await append(connection, silence(100, 24_000))
            await of_kind(connection, "session.updated")
            session = server.sessions[0]
            await session.until(lambda: len(session.record.received()) == 2, "both events")
        update, audio = session.record.received()
        assert update.body["session"] == WHISPER
        assert audio.body["audio"] == 4800
        assert update.at_s <= audio.at_s
        assert bytes(session.input_audio) == silence(100, 24_000)

    async def test_audio_need_not_be_kept(self, openai_server):
        async with (
            openai_server(Script(UserSays("hello"), Says("one two three")), keep_audio=False) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await append(connection, silence(400, 24_000))
            item_id = (await of_kind(connection, "response.done"))[-1].response.output[0].id
            await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=400)
            await of_kind(connection, "conversation.item.truncated")
            session = server.sessions[0]
        assert session.input_ms == 400
        assert session.conversation[item_id].heard == "one two"
        assert not session.input_audio
        assert not any(item.audio for item in session.conversation)
        kinds_seen = {event.kind for event in session.record.events}
        assert not kinds_seen & {"response.output_audio.delta", "input_audio_buffer.append"}

    async def test_the_record_can_be_kept_short_and_steps_still_see_what_comes(self, openai_server):
        script = Script(Repeat(Says("one two"), times=5), ClientSends("input_audio_buffer.clear"))
        async with (
            openai_server(script, keep_events=10) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            for _ in range(5):
                await connection.response.create()
                await of_kind(connection, "response.done")
            await connection.input_audio_buffer.clear()
            session = server.sessions[0]
            await session.finished()
        assert 10 <= len(session.record.events) < 20
        assert session.record.position > 50

    async def test_a_script_that_waits_in_vain_fails_the_test_and_says_for_what(self, openai_server):
        with pytest.raises(LoopbackFailure, match=r"waited 0\.1 s for the client to send 'response\.create'"):
            async with openai_server(Script(ClientSends("response.create")), patience_s=0.1) as server:
                async with sdk(server).realtime.connect(model=MODEL) as connection:
                    await connection.session.update(session=WHISPER)
                    await asyncio.sleep(0.3)

    async def test_a_reply_asked_for_after_the_script_ended_fails_the_test(self, openai_server):
        with pytest.raises(LoopbackFailure, match="after its script's end"):
            async with (
                openai_server(Script()) as server,
                sdk(server).realtime.connect(model=MODEL) as connection,
            ):
                await of_kind(connection, "session.created")
                await connection.response.create()
                await of_kind(connection, "response.created")

    async def test_unless_the_script_is_open_ended(self, openai_server):
        async with (
            openai_server(Script(open_ended=True)) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            await of_kind(connection, "session.created")
            await connection.response.create()
            await of_kind(connection, "response.created")

    async def test_an_error_under_way_is_not_hidden_by_what_it_left_behind(self, openai_server):
        with pytest.raises(ZeroDivisionError):
            async with openai_server(Script()) as server:
                async with sdk(server).realtime.connect(model=MODEL) as connection:
                    await connection.send({"type": "nonsense"})
                    await of_kind(connection, "error")
                    raise ZeroDivisionError

    async def test_a_step_of_ones_own_is_a_coroutine_function(self, openai_server):
        seen = []

        async def look(session):
            seen.append(session.settings["instructions"])

        script = Script(ClientSends("session.update"), look, Together(Pause(0), look))
        async with openai_server(script) as server, sdk(server).realtime.connect(model=MODEL) as connection:
            await connection.session.update(session={"type": "realtime", "instructions": "Be kind."})
            await (await server.session()).finished()
        assert seen == ["Be kind.", "Be kind."]


async def test_sessions_play_their_own_scripts_at_once(openai_server):
    scripts = [Script(Says("first")), Script(Says("second")), Script(Says("all others"))]
    async with openai_server(*scripts) as server:

        async def one():
            async with sdk(server).realtime.connect(model=MODEL) as connection:
                await connection.response.create()
                done = (await of_kind(connection, "response.done"))[-1].response
                return done.output[0].content[0].transcript

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(4)]
    assert sorted(task.result() for task in tasks) == ["all others", "all others", "first", "second"]
