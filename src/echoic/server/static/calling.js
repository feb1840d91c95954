// The call on the page: its button, its bar, and what of it goes into the transcript and the log.

import { ApiError } from "./api.js";
import { byId, h } from "./dom.js";
import { Call } from "./voice/call.js";
import { Dialogue } from "./voice/dialogue.js";
import { NoMicrophone } from "./voice/microphone.js";
import { Turns } from "./voice/turns.js";
import { Wave } from "./voice/wave.js";

const OPEN = "echoic.call";
const STATES = {
  connecting: "Connecting…",
  listening: "Listening",
  thinking: "Thinking…",
  speaking: "Speaking",
  reconnecting: "Disconnected. Reconnecting…",
  transferring: "Handing over…",
  ending: "Ending…",
};
const PROVIDERS = { openai: "OpenAI Realtime", azure: "OpenAI Realtime on Azure", google: "Gemini Live" };
const WAYS = { websocket: "through this server", webrtc: "directly from this browser" };

export class Calling {
  #page;
  #turns;
  #wave = new Wave(byId("wave"));
  #call = null;
  #dialogue = null;
  #about = { transport: "none" };
  #clock = 0;
  #leaving = Promise.resolve();

  /**
   * @param {{
   *   api: import("./api.js").Api, transcript: import("./transcript.js").Transcript,
   *   operations: import("./operations.js").OperationLog, notice: (text: string) => void, user: () => string,
   *   leave: () => Promise<void>, begin: () => Promise<string>, ended: (untaken: string[]) => void,
   *   exchange: (text: string, coming: (words: string) => void) => Promise<string>,
   *   alone: (work: () => Promise<void>) => Promise<boolean>,
   * }} page `leave` ends the conversation that was typed, `begin` begins another and greets, `ended` shows what a
   *   call left behind and hands back what was typed and did not reach it, `alone` does one thing after another and
   *   says what goes wrong
   */
  constructor(page) {
    this.#page = page;
    this.#turns = new Turns(page.transcript);
    byId("call-begin").addEventListener("click", () => page.alone(() => this.#begin()));
    byId("call-again").addEventListener("click", () => page.alone(() => this.#begin(this.#left())));
    byId("hang-up").addEventListener("click", () => this.hangUp());
    byId("mute").addEventListener("click", () => this.#mute());
    byId("device").addEventListener("change", (event) => this.#choose(event.target.value));
    addEventListener("online", () => this.#call?.hurry());
  }

  /** Learn how this server and this browser can talk, and offer it. */
  async prepare() {
    this.#about = await this.#page.api.voice();
    this.#offer();
    const { transport, provider } = this.#about;
    const fine = byId("fine");
    if (this.#mode === "server") fine.append(` Calls: ${PROVIDERS[provider] ?? provider}, ${WAYS[transport]}.`);
    else if (Dialogue.possible) fine.append(" Talking: your browser recognises and speaks; some send what you say to their maker.");
  }

  get active() {
    return Boolean(this.#call ?? this.#dialogue);
  }

  /** Something typed during a call is part of it, unless it is being hung up. Whether there is one. */
  async type(text) {
    await this.#leaving;
    if (this.#call) {
      this.#turns.typed(text);
      this.#call.type(text);
    }
    this.#dialogue?.type(text);
    return this.active;
  }

  /** End the call, if there is one; done once what was heard is kept. */
  hangUp() {
    this.#leaving = this.#hangUp();
    return this.#leaving;
  }

  async #hangUp() {
    this.#state("ending");
    await this.#dialogue?.stop();
    await this.#call?.hangUp();
  }

  get #mode() {
    return this.#about.transport === "none" ? "browser" : "server";
  }

  #offer() {
    const button = byId("call-begin");
    const can = this.#mode === "server" || Dialogue.possible;
    button.hidden = this.active || !can;
    byId("call-begin-words").textContent = this.#mode === "server" ? "Call" : "Talk";
    button.title = this.#mode === "server" ? "Speak with the agent" : "Speak with your browser's own recognition and voice";
    byId("call-again").hidden = this.active || !this.#left().resume;
    byId("call").hidden = !this.active;
  }

  // -- a call through the server's voice model

  async #begin(asked = {}) {
    if (this.active) return;
    if (this.#mode === "browser") return this.#talk();
    const call = new Call(this.#page.api, {
      state: (state) => this.#state(state),
      said: (message) => this.#said(message),
      levels: (caller, agent) => this.#wave.push(caller, agent),
      interrupted: (elapsed) => this.#interrupted(elapsed),
      devices: () => this.#showDevices(),
      trouble: (message) => this.#page.notice(message),
      ended: (message, resumable, untaken) => this.#ended(message, resumable, untaken),
    });
    this.#call = call;
    this.#open();
    try {
      await call.listen();
      if (call !== this.#call) return; // hung up meanwhile
      await this.#showDevices();
      await this.#page.leave();
      if (call !== this.#call) return;
      this.#page.transcript.divide(asked.resume ? "The call continues" : "A voice call");
      await call.start(asked);
      if (call === this.#call) this.#keep(call.session);
    } catch (error) {
      await call.abandon();
      if (call !== this.#call) return; // hung up meanwhile
      this.#close();
      if (asked.resume && error.status === 404) this.#keep("");
      this.#offer();
      throw error instanceof NoMicrophone ? new ApiError(0, error.message) : error;
    }
  }

  #said(message) {
    // captions do not say what was heard
    if (message.type === "transcript") this.#turns.show(message, message.heard !== undefined);
    if (message.type === "problem") this.#page.notice(message.error);
    if (message.type === "transfer") this.#page.transcript.divide(`Transferred to ${message.agent}`);
    if (message.type === "recall") this.#recalled(message);
  }

  #recalled({ outcome, hits, ms }) {
    const found = hits === 1 ? "1 hit" : `${hits} hits`;
    this.#page.operations.add("Recalled in the call", [{ name: "recall", ms, outcome, detail: `${found}, before the answer` }]);
  }

  #interrupted(elapsed) {
    const until = elapsed === undefined ? "" : "until the agent was silent; ";
    this.#page.operations.add("You interrupted", [
      { name: "silence", ms: elapsed, detail: `${until}words that were not played were not heard` },
    ]);
  }

  #ended(message, resumable, untaken) {
    if (!resumable) this.#keep("");
    this.#close();
    for (const text of untaken) this.#turns.unanswered(text);
    this.#page.transcript.divide("The call ended");
    if (message) this.#page.notice(message);
    this.#page.ended(untaken);
  }

  // -- a talk through the browser's own recognition and voice

  async #talk() {
    await this.#page.leave();
    this.#page.transcript.divide("A talk");
    const dialogue = new Dialogue(this.#page.exchange, {
      state: (state) => (state === "ended" ? this.#talked() : this.#state(state)),
      turn: (turn) => this.#turns.show(turn),
      failed: (message) => this.#page.notice(message),
    });
    this.#dialogue = dialogue;
    this.#open();
    try {
      const greeting = await this.#page.begin();
      if (dialogue === this.#dialogue) dialogue.start(greeting);
      else await greeting.cut("");
    } catch (error) {
      dialogue.stop();
      throw error;
    }
  }

  #talked() {
    this.#close();
    this.#page.transcript.divide("The talk ended");
  }

  // -- the bar

  #open() {
    const started = performance.now();
    const show = () => (byId("call-time").textContent = clock(performance.now() - started));
    show();
    this.#clock = setInterval(show, 1000);
    this.#turns = new Turns(this.#page.transcript);
    this.#wave.clear();
    byId("wave").hidden = !this.#call;
    byId("device-label").hidden = true;
    this.#state("connecting");
    this.#showMuted(false);
    this.#offer();
    byId("mute").focus();
  }

  #close() {
    clearInterval(this.#clock);
    this.#call = null;
    this.#dialogue = null;
    this.#offer();
  }

  #state(state) {
    if (state === "ended") return;
    // sound that goes another way is heard on
    if (state === "reconnecting" && this.#about.transport === "websocket") this.#turns.broken();
    const muted = state === "listening" && (this.#call ?? this.#dialogue)?.muted;
    byId("call").dataset.state = state;
    byId("call-state").textContent = muted ? "Muted" : STATES[state];
  }

  #mute() {
    const held = this.#call ?? this.#dialogue;
    if (!held) return;
    held.mute(!held.muted);
    this.#showMuted(held.muted);
  }

  #showMuted(on) {
    byId("mute").setAttribute("aria-pressed", String(on));
    byId("call").classList.toggle("muted", on);
    this.#state(byId("call").dataset.state);
  }

  async #choose(device) {
    try {
      await this.#call?.choose(device);
    } catch (error) {
      this.#page.notice(error.message);
    }
    await this.#showDevices();
  }

  async #showDevices() {
    const call = this.#call;
    const devices = (await call?.devices()) ?? [];
    if (call !== this.#call) return;
    byId("device").replaceChildren(
      ...devices.map(({ id, label }) => h("option", { value: id, selected: id === call.device }, label)),
    );
    byId("device-label").hidden = devices.length < 2;
  }

  // -- a call that a closed or reloaded page left open

  #keep(session) {
    try {
      if (session) sessionStorage.setItem(OPEN, JSON.stringify({ session, user: this.#page.user() }));
      else sessionStorage.removeItem(OPEN);
    } catch {
      // then it cannot be taken up by hand
    }
  }

  #left() {
    try {
      const { session, user } = JSON.parse(sessionStorage.getItem(OPEN) ?? "{}");
      return this.#mode === "server" && user === this.#page.user() ? { resume: session } : {};
    } catch {
      return {};
    }
  }
}

/** Milliseconds as "1:07". */
function clock(elapsed) {
  const seconds = Math.floor(elapsed / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
