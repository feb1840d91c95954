"""The caller interrupts: what was heard is measured against the audio that was played, decoded word by word."""

# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio

import pytest

from echoic.adapters.browser.socket import told
from echoic.session import Flush, Frame, SessionSettings, VoiceAgent, VoiceSession, read_exchanges
from echoic.session.provider import ProviderSession
from echoic_loopback.realtime import Says, Script, UserSays, speech, words_heard
from scale import some
from session.conftest import BY_ONE_PROVIDER

REPLY = "your flight to Porto leaves at nine from gate seven on the upper deck"
ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")
OFFSETS_MS = (0, 130, 500, 1010, 1390, 2250)


def script(**says):
    return Script(
        UserSays("when do I fly", after_ms=300),
        Says(REPLY, **says),
        UserSays("wait", after_ms=1, lasts_ms=200),
        Says("yes"),
    )


async def interrupted(memory, serve, provider, line_class, eventually, played_ms, name, **says):
    """A call that is interrupted when so much was played; the agent's turn, and the words in the audio."""
    async with serve(provider, script(**says)) as (server, model):
        async with VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id=name) as session:
            line = line_class(session, speed=40)
            line.paused_at = max(played_ms, 1)
            async with line:
                # the microphone goes silent once the question is out, until the reply stands still
                await eventually(lambda: server.sessions and server.sessions[0].record.sent())
                await eventually(lambda: session.live.provider.utterances)
                line.muted = True
                await eventually(lambda: len(line.heard) >= max(played_ms, 20) * 48)
                await eventually(lambda: not session.live.provider.speaking or says.get("pace"))
                line.muted = False
                await eventually(lambda: any(said.cut for said in session.live.provider.utterances.values()))
                cut_at = len(line.heard)
                line.paused_at = None
                await eventually(lambda: server.sessions[0].script_over)
                await eventually(lambda: session.recorder.kept == 4)
    turns = (await memory.user("ana").task(name)).turns
    return turns[1], bytes(line.heard[:cut_at]), server


@pytest.mark.examples
@pytest.mark.parametrize("played_ms", some(OFFSETS_MS, least=3))
async def test_the_words_heard_are_within_one_of_those_in_the_audio(
    memory, provider, serve, phone, eventually, played_ms
):
    turn, audio, _ = await interrupted(memory, serve, provider, phone, eventually, played_ms, "cut")
    truth = len(words_heard(audio, speech(REPLY)))
    assert turn.text == REPLY
    assert turn.heard is not None
    assert abs(len(turn.heard.split()) - truth) <= 1
    assert REPLY.startswith(turn.heard)


async def test_the_provider_is_told_where_playback_stopped(memory, serve, phone, eventually):
    _, _, server = await interrupted(memory, serve, "openai", phone, eventually, 1010, "told")
    item = next(item for item in server.sessions[0].conversation if item.truncated_ms is not None)
    assert abs(item.truncated_ms - 1010) <= 20


@BY_ONE_PROVIDER
async def test_what_was_not_heard_is_in_no_fact_no_recall_and_no_block(
    memory, provider, serve, phone, eventually
):
    await interrupted(memory, serve, provider, phone, eventually, 500, "unheard")
    ana = memory.user("ana")
    await memory.distil()
    everything = [hit.text for hit in await ana.query("which gate, which deck", limit=50)]
    everything += [fact.text for fact in await ana.facts()]
    everything.append((await ana.block(moment="which gate")).text)
    assert all("gate" not in text and "deck" not in text for text in everything)
    assert any("flight" in hit.text for hit in await ana.query("my flight"))


async def test_the_unheard_rest_is_kept_apart(memory, serve, phone, eventually):
    heard = []

    async def listener(_ctx, event):
        if event.what == "turn" and event.details["speaker"] == "agent":
            heard.append((event.details["heard"], event.details["unheard"]))

    async with (
        serve("openai", script()) as (server, model),
        VoiceSession(memory, user="ana", agents=[ROBIN], model=model, listener=listener) as session,
    ):
        line = phone(session, speed=40)
        line.paused_at = 600
        async with line:
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
    assert "".join(heard[0]) == REPLY
    assert heard[0][1]


async def test_a_reply_that_is_still_being_generated_ends_where_the_caller_cut_it(
    memory, provider, serve, phone, eventually
):
    said = Script(
        UserSays("tell me", after_ms=300),
        Says(REPLY, pace=1.0).at(800, UserSays("stop", after_ms=1)),
        Says("all right"),
    )
    async with serve(provider, said) as (server, model):
        async with (
            VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id="mid") as session,
            phone(session, speed=1.0),
        ):
            await eventually(lambda: server.sessions and server.sessions[0].script_over, 60)
            await eventually(lambda: session.recorder.kept == 4, 60)
    turns = (await memory.user("ana").task("mid")).turns
    assert [turn.speaker for turn in turns] == ["user", "agent", "user", "agent"]
    heard = turns[1].heard if turns[1].heard is not None else turns[1].text
    assert REPLY.startswith(heard)
    assert 2 <= len(heard.split()) <= 6, "800 ms were generated, and the cut came a little later"


@BY_ONE_PROVIDER
async def test_a_device_that_buffers_all_of_it_says_how_much_was_played(memory, provider, serve, eventually):
    async with (
        serve(provider, script()) as (server, model),
        VoiceSession(
            memory,
            user="ana",
            agents=[ROBIN],
            model=model,
            session_id="browser",
            settings=SessionSettings(cut_grace_s=2.0),
        ) as session,
    ):
        flushed = asyncio.Event()
        given = 0

        async def play():
            nonlocal given
            async for item in session.media():
                if isinstance(item, Flush):
                    session.played(1450 * 48, flushed=True)  # it went on for a moment
                    flushed.set()
                elif isinstance(item, Frame):
                    given += len(item.pcm)
                    session.played(min(given, 1300 * 48))

        playing = asyncio.create_task(play())
        silence = bytes(2 * session.profile.input_hz * 100 // 1000)
        while not session.live.provider.utterances:
            await session.send_audio(silence)
            await asyncio.sleep(0.005)
        await eventually(lambda: given >= len(speech(REPLY).pcm))
        while not server.sessions[0].script_over:
            await session.send_audio(silence)
            await asyncio.sleep(0.005)
        await flushed.wait()
        await eventually(lambda: session.recorder.kept >= 3)
        playing.cancel()
    turn = (await memory.user("ana").task("browser")).turns[1]
    assert abs(len(turn.heard.split()) - 7) <= 1


@pytest.mark.parametrize("pace", [0.0, 1.0], ids=["generated", "being generated"])
@pytest.mark.parametrize("asks", ["types", "is prompted"])
async def test_what_cuts_a_reply_off_is_answered(memory, provider, serve, phone, eventually, pace, asks):
    said = Script(
        UserSays("tell me", after_ms=300), Says(REPLY, pace=pace), Says("all right"), open_ended=True
    )
    async with (
        serve(provider, said) as (server, model),
        VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id="typed") as session,
    ):
        line = phone(session)
        line.paused_at = 600
        async with line:
            await eventually(lambda: len(line.heard) >= 600 * 48)
            line.muted = True
            # a provider that has said the reply is over does not like to be told that it is not wanted
            await eventually(lambda: pace or not session.live.provider.speaking)
            if asks == "types":
                await session.send_text("never mind")
            else:
                session.barge_in()
                await session.prompt("Say that it is all right.")
            line.paused_at = None
            await eventually(lambda: server.sessions[0].script_over)
            await eventually(lambda: session.recorder.kept == (4 if asks == "types" else 3))
    turns = (await memory.user("ana").task("typed")).turns
    assert turns[1].heard is not None
    assert (turns[-1].text, turns[-1].heard) == ("all right", None)


async def test_a_reply_whose_audio_is_still_on_its_way_is_cut_off_too(
    memory, provider, serve, phone, eventually, monkeypatch
):
    arrived, go, plain = asyncio.Event(), asyncio.Event(), ProviderSession._whose

    async def held(session, chunk):
        arrived.set()
        await go.wait()
        return await plain(session, chunk)

    monkeypatch.setattr(ProviderSession, "_whose", held)
    said = Script(UserSays("tell me", after_ms=300), Says(REPLY), Says("all right"), open_ended=True)
    async with (
        serve(provider, said) as (_, model),
        VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id="late") as session,
        phone(session),
    ):
        await eventually(lambda: session.live.provider.utterances and not session.live.provider.speaking)
        await arrived.wait()
        session.barge_in()
        go.set()
        await session.prompt("Say that it is all right.")
        await eventually(lambda: session.recorder.kept == 3)
    turns = (await memory.user("ana").task("late")).turns
    assert [turn.heard_text for turn in turns] == ["tell me", "", "all right"]


class Loudspeaker:
    """A page's: it takes all it is given, and has played, and reports, as much as a test says."""

    def __init__(self, session):
        self.session = session
        self.got_bytes = 0
        self.played_bytes = 0
        """What it says at a flush."""
        session.played(0)

    async def run(self):
        async for item in self.session.media():
            if isinstance(item, Frame):
                self.got_bytes += len(item.pcm)
            else:
                self.session.played(self.played_bytes, flushed=True)


class Held:
    """A step of a script: generation stands still here until the test lets it go on."""

    def __init__(self):
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, _stage):
        self.reached.set()
        await self.go.wait()


WHOLE_MS = len(speech(REPLY).pcm) // 48
CUTS = [
    # generated until, reported as played, played by the flush, words heard, whether the caller interrupted
    pytest.param(600, 600, 600, 3, True, id="it ran dry while more is generated"),
    pytest.param(600, 500, 600, 3, True, id="it ran dry, not reported yet, while more is generated"),
    pytest.param(None, 1000, 1400, 7, True, id="generated, half of it played"),
    pytest.param(None, 0, 0, 0, True, id="generated, nothing of it played"),
    pytest.param(None, WHOLE_MS - 300, WHOLE_MS, 14, False, id="played, which is not reported yet"),
    pytest.param(None, WHOLE_MS - 300, WHOLE_MS - 20, 14, False, id="played to the end of its last word"),
    pytest.param(None, WHOLE_MS, WHOLE_MS, 14, False, id="played, and reported"),
    pytest.param(0, 0, 0, None, False, id="before the reply begins"),
]


async def _cut_in(memory, serve, provider, eventually, until_ms, reported_ms, played_ms, cut):
    """`cut` a reply of which so much was generated, reported and played: the agent's turn, if one is kept, what
    the page is told, and the exchange as it is recorded.
    """
    held, events = Held(), []
    says = Says(REPLY) if until_ms is None else Says(REPLY).at(until_ms, held)
    said = Script(UserSays("when do I fly", after_ms=300), says, open_ended=True)
    async with (
        serve(provider, said) as (_, model),
        VoiceSession(
            memory,
            user="ana",
            agents=[ROBIN],
            model=model,
            session_id="cut",
            listener=lambda _, event: events.append(event),
            settings=SessionSettings(cut_grace_s=60),
        ) as session,
    ):
        device = Loudspeaker(session)
        playing = asyncio.create_task(device.run())
        given_ms = WHOLE_MS if until_ms is None else until_ms
        over = held.reached.is_set if until_ms is not None else lambda: _generated(session)
        while not (over() and device.got_bytes == 48 * given_ms):
            await session.send_audio(bytes(2 * session.profile.input_hz // 10))
            await asyncio.sleep(0.005)
        session.played(48 * reported_ms)
        device.played_bytes = 48 * played_ms
        cut(session)
        held.go.set()
        await eventually(lambda: session.recorder.kept == 2 or until_ms == 0)
        playing.cancel()
    turns = (await memory.user("ana").task("cut")).turns
    ana = memory.user("ana")
    exchange = (await read_exchanges(ana.backing_store, ana.scope, "cut"))[-1]
    page = [message[0] for event in events if (message := told("robin", event))]
    return next((turn for turn in turns if turn.speaker == "agent"), None), page, exchange


def _generated(session):
    said = session.live.provider.utterances.values()
    return any(each.ended for each in said) and not session.live.provider.speaking


@pytest.mark.parametrize(("until_ms", "reported_ms", "played_ms", "words", "interrupts"), CUTS)
async def test_page_turn_and_record_agree_on_whether_the_caller_interrupted(
    memory, provider, serve, eventually, until_ms, reported_ms, played_ms, words, interrupts
):
    turn, page, exchange = await _cut_in(
        memory, serve, provider, eventually, until_ms, reported_ms, played_ms, VoiceSession.barge_in
    )
    assert page.count("interrupted") == int(interrupts)
    assert ("barge_in" in exchange.stages) == interrupts
    if words is None:
        assert turn is None or turn.heard_text == ""
    else:
        assert abs(len(turn.heard_text.split()) - words) <= (1 if interrupts else 0)
        assert (exchange.spoken[0].source == "whole") == (not interrupts)


async def test_a_reply_that_a_broken_line_cut_off_was_not_interrupted_by_the_caller(
    memory, provider, serve, eventually
):
    turn, page, exchange = await _cut_in(
        memory, serve, provider, eventually, None, 1000, 1000, VoiceSession.hold
    )
    assert abs(len(turn.heard_text.split()) - 5) <= 1
    assert "interrupted" not in page
    assert "barge_in" not in exchange.stages
