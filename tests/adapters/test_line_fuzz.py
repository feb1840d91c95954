"""Whatever a line sends, its socket goes on or ends as it should, and the next caller is answered."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import socket
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
import scale
from adapters.conftest import AUTH_TOKEN, SALT
from echoic.adapters.twilio import Pace, Phone, PhoneSettings, phone_app, uvicorn_options
from echoic.adapters.twilio.relay import Relay
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import LoopbackFailure, Says, Script, UserSays
from echoic_loopback.twilio import CallFailed, SimulatedCall

pytestmark = pytest.mark.examples
WORDS = st.text(max_size=20) | st.sampled_from(
    ["hello there", "what is my pet called", "forget my address", "", "#", "1", "\0", "\ud83d", "a" * 5000]
)
ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(WORDS, WORDS, max_size=2)
)
FIELDS = {
    "prompt": ["voicePrompt", "lang", "last"],
    "interrupt": ["utteranceUntilInterrupt", "durationUntilInterruptMs"],
    "dtmf": ["digit"],
    "info": ["name", "value"],
    "error": ["description"],
    "setup": ["callSid", "sessionId"],
}
KINDS = st.sampled_from(sorted(FIELDS))


def message_of(kind: str) -> st.SearchStrategy[str]:
    """A message of a kind, whose fields may be anything."""
    named = {name: st.one_of(WORDS, WORDS, st.booleans(), ODD) for name in FIELDS[kind]}
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=named).map(json.dumps)


BROKEN = st.one_of(
    ODD.map(json.dumps), st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.just("[" * 4000)
)


AUDIO = st.one_of(
    st.binary(max_size=400).map(lambda sound: base64.b64encode(sound).decode()),
    st.sampled_from(["", "=", "a", "////", "\0"]),
    WORDS,
)
MARKS = (
    st.sampled_from(["0:0", "0:160", "1:99999999", "0:" + "9" * 5000, "0:\u0663", "0:-1", ":", "0"]) | WORDS
)
EVENTS = {
    "media": {"media": st.fixed_dictionaries({}, optional={"payload": AUDIO | ODD, "track": WORDS}) | ODD},
    "mark": {"mark": st.fixed_dictionaries({}, optional={"name": MARKS | ODD}) | ODD},
    "dtmf": {
        "dtmf": st.fixed_dictionaries({}, optional={"digit": st.sampled_from("0123456789#*") | ODD}) | ODD
    },
    "start": {"start": st.dictionaries(WORDS, WORDS, max_size=2) | ODD},
    "clear": {},
    "stop": {"stop": ODD},
}


def event_of(name: str) -> st.SearchStrategy[str]:
    """A message of a media stream, whose fields may be anything."""
    return st.fixed_dictionaries({"event": st.just(name)}, optional=EVENTS[name]).map(json.dumps)


class Line:
    """A phone behind a real server, in a loop that runs while it is asked something."""

    voice: OpenAIRealtimeServer | None = None

    def __init__(self, folder: Path, channel: str = "relay") -> None:
        self.channel = channel
        self.runner = asyncio.Runner()
        self.unexpected: list[str] = []
        self.url = self.run(self._start(folder))

    def run(self, work: Awaitable[Any]) -> Any:
        async def within() -> Any:
            return await asyncio.wait_for(work, 30)

        return self.runner.run(within())

    async def _start(self, folder: Path) -> str:
        async def model(_messages: Any, _info: Any) -> Any:
            yield "Yes, I am here."

        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: self.unexpected.append(str(context.get("exception") or context["message"]))
        )
        self.service = await echoic.open(f"sqlite:///{folder}/a.db", embedder="lexical").open()
        pace = Pace(characters_per_s=1e9, reconnect_s=0.5)
        given = PhoneSettings(auth_token=AUTH_TOKEN, salt=SALT, channel=self.channel, pace=pace)
        phone = Phone(self.service, Agent(FunctionModel(stream_function=model), name="robin"), given)
        if self.channel == "media":
            script = Script(UserSays("are you there", after_ms=40), Says("yes"), open_ended=True)
            self.voice = await OpenAIRealtimeServer(script).__aenter__()
            provider = OpenAIProvider(base_url=self.voice.base_url, api_key="none")
            phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        listening = socket.socket(proto=socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        self.server = uvicorn.Server(uvicorn.Config(phone_app(phone), **uvicorn_options()))
        self.serving = asyncio.create_task(self.server.serve(sockets=[listening]))
        while not self.server.started:
            await asyncio.sleep(0.01)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def close(self) -> None:
        async def stop() -> None:
            self.server.should_exit = True
            await self.serving
            await self.service.aclose()
            if self.voice is not None:
                with contextlib.suppress(LoopbackFailure):  # calls that ended in the middle of its script
                    await self.voice.__aexit__(None, None, None)

        self.run(stop())
        self.runner.close()


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    made = Line(tmp_path_factory.mktemp("line"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    made = Line(tmp_path_factory.mktemp("media"), "media")
    yield made
    made.close()


def streaming(line: Line) -> type[RuleBasedStateMachine]:
    """Callers whose media stream says anything, in any order, between frames of silence."""

    class Callers(RuleBasedStateMachine):
        @initialize()
        def dial(self) -> None:
            self.call = SimulatedCall(line.url, AUTH_TOKEN)
            line.run(self.call.__aenter__())
            line.run(self.call.dial())

        @rule(message=st.sampled_from(sorted(EVENTS)).flatmap(event_of) | BROKEN | st.binary(max_size=20))
        def say(self, message: str | bytes) -> None:
            async def send() -> None:
                stream = self.call.stream
                assert stream is not None
                with contextlib.suppress(aiohttp.ClientError, ConnectionError, RuntimeError):
                    if isinstance(message, bytes):
                        await stream._socket.send_bytes(message)
                    else:
                        await stream._socket.send_str(message)
                await asyncio.sleep(0.02)

            line.run(send())

        def teardown(self) -> None:
            if hasattr(self, "call"):
                with contextlib.suppress(CallFailed):
                    line.run(self.call.hang_up())
                line.run(self.call.__aexit__())
            line.run(heard(line.url))
            assert not line.unexpected, line.unexpected

    return Callers


async def heard(url: str) -> None:
    async with SimulatedCall(url, AUTH_TOKEN, number="+15550100002") as call:
        await call.dial()
        assert call.stream is not None
        assert await call.stream.listen(pause_s=0.1), "the next caller hears an answer"
        await call.hang_up()


def machine(line: Line, kinds: st.SearchStrategy[str] = KINDS) -> type[RuleBasedStateMachine]:
    """Callers whose line says anything of these kinds, in any order."""

    class Callers(RuleBasedStateMachine):
        @initialize()
        def dial(self) -> None:
            self.call = SimulatedCall(line.url, AUTH_TOKEN)
            line.run(self.call.__aenter__())
            line.run(self.call.dial())

        def send(self, message: str | bytes) -> None:
            async def send() -> None:
                with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                    if isinstance(message, bytes):
                        await self.call._socket.send_bytes(message)
                    else:
                        await self.call._socket.send_str(message)
                await asyncio.sleep(0.005)

            line.run(send())

        @rule(message=kinds.flatmap(message_of))
        def say(self, message: str) -> None:
            self.send(message)

        @rule(message=BROKEN | st.binary(max_size=20))
        def babble(self, message: str | bytes) -> None:
            self.send(message)
            self.drop()  # what is no message ends a socket, and the line connects again

        @rule()
        def drop(self) -> None:
            with contextlib.suppress(CallFailed):
                line.run(self.call.drop())
            if self.call._socket is None:  # the call is over
                line.run(self.call.__aexit__())
                self.dial()

        def teardown(self) -> None:
            if hasattr(self, "call"):
                with contextlib.suppress(CallFailed):
                    line.run(self.call.hang_up())
                line.run(self.call.__aexit__())
            line.run(answered(line.url))
            assert not line.unexpected, line.unexpected

    return Callers


async def answered(url: str) -> None:
    async with SimulatedCall(url, AUTH_TOKEN, number="+15550100002") as call:
        await call.dial()
        assert "Yes, I am here." in await call.say("Are you there?")
        await call.hang_up()


@contextlib.contextmanager
def errors(line: Line) -> Iterator[None]:
    """Errors that a server logs count as unexpected."""

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:
                line.unexpected.append(f"{record.name}: {record.exc_info[1]!r}")

    handler, server = Noted(logging.ERROR), logging.getLogger("uvicorn.error")
    level = server.level
    server.setLevel(logging.ERROR)  # another server of this process may have told it to be silent
    logging.getLogger().addHandler(handler)
    server.addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        server.removeHandler(handler)
        server.setLevel(level)
        line.unexpected.clear()


def lived_through(
    line: Line,
    examples: int,
    phases: Sequence[Phase] = tuple(Phase),
    kinds: st.SearchStrategy[str] = KINDS,
) -> None:
    how = settings(
        max_examples=examples,
        phases=phases,
        stateful_step_count=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    callers = streaming(line) if line.channel == "media" else machine(line, kinds)
    with errors(line):
        run_state_machine_as_test(seed(scale.SEED)(callers), settings=how)


def test_whatever_a_media_stream_says_the_next_caller_hears_an_answer(media: Line) -> None:
    lived_through(media, scale.many(scale.many(64), least=2))


def test_a_mark_of_thousands_of_digits_ends_no_stream(media: Line) -> None:
    async def call() -> bool:
        async with SimulatedCall(media.url, AUTH_TOKEN) as caller:
            await caller.dial()
            assert caller.stream is not None
            await caller.stream._socket.send_str(
                json.dumps({"event": "mark", "mark": {"name": "0:" + "9" * 5000}})
            )
            answered = bool(await caller.stream.listen(pause_s=0.1))
            await caller.hang_up()
            return answered

    with errors(media):
        assert media.run(call())
        assert not media.unexpected


def test_whatever_a_line_says_the_next_caller_is_answered_and_nothing_breaks(line: Line) -> None:
    lived_through(line, scale.many(scale.many(64), least=2))


def test_a_planted_fault_in_how_a_line_is_read_is_found(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Relay._prompt

    async def bare(self: Relay, message: dict[str, Any]) -> None:
        message["voicePrompt"].strip()
        await real(self, message)

    monkeypatch.setattr(Relay, "_prompt", bare)
    with pytest.raises((AssertionError, ExceptionGroup, CallFailed)):
        # of six kinds of message one is read wrongly: others would make it a matter of chance
        lived_through(line, 60, [Phase.generate], st.just("prompt"))
