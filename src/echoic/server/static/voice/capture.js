// A microphone as the frames of a call: PCM16, mono, 20 ms each.

export class Capture {
  #context;
  #node = null;
  #source = null;
  #hz;
  #given;

  /**
   * @param {number} hz of the frames
   * @param {(pcm: ArrayBuffer, level: number) => void} given called with each, and how loud it is (0 to 1)
   */
  constructor(hz, given) {
    this.#hz = hz;
    this.#given = given;
    // at the device's own rate: not every browser lets a microphone into a context of another one
    this.#context = new AudioContext({ latencyHint: "interactive" });
  }

  /** @param {MediaStream} stream */
  async open(stream) {
    await this.#context.audioWorklet.addModule("/static/voice/capture.worklet.js");
    this.#node = new AudioWorkletNode(this.#context, "echoic-capture", {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: "explicit",
      processorOptions: { hz: this.#hz },
    });
    this.#node.port.onmessage = ({ data }) => this.#given(data.pcm, data.level);
    this.listen(stream);
    this.#context.resume().catch(() => {});
  }

  /** Take the sound from here from now on. */
  listen(stream) {
    this.#source?.disconnect();
    this.#source = this.#context.createMediaStreamSource(stream);
    this.#source.connect(this.#node);
  }

  /** Muted, the frames go on and hold silence. */
  mute(on) {
    this.#node?.port.postMessage({ muted: on });
  }

  async close() {
    this.#node?.port.postMessage({ over: true });
    this.#source?.disconnect();
    this.#node = null;
    if (this.#context.state !== "closed") await this.#context.close();
  }
}
