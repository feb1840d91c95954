// One memory as a card: what is known, since when and how surely; unfolded, its life and the sentences behind it.

import { h } from "./dom.js";
import { keyWords, moment } from "./format.js";

const VISIBILITY = {
  private: "Only this person can recall it.",
  proposed: "Proposed as global; until an operator approves it, only this person can recall it.",
  global: "Everyone of this deployment can recall it. Personal data is redacted.",
};

export class MemoryCard {
  #memory;
  #does;
  #more = null;

  /**
   * @param {any} memory
   * @param {{callHref: (turn: any) => string, provenance: () => Promise<any>, opened: (open: boolean) => void, edit: (text: string,
   *   context: string) => Promise<boolean>, hide: () => void, destroy: () => void}} does
   */
  constructor(memory, does) {
    this.#memory = memory;
    this.#does = does;
    this.element = this.#draw();
  }

  get #title() {
    return this.#memory.key ? keyWords(this.#memory.key) : this.#memory.text;
  }

  #draw() {
    const memory = this.#memory;
    const text = memory.current ? "span" : "s";
    return h(
      "li",
      { class: "card memory-card", "data-id": memory.id, "data-key": memory.key ?? "" },
      h(
        "div",
        { class: "said" },
        h("span", { class: "key", dir: "auto" }, memory.key ? keyWords(memory.key) : "remembered"),
        h(text, { class: "value", dir: "auto" }, memory.text),
      ),
      memory.context ? h("p", { class: "context", dir: "auto" }, `when: ${memory.context}`) : null,
      h(
        "div",
        { class: "meta" },
        h("span", { class: "tag" }, memory.category),
        h("span", { class: `tag ${memory.visibility}`, title: memory.reasoning ?? VISIBILITY[memory.visibility] }, memory.visibility),
        memory.confirmed ? null : h("span", { class: "tag proposed", title: "They were not sure of it, or it was heard badly." }, "unconfirmed"),
        memory.timesSaid > 1 ? h("span", {}, `said ${memory.timesSaid} times`) : null,
        h("time", { datetime: memory.validFrom }, memory.current ? `since ${moment(memory.validFrom)}` : until(memory)),
        h("span", { class: "links" }, ...this.#links()),
      ),
    );
  }

  #links() {
    const link = (label, kind, doing, expands = true) =>
      h("button", { type: "button", class: `link ${kind}`, "aria-label": `${label}: ${this.#title}`, "aria-expanded": expands ? "false" : null, onclick: doing }, label);
    return [
      link("Where from", "unfold", (event) => this.#unfold(event.currentTarget)),
      this.#memory.current ? link("Edit", "edit", (event) => this.#open(event.currentTarget, () => this.#form())) : null,
      link("Forget", "forget", (event) => this.#open(event.currentTarget, () => this.#choices())),
    ];
  }

  /** Show what a button is for, or put it away. */
  #open(button, made) {
    const was = button.getAttribute("aria-expanded") === "true";
    this.#close();
    if (was) return null;
    button.setAttribute("aria-expanded", "true");
    this.#more = made();
    this.element.append(this.#more);
    this.#more.querySelector("textarea, button")?.focus();
    return this.#more;
  }

  #close() {
    this.element.querySelectorAll("[aria-expanded=true]").forEach((button) => button.setAttribute("aria-expanded", "false"));
    if (this.#more?.matches(".provenance")) this.#does.opened(false);
    this.#more?.remove();
    this.#more = null;
  }

  async #unfold(button) {
    const box = this.#open(button, () => h("div", { class: "provenance", "aria-busy": "true" }, h("p", { class: "hint" }, "Looking…")));
    if (!box) return;
    this.#does.opened(true);
    try {
      box.replaceChildren(...provenance(this.#memory, await this.#does.provenance(), this.#does.callHref));
    } catch (error) {
      box.replaceChildren(h("p", { class: "notice", role: "alert" }, error.message));
    }
    box.removeAttribute("aria-busy");
  }

  #form() {
    const { id, text, context, key } = this.#memory;
    const words = h("textarea", { id: `text-${id}`, class: "input", rows: 2, maxlength: 4000, required: true, dir: "auto" }, text);
    const when = h("input", { id: `when-${id}`, class: "input", value: context ?? "", maxlength: 1000, dir: "auto" });
    return h(
      "form",
      {
        class: "editing",
        onsubmit: async (event) => {
          event.preventDefault();
          const save = event.target.querySelector("[type=submit]");
          save.disabled = true;
          if (!(await this.#does.edit(words.value.trim(), when.value.trim()))) save.disabled = false;
        },
      },
      h("label", { class: "field", for: `text-${id}` }, key ? `What is known as “${keyWords(key)}”` : "What is known"),
      words,
      h("label", { class: "field", for: `when-${id}` }, "Applies when (may be empty)"),
      when,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "button", onclick: () => this.#dismiss("edit") }, "Cancel"),
        h("button", { type: "submit", class: "button primary" }, "Save"),
      ),
    );
  }

  /** Asks first which of the two is meant: one cannot be undone. */
  #choices() {
    return h(
      "div",
      { class: "forgetting", role: "group", "aria-label": `Forget: ${this.#title}` },
      this.#memory.current ? h("button", { type: "button", class: "button", onclick: this.#does.hide }, "Delete") : null,
      h("button", { type: "button", class: "button danger", onclick: this.#does.destroy }, "Destroy"),
      h("span", { class: "what" }, "Delete hides it and keeps it in the history. Destroy also removes the words that stated it, for good."),
    );
  }

  #dismiss(kind) {
    this.#close();
    this.element.querySelector(`.link.${kind}`).focus();
  }
}

function until(memory) {
  return `${memory.supersededBy && !memory.deleted ? "corrected" : "deleted"} ${moment(memory.validUntil)}`;
}

function provenance(memory, { versions, turns }, callHref) {
  return [
    h("h3", {}, "Its life"),
    h("ol", { class: "life" }, ...versions.map((version) => stage(version, memory, versions))),
    h("h3", {}, turns.length === 1 ? "The sentence behind it" : "The sentences behind it"),
    turns.length ? h("ol", { class: "sentences" }, ...turns.map((turn) => sentence(turn, callHref))) : h("p", { class: "hint" }, unsaid(memory, versions)),
  ];
}

function stage(version, memory, versions) {
  const by = versions.find(({ id }) => id === version.supersededBy);
  const end = version.current ? "holds" : by ? `replaced ${moment(version.validUntil)} by “${by.text}”` : until(version);
  const again = version.timesSaid > 1 && version.updatedAt ? `, said again ${moment(version.updatedAt)}` : "";
  return h(
    "li",
    { class: version.current ? "holds" : null },
    h(version.current ? "span" : "s", { class: "text", dir: "auto" }, version.text),
    h("span", { class: "when", dir: "auto" }, `since ${moment(version.validFrom)}${again}; ${end}`),
    version.confirmed ? null : h("span", { class: "when" }, "unconfirmed: they were not sure of it, or it was heard badly"),
    version.id === memory.id && versions.length > 1 ? h("span", { class: "visually-hidden" }, "this memory") : null,
  );
}

function sentence(turn, callHref) {
  const who = turn.speaker === "user" ? "Caller" : turn.speaker === "agent" ? "Agent" : turn.speaker;
  const sure = turn.confidence === null ? "" : `, heard ${Math.round(100 * turn.confidence)} % surely`;
  return h(
    "li",
    {},
    h("blockquote", { dir: "auto" }, turn.heard ?? turn.text),
    h(
      "p",
      { class: "when" },
      h("span", { dir: "auto" }, `${who}, ${moment(turn.saidAt)}${sure}`),
      " ",
      h("a", { href: callHref(turn) }, "Open the call"),
    ),
  );
}

function unsaid(memory, versions) {
  if (memory.visibility === "global") return "The sentences behind a global memory stay private.";
  return versions.some(({ source }) => source.length)
    ? "The sentence was forgotten, or is more than this level may be told."
    : "Nobody said it in a call: a tool, a backend or an operator wrote it.";
}
