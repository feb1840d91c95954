// Where a memory comes from, as one says it.

import { h } from "./dom.js";
import { keyWords, moment, score } from "./format.js";

/**
 * When it was said, and how surely it was heard.
 * @param {{saidAt?: string | null, confidence?: number | null}} said
 */
export function sourceOf({ saidAt, confidence }) {
  if (!saidAt) return "";
  const surely = confidence === null || confidence === undefined ? "" : `, heard ${Math.round(100 * confidence)} % surely`;
  return `said ${moment(saidAt)}${surely}`;
}

/**
 * The sentence under an answer: from which memory or sentence it comes, and the ranks of all that was found behind a click.
 * @param {{outcome: string, hits: any[]}} recall as the answer or a call's record holds it; null: nothing was searched
 * @param {string} answer
 */
export function provenance(recall, answer) {
  if (!recall) return null;
  if (!recall.hits.length) {
    const known = recall.outcome === "complete";
    return h("p", { class: "source none" }, known ? "Nothing is known about this: everything was searched." : "The search was incomplete: something may be known.");
  }
  const hits = recall.hits.map(asHit);
  const told = hits.find((hit) => hit.value && says(answer, hit.value)) ?? hits.find((hit) => says(answer, hit.text));
  const hit = told ?? hits[0];
  const words = told ? "From" : "Closest in memory:";
  return h(
    "details",
    { class: "source" },
    h("summary", {}, `${words} “${hit.text.replace(/\.$/, "")}”${hit.global ? ", known to everyone" : ""}${hit.saidAt ? `, ${sourceOf(hit)}` : ""}`),
    h("ol", {}, ...hits.map((one) => h("li", {}, h("span", { dir: "auto" }, one.text), h("span", { class: "soft" }, ` ${one.about}`)))),
  );
}

function asHit(hit) {
  const ranks = Object.entries(hit.ranks).map(([name, rank]) => `${name} #${rank.rank ?? rank}`);
  const memory = hit.memory ?? null;
  const key = hit.key ?? memory?.key;
  return {
    text: memory?.statement ?? hit.text ?? "forgotten since",
    value: memory?.text ?? hit.value ?? "",
    global: hit.scope === "global",
    saidAt: hit.saidAt ?? hit.turn?.saidAt ?? memory?.validFrom,
    confidence: hit.confidence ?? hit.turn?.confidence,
    about: [key ? keyWords(key) : "a sentence", ...ranks, `score ${score(hit.score)}`].join(" · "),
  };
}

function says(answer, text) {
  return Boolean(text) && answer.toLowerCase().includes(text.toLowerCase().replace(/[.!?]$/, ""));
}
