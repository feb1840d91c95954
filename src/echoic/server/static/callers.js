// The callers this browser has been. An identity is a signed token; losing it is losing the way to its memory,
// so each is kept until it is forgotten or refused.

const STORED = "echoic.callers";

export class Callers {
  #callers = [];
  #current = "";

  constructor() {
    try {
      const stored = JSON.parse(localStorage.getItem(STORED) ?? "{}");
      this.#callers = Array.isArray(stored.callers) ? stored.callers.filter((c) => c.user && c.token) : [];
      this.#current = stored.current ?? "";
    } catch {
      // unreadable: as if nobody had been here
    }
  }

  /** Everyone, in the order they came. */
  get all() {
    return this.#callers;
  }

  /** Whoever is speaking; undefined before the first. */
  get current() {
    return this.#callers.find((caller) => caller.user === this.#current) ?? this.#callers.at(-1);
  }

  /** Add or renew one, who speaks from now on. */
  take(user, token) {
    const known = this.#callers.find((caller) => caller.user === user);
    if (known) known.token = token;
    else this.#callers.push({ user, token, name: "" });
    this.choose(user);
  }

  choose(user) {
    this.#current = user;
    this.#keep();
  }

  /** What the memory says this caller is called. */
  name(user, name) {
    const caller = this.#callers.find((one) => one.user === user);
    if (!caller || caller.name === name) return;
    caller.name = name;
    this.#keep();
  }

  drop(user) {
    this.#callers = this.#callers.filter((caller) => caller.user !== user);
    this.#keep();
  }

  #keep() {
    localStorage.setItem(STORED, JSON.stringify({ callers: this.#callers, current: this.#current }));
  }
}

/** What a caller is shown as. */
export function labelOf(caller) {
  return caller.name || `Caller ${caller.user.slice(0, 4)}`;
}
