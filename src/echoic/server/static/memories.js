// What is remembered of the caller: one card a memory, with what it replaced and, on demand, its whole history.

import { byId, h } from "./dom.js";
import { keyWords, moment } from "./format.js";

const VISIBILITY = {
  private: { label: "private", title: "Only this caller's conversations know it." },
  proposed: { label: "proposed", title: "Proposed for everyone; until the operator approves, only this caller sees it." },
  global: { label: "global", title: "Everyone who calls this deployment knows it. Personal data was taken out." },
};

export class MemoryPanel {
  #api;
  #list = byId("memories");
  #seen = new Set();
  #fresh = true;

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.#api = api;
  }

  /** Another caller: nothing that is shown next is new to the eye. */
  reset() {
    this.#seen = new Set();
    this.#fresh = true;
    this.#list.replaceChildren();
  }

  /** Show what holds now; returns it. */
  async refresh() {
    const { memories, history } = await this.#api.memories();
    const past = new Map((history ?? []).map(({ key, versions }) => [key, versions.filter((v) => !v.current)]));
    this.#list.replaceChildren(...memories.toReversed().map((memory) => this.#card(memory, past.get(memory.key) ?? [])));
    this.#seen = new Set(memories.map(nameOf));
    this.#fresh = false;
    byId("nothing").hidden = memories.length > 0;
    byId("count").textContent = memories.length ? `${memories.length}` : "";
    return memories;
  }

  #card(memory, past) {
    const isNew = !this.#fresh && !this.#seen.has(nameOf(memory));
    const visibility = VISIBILITY[memory.visibility] ?? VISIBILITY.private;
    const before = past.at(-1);
    return h(
      "li",
      { class: `card${isNew ? " arrives" : ""}`, "data-key": memory.key ?? "" },
      h(
        "div",
        { class: "said" },
        h("span", { class: "key" }, memory.key ? keyWords(memory.key) : "remembered"),
        h("span", { class: "value", dir: "auto" }, memory.text),
        before ? h("s", { class: "was", dir: "auto", title: `until ${moment(before.validUntil)}` }, before.text) : null,
      ),
      h(
        "div",
        { class: "meta" },
        h("span", { class: "tag" }, memory.category),
        h("span", { class: `tag ${memory.visibility}`, title: visibility.title }, visibility.label),
        h("time", { datetime: memory.validFrom }, `since ${moment(memory.validFrom)}`),
        past.length ? this.#historyButton(memory.key) : null,
      ),
    );
  }

  #historyButton(key) {
    const button = h("button", { type: "button", class: "link", "aria-expanded": "false" }, "history");
    button.addEventListener("click", () => this.#toggleHistory(button, key));
    return button;
  }

  async #toggleHistory(button, key) {
    const card = button.closest(".card");
    const open = card.querySelector(".history");
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      open.remove();
      return;
    }
    try {
      const { versions } = await this.#api.history(key);
      card.append(h("ol", { class: "history", "aria-label": `History of ${keyWords(key)}` }, ...versions.map(version)));
    } catch (error) {
      card.append(h("p", { class: "history" }, error.message));
    }
  }
}

/** What tells a memory from all others: an id is unique only among one's own, or among everyone's. */
function nameOf(memory) {
  return `${memory.visibility === "global" ? "everyone" : "own"} ${memory.id}`;
}

function version(memory) {
  const text = memory.current ? h("span", { dir: "auto" }, memory.text) : h("s", { dir: "auto" }, memory.text);
  const until = memory.current
    ? "holds"
    : `${memory.supersededBy ? "corrected" : "taken back"} ${moment(memory.validUntil)}`;
  return h("li", {}, text, h("span", { class: "when" }, `said ${moment(memory.validFrom)}, ${until}`));
}
