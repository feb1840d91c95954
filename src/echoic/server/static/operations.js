// What memory did, step by step: how long it took, what it changed, and where each channel ranked what was found.

import { byId, h } from "./dom.js";
import { keyWords, ms, score } from "./format.js";

const OUTCOMES = {
  complete: "everything was searched",
  deadline: "the best hits in time",
  unavailable: "the search was incomplete",
};
const CHANNELS = ["vector", "late", "text", "fuzzy", "window"];
const MEANINGS = {
  vector: "by meaning: the cosine of the whole text",
  late: "by meaning, word piece by word piece, over a turn and its neighbours",
  text: "by words: BM25",
  fuzzy: "by words with similar spelling or sound",
  window: "by the words of neighbouring turns",
};
const KEPT = 60;

export class OperationLog {
  #list = byId("operations");

  /**
   * One thing that was asked of memory.
   * @param {string} title
   * @param {{name: string, ms?: number, detail?: string, kind?: string, outcome?: string, body?: Node}[]} steps
   */
  add(title, steps) {
    byId("idle").hidden = true;
    this.#list.querySelectorAll("details[open]").forEach((details) => details.removeAttribute("open"));
    const total = steps.reduce((sum, step) => sum + (step.within ? 0 : (step.ms ?? 0)), 0);
    const entry = h(
      "li",
      { class: "operation" },
      h("p", { class: "title" }, h("span", { dir: "auto" }, title), h("span", { class: "ms" }, ms(total))),
      h("ul", { class: "steps" }, ...steps.map(row)),
    );
    this.#list.prepend(entry);
    while (this.#list.children.length > KEPT) this.#list.lastElementChild.remove();
  }

  clear() {
    this.#list.replaceChildren();
    byId("idle").hidden = false;
  }
}

function row(step) {
  return h(
    "li",
    { class: `step ${step.kind ?? ""}` },
    h("span", { class: "name" }, step.name),
    h(
      "span",
      { class: "detail", dir: "auto" },
      step.outcome ? h("span", { class: `tag outcome ${step.outcome}` }, step.outcome) : null,
      step.outcome ? " " : null,
      step.detail ?? "",
    ),
    h("span", { class: "ms" }, step.ms === undefined ? "" : ms(step.ms)),
    step.body ?? null,
  );
}

/** What a model learned after the answer, as the log shows it. */
export function stepsOfLearned(told) {
  const learned = { stored: told.added, superseded: told.superseded, retracted: told.retracted };
  const confirmed = told.confirmed.length ? `${told.confirmed.length} heard again` : "";
  const detail = [learnedWords(learned), confirmed].filter(Boolean).join(", ");
  return [{ name: "distil", ms: told.durationMs, detail }, ...changesOf(learned)];
}

/** The steps of one reply, as the log shows them. */
export function stepsOfReply(reply) {
  const changes = changesOf(reply);
  const steps = [];
  for (const [name, elapsed] of Object.entries(reply.timings)) {
    const step = { name, ms: elapsed };
    if (name === "append") step.detail = "your turn, durable first";
    if (name === "distil") step.detail = changes.length ? learnedWords(reply) : "nothing new";
    if (name === "first words") Object.assign(step, { detail: "by the model, given the memory block", within: true });
    if (name === "answer" && reply.timings["first words"] !== undefined) step.detail = "the model's whole answer";
    if (name === "append answer") step.detail = "what the agent said";
    if (name === "forget") step.detail = `${reply.receipt.records} records, ${reply.receipt.verified ? "verified gone" : "not verified"}`;
    if (name === "recall") {
      step.detail = recallWords(reply);
      step.outcome = reply.recall.outcome;
      step.body = hits(reply.recall);
    }
    steps.push(step);
    if (name === "distil") steps.push(...changes);
  }
  return steps;
}

function learnedWords({ stored, retracted }) {
  const parts = [stored.length ? `${stored.length} learned` : "", retracted.length ? `${retracted.length} taken back` : ""];
  return parts.filter(Boolean).join(", ");
}

function changesOf({ stored, superseded, retracted }) {
  const old = new Map(superseded.flatMap((memory) => [[memory.id, memory], [memory.key ?? memory.id, memory]]));
  const changes = stored.map((memory) => {
    const before = old.get(memory.supersedes) ?? old.get(memory.key);
    const name = before ? "supersede" : "set";
    const value = before ? `${before.text} → ${memory.text}` : memory.text;
    return { name, kind: "change", detail: `${memory.key ? keyWords(memory.key) : "remembered"}: ${value}` };
  });
  return changes.concat(
    retracted.map((memory) => ({ name: "retract", kind: "change", detail: `${keyWords(memory.key ?? "")}: ${memory.text}` })),
  );
}

function recallWords({ recall }) {
  const counted = recall.hits.length === 1 ? "1 hit" : `${recall.hits.length} hits`;
  const silent = recall.outcome === "complete" ? "nothing known" : "no hits";
  const found = recall.hits.length ? counted : silent;
  const cut = recall.cut.length ? `, without ${recall.cut.join(", ")}` : "";
  return `${found}: ${OUTCOMES[recall.outcome]}${cut}`;
}

/** That nothing was found: an answer only where it could look everywhere. */
function silence({ outcome }) {
  const looked = outcome === "complete";
  const words = looked
    ? "Nothing is known about this. The search was complete, and nothing is likely to answer."
    : "The search was incomplete, so something may be known about this. Ask again.";
  return h("p", { class: looked ? "none" : "none open", "data-outcome": outcome }, words);
}

/** What a recall found, and where each channel ranked it. */
export function hits(recall) {
  if (!recall.hits.length) return silence(recall);
  const names = [...new Set(recall.hits.flatMap((hit) => Object.keys(hit.ranks)))];
  const channels = CHANNELS.filter((name) => names.includes(name)).concat(names.filter((name) => !CHANNELS.includes(name)));
  return h(
    "details",
    { class: "found", open: true },
    h("summary", {}, "where each channel ranked it"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Hits" },
      h(
        "table",
        { class: "hits" },
        h("thead", {}, h("tr", {}, th("found"), ...channels.map((name) => th(name, MEANINGS[name])), th("score"))),
        h("tbody", {}, ...recall.hits.map((hit, place) => hitRow(hit, place, channels))),
      ),
    ),
  );
}

function th(text, title) {
  return h("th", { scope: "col", title }, text);
}

function hitRow(hit, place, channels) {
  const source = hit.memory ? keyWords(hit.memory.key ?? "remembered") : hit.turn.speaker === "user" ? "you said" : "agent said";
  return h(
    "tr",
    { class: hit.memory ? "memory" : "turn" },
    h(
      "th",
      { scope: "row" },
      h(
        "div",
        {},
        h("span", { class: "place" }, `${place + 1}`),
        h("span", { class: "source" }, source),
        h("span", { class: "text", dir: "auto", title: hit.text }, hit.text),
      ),
    ),
    ...channels.map((name) => channelCell(hit.ranks[name])),
    h("td", { class: "fused" }, score(hit.score)),
  );
}

function channelCell(rank) {
  if (!rank) return h("td", { class: "absent" }, "–");
  return h("td", {}, h("b", {}, `#${rank.rank}`), " ", h("span", { class: "raw" }, score(rank.score)));
}
