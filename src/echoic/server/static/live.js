// What is learned while the page is open, told by the server as it happens. A line that breaks is taken up again.

const FIRST_WAIT_MS = 1000;
const LAST_WAIT_MS = 15000;

export class Live {
  #api;
  #told;
  #state;
  #line = null;
  #wanted = false;
  #caller = "";

  /**
   * @param {import("./api.js").Api} api
   * @param {(name: string, data: any) => void} told called with each event, and with "listening" when a line is up
   * @param {(on: boolean) => void} state called when listening begins and ends
   */
  constructor(api, told, state) {
    this.#api = api;
    this.#told = told;
    this.#state = state;
    // a browser has few lines to one server: a page that nobody sees leaves its own to others
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#hangUp() : this.#wanted && this.#listen()));
    addEventListener("pagehide", () => this.#hangUp());
  }

  /** Listen for whoever is speaking now, and for nobody else any more. */
  follow() {
    if (this.#line && this.#caller === this.#api.caller) return;
    this.#hangUp();
    this.#caller = this.#api.caller;
    this.#wanted = true;
    if (!document.hidden) this.#listen();
  }

  stop() {
    this.#wanted = false;
    this.#hangUp();
  }

  #hangUp() {
    this.#line?.abort();
    this.#line = null;
    this.#state(false);
  }

  async #listen() {
    if (this.#line) return;
    const line = new AbortController();
    this.#line = line;
    let wait = FIRST_WAIT_MS;
    while (!line.signal.aborted) {
      try {
        await this.#api.listen(line.signal, (name, data) => {
          if (line.signal.aborted) return;
          if (name === "listening") {
            wait = FIRST_WAIT_MS;
            this.#state(true);
          }
          this.#told(name, data);
        });
      } catch (error) {
        if (error.status === 401) return;
      }
      if (line.signal.aborted) return;
      this.#state(false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, LAST_WAIT_MS);
    }
  }
}
