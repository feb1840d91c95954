"""A call whose audio goes between provider and caller, steered from beside it."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from echoic import InvalidInput
from echoic.session import SessionSettings, VoiceAgent, VoiceSession, read_exchanges
from echoic_loopback.realtime import Calls, Drop, Pause, Says, Script, ToolCall, UserSays

OFFER = "v=0\r\no=- 46117317 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:1\r\na=sctp-port:5000\r\n"
ROBIN = VoiceAgent(name="robin", instructions="You are Robin.")
QUICK = SessionSettings(checkpoint_every_s=0.1)


async def dialled(model):
    """A call that a caller has made to the provider: its id there."""
    return (await model.answer_webrtc_offer(OFFER)).session.session_id


def beside(memory, model, call, **options):
    given = {"agents": [ROBIN], "session_id": "call", "settings": QUICK, **options}
    return VoiceSession(memory, user="ana", model=model, provider_call=call, **given)


async def turns_of(memory, conversation="call"):
    opened = await memory.user("ana").conversation(conversation)
    return [(turn.speaker, turn.heard_text) for turn in await opened.turns()]


async def test_a_call_by_webrtc_remembers_and_keeps_each_turn_once(memory, serve, eventually):
    script = Script(UserSays("my name is Pavel"), Says("hello Pavel", word_ms=100), Pause(1), open_ended=True)
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            with pytest.raises(InvalidInput, match="directly between provider and caller"):
                await session.send_audio(bytes(960))
            await eventually(lambda: session.recorder.kept == 2)
            exchange = session.recorder.log.exchanges[-1]
        assert not server.calls  # hung up for the caller as well
    assert await turns_of(memory) == [("user", "my name is Pavel"), ("agent", "hello Pavel")]
    assert [memory.text for memory in await memory.user("ana").facts()] == ["Pavel"]
    assert {"transcript", "recalled", "first_audio", "first_played"} <= exchange.stages.keys()
    *_, kept = await read_exchanges(memory.user("ana").backing_store, memory.user("ana").scope, "call")
    assert 150 <= kept.spoken[0].played_ms <= 600  # the provider played it for so long


async def test_the_next_call_knows_the_caller_before_the_first_word(memory, serve, eventually):
    greeter = VoiceAgent(name="robin", instructions="You are Robin.", greeting="Greet the caller.")
    await memory.user("ana").set("name", "Pavel")
    async with serve("openai", Script(Says("hello Pavel", word_ms=50), Pause(1))) as (server, model):
        async with beside(memory, model, await dialled(model), agents=[greeter]) as session:
            await eventually(lambda: session.recorder.kept == 1)
        first, greeting = server.sessions[0].record.received("conversation.item.create")[:2]
        assert "Pavel" in str(first.body)
        assert "Greet the caller." in str(greeting.body)


@pytest.mark.parametrize("after_ms", [700, 1300, 2200])
async def test_who_cuts_in_has_heard_what_the_provider_says_it_played(memory, serve, eventually, after_ms):
    text = "one two three four five six seven eight nine ten"
    script = Script(
        UserSays("count for me"),
        Says(text, word_ms=300, gap_ms=0).at(3000, _once_played(after_ms), UserSays("stop it please")),
        Says("all right", word_ms=50),
        Pause(1),
    )
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.recorder.kept == 4)
        (item, *_) = [each for each in server.sessions[0].conversation if each.spoken is not None]
    heard = (await turns_of(memory))[1][1]
    truth = item.spoken.heard(item.truncated_ms)
    assert item.truncated_ms >= after_ms - 250  # a busy machine cuts in later, never earlier
    assert text.startswith(heard)
    assert abs(len(heard.split()) - len(truth.split())) <= 1
    assert len(heard.split()) < 10


def _once_played(ms):
    async def wait(session):
        await asyncio.sleep(ms / 1000)

    return wait


async def test_what_was_measured_on_the_call_tells_later_words_apart(memory, serve, eventually):
    slow = {"word_ms": 700, "gap_ms": 0}
    script = Script(
        UserSays("say something"),
        Says("alpha beta gamma", **slow),
        _once_played(2600),  # played whole before the caller goes on
        UserSays("go on", after_ms=100),
        Says("delta epsilon zeta eta theta iota", **slow).at(4000, _once_played(1500), UserSays("stop")),
        Says("fine", word_ms=50),
        Pause(1),
    )
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.recorder.kept == 6, 60)
        spoken = [each for each in server.sessions[0].conversation if each.spoken is not None]
    truth = spoken[1].spoken.heard(spoken[1].truncated_ms)
    heard = (await turns_of(memory))[3][1]
    assert abs(len(heard.split()) - len(truth.split())) <= 1
    assert len(heard.split()) <= 3  # at the pace of a usual voice it would be five


async def test_a_channel_that_notices_an_interruption_stops_what_the_provider_plays(
    memory, serve, eventually
):
    text = "one two three four five six " * 4 + "and done"
    script = Script(UserSays("count"), Says(text, word_ms=500), Pause(2))
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.live.playback.sounding)
            await asyncio.sleep(0.7)
            session.barge_in()
            await eventually(lambda: session.recorder.kept == 2)
        kinds = server.sessions[0].record.kinds("server")
    assert "output_audio_buffer.cleared" in kinds
    heard = (await turns_of(memory))[1][1]
    assert heard
    assert text.startswith(heard)
    assert heard != text


async def test_another_agent_takes_over_where_the_call_is(memory, serve, eventually):
    billing = VoiceAgent(name="billing", instructions="You are billing.", greeting="Say who you are.")
    script = Script(
        UserSays("I have a question about my bill"),
        Calls(ToolCall("transfer_call", {"agent": "billing"})),
        Says("one moment please", word_ms=100),
        Says("billing here", word_ms=100),
        UserSays("my name is Pavel", after_ms=200),
        Says("thank you Pavel", word_ms=100),
        Pause(1),
    )
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model), agents=[ROBIN, billing]) as session:
            await eventually(lambda: session.recorder.kept == 5)
            assert session.current_agent == "billing"
        assert len(server.sessions) == 1
        assert "You are billing." in server.sessions[0].settings["instructions"]
    opened = await memory.user("ana").conversation("call")
    assert [(turn.speaker, turn.text) for turn in await opened.turns()] == [
        ("user", "I have a question about my bill"),
        ("agent", "one moment please"),
        ("agent", "billing here"),
        ("user", "my name is Pavel"),
        ("agent", "thank you Pavel"),
    ]


async def test_a_reply_whose_end_was_missed_during_a_reconnect_counts_as_played(memory, serve, eventually):
    text = "one two three four five six seven eight nine ten"
    slow = VoiceAgent(name="robin", settings={"reconnect": {"max_attempts": 5, "base_delay": 1.5}})
    script = Script(
        UserSays("count for me"),
        Says(text, word_ms=100),
        _once_played(300),
        Drop(),
        Pause(4),
        open_ended=True,
    )
    async with (
        serve("openai", script) as (_, model),
        beside(memory, model, await dialled(model), agents=[slow]) as session,
    ):
        await eventually(lambda: session.recorder.kept == 2, 60)
        assert session.live.playback.idle
    assert await turns_of(memory) == [("user", "count for me"), ("agent", text)]


async def test_another_process_takes_its_place_beside_the_same_call(memory, serve, eventually):
    script = Script(
        UserSays("my name is Pavel"),
        Says("hello Pavel", word_ms=50),
        _once_played(1500),
        UserSays("what is my name"),
        Says("Pavel", word_ms=50),
        Pause(1),
        open_ended=True,
    )
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.recorder.kept == 2)
            await session.suspend()
        assert len(server.calls) == 1  # whoever goes on finds it
        resumed = await VoiceSession.resume(
            memory, "call", user="ana", keep_media=True, agents=[ROBIN], model=model, settings=QUICK
        )
        async with resumed as session:
            await eventually(lambda: session.recorder.kept == 4)
        created = server.sessions[0].record.received("conversation.item.create")
        assert not [event for event in created if "hello Pavel" in str(event.body)]  # the call knows it
    assert [text for _, text in await turns_of(memory)] == [
        "my name is Pavel",
        "hello Pavel",
        "what is my name",
        "Pavel",
    ]


async def test_where_the_call_is_gone_a_new_one_is_told_what_was_said(memory, serve, eventually):
    first = Script(UserSays("my name is Pavel"), Says("hello Pavel", word_ms=50), Pause(1), open_ended=True)
    second = Script(UserSays("what is my name"), Says("Pavel", word_ms=50), Pause(1), open_ended=True)
    resume = {"user": "ana", "agents": [ROBIN], "model": None, "settings": QUICK}
    async with serve("openai", first, second) as (server, model):
        resume["model"] = model
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.recorder.kept == 2)
            await session.suspend()
        for call in list(server.calls.values()):
            call.ended.set()
        await eventually(lambda: not server.calls)
        gone = await VoiceSession.resume(memory, "call", keep_media=True, **resume)
        with pytest.raises(ModelHTTPError):
            await gone.__aenter__()
        again = await VoiceSession.resume(memory, "call", provider_call=await dialled(model), **resume)
        async with again as session:
            await eventually(lambda: session.recorder.kept == 4)
        assert "hello Pavel" in str(server.sessions[1].record.received("conversation.item.create"))
    assert len(await turns_of(memory)) == 4


async def test_a_caller_who_leaves_ends_the_session_and_it_can_be_taken_up(memory, serve, eventually):
    script = Script(UserSays("my name is Pavel"), Says("hello Pavel", word_ms=50), Pause(5), open_ended=True)
    async with serve("openai", script) as (server, model):
        async with beside(memory, model, await dialled(model)) as session:
            await eventually(lambda: session.recorder.kept == 2)
            server.sessions[0].ended.set()
            assert await asyncio.wait_for(session.wait_closed(), 60) == "lost"
        assert await VoiceSession.resume(memory, "call", user="ana", agents=[ROBIN], model=model)


async def test_a_model_without_sidebands_is_refused_before_anything_is_dialled(memory, serve):
    async with serve("gemini", Script()) as (server, model):
        with pytest.raises(InvalidInput, match="from beside"):
            await beside(memory, model, "rtc_1").__aenter__()
        assert not server.sessions


async def test_a_call_whose_audio_came_through_the_session_has_no_media_to_keep(memory, serve):
    async with serve("openai", Script(open_ended=True)) as (_, model):
        session = VoiceSession(
            memory, user="ana", agents=[ROBIN], model=model, session_id="call", settings=QUICK
        )
        async with session:
            await session.suspend()
        with pytest.raises(InvalidInput, match="went through the session"):
            await VoiceSession.resume(
                memory, "call", user="ana", keep_media=True, agents=[ROBIN], model=model
            )
