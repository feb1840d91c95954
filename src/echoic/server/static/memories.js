// What is remembered of the caller: one card a memory, with what it replaced struck through and its whole history.

import { byId, h } from "./dom.js";
import { keyWords, moment } from "./format.js";

const VISIBILITY = {
  private: { label: "private", title: "Only this caller can recall it." },
  proposed: { label: "proposed", title: "Proposed as global; until an operator approves it, only this caller can recall it." },
  global: { label: "global", title: "Every caller of this deployment can recall it. Personal data is redacted." },
};

export class MemoryPanel {
  #list = byId("memories");
  #seen = new Set();
  #fresh = true;
  #unfolded = new Set();
  #forget;
  #choosing = "";

  /** @param {(memory: any, how: "take back" | "destroy") => void} forget called when one is to be forgotten */
  constructor(forget) {
    this.#forget = forget;
  }

  /** Another caller: nothing that is shown next is new to the eye. */
  reset() {
    this.#seen = new Set();
    this.#unfolded = new Set();
    this.#choosing = "";
    this.#fresh = true;
    this.#list.replaceChildren();
  }

  /** Show what holds now, and what no longer does. */
  show({ memories, past }) {
    const earlier = new Past(past ?? []);
    const cards = memories.toReversed().map((memory) => this.#card(memory, earlier.of(memory)));
    const focused = this.#focused();
    this.#list.replaceChildren(...cards);
    this.#focus(focused);
    this.#seen = new Set(memories.map(nameOf));
    this.#fresh = false;
    this.#showGone(earlier.rest);
    byId("nothing").hidden = memories.length > 0;
    byId("count").textContent = memories.length ? `${memories.length}` : "";
  }

  /** Which button has the focus, for cards are made anew whenever something is learned. */
  #focused() {
    const button = this.#list.contains(document.activeElement) ? document.activeElement : null;
    return button && { name: button.closest(".card").dataset.name, words: button.textContent };
  }

  #focus(focused) {
    if (!focused) return;
    const card = [...this.#list.children].find((one) => one.dataset.name === focused.name);
    [...(card?.querySelectorAll("button") ?? [])].find((button) => button.textContent === focused.words)?.focus();
  }

  #showGone(memories) {
    byId("gone").hidden = memories.length === 0;
    byId("gone-count").textContent = `${memories.length}`;
    byId("gone-list").replaceChildren(...memories.toReversed().map(version));
  }

  #card(memory, past) {
    const isNew = !this.#fresh && !this.#seen.has(nameOf(memory));
    const visibility = VISIBILITY[memory.visibility] ?? VISIBILITY.private;
    const before = past.at(-1);
    const card = h(
      "li",
      { class: `card${isNew ? " arrives" : ""}`, "data-key": memory.key ?? "", "data-name": nameOf(memory) },
      h(
        "div",
        { class: "said" },
        h("span", { class: "key" }, memory.key ? keyWords(memory.key) : "remembered"),
        h("span", { class: "value", dir: "auto" }, memory.text),
        before ? h("s", { class: "was", dir: "auto", title: `until ${moment(before.validUntil)}` }, before.text) : null,
      ),
      memory.context ? h("p", { class: "context", dir: "auto" }, memory.context) : null,
      h(
        "div",
        { class: "meta" },
        h("span", { class: "tag" }, memory.category),
        h("span", { class: `tag ${memory.visibility}`, title: visibility.title }, visibility.label),
        h("time", { datetime: memory.validFrom }, `since ${moment(memory.validFrom)}`),
        h("span", { class: "links" }, past.length ? this.#historyButton(memory, past) : null, this.#forgetButton(memory)),
      ),
    );
    if (past.length && this.#unfolded.has(nameOf(memory))) card.append(history(memory, past));
    if (this.#choosing === nameOf(memory)) card.append(this.#choices(memory));
    return card;
  }

  #historyButton(memory, past) {
    const name = nameOf(memory);
    const button = h("button", { type: "button", class: "link", "aria-expanded": String(this.#unfolded.has(name)) }, "history");
    button.addEventListener("click", () => {
      const card = button.closest(".card");
      const open = card.querySelector(".history");
      button.setAttribute("aria-expanded", String(!open));
      if (open) {
        open.remove();
        this.#unfolded.delete(name);
      } else {
        card.append(history(memory, past));
        this.#unfolded.add(name);
      }
    });
    return button;
  }

  /** Asks first which of the two is meant: one cannot be undone. */
  #forgetButton(memory) {
    const open = this.#choosing === nameOf(memory);
    const label = `forget ${titleOf(memory)}`;
    const button = h("button", { type: "button", class: "forget-one", "aria-expanded": String(open), "aria-label": label }, "forget");
    button.addEventListener("click", () => {
      const wasOpen = this.#choosing === nameOf(memory);
      this.#choosing = wasOpen ? "" : nameOf(memory);
      this.#list.querySelectorAll(".forgetting").forEach((choices) => choices.remove());
      this.#list.querySelectorAll(".forget-one").forEach((other) => other.setAttribute("aria-expanded", String(!wasOpen && other === button)));
      if (wasOpen) return;
      const choices = this.#choices(memory);
      button.closest(".card").append(choices);
      choices.querySelector("button").focus();
    });
    return button;
  }

  #choices(memory) {
    const choose = (how) => () => {
      this.#choosing = "";
      this.#forget(memory, how);
    };
    return h(
      "div",
      { class: "forgetting", role: "group", "aria-label": `Forget ${titleOf(memory)}` },
      h("button", { type: "button", class: "button", onclick: choose("take back") }, "Delete"),
      h("button", { type: "button", class: "button danger", onclick: choose("destroy") }, "Destroy"),
      h("span", { class: "what" }, "Delete keeps it in the history. Destroy also removes the words that stated it."),
    );
  }
}

/** What holds no longer, told apart by what took its place. */
class Past {
  #byKey = new Map();
  #byName = new Map();
  #left;

  constructor(memories) {
    for (const memory of memories) {
      this.#byName.set(nameOf(memory), memory);
      if (memory.key) this.#byKey.set(memory.key, [...(this.#byKey.get(memory.key) ?? []), memory]);
    }
    this.#left = new Set(memories);
  }

  /** Everything that `memory` took the place of, oldest first: of its key, and what it corrected under another. */
  of(memory) {
    const found = new Set(memory.key ? (this.#byKey.get(memory.key) ?? []) : []);
    for (let at = memory; at?.supersedes; ) {
      const corrected = this.#byName.get(nameOf({ ...at, id: at.supersedes }));
      if (!corrected || (found.has(corrected) && corrected === at)) break;
      found.add(corrected);
      at = corrected;
    }
    for (const one of found) this.#left.delete(one);
    return [...found].sort((a, b) => a.validFrom.localeCompare(b.validFrom));
  }

  /** What nothing took the place of: taken back. */
  get rest() {
    return [...this.#left];
  }
}

/** What tells a memory from all others: an id is unique only among one's own, or among everyone's. */
function nameOf(memory) {
  return `${memory.visibility === "global" ? "everyone" : "own"} ${memory.id}`;
}

function titleOf(memory) {
  return memory.key ? keyWords(memory.key) : memory.text;
}

function history(memory, past) {
  const label = `History of ${memory.key ? keyWords(memory.key) : "what is remembered"}`;
  return h("ol", { class: "history", "aria-label": label }, ...[...past, memory].map(version));
}

function version(memory) {
  const text = memory.current ? h("span", { dir: "auto" }, memory.text) : h("s", { dir: "auto" }, memory.text);
  const until = memory.current
    ? "current"
    : `${memory.supersededBy && !memory.deleted ? "corrected" : "deleted"} ${moment(memory.validUntil)}`;
  return h("li", {}, text, h("span", { class: "when" }, `said ${moment(memory.validFrom)}, ${until}`));
}
