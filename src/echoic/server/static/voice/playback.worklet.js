// On the audio thread: plays what the ring holds, and says how much was played.

import { Ring } from "./ring.js";

const REPORT_MS = 40;

class Playback extends AudioWorkletProcessor {
  #ring = new Ring(sampleRate);
  #flushing = false;
  #since = 0;
  #power = 0;
  #over = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  #obey({ pcm, order }) {
    if (pcm) this.#ring.push(new Int16Array(pcm));
    if (order === "hold") this.#ring.hold();
    if (order === "release") this.#ring.release();
    if (order === "over") this.#over = true;
    if (order !== "flush") return;
    this.#ring.flush();
    this.#flushing = true;
    // where it is silent, at once: what comes next may begin with the next samples, and is not part of the count
    if (!this.#ring.sounding) this.#report(true);
  }

  process(_, [[output]]) {
    const turned = this.#ring.read(output);
    for (const sample of output) this.#power += sample * sample;
    this.#since += output.length;
    const silenced = this.#flushing && !this.#ring.sounding;
    const due = this.#ring.sounding && this.#since * 1000 >= REPORT_MS * sampleRate;
    if (turned || silenced || due) this.#report(silenced);
    return !this.#over;
  }

  #report(flushed) {
    const { played, starts, sounding, waiting } = this.#ring;
    const level = this.#since ? Math.sqrt(this.#power / this.#since) : 0;
    this.port.postMessage({ bytes: 2 * played, flushed, sounding, starts, waiting, level, at: currentTime });
    this.#since = 0;
    this.#power = 0;
    if (flushed) this.#flushing = false;
  }
}

registerProcessor("echoic-playback", Playback);
