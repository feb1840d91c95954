// The line to the server that a call is held over: opened with a ticket, taken up again when it breaks, with what the
// caller said meanwhile.

import { ApiError } from "../api.js";
import { FRAME_MS } from "./frames.js";

const PROTOCOL = "echoic.voice.v1";
const FIRST_WAIT_MS = 300;
const LAST_WAIT_MS = 8000;
/** Without a line for longer, a call is given up; it can still be taken up by hand. */
const PATIENCE_MS = 120_000;
/** Until a line that was opened must say that it is ready: a model is called behind it. */
const READY_MS = 20_000;
/** Of speech, kept while there is no line; more would be answered when nobody remembers saying it. */
const KEPT_MS = 5000;
/** For so long nothing that was given to the browser got out: the network is gone, though nobody said so. */
const STUCK_MS = 4000;
/** No more than this counts of the time between two looks at it: a page that stood still gives much at once. */
const LOOK_MS = 100;
/** This page closes a line with it that leads nowhere. */
const BROKEN = 4000;
/** The server closes a line with it when the call was opened on another. */
const ELSEWHERE = 4001;
/** Refusals that another try may not meet: too much at once, still held by the line that broke, not up yet. */
const PASSING = new Set([0, 408, 409, 425, 429, 500, 502, 503, 504]);

export class Line {
  #api;
  #told;
  #socket = null;
  #call = null;
  #ready = false;
  #over = false;
  #kept = [];
  /** What was typed and the server did not take yet, as far as is known here. */
  #typed = [];
  /** What the browser had left to send at the last look, when that was, and for how long nothing got out. */
  #left = 0;
  #lookedAt = 0;
  #stuckMs = 0;
  #wake = () => {};
  #break = () => {};
  #offline = () => this.#break();

  /**
   * @param {import("../api.js").Api} api
   * @param {{
   *   called: (call: any) => Promise<void>, open: () => void, ready: (ready: any) => void,
   *   said: (message: any) => void, sounds: (pcm: ArrayBuffer) => void, standing: () => boolean,
   *   lost: () => void, ended: (reason: string, resumable: boolean) => void,
   * }} told each time: `called` with the call before a line to it is opened, which waits for it; `open` once the line
   *   stands; `ready` with the server's first word on it; `lost` when it breaks. `standing`: whether the sound of the
   *   call goes on without it. `ended` once, unless it was closed here
   */
  constructor(api, told) {
    this.#api = api;
    this.#told = told;
  }

  /** The id of the call, to take it up again with; empty before it is known. */
  get session() {
    return this.#call?.session ?? "";
  }

  /**
   * Begin a call, or take one up.
   * @param {{agent?: string, resume?: string}} asked
   * @throws {ApiError} it cannot be had
   */
  async open(asked) {
    addEventListener("offline", this.#offline);
    try {
      await this.#connect(asked);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @param {object} message lost where there is no line: whoever sends it sends it anew once there is */
  send(message) {
    if (this.up) this.#socket.send(JSON.stringify(message));
  }

  /** Something typed: sent once there is a line, and on the next one too where nobody knows whether it arrived. */
  type(text) {
    const message = { type: "text", text, id: crypto.randomUUID() };
    this.#typed.push(message);
    this.send(message);
  }

  /** What was typed and never arrived, as far as is known. */
  get untaken() {
    return this.#typed.map(({ text }) => text);
  }

  /** A line that is not ready takes it too: behind it, a model may be called for nobody. */
  hangUp() {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type: "hang_up" }));
  }

  /** @param {ArrayBuffer} pcm one frame; kept for a while where there is no line */
  sendAudio(pcm) {
    if (!this.up) {
      this.#kept.push(pcm);
      if (this.#kept.length > KEPT_MS / FRAME_MS) this.#kept.shift();
      return;
    }
    this.#look();
    this.#socket.send(pcm);
    this.#left = this.#socket.bufferedAmount;
    if (this.#stuckMs > STUCK_MS) this.#break();
  }

  #look() {
    const now = performance.now();
    const left = this.#socket.bufferedAmount;
    const stuck = left > 0 && left >= this.#left;
    this.#stuckMs = stuck ? this.#stuckMs + Math.min(now - this.#lookedAt, LOOK_MS) : 0;
    this.#lookedAt = now;
  }

  /** Whether what is sent now may arrive; a line that is being closed has not said so yet. */
  get up() {
    return this.#ready && this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Try at once what would be tried later. */
  hurry() {
    this.#wake();
  }

  close() {
    this.#over = true;
    this.#ready = false;
    this.#kept = [];
    removeEventListener("offline", this.#offline);
    this.#wake();
    this.#socket?.close(1000);
    this.#socket = null;
  }

  async #connect(asked) {
    const call = await this.#api.call(asked);
    if (this.#over) return;
    this.#call = call;
    await this.#told.called(call);
    if (this.#over) return;
    const socket = new WebSocket(address(call.ticket, this.#api.caller), PROTOCOL);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    await this.#untilReady(socket);
  }

  #untilReady(socket) {
    return new Promise((up, failed) => {
      const late = setTimeout(() => this.#break(), READY_MS);
      socket.onopen = () => this.#told.open();
      socket.onmessage = ({ data }) => {
        if (this.#over) return;
        const message = typeof data === "string" ? JSON.parse(data) : null;
        if (message?.type === "ready") {
          clearTimeout(late);
          this.#up(message);
          up();
        }
        this.#take(message, data);
      };
      const gone = (code) => {
        clearTimeout(late);
        socket.onmessage = socket.onclose = null;
        failed(new ApiError(0, "The connection failed before the call began. Try again."));
        if (socket === this.#socket) this.#gone(code);
      };
      socket.onclose = ({ code }) => gone(code);
      // a network that is gone answers no goodbye: it is not waited for
      this.#break = () => {
        socket.close(BROKEN);
        gone(BROKEN);
      };
    });
  }

  #gone(code) {
    const wasReady = this.#ready;
    this.#ready = false;
    this.#socket = null;
    if (code === ELSEWHERE) this.#end("elsewhere", false);
    else if (wasReady) this.#again();
  }

  #up(ready) {
    this.#ready = true;
    this.#told.ready(ready);
    for (const message of this.#typed) this.send(message);
    for (const pcm of this.#kept.splice(0)) this.sendAudio(pcm);
  }

  #take(message, data) {
    if (message === null) this.#told.sounds(data);
    else if (message.type === "taken") this.#typed = this.#typed.filter(({ id }) => id !== message.id);
    else if (message.type !== "closed") this.#told.said(message);
    // a server that goes down says so: another may take its place
    else if (!message.resumable) this.#end(message.reason, false);
  }

  async #again() {
    this.#told.lost();
    const started = performance.now();
    for (let wait = FIRST_WAIT_MS; performance.now() - started < PATIENCE_MS; wait = Math.min(2 * wait, LAST_WAIT_MS)) {
      // not all pages at once, when a server comes back
      await this.#pause(wait * (0.75 + Math.random() / 2));
      if (this.#over) return;
      try {
        return await this.#connect({ resume: this.session, media: this.#told.standing() });
      } catch (error) {
        if (this.#over) return;
        if (!PASSING.has(error.status)) return this.#end(error.status === 404 ? "gone" : error.message, false);
      }
    }
    this.#end("unreachable", true);
  }

  #pause(wait) {
    return new Promise((done) => {
      this.#wake = done;
      setTimeout(done, wait);
    });
  }

  #end(reason, resumable) {
    if (this.#over) return;
    this.close();
    this.#told.ended(reason, resumable);
  }
}

function address(ticket, caller) {
  const url = new URL("/api/voice/socket", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("ticket", ticket);
  url.searchParams.set("caller", caller);
  return url.href;
}
