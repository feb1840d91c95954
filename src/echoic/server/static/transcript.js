// What was said, in order, with the days between. An answer may be shown while it comes.

import { byId, h } from "./dom.js";

const NEAR_THE_END_PX = 120;

export class Transcript {
  #stage;
  #atEnd = true;
  #size = "";

  /** @param {HTMLElement} list */
  constructor(list) {
    this.list = list;
    this.#stage = list.parentElement;
    this.#stage.addEventListener("scroll", () => this.#scrolled());
    // a notice or a smaller window takes room away: what was said last stays in sight, for whoever was looking at it
    new ResizeObserver(() => this.#resized()).observe(this.#stage);
  }

  #resized() {
    this.#size = sizeOf(this.#stage);
    if (this.#atEnd) this.toEnd();
  }

  #scrolled() {
    // an event of before the window changed says nothing of where somebody reads
    if (sizeOf(this.#stage) === this.#size) this.#atEnd = this.#isNearTheEnd();
  }

  /** @param {"user" | "agent"} speaker */
  say(speaker, text) {
    if (speaker === "user") byId("intro").hidden = true;
    const item = turn(speaker, text);
    this.#add(item);
    return item;
  }

  /** What stands under something that was said, such as where an answer comes from. */
  under(item, note) {
    if (!note) return;
    item.append(note);
    if (this.#atEnd) this.toEnd();
  }

  /** An answer that is still coming. */
  hear() {
    return new Coming(this);
  }

  /** A break between two conversations: "The next day". */
  divide(text) {
    this.#add(h("li", { class: "divider", role: "presentation" }, h("span", {}, text)));
  }

  clear() {
    byId("intro").hidden = false;
    this.list.replaceChildren();
  }

  /** Something that is shown as it comes; at the end, or before another item. */
  place(item, before = null) {
    if (item.classList.contains("user")) byId("intro").hidden = true;
    this.#add(item, before);
  }

  /** Show the end of it, unless somebody reads further up. */
  follow() {
    if (this.#isNearTheEnd()) this.toEnd();
  }

  /** Show the end of it. */
  toEnd() {
    this.#stage.scrollTop = this.#stage.scrollHeight;
    this.#atEnd = true;
  }

  #isNearTheEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#stage;
    return scrollHeight - scrollTop - clientHeight < NEAR_THE_END_PX;
  }

  #add(item, before = null) {
    this.list.insertBefore(item, before);
    this.toEnd();
  }
}

/** One answer, from its first sign to its last word. */
class Coming {
  #transcript;
  #item = null;

  constructor(transcript) {
    this.#transcript = transcript;
  }

  /** The model uses a tool. */
  uses(name) {
    if (!this.#item) this.#begin();
    this.#item.querySelector(".using").textContent = `uses ${name}…`;
  }

  add(text) {
    if (!this.#item) this.#begin();
    this.#item.querySelector(".using").textContent = "";
    this.#item.querySelector(".words").append(text);
    this.#transcript.toEnd();
  }

  /** All of it is here: what was shown becomes what was said. */
  end(text) {
    this.#item?.remove();
    return this.#transcript.say("agent", text);
  }

  /** It will not come to its end. */
  breakOff() {
    if (!this.#item) return;
    if (!this.#item.querySelector(".words").textContent) this.#item.remove();
    else this.#item.querySelector(".using").textContent = "broken off";
  }

  #begin() {
    // told to assistive technology once it is whole, not word by word
    this.#item = turn("agent", "", "coming");
    this.#item.setAttribute("aria-hidden", "true");
    this.#item.append(h("span", { class: "using" }));
    this.#transcript.place(this.#item);
  }
}

/** Mark something that was said as not answered: whether it was heard, nobody knows. */
export function unanswered(item) {
  item.append(h("span", { class: "using" }, "not answered"));
}

function sizeOf({ clientWidth, clientHeight }) {
  return `${clientWidth} ${clientHeight}`;
}

function turn(speaker, text, more = "") {
  const who = speaker === "user" ? "You" : "Echoic";
  const kind = more || speaker;
  return h(
    "li",
    { class: `turn ${kind}`, role: "presentation" },
    h("span", { class: "speaker" }, who),
    h("p", { class: "words", dir: "auto" }, text),
  );
}
