// What the agent says, waiting to be played: gapless, countable to the sample, silenced within milliseconds.

/** Held back before it begins to sound, so that what comes unevenly is played evenly. */
const LEAD_MS = 60;
/** After so long it begins with whatever is there: the whole of it may be shorter than the lead. */
const PATIENCE_MS = 120;
/** A cut in mid-wave clicks. */
const FADE_MS = 5;

export class Ring {
  #chunks = [];
  #offset = 0;
  #waiting = 0;
  #sounding = false;
  #waited = 0;
  #lead;
  #patience;
  #fade;
  /** Samples left of a fade-out; -1 where there is none. */
  #fading = -1;
  #held = false;
  #drop = false;
  /** Samples that were played. What was dropped is not among them. */
  played = 0;
  /** How often it began to sound: once for what is played without a gap. */
  starts = 0;

  /** @param {number} hz */
  constructor(hz) {
    this.#lead = (LEAD_MS * hz) / 1000;
    this.#patience = (PATIENCE_MS * hz) / 1000;
    this.#fade = (FADE_MS * hz) / 1000;
  }

  /** Samples that were not played yet. */
  get waiting() {
    return this.#waiting;
  }

  get sounding() {
    return this.#sounding;
  }

  /** @param {Int16Array} samples to be played after what came before */
  push(samples) {
    if (!samples.length) return;
    this.#chunks.push(samples);
    this.#waiting += samples.length;
  }

  /** Fall silent and keep what waits: whether it is dropped is not decided yet. */
  hold() {
    this.#held = true;
    this.#fadeOut();
  }

  /** Go on where it was held. */
  release() {
    this.#held = false;
    if (!this.#drop) this.#fading = -1;
  }

  /** Fall silent and drop what waits. What is pushed afterwards is played. */
  flush() {
    this.#held = false;
    if (!this.#sounding) return this.#empty();
    this.#fadeOut();
    this.#drop = true;
    // only what still fades out is left of it
    this.#keep(this.#fading);
  }

  /**
   * Fill `output` with what comes next, and with silence where nothing does.
   * @param {Float32Array} output
   * @returns {boolean} whether it fell silent or began to sound meanwhile
   */
  read(output) {
    const before = this.#sounding;
    let at = 0;
    if (!this.#sounding) this.#begin(output.length);
    while (at < output.length && this.#sounding) {
      if (this.#fading === 0 || this.#waiting === 0) this.#stop();
      else output[at++] = this.#next();
    }
    output.fill(0, at);
    return before !== this.#sounding;
  }

  #begin(samples) {
    if (this.#held || this.#waiting === 0) return;
    this.#waited += samples;
    if (this.#waiting < this.#lead && this.#waited < this.#patience) return;
    this.#sounding = true;
    this.starts += 1;
  }

  #next() {
    let sample = this.#chunks[0][this.#offset++] / 32768;
    if (this.#offset === this.#chunks[0].length) {
      this.#chunks.shift();
      this.#offset = 0;
    }
    this.#waiting -= 1;
    this.played += 1;
    if (this.#fading > 0) sample *= this.#fading-- / this.#fade;
    return sample;
  }

  #stop() {
    this.#sounding = false;
    this.#waited = 0;
    this.#fading = -1;
    this.#drop = false;
  }

  #fadeOut() {
    if (this.#sounding && this.#fading < 0) this.#fading = Math.min(this.#fade, this.#waiting);
  }

  #keep(samples) {
    let left = samples + this.#offset;
    const kept = [];
    for (const chunk of this.#chunks) {
      if (left <= 0) break;
      kept.push(chunk.subarray(0, left));
      left -= chunk.length;
    }
    this.#chunks = kept;
    this.#waiting = samples;
  }

  #empty() {
    this.#chunks = [];
    this.#offset = 0;
    this.#waiting = 0;
    this.#waited = 0;
    this.#drop = false;
    this.#fading = -1;
  }
}
