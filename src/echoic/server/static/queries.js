// What the model asked of memory with its tools, typed or in a call: what for, what came of it, and how it was found.

import { byId, h } from "./dom.js";
import { ms } from "./format.js";
import { hits } from "./operations.js";

const OUTCOMES = {
  failed: "failed; the model was told",
  unavailable: "the search was incomplete",
  deadline: "the best hits in time",
};
const KEPT = 60;

export class QueriesPanel {
  #list = byId("queries");
  #count = 0;

  /** One use of a tool, as the server tells of it. */
  add(used) {
    this.#count += 1;
    this.#list.prepend(entry(used));
    while (this.#list.children.length > KEPT) this.#list.lastElementChild.remove();
    this.#show();
  }

  clear() {
    this.#count = 0;
    this.#list.replaceChildren();
    this.#show();
  }

  #show() {
    byId("no-queries").hidden = this.#count > 0;
    byId("queries-count").textContent = this.#count ? `${this.#count}` : "";
  }
}

function entry(used) {
  const { memory, recall } = used;
  return h(
    "li",
    { class: "card query", "data-operation": used.operation },
    h(
      "div",
      { class: "meta" },
      h("span", { class: "tag operation-name" }, used.operation.replace(/_/g, " ")),
      memory ? h("span", { class: `tag ${memory.visibility}` }, memory.visibility) : null,
      recall ? h("span", { class: "tag" }, recall.searchType) : null,
      h("time", { datetime: new Date().toISOString() }, new Date().toLocaleTimeString()),
      h("span", { class: "ms" }, ms(used.durationMs)),
    ),
    h("dl", { class: "asked" }, ...rows(used).flatMap(([name, text]) => [h("dt", {}, name), h("dd", { dir: "auto" }, text)])),
    recall ? hits(recall) : null,
    recall ? pipeline(recall.pipeline) : null,
  );
}

function rows(used) {
  const { memory, recall } = used;
  const trouble = OUTCOMES[used.outcome] ?? OUTCOMES[recall?.outcome];
  const value = memory ? memory.text : used.value;
  return [
    ["query", used.query],
    ["key", used.key],
    ["value", used.operation === "get" && !memory && !trouble ? "nothing is known" : value],
    ["why", memory?.reasoning ? `${memory.visibility}: ${memory.reasoning}` : ""],
    ["deleted", used.deleted === null ? "" : used.deleted ? "deleted; it stays in the history" : "nothing to delete"],
    ["outcome", trouble],
  ].filter(([, text]) => text);
}

function pipeline(steps) {
  const text = JSON.stringify(steps, null, 2);
  return h(
    "details",
    { class: "found" },
    h("summary", {}, "the search pipeline"),
    h("pre", { class: "scroll pipeline", tabindex: "0", role: "region", "aria-label": "Pipeline" }, text),
  );
}
