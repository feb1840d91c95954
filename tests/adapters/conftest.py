from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

import echoic
from echoic.adapters.twilio import Pace, Phone, PhoneSettings, phone_app, uvicorn_options
from echoic.prompt.block import is_memory
from echoic_loopback.twilio import SimulatedCall

AUTH_TOKEN = "of the account of these tests"
SALT = "of these tests, and long enough"


class Script:
    """A model that follows a script, behind PydanticAI's own stack.

    `answer` is a function from what the caller said and what tools gave since then, to what comes next: text,
    tool calls [(name, arguments)], both as (text, calls), or an event to wait for first as (event, text).
    """

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.sent = []

    @property
    def model(self):
        return FunctionModel(stream_function=self._stream)

    async def _stream(self, messages, info):
        at, said = next(
            (len(messages) - n, part.content)
            for n, message in enumerate(reversed(messages), 1)
            if isinstance(message, ModelRequest)
            for part in reversed(message.parts)
            # what memory tells is a prompt, too
            if isinstance(part, UserPromptPart) and not is_memory(part.content)
        )
        given = [
            json.loads(part.model_response_str())
            for message in messages[at:]
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        self.requests.append(messages)
        tools = [f"{tool.name}: {tool.description}" for tool in info.function_tools]
        self.sent.append(f"{info.instructions}\n{tools}\n{messages!r}")
        step = self.answer(said, given)
        if isinstance(step, tuple) and isinstance(step[0], asyncio.Event):
            await step[0].wait()
            step = step[1]
        text, calls = step if isinstance(step, tuple) else (step, []) if isinstance(step, str) else ("", step)
        words = text.split()
        together = len(words) // 200 + 1  # a very long text in longer pieces
        for at in range(0, len(words), together):
            yield f"{' '.join(words[at : at + together])} "
            await asyncio.sleep(0)
        for n, (name, arguments) in enumerate(calls):
            yield {n: DeltaToolCall(name=name, json_args=json.dumps(arguments))}


class Line:
    """A phone behind a real server, and callers of it."""

    def __init__(self, phone, service, script, url, stack):
        self.phone, self.service, self.script, self.url = phone, service, script, url
        self._stack = stack

    async def caller(self, number="+15550100001", **more):
        return await self._stack.enter_async_context(
            SimulatedCall(self.url, AUTH_TOKEN, number=number, **more)
        )

    async def call(self, number="+15550100001", **more):
        """A call that was answered."""
        caller = await self.caller(number, **more)
        await caller.dial()
        return caller

    def memory(self, number="+15550100001"):
        return self.service.user(self.phone.callers.line_of(number))

    def turns(self, call, number="+15550100001"):
        return self.memory(number).task(f"call:{call.sid}")


@pytest.fixture
async def line(tmp_path):
    """Starts a phone that answers by a script, as asked."""
    async with lines(tmp_path) as start:
        yield start


@asynccontextmanager
async def lines(tmp_path):
    """`line` where no fixture can be asked for."""
    async with AsyncExitStack() as stack:

        async def start(
            answer, *, store=f"sqlite:///{tmp_path}/echoic.db", service=None, audit=False, **settings
        ):
            if service is None:
                service = await stack.enter_async_context(echoic.open(store, embedder="lexical", audit=audit))
            script = Script(answer)
            # simulated speech takes no time, and a busy machine as much as there is to answer in
            at_once = Pace(characters_per_s=1e9, answer_within_s=1.5)
            given = {"channel": "gather", "auth_token": AUTH_TOKEN, "salt": SALT, "pace": at_once, **settings}
            phone = Phone(service, Agent(script.model, name="robin"), PhoneSettings(**given))
            listening = stack.enter_context(socket.socket(proto=socket.IPPROTO_TCP))
            listening.bind(("127.0.0.1", 0))
            server = uvicorn.Server(uvicorn.Config(phone_app(phone), **uvicorn_options()))
            running = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.01)

            async def stop():
                server.should_exit = True
                await running

            stack.push_async_callback(stop)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            return Line(phone, service, script, url, stack)

        yield start
