"""A call as audio: a voice model behind the real client and protocol, and a simulated caller with an one."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from contextlib import AsyncExitStack
from types import SimpleNamespace

import aiohttp
import numpy as np
import pytest
from pydantic_ai import Agent
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from adapters.test_callers import Slow, ben_of, said_of
from echoic.adapters.twilio import Pace, media
from echoic.adapters.twilio.media import SILENCE, Resampler, mulaw_decode, pcm_of, samples_of
from echoic.memory.records import CHECKPOINT
from echoic.session import VoiceSession, read_call, read_given
from echoic.session.call_record import exchange_with, why
from echoic.session.recorder import CallRecorder
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Reply, Says, Script, ToolCall, UserSays, speech, words_heard

BROKEN = {"{", "[]"}
TOLD = "conversation.item.create"


@pytest.fixture
def stream(line):
    """A call whose audio goes to a voice model that plays `steps`; ends when `until` holds."""

    async def run(steps, until, **settings):
        async with OpenAIRealtimeServer(Script(*steps, open_ended=True)) as server:
            phone = await line(lambda _said, _given: "unused", channel="media", **settings)
            provider = OpenAIProvider(base_url=server.base_url, api_key="none")
            phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
            phone.phone._ended = run.figures.append
            call = run.call = await phone.call()
            async with asyncio.timeout(60):
                while not until(call.stream, server):
                    await asyncio.sleep(0.02)
            await call.hang_up()
            return phone, call, call.stream, server.sessions[0]

    run.call = None
    run.figures = []
    return run


def heard_words(stream, text):
    pcm = pcm_of(Resampler(8_000, 24_000)(stream.heard))
    return "".join(speech(text).words[n].text for n in words_heard(pcm, speech(text))).strip()


async def test_what_the_model_says_is_heard_and_what_the_caller_says_is_kept(stream):
    said = "hello ana how are you"
    phone, call, line_, session = await stream(
        [UserSays("my name is Ana", after_ms=200), Says(said)],
        lambda stream, _server: len(stream.played) > 8000 * speech(said).duration_ms / 1000 * 0.98,
        pace=Pace(),
    )
    assert heard_words(line_, said) == said
    assert len(session.input_audio) > 0
    task = await phone.turns(call)
    assert [(turn.speaker, turn.text) for turn in task.turns][:2] == [
        ("user", "my name is Ana"),
        ("agent", said),
    ]
    assert task.conversation.status == "completed"


@pytest.mark.parametrize("pace", [0.8, 0.4])
async def test_cutting_in_takes_back_what_was_not_played_and_nobody_believes_it_was_said(stream, pace):
    said = "your train leaves at nine from platform four and the last word is zanzibar"

    async def has_heard_a_second(session):
        await session.until(lambda: stream.call and len(stream.call.stream.played) > 8_000, "a second played")

    phone, call, line_, session = await stream(
        [
            UserSays("when is my train", after_ms=200),
            Says(said, pace=pace).at(3000, has_heard_a_second, UserSays("thank you", after_ms=0)),
            Says("bye"),
        ],
        lambda stream, server: any(i.truncated_ms for s in server.sessions for i in s.conversation),
        pace=Pace(),
    )
    cut = next(item for item in session.conversation if item.truncated_ms is not None)
    unheard_ms = len(line_.played) / 8 - cut.truncated_ms
    # until the order to stop arrives, which a busy machine delays, playing goes on
    assert -300 < unheard_ms < 2000, "cut where playing stopped"
    assert line_.cleared >= 1
    assert line_.cleared_bytes > 0, "what came faster than it is played was taken back"
    played = "zanzibar" in heard_words(line_, said)  # on a machine so slow that it was before the hang-up
    assert ("zanzibar" in str(await phone.memory().export())) <= played
    turns = (await phone.turns(call)).turns
    agent = next(turn for turn in turns if turn.speaker == "agent")
    assert agent.text
    assert said.startswith(agent.text)
    assert stream.figures[0].interruptions == 1


@pytest.mark.parametrize("pace", [0.2, 0.8, 1.0], ids=["generated long ago", "ahead", "as it is played"])
async def test_a_hang_up_in_mid_sentence_keeps_only_what_was_played(stream, pace):
    said = "your train leaves at nine from platform four and please be there a quarter of an hour before it leaves with your ticket your passport and all of your luggage and the last word is zanzibar"
    phone, call, line_, _ = await stream(
        [UserSays("when is my train", after_ms=200), Says(said, pace=pace)],
        lambda stream, server: (
            "platform" in heard_words(stream, said) and (server.sessions[0].script_over or pace > 0.2)
        ),
        pace=Pace(),
    )
    asked, answered = (await phone.turns(call)).turns
    assert asked.text == "when is my train"
    assert answered.heard_text
    assert heard_words(line_, said).startswith(answered.heard_text)
    assert "zanzibar" not in heard_words(line_, said)
    assert "zanzibar" not in str(await phone.memory().export())
    assert stream.figures[0].interruptions == 0, "who hangs up does not interrupt"


async def test_a_voice_model_has_the_memory_of_the_caller_and_its_tools(stream):
    calls = Calls(ToolCall("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"}))
    phone, _, _, session = await stream(
        [UserSays("an aisle seat please", after_ms=200), calls, Says("noted")],
        lambda stream, _server: len(stream.played) > 1200,
    )
    assert (await phone.memory().get("seat")).text == "aisle"
    told = next(e.body["session"] for e in session.record.received("session.update"))
    assert "recall_conversation" in {tool["name"] for tool in told["tools"]}


async def test_a_caller_says_audio_and_hears_the_answer_with_marks_for_a_clock(line):
    said, asked = "the harbour is in boston", "where is the harbour"
    script = Script(UserSays(asked, after_ms=700), Says(said), open_ended=True)
    async with OpenAIRealtimeServer(script) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        call = await phone.call()
        spoken = speech(asked)
        heard = await call.say_aloud(samples_of(spoken.pcm), 24_000)
        assert heard_words(call.stream, said) == said
        assert bytes(call.stream.played) == heard
        assert call.stream.marks >= len(heard) // 800, "a mark for every tenth of a second"
        assert len(call.stream.delays_s) == 1
        audio = server.sessions[0].input_audio
        assert "".join(spoken.words[n].text for n in words_heard(audio, spoken)).strip() == asked
        await call.hang_up()
        assert [t.text for t in (await phone.turns(call)).turns] == [asked, said]
        assert call.figures["turns"] == 1
        assert call.figures["input_tokens"] > 0, "as the provider counts them"


async def test_several_callers_stream_audio_at_once_and_nobody_hears_another(line):
    said = ["alpha bravo charlie", "delta echo foxtrot", "golf hotel india"]
    async with AsyncExitStack() as stack:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        calls = []
        for n, words in enumerate(said):
            script = Script(UserSays(f"caller {n}", after_ms=300), Says(words), open_ended=True)
            server = await stack.enter_async_context(OpenAIRealtimeServer(script))
            provider = OpenAIProvider(base_url=server.base_url, api_key="none")
            phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
            calls.append(await phone.call(f"+1555010000{n}"))
            while not server.sessions:
                await asyncio.sleep(0.01)
        for n, (call, words) in enumerate(zip(calls, said, strict=True)):
            async with asyncio.timeout(60):
                while heard_words(call.stream, words) != words:
                    await asyncio.sleep(0.1)
            await call.hang_up()
            turns = (await phone.turns(call, f"+1555010000{n}")).turns
            assert [turn.text for turn in turns] == [f"caller {n}", words]


async def test_a_token_of_a_stream_opens_it_once_and_only_for_twilio(stream):
    steps = [UserSays("hi", after_ms=100), Says("hello")]
    phone, call, _, _ = await stream(steps, lambda stream, _server: stream.marks > 0)
    path = re.search(r'url="ws://[^/]+([^"]+)"', call.webhooks[0].text)[1]
    url = f"ws{phone.url[4:]}{path}"
    good = call._validator.compute_signature(url, {})
    for headers in ({}, {"X-Twilio-Signature": "forged"}, {"X-Twilio-Signature": good}):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await call._http.ws_connect(url, headers=headers)


@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[]",
        '{"event":"media"}',
        '{"event":"media","media":{"payload":"%%%"}}',
        '{"event":1}',
        '{"event":"mark","mark":"0:1"}',
        '{"event":"mark","mark":{"name":"0:\u00b2"}}',
    ],
)
async def test_malformed_messages_of_a_stream_hurt_nobody(stream, message):
    said = "hello ana"

    def until(stream, _server):
        if not sent:
            sent.append(asyncio.ensure_future(stream._socket.send_str(message)))
        heard = len(stream.played) > 8 * speech(said).duration_ms * 0.98
        return heard or (stream.ended and message in BROKEN)

    sent = []
    _, _, line_, _ = await stream([UserSays("hi", after_ms=300), Says(said)], until)
    assert heard_words(line_, said) == said or message in BROKEN, "what is no message ends the stream"


async def test_a_stream_that_breaks_is_taken_up_again_by_the_session_it_had(line):
    script = Script(
        UserSays("one", after_ms=200),
        Says("I see"),
        UserSays("two", after_ms=1500),
        Says("so", pace=0.1),
        open_ended=True,
    )
    async with OpenAIRealtimeServer(script) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        call = await phone.call()
        await call.stream.listen()
        await call.stream._socket.close()
        await call._follow(call._after, {"SessionStatus": "failed", "CallStatus": "in-progress"})
        await call.stream.listen()
        await call.hang_up()
        assert len(server.sessions) == 1
    assert [turn.text for turn in (await phone.turns(call)).turns] == ["one", "I see", "two", "so"]


async def test_a_stream_whose_end_comes_late_takes_no_sound_from_the_next_and_stops_none(voiced):
    said = "your train leaves at nine from platform four and the last word is zanzibar"
    connected, may_end = asyncio.Event(), asyncio.Event()

    async def is_connected(_session):
        await connected.wait()

    async def has_ended(_session):
        await may_end.wait()

    phone, _ = await voiced(
        Script(
            UserSays("one", after_ms=200),
            Says("I see"),
            is_connected,
            UserSays("two", after_ms=200),
            Says(said).at(1000, has_ended),
            open_ended=True,
        )
    )
    call = await phone.call()
    await call.stream.listen()
    first = call.stream
    for task in first._working:  # the network is gone, without a word
        task.cancel()
    await call._follow(call._after, {"CallStatus": "in-progress"})
    connected.set()
    async with asyncio.timeout(60):
        while not call.stream.played:
            await asyncio.sleep(0.02)
        await first._socket.close()
        while phone.phone.known(call.sid).lines > 1:
            await asyncio.sleep(0.02)
    may_end.set()
    await call.stream.listen()
    assert heard_words(call.stream, said) == said
    samples = len(call.stream.played) / 8
    assert samples > speech(said).duration_ms * 0.98
    await over(phone, call)
    turns = (await phone.turns(call)).turns
    assert [turn.heard_text for turn in turns] == ["one", "I see", "two", said]


async def test_what_is_said_is_kept_at_once_though_something_before_could_not_be_transcribed(line):
    script = Script(
        UserSays("mumble", after_ms=200, final="failed"),
        Says("pardon"),
        UserSays("I live in Lisbon", after_ms=200),
        open_ended=True,
    )
    async with OpenAIRealtimeServer(script) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        call = await phone.call()
        async with asyncio.timeout(60):
            while "I live in Lisbon" not in [
                turn.text for turn in phone.phone.known(call.sid).recorder.turns
            ]:
                await asyncio.sleep(0.02)
        await call.hang_up()


async def test_a_stream_that_is_not_of_this_call_is_closed(line):
    phone = await line(lambda _said, _given: "unused", channel="media")
    call = await phone.caller()
    _, text = await call.post("/phone/voice", {"CallSid": call.sid, "From": "+15550100001"})
    url = re.search(r'url="([^"]+)"', text)[1]
    signature = call._validator.compute_signature(url, {})
    async with call._http.ws_connect(url, headers={"X-Twilio-Signature": signature}) as socket:
        await socket.send_str(json.dumps({"event": "start", "start": {"streamSid": "MZ", "callSid": "CA"}}))
        assert (await socket.receive(timeout=60)).data == 1008
    assert np.array_equal(mulaw_decode(SILENCE), [0])


@pytest.mark.parametrize("how", ["said", "keyed"])
async def test_a_voice_model_has_nobodys_memory_before_the_caller_proves_who_they_are(line, how):
    said = "my PIN is 4 8 2 9 1 3" if how == "said" else "who am I"
    scripts = [
        Script(UserSays(said, after_ms=200), Says("one moment"), open_ended=True),
        Script(Says("now I know"), open_ended=True),
    ]
    # the call is hung up about when the reply ends, and its cancellation may cross that end on the wire
    crossing = {"response_cancel_not_active"}
    async with OpenAIRealtimeServer(*scripts, tolerate=crossing) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        await phone.memory().set("user_name", "Quillhilda")
        await phone.phone.callers.pins.set(phone.phone.callers.line_of("+15550100001"), "482913")
        call = await phone.call(attestation="TN-Validation-Passed-B")
        assert "Quillhilda" not in call.webhooks[0].text
        if how == "keyed":
            await call.stream.listen()
            await call.press("482913")
        async with asyncio.timeout(60):
            while len(server.sessions) < 2 or not server.sessions[1].record.received(TOLD):
                await asyncio.sleep(0.02)
        before, after = (
            str([event.body for kind in ("session.update", TOLD) for event in session.record.received(kind)])
            for session in server.sessions[:2]
        )
        assert "Quillhilda" not in before
        assert "Quillhilda" in after
        await call.hang_up()
    kept = str(await phone.memory().export())
    assert "482913" not in kept
    assert "4 8 2" not in kept
    assert "[code]" in kept


async def test_who_proves_who_they_are_while_the_voice_model_is_dialled_is_served_and_told_so(
    voiced, monkeypatch
):
    entered, go, plain = asyncio.Event(), asyncio.Event(), VoiceSession.__aenter__

    async def enter(session):
        await plain(session)
        if not entered.is_set():
            entered.set()
            await go.wait()
        return session

    monkeypatch.setattr(VoiceSession, "__aenter__", enter)
    phone, server = await voiced(Script(open_ended=True))
    await phone.memory().set("user_name", "Quillhilda")
    await phone.phone.callers.pins.set(phone.phone.callers.line_of("+15550100001"), "482913")
    call = await phone.call(attestation="TN-Validation-Passed-B")
    async with asyncio.timeout(60):
        await entered.wait()
        await call.press("482913")
        known = phone.phone.known(call.sid)
        while known.recorder is known._served or known.voice.state != "closed":
            await asyncio.sleep(0.02)
        go.set()
        while len(server.sessions) < 2 or known.phrases.proven not in str(
            server.sessions[1].record.received()
        ):
            await asyncio.sleep(0.02)
        assert "Quillhilda" in str(server.sessions[1].record.received())
        await over(phone, call)


async def test_what_is_said_while_a_session_ends_for_the_next_caller_is_heard_by_the_next():
    stream = media.MediaStream(None, SimpleNamespace(), None, "MZ1")
    stream._session = SimpleNamespace(reason="another caller")
    await stream._heard({"media": {"payload": base64.b64encode(SILENCE).decode()}})
    assert list(stream._early) == [SILENCE]


@pytest.fixture
async def voiced(line):
    """A phone whose calls are served by a voice model that plays scripts, one a provider's session."""
    async with AsyncExitStack() as stack:

        async def start(*scripts, **settings):
            server = await stack.enter_async_context(OpenAIRealtimeServer(*scripts))
            phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace(), **settings)
            provider = OpenAIProvider(base_url=server.base_url, api_key="none")
            phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
            return phone, server

        yield start


async def over(phone, call):
    """Hang up, and wait until all that is kept at the end of a call is kept."""
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()


async def test_why_is_answered_on_a_call_over_a_media_stream(voiced):
    asked = "what is the name of my boat in the harbour"
    phone, _ = await voiced(
        Script(UserSays(asked, after_ms=300), Says("she is called nellie"), open_ended=True),
        budget_tokens=120,
    )
    memory = phone.memory()
    for n in range(30):
        await memory.set(f"thing {n}", f"number {n} is in room {n}")
    boat = await memory.set("boat", "the boat in the harbour is called Nellie")
    call = await phone.call()
    await call.stream.listen()
    await over(phone, call)
    turn = (await phone.turns(call)).turns[0]
    exchange = await exchange_with(memory.backing_store, memory.scope, turn.id)
    assert exchange.recall.outcome == "complete"
    assert {"transcript", "recalled", "first_audio", "generated"} <= exchange.stages.keys()
    answer = await why(memory.backing_store, memory.scope, exchange, "boat")
    assert answer.id == boat.id
    assert answer.reason in {"shown", "in_block"}
    given = await read_given(memory.backing_store, memory.scope, f"call:{call.sid}", f"call:{call.sid}")
    assert "Nellie" in str(given)
    record = await read_call(memory.backing_store, memory.scope, f"call:{call.sid}")
    assert (record.agents, record.reason) == (["robin"], "ended")


async def test_a_call_over_a_media_stream_is_handed_to_another_agent_and_shown_while_it_is_said(voiced):
    phone, server = await voiced(
        Script(
            UserSays("my bill please", after_ms=300),
            Reply(Says("one moment"), Calls(ToolCall("transfer_call", {"agent": "casey"}))),
            open_ended=True,
        ),
        Script(Says("casey here"), open_ended=True),
    )
    phone.phone.colleagues = (Agent(name="casey"),)
    shown = []
    phone.phone.captions = lambda call, caption: shown.append((call.sid, caption))
    call = await phone.call()
    async with asyncio.timeout(60):
        while len(server.sessions) < 2 or heard_words(call.stream, "casey here") != "casey here":
            await asyncio.sleep(0.05)
        while not any(caption.final and caption.agent == "casey" for _, caption in shown):
            await asyncio.sleep(0.05)
    await over(phone, call)
    told = str([item.wire for item in server.sessions[1].conversation])
    assert "my bill please" in told
    assert "one moment" in told
    memory = phone.memory()
    record = await read_call(memory.backing_store, memory.scope, f"call:{call.sid}")
    assert record.agents == ["robin", "casey"]
    final = [(caption.agent, caption.text) for sid, caption in shown if caption.final and sid == call.sid]
    assert final == [("robin", "my bill please"), ("robin", "one moment"), ("casey", "casey here")]


async def test_a_proof_that_is_said_to_a_voice_model_is_in_no_caption_and_no_checkpoint(voiced):
    phone, _ = await voiced(
        Script(UserSays("my PIN is 4 8 2 9 1 3", after_ms=300), Says("one moment"), open_ended=True)
    )
    shown = []
    phone.phone.captions = lambda _call, caption: shown.append(caption.text)
    call = await phone.call()
    memory = phone.memory()
    async with asyncio.timeout(60):
        while "one moment" not in (saved := str(await memory.backing_store.scan(memory.scope, CHECKPOINT))):
            await asyncio.sleep(0.05)
    await over(phone, call)
    assert "[code]" in saved
    assert "4 8 2" not in saved
    assert any("[code]" in text for text in shown)
    assert not any("4 8 2" in text for text in shown)


async def test_who_tells_a_voice_model_that_they_are_somebody_else_and_hangs_up_keeps_their_words(
    voiced, monkeypatch
):
    script = Script(
        UserSays("I collect zithers", after_ms=200),
        Says("Well"),
        UserSays("this is not Ana, it's Ben", after_ms=2500),
        open_ended=True,
    )
    phone, _ = await voiced(script)
    await phone.memory().set("user_name", "Ana")
    slow = Slow(monkeypatch, CallRecorder, "drop")
    call = await phone.call()
    async with asyncio.timeout(60):
        await slow.begun.wait()
    await call.hang_up()
    slow.may.set()
    await phone.phone.known(call.sid).hang_up()
    said = ["I collect zithers", "this is not Ana, it's Ben"]
    assert await said_of(phone, call, await ben_of(phone)) == said
    assert "zithers" not in str(await phone.memory().export())


async def test_a_stray_key_is_no_part_of_what_is_keyed_later(voiced, monkeypatch):
    monkeypatch.setattr(media, "KEYS_S", 2.0)
    phone, _ = await voiced(Script(UserSays("hi", after_ms=200), Says("hello"), open_ended=True))
    call = await phone.call()
    await call.stream.listen()
    await call.press("7")
    await asyncio.sleep(2.2)
    await call.press("111111")
    async with asyncio.timeout(20):
        while not (
            kept := [turn.text for turn in phone.phone.known(call.sid).recorder.turns if "11" in turn.text]
        ):
            await asyncio.sleep(0.02)
    assert kept == ["111111"]
    await over(phone, call)


async def test_keys_that_are_pressed_in_the_next_process_are_kept_too(voiced, line):
    script = Script(UserSays("hi", after_ms=200), Says("hello"), open_ended=True)
    phone, _ = await voiced(script, script)
    after = await line(lambda _said, _given: "unused", channel="media", pace=Pace(), service=phone.service)
    after.phone.realtime = phone.phone.realtime
    call = await phone.call()
    for where, keys in ((phone, "111111"), (after, "222222")):
        if where is after:
            call._url = call._public = after.url
            path = call._after.removeprefix(phone.url)
            await call._follow(path, {"SessionStatus": "failed", "CallStatus": "in-progress"})
        await call.stream.listen()
        await call.press(keys)
        async with asyncio.timeout(60):
            while keys not in [turn.text for turn in where.phone.known(call.sid).recorder.turns]:
                await asyncio.sleep(0.02)
    await over(after, call)
    said = [turn.text for turn in (await phone.turns(call)).turns if turn.speaker == "user"]
    assert said == ["hi", "111111", "hi", "222222"]
