// The server's API. Every failure is an ApiError that says what a person can do about it.

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
  /** The identity token requests are made with; empty for none. */
  token = "";

  identity() {
    return this.#send("POST", "/api/identity", {});
  }

  about() {
    return this.#send("GET", "/api/about");
  }

  begin() {
    return this.#send("POST", "/api/conversations", {});
  }

  complete(conversation) {
    return this.#send("POST", `/api/conversations/${encodeURIComponent(conversation)}/complete`);
  }

  say(text, conversation) {
    return this.#send("POST", "/api/chat", { text, conversation });
  }

  memories() {
    return this.#send("GET", "/api/memories?history=true");
  }

  history(key) {
    return this.#send("GET", `/api/memories/${encodeURIComponent(key)}/history`);
  }

  forgetEverything() {
    return this.#send("POST", "/api/forget", { everything: true });
  }

  async #send(method, path, body) {
    const headers = {};
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const started = performance.now();
    let response;
    try {
      response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch {
      throw new ApiError(0, "The server cannot be reached. Nothing was lost: try again when it is back.");
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new ApiError(response.status, sentence(answer.error ?? `the server answered ${response.status}`));
    return { ...answer, elapsed: performance.now() - started };
  }
}

function sentence(text) {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}
