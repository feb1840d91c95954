// A list that grows as it is scrolled: pages come from the server one by one, and what is out of sight costs nothing.

import { h } from "./dom.js";

export class PagedList {
  #list;
  #load;
  #draw;
  #more;
  #seen;
  #cursor = null;
  #busy = false;
  #round = 0;

  /**
   * @param {HTMLElement} list
   * @param {(cursor: string | null) => Promise<{items: any[], cursor: string | null}>} load a page; null: the first
   * @param {(item: any) => Node | Node[]} draw
   * @param {(error: Error) => void} failed
   */
  constructor(list, load, draw, failed) {
    this.#list = list;
    this.#load = load;
    this.#draw = draw;
    this.#more = h("button", { type: "button", class: "button more", hidden: true }, "Show more");
    list.after(this.#more);
    const next = () => this.#next().catch(failed);
    this.#more.addEventListener("click", next);
    this.#seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && next(), {
      rootMargin: "800px",
      scrollMargin: "800px",
    });
  }

  /** Begin again with the first page. */
  async reset() {
    this.#round += 1;
    const round = this.#round;
    const page = await this.#load(null);
    if (round === this.#round) this.#show(page, true);
  }

  close() {
    this.#round += 1;
    this.#seen.disconnect();
  }

  async #next() {
    if (this.#busy || !this.#cursor) return;
    const round = this.#round;
    this.#busy = true;
    try {
      const page = await this.#load(this.#cursor);
      if (round === this.#round) this.#show(page, false);
    } finally {
      this.#busy = false;
    }
  }

  #show({ items, cursor }, first) {
    const drawn = items.flatMap(this.#draw);
    if (first) this.#list.replaceChildren(...drawn);
    else this.#list.append(...drawn);
    this.#cursor = cursor;
    this.#more.hidden = !cursor;
    this.#seen.disconnect(); // watched anew, it tells at once if it is still in sight
    if (cursor) this.#seen.observe(this.#more);
  }
}
