// Samples as the frames a line carries: PCM16, mono, of one length each.

export const FRAME_MS = 20;

export class Frames {
  #size;
  #frame;
  #filled = 0;

  /** @param {number} hz of the samples */
  constructor(hz) {
    this.#size = (hz * FRAME_MS) / 1000;
    this.#frame = new Int16Array(this.#size);
  }

  /**
   * @param {Float32Array} samples from -1 to 1; what is louder is clipped
   * @param {(frame: Int16Array) => void} full called with each frame that is complete; it may be kept, or sent away
   */
  push(samples, full) {
    for (const sample of samples) {
      this.#frame[this.#filled++] = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
      if (this.#filled < this.#size) continue;
      full(this.#frame);
      this.#frame = new Int16Array(this.#size);
      this.#filled = 0;
    }
  }
}

/** How loud PCM16 is, as root mean square of full scale. */
export function loudness(frame) {
  let sum = 0;
  for (const sample of frame) sum += sample * sample;
  return frame.length ? Math.sqrt(sum / frame.length) / 32768 : 0;
}
