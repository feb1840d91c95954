"""Live calls by WebRTC: the server relays the offer and steers the call from beside; aiortc is the browser."""

# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio

import pytest

import echoic
from echoic.server.routes.voice import GREETING
from echoic.session import SessionSettings, VoiceAgent
from echoic_loopback.realtime import (
    Calls,
    Pause,
    Says,
    Script,
    ToolCall,
    UserSays,
    silence,
    speech,
    words_heard,
)
from server.conftest import AGENT_KEY, Identity, serving, settings_of
from server.test_voice_kill import running
from server.voice_calling import Page, admitted, connecting, providing
from server.voice_peer import Peer, offered

pytest.importorskip("aiortc", reason="media for calls needs aiortc")

QUICK = SessionSettings(checkpoint_every_s=0.1)
ROBIN = VoiceAgent(name="robin", instructions="You are Robin.", greeting=GREETING)
NAMED = speech("my name is Pavel", rate_hz=24_000)
ASKED = speech("what is my name", rate_hz=24_000)
ALONE = {"voice_transport": "webrtc", "voice_agents": [ROBIN], "voice_settings": QUICK}


def media():
    from echoic_loopback.openai_realtime.webrtc import Media

    return Media()


def said(spoken):
    """The user is heard when they speak, by their voice."""
    return UserSays(spoken.text, by_voice=True)


def paused(pcm):
    return silence(300, 24_000) + pcm + silence(700, 24_000)


class Calling:
    """A page in a call: its peer and its socket."""

    def __init__(self, client, url, identity):
        self.client, self.url, self.identity = client, url, identity

    async def __call__(self, *, peer, dial=True, **asked):
        admission = await admitted(self.client, self.identity, **asked)
        if dial:
            assert await peer.dial(self.client, self.identity, admission["session"]) == 200
        socket = await connecting(self.url, admission["ticket"])
        page = Page(socket, input_hz=24_000, output_hz=24_000)
        page.muted = True  # audio goes another way
        page.session = admission["session"]
        await page.__aenter__()
        page.ready = await page.until_told("ready")
        return page


async def kept(client, identity, text):
    """Until it is durable that `text` was said."""
    async with asyncio.timeout(60):
        while text not in (await client.get("/api/export", headers=identity.headers)).text:
            await asyncio.sleep(0.02)


async def left(page):
    """The page is gone without a word."""
    await page.__aexit__()
    await page.socket.close()


async def test_two_calls_by_webrtc_the_second_knows_the_caller(start):
    first = Script(
        Says("hello there", word_ms=100),
        said(NAMED),
        Says("nice to meet you", word_ms=200),
        Pause(1),
        open_ended=True,
    )
    second = Script(
        from_memory("welcome back Pavel"), said(ASKED), from_memory("Pavel"), Pause(1), open_ended=True
    )
    async with providing("openai", first, second, media=media(), patience_s=30) as (provider, model):
        async with start(voice_model=model, **ALONE) as server:
            ana = await server.identity()
            calling = Calling(server.client, server.url, ana)
            voice = (await server.client.get("/api/voice")).json()["result"]
            async with Peer() as peer:
                page = await calling(peer=peer)
                await page.until_heard("hello there")
                peer.say(paused(NAMED.pcm))
                await page.until_heard("nice to meet you")
                await asyncio.sleep(0.3)
                await page.say("hang_up")
                await page.until_told("closed")
                assert not provider.calls  # the caller's media are gone as well
                await left(page)
            async with Peer() as again:
                page = await calling(peer=again)
                await page.until_heard("welcome back Pavel")
                again.say(paused(ASKED.pcm))
                await page.until_heard("Pavel")
                await page.say("hang_up")
                await left(page)
        offer = provider.sessions[0].record.received()[0]
    assert voice["transport"] == "webrtc"
    assert words_heard(bytes(peer.heard), speech("nice to meet you", word_ms=200))
    assert page.got_bytes == 0  # no audio came by the socket
    assert offer.kind == "session.update"  # what the agent is told came by the sideband


def from_memory(words):
    async def step(session):
        await session.until(
            lambda: "Pavel" in str(session.record.received()), "what is remembered, as the agent is given it"
        )
        await Says(words, word_ms=100)(session)

    return step


async def test_a_page_that_connects_after_the_greeting_is_told_it(start):
    script = Script(Says("hello there", word_ms=50), Pause(1), open_ended=True)
    async with providing("openai", script, media=media(), patience_s=30) as (_, model):
        async with start(voice_model=model, **ALONE) as server:
            ana = await server.identity()
            async with Peer() as peer:
                admission = await admitted(server.client, ana)
                assert await peer.dial(server.client, ana, admission["session"]) == 200
                await kept(server.client, ana, "hello there")
                async with connecting(server.url, admission["ticket"]) as socket:
                    async with Page(socket, input_hz=24_000, output_hz=24_000) as page:
                        page.muted = True
                        await page.until_heard("hello there")


async def test_who_talks_over_the_agent_heard_what_the_provider_played(start):
    text = "one two three four five six seven eight nine ten " * 9 + "and done"
    script = Script(
        said(NAMED),
        Says(text, word_ms=320, gap_ms=0),
        said(ASKED),
        Says("Pavel", word_ms=200),
        Pause(1),
        open_ended=True,
    )
    async with providing("openai", script, media=media(), patience_s=30) as (provider, model):
        async with start(
            voice_model=model, **{**ALONE, "voice_agents": [VoiceAgent(name="robin")]}
        ) as server:
            ana = await server.identity()
            async with Peer() as peer:
                page = await Calling(server.client, server.url, ana)(peer=peer)
                peer.say(paused(NAMED.pcm))
                while not words_heard(bytes(peer.heard), speech("one two", word_ms=320)):
                    await asyncio.sleep(0.2)
                peer.say(paused(ASKED.pcm))
                cut = await page.until_heard(text)
                await page.until_heard("Pavel")
                await left(page)
        (item, *_) = [each for each in provider.sessions[0].conversation if each.spoken is not None]
    assert len(page.of("interrupted")) == 1
    assert cut["text"].startswith(cut["heard"])
    assert 0 < len(cut["heard"].split()) < len(text.split())
    # only times come from the provider: words are counted by a pace that is guessed, so the error grows with them
    played = len(item.spoken.heard(item.truncated_ms).split())
    assert abs(len(cut["heard"].split()) - played) <= max(1, 0.1 * played)


async def test_tools_and_a_transfer_run_beside_the_call(start):
    billing = VoiceAgent(name="billing", instructions="You are billing.", greeting="Say who you are.")
    script = Script(
        said(NAMED),
        Calls(ToolCall("transfer_call", {"agent": "billing"})),
        Says("one moment", word_ms=200),
        Says("billing here", word_ms=200),
        Pause(1),
        open_ended=True,
    )
    async with providing("openai", script, media=media(), patience_s=30) as (provider, model):
        robin = VoiceAgent(name="robin", instructions="You are Robin.")
        async with start(voice_model=model, **{**ALONE, "voice_agents": [robin, billing]}) as server:
            ana = await server.identity()
            async with Peer() as peer:
                page = await Calling(server.client, server.url, ana)(peer=peer)
                peer.say(paused(NAMED.pcm))
                told = await page.until_told("transfer")
                assert (await page.until_heard("billing here"))["agent"] == "billing"
                assert words_heard(bytes(peer.heard), speech("billing here", word_ms=200))
                await left(page)
        assert len(provider.sessions) == 1  # the media never moved
    assert told["agent"] == "billing"


async def test_a_page_that_makes_a_new_offer_goes_on_in_the_same_session(start):
    first = Script(said(NAMED), Says("hello Pavel", word_ms=100), Pause(3), open_ended=True)
    second = Script(said(ASKED), Says("Pavel", word_ms=100), Pause(1), open_ended=True)
    robin = VoiceAgent(name="robin", instructions="You are Robin.")
    async with providing("openai", first, second, media=media(), patience_s=30) as (provider, model):
        async with start(voice_model=model, **{**ALONE, "voice_agents": [robin]}) as server:
            ana = await server.identity()
            async with Peer() as peer, Peer() as anew:
                page = await Calling(server.client, server.url, ana)(peer=peer)
                peer.say(paused(NAMED.pcm))
                await page.until_heard("hello Pavel")
                assert await anew.dial(server.client, ana, page.session) == 200
                assert len(provider.calls) == 1  # the one before was hung up
                await page.until_told("ready", 2)
                anew.say(paused(ASKED.pcm))
                await page.until_heard("Pavel")
                await left(page)
            memory = server.memory.user(ana.user)
            turns = await (await memory.conversation(page.session)).turns()
    assert [turn.text for turn in turns] == ["my name is Pavel", "hello Pavel", "what is my name", "Pavel"]


async def test_a_page_that_took_its_media_along_goes_on_with_a_new_offer(start):
    first = Script(said(NAMED), Says("hello Pavel", word_ms=100), open_ended=True)
    second = Script(said(ASKED), Says("Pavel", word_ms=100), open_ended=True)
    robin = VoiceAgent(name="robin", instructions="You are Robin.")
    async with providing("openai", first, second, media=media(), patience_s=30) as (_, model):
        async with start(voice_model=model, **{**ALONE, "voice_agents": [robin]}) as server:
            ana = await server.identity()
            async with Peer() as anew:
                async with Peer() as peer:
                    page = await Calling(server.client, server.url, ana)(peer=peer)
                    peer.say(paused(NAMED.pcm))
                    await page.until_heard("hello Pavel")
                    await left(page)
                (call,) = server.app.state.served.voice._calls.values()
                async with asyncio.timeout(60):
                    while call.session.state != "closed":
                        await asyncio.sleep(0.02)
                admission = await admitted(server.client, ana, resume=page.session)
                socket = await connecting(server.url, admission["ticket"])
                async with Page(socket, input_hz=24_000, output_hz=24_000) as again:
                    again.muted = True
                    assert await anew.dial(server.client, ana, page.session) == 200
                    await again.until_told("ready")
                    anew.say(paused(ASKED.pcm))
                    await again.until_heard("Pavel")
                    await left(again)


async def test_an_offer_is_taken_of_the_caller_alone_and_only_as_sdp(start):
    async with providing("openai", Script(open_ended=True), patience_s=30) as (provider, model):
        async with start(voice_model=model, **ALONE) as server:
            ana, eve = await server.identity(), await server.identity()
            session = (await admitted(server.client, ana))["session"]
            sdp = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
            statuses = [
                (await offered(server.client, eve, session, sdp)).status_code,
                (await offered(server.client, ana, "another", sdp)).status_code,
                (await offered(server.client, ana, session, sdp, "application/json")).status_code,
                (await offered(server.client, ana, session, "hello")).status_code,
                (await server.client.post(f"/api/voice/sessions/{session}/offer", content=sdp)).status_code,
            ]
            assert not provider.calls
    assert statuses == [404, 404, 422, 422, 401]


async def test_an_offer_is_taken_only_of_who_may_be_told_as_much_as_the_caller(tmp_path):
    memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", assurance={"device": "open"})
    async with (
        providing("openai", Script(open_ended=True), patience_s=30) as (provider, model),
        serving(memory, settings_of(voice_model=model, **ALONE)) as server,
    ):
        page = await server.identity()
        asked = {"json": {"user": page.user}, "headers": {"Authorization": f"Bearer {AGENT_KEY}"}}
        token = (await server.client.post("/v1/tokens", **asked)).json()["token"]
        account = Identity(token, page.user, page.deployment)
        session = (await admitted(server.client, account))["session"]
        statuses = [
            (await offered(server.client, who, session, "hello")).status_code for who in (page, account)
        ]
        assert not provider.calls
    assert statuses == [404, 422]


async def test_an_offer_while_the_provider_is_gone_is_a_503_and_another_may_follow(start):
    async with providing("openai", Script()) as (_, model):
        pass
    async with start(voice_model=model, **ALONE) as server:
        ana = await server.identity()
        session = (await admitted(server.client, ana))["session"]
        sdp = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
        answers = [await offered(server.client, ana, session, sdp) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert "Retry-After" in answers[0].headers
    assert "k" not in answers[0].json()  # nothing of the provider's own words or keys
    assert answers[0].json()["code"] == "model_unavailable"


@pytest.mark.crash
async def test_a_server_that_is_killed_leaves_the_media_and_the_next_one_steers_the_same_call(tmp_path):
    script = Script(
        Says("hello, who are you", word_ms=100),
        said(NAMED),
        Says("nice to meet you", word_ms=300),
        said(ASKED),
        from_memory("you are Pavel"),
        Pause(2),
        open_ended=True,
    )
    second = Script(from_memory("welcome back Pavel"), Pause(1), open_ended=True)
    async with providing("openai", script, second, media=media(), patience_s=60) as (provider, _):
        async with running(tmp_path, provider, "--voice-transport", "webrtc") as process, Peer() as peer:
            ana = await process.identity()
            page = await Calling(process.client, process.url, ana)(peer=peer)
            await page.until_heard("hello, who are you", 30)
            peer.say(paused(NAMED.pcm))
            await page.until(lambda: len(page.spoken("agent")) == 2, 30)  # in mid-turn
            await kept(process.client, ana, "my name is Pavel")  # writing never holds up the audio
            await process.kill()
            await left(page)
            await process.start()
            again = await Calling(process.client, process.url, ana)(
                peer=peer, dial=False, resume=page.session, media=True
            )
            peer.say(paused(ASKED.pcm))
            await again.until_heard("you are Pavel", 30)
            await again.say("hang_up")
            await again.until_told("closed")
            assert len(provider.sessions) == 1
            assert not provider.calls
            async with Peer() as later:
                page = await Calling(process.client, process.url, ana)(peer=later)
                await page.until_heard("welcome back Pavel", 30)
                await left(page)
            await left(again)
    assert again.ready["resumed"] is True


async def test_where_the_call_is_gone_the_page_is_asked_for_an_offer(start):
    first = Script(said(NAMED), Says("hello Pavel", word_ms=100), Pause(1), open_ended=True)
    second = Script(said(ASKED), Says("Pavel", word_ms=100), Pause(1), open_ended=True)
    robin = VoiceAgent(name="robin", instructions="You are Robin.")
    async with providing("openai", first, second, media=media(), patience_s=30) as (_, model):
        async with start(voice_model=model, **{**ALONE, "voice_agents": [robin]}) as server:
            ana = await server.identity()
            calling = Calling(server.client, server.url, ana)
            async with Peer() as peer:
                page = await calling(peer=peer)
                peer.say(paused(NAMED.pcm))
                await page.until_heard("hello Pavel")
            closed = await page.until_told(
                "closed", seconds=30
            )  # a peer that is gone ends the provider's call
            await left(page)
            admission = await admitted(server.client, ana, resume=page.session, media=True)
            async with connecting(server.url, admission["ticket"]) as socket, Peer() as anew:
                async with Page(socket, input_hz=24_000, output_hz=24_000) as again:
                    again.muted = True
                    await again.until_told("offer")
                    assert await anew.dial(server.client, ana, page.session) == 200
                    await again.until_told("ready")
                    anew.say(paused(ASKED.pcm))
                    await again.until_heard("Pavel")
    assert closed == {"type": "closed", "reason": "lost", "resumable": True}
