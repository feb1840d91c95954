// What was said, in order, with the days between.

import { byId, h } from "./dom.js";

export class Transcript {
  /** @param {HTMLElement} list */
  constructor(list) {
    this.list = list;
  }

  /** @param {"user" | "agent"} speaker */
  say(speaker, text) {
    if (speaker === "user") byId("intro").hidden = true;
    const who = speaker === "user" ? "You" : "Echoic";
    this.#add(
      h("li", { class: `turn ${speaker}` }, h("span", { class: "speaker" }, who), h("p", { class: "words", dir: "auto" }, text)),
    );
  }

  /** A break between two conversations: "The next day". */
  divide(text) {
    this.#add(h("li", { class: "divider" }, h("span", {}, text)));
  }

  clear() {
    byId("intro").hidden = false;
    this.list.replaceChildren();
  }

  #add(item) {
    this.list.append(item);
    this.list.scrollTop = this.list.scrollHeight;
  }
}
