"""The page's sound alone, in a real browser: rates, frames, the ring, and the audio thread that plays it.

No call and no microphone: what is fed in is computed, what comes out is compared with it.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from server.conftest import started

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TOOLS = """
  const tone = (hz, rate, seconds) => Float32Array.from({length: rate * seconds}, (_, n) => Math.sin(2 * Math.PI * hz * n / rate));
  const db = (samples) => {
    const middle = samples.slice(samples.length / 4, samples.length * 3 / 4);
    return 20 * Math.log10(Math.sqrt(2 * middle.reduce((sum, v) => sum + v * v, 0) / middle.length) + 1e-12);
  };
  const ramp = (count, from = 1) => Int16Array.from({length: count}, (_, n) => from + n);
  const pcm = (samples) => Array.from(samples, (v) => Math.round(v * 32768));
  const play = (ring, count, quantum = 128) => {
    const all = [];
    for (let n = 0; n < count; n += quantum) { const out = new Float32Array(quantum); ring.read(out); all.push(...pcm(out)); }
    return all;
  };
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    async with started(f"sqlite:///{folder}/echoic.db") as server:
        page = await browser.new_page()
        await page.goto(f"{server.url}/static/mark.svg")
        yield page
        await page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def run(page):
    """Run a script in the page, with a module of it imported."""

    async def run(module, script, argument=None):
        source = (
            f"async (given) => {{ const parts = await import('/static/voice/{module}');{TOOLS}{script} }}"
        )
        return await page.evaluate(source, argument)

    return run


RATES = [(48_000, 16_000), (44_100, 16_000), (48_000, 24_000), (44_100, 24_000), (16_000, 24_000)]


@pytest.mark.parametrize(("device", "call"), RATES)
async def test_speech_passes_a_change_of_rate_and_what_cannot_be_carried_does_not(run, device, call):
    script = """
      const [from, to] = given;
      const through = (hz) => db(new parts.Resampler(from, to).push(tone(hz, from, 0.5)));
      const limit = Math.min(from, to) / 2;
      const count = new parts.Resampler(from, to).push(tone(440, from, 1)).length;
      const folded = from > to ? [limit * 1.02, limit * 1.2, limit * 1.6].filter((hz) => hz < from / 2).map(through) : [];
      return {count, speech: [300, 1000, 3400, limit * 0.8].map(through), folded};
    """
    found = await run("resampler.js", script, [device, call])
    assert abs(found["count"] - call) <= call // 1000
    assert all(abs(level) < 0.1 for level in found["speech"])
    assert all(level < -70 for level in found["folded"])
    assert found["folded"] or device <= call


async def test_a_rate_that_is_the_devices_own_changes_nothing(run):
    assert await run(
        "resampler.js",
        "const s = tone(440, 16000, 0.1);"
        "return new parts.Resampler(16000, 16000).push(s).every((v, n) => v === s[n]);",
    )


async def test_audio_cut_into_any_pieces_is_resampled_to_the_same_samples(run):
    script = """
      const sound = tone(700, 44100, 0.4);
      const whole = new parts.Resampler(44100, 16000).push(sound);
      return [1, 7, 128, 4410].map((size) => {
        const one = new parts.Resampler(44100, 16000), got = [];
        for (let n = 0; n < sound.length; n += size) got.push(...one.push(sound.subarray(n, n + size)));
        return got.length === whole.length && got.every((v, n) => v === whole[n]);
      });
    """
    assert await run("resampler.js", script) == [True] * 4


async def test_frames_are_20_ms_of_pcm16_and_what_is_too_loud_is_clipped(run):
    script = """
      const frames = new parts.Frames(16000), got = [];
      for (let n = 0; n < 1000; n += 100) frames.push(Float32Array.from({length: 100}, (_, k) => (n + k) / 100 - 2), (f) => got.push(f));
      return got.map((frame) => [frame.length, frame.byteLength, frame[0], frame.at(-1)]);
    """
    got = await run("frames.js", script)
    assert [frame[:2] for frame in got] == [[320, 640]] * 3
    assert got[0][2] == -32767
    assert got[2][3] == 32767


async def test_what_comes_in_pieces_is_played_without_a_gap_and_counted_to_the_sample(run):
    script = """
      const ring = new parts.Ring(24000);
      const sound = ramp(9600);
      for (let n = 0; n < sound.length; n += 977) ring.push(sound.subarray(n, n + 977));
      const heard = play(ring, 12800);
      const first = heard.indexOf(1);
      return {same: sound.every((v, n) => heard[first + n] === v), rest: heard.slice(first + 9600).every((v) => v === 0),
        played: ring.played, starts: ring.starts, waiting: ring.waiting, sounding: ring.sounding};
    """
    found = await run("ring.js", script)
    assert found == {
        "same": True,
        "rest": True,
        "played": 9600,
        "starts": 1,
        "waiting": 0,
        "sounding": False,
    }


async def test_what_is_shorter_than_the_lead_is_played_all_the_same(run):
    script = "const ring = new parts.Ring(24000); ring.push(ramp(240)); play(ring, 6400); return ring.played;"
    assert await run("ring.js", script) == 240


async def test_a_flush_ends_the_sound_within_5_ms_and_nothing_dropped_is_counted(run):
    script = """
      const ring = new parts.Ring(24000);
      ring.push(new Int16Array(24000).fill(8000));
      play(ring, 2560);
      const before = ring.played;
      ring.flush();
      const after = play(ring, 2560);
      const end = after.findLastIndex((v) => v !== 0);
      ring.push(ramp(2400));
      const next = play(ring, 5120);
      return {more: ring.played - before - 2400, end, falls: after.slice(0, end).every((v, n) => v >= after[n + 1]),
        next: next.filter((v) => v !== 0).length, waiting: ring.waiting};
    """
    found = await run("ring.js", script)
    assert found["more"] <= 24_000 * 5 / 1000
    assert found["end"] < found["more"]
    assert found["falls"]
    assert found["next"] == 2400
    assert found["waiting"] == 0


async def test_a_reply_that_comes_while_the_last_one_fades_is_played_whole(run):
    script = """
      const ring = new parts.Ring(24000);
      ring.push(new Int16Array(24000).fill(8000));
      play(ring, 1280);
      ring.flush();
      ring.push(new Int16Array(4800).fill(-500));
      const heard = play(ring, 12800);
      return [heard.filter((v) => v === -500).length, heard.filter((v) => v > 0).length];
    """
    fresh, old = await run("ring.js", script)
    assert fresh == 4800
    assert old <= 24_000 * 5 / 1000


async def test_what_is_held_is_silent_and_goes_on_where_it_was_when_released(run):
    script = """
      const ring = new parts.Ring(24000);
      ring.push(ramp(9600));
      play(ring, 2560);
      ring.hold();
      const faded = play(ring, 256);
      const silent = play(ring, 12800).every((v) => v === 0);
      const held = ring.played;
      ring.release();
      const heard = play(ring, 12800);
      return {silent, next: heard[0] - held, played: ring.played, faded: faded.findLastIndex((v) => v !== 0)};
    """
    found = await run("ring.js", script)
    assert found["silent"]
    assert found["next"] == 1
    assert found["played"] == 9600
    assert found["faded"] < 24_000 * 5 / 1000


async def test_the_audio_thread_plays_to_the_sample_falls_silent_and_says_how_much_was_played(page):
    script = """
    async () => {
      const context = new OfflineAudioContext(1, 24000, 24000);
      await context.audioWorklet.addModule('/static/voice/playback.worklet.js');
      const node = new AudioWorkletNode(context, 'echoic-playback', {numberOfInputs: 0, outputChannelCount: [1]});
      const reports = [];
      node.port.onmessage = ({data}) => reports.push(data);
      node.connect(context.destination);
      const sound = new Int16Array(24000).fill(8000);
      node.port.postMessage({pcm: sound.buffer}, [sound.buffer]);
      const settled = () => new Promise((done) => setTimeout(done, 100));
      await settled();
      const stop = context.suspend(0.512).then(async () => {
        node.port.postMessage({order: 'flush'});
        await settled();
        context.resume();
      });
      const [out] = await Promise.all([context.startRendering(), stop]);
      await settled();
      const samples = out.getChannelData(0);
      return {reports, first: samples.findIndex((v) => v !== 0), last: samples.findLastIndex((v) => v !== 0),
        sounding: samples.filter((v) => v !== 0).length};
    }
    """
    found = await page.evaluate(script)
    flushed = [report for report in found["reports"] if report["flushed"]]
    assert len(flushed) == 1
    assert 0.512 * 24_000 <= found["last"] <= (0.512 + 0.005) * 24_000 + 128
    # the fade's last sample may be too quiet to count as sound
    assert 0 <= flushed[0]["bytes"] / 2 - found["sounding"] <= 1
    assert found["sounding"] == found["last"] - found["first"] + 1
    assert flushed[0]["starts"] == 1
    assert not flushed[0]["sounding"]
    counts = [report["bytes"] for report in found["reports"]]
    assert counts == sorted(counts)
    assert len(counts) > 5


async def test_a_flush_while_it_is_silent_counts_nothing_of_the_audio_that_comes_with_it(page):
    reports = await page.evaluate("""async () => {
        const context = new OfflineAudioContext(1, 24000, 24000);
        await context.audioWorklet.addModule('/static/voice/playback.worklet.js');
        const node = new AudioWorkletNode(context, 'echoic-playback', {numberOfInputs: 0, outputChannelCount: [1]});
        const reports = [];
        node.port.onmessage = ({data}) => reports.push(data);
        node.connect(context.destination);
        node.port.postMessage({order: 'flush'});
        node.port.postMessage({pcm: new Int16Array(12000).fill(1000).buffer});
        await new Promise((soon) => setTimeout(soon, 100));
        await context.startRendering();
        while (!reports.some(({bytes}) => bytes === 24000)) await new Promise((soon) => setTimeout(soon, 10));
        return reports;
    }""")
    assert [report["bytes"] for report in reports if report["flushed"]] == [0]


async def test_the_capture_on_the_audio_thread_gives_frames_of_the_calls_rate_and_silence_when_muted(page):
    script = """
    async () => {
      const context = new OfflineAudioContext(1, 48000, 48000);
      await context.audioWorklet.addModule('/static/voice/capture.worklet.js');
      const node = new AudioWorkletNode(context, 'echoic-capture',
        {numberOfOutputs: 0, channelCount: 1, channelCountMode: 'explicit', processorOptions: {hz: 16000}});
      const frames = [];
      node.port.onmessage = ({data}) => frames.push([data.pcm.byteLength, data.level, Math.max(...new Int16Array(data.pcm))]);
      const tone = new OscillatorNode(context, {frequency: 440});
      tone.connect(node);
      tone.start();
      const settled = () => new Promise((done) => setTimeout(done, 100));
      const muted = context.suspend(0.512).then(async () => {
        node.port.postMessage({muted: true});
        await settled();
        context.resume();
      });
      await Promise.all([context.startRendering(), muted]);
      await settled();
      return frames;
    }
    """
    frames = await page.evaluate(script)
    assert {size for size, _, _ in frames} == {640}
    assert 48 <= len(frames) <= 50
    spoken, silent = frames[1:24], frames[27:]
    assert all(abs(level - 0.707) < 0.01 and peak > 32_000 for _, level, peak in spoken)
    assert all(level == 0 and peak == 0 for _, level, peak in silent)


async def test_speech_is_noticed_and_neither_a_click_nor_the_agents_echo_nor_a_loud_room_is(run):
    script = """
      const told = (levels, agent = 0) => {
        const one = new parts.SpeechDetector();
        return levels.flatMap((level, n) => one.hear(level, agent) ? [n] : []);
      };
      const frames = (count, level) => Array(count).fill(level);
      return {
        speech: told([...frames(50, 0.001), ...frames(20, 0.1)]),
        twice: told([...frames(50, 0.001), ...frames(20, 0.1), ...frames(20, 0.001), ...frames(20, 0.1)]).length,
        click: told([...frames(50, 0.001), ...frames(3, 0.5), ...frames(50, 0.001)]),
        echo: told([...frames(50, 0.001), ...frames(50, 0.03)], 0.2),
        over: told([...frames(50, 0.001), ...frames(50, 0.1)], 0.2).length,
        room: told([...frames(900, 0.015), ...frames(50, 0.05)]),
      };
    """
    found = await run("detector.js", script)
    assert len(found["speech"]) == 1
    assert 50 < found["speech"][0] < 60
    assert found["twice"] == 2
    assert found["over"] == 1
    assert (found["click"], found["echo"], found["room"]) == ([], [], [])


A_LINE = """
  let now = 0;
  const clock = performance.now;
  const Real = window.WebSocket;
  const sockets = [];
  performance.now = () => now;
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 1;
    bufferedAmount = 0;
    constructor() { sockets.push(this); setTimeout(() => this.onmessage({ data: '{"type": "ready"}' })); }
    send(message) { this.bufferedAmount += message.byteLength ?? 0; }
    close() {}
  };
  const again = [];
  const up = () => new Promise((ready) => again.push(ready));
  const told = Object.fromEntries(["open", "ready", "said", "sounds", "standing", "ended"].map((name) => [name, () => {}]));
  let lost = 0;
  const line = new parts.Line({ call: async () => ({ session: "s", ticket: "t" }) }, {
    ...told, called: async () => {}, ready: () => again.splice(0).forEach((ready) => ready()), lost: () => (lost += 1),
  });
  const speak = (frames, ms) => { for (let n = 0; n < frames; n++) { now += ms; line.sendAudio(new ArrayBuffer(960)); } };
  try {
    const first = up();
    await line.open({});
    await first;
    SCRIPT
  } finally {
    line.close();
    performance.now = clock;
    window.WebSocket = Real;
  }
"""


async def test_a_line_is_given_up_once_nothing_got_out_for_seconds(run):
    script = "speak(190, 20); const before = lost; speak(60, 20); return [before, lost];"
    assert await run("line.js", A_LINE.replace("SCRIPT", script)) == [0, 1]


async def test_a_page_that_stood_still_gives_up_no_line_over_all_that_it_has_to_send_at_once(run):
    script = """
      speak(1, 20);
      now += 8000;
      speak(400, 0.1);
      sockets[0].bufferedAmount = 0;
      speak(100, 20);
      return lost;
    """
    assert await run("line.js", A_LINE.replace("SCRIPT", script)) == 0


async def test_what_was_said_while_there_was_no_line_does_not_break_the_next(run):
    script = """
      const next = up();
      dispatchEvent(new Event("offline"));
      speak(400, 20);
      await next;
      const kept = sockets[1].bufferedAmount / 960;
      speak(10, 20);
      return [lost, sockets.length, kept];
    """
    assert await run("line.js", A_LINE.replace("SCRIPT", script)) == [1, 2, 250]
