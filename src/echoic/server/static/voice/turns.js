// The turns of a call as they are heard: words that grow, and of a turn that was cut off, what nobody heard.

import { h } from "../dom.js";
import { unanswered } from "../transcript.js";

export class Turns {
  #transcript;
  #shown = new Map();
  #typed = [];
  #kept = new Set();

  /** @param {import("../transcript.js").Transcript} transcript */
  constructor(transcript) {
    this.#transcript = transcript;
  }

  /** Something typed, shown before the server says which turn it became. */
  typed(text) {
    const item = element({ id: "", speaker: "user", text, final: true });
    this.#typed.push({ text, item });
    this.#transcript.place(item);
  }

  /**
   * @param {{id: string, speaker: "user" | "agent", agent?: string, text: string, final: boolean, heard?: string}} turn
   * @param {boolean} kept whether it is told as a turn that was kept: these come in the order of the conversation
   */
  show(turn, kept = false) {
    if (kept) this.#kept.add(turn.id);
    if (turn.speaker === "user" && !this.#shown.has(turn.id)) this.#recognise(turn);
    const before = this.#shown.get(turn.id);
    if (!turn.text.trim()) {
      // heard as nothing after all
      if (turn.final) before?.remove();
      return;
    }
    if (!turn.final && before && sameKind(before, turn)) return this.#grow(before, turn);
    const item = element(turn);
    this.#shown.set(turn.id, item);
    if (before?.isConnected) before.replaceWith(item);
    else this.#transcript.place(item, kept ? this.#firstNotKept() : null);
    this.#transcript.follow();
  }

  /** What was said and not kept yet. A turn of before a reload may be kept after words of now were shown. */
  #firstNotKept() {
    const kept = new Set([...this.#kept].map((id) => this.#shown.get(id)));
    const items = [...this.#shown.values(), ...this.#typed.map(({ item }) => item)];
    const later = items.filter((item) => item.isConnected && !kept.has(item));
    return later.reduce((first, item) => (first && follows(item, first) ? first : item), null);
  }

  /** The line broke: how much was heard of what the agent was saying is not known until the server says so. */
  broken() {
    const [item] = [...this.#shown.values()].reverse().filter((one) => one.matches(".agent"));
    if (!item || item.dataset.heard || item.querySelector(".using")) return;
    item.classList.add("broken");
    item.append(h("span", { class: "using" }, "disconnected here"));
  }

  /** What was typed as `text` did not reach the call. */
  unanswered(text) {
    const item = this.#takeTyped(text);
    if (item) unanswered(item);
  }

  #recognise({ id, text }) {
    const item = this.#takeTyped(text);
    if (item) this.#shown.set(id, item);
  }

  #takeTyped(text) {
    const place = this.#typed.findIndex((one) => one.text === text);
    return place < 0 ? null : this.#typed.splice(place, 1)[0].item;
  }

  #grow(item, turn) {
    item.querySelector(".words").replaceChildren(...words(turn));
    this.#transcript.follow();
  }
}

function follows(item, other) {
  return Boolean(other.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING);
}

function sameKind(item, turn) {
  return item.classList.contains(turn.final ? turn.speaker : "growing");
}

function element(turn) {
  const who = turn.speaker === "user" ? "You" : turn.agent || "Echoic";
  // told to assistive technology once it is whole, not word by word
  const growing = turn.final ? {} : { "aria-hidden": "true" };
  return h(
    "li",
    { role: "presentation", class: `turn ${turn.speaker}${turn.final ? "" : " growing"}`, "data-turn": turn.id, "data-heard": extent(turn), ...growing },
    h("span", { class: "speaker" }, who),
    h("p", { class: "words", dir: "auto" }, ...words(turn)),
  );
}

/** How much of a turn was heard, once that is known. */
function extent({ text, heard }) {
  if (heard === undefined || heard === null) return null;
  return heardLength(text, heard) < text.trimEnd().length ? "part" : "all";
}

/** The text; what was not heard of it is struck through, and named so to whoever does not see that. */
function words({ text, heard }) {
  if (extent({ text, heard }) !== "part") return [text];
  const rest = text.slice(heardLength(text, heard)).trimStart();
  return [
    text.slice(0, text.length - rest.length),
    h("span", { class: "visually-hidden" }, "Never heard: "),
    h("s", { class: "unheard", title: "Interrupted: this was never heard." }, rest),
  ];
}

/** Where in `text` ends what was heard: by letters, or by words where the spaces differ. */
function heardLength(text, heard) {
  if (text.startsWith(heard)) return heard.length;
  const count = heard.split(/\s+/).filter(Boolean).length;
  return text.match(new RegExp(`^\\s*(?:\\S+\\s*){0,${count}}`))[0].trimEnd().length;
}
