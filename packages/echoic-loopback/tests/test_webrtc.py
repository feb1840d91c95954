"""A call with media: a real WebRTC peer, and a real browser with a fake microphone."""

from __future__ import annotations

import asyncio
import json
import shutil
import wave
from fractions import Fraction

import pytest

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
from loopback_agents import an_agent, openai_model, said, sdk, until_turns

aiortc = pytest.importorskip("aiortc", reason="media for calls needs aiortc")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
TEXT = "your dog is called Rex"
WHISPER = {"input": {"transcription": {"model": "whisper-1"}}}
SESSION = {"type": "realtime", "model": "gpt-realtime", "audio": WHISPER}


class Caller:
    """A caller with aiortc: plays PCM16 at 24 kHz, keeps what is played to it, and what its data channel says."""

    def __init__(self, pcm):
        from aiortc import RTCConfiguration, RTCPeerConnection

        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.heard = bytearray()
        self.events = []
        self.peer.addTrack(microphone(pcm))
        self.channel = self.peer.createDataChannel("oai-events")
        self.channel.on("message", lambda message: self.events.append(json.loads(message)))
        self.peer.on("track", lambda track: setattr(self, "task", asyncio.ensure_future(self.listen(track))))

    async def listen(self, track):
        from av import AudioResampler

        resampler = AudioResampler(format="s16", layout="mono", rate=24_000)
        while True:
            for frame in resampler.resample(await track.recv()):
                self.heard += frame.to_ndarray().astype("<i2").tobytes()

    async def dial(self, server, secret):
        import httpx
        from aiortc import RTCSessionDescription

        await self.peer.setLocalDescription(await self.peer.createOffer())
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/sdp"}
        async with httpx.AsyncClient() as client:
            url = f"{server.base_url}/realtime/calls"
            answer = await client.post(url, content=self.peer.localDescription.sdp, headers=headers)
        await self.peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        return answer.headers["location"].rpartition("/")[2]

    async def close(self):
        self.task.cancel()
        await self.peer.close()

    async def until(self, kind):
        async with asyncio.timeout(15):
            while kind not in [event["type"] for event in self.events]:
                await asyncio.sleep(0.02)


def microphone(pcm):
    from aiortc.mediastreams import AudioStreamTrack
    from av import AudioFrame

    class Microphone(AudioStreamTrack):
        at = 0

        async def recv(self):
            await asyncio.sleep(0.018)
            chunk = pcm[self.at * 960 : self.at * 960 + 960].ljust(960, b"\0")
            frame = AudioFrame(format="s16", layout="mono", samples=480)
            frame.planes[0].update(chunk)
            frame.sample_rate, frame.time_base, frame.pts = 24_000, Fraction(1, 24_000), self.at * 480
            self.at += 1
            return frame

    return Microphone()


def media():
    from echoic_loopback.openai_realtime.webrtc import Media

    return Media()


async def test_words_go_through_a_real_peer_both_ways_with_a_sideband_that_runs_tools(openai_server):
    asked = speech("what is my dog called", rate_hz=24_000)
    script = Script(
        UserSays(asked.text, by_voice=True), Calls(ToolCall("recall", {"query": "dog"})), Says(TEXT), Pause(2)
    )
    pcm = silence(600, 24_000) + asked.pcm
    async with openai_server(script, media=media(), patience_s=20) as server:
        secret = await sdk(server).realtime.client_secrets.create(session=SESSION)
        caller = Caller(pcm)
        call_id = await caller.dial(server, secret.value)
        agent = an_agent()
        from pydantic_ai.realtime import WebRTCSession

        provider_session = WebRTCSession("openai", session_id=call_id)
        async with agent.realtime(openai_model(server)).session(provider_session=provider_session) as session:
            await until_turns(session)
            story = said(session.all_messages())
        await caller.until("output_audio_buffer.stopped")
        await asyncio.sleep(0.5)
        live = server.calls[call_id]
        item = next(item for item in live.conversation if item.wire.get("role") == "user")
        heard_by_server = words_heard(bytes(item.audio), asked)
        heard_by_caller = words_heard(bytes(caller.heard), speech(TEXT))
        await sdk(server).realtime.calls.hangup(call_id)
        await caller.close()
    assert story == [
        ("user", "what is my dog called"),
        ("call", "dog"),
        ("return", "fact about dog"),
        ("assistant", TEXT),
    ]
    assert heard_by_server == [0, 1, 2, 3, 4]
    assert heard_by_caller == [0, 1, 2, 3, 4]
    assert "session.created" in [event["type"] for event in caller.events]
    assert "response.output_audio.delta" not in [event["type"] for event in caller.events]


async def test_a_caller_who_leaves_ends_the_call(openai_server):
    async with openai_server(Script(), media=media()) as server:
        secret = await sdk(server).realtime.client_secrets.create(session=SESSION)
        caller = Caller(b"")
        call_id = await caller.dial(server, secret.value)
        await caller.until("session.created")
        live = server.calls[call_id]
        await caller.close()
        await asyncio.wait_for(live.ended.wait(), 15)


PAGE = """async ([base, secret]) => {
  const pc = new RTCPeerConnection();
  const seen = [];
  window.seen = seen;
  const audio = new Audio();
  pc.ontrack = e => { audio.srcObject = new MediaStream([e.track]); audio.play(); };
  const mic = await navigator.mediaDevices.getUserMedia({audio: {
    echoCancellation: false, noiseSuppression: false, autoGainControl: false}});
  pc.addTrack(mic.getTracks()[0], mic);
  const channel = pc.createDataChannel('oai-events');
  channel.onmessage = e => seen.push(JSON.parse(e.data).type);
  await pc.setLocalDescription(await pc.createOffer());
  const answer = await fetch(base + '/realtime/calls', {method: 'POST', body: pc.localDescription.sdp,
    headers: {'Content-Type': 'application/sdp', Authorization: 'Bearer ' + secret}});
  await pc.setRemoteDescription({type: 'answer', sdp: await answer.text()});
  for (let i = 0; i < 300 && !seen.includes('output_audio_buffer.stopped'); i++)
    await new Promise(r => setTimeout(r, 50));
  let received = 0;
  (await pc.getStats()).forEach(s => { if (s.type === 'inbound-rtp') received = s.bytesReceived; });
  return {location: answer.headers.get('location'), seen, received};
}"""


@pytest.mark.browser
async def test_a_browser_calls_with_its_microphone_and_is_answered(openai_server, tmp_path):
    from playwright.async_api import async_playwright

    if CHROMIUM is None:
        pytest.skip("no chromium and no google-chrome on this machine")
    asked = speech("what is my dog called", rate_hz=48_000)
    with wave.open(str(tmp_path / "mic.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(silence(2000, 48_000) + asked.pcm + silence(4000, 48_000))
    script = Script(UserSays(asked.text, by_voice=True), Says(TEXT), open_ended=True)
    flags = [
        "--no-sandbox",
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={tmp_path}/mic.wav%noloop",
        "--autoplay-policy=no-user-gesture-required",
        "--allow-loopback-in-peer-connection",
    ]
    async with (
        openai_server(script, media=media(), patience_s=30) as server,
        async_playwright() as playwright,
    ):
        secret = await sdk(server).realtime.client_secrets.create(session=SESSION)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{server.port}/")
        result = await page.evaluate(PAGE, [server.base_url, secret.value])
        (live,) = server.sessions
        item = next(item for item in live.conversation if item.wire.get("role") == "user")
        heard = words_heard(bytes(item.audio), speech(asked.text))
        await browser.close()
    assert heard == [0, 1, 2, 3, 4]
    assert result["location"].startswith("/v1/realtime/calls/rtc_")
    assert result["received"] > 1000
    assert {"session.created", "input_audio_buffer.speech_started", "response.done"} <= set(result["seen"])
