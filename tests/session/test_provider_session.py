from __future__ import annotations

import asyncio
import contextlib
import inspect
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from pydantic_ai.exceptions import UserError
from pydantic_ai.realtime import RealtimeError, RealtimeSession
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve as serve_websockets
from websockets.protocol import State

from echoic.session import VoiceAgent, VoiceSession
from echoic.session.provider import ProviderSession, _read_to_the_end, socket_of
from echoic_loopback.realtime import Drop, Refusal, Says, Script, UserSays
from session.conftest import until

SLOW = {"type": "semantic_vad", "eagerness": "low"}
NOISY = {"sensitivity": "low", "silence_duration_ms": 900}


QUIET = {"type": "server_vad", "silence_duration_ms": 900, "threshold": 0.7, "create_response": False}


@pytest.mark.parametrize(
    ("whose", "own", "sent"),
    [
        ("model", {}, {"type": "server_vad", "create_response": False}),
        ("model", {"openai_turn_detection": SLOW}, {**SLOW, "create_response": False}),
        ("model", {"openai_turn_detection": None}, None),
        *((whose, {"turn_detection": NOISY}, QUIET) for whose in ("model", "agent")),
        *((whose, {"turn_detection": False}, None) for whose in ("model", "agent")),
    ],
)
async def test_turns_are_detected_as_the_models_settings_say(memory, serve, whose, own, sent):
    async with serve("openai", Script(open_ended=True)) as (server, model):
        model.settings = own if whose == "model" else None
        robin = VoiceAgent(name="robin", settings=own if whose == "agent" else None)
        async with VoiceSession(memory, user="ana", agents=[robin], model=model) as session:
            assert session.live.provider.setup.waits_to_be_asked is (sent is not None)
            detection = server.sessions[0].settings["audio"]["input"]["turn_detection"]
    assert detection is None if sent is None else sent.items() <= detection.items()


def test_what_tells_changed_instructions_is_still_there():
    assert inspect.iscoroutinefunction(RealtimeSession._refresh_instructions)


async def test_a_line_that_breaks_is_dialled_anew_and_every_turn_is_kept_once(
    memory, provider, serve, phone, eventually
):
    robin = VoiceAgent(name="robin", instructions="Be Robin.")
    first = Script(UserSays("my dog is called Rex", after_ms=300), Says("a fine name"), Drop())
    second = Script(UserSays("and my cat is Tom", after_ms=2500), Says("another fine name"), open_ended=True)
    states = []

    async def listener(_ctx, event):
        if event.what == "state":
            states.append(event.details["state"])

    async with serve(provider, first, second) as (server, model):
        session = VoiceSession(
            memory, user="ana", agents=[robin], model=model, session_id="c", listener=listener
        )
        async with session, phone(session):
            await eventually(lambda: len(server.sessions) == 2 and server.sessions[1].script_over, 60)
            await eventually(lambda: session.recorder.kept == 4)
    turns = (await memory.user("ana").task("c")).turns
    assert [turn.text for turn in turns] == [
        "my dog is called Rex",
        "a fine name",
        "and my cat is Tom",
        "another fine name",
    ]
    assert states == ["active", "reconnecting", "active"]


async def test_a_line_that_is_gone_for_good_ends_the_call_and_leaves_it_to_be_gone_on_with(
    memory, serve, phone, eventually
):
    robin = VoiceAgent(name="robin", settings={"reconnect": {"max_attempts": 1, "base_delay": 0.01}})
    script = Script(UserSays("my dog is called Rex", after_ms=300), Says("a fine name"), open_ended=True)
    async with serve("openai", script, Script(open_ended=True)) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="lost")
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 2)
            server.next_script = lambda: Script(refuse=Refusal(status=401, message="no"))
            await server.sessions[0].drop()
            assert await session.wait_closed() == "lost"
        del server.next_script
        again = await VoiceSession.resume(
            memory, "lost", user="ana", agents=[VoiceAgent(name="robin")], model=model
        )
        async with again:
            assert again.state == "active"


async def test_who_hangs_up_while_the_call_is_opened_leaves_nothing_that_goes_on(memory):
    leg, opened, reading = leg_of_nobody(), asyncio.Event(), []

    class Session:
        closed = False

        async def close(self):
            self.closed = True

        async def stream_audio(self):
            reading.append(self)
            await asyncio.Event().wait()
            yield b""

    @contextlib.asynccontextmanager
    async def slowly():
        await opened.wait()
        yield Session()

    leg.setup = SimpleNamespace(
        agent=SimpleNamespace(name="robin"),
        tool_guard=SimpleNamespace(stop=lambda: None),
        profile=SimpleNamespace(carries_audio=True),
        memory=None,
        opening=slowly(),
    )
    leg._session, leg.error, leg.ended = None, None, asyncio.Event()
    opening = asyncio.create_task(leg.open())
    await asyncio.sleep(0)
    opening.cancel()
    opened.set()
    await asyncio.wait([opening], timeout=30)
    assert opening.cancelled()
    assert reading == []
    assert leg.error is None


@contextlib.asynccontextmanager
async def opened(server, close_timeout):
    """A session of which only the socket is real."""
    url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with connect(url, close_timeout=close_timeout) as socket:
        yield SimpleNamespace(_connection=SimpleNamespace(_ws=socket))


@pytest.mark.parametrize("read", [True, False])
async def test_a_provider_that_floods_whoever_hangs_up_is_said_goodbye_to(monkeypatch, read):
    """The control does not read what still arrives."""
    if not read:
        monkeypatch.setattr("echoic.session.provider._discard", AsyncMock())

    async def floods(socket):
        for number in range(1000):
            await socket.send(str(number))
        await socket.wait_closed()

    serving = serve_websockets(floods, "127.0.0.1", 0)
    async with serving as server, _read_to_the_end(opened(server, 30 if read else 0.2)) as session:
        socket = socket_of(session)
        await until(lambda: socket.recv_messages.paused)
    assert socket.close_code == (1000 if read else 1006)


async def test_the_socket_of_a_provider_that_says_no_goodbye_is_closed_all_the_same():
    async def hangs(socket):
        socket.transport.pause_reading()
        await over.wait()
        socket.transport.abort()

    async def call(server):
        async with _read_to_the_end(opened(server, close_timeout=60)) as session:
            sockets.append(socket_of(session))

    sockets, over = [], asyncio.Event()
    async with serve_websockets(hangs, "127.0.0.1", 0) as server:
        calling = asyncio.create_task(call(server))
        await until(lambda: sockets and sockets[0].protocol.state is State.CLOSING)
        calling.cancel()
        await asyncio.wait({calling})
        over.set()
        assert calling.cancelled()
        assert sockets[0].transport.is_closing()


async def test_the_socket_of_a_session_is_found(memory, provider, serve):
    async with serve(provider, Script(open_ended=True)) as (_, model):
        agents = [VoiceAgent(name="robin")]
        async with VoiceSession(memory, user="ana", agents=agents, model=model) as session:
            socket = socket_of(session.live.provider.session)
            assert socket.close_code is None
        assert socket.close_code == 1000


class Broken:
    """A session whose background finds the line broken first; its reader dials anew."""

    def __init__(self, message):
        self.closed, self._stream_exhausted, self.rounds, self._message = False, False, 0, message

    async def __aiter__(self):
        self.rounds += 1
        if self.rounds == 1:
            raise RealtimeError(model_name="m", message=self._message)
        self.closed = True
        return
        yield


def leg_of_nobody():
    provider = ProviderSession.__new__(ProviderSession)
    provider._stopping = provider._silent = False
    return provider


async def test_a_line_that_a_sender_finds_broken_first_is_left_to_the_reader_to_dial_anew():
    broken = Broken("Realtime connection failed while sending: no close frame received or sent")
    await leg_of_nobody()._iterate(broken)
    assert broken.rounds == 2


async def test_any_other_failure_of_a_line_ends_it():
    with pytest.raises(RealtimeError, match="refused"):
        await leg_of_nobody()._iterate(Broken("refused"))


async def test_an_iterator_that_something_else_holds_ends_the_session_and_is_not_tried_for_ever(
    memory, serve
):
    async with serve("openai", Script(open_ended=True)) as (_, model):
        agents = [VoiceAgent(name="robin")]
        async with VoiceSession(memory, user="ana", agents=agents, model=model) as session:
            await asyncio.sleep(0)  # the call itself iterates now
            with pytest.raises(UserError, match="already being iterated"):
                await leg_of_nobody()._iterate(session.live.provider.session)
