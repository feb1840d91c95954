// Tabs as assistive technology knows them: one is in the tab order, arrows, Home and End go between them.

import { byId } from "./dom.js";

export class Tabs {
  #tabs;

  /** @param {HTMLElement} list an element with role="tablist" */
  constructor(list) {
    this.#tabs = [...list.querySelectorAll("[role=tab]")];
    for (const tab of this.#tabs) tab.addEventListener("click", () => this.#select(tab));
    list.addEventListener("keydown", (event) => this.#move(event));
    this.#select(this.#tabs[0]);
  }

  #move(event) {
    const at = this.#tabs.indexOf(document.activeElement);
    const count = this.#tabs.length;
    const to = { ArrowRight: (at + 1) % count, ArrowLeft: (at - 1 + count) % count, Home: 0, End: count - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    this.#select(this.#tabs[to]);
    this.#tabs[to].focus();
  }

  #select(chosen) {
    for (const tab of this.#tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !on;
    }
  }
}
