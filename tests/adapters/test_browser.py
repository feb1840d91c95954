"""What goes over a page's socket, and how much of it: the parts that need no provider."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeError
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic import InvalidInput
from echoic.adapters.browser import PageSettings, answered
from echoic.adapters.browser.call import BrowserCall, Uplink
from echoic.adapters.browser.socket import REPLACED, WAITING, Allowance, CallSocket, read, told, written
from echoic.session import Event, SessionSettings


class Socket:
    """A page's end that reads when it is let."""

    def __init__(self, *, reads=True):
        self.got = []
        self.codes = []
        self.reading = asyncio.Event()
        if reads:
            self.reading.set()

    async def receive(self):
        await asyncio.Event().wait()

    async def send_text(self, message):
        await self.reading.wait()
        self.got.append(message)

    send_bytes = send_text

    async def close(self, code=1000):
        self.codes.append(code)


class TestMessages:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({"type": "played", "bytes": 960, "flushed": True}, ("played", {"bytes": 960, "flushed": True})),
            ({"type": "played", "bytes": 0}, ("played", {"bytes": 0, "flushed": False})),
            ({"type": "text", "text": "hello"}, ("text", {"text": "hello", "id": ""})),
            ({"type": "text", "text": "hello", "id": "1"}, ("text", {"text": "hello", "id": "1"})),
            ({"type": "mute", "muted": False}, ("mute", {"muted": False})),
            ({"type": "barge_in"}, ("barge_in", {})),
            ({"type": "hang_up", "more": 1}, ("hang_up", {})),
            ({"type": "of a later version", "x": []}, None),
        ],
    )
    def test_each_is_read_as_it_is_meant(self, body, said):
        assert read(json.dumps(body)) == said

    @given(st.text(max_size=200))
    def test_no_text_whatever_is_more_than_refused(self, text):
        try:
            read(text)
        except InvalidInput as error:
            assert len(str(error)) < 200

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda v: st.lists(v, max_size=3),
            max_leaves=5,
        )
    )
    def test_no_field_of_a_wrong_type_gets_through(self, value):
        for kind, name, right in (("played", "bytes", int), ("text", "text", str), ("mute", "muted", bool)):
            try:
                taken = read(json.dumps({"type": kind, name: value}))[1][name]
            except InvalidInput:
                continue
            assert type(taken) is right
            assert taken == value

    def test_what_is_not_known_is_left_out_of_what_is_sent(self):
        sent = json.loads(written("transcript", id="t", heard=None, text="‘quoted’ </script>"))
        assert sent == {"type": "transcript", "id": "t", "text": "‘quoted’ </script>"}

    def test_what_went_wrong_is_told_in_words_of_our_own(self):
        kind, fields = told(
            "robin", Event(what="error", details={"kind": "RealtimeError: key sk-123 said hello"})
        )
        assert kind == "problem"
        assert "sk-123" not in fields["error"]

    def test_an_event_that_is_not_the_pages_is_not_told(self):
        assert told("robin", Event(what="tool_call", details={"arguments": {"pin": "1234"}})) is None


class TestAllowance:
    def test_a_burst_is_let_pass_and_more_than_time_is_not(self):
        allowance = Allowance(24_000, pace=1.25, burst_s=2)
        assert all(allowance.take(48_000) for _ in range(2))
        assert not allowance.take(48_000)

    async def test_time_gives_more(self):
        allowance = Allowance(24_000, pace=1.25, burst_s=0.1)
        assert allowance.take(4_800)
        await asyncio.sleep(0.1)
        assert allowance.take(4_800)


class TestALine:
    async def test_what_is_said_arrives_in_order_and_then_the_end(self):
        line = CallSocket(socket := Socket())
        line.say("ready", session="s")
        line.sound(b"ab")
        line.say("state", state="active")
        line.end(1000)
        await line.run()
        assert [m if isinstance(m, bytes) else json.loads(m)["type"] for m in socket.got] == [
            "ready",
            b"ab",
            "state",
        ]
        assert socket.codes == [1000]
        assert line.gone

    async def test_a_flush_takes_back_audio_that_was_not_sent_and_no_words(self):
        line = CallSocket(socket := Socket(reads=False))
        writing = asyncio.create_task(line.run())
        line.sound(b"ab")
        await asyncio.sleep(0)  # on its way: it cannot be taken back
        line.sound(b"cdef")
        line.say("transcript", id="t")
        line.flush()
        line.sound(b"gh")
        line.end()
        socket.reading.set()
        await writing
        assert [m if isinstance(m, bytes) else json.loads(m)["type"] for m in socket.got] == [
            b"ab",
            "transcript",
            "flush",
            b"gh",
        ]
        assert line.sent_bytes == 4

    async def test_a_page_that_does_not_read_is_let_go_instead_of_filling_memory(self):
        line = CallSocket(Socket(reads=False))
        for _ in range(WAITING + 1):
            line.say("state", state="active")
        assert line.gone


@pytest.mark.parametrize(
    "wrong", [{"grace_s": 0}, {"ticket_s": -1}, {"ahead_ms": 0}, {"pace": 0.9}, {"burst_s": 0}]
)
def test_manners_that_leave_no_time_are_refused(wrong):
    with pytest.raises(InvalidInput):
        PageSettings(**wrong)


class Held(Socket):
    """One that stays until it is closed."""

    def __init__(self):
        super().__init__()
        self.closed = asyncio.Event()

    async def receive(self):
        await self.closed.wait()
        return {"type": "websocket.disconnect"}

    async def close(self, code=1000):
        await super().close(code)
        self.closed.set()


async def test_of_two_sockets_that_wait_for_a_third_to_go_only_the_last_is_served():
    async def opens(_call):
        raise AssertionError("nobody made an offer")

    call = BrowserCall(
        "call",
        "call",
        transport="webrtc",
        opens=opens,
        page_settings=PageSettings(),
        on_over=lambda _call: None,
    )
    sockets = first, second, last = Held(), Held(), Held()
    serving = [asyncio.create_task(call.serve(socket)) for socket in sockets]
    async with asyncio.timeout(60):
        await asyncio.gather(*serving[:2])
        assert (first.codes, second.codes, last.codes) == ([REPLACED], [REPLACED], [])
        await call.end("ended", keep=False)
        await serving[2]
    assert last.codes == [1000]
    assert json.loads(last.got[-1])["type"] == "closed"


def call_of(session):
    """A call over a socket, in progress."""
    call = BrowserCall(
        "call",
        "call",
        transport="websocket",
        opens=None,
        page_settings=PageSettings(),
        on_over=lambda _call: None,
    )
    call.session = session
    call._ready.set()
    return call


@pytest.mark.parametrize(("fails", "taken"), [(None, ["1"]), (RealtimeError("gpt-realtime", "lost"), [])])
async def test_what_was_typed_right_before_the_hang_up_is_sent_and_only_then_taken(fails, taken):
    sent, said = [], []

    class Session:
        state = "active"

        async def send_text(self, text):
            await asyncio.sleep(0)  # the provider takes it
            sent.append(text)
            if fails is not None:
                raise fails

    async def receive():
        return next(messages)

    messages = iter([written("text", text="my dog is called Rex", id="1"), written("hang_up")])
    call = call_of(Session())
    line = SimpleNamespace(receive=receive, say=lambda kind, **fields: said.append((kind, fields)))
    assert await Uplink(call, line).run()
    assert sent == ["my dog is called Rex"]
    assert said == [("taken", {"id": name}) for name in taken]


async def test_of_what_was_typed_only_the_last_ids_are_remembered_and_none_is_said_twice(monkeypatch):
    monkeypatch.setattr("echoic.adapters.browser.call._TAKEN", 3)
    sent, said = [], []

    class Session:
        state = "active"

        async def send_text(self, text):
            sent.append(text)

    async def receive():
        await asyncio.sleep(0)
        return next(messages)

    ids = ["1", "2", "3", "4", "4", "", ""]
    messages = iter([*(written("text", text=f"it is {name}", id=name) for name in ids), written("hang_up")])
    call = call_of(Session())
    line = SimpleNamespace(receive=receive, say=lambda _kind, **fields: said.append(fields["id"]))
    assert await Uplink(call, line).run()
    assert sent == [f"it is {name}" for name in ["1", "2", "3", "4", "", ""]]
    assert said == ["1", "2", "3", "4", "4"]
    assert [*call.taken] == ["2", "3", "4"]


async def test_a_webrtc_offer_is_answered_with_the_models_own_turn_detection(monkeypatch):
    provider = OpenAIProvider(base_url="http://127.0.0.1:1", api_key="k")
    detection = {"type": "semantic_vad", "eagerness": "low"}
    model = OpenAIRealtimeModel(
        "gpt-realtime", provider=provider, settings={"openai_turn_detection": detection}
    )
    asked = []

    async def answer(_sdp, *, model_settings):
        asked.append(model_settings)
        return SimpleNamespace(sdp="v=0", session=SimpleNamespace(session_id="call"))

    monkeypatch.setattr(model, "answer_webrtc_offer", answer)
    assert await answered(model, "v=0", SessionSettings()) == ("v=0", "call")
    assert asked[0]["openai_turn_detection"] == {**detection, "create_response": False}
