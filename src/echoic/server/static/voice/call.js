// One call: a microphone, a line, and media one way or the other. It shows nothing; whoever holds it is told.

import { ApiError } from "../api.js";
import { Line } from "./line.js";
import { Microphone } from "./microphone.js";
import { Peer } from "./peer.js";
import { Relay } from "./relay.js";

/** How long the server is waited for to say that it kept everything. */
const GOODBYE_MS = 3000;
/** Why it ended, as the server or the line says it; nothing where nothing needs to be said. */
const ENDS = {
  ended: "",
  failed: "",
  elsewhere: "The call continues in another window.",
  "taken over": "The call continues elsewhere.",
  forgotten: "The call ended: this caller was forgotten.",
  idle: "The call ended: nothing was said for a while.",
  "too long": "The call ended: it reached the maximum length.",
  gone: "The call could not be resumed: it is over. What was heard is stored.",
  unreachable: "The server cannot be reached. What was heard is stored; you can resume the call when it is back.",
};

export class Call {
  #api;
  #told;
  #line;
  #microphone;
  #media = null;
  #state = "connecting";
  #up = 0;
  #leaving = false;
  #over = () => {};

  /**
   * @param {import("../api.js").Api} api
   * @param {{
   *   state: (state: string) => void, said: (message: any) => void, levels: (caller: number, agent: number) => void,
   *   interrupted: (elapsed?: number) => void, devices: () => void, trouble: (message: string) => void,
   *   ended: (message: string, resumable: boolean, untaken: string[]) => void,
   * }} told `state`: connecting, listening, speaking, reconnecting, transferring or ended; `said`: a transcript, a
   *   recall, a transfer or a problem, as the server tells it; `interrupted`: the caller did so, and the agent fell
   *   silent after so many milliseconds, where that is known; `ended` with what was typed and did not arrive
   */
  constructor(api, told) {
    this.#api = api;
    this.#told = told;
    this.#microphone = new Microphone({
      changed: (stream) => this.#media?.listen(stream),
      lost: (message) => told.trouble(message),
      devices: told.devices,
    });
    this.#line = new Line(api, {
      called: (call) => this.#called(call),
      open: () => this.#attempt(() => this.#media.opened()),
      ready: () => this.#ready(),
      said: (message) => this.#said(message),
      sounds: (pcm) => this.#media.sounds(pcm),
      standing: () => this.#media?.stands ?? false,
      lost: () => this.#lost(),
      ended: (reason, resumable) => this.#end(ENDS[reason] ?? `The call ended. ${reason}`, resumable),
    });
  }

  get session() {
    return this.#line.session;
  }

  get muted() {
    return this.#microphone.muted;
  }

  get device() {
    return this.#microphone.device;
  }

  devices() {
    return this.#microphone.devices();
  }

  /**
   * Ask for the microphone.
   * @throws {import("./microphone.js").NoMicrophone}
   */
  listen() {
    return this.#microphone.open();
  }

  /**
   * Begin it, or take one up; listening already.
   * @param {{agent?: string, resume?: string}} asked
   * @throws {import("../api.js").ApiError} there is no call
   */
  async start(asked) {
    try {
      await this.#line.open(asked);
    } catch (error) {
      if (this.#state === "ended") return; // which was told, with the reason
      await this.#close();
      throw error;
    }
  }

  mute(on) {
    this.#microphone.mute(on);
    this.#media?.mute(on);
    this.#line.send({ type: "mute", muted: on });
  }

  choose(device) {
    return this.#microphone.choose(device);
  }

  type(text) {
    this.#line.type(text);
  }

  /** Try at once to reach the server again. */
  hurry() {
    this.#line.hurry();
  }

  /** It is not begun after all. */
  abandon() {
    return this.#close();
  }

  /** End it; resolved once the server kept everything, or does not answer. */
  async hangUp() {
    if (this.#state === "ended") return;
    this.#leaving = true;
    this.#line.hangUp();
    // without a line the server is not told: it puts the call away by itself
    if (!this.#up || this.#state === "reconnecting") return this.#end("", false);
    const kept = new Promise((over) => (this.#over = over));
    await Promise.race([kept, new Promise((late) => setTimeout(late, GOODBYE_MS))]);
    this.#end("", false);
  }

  async #called(call) {
    if (this.#media) return;
    const levels = this.#told.levels;
    const sounding = (on) => this.#sounding(on);
    if (call.transport === "webrtc") {
      const lost = () => this.#state !== "ended" && this.#turn("reconnecting");
      const restored = () => this.#state === "reconnecting" && this.#line.up && this.#turn("listening");
      this.#media = new Peer(this.#api, this.#line, call, { levels, sounding, lost, restored, failed: this.#told.trouble });
      this.#media.prepare(this.#microphone.stream);
    } else {
      this.#media = new Relay(this.#line, call, { levels, sounding });
      await this.#media.open(this.#microphone.stream).catch(() => {
        throw new ApiError(0, "This browser could not open its sound. Reload the page and call again.");
      });
    }
    this.#media.mute(this.muted);
  }

  #ready() {
    if (this.#up++) this.#attempt(() => this.#media.restored());
    this.#turn("listening");
    // the other side may be another process, which was told nothing yet
    if (this.muted) this.#line.send({ type: "mute", muted: true });
  }

  async #attempt(work) {
    try {
      await work();
    } catch (error) {
      // with the server gone the line breaks too, and what failed is tried anew on the next
      if (!this.#up || error.status !== 0) this.#end(error.message, false);
    }
  }

  #lost() {
    this.#media.lost();
    this.#turn("reconnecting");
  }

  #said(message) {
    if (message.type === "flush") this.#media.flush();
    else if (message.type === "interrupted") this.#told.interrupted(this.#media.interrupted());
    else if (message.type === "offer") this.#attempt(() => this.#media.renew());
    else if (message.type === "state") this.#stated(message.state);
    else if (message.type !== "ready") this.#told.said(message);
  }

  #stated(state) {
    if (state === "transferring" || state === "reconnecting") this.#turn(state);
    else if (state === "active" && (this.#state === "transferring" || this.#state === "reconnecting")) this.#turn("listening");
  }

  #sounding(on) {
    if (on && this.#state === "listening") this.#turn("speaking");
    if (!on && this.#state === "speaking") this.#turn("listening");
  }

  #turn(state) {
    if (this.#state === "ended" || this.#state === state) return;
    this.#state = state;
    this.#told.state(state);
  }

  #end(message, resumable) {
    this.#over();
    if (this.#state === "ended") return;
    this.#turn("ended");
    this.#close();
    this.#told.ended(this.#leaving ? "" : message, resumable, this.#line.untaken);
  }

  async #close() {
    this.#state = "ended";
    this.#line.close();
    this.#microphone.close();
    await this.#media?.close();
  }
}
