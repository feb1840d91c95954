// One person: what is known of them, the life of each memory and the sentences behind it, and what may be kept.

import { Api, ApiError } from "./api.js";
import { h } from "./dom.js";
import { MemoryCard } from "./memory_card.js";
import { PagedList } from "./paged.js";
import { AccessPanel, ConsentPanel, profilePanel } from "./person_panels.js";
import { counted, download, receiptOf } from "./receipt.js";

const PAGE = 60;
const NEXT_PAGE = 200; // whoever scrolls on wants more of them
const PIECE_BYTES = 100_000;

/** The server as one person: this browser's caller, or whoever an operator's key gets a cookie for. */
class Acting {
  #api = null;
  #until = 0;

  constructor(user, app) {
    this.user = user;
    this.app = app;
  }

  async get(path) {
    return (await this.#as()).get(path);
  }

  async send(method, path, body) {
    return (await this.#as()).send(method, path, body);
  }

  async #as() {
    if (this.app.role === "user") return this.app.api;
    if (Date.now() < this.#until) return this.#api;
    const path = `/api/cookies/people?${new URLSearchParams({ deploymentId: this.app.deployment })}`;
    const given = await this.app.api.send("POST", path, { user: this.user });
    this.#api = new Api();
    this.#api.caller = given.caller;
    this.#until = new Date(given.expiresAt) - 60_000;
    return this.#api;
  }
}

export class Person {
  #root;
  #place;
  #app;
  #acting;
  #list = h("ul", { class: "memory-list" });
  #pages;
  #status = h("p", { class: "status", role: "status" });
  #trouble = h("p", { class: "notice", role: "alert", hidden: true });
  #count = h("span", { class: "count" });
  #empty = h("p", { class: "empty", hidden: true });
  #name = h("h2", { dir: "auto" });
  #dialog = h("dialog", { "aria-labelledby": "person-dialog-title" });
  #side = h("aside", { class: "person-side", "aria-label": "About this person" });
  #told = () => this.#later();
  #again = 0;

  constructor(root, place, app) {
    this.#root = root;
    this.#place = place;
    this.#app = app;
    this.#acting = new Acting(place.id, app);
    this.#dialog.addEventListener("close", () => this.#focusName());
  }

  /** Named in addresses by whoever may see everyone; a caller's token says it already. */
  get #whose() {
    return this.#app.role === "user" ? "" : this.#place.id;
  }

  get #state() {
    return this.#place.params.show === "past" ? "past" : "current";
  }

  async show() {
    const asked = ["/api/profile", "/api/consent", "/api/phone/links", "/api/assurance"].map((path) => this.#acting.get(path));
    const [profile, consent, phones, assurance] = await Promise.all(asked);
    this.#draw();
    this.#pages = new PagedList(this.#list, (cursor) => this.#load(cursor), (memory) => this.#card(memory), (error) => this.#failed(error));
    this.#drawSide(profile, consent, phones, assurance);
    await this.#pages.reset();
    await this.#point();
    if (this.#app.role === "user") this.#app.events.addEventListener("memory", this.#told);
  }

  close() {
    clearTimeout(this.#again);
    this.#pages?.close();
    this.#app.events.removeEventListener("memory", this.#told);
  }

  // -- drawing

  #draw() {
    const operator = this.#app.role !== "user";
    const past = this.#state === "past";
    const tab = (show, label) => {
      const here = (show === "past") === past;
      return h("a", { href: this.#href({ show }), "aria-current": here ? "page" : null }, label);
    };
    this.#root.replaceChildren(
      h(
        "div",
        { class: "records person" },
        operator ? h("a", { class: "back", href: this.#app.href({ view: "people" }) }, "← People") : null,
        h(
          "div",
          { class: "records-head" },
          h("div", { class: "records-title" }, this.#name, h("span", { class: "who-id", dir: "auto" }, this.#place.id)),
          h(
            "div",
            { class: "buttons" },
            h("a", { class: "button", href: this.#app.href({ view: "calls", params: { user: this.#whose } }) }, "Calls"),
            h("button", { type: "button", class: "button", onclick: () => this.#try(() => this.#export()) }, "Export"),
            operator ? this.#importButton() : null,
            h("button", { type: "button", class: "button danger", onclick: () => this.#askErasure() }, "Forget…"),
          ),
        ),
        this.#trouble,
        this.#status,
        h(
          "div",
          { class: "person-columns" },
          h(
            "section",
            { class: "person-main", "aria-label": past ? "No longer current" : "What is known" },
            h("nav", { class: "sections", "aria-label": "Memories" }, tab("", "Known"), tab("past", "No longer current"), this.#count),
            this.#list,
            this.#empty,
          ),
          this.#side,
        ),
        this.#dialog,
      ),
    );
  }

  #href(params) {
    return this.#app.href({ view: "people", id: this.#whose, params });
  }

  #drawSide(profile, consent, phones, assurance) {
    this.#name.textContent = profile.name ?? "No name known";
    const change = (work) => this.#try(work);
    const self = this.#app.role === "user";
    this.#side.replaceChildren(
      profilePanel(profile),
      new ConsentPanel(this.#acting, change, (text) => this.#say(text)).draw(consent.consent),
      new AccessPanel(this.#acting, change, (text) => this.#say(text), self).draw(phones, assurance),
    );
  }

  async #load(cursor) {
    const query = new URLSearchParams({ state: this.#state, limit: cursor ? NEXT_PAGE : PAGE });
    if (cursor) query.set("cursor", cursor);
    const page = await this.#acting.get(`/api/memories?${query}`);
    this.#count.textContent = counted(page.total, "memory", "memories");
    this.#empty.hidden = page.total > 0;
    this.#empty.textContent =
      this.#state === "past" ? "Nothing was corrected or deleted." : "Nothing is known about this person that you may be told.";
    return { items: page.memories.toReversed(), cursor: page.cursor };
  }

  #card(memory) {
    return new MemoryCard(memory, {
      callHref: (turn) => this.#app.href({ view: "calls", id: turn.conversation, params: { user: this.#whose, turn: turn.id } }),
      provenance: () => this.#acting.get(`/api/memories/${encodeURIComponent(memory.id)}/provenance`),
      opened: (open) => this.#keep(open ? memory.id : ""),
      edit: (text, context) => this.#try(() => this.#edit(memory, text, context)),
      hide: () => this.#try(() => this.#hide(memory)),
      destroy: () => this.#try(() => this.#destroy(memory)),
    }).element;
  }

  #keep(memory) {
    this.#place.params = { ...this.#place.params, memory };
    this.#app.keep({ view: "people", id: this.#whose, params: this.#place.params });
  }

  /** The memory that the address names is unfolded, and fetched where it is on no page yet. */
  async #point() {
    const name = this.#place.params.memory;
    if (!name) return;
    let card = this.#list.querySelector(`[data-id="${CSS.escape(name)}"]`);
    if (!card) {
      const found = await this.#acting.get(`/api/memories/${encodeURIComponent(name)}/provenance`).catch(() => null);
      const memory = found?.versions.find(({ id }) => id === name);
      if (!memory) return;
      card = this.#card(memory);
      this.#list.prepend(card);
    }
    card.querySelector(".unfold").click();
    card.scrollIntoView({ block: "nearest" });
  }

  #later() {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      if (this.#list.querySelector("form, .forgetting, .provenance")) return this.#later(); // somebody is reading or writing
      return this.#refresh().catch(() => {});
    }, 150);
  }

  async #refresh() {
    const [profile] = await Promise.all([this.#acting.get("/api/profile"), this.#pages.reset()]);
    this.#name.textContent = profile.name ?? "No name known";
    this.#side.querySelector(".profile-panel")?.replaceWith(profilePanel(profile));
  }

  // -- what is done

  async #try(work) {
    if (this.#root.hasAttribute("aria-busy")) return false; // pressed twice
    this.#trouble.hidden = true;
    this.#root.setAttribute("aria-busy", "true");
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#failed(error);
      return false;
    } finally {
      this.#root.removeAttribute("aria-busy");
    }
  }

  #failed(error) {
    this.#trouble.textContent = error.message;
    this.#trouble.hidden = false;
    this.#trouble.scrollIntoView({ block: "nearest" });
  }

  #say(text) {
    this.#status.textContent = text;
  }

  async #edit(memory, text, context) {
    const said = { category: memory.category, context: context || null };
    if (memory.key) {
      const visibility = memory.visibility === "private" ? "private" : "auto";
      await this.#acting.send("PUT", `/v1/keys/${encodeURIComponent(memory.key)}`, { value: text, visibility, ...said });
    } else {
      const kept = await this.#acting.send("POST", "/v1/memories", { text, ...said });
      if (kept.id !== memory.id) await this.#acting.send("POST", "/api/memory", { operation: "delete", id: memory.id });
    }
    await this.#refresh();
    this.#say("Changed. What was known before stays under “No longer current”.");
    this.#focusName();
  }

  /** The focus has a place where the card or dialog that had it is gone. */
  #focusName() {
    this.#name.tabIndex = -1;
    this.#name.focus({ preventScroll: true });
  }

  async #hide(memory) {
    await this.#acting.send("POST", "/api/memory", { operation: "delete", id: memory.id });
    await this.#refresh();
    this.#say("Deleted: nothing recalls it any more. It stays under “No longer current” until it is destroyed.");
    this.#focusName();
  }

  async #destroy(memory) {
    const receipt = await this.#acting.send("POST", "/api/forget", { id: memory.id });
    this.#showReceipt(receipt);
    await this.#refresh();
  }

  #showReceipt(receipt) {
    this.#say("Forgotten.");
    this.#dialog.replaceChildren(
      h("h2", { id: "person-dialog-title" }, "Forgotten"),
      receiptOf(receipt),
      h("div", { class: "actions" }, h("button", { type: "button", class: "button primary", autofocus: true, onclick: () => this.#dialog.close() }, "Done")),
    );
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.querySelector(".primary").focus();
  }

  #askErasure() {
    const day = (id, label) => h("div", {}, h("label", { for: id, class: "field" }, label), h("input", { id, class: "input", type: "date" }));
    const choice = (value, label, checked) =>
      h("label", { class: "choice" }, h("input", { type: "radio", name: "what", value, checked }), h("span", {}, label));
    const days = h("div", { class: "days", hidden: true }, day("forget-since", "From"), day("forget-until", "Up to and with"));
    const trouble = h("p", { class: "notice", role: "alert", hidden: true });
    const form = h(
      "form",
      { onsubmit: (event) => this.#erase(event, trouble) },
      h("h2", { id: "person-dialog-title" }, `Forget ${this.#name.textContent}?`),
      h("p", {}, "Records, words and vectors are destroyed in the store, and the stored bytes are searched afterwards. This cannot be undone."),
      h("fieldset", { class: "choices", onchange: (event) => (days.hidden = event.target.value !== "span" && event.target.name === "what") }, h("legend", { class: "visually-hidden" }, "What to forget"), choice("everything", "Everything that is kept", true), choice("span", "What was said or kept within some days", false)),
      days,
      trouble,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "button", autofocus: true, onclick: () => this.#dialog.close() }, "Keep it"),
        h("button", { type: "submit", class: "button danger solid" }, "Forget"),
      ),
    );
    this.#dialog.replaceChildren(form);
    this.#dialog.showModal();
  }

  async #erase(event, trouble) {
    event.preventDefault();
    const form = event.target;
    const asked = form.elements.what.value === "everything" ? { everything: true } : span(form);
    trouble.hidden = Boolean(asked);
    trouble.textContent = "Choose at least one day.";
    if (!asked) return;
    try {
      this.#showReceipt(await this.#acting.send("POST", "/api/forget", asked));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      trouble.textContent = error.message;
      trouble.hidden = false;
      return;
    }
    await this.#try(() => this.#refresh());
  }

  async #export() {
    const { elapsed: _elapsed, ...exported } = await this.#acting.get("/api/export");
    download(`echoic-${this.#place.id}.json`, exported);
    this.#say("Exported.");
  }

  #importButton() {
    const file = h("input", { type: "file", id: "import-file", class: "visually-hidden", accept: ".json,application/json" });
    file.addEventListener("change", async () => {
      if (file.files.length) await this.#try(() => this.#import(file.files[0]));
      file.value = "";
    });
    return h("span", { class: "file" }, file, h("label", { for: "import-file", class: "button" }, "Import…"));
  }

  async #import(file) {
    let exported;
    try {
      exported = JSON.parse(await file.text());
    } catch {
      throw new ApiError(0, "This file is not JSON. Choose a file that Export or “echoic export” wrote.");
    }
    if (!exported?.format) throw new ApiError(0, "This file is no export. Choose a file that Export or “echoic export” wrote.");
    const path = `/api/users/${encodeURIComponent(this.#place.id)}/import?${new URLSearchParams({ deploymentId: this.#app.deployment })}`;
    let records = 0;
    for (const piece of pieces(exported)) records += (await this.#app.api.send("POST", path, piece).catch(tooLarge)).records;
    await this.#refresh();
    this.#say(`Imported: ${counted(records, "record is", "records are")} new.`);
  }
}

/** The days of the form as a span of time; null where none was chosen. */
function span(form) {
  const day = (id, more) => {
    const value = form.querySelector(`#${id}`).value;
    if (!value) return null;
    const at = new Date(`${value}T00:00`);
    at.setDate(at.getDate() + more);
    return at.toISOString();
  };
  const asked = { since: day("forget-since", 0), until: day("forget-until", 1) };
  return asked.since || asked.until ? asked : null;
}

function tooLarge(error) {
  if (error.status !== 413) throw error;
  throw new ApiError(413, "One record of this file is larger than the server takes in a request. Import the file with “echoic import”.");
}

/** An export as several, each small enough for one request. */
function* pieces(exported) {
  const { memories = [], conversations = [], items = [], ...rest } = exported;
  const { format, version, deployment, user } = exported;
  const head = { format, version, deployment, user };
  yield { ...rest, memories: [], conversations: [] };
  for (const some of cut(memories)) yield { ...head, memories: some, conversations: [] };
  for (const conversation of conversations) {
    const said = [...cut(conversation.turns ?? [])].map((turns) => ({ turns, results: [] }));
    const done = [...cut(conversation.results ?? [])].map((results) => ({ turns: [], results }));
    const parts = said.length + done.length ? [...said, ...done] : [{ turns: [], results: [] }];
    parts.at(-1).read = conversation.read; // the turn that was read last must be there when it is named
    for (const part of parts) yield { ...head, memories: [], conversations: [{ ...conversation, read: null, ...part }] };
  }
  for (const some of cut(items)) yield { ...head, memories: [], conversations: [], items: some };
}

function* cut(items) {
  let piece = [];
  let size = 0;
  for (const item of items) {
    const more = new TextEncoder().encode(JSON.stringify(item)).length;
    if (piece.length && size + more > PIECE_BYTES) {
      yield piece;
      [piece, size] = [[], 0];
    }
    piece.push(item);
    size += more;
  }
  if (piece.length) yield piece;
}
