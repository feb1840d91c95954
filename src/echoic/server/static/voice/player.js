// The loudspeaker of a call that comes as PCM16: plays it, drops it, says how much was played.

export class Player {
  #context;
  #node = null;
  #told;
  #asked = [];
  /** The last report of the audio thread. */
  last = { bytes: 0, sounding: false, starts: 0, waiting: 0, level: 0 };

  /**
   * @param {number} hz of what will be played; the browser brings it to the device's rate
   * @param {(report: {bytes: number, flushed: boolean, sounding: boolean, level: number}) => void} told
   */
  constructor(hz, told) {
    this.#told = told;
    this.#context = new AudioContext({ sampleRate: hz, latencyHint: "interactive" });
  }

  /** Ready to play; a browser sounds nothing before somebody touched the page. */
  async open() {
    await this.#context.audioWorklet.addModule("/static/voice/playback.worklet.js");
    this.#node = new AudioWorkletNode(this.#context, "echoic-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }) => this.#report(data);
    this.#node.connect(this.#context.destination);
    // a telephone call or another page may have taken the loudspeaker meanwhile
    this.#context.onstatechange = () => this.#context.state === "interrupted" && this.#context.resume();
    // kept waiting by the browser until the page is touched
    this.#context.resume().catch(() => {});
  }

  /** @param {ArrayBuffer} pcm to be played after what came before */
  push(pcm) {
    this.#node?.port.postMessage({ pcm }, [pcm]);
  }

  /** Fall silent, undecided whether what waits is dropped. */
  hold() {
    this.#node?.port.postMessage({ order: "hold" });
  }

  release() {
    this.#node?.port.postMessage({ order: "release" });
  }

  /**
   * Drop what was not played.
   * @returns {Promise<number>} once it is silent: how many bytes were played until then
   */
  flush() {
    if (!this.#node) return Promise.resolve(this.last.bytes);
    return new Promise((silent) => {
      this.#asked.push(silent);
      this.#node.port.postMessage({ order: "flush" });
    });
  }

  async close() {
    this.#node?.port.postMessage({ order: "over" });
    this.#node = null;
    if (this.#context.state !== "closed") await this.#context.close();
  }

  #report(report) {
    this.last = report;
    if (report.flushed) for (const silent of this.#asked.splice(0)) silent(report.bytes);
    this.#told(report);
  }
}
