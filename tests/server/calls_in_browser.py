"""A provider that is played, a server process that calls it, and a page with a microphone: for tests of calls."""

from __future__ import annotations

import asyncio
import base64
import re
import wave
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from playwright.async_api import expect

import echoic.server
from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, silence, speech
from server.browsing import Process, visiting

SPEED = 3.0
"""How many times as fast as in life speech passes in these calls: in the microphone, the provider, the page."""
SPOKEN = speech("my name is Pavel and I live", rate_hz=48_000, word_ms=round(200 / SPEED))
"""What the microphone hears, again and again. Which words these are to the provider, its script says."""
PAUSE_MS = round(6000 / SPEED)
"""Long enough for a page on a busy machine to mute before the words begin again: they would cut the reply off."""
LINE = Path(echoic.server.__file__).parent / "static" / "voice" / "line.js"
[READY_MS] = re.findall(r"^const READY_MS = ([\d_]+);", LINE.read_text(encoding="utf-8"), re.MULTILINE)
"""After which a page gives up a line that was opened and is not ready: soon, where several tests share a processor."""
CALLED_MS = 120_000
"""How long these pages wait for it instead."""
ON_DEMAND = """{
  const later = window.setTimeout.bind(window);
  window.setTimeout = (what, ms, ...given) => later(what, ms === READY_MS ? CALLED_MS : ms, ...given);
  // nor is a line given up because a server that shares the processor reads nothing for seconds
  Object.defineProperty(WebSocket.prototype, "bufferedAmount", { get: () => 0 });
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  let voice = null;
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    const [device] = (await open(constraints)).getAudioTracks();
    const context = voice?.context ?? new AudioContext({ sampleRate: RATE_HZ });
    voice = context.createMediaStreamDestination();
    const silence = new ConstantSourceNode(context, { offset: 0 });  // or nothing at all is sent between the words
    silence.connect(voice);
    silence.start();
    const [track] = voice.stream.getAudioTracks();
    const stop = track.stop.bind(track);
    track.getSettings = () => device.getSettings();
    track.stop = () => { stop(); device.stop(); };
    return voice.stream;
  };
  window.sayOnce = () => {
    const samples = new Int16Array(Uint8Array.from(atob("PCM"), (letter) => letter.charCodeAt(0)).buffer);
    const buffer = voice.context.createBuffer(1, samples.length, RATE_HZ);
    buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0);
    const source = new AudioBufferSourceNode(voice.context, { buffer });
    source.connect(voice);
    source.start();
  };
}"""
ON_DEMAND = ON_DEMAND.replace("READY_MS", READY_MS).replace("CALLED_MS", str(CALLED_MS))
ON_DEMAND = ON_DEMAND.replace("RATE_HZ", str(SPOKEN.rate_hz)).replace(
    "PCM", base64.b64encode(SPOKEN.pcm).decode()
)
"""In a page: its microphone is opened as it asks for it, and says the words when told to, once."""
MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


def microphone_flags(directory):
    """Of a browser with a microphone that speaks, pauses, and speaks again."""
    path = directory / "microphone.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SPOKEN.rate_hz)
        file.writeframes(SPOKEN.pcm + silence(PAUSE_MS, SPOKEN.rate_hz))
    return [
        *MICROPHONE,
        "--allow-loopback-in-peer-connection",
        f"--use-file-for-fake-audio-capture={path}",
    ]


def calling(browser, process):
    """A page whose microphone is silent until `speak`: words that came again would cut the reply off."""
    return visiting(browser, process, script=ON_DEMAND)


class Called:
    """A provider and the server in front of it."""

    def __init__(self, provider, process):
        self.provider, self.process = provider, process

    @property
    def url(self):
        return self.process.url

    @property
    def calls(self):
        """The provider's sessions, in order."""
        return self.provider.sessions


@asynccontextmanager
async def served(way, directory, *scripts, embedder="lexical", speed=SPEED):
    """A provider that plays `scripts`, call by call, and `echoic serve --voice` that is called through it."""
    async with AsyncExitStack() as stack:
        manner = {"patience_s": 40, "speed": speed}
        if way == "gemini":
            provider = await stack.enter_async_context(GeminiLiveServer(*scripts, **manner))
            words = ("--voice", "google:gemini-3.8-live")
            authority = stack.enter_context(provider.trusted())
            keys = {
                "GOOGLE_API_KEY": "k",
                "GOOGLE_GEMINI_BASE_URL": provider.base_url,
                "SSL_CERT_FILE": str(authority),
            }
        else:
            media = None
            if way == "webrtc":
                from echoic_loopback.openai_realtime.webrtc import Media

                media = Media()
            provider = await stack.enter_async_context(OpenAIRealtimeServer(*scripts, media=media, **manner))
            transport = ("--voice-transport", "webrtc") if way == "webrtc" else ()
            words = ("--voice", "openai:gpt-realtime", *transport)
            keys = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.base_url}
        process = Process(directory, *words, ECHOIC_EMBEDDER=embedder, **keys)
        # the provider answers on this loop, and is not to be kept from it
        await asyncio.to_thread(process.start)
        stack.push_async_callback(asyncio.to_thread, process.stop)
        yield Called(provider, process)


def from_memory(words, key, **manner):
    """The agent says `words`, with what it was given about the caller under `key` in its place."""

    def found(session):
        return re.findall(rf'{key}: "([^"]+)"', str(session.record.received()).replace("\\", ""))

    async def step(session):
        await session.until(lambda: bool(found(session)), f"the caller's {key} among what is remembered")
        await Says(words.format(found(session)[-1]), **manner)(session)

    return step


def state(page):
    """What the page says of the call."""
    return page.locator("#call-state")


def last(page, speaker):
    """The last words of a speaker."""
    return page.locator(f".turn.{speaker}:not(.growing) .words").last


async def call(page):
    """Begin a call, muted: nothing is said before `speak`."""
    await page.get_by_role("button", name="Call", exact=True).click()
    await page.get_by_role("button", name="Mute").click()
    await expect(state(page)).to_have_text(re.compile("Muted|Speaking"), timeout=CALLED_MS)


async def heard_out(page):
    """All that the agent said last was heard."""
    await expect(page.locator(".turn.agent").last).to_have_attribute("data-heard", "all", timeout=30_000)


async def speak(page, words, *, cutting_in=False):
    """Unmute until the provider has understood `words`; once the agent was heard, or right into what it says."""
    if not cutting_in:
        await heard_out(page)
    # muted again by the page itself: a device's pause is shorter than a look from here may take
    await page.evaluate(
        """async (words) => {
          const mute = document.getElementById("mute");
          const said = () => [...document.querySelectorAll(".turn.user:not(.growing) .words")].at(-1)?.innerText;
          const until = performance.now() + 30_000;
          mute.click();
          window.sayOnce?.();
          while (said()?.trim() !== words && performance.now() < until) {
            await new Promise((done) => setTimeout(done, 30));  // each look lays the page out
          }
          mute.click();
        }""",
        words,
    )
    await expect(last(page, "user")).to_have_text(words)


async def hang_up(page):
    await page.get_by_role("button", name="Hang up").click()
    await expect(page.locator("#call")).not_to_be_visible()
    await expect(page.locator("body:not([aria-busy])")).to_be_visible()
