// The callers this browser has been. An identity is a signed token; losing it is losing the way to its memory,
// so each is kept until it is forgotten or refused.

const STORED = "echoic.callers";

export class Callers {
  #callers = [];
  #current = "";
  #dropped = new Set();

  constructor() {
    const { callers, current } = stored();
    this.#callers = callers;
    this.#current = current;
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
    this.#dropped.add(user);
    this.#keep();
  }

  #keep() {
    // another page of this browser may have met somebody since: whoever is not kept is lost
    const known = new Set([...this.#callers.map((caller) => caller.user), ...this.#dropped]);
    this.#callers.push(...stored().callers.filter((caller) => !known.has(caller.user)));
    try {
      localStorage.setItem(STORED, JSON.stringify({ callers: this.#callers, current: this.#current }));
    } catch {
      // a browser that keeps nothing: they are known for as long as the page is open
    }
  }
}

function stored() {
  try {
    const { callers, current = "" } = JSON.parse(localStorage.getItem(STORED) ?? "{}");
    return { callers: Array.isArray(callers) ? callers.filter((c) => c.user && c.token) : [], current };
  } catch {
    // unreadable: as if nobody had been here
    return { callers: [], current: "" };
  }
}

/** What a caller is shown as. */
export function labelOf(caller) {
  return caller.name || `Caller ${caller.user.slice(0, 4)}`;
}
