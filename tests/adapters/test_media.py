"""A call as audio: a voice model behind the real client and protocol, Twilio's side played frame by frame."""

from __future__ import annotations

import asyncio
import base64
import json
import re

import numpy as np
import pytest
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from echoic.adapters.audio import SILENCE, Resampler, mulaw_decode, pcm_of
from echoic.adapters.twilio import Pace
from echoic.testing.openai_realtime import OpenAIRealtimeServer
from echoic.testing.realtime import Calls, Says, Script, ToolCall, UserSays, speech, words_heard

FRAME = base64.b64encode(SILENCE * 160).decode()


class Stream:
    """Twilio's end of a media stream: sends silence, plays what comes at the speed of sound, echoes marks."""

    def __init__(self, socket, call):
        self.socket, self.call = socket, call
        self.played = b""
        self.cleared = 0
        self._queue = []
        self._news = asyncio.Event()

    async def run(self):
        await self.send("connected", protocol="Call")
        await self.send("start", start={"streamSid": "MZ1", "callSid": self.call.sid})
        await asyncio.gather(self.speak(), self.receive(), self.play())

    async def send(self, event, **fields):
        await self.socket.send_str(json.dumps({"event": event, "streamSid": "MZ1", **fields}))

    async def speak(self):
        while True:
            await self.send("media", media={"payload": FRAME})
            await asyncio.sleep(0.02)

    async def receive(self):
        async for received in self.socket:
            message = json.loads(received.data)
            if message["event"] == "clear":
                self.cleared += 1
                marks = [m for m in self._queue if m["event"] == "mark"]
                self._queue = []
                for mark in marks:  # as Twilio does
                    await self.send("mark", mark=mark["mark"])
            else:
                self._queue.append(message)
            self._news.set()

    async def play(self):
        while True:
            if not self._queue:
                self._news.clear()
                await self._news.wait()
                continue
            message = self._queue.pop(0)
            if message["event"] == "media":
                audio = base64.b64decode(message["media"]["payload"])
                self.played += audio
                await asyncio.sleep(len(audio) / 8000)
            else:
                await self.send("mark", mark=message["mark"])


@pytest.fixture
def stream(line):
    """A call whose audio goes to a voice model that plays `steps`; ends when `until` holds."""

    async def run(steps, until, **settings):
        async with OpenAIRealtimeServer(Script(*steps, open_ended=True)) as server:
            phone = await line(lambda _said, _given: "unused", channel="media", **settings)
            provider = OpenAIProvider(base_url=server.base_url, api_key="none")
            phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
            call = await phone.caller()
            status, text = await call.post("/phone/voice", {"CallSid": call.sid, "From": "+15550100001"})
            assert status == 200
            url = re.search(r'url="([^"]+)"', text)[1]
            signature = call._validator.compute_signature(url, {})
            async with call._http.ws_connect(url, headers={"X-Twilio-Signature": signature}) as socket:
                stream = Stream(socket, call)
                running = asyncio.create_task(stream.run())
                async with asyncio.timeout(15):
                    while not until(stream, server):
                        assert not running.done() or running.result()
                        await asyncio.sleep(0.02)
                await stream.send("stop")
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            await call.hang_up()
            return phone, call, stream, server.sessions[0]

    return run


def heard_words(stream, text):
    pcm = pcm_of(Resampler(8_000, 24_000)(mulaw_decode(stream.played)))
    return "".join(speech(text).words[n].text for n in words_heard(pcm, speech(text))).strip()


async def test_what_the_model_says_is_heard_and_what_the_caller_says_is_kept(stream):
    said = "hello ana how are you"
    phone, call, line_, session = await stream(
        [UserSays("my name is Ana", after_ms=200), Says(said)],
        lambda stream, _server: len(stream.played) > 8000 * speech(said).duration_ms / 1000 * 0.98,
        pace=Pace(),
    )
    assert heard_words(line_, said) == said
    assert len(session.input_audio) > 0
    task = await phone.turns(call)
    assert [(turn.speaker, turn.text) for turn in task.turns][:2] == [
        ("user", "my name is Ana"),
        ("agent", said),
    ]
    assert task.conversation.status in {"completed", "distilled"}


async def test_cutting_in_takes_back_what_was_not_played_and_nobody_believes_it_was_said(stream):
    said = "your train leaves at nine from platform four and the secret word is zanzibar"
    phone, call, line_, session = await stream(
        [
            UserSays("when is my train", after_ms=200),
            Says(said, pace=1.0).at(1500, UserSays("thank you", after_ms=0)),
            Says("bye"),
        ],
        lambda stream, server: any(i.truncated_ms for s in server.sessions for i in s.conversation),
        pace=Pace(),
    )
    cut = next(item for item in session.conversation if item.truncated_ms is not None)
    assert abs(cut.truncated_ms - len(line_.played) / 8) < 300, "cut where playing stopped"
    assert "zanzibar" not in str(await phone.memory().export())
    turns = (await phone.turns(call)).turns
    agent = next(turn for turn in turns if turn.speaker == "agent")
    assert agent.text
    assert said.startswith(agent.text)


async def test_a_voice_model_has_the_memory_of_the_caller_and_its_tools(stream):
    calls = Calls(ToolCall("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"}))
    phone, _, _, session = await stream(
        [UserSays("an aisle seat please", after_ms=200), calls, Says("noted")],
        lambda stream, _server: len(stream.played) > 1200,
    )
    assert (await phone.memory().get("seat")).text == "aisle"
    told = next(e.body["session"] for e in session.record.received("session.update"))
    assert "recall_conversation" in {tool["name"] for tool in told["tools"]}


async def test_a_stream_that_is_not_of_this_call_is_closed(line):
    phone = await line(lambda _said, _given: "unused", channel="media")
    call = await phone.caller()
    _, text = await call.post("/phone/voice", {"CallSid": call.sid, "From": "+15550100001"})
    url = re.search(r'url="([^"]+)"', text)[1]
    signature = call._validator.compute_signature(url, {})
    async with call._http.ws_connect(url, headers={"X-Twilio-Signature": signature}) as socket:
        await socket.send_str(json.dumps({"event": "start", "start": {"streamSid": "MZ", "callSid": "CA"}}))
        assert (await socket.receive(timeout=5)).data == 1008
    assert np.array_equal(mulaw_decode(SILENCE), [0])
