// Audio from one sample rate to another, as it streams. What the new rate cannot carry is filtered out first, or it
// would come back as tones nobody made.

/** How far down what would fold back is, in dB. */
const STOP_DB = 80;
/** Zero crossings of the sinc on either side: the transition band is 5 / 64 of the lower rate's band. */
const CROSSINGS = 32;

/** A windowed-sinc low-pass in polyphase form (Kaiser's window and his formulas for its shape and width). */
export class Resampler {
  #from;
  #to;
  #phases = null;
  #taps = 0;
  #kept = new Float32Array(0);
  /** Of the next output sample: whole input samples past the start of what is kept, and the rest in 1 / #to. */
  #at = 0;
  #phase = 0;

  /**
   * @param {number} fromHz
   * @param {number} toHz
   */
  constructor(fromHz, toHz) {
    if (!(fromHz > 0 && toHz > 0)) throw new RangeError(`rates must be above 0, not ${fromHz} and ${toHz}`);
    const common = divisor(Math.round(fromHz), Math.round(toHz));
    this.#from = Math.round(fromHz) / common;
    this.#to = Math.round(toHz) / common;
    if (this.#from === this.#to) return;
    this.#taps = 2 * Math.ceil(CROSSINGS * Math.max(1, this.#from / this.#to));
    this.#phases = filters(this.#from, this.#to, this.#taps);
    this.#kept = new Float32Array(this.#taps - 1);
  }

  /**
   * The next samples; cutting the input into other pieces gives the same output.
   * @param {Float32Array} samples
   * @returns {Float32Array}
   */
  push(samples) {
    if (!this.#phases) return samples;
    const input = new Float32Array(this.#kept.length + samples.length);
    input.set(this.#kept);
    input.set(samples, this.#kept.length);
    const output = new Float32Array(Math.ceil((samples.length * this.#to) / this.#from) + 1);
    let count = 0;
    while (this.#at + this.#taps <= input.length) {
      output[count++] = this.#sample(input);
      this.#phase += this.#from;
      this.#at += Math.floor(this.#phase / this.#to);
      this.#phase %= this.#to;
    }
    const used = Math.min(this.#at, input.length);
    this.#kept = input.slice(used);
    this.#at -= used;
    return output.subarray(0, count);
  }

  #sample(input) {
    const filter = this.#phases[this.#phase];
    let sum = 0;
    for (let tap = 0; tap < this.#taps; tap++) sum += filter[tap] * input[this.#at + tap];
    return sum;
  }
}

/** One filter for each place an output sample can have between two input samples. */
function filters(from, to, taps) {
  const beta = 0.1102 * (STOP_DB - 8.7);
  const lower = Math.min(1, to / from) / 2;
  const width = (STOP_DB - 7.95) / (14.36 * taps);
  const cutoff = lower - width / 2;
  return Array.from({ length: to }, (_, phase) => {
    const filter = Float32Array.from({ length: taps }, (_, tap) => {
      const x = tap - (taps / 2 - 1) - phase / to;
      return 2 * cutoff * sinc(2 * cutoff * x) * kaiser(x / (taps / 2), beta);
    });
    const gain = filter.reduce((sum, value) => sum + value, 0);
    return filter.map((value) => value / gain);
  });
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function kaiser(x, beta) {
  return Math.abs(x) > 1 ? 0 : bessel(beta * Math.sqrt(1 - x * x)) / bessel(beta);
}

/** The modified Bessel function of the first kind, order 0, by its series. */
function bessel(x) {
  let sum = 1;
  for (let k = 1, term = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function divisor(a, b) {
  return b === 0 ? a : divisor(b, a % b);
}
