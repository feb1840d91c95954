// The media of a call that goes through our server: frames up, frames down, and how much of them was played.

import { Capture } from "./capture.js";
import { SpeechDetector } from "./detector.js";
import { Player } from "./player.js";

/** For so long the agent is silent on the page's own suspicion that the caller speaks; then it goes on. */
const DOUBT_MS = 600;

export class Relay {
  #line;
  #told;
  #capture;
  #player;
  #detector = new SpeechDetector();
  #doubt = 0;
  /** When the agent was to fall silent, 0 where it is not; and after how many milliseconds it was. */
  #silence = 0;
  #silentAfter = null;
  /** What the player had played when the count of this line began. */
  #from = 0;
  #muted = false;

  /**
   * @param {import("./line.js").Line} line
   * @param {{inputHz: number, outputHz: number}} call
   * @param {{levels: (caller: number, agent: number) => void, sounding: (on: boolean) => void,
   *   silenced: (elapsed: number) => void}} told
   */
  constructor(line, call, told) {
    this.#line = line;
    this.#told = told;
    this.#player = new Player(call.outputHz, (report) => this.#played(report));
    this.#capture = new Capture(call.inputHz, (pcm, level) => this.#hear(pcm, level));
  }

  async open(stream) {
    await this.#player.open();
    await this.#capture.open(stream);
  }

  /** Without the line there is no sound. */
  get stands() {
    return false;
  }

  opened() {}

  renew() {}

  sounds(pcm) {
    this.#player.push(pcm);
  }

  /** The server says that the caller interrupted. */
  async flush() {
    // after a doubt that ended just now it waits, and does not sound yet
    const cutIn = this.#player.last.sounding || this.#player.last.waiting > 0 || this.#doubt !== 0;
    if (!this.#silence) this.#hush();
    this.#settle();
    const bytes = await this.#player.flush();
    this.#line.send({ type: "played", bytes: bytes - this.#from, flushed: true });
    if (cutIn) this.#told.silenced(this.#silentAfter);
    this.#silence = 0;
  }

  /** There is no line: what was said on it is not gone on with, or nobody would know how much of it was heard. */
  lost() {
    this.#settle();
    this.#player.hold();
  }

  /** Another line: what the old one brought is dropped, and counting begins anew. */
  async restored() {
    this.#from = Infinity;
    this.#from = await this.#player.flush();
  }

  mute(on) {
    this.#muted = on;
    this.#capture.mute(on);
  }

  listen(stream) {
    this.#capture.listen(stream);
  }

  async close() {
    this.#settle();
    await Promise.all([this.#capture.close(), this.#player.close()]);
  }

  #played({ bytes, flushed, sounding }) {
    this.#told.sounding(sounding);
    if (!sounding && this.#silence) this.#silentAfter ??= performance.now() - this.#silence;
    if (!flushed && bytes > this.#from) this.#line.send({ type: "played", bytes: bytes - this.#from, flushed: false });
  }

  #hear(pcm, level) {
    this.#line.sendAudio(pcm);
    const { sounding, level: loudness } = this.#player.last;
    const agent = sounding ? loudness : 0;
    this.#told.levels(level, agent);
    if (this.#detector.hear(level, agent) && sounding && !this.#muted && !this.#doubt) this.#suspect();
  }

  #suspect() {
    this.#hush();
    this.#player.hold();
    this.#line.send({ type: "barge_in" });
    this.#doubt = setTimeout(() => {
      this.#doubt = 0;
      this.#silence = 0;
      this.#player.release();
    }, DOUBT_MS);
  }

  #hush() {
    this.#silence = performance.now();
    this.#silentAfter = null;
  }

  #settle() {
    clearTimeout(this.#doubt);
    this.#doubt = 0;
  }
}
