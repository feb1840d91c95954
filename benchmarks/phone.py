"""Calls at once: is every webhook answered in time, and does a token come when the model has it?

    python -m benchmarks.phone [--calls 50] [--turns 6] [--slow 30] [--streams 10] [--only PART]

The server runs in a process of its own, as it would: uvicorn, SQLite, a scripted model behind PydanticAI.
Callers run in another, over real HTTP and WebSockets on this machine, with signatures. All of them dial
within a second, and then talk without a pause, which is harder than people are.

`webhook`: from the request to the whole answer. It includes the 0.8 s a webhook may wait for the model.
`token`: from the moment the model has a token to its arrival at the caller. Every caller says words of their
own; a turn is lost or doubled where reply or store do not hold exactly those, once, in order.
`own`: what of a webhook is the server's own doing: its time less what it waited for the model, which is 0.8 s
at most. CPU is the server process's, for each turn, greetings and ends of calls included.
`slow`: a model that takes so many seconds, heard at the speed of speech: the slowest webhook, and the longest
silence.
`interim`: a caller's words come one by one, 15 characters a second, and are searched for meanwhile: how often
the recall was there when the turn ended, among 1,000 memories.
`media`: audio both ways at once, the stand-in for a voice provider in a third process: from the end of what
was said to the first sound of the answer, and callers who did not hear exactly the words of theirs.
`caching`: see `benchmarks.phone_caching`: a call that recalls a long one, then goes on for ten turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
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
from benchmarks import machine, phone_caching
from echoic import Turn
from echoic.adapters.twilio import Pace, Phone, PhoneSettings, phone_app, uvicorn_options
from echoic.adapters.twilio.media import Resampler, pcm_of, samples_of
from echoic_loopback.twilio import SimulatedCall

AUTH_TOKEN = "of the account of this benchmark"
SALT = "of this benchmark, and long enough"
THINKS_S = 0.3
TOKENS = 20
TOKEN_S = 0.02
SPEECH = 15.0
ASKED, ANSWERED = "where does the boat lie", "the boat lies in the harbour of boston"


async def model(messages: Any, _info: Any) -> AsyncIterator[str]:
    """Repeats what was said, then tokens that say when they were made."""
    said = next(
        part.content
        for message in reversed(messages)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart) and not part.content.startswith(("<system>", "<memory"))
    )
    if "chest" in said:
        yield "Plums."
        return
    await asyncio.sleep(float(said.split()[-1]) if "slowly" in said else THINKS_S)
    yield f"You said {said} "
    for _ in range(TOKENS):
        yield f"@{time.monotonic_ns()} "
        await asyncio.sleep(TOKEN_S)


async def serve(port: int, channel: str, store: str, speech: float) -> None:
    """Run the server until told to stop."""
    async with echoic.open(store, embedder="lexical") as service:
        realtime = None
        if channel == "media":
            from pydantic_ai.realtime import infer_realtime_model

            realtime = infer_realtime_model("openai:gpt-realtime")
        settings = PhoneSettings(
            auth_token=AUTH_TOKEN,
            salt=SALT,
            channel=channel,
            pace=Pace(characters_per_s=speech),
            plain_numbers=True,
        )
        agent = Agent(FunctionModel(stream_function=model), name="echo")
        phone = Phone(service, agent, settings, realtime=realtime)
        await uvicorn.Server(uvicorn.Config(phone_app(phone), port=port, **uvicorn_options())).serve()


class Server:
    """A server in a process of its own."""

    def __init__(self, channel: str, folder: str, speech: float = 1e9, **environment: str) -> None:
        self._environment = {**os.environ, **environment}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = f"sqlite:///{folder}/{channel}-{speech}.db"
        self._words = ["--serve", str(self.port), channel, self.store, str(speech)]

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.phone", *self._words]
        self._process = await asyncio.create_subprocess_exec(*command, env=self._environment)
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return self

    @property
    def cpu_s(self) -> float:
        """What the process has used so far; Linux only."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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
        before_s = server.cpu_s
        ran = await asyncio.gather(*(one_call(server, number, turns) for number in range(count)))
        cpu_s = server.cpu_s - before_s
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
        "own": machine.percentiles([max(0.0, hook.took_s - waited(hook.path)) for hook in hooks]),
        "cpu_ms_a_turn": round(1000 * cpu_s / (count * turns), 1),
        **({"token": machine.percentiles(delays)} if delays else {}),
        "replies_wrong": sum(wrong for _, wrong in ran),
        "turns_lost_or_doubled": await kept(server, calls, turns),
    }


def waited(path: str) -> float:
    """How long a webhook may have waited for the model, as it is set."""
    return Pace().answer_within_s if path.startswith(("/phone/turn", "/phone/poll")) else 0.0


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


async def interim(turns: int, folder: str) -> dict[str, Any]:
    """One caller whose words are searched for while they come."""
    async with Server("relay", folder, SPEECH) as server:
        async with echoic.open(server.store, embedder="lexical") as service:
            user = service.user("phone:+15550100001")
            texts = [
                f"In room {n} of house {n % 40} there is a chest with {n} plums in it." for n in range(1000)
            ]
            await asyncio.gather(*(user.remember(text) for text in texts))
        async with SimulatedCall(
            server.url, AUTH_TOKEN, interim=True, characters_per_s=SPEECH, number="+15550100001"
        ) as call:
            await call.dial()
            for turn in range(turns):
                await call.say(f"what is in the chest in room {turn * 7} of the house")
            await call.hang_up()
    took = call.figures or {}
    return {"turns": turns, "recalls": took["recalls"], "recalls_ready": took["recalls_ready"]}


async def one_stream(server: Server, number: int) -> tuple[SimulatedCall, bool]:
    """A call as audio; whether the caller heard exactly the answer."""
    from echoic_loopback.realtime import speech, words_heard

    asked, answered = speech(ASKED), speech(ANSWERED)
    await asyncio.sleep(number / 10)
    async with SimulatedCall(server.url, AUTH_TOKEN, number=f"+1555{number:07}") as call:
        await call.dial()
        heard = await call.say_aloud(samples_of(asked.pcm), 24_000)
        await call.hang_up()
    assert call.stream is not None
    pcm = pcm_of(Resampler(8_000, 24_000)(call.stream.heard))
    words = "".join(answered.words[n].text for n in words_heard(pcm, answered)).strip()
    return call, bool(heard) and words == ANSWERED


async def provide(count: int) -> None:
    """Run the stand-in for a voice provider until told to stop: every caller is answered alike."""
    from echoic_loopback.openai_realtime import OpenAIRealtimeServer
    from echoic_loopback.realtime import Says, Script, UserSays

    script = Script(UserSays(ASKED, after_ms=300), Says(ANSWERED, pace=0.5), open_ended=True)
    async with OpenAIRealtimeServer(*[script] * count, keep_audio=False, keep_events=100) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


async def media(count: int, folder: str) -> dict[str, Any]:
    """`count` calls as audio at once."""
    words = [sys.executable, "-m", "benchmarks.phone", "--provide", str(count)]
    voice = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert voice.stdout is not None
    url = (await voice.stdout.readline()).decode().strip()
    provider = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}
    try:
        async with Server("media", folder, SPEECH, **provider) as server:
            before_s, begun = server.cpu_s, time.monotonic()
            ran = await asyncio.gather(*(one_stream(server, number) for number in range(count)))
            cpu_s, took_s = server.cpu_s - before_s, time.monotonic() - begun
    finally:
        voice.terminate()
        await voice.wait()
    delays = [delay for call, _ in ran if call.stream for delay in call.stream.delays_s]
    return {
        "calls": count,
        "first_sound": machine.percentiles(delays),
        "heard_wrong": sum(not right for _, right in ran),
        "cpu_share_of_a_core": round(cpu_s / took_s, 2),
    }


async def caching(client: str, turns: int, folder: str) -> dict[str, Any]:
    """A call that recalls a long one and goes on, at a provider whose cache is counted."""

    def step(said: list[str], given: list[str]) -> Any:
        if len(said) == 1 and not given:
            return ("recall_conversation", {"key": "dinner menu", "part": 1})
        return f"Answer {len(said)}: it was the duck with plums, and the sauce took its time."

    told: list[Any] = []
    async with (
        phone_caching.serving(step) as provider,
        echoic.open(f"sqlite:///{folder}/{client}.db", embedder="lexical") as service,
    ):
        settings = PhoneSettings(auth_token=AUTH_TOKEN, salt=SALT, plain_numbers=True)
        agent = Agent(getattr(phone_caching, client)(provider), name="echo")
        phone = Phone(service, agent, settings, ended=told.append)
        opened = await service.user("phone:+15550100001").conversation(agent="echo")
        words = [f"course {n}: duck number {n} with plums and a sauce of {n} hours" for n in range(200)]
        await opened.append(*(Turn(speaker="user", text=text) for text in words))
        await opened.store("dinner menu", "A dinner of many courses.")
        call = phone.call("CA" + "0" * 32, number="+15550100001")

        async def out(_text: str) -> None:
            pass

        for turn in range(turns):
            await call.speak(
                "My dinner menu?" if turn == 0 else f"And course {turn}?", turn=str(turn), out=out
            )
        await call.hang_up()
        await phone.aclose()
    return {
        "turns": turns,
        "requests": len(provider.requests),
        "cached_share_of_the_call": round(told[0].cached_share, 3),
        "cached_share_of_later_requests": round(min(provider.shares[2:]), 3),
    }


async def measure(parts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, one after the other."""
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            kind, _, of = part.partition("_")
            if kind == "slow":
                measured[part] = await slow(of, given.slow, folder)
            elif kind == "caching":
                measured[part] = await caching(of, 11, folder)
            elif kind == "interim":
                measured[part] = await interim(10, folder)
            elif kind == "media":
                measured[part] = await media(given.streams, folder)
            else:
                measured[part] = await together(part, given.calls, given.turns, folder)
            print(part, measured[part], flush=True)
    return measured


PARTS = (
    "gather",
    "relay",
    "slow_gather",
    "slow_relay",
    "interim",
    "media",
    "caching_claude",
    "caching_gpt",
)


def main() -> None:
    """Measure and keep the result."""
    if sys.argv[1:2] == ["--serve"]:
        port, channel, store, speech = sys.argv[2:]
        asyncio.run(serve(int(port), channel, store, float(speech)))
        return
    if sys.argv[1:2] == ["--provide"]:
        asyncio.run(provide(int(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--slow", type=float, default=30.0)
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--only", choices=sorted({part.partition("_")[0] for part in PARTS}))
    parser.add_argument("--out", type=Path, help="instead of results/phone.json")
    given = parser.parse_args()
    parts = [part for part in PARTS if given.only in {None, part.partition("_")[0]}]
    measured = asyncio.run(measure(parts, given))
    if given.only and given.out is None:
        return  # a part is no result
    print(machine.save("phone" if given.out is None else str(given.out.with_suffix("")), measured))


if __name__ == "__main__":
    main()
