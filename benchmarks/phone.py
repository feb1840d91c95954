"""Calls at once: is every webhook answered in time, and does a token come when the model has it?

    python -m benchmarks.phone [--calls 50] [--turns 6] [--slow 30]

The server runs in a process of its own, as it would: uvicorn, SQLite, a scripted model behind PydanticAI.
Callers run in another, over real HTTP and WebSockets on this machine, with signatures. All of them dial
within a second, and then talk without a pause, which is harder than people are.

`webhook`: from the request to the whole answer. It includes the 0.8 s a webhook may wait for the model.
`token`: from the moment the model has a token to its arrival at the caller. Every caller says words of their
own; a turn is lost or doubled where reply or store do not hold exactly those, once, in order.
`slow`: a model that takes so many seconds, heard at the speed of speech: the slowest webhook, and the longest
silence.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.function import FunctionModel

import echoic
from benchmarks import machine
from echoic.adapters.twilio import Pace, Phone, PhoneSettings, SimulatedCall, phone_app, uvicorn_options

AUTH_TOKEN = "of the account of this benchmark"
SALT = "of this benchmark, and long enough"
THINKS_S = 0.3
TOKENS = 20
TOKEN_S = 0.02
SPEECH = 15.0


async def model(messages: Any, _info: Any) -> AsyncIterator[str]:
    """Repeats what was said, then tokens that say when they were made."""
    said = next(
        part.content
        for message in reversed(messages)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart) and not part.content.startswith("<system>")
    )
    await asyncio.sleep(float(said.split()[-1]) if "slowly" in said else THINKS_S)
    yield f"You said {said} "
    for _ in range(TOKENS):
        yield f"@{time.monotonic_ns()} "
        await asyncio.sleep(TOKEN_S)


async def serve(port: int, channel: str, store: str, speech: float) -> None:
    """Run the server until told to stop."""
    async with echoic.open(store, embedder="lexical") as service:
        settings = PhoneSettings(
            auth_token=AUTH_TOKEN,
            salt=SALT,
            channel=channel,
            pace=Pace(characters_per_s=speech),
            plain_numbers=True,
        )
        phone = Phone(service, Agent(FunctionModel(stream_function=model), name="echo"), settings)
        await uvicorn.Server(uvicorn.Config(phone_app(phone), port=port, **uvicorn_options())).serve()


class Server:
    """A server in a process of its own."""

    def __init__(self, channel: str, folder: str, speech: float = 1e9) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = f"sqlite:///{folder}/{channel}-{speech}.db"
        self._words = ["--serve", str(self.port), channel, self.store, str(speech)]

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.phone", *self._words]
        self._process = await asyncio.create_subprocess_exec(*command)
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return self

    async def __aexit__(self, *_: object) -> None:
        self._process.terminate()
        await self._process.wait()


async def one_call(server: Server, number: int, turns: int) -> tuple[SimulatedCall, int]:
    """A call with `turns` turns, and how many of them came back wrong."""
    await asyncio.sleep(number / 50)
    wrong = 0
    async with SimulatedCall(server.url, AUTH_TOKEN, number=f"+1555{number:07}") as call:
        await call.dial()
        for turn in range(turns):
            said = f"word {number} of turn {turn}"
            reply = await call.say(said)
            wrong += reply.count(f"You said {said} ") != 1 or reply.count("@") != TOKENS
        await call.hang_up()
    return call, wrong


async def kept(server: Server, calls: list[SimulatedCall], turns: int) -> int:
    """How many turns the store lacks or has twice."""
    wrong = 0
    async with echoic.open(server.store, embedder="lexical") as service:
        for number, call in enumerate(calls):
            task = await service.user(f"phone:+1555{number:07}").task(f"call:{call.sid}")
            said = [turn.text for turn in task.turns if turn.speaker == "user"] if task else []
            expected = [f"word {number} of turn {turn}" for turn in range(turns)]
            wrong += said != expected and sum((Counter(said) - Counter(expected)).values()) + max(
                1, sum((Counter(expected) - Counter(said)).values())
            )
            wrong += (sum(t.speaker == "agent" for t in task.turns) if task else 0) != turns
    return wrong


async def together(channel: str, count: int, turns: int, folder: str) -> dict[str, Any]:
    """`count` calls at once over `channel`."""
    async with Server(channel, folder) as server:
        ran = await asyncio.gather(*(one_call(server, number, turns) for number in range(count)))
    calls = [call for call, _ in ran]
    hooks = [hook for call in calls for hook in call.webhooks]
    delays = [
        at - int(token.strip().removeprefix("@")) / 1e9
        for call in calls
        for at, token in call.tokens
        if token.startswith("@")
    ]
    return {
        "calls": count,
        "turns": count * turns,
        "webhook": machine.percentiles([hook.took_s for hook in hooks]),
        "webhook_slowest_s": round(max(hook.took_s for hook in hooks), 3),
        **({"token": machine.percentiles(delays)} if delays else {}),
        "replies_wrong": sum(wrong for _, wrong in ran),
        "turns_lost_or_doubled": await kept(server, calls, turns),
    }


async def slow(channel: str, seconds: float, folder: str) -> dict[str, Any]:
    """One call whose model takes `seconds`, heard at the speed of speech."""
    async with (
        Server(channel, folder, SPEECH) as server,
        SimulatedCall(server.url, AUTH_TOKEN, characters_per_s=SPEECH) as call,
    ):
        await call.dial()
        asked = time.monotonic()
        reply = await call.say(f"slowly {seconds:g}")
        heard = [(at, len(text) / SPEECH) for at, text in call.tokens if text.strip()]
        heard = heard or [(s.at, s.lasted_s) for s in call.sounds if s.text.strip() and s.at >= asked]
        answered = f"You said slowly {seconds:g}" in reply
        await call.hang_up()
    ends, silences = asked, []
    for at, lasts in heard:
        silences.append(max(0.0, at - ends))
        ends = max(ends, at) + lasts
    return {
        "model_s": seconds,
        "answered": answered,
        "webhook_slowest_s": round(max(hook.took_s for hook in call.webhooks), 3),
        "longest_silence_s": round(max(silences), 2),
        "sounds": len([text for _, text in heard]),
    }


async def measure(count: int, turns: int, seconds: float) -> dict[str, Any]:
    """Everything, one after the other."""
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for channel in ("gather", "relay"):
            measured[channel] = await together(channel, count, turns, folder)
            print(channel, measured[channel], flush=True)
        for channel in ("gather", "relay"):
            measured[f"slow_{channel}"] = await slow(channel, seconds, folder)
            print("slow", channel, measured[f"slow_{channel}"], flush=True)
    return measured


def main() -> None:
    """Measure and keep the result."""
    if sys.argv[1:2] == ["--serve"]:
        port, channel, store, speech = sys.argv[2:]
        asyncio.run(serve(int(port), channel, store, float(speech)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--slow", type=float, default=30.0)
    parser.add_argument("--out", type=Path, help="instead of results/phone.json")
    given = parser.parse_args()
    measured = asyncio.run(measure(given.calls, given.turns, given.slow))
    print(machine.save("phone" if given.out is None else str(given.out.with_suffix("")), measured))


if __name__ == "__main__":
    main()
