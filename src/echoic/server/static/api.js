// The server's API. Every failure is an ApiError that says what a person can do about it.

const CALLER_HEADER = "X-Echoic-Caller";

export class ApiError extends Error {
  /**
   * @param {number} status 0 where the server could not be reached
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Api {
  /** Whose cookie requests mean; empty for none. The token is in the cookie, where no script can read it. */
  caller = "";

  /** @param {string} path with its query */
  get(path) {
    return this.#send("GET", path);
  }

  /** @param {"POST" | "PUT" | "DELETE"} method */
  send(method, path, body) {
    return this.#send(method, path, body);
  }

  /**
   * Server-sent events of `path`, until it ends or `signal` ends it.
   * @param {(name: string, data: any) => void} told
   */
  async stream(path, signal, told) {
    const response = await this.#ask("GET", path, undefined, signal);
    told("listening", {});
    for await (const { name, data } of events(response)) told(name, data);
  }

  /** Somebody new where nobody is meant; else the cookie is renewed. */
  identity() {
    return this.#send("POST", "/api/cookies");
  }

  /** Exchange a key for a cookie. */
  async signIn(key) {
    return (await this.#ask("POST", "/api/cookies/key", undefined, undefined, { Authorization: `Bearer ${key}` })).json();
  }

  /** Have the browser forget the cookie. */
  signOut() {
    return this.#send("DELETE", "/api/cookies");
  }

  begin() {
    return this.#send("POST", "/api/conversations", {});
  }

  complete(conversation) {
    return this.#send("POST", `/api/conversations/${encodeURIComponent(conversation)}/complete`);
  }

  /**
   * Of the answer to the user's turn `after`, or of the greeting, only so much was heard.
   * @param {string} heard
   * @param {string} [after]
   */
  truncate(conversation, heard, after) {
    return this.#send("POST", `/api/conversations/${encodeURIComponent(conversation)}/truncate`, { heard, after });
  }

  /**
   * Say something; the whole answer, once it is there.
   * @param {(name: "text" | "tool", data: any) => void} coming called with what comes before that
   */
  async say(text, conversation, coming) {
    const started = performance.now();
    const response = await this.#ask("POST", "/api/chat/stream", { text, conversation });
    for await (const { name, data } of events(response)) {
      if (name === "said") return { ...data, elapsed: performance.now() - started };
      if (name === "problem") throw new ApiError(503, sentence(data.error));
      coming(name, data);
    }
    throw new ApiError(0, "The answer was cut off. What you said is stored.");
  }

  /**
   * Be told of memory as it forms, until the line ends.
   * @param {AbortSignal} signal ends it
   * @param {(name: string, data: any) => void} told
   */
  listen(signal, told) {
    return this.stream("/api/events", signal, told);
  }

  profile() {
    return this.#send("GET", "/api/profile");
  }

  /** How many telephones are this caller's, and whether they have a PIN. */
  phones() {
    return this.#send("GET", "/api/phone/links");
  }

  /** Take one memory back: it stays as history. */
  takeBack(id) {
    return this.#send("POST", "/api/memory", { operation: "delete", id });
  }

  /** Destroy one memory, and the words that said it. */
  destroy(id) {
    return this.#send("POST", "/api/forget", { id });
  }

  block() {
    return this.#send("GET", "/api/block");
  }

  jobs() {
    return this.#send("GET", "/api/jobs");
  }

  memories() {
    return this.#send("GET", "/api/memories?history=true");
  }

  forgetEverything() {
    return this.#send("POST", "/api/forget", { everything: true });
  }

  /** How calls are held here: over our socket, over WebRTC, or not at all. */
  voice() {
    return this.#send("GET", "/api/voice").then((answer) => answer.result);
  }

  /**
   * Begin a call, or take one up; the ticket opens a line to it, once and soon.
   * @param {{agent?: string, resume?: string}} asked
   */
  call(asked) {
    return this.#send("POST", "/api/voice/sessions", asked);
  }

  /**
   * Offer the provider of a call a way for its sound.
   * @returns {Promise<string>} the answer, as SDP
   */
  async offer(session, sdp) {
    const path = `/api/voice/sessions/${encodeURIComponent(session)}/offer`;
    return (await this.#ask("POST", path, sdp, undefined, { "Content-Type": "application/sdp" })).text();
  }

  async #send(method, path, body) {
    const started = performance.now();
    const response = await this.#ask(method, path, body);
    const answer = await response.json().catch(() => ({}));
    return { ...answer, elapsed: performance.now() - started };
  }

  async #ask(method, path, body, signal, more = {}) {
    const headers = { [CALLER_HEADER]: this.caller || "new", ...(body !== undefined && { "Content-Type": "application/json" }), ...more };
    const sent = typeof body === "object" ? JSON.stringify(body) : body;
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: sent });
    } catch {
      throw new ApiError(0, "The server cannot be reached. Nothing was lost: try again later.");
    }
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    throw new ApiError(response.status, sentence(answer.error ?? `the server answered ${response.status}`));
  }
}

/** The server-sent events of a response, as they come; comments are left out. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      pending += value;
      const whole = pending.split("\n\n");
      pending = whole.pop();
      for (const text of whole) {
        const fields = new Map(text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
        if (fields.has("event")) yield { name: fields.get("event"), data: JSON.parse(fields.get("data")) };
      }
    }
  } catch {
    throw new ApiError(0, "The connection to the server was lost. Everything acknowledged is stored.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

function sentence(text) {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}
