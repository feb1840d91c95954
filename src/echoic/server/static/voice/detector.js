// When the caller begins to speak, by loudness: soon enough to fall silent for them. It does not know speech from
// noise, so what it says silences the agent and cuts nothing off; whether they were interrupted the server says.

/** Frames of 20 ms, loud beyond those that were not, until it is taken for speech: neither a click nor a cough. */
const FRAMES = 6;
/** Of full scale, as root mean square: below it nothing is speech. -34 dB. */
const QUIET = 0.02;
/** Speech is so much louder than the room. 12 dB. */
const OVER_ROOM = 4;
/** What a loudspeaker leaves of the agent's own voice after echo cancellation stays below this share of it. */
const ECHO = 0.25;
/** A frame, how fast the room's level follows: down at once, up in some seconds. */
const RISE = 1.005;

export class SpeechDetector {
  #room = QUIET / OVER_ROOM;
  #loud = 0;
  #speaking = false;

  /**
   * @param {number} level of this frame of the microphone
   * @param {number} agent how loud the agent is at the time
   * @returns {boolean} whether speech was found to have begun in this very frame
   */
  hear(level, agent) {
    const loud = level > Math.max(QUIET, OVER_ROOM * this.#room, ECHO * agent);
    this.#room = Math.max(1e-5, Math.min(level, this.#room * RISE));
    this.#loud = Math.max(0, Math.min(FRAMES, this.#loud + (loud ? 1 : -1)));
    if (this.#loud === 0) this.#speaking = false;
    if (this.#loud < FRAMES || this.#speaking) return false;
    this.#speaking = true;
    return true;
  }
}
