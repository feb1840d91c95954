// What is remembered of the caller: one card a memory, with what it replaced struck through and its whole history.

import { byId, h } from "./dom.js";
import { keyWords, moment } from "./format.js";

const VISIBILITY = {
  private: { label: "private", title: "Only this caller's conversations know it." },
  proposed: { label: "proposed", title: "Proposed for everyone; until the operator approves, only this caller sees it." },
  global: { label: "global", title: "Everyone who calls this deployment knows it. Personal data was taken out." },
};

export class MemoryPanel {
  #list = byId("memories");
  #seen = new Set();
  #fresh = true;
  #unfolded = new Set();

  /** Another caller: nothing that is shown next is new to the eye. */
  reset() {
    this.#seen = new Set();
    this.#unfolded = new Set();
    this.#fresh = true;
    this.#list.replaceChildren();
  }

  /** Show what holds now, and what no longer does. */
  show({ memories, past }) {
    const earlier = new Past(past ?? []);
    const cards = memories.toReversed().map((memory) => this.#card(memory, earlier.of(memory)));
    this.#list.replaceChildren(...cards);
    this.#seen = new Set(memories.map(nameOf));
    this.#fresh = false;
    this.#showGone(earlier.rest);
    byId("nothing").hidden = memories.length > 0;
    byId("count").textContent = memories.length ? `${memories.length}` : "";
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
      { class: `card${isNew ? " arrives" : ""}`, "data-key": memory.key ?? "" },
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
        past.length ? this.#historyButton(memory, past) : null,
      ),
    );
    if (past.length && this.#unfolded.has(nameOf(memory))) card.append(history(memory, past));
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

function history(memory, past) {
  const label = `History of ${memory.key ? keyWords(memory.key) : "what is remembered"}`;
  return h("ol", { class: "history", "aria-label": label }, ...[...past, memory].map(version));
}

function version(memory) {
  const text = memory.current ? h("span", { dir: "auto" }, memory.text) : h("s", { dir: "auto" }, memory.text);
  const until = memory.current
    ? "holds"
    : `${memory.supersededBy ? "corrected" : "taken back"} ${moment(memory.validUntil)}`;
  return h("li", {}, text, h("span", { class: "when" }, `said ${moment(memory.validFrom)}, ${until}`));
}
