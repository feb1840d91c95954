"""Client secrets, calls, sidebands and hang-up, by the official SDK and by pydantic-ai."""

from __future__ import annotations

import asyncio
import time

import httpx
import openai
import pytest
import websockets
from pydantic_ai.messages import SpeechPart
from pydantic_ai.realtime import RealtimeTurnCompleteEvent, WebRTCSession

from echoic_loopback.openai_realtime.calls import answer_without_media
from echoic_loopback.realtime import Calls, Pause, Says, Script, ToolCall, UserSays
from loopback_agents import an_agent, of_kind, openai_model, said, sdk, until_turns

SESSION = {"type": "realtime", "model": "gpt-realtime", "instructions": "Be kind."}
OFFER = "v=0\r\no=- 46117317 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:1\r\na=sctp-port:5000\r\n"


async def post(server, path, **request):
    headers = {"Authorization": "Bearer sk-loopback", **request.pop("headers", {})}
    async with httpx.AsyncClient(base_url=server.base_url) as client:
        return await client.post(path, headers=headers, **request)


async def open_call(server, **request):
    fields = {
        "sdp": (None, OFFER, "application/sdp"),
        "session": (None, '{"type":"realtime"}', "application/json"),
    }
    return await post(server, "/realtime/calls", files=fields, **request)


class TestClientSecrets:
    async def test_one_is_minted_for_a_session_and_lives_as_long_as_asked(self, openai_server):
        async with openai_server(Script()) as server:
            secret = await sdk(server).realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": 60}, session=SESSION
            )
        assert secret.value.startswith("ek_")
        assert abs(secret.expires_at - time.time() - 60) < 30
        assert secret.session.instructions == "Be kind."

    async def test_it_opens_a_session_with_those_settings(self, openai_server):
        async with openai_server(Script()) as server:
            secret = await sdk(server).realtime.client_secrets.create(session=SESSION)
            async with sdk(server, secret.value).realtime.connect(model="gpt-realtime") as connection:
                created = (await of_kind(connection, "session.created"))[-1]
        assert created.session.instructions == "Be kind."

    async def test_an_invented_one_opens_nothing(self, openai_server):
        async with openai_server(Script()) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with sdk(server, "ek_invented").realtime.connect(model="gpt-realtime"):
                    pass
        assert refused.value.response.status_code == 401

    @pytest.mark.parametrize(
        "wish",
        [
            {"session": {"type": "realtime", "voice": "marin"}},
            {"session": SESSION, "expires_after": {"anchor": "created_at", "seconds": 9}},
            {"session": SESSION, "expires_after": {"anchor": "created_at", "seconds": 7201}},
            {"session": SESSION, "ttl": 60},
        ],
    )
    async def test_what_does_not_fit_is_refused(self, openai_server, wish):
        async with openai_server(Script()) as server:
            answer = await post(server, "/realtime/client_secrets", json=wish)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


class TestKeys:
    async def test_without_a_key_nothing_opens(self, openai_server):
        async with openai_server(Script()) as server:
            answer = await post(server, "/realtime/client_secrets", json={}, headers={"Authorization": ""})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "missing_authentication")

    async def test_where_a_key_is_set_no_other_opens_anything(self, openai_server):
        async with openai_server(Script(), api_key="sk-right") as server:
            with pytest.raises(openai.AuthenticationError):
                await sdk(server, "sk-wrong").realtime.client_secrets.create(session=SESSION)
            await sdk(server, "sk-right").realtime.client_secrets.create(session=SESSION)


class TestCalls:
    async def test_an_offer_is_answered_and_the_call_has_a_place(self, openai_server):
        async with openai_server(Script()) as server:
            answer = await open_call(server)
            call_id = answer.headers["location"].rpartition("/")[2]
            assert call_id in server.calls
        assert (answer.status_code, answer.headers["content-type"]) == (201, "application/sdp")
        assert call_id.startswith("rtc_")

    async def test_the_answer_takes_each_section_of_the_offer(self):
        answer = answer_without_media(OFFER)
        assert [line for line in answer.splitlines() if line.startswith(("m=", "a=mid"))] == [
            line for line in OFFER.splitlines() if line.startswith(("m=", "a=mid"))
        ]

    @pytest.mark.parametrize(
        ("request_", "code"),
        [
            ({"content": "hello", "headers": {"Content-Type": "text/plain"}}, "unsupported_content_type"),
            ({"content": "hello", "headers": {"Content-Type": "application/sdp"}}, "invalid_offer"),
            ({"files": {"session": (None, "{}")}}, "missing_required_parameter"),
            ({"files": {"sdp": (None, OFFER), "session": (None, "{")}}, "invalid_json"),
            (
                {"files": {"sdp": (None, OFFER), "session": (None, '{"type":"realtime","x":1}')}},
                "unknown_parameter",
            ),
            (
                {"content": OFFER, "headers": {"Content-Type": "application/sdp"}},
                "missing_required_parameter",
            ),
        ],
    )
    async def test_what_is_no_offer_is_refused(self, openai_server, request_, code):
        async with openai_server(Script()) as server:
            answer = await post(server, "/realtime/calls", **request_)
            assert not server.calls
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)

    async def test_a_browser_may_post_its_offer_with_a_client_secret(self, openai_server):
        async with openai_server(Script()) as server:
            secret = await sdk(server).realtime.client_secrets.create(session=SESSION)
            headers = {"Authorization": f"Bearer {secret.value}", "Content-Type": "application/sdp"}
            answer = await post(server, "/realtime/calls", content=OFFER, headers=headers)
            (call,) = server.calls.values()
            assert call.settings["instructions"] == "Be kind."
        assert answer.headers["access-control-allow-origin"] == "*"

    async def test_nobody_can_attach_to_a_call_that_is_not(self, openai_server):
        async with openai_server(Script()) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with sdk(server).realtime.connect(call_id="rtc_unknown"):
                    pass
        assert refused.value.response.status_code == 404

    async def test_hanging_up_ends_the_call_and_its_sidebands_once(self, openai_server):
        async with openai_server(Script()) as server:
            answer = await open_call(server)
            call_id = answer.headers["location"].rpartition("/")[2]
            async with sdk(server).realtime.connect(call_id=call_id) as sideband:
                await sideband.session.update(session={"type": "realtime"})
                await of_kind(sideband, "session.updated")
                await sdk(server).realtime.calls.hangup(call_id)
                assert [event async for event in sideband] == []
            with pytest.raises(openai.NotFoundError) as gone:
                await sdk(server).realtime.calls.hangup(call_id)
        assert gone.value.code == "call_id_not_found"

    async def test_two_sidebands_see_the_same_call_and_neither_its_audio(self, openai_server):
        async with openai_server(Script(Says("Hello Pavel"))) as server:
            call_id = (await open_call(server)).headers["location"].rpartition("/")[2]
            async with (
                sdk(server).realtime.connect(call_id=call_id) as one,
                sdk(server).realtime.connect(call_id=call_id) as other,
            ):
                await one.session.update(session={"type": "realtime"})
                await other.session.update(session={"type": "realtime"})
                for sideband in (one, other):
                    await of_kind(sideband, "session.updated")
                await one.response.create()
                mine = [event.type for event in await of_kind(one, "response.done")]
                theirs = [event.type for event in await of_kind(other, "response.done")]
            lines = {event.line for event in server.sessions[0].record.received()}
        assert lines == {1, 2}
        assert [kind for kind in theirs if kind != "session.updated"] == [
            kind for kind in mine if kind != "session.updated"
        ]
        assert "session.created" not in mine
        assert not [kind for kind in mine if kind.startswith("response.output_audio.")]
        assert "output_audio_buffer.started" in mine


class TestPydanticAI:
    async def test_secret_offer_sideband_tools_and_hang_up(self, openai_server):
        script = Script(
            UserSays("what is my dog called"),
            Calls(ToolCall("recall", {"query": "dog"})),
            Says("Rex", word_ms=50),
        )
        agent = an_agent()
        async with openai_server(script) as server:
            realtime = agent.realtime(openai_model(server))
            secret = await realtime.create_client_secret(expires_after_seconds=60)
            assert secret.value.startswith("ek_")
            answer = await realtime.answer_webrtc_offer(OFFER)
            assert answer.sdp.startswith("v=0")
            async with realtime.session(provider_session=answer.session) as session:
                await until_turns(session)
                assert said(session.all_messages()) == [
                    ("user", "what is my dog called"),
                    ("call", "dog"),
                    ("return", "fact about dog"),
                    ("assistant", "Rex"),
                ]
            await realtime.hang_up(answer.session)
            assert not server.calls
            await realtime.hang_up(answer.session)  # a call that has ended is no error

    async def test_another_agent_takes_over_the_call_where_it_is(self, openai_server):
        async with openai_server(
            Script(Says("reception", word_ms=50), Says("billing", word_ms=50))
        ) as server:
            one, two = an_agent(), an_agent()
            model = openai_model(server)
            call = (await one.realtime(model).answer_webrtc_offer(OFFER)).session
            async with one.realtime(model).session(provider_session=call) as session:
                await session.create_response()
                await until_turns(session)
            async with two.realtime(model).session(provider_session=call) as session:
                await session.create_response()
                await until_turns(session)
            (live,) = server.calls.values()
            assert [item.spoken.text for item in live.conversation] == ["reception", "billing"]

    async def test_a_browser_that_hangs_up_ends_the_sideband_quietly(self, openai_server):
        async with openai_server(Script(Pause(5))) as server:
            call_id = (await open_call(server)).headers["location"].rpartition("/")[2]
            provider_session = WebRTCSession("openai", session_id=call_id)
            model = openai_model(server, reconnect={"max_attempts": 3})
            async with an_agent().realtime(model).session(provider_session=provider_session) as session:
                asyncio.get_running_loop().call_later(0.05, server.calls[call_id].ended.set)
                async with asyncio.timeout(60):
                    events = [event async for event in session]
            assert not [event for event in events if isinstance(event, RealtimeTurnCompleteEvent)]
            assert len(server.requests) == 2  # no one dialled again

    async def test_a_barge_in_on_a_call_clears_what_plays_and_cuts_the_transcript(self, openai_server):
        script = Script(
            Says("one two three four five", word_ms=300),
            UserSays("stop"),
            Says("all right", word_ms=50),
        )
        async with openai_server(script) as server:
            realtime = an_agent().realtime(openai_model(server))
            call = (await realtime.answer_webrtc_offer(OFFER)).session
            async with realtime.session(provider_session=call) as session:
                await session.send("count")
                await until_turns(session, 2)
                spoken = [p for m in session.all_messages() for p in m.parts if isinstance(p, SpeechPart)]
            kinds = server.sessions[0].record.kinds("server")
        assert "output_audio_buffer.cleared" in kinds
        assert [part.transcript for part in spoken if part.speaker == "assistant"][-1] == "all right"
