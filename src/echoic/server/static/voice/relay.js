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
   * @param {{levels: (caller: number, agent: number) => void, sounding: (on: boolean) => void}} told
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

  /** The server drops what was not played; whether the caller interrupted, it says once it knows how much was. */
  async flush() {
    if (!this.#silence) this.#hush();
    this.#settle();
    const bytes = await this.#player.flush();
    this.#silence = 0;
    this.#line.send({ type: "played", bytes: bytes - this.#from, flushed: true });
  }

  /** The caller interrupted. Returns after how many milliseconds the agent was silent: 0 where it was already. */
  interrupted() {
    const elapsed = this.#silentAfter ?? 0;
    this.#silentAfter = null;
    return elapsed;
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
      this.#silentAfter = null;
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
