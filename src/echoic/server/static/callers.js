// The callers this browser has been. The token of each is in a cookie that no script can read, which `caller` names;
// losing it is losing the way to a memory, so each is kept until it is forgotten or refused.

const STORED = "echoic.callers";

export class Callers {
  #callers = [];
  #current = "";
  #dropped = new Set();
  #kept = true;

  constructor() {
    const { callers, current } = stored() ?? { callers: [], current: "" };
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

  /** Add one who is not known yet; they speak from now on. */
  take(user, caller) {
    this.#change(() => {
      if (!this.#named(user)) this.#callers.push({ user, caller, name: "" });
      this.#current = user;
    });
  }

  choose(user) {
    this.#change(() => (this.#current = user));
  }

  /** What the memory says this caller is called. */
  name(user, name) {
    if (this.#named(user)?.name === name) return;
    this.#change(() => {
      const caller = this.#named(user);
      if (caller) caller.name = name;
    });
  }

  drop(user) {
    this.#change(() => {
      this.#callers = this.#callers.filter((caller) => caller.user !== user);
      this.#dropped.add(user);
    });
  }

  #named(user) {
    return this.#callers.find((caller) => caller.user === user);
  }

  #change(work) {
    if (this.#kept) this.#takeIn(stored()?.callers ?? this.#callers);
    work();
    try {
      localStorage.setItem(STORED, JSON.stringify({ callers: this.#callers, current: this.#current }));
      this.#kept = true;
    } catch {
      // a browser that keeps nothing: they are known for as long as the page is open
      this.#kept = false;
    }
  }

  /** What another page of this browser changed since: whom it met or let go, what a name was learned to be. */
  #takeIn(callers) {
    const speaking = this.#callers.filter((one) => one.user === this.#current);
    const here = callers.filter((one) => !this.#dropped.has(one.user));
    const known = new Set(here.map((one) => one.user));
    this.#callers = [...here, ...speaking.filter((one) => !known.has(one.user))];
  }
}

/** What is kept; null where nothing is, or nothing that can be read. */
function stored() {
  try {
    const { callers, current = "" } = JSON.parse(localStorage.getItem(STORED));
    return { callers: callers.filter((c) => c.user && c.caller), current };
  } catch {
    return null;
  }
}

/** What a caller is shown as. */
export function labelOf(caller) {
  return caller.name || `Caller ${caller.user.slice(0, 4)}`;
}
