// The receipt of an erasure, in words: what was destroyed, what lost some words, what stays and why.

import { h } from "./dom.js";
import { bytes } from "./format.js";

const DESTROYED = [
  ["memories", "memory", "memories"],
  ["turns", "sentence", "sentences"],
  ["conversations", "conversation", "conversations"],
  ["vectors", "vector", "vectors"],
  ["other", "other record", "other records"],
];
const KEPT = {
  "means something else": "holds the same value and says something else with it",
  "learned from it": "was learned in the conversation; forget each by itself to destroy it",
  "others taught it too": "was taught by others too, or approved by an operator",
};

/** @param {any} receipt as the server gives it */
export function receiptOf(receipt) {
  const destroyed = DESTROYED.filter(([name]) => receipt[name]).map(([name, one, many]) => counted(receipt[name], one, many));
  const kept = Object.entries(receipt.keptBecause).map(([why, count]) => `${counted(count, "record", "records")}: ${KEPT[why] ?? why}`);
  const rewritten = receipt.rewritten
    ? [`${counted(receipt.rewritten, "record stays", "records stay")}, with “[forgotten]” in place of the words that said it`]
    : [];
  return h(
    "div",
    { class: "receipt-of" },
    h("p", { class: `verdict ${receipt.verified ? "good" : "bad"}` }, verdict(receipt)),
    h(
      "dl",
      { class: "outcomes" },
      ...group("Destroyed", destroyed.length ? destroyed : ["nothing: there was nothing left of it"]),
      ...group("Rewritten", rewritten),
      ...group("Kept", kept),
    ),
    receipt.signed?.signature ? save("Save the signed receipt", "echoic-receipt.json", receipt.signed) : null,
  );
}

function verdict({ verified, bytesSearched }) {
  return verified
    ? `Verified: the ${bytes(bytesSearched)} that are stored were searched afterwards and hold none of it.`
    : "Destroyed, but not verified: what is stored could not be searched afterwards.";
}

function group(name, lines) {
  if (!lines.length) return [];
  return [h("dt", {}, name), h("dd", {}, h("ul", {}, ...lines.map((line) => h("li", {}, line))))];
}

export function counted(count, one, many) {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** A button that saves `data` as a file. */
export function save(label, name, data) {
  return h("button", { type: "button", class: "button", onclick: () => download(name, data) }, label);
}

export function download(name, data) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(data, null, 2)], { type: "application/json" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
