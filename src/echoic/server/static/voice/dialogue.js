// Talking without a voice model: the browser recognises and speaks, the server answers in text. Whoever speaks
// while the agent does silences it.

import { Recogniser } from "./recogniser.js";
import { Speaker } from "./speaker.js";

/** For so long a recogniser may still bring what the loudspeaker said. */
const ECHO_MS = 1500;

/** @typedef {{text: string, cut: (heard: string) => Promise<any>}} Answer `cut`: only so much of it was heard */

export class Dialogue {
  /** Whether this browser can. */
  static get possible() {
    return Recogniser.exists;
  }

  #exchange;
  #told;
  #recogniser;
  #speaker;
  #turns = 0;
  #user = "";
  #agent = null;
  #pending = Promise.resolve();
  #state = "connecting";
  #thinking = 0;
  #silentAt = -Infinity;
  #interruptions = 0;
  #waiting = [];

  muted = false;

  /**
   * @param {(text: string, coming: (words: string) => void) => Promise<Answer>} exchange says something to the
   *   server; its answer, and before that the words of it as they come
   * @param {{state: (state: string) => void, turn: (turn: any) => void, failed: (message: string) => void}} told
   *   `state`: listening, thinking, speaking or ended
   */
  constructor(exchange, told) {
    this.#exchange = exchange;
    this.#told = told;
    this.#speaker = new Speaker((on) => this.#spoke(on));
    this.#recogniser = new Recogniser({
      interim: (text) => this.#hears(text),
      final: (text) => this.#heard(text),
      failed: (message) => this.#fail(message),
    });
  }

  /** @param {Answer} greeting said first */
  start({ text, cut }) {
    if (this.#state === "ended") return; // hung up meanwhile
    this.#agent = { id: this.#name("agent"), text, cut, shown: false };
    this.#speaker.begin();
    this.#speaker.say(text);
    if (!this.muted) this.#recogniser.listen();
    this.#turn();
  }

  mute(on) {
    this.muted = on;
    if (on) this.#recogniser.pause();
    else this.#recogniser.listen();
    this.#user = "";
  }

  /** What is typed, said as if it were spoken. */
  type(text) {
    this.#interrupt();
    this.#say(text);
  }

  /** Fall silent; done once the server knows what was heard. */
  stop() {
    if (this.#state !== "ended") {
      this.#recogniser.pause();
      this.#interrupt();
      this.#state = "ended";
      this.#told.state("ended");
    }
    return this.#pending;
  }

  #fail(message) {
    this.stop();
    this.#told.failed(message);
  }

  #hears(text) {
    if (this.#isEcho(text)) return;
    this.#interrupt();
    this.#user ||= this.#name("user");
    this.#told.turn({ id: this.#user, speaker: "user", text, final: false });
  }

  #heard(text) {
    if (!text || this.#isEcho(text)) return;
    this.#interrupt();
    this.#say(text);
  }

  /** One thing after the other: what is said while an answer is on its way is answered after it. */
  #say(text) {
    const id = this.#user || this.#name("user");
    this.#user = "";
    this.#told.turn({ id, speaker: "user", text, final: true });
    this.#thinking += 1;
    this.#turn();
    this.#pending = this.#pending.then(() => this.#answer(text));
  }

  async #answer(text) {
    const agent = { id: this.#name("agent"), text: "", shown: true };
    try {
      const whole = await this.#exchange(text, (words) => {
        agent.text += words;
        this.#told.turn({ id: agent.id, speaker: "agent", text: agent.text, final: false });
      });
      Object.assign(agent, whole);
      this.#told.turn({ id: agent.id, speaker: "agent", text: agent.text, final: true });
      const before = this.#interruptions;
      await this.#untilSilent();
      if (this.#state === "ended" || before !== this.#interruptions) {
        this.#told.turn({ id: agent.id, speaker: "agent", text: agent.text, final: true, heard: "" });
        return void (await agent.cut(""));
      }
      this.#agent = agent;
      this.#speaker.begin();
      this.#speaker.say(agent.text);
    } catch (error) {
      this.#told.turn({ id: agent.id, speaker: "agent", text: agent.text, final: true });
      this.#told.failed(error.message);
    } finally {
      this.#thinking -= 1;
      this.#turn();
    }
  }

  /** What was said before is said to its end, or cut off. */
  #untilSilent() {
    return this.#speaker.speaking ? new Promise((silent) => this.#waiting.push(silent)) : Promise.resolve();
  }

  #interrupt() {
    if (!this.#speaker.speaking) return;
    this.#interruptions += 1;
    const heard = this.#speaker.stop();
    const { id, text, cut, shown } = this.#agent;
    if (shown) this.#told.turn({ id, speaker: "agent", text, final: true, heard });
    const cutting = Promise.resolve(cut(heard)).catch((error) => this.#told.failed(error.message));
    this.#pending = this.#pending.then(() => cutting); // before anything that is said next is answered
  }

  /** The microphone hears the loudspeaker: what it brings are words that were just said, in their order. */
  #isEcho(text) {
    if (!this.#speaker.speaking && performance.now() - this.#silentAt > ECHO_MS) return false;
    return ` ${plain(this.#speaker.saying)} `.includes(` ${plain(text)} `);
  }

  #spoke(on) {
    if (!on) {
      this.#silentAt = performance.now();
      for (const silent of this.#waiting.splice(0)) silent();
    }
    this.#turn();
  }

  #turn() {
    const state = this.#speaker.speaking ? "speaking" : this.#thinking ? "thinking" : "listening";
    if (this.#state === "ended" || this.#state === state) return;
    this.#state = state;
    this.#told.state(state);
  }

  #name(speaker) {
    this.#turns += 1;
    return `${speaker}-${this.#turns}`;
  }
}

function plain(text) {
  return text.toLowerCase().replace(/[^\p{L}\p{N}\s]/gu, "").replace(/\s+/g, " ").trim();
}
