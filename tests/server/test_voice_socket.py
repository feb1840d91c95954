"""Live calls through the server, by WebSocket: a real client, a real server, stand-ins of both providers."""

# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio
import json
import logging

import pytest
import websockets

from echoic.adapters.browser import PageSettings
from echoic.server.routes.voice import GREETING
from echoic.session import CallLimits, SessionSettings, VoiceAgent
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays, speech, words_heard
from server.voice_calling import Page, admitted, calling, connected, connecting, providing
from session.conftest import BY_ONE_PROVIDER

QUICK = SessionSettings(checkpoint_every_s=0.1)
ROBIN = VoiceAgent(name="robin", instructions="You are Robin.")
NEW = {"X-Echoic-Caller": "new"}


@pytest.fixture
def open_server(start):
    """A server whose calls go to a stand-in of a provider."""

    def opened(model, **changes):
        given = {"voice_agents": [ROBIN], "voice_settings": QUICK, **changes}
        return start(voice_model=model, **given)

    return opened


def from_memory(words, wanted):
    """The agent says `words` once what it was given holds `wanted`."""

    async def step(session):
        await session.until(
            lambda: wanted in str(session.record.received()), "what is remembered, as the agent is given it"
        )
        await Says(words, word_ms=100)(session)

    return step


@BY_ONE_PROVIDER
async def test_the_second_call_greets_by_name_and_answers_from_memory(open_server, provider):
    first = Script(
        Says("hello there", word_ms=100),
        UserSays("my name is Pavel and my favourite tea is sencha", after_ms=400),
        Says("nice to meet you", word_ms=100),
        open_ended=True,
    )
    second = Script(
        from_memory("welcome back Pavel", "Pavel"),
        UserSays("what is my favourite tea", after_ms=400),
        from_memory("it is sencha", "sencha"),
        open_ended=True,
    )
    greeter = VoiceAgent(name="robin", instructions="You are Robin.", greeting=GREETING)
    async with providing(provider, first, second) as (_, model):
        async with open_server(model, voice_agents=[greeter]) as server:
            ana = await server.identity()
            voice = (await server.client.get("/api/voice")).json()["result"]
            async with calling(server, ana) as page:
                await page.until_heard("nice to meet you")
                await page.say("hang_up")
                closed = await page.until_told("closed")
            async with calling(server, ana) as again:
                await again.until_heard("it is sencha")
                await again.say("hang_up")
                await again.until_told("closed")
            greeted = again.spoken("agent")[0]["text"]
            stored = (await server.client.get("/api/memories", headers=ana.headers)).json()["memories"]
    assert voice == {
        "transport": "websocket",
        "provider": "openai" if provider == "openai" else "google",
        "agents": ["robin"],
        "greeting": True,
    }
    assert greeted == "welcome back Pavel"
    assert closed == {"type": "closed", "reason": "ended", "resumable": False}
    assert {"Pavel", "sencha"} <= {memory["text"] for memory in stored}
    assert words_heard(bytes(page.heard), speech("nice to meet you", word_ms=100))  # the very audio arrived


@BY_ONE_PROVIDER
async def test_words_come_while_they_are_spoken_and_what_was_recalled_is_told(open_server, provider):
    script = Script(
        UserSays("where do I live", after_ms=400, partials=("where", " do I")),
        Says("by the sea", word_ms=100),
        open_ended=True,
    )
    async with providing(provider, script) as (_, model):
        async with open_server(model) as server:
            ana = await server.identity()
            await server.memory_of(ana, "set", key="home", value="Haifa")
            async with calling(server, ana) as page:
                await page.until_heard("by the sea")
    said = [told for told in page.of("transcript") if told["speaker"] == "user"]
    assert [told["final"] for told in said][:2] == [False, False]
    assert (said[-1]["text"], said[-1]["final"]) == ("where do I live", True)
    assert len({told["id"] for told in said}) == 1
    assert page.ready == {
        "type": "ready",
        "session": page.session,
        "conversation": page.conversation,
        "agent": "robin",
        "resumed": False,
    }
    assert page.of("recall")[0].keys() == {"type", "outcome", "hits", "ms"}


@BY_ONE_PROVIDER
async def test_who_cuts_in_is_obeyed_and_what_was_not_played_was_not_heard(open_server, provider):
    text = "one two three four five six seven eight nine ten"
    script = Script(
        UserSays("count for me", after_ms=400),
        Says(text, word_ms=300, gap_ms=0).at(2900, _after(0.9), UserSays("stop it please", after_ms=0)),
        Says("all right", word_ms=100),
        open_ended=True,
    )
    async with providing(provider, script) as (_, model):
        async with open_server(model) as server:
            ana = await server.identity()
            async with calling(server, ana, speed=1.0) as page:
                cut = await page.until_heard(text)
                await page.until_heard("all right")
    played = words_heard(bytes(page.heard), speech(text, word_ms=300, gap_ms=0))
    assert page.flushes >= 1
    assert len(page.of("interrupted")) == 1
    assert cut["text"].startswith(cut["heard"])
    assert len(cut["heard"].split()) < 10
    assert abs(len(cut["heard"].split()) - len(played)) <= 1


def _after(seconds):
    async def wait(_session):
        await asyncio.sleep(seconds)

    return wait


async def test_typing_muting_and_an_interruption_the_page_noticed_reach_the_call(open_server):
    script = Script(
        Says("you typed hello", word_ms=400),
        UserSays("and now I say something", after_ms=100, by_voice=False),
        Says("good", word_ms=100),
        open_ended=True,
    )
    async with providing("openai", script) as (provider, model):
        async with open_server(model) as server:
            ana = await server.identity()
            async with calling(server, ana, speed=1.0) as page:
                page.muted = True
                await page.say("text", text="hello from the keyboard")
                await page.until(lambda: len(page.heard) > 20_000)
                await page.say("barge_in")
                cut = await page.until_heard("you typed hello")
                await page.say("unknown", of="a later version")
                await page.say("text", text=" ")
                problem = await page.until_told("problem")
                before = provider.sessions[0].input_bytes
                await page.say("mute", muted=True)
                await page.until_heard(
                    "good"
                )  # the silence that was sent for the muted microphone ends the turn
                assert provider.sessions[0].input_bytes - before >= 24_000
    assert len(cut["heard"]) < len("you typed hello")
    assert len(page.of("interrupted")) == 1
    assert page.spoken("user")[0]["text"] == "hello from the keyboard"
    assert "text" in problem["error"]


async def test_what_is_typed_right_before_hanging_up_is_part_of_the_call(open_server):
    async with providing("openai", Script(open_ended=True)) as (_, model):
        async with open_server(model) as server:
            ana = await server.identity()
            async with calling(server, ana) as page:
                for text in ("I prefer tea", "I live in zanzibar"):
                    await page.say("text", text=text)
                await page.say("hang_up")
                await page.until_told("closed")
            turns = await turns_of(server, ana, page.conversation)
    assert turns == ["I prefer tea", "I live in zanzibar"]


async def test_neither_what_is_said_on_a_socket_nor_its_ticket_is_logged(open_server, caplog):
    caplog.set_level(logging.DEBUG)
    script = Script(Says("you typed zanzibar", word_ms=100), open_ended=True)
    async with providing("openai", script) as (_, model):
        async with open_server(model) as server:
            ana = await server.identity()
            ticket = (await admitted(server.client, ana))["ticket"]
            async with connecting(server.url, ticket) as socket:
                await socket.send(json.dumps({"type": "text", "text": "I live in zanzibar"}))
                async with asyncio.timeout(60):
                    async for message in socket:
                        if isinstance(message, str) and "you typed" in message:
                            break
            with pytest.raises(websockets.InvalidStatus):
                await connecting(server.url, "kilwa").__aenter__()
    # clients, the provider's among them, log their own
    text = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith(("uvicorn", "echoic")))
    assert all(word not in text for word in (ticket, "zanzibar", "kilwa"))
    assert "POST /api/voice/sessions 200" in text


async def test_a_call_is_handed_to_another_agent_and_the_page_is_told(open_server):
    billing = VoiceAgent(name="billing", instructions="You are billing.", greeting="Say who you are.")
    first = Script(
        UserSays("I have a question about my bill", after_ms=300),
        Calls(ToolCall("transfer_call", {"agent": "billing"})),
        Says("one moment", word_ms=100),
        open_ended=True,
    )
    second = Script(Says("billing here", word_ms=100), open_ended=True)
    async with providing("openai", first, second) as (_, model):
        async with open_server(model, voice_agents=[ROBIN, billing]) as server:
            ana = await server.identity()
            async with calling(server, ana, agent="robin") as page:
                told = await page.until_told("transfer")
                assert (await page.until_heard("billing here"))["agent"] == "billing"
    assert told["agent"] == "billing"
    assert "transferring" in [state["state"] for state in page.of("state")]


class TestTheLine:
    @BY_ONE_PROVIDER
    async def test_a_page_that_comes_back_in_time_goes_on_in_the_same_call(self, open_server, provider):
        script = Script(
            UserSays("my name is Pavel", after_ms=300),
            Says("hello Pavel", word_ms=100),
            UserSays("what is my name", after_ms=1500),
            Says("Pavel", word_ms=100),
            open_ended=True,
        )
        async with providing(provider, script) as (provider_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    await page.until_heard("hello Pavel")
                async with calling(server, ana, resume=page.session) as again:
                    await again.until_heard("Pavel")
                assert len(provider_.sessions) == 1
                turns = await turns_of(server, ana, page.conversation)
        assert again.ready["session"] == page.session
        assert turns == ["my name is Pavel", "hello Pavel", "what is my name", "Pavel"]

    async def test_what_was_typed_and_is_sent_again_on_the_next_socket_is_part_of_the_call_once(
        self, open_server
    ):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    await page.say("text", text="I prefer tea", id="1")
                    assert (await page.until_told("taken"))["id"] == "1"
                async with calling(server, ana, resume=page.session) as again:
                    for text_id, text in (("1", "I prefer tea"), ("2", "I live in zanzibar")):
                        await again.say("text", text=text, id=text_id)
                    await again.until_told("taken", 2)
                    await again.say("hang_up")
                    await again.until_told("closed")
                turns = await turns_of(server, ana, page.conversation)
        assert turns == ["I prefer tea", "I live in zanzibar"]

    async def test_what_was_said_while_nobody_was_there_is_not_taken_for_heard(self, open_server):
        text = "one two three four five six seven eight nine ten"
        script = Script(
            UserSays("count for me", after_ms=300),
            Says(text, word_ms=300, gap_ms=0),
            Says("where was I", word_ms=100),
            open_ended=True,
        )
        async with providing("openai", script) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana, speed=1.0) as page:
                    await page.until(lambda: len(page.heard) > 48_000)
                async with calling(server, ana, resume=page.session) as again:
                    await again.until_heard("where was I")
                turns = await turns_of(server, ana, page.conversation)
        played = words_heard(bytes(page.heard), speech(text, word_ms=300, gap_ms=0))
        assert turns[0] == "count for me"
        assert text.startswith(turns[1])
        assert abs(len(turns[1].split()) - len(played)) <= 1
        assert turns[2] == "where was I"

    @BY_ONE_PROVIDER
    async def test_after_the_grace_time_the_call_is_put_away_and_can_be_resumed(self, open_server, provider):
        first = Script(
            UserSays("my name is Pavel", after_ms=300), Says("hello Pavel", word_ms=100), open_ended=True
        )
        second = Script(
            UserSays("what is my name", after_ms=600), Says("Pavel", word_ms=100), open_ended=True
        )
        async with providing(provider, first, second) as (_, model):
            async with open_server(model, voice_page_settings=PageSettings(grace_s=0.2)) as server:
                ana = await server.identity()
                board = server.app.state.served.voice
                async with calling(server, ana) as page:
                    await page.until_heard("hello Pavel")
                await until(lambda: board.calls == 0)
                async with calling(server, ana, resume=page.session) as again:
                    await again.until_heard("Pavel")
                    await again.say("hang_up")
                    await again.until_told("closed")
                turns = await turns_of(server, ana, page.conversation)
                gone = await server.client.post(
                    "/api/voice/sessions", json={"resume": page.session}, headers=ana.headers
                )
        assert again.ready["resumed"] is True
        assert turns == ["my name is Pavel", "hello Pavel", "what is my name", "Pavel"]
        assert gone.status_code == 404  # it ended cleanly: nothing to resume

    async def test_a_server_that_stops_says_that_the_call_can_be_resumed(self, open_server):
        script = Script(
            UserSays("my name is Pavel", after_ms=300), Says("hello Pavel", word_ms=100), open_ended=True
        )
        async with providing("openai", script) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    await page.until_heard("hello Pavel")
                    server.uvicorn.should_exit = True
                    closed = await page.until_told("closed")
                    await page.until(lambda: page.closed)
        assert closed == {"type": "closed", "reason": "suspended", "resumable": True}
        assert page.closed == 1000

    async def test_the_same_call_on_a_second_socket_ends_the_first(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    async with calling(server, ana, resume=page.session) as again:
                        await page.until(lambda: page.closed)
                        assert again.closed is None
        assert page.closed == 4001

    async def test_a_model_that_cannot_be_reached_is_a_problem_and_the_end(self, open_server):
        async with providing("openai", Script()) as (_, model):
            pass  # nobody is there
        async with open_server(model) as server:
            ana = await server.identity()
            admission = await admitted(server.client, ana)
            async with connecting(server.url, admission["ticket"]) as socket:
                async with Page(socket, input_hz=24_000, output_hz=24_000) as page:
                    problem = await page.until_told("problem")
                    closed = await page.until_told("closed")
            assert server.app.state.served.voice.calls == 0
        assert "could not be reached" in problem["error"]
        assert closed == {"type": "closed", "reason": "failed", "resumable": False}


class TestWhoMay:
    async def test_a_ticket_opens_one_socket_once(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                ticket = (await admitted(server.client, ana))["ticket"]
                async with connecting(server.url, ticket) as socket:
                    assert socket.subprotocol == "echoic.voice.v1"
                    for bad in (ticket, "", "forged", ticket[:-1], "0" * 43):
                        assert await refused(server.url, bad) == 403

    async def test_a_ticket_that_was_not_used_in_time_opens_nothing_and_its_place_is_free(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            limits = CallLimits(per_user=1, total=1)
            async with open_server(
                model, voice_page_settings=PageSettings(ticket_s=0.2), voice_limits=limits
            ) as server:
                ana = await server.identity()
                ticket = (await admitted(server.client, ana))["ticket"]
                await until(lambda: limits.calls == 0)
                assert await refused(server.url, ticket) == 403
                assert await admitted(server.client, ana)

    async def test_a_page_of_another_origin_is_refused_with_a_good_ticket(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                ticket = (await admitted(server.client, ana))["ticket"]
                for origin in ("https://evil.example", "null", server.url.replace("http", "https")):
                    assert await refused(server.url, ticket, origin=origin) == 403
                async with connecting(server.url, ticket, origin=server.url):
                    pass  # nothing was used up

    async def test_anothers_call_can_be_neither_joined_nor_resumed(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model, voice_page_settings=PageSettings(grace_s=0.2)) as server:
                ana, eve = await server.identity(), await server.identity()
                elsewhere = await server.identity("acme")
                async with calling(server, ana) as page:
                    for other in (eve, elsewhere):
                        assert await not_resumed(server, other, page.session) == await not_resumed(
                            server, other, "there-is-none"
                        )
                board = server.app.state.served.voice
                await until(lambda: board.calls == 0)
                for other in (eve, elsewhere):
                    assert (await not_resumed(server, other, page.session))[0] == 404
                assert await admitted(server.client, ana, resume=page.session)

    async def test_without_an_identity_no_call_is_opened(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                answers = [
                    await server.client.post("/api/voice/sessions", json={}),
                    await server.client.post(
                        "/api/voice/sessions", json={}, headers={"Authorization": "Bearer forged"}
                    ),
                ]
        assert [answer.status_code for answer in answers] == [401, 401]

    async def test_a_page_opens_a_call_with_its_ticket_and_its_cookie_and_nobody_with_one_of_them(
        self, open_server
    ):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model, voice_limits=CallLimits(per_user=20)) as server:
                page, other = [(await server.client.post("/api/cookies", headers=NEW)) for _ in range(2)]
                caller, cookie = page.json()["caller"], page.headers["set-cookie"].partition(";")[0]
                theirs = other.json()["caller"], other.headers["set-cookie"].partition(";")[0]

                async def opens(caller, cookie, origin=server.url):
                    """Whether a new ticket of the page opens a call with them."""
                    named = {"X-Echoic-Caller": page.json()["caller"]}
                    given = await server.client.post("/api/voice/sessions", json={}, headers=named)
                    ticket = f"{given.json()['ticket']}&caller={caller}" if caller else given.json()["ticket"]
                    headers = {"Cookie": cookie} if cookie else {}
                    try:
                        async with connecting(server.url, ticket, origin=origin, headers=headers):
                            return True
                    except websockets.InvalidStatus as refused:
                        return refused.response.status_code != 403

                assert await opens(caller, cookie)
                assert not await opens(caller, None)
                assert not await opens(None, None)
                assert not await opens(None, cookie)
                assert not await opens(caller, cookie, origin=None)
                assert not await opens(caller, cookie, origin="https://evil.example")
                assert not await opens(*theirs), "the ticket is of somebody else"
                named = {"X-Echoic-Caller": caller}
                assert (await server.client.post("/api/identity/revoke", headers=named)).status_code == 200
                assert (
                    "ticket"
                    not in (await server.client.post("/api/voice/sessions", json={}, headers=named)).json()
                )

    async def test_an_identity_that_is_revoked_in_mid_call_ends_it(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model, voice_page_settings=PageSettings(check_s=0.1)) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    await asyncio.sleep(0.5)
                    assert page.closed is None
                    await server.client.post("/api/identity/revoke", headers=ana.headers)
                    closed = await page.until_told("closed")
                assert (await not_resumed(server, ana, page.session))[0] == 401
        assert closed["reason"] == "left"

    async def test_calls_that_were_hung_up_before_they_were_joined_keep_no_place(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                for _ in range(4):
                    await admitted(server.client, ana)
                async with calling(server, ana), calling(server, ana):
                    answer = await server.client.post("/api/voice/sessions", headers=ana.headers)
                    assert answer.status_code == 429

    async def test_more_calls_than_there_may_be_are_refused_until_one_ends(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model, voice_limits=CallLimits(per_user=1, total=2)) as server:
                ana, ben, eve = [await server.identity() for _ in range(3)]
                async with calling(server, ana) as page, calling(server, ben):
                    for who in (ana, eve):
                        answer = await server.client.post("/api/voice/sessions", headers=who.headers)
                        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_calls")
                        assert int(answer.headers["Retry-After"]) > 0
                    await page.say("hang_up")
                    await page.until_told("closed")
                    assert await admitted(server.client, eve)

    async def test_an_agent_that_is_not_there_and_a_server_without_voice_are_not_found(
        self, open_server, start
    ):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                answer = await server.client.post(
                    "/api/voice/sessions", json={"agent": "nobody"}, headers=ana.headers
                )
                assert answer.status_code == 404
        async with start() as server:
            ana = await server.identity()
            voice = (await server.client.get("/api/voice")).json()
            answer = await server.client.post("/api/voice/sessions", headers=ana.headers)
            assert await refused(server.url, "x") == 403
        assert voice == {
            "success": True,
            "result": {"transport": "none", "provider": None, "agents": [], "greeting": False},
        }
        assert answer.status_code == 404


class TestWhileItIsOpened:
    """The agent takes its time to enter: the page is connected, and not ready yet."""

    @pytest.fixture
    async def entering(self, open_server):
        there, let_in = asyncio.Event(), asyncio.Event()

        async def enters(_ctx):
            there.set()
            await let_in.wait()

        slow = VoiceAgent(name="robin", instructions="You are Robin.", on_enter=enters)
        async with providing("openai", Script(Says("noted", word_ms=100), open_ended=True)) as (_, model):
            async with open_server(
                model, voice_agents=[slow], voice_page_settings=PageSettings(grace_s=0.2)
            ) as server:
                yield server, there, let_in

    async def test_what_is_typed_waits_for_the_call(self, entering):
        server, there, let_in = entering
        ana = await server.identity()
        async with connected(server, ana) as page:
            await there.wait()
            await page.say("text", text="I prefer tea")
            await (await page.socket.ping())  # the server has read what came before
            await asyncio.sleep(0.1)
            let_in.set()
            await page.until_heard("noted")
            await page.say("hang_up")
            await page.until_told("closed")
        assert await turns_of(server, ana, page.conversation) == ["I prefer tea", "noted"]

    async def test_who_hangs_up_has_ended_it(self, entering):
        server, there, _ = entering
        ana = await server.identity()
        async with connected(server, ana) as page:
            await there.wait()
            await page.say("hang_up")
            closed = await page.until_told("closed")
        assert closed == {"type": "closed", "reason": "ended", "resumable": False}
        assert (await not_resumed(server, ana, page.session))[0] == 404
        conversation = await server.memory.user(ana.user, ana.deployment).find_conversation(page.conversation)
        assert conversation.status == "completed"

    async def test_whose_line_breaks_can_come_back(self, entering):
        server, there, let_in = entering
        ana = await server.identity()
        async with connected(server, ana) as page:
            await there.wait()
        await until(lambda: server.app.state.served.voice.calls == 0)
        let_in.set()
        async with calling(server, ana, resume=page.session) as again:
            assert again.ready["resumed"] is True


class TestWhatIsNoCall:
    @pytest.mark.parametrize(
        "message",
        ["no json", "[]", '{"type": 1}', '{"type": "played", "bytes": -1}', '{"type": "played", "bytes": true}',
         '{"type": "text"}', '{"type": "mute", "muted": "yes"}', "[" * 20_000, bytes(3), bytes(60_000)],
    )  # fmt: skip
    async def test_a_message_against_the_rules_ends_the_socket_and_not_the_call(self, open_server, message):
        async with providing("openai", Script(open_ended=True)) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    page.muted = True
                    await page.socket.send(message)
                    await page.until(lambda: page.closed)
                assert page.of("problem")
                assert page.closed == 1008
                async with calling(server, ana, resume=page.session) as again:
                    assert again.ready["session"] == page.session

    async def test_audio_faster_than_time_ends_the_socket(self, open_server):
        async with providing("openai", Script(open_ended=True)) as (provider, model):
            async with open_server(model, voice_page_settings=PageSettings(burst_s=2)) as server:
                ana = await server.identity()
                async with calling(server, ana) as page:
                    for _ in range(6):
                        await page.socket.send(bytes(48_000))
                    await page.until(lambda: page.closed)
        assert page.closed == 1008
        assert provider.sessions[0].input_bytes <= 48_000 * 4

    async def test_a_page_that_claims_more_than_it_got_has_heard_no_more(self, open_server):
        text = "one two three four five six"
        script = Script(UserSays("count", after_ms=300), Says(text, word_ms=300), open_ended=True)
        async with providing("openai", script) as (_, model):
            async with open_server(model) as server:
                ana = await server.identity()
                async with calling(server, ana, speed=1.0, reports=False) as page:
                    await page.until(lambda: page.got_bytes > 10_000)
                    await page.say("played", bytes=10**9)
                    await page.say("played", bytes=5)  # and takes it back
                    await page.say("hang_up")
                    await page.until_told("closed")
                *_, last = await turns_of(server, ana, page.conversation)
        assert text.startswith(last)
        assert len(last.split()) < 6


async def refused(url, ticket, **options):
    with pytest.raises(websockets.InvalidStatus) as error:
        async with connecting(url, ticket, **options):
            pass
    return error.value.response.status_code


async def not_resumed(server, identity, session):
    answer = await server.client.post(
        "/api/voice/sessions", json={"resume": session}, headers=identity.headers
    )
    return answer.status_code, answer.json()


async def turns_of(server, identity, conversation):
    memory = server.memory.user(identity.user, identity.deployment)
    return [turn.heard_text for turn in await (await memory.conversation(conversation)).turns()]


async def until(ready, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not ready():
            await asyncio.sleep(0.01)
