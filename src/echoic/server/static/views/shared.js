// Shared: what everyone of the deployment is told, what waits for a decision, and who decided what.

import { ApiError } from "../api.js";
import { h } from "../dom.js";
import { readFacts } from "../fact_file.js";
import { keyWords, moment } from "../format.js";
import { PagedList } from "../paged.js";
import { counted } from "../receipt.js";

const PAGE = 100;
const AT_ONCE = 500;
const BY = "echoic.by";
const SECTIONS = [
  ["facts", "Facts", "What every caller is told. Written by an operator, approved by one, or made global by itself where the deployment allows it."],
  ["proposals", "Proposals", "What callers said about the business, without personal data. Until you approve it, only its author recalls it."],
  ["lessons", "Lessons", "What agents learned by serving callers. Only approved lessons are in a prompt."],
  ["history", "History", "Every decision about facts and lessons, newest first."],
];

export async function show(root, place, app) {
  const shared = new Shared(root, SECTIONS.some(([name]) => name === place.id) ? place.id : "facts", app);
  await shared.show();
  return () => shared.close();
}

class Shared {
  #root;
  #section;
  #app;
  #decides;
  #list = h("ul", { class: "memory-list" });
  #pages = null;
  #items = [];
  #find = h("input", { id: "shared-find", class: "input", type: "search", autocomplete: "off", placeholder: "Find" });
  #by = h("input", { id: "shared-by", class: "input", autocomplete: "name", maxlength: 80, placeholder: "Your name" });
  #status = h("p", { class: "status", role: "status" });
  #trouble = h("p", { class: "notice", role: "alert", hidden: true });
  #count = h("span", { class: "count" });
  #empty = h("p", { class: "empty", hidden: true });
  #tools = h("div", { class: "tools" });
  #tabs = h("nav", { class: "sections", "aria-label": "Shared memory" });

  constructor(root, section, app) {
    this.#root = root;
    this.#section = section;
    this.#app = app;
    this.#decides = app.role === "operator";
  }

  async show() {
    const known = await this.#read();
    this.#draw();
    this.#pages = new PagedList(this.#list, (cursor) => this.#page(Number(cursor ?? 0)), (item) => this.#item(item), (error) => this.#failed(error));
    await this.#show(known);
  }

  close() {
    this.#pages?.close();
  }

  // -- reading

  async #read() {
    const api = this.#app.api;
    const at = (path) => api.get(`${path}?${new URLSearchParams({ deploymentId: this.#app.deployment })}`);
    const [facts, proposals, lessons, history] = await Promise.all(["/api/global", "/api/proposals", "/api/lessons", "/api/decisions"].map(at));
    return { facts: facts.memories.toReversed(), proposals: proposals.proposals, lessons: lessons.lessons, history: history.decisions.toReversed() };
  }

  async #show(known) {
    const waiting = { facts: known.facts.length, proposals: known.proposals.length, lessons: known.lessons.filter(({ state }) => state === "waiting").length };
    this.#tabs.replaceChildren(
      ...SECTIONS.map(([name, label]) =>
        h(
          "a",
          { href: this.#app.href({ view: "shared", id: name }), "aria-current": name === this.#section ? "page" : null },
          label,
          waiting[name] ? h("span", { class: "count" }, ` ${waiting[name]}${name === "lessons" ? " wait" : ""}`) : null,
        ),
      ),
    );
    this.#items = known[this.#section];
    await this.#pages.reset();
  }

  #page(from) {
    const wanted = this.#find.value.trim().toLowerCase();
    const found = wanted ? this.#items.filter((item) => `${item.key ?? ""} ${item.agent ?? ""} ${item.text ?? ""}`.toLowerCase().includes(wanted)) : this.#items;
    this.#count.textContent = wanted ? `${found.length} found` : "";
    this.#empty.hidden = found.length > 0;
    this.#empty.textContent = wanted ? "Nothing contains this." : NOTHING[this.#section];
    const to = from + PAGE;
    return Promise.resolve({ items: found.slice(from, to), cursor: to < found.length ? String(to) : null });
  }

  // -- drawing

  #draw() {
    const [, , about] = SECTIONS.find(([name]) => name === this.#section);
    this.#by.value = keptName();
    this.#by.addEventListener("change", () => keepName(this.#by.value.trim()));
    this.#find.addEventListener("input", () => this.#pages.reset());
    if (this.#decides && this.#section === "facts") this.#tools.append(h("button", { type: "button", class: "button", onclick: () => this.#write() }, "Write a fact"), this.#fileButton());
    this.#root.replaceChildren(
      h(
        "div",
        { class: "records shared" },
        h(
          "div",
          { class: "records-head" },
          h("div", { class: "records-title" }, h("h2", {}, "Shared")),
          this.#decides ? h("label", { class: "by" }, h("span", {}, "Decided by"), this.#by) : h("p", { class: "hint" }, "Read-only: deciding needs a key with the role operator."),
        ),
        this.#tabs,
        h("p", { class: "hint" }, about),
        this.#trouble,
        this.#status,
        h("div", { class: "filter" }, h("label", { for: "shared-find", class: "visually-hidden" }, "Find in this list"), this.#find, this.#count, this.#tools),
        this.#list,
        this.#empty,
      ),
    );
  }

  #item(item) {
    if (this.#section === "facts") return this.#fact(item);
    if (this.#section === "proposals") return this.#proposal(item);
    if (this.#section === "lessons") return this.#lesson(item);
    return decision(item);
  }

  #fact(memory) {
    const how = memory.reasoning ?? "an operator approved it";
    const card = memoryCard(memory, h("span", { class: "how" }, how), h("time", { datetime: memory.validFrom }, `since ${moment(memory.validFrom)}`));
    this.#offer(card, titleOf(memory), [
      ["Edit", "", () => this.#unfold(card, this.#form(memory, (fact) => this.#edit(memory, fact)))],
      ["Withdraw", "danger", () => this.#confirm(card, "Withdraw", "The next recall no longer finds it, and nothing becomes global under its key by itself again.", () => this.#do(() => this.#post(`/api/global/${encodeURIComponent(memory.id)}/withdraw`), `Withdrawn: ${titleOf(memory)}.`))],
    ]);
    return card;
  }

  #proposal(memory) {
    const redacted = memory.redacted.length ? h("span", { class: "tag proposed" }, `taken out: ${memory.redacted.join(", ").toLowerCase()}`) : null;
    const card = memoryCard(memory, h("span", { class: "how" }, memory.reasoning ?? "proposed"), redacted, h("time", { datetime: memory.validFrom }, `said ${moment(memory.validFrom)}`));
    const path = `/api/proposals/${encodeURIComponent(memory.id)}`;
    this.#offer(card, titleOf(memory), [
      ["Approve", "primary", () => this.#do(() => this.#post(`${path}/approve`), `Approved: every caller is told “${memory.text}” from now on.`)],
      ["Edit", "", () => this.#unfold(card, this.#form(memory, (fact) => this.#reword(memory, fact)))],
      ["Reject", "danger", () => this.#do(() => this.#post(`${path}/reject`), "Rejected. Its author keeps it as a private memory.")],
    ]);
    return card;
  }

  #lesson(lesson) {
    const path = `/api/lessons/${encodeURIComponent(lesson.id)}`;
    const post = (what) => this.#post(`${path}/${what}`, undefined, { agent: lesson.agent });
    const card = h(
      "li",
      { class: "card memory-card", "data-id": lesson.id },
      h("div", { class: "said" }, h("span", { class: "key", dir: "auto" }, lesson.agent), h("span", { class: "value", dir: "auto" }, lesson.text)),
      h(
        "div",
        { class: "meta" },
        h("span", { class: `tag ${{ waiting: "proposed", approved: "private" }[lesson.state] ?? ""}` }, lesson.state),
        h("span", { class: "tag" }, lesson.kind.replaceAll("_", " ")),
        h("span", {}, `taught ${counted(lesson.times, "time", "times")}`),
      ),
    );
    const approve = ["Approve", "primary", () => this.#do(() => post("approve"), "Approved: it is in the agent’s prompt from the next call on.")];
    const withdraw = ["Withdraw", "danger", () => this.#do(() => post("withdraw"), "Withdrawn: it is in no prompt any more, however often it is taught again.")];
    const reject = ["Reject", "danger", () => this.#do(() => post("reject"), "Rejected and destroyed. If it is taught again, it waits again.")];
    this.#offer(card, lesson.text, lesson.state === "approved" ? [withdraw] : [approve, reject]);
    return card;
  }

  /** Buttons for what may be decided about a card; none for whoever only reads. */
  #offer(card, title, actions) {
    if (!this.#decides) return;
    const buttons = actions.map(([label, kind, doing]) =>
      h("button", { type: "button", class: `button small ${kind}`, "aria-label": `${label}: ${title}`, onclick: doing }, label),
    );
    card.append(h("div", { class: "decide" }, ...buttons));
  }

  #unfold(card, made) {
    card.querySelector(".editing, .forgetting")?.remove();
    card.append(made);
    made.querySelector("textarea, button").focus();
  }

  #confirm(card, label, what, doing) {
    const made = h(
      "div",
      { class: "forgetting", role: "group", "aria-label": label },
      h("button", { type: "button", class: "button danger", onclick: doing }, label),
      h("button", { type: "button", class: "button", onclick: () => made.remove() }, "Keep it"),
      h("span", { class: "what" }, what),
    );
    this.#unfold(card, made);
  }

  #form(memory, save) {
    const id = memory?.id ?? "new";
    const words = h("textarea", { id: `fact-${id}`, class: "input", rows: 2, maxlength: 4000, required: true, dir: "auto" }, memory?.text ?? "");
    const key = h("input", { id: `key-${id}`, class: "input", value: memory?.key ?? "", maxlength: 200, readonly: Boolean(memory?.key), dir: "auto" });
    const form = h(
      "form",
      { class: "editing" },
      h("label", { class: "field", for: `fact-${id}` }, "What every caller is told"),
      words,
      h("label", { class: "field", for: `key-${id}` }, "Key (setting it again replaces the fact; may be empty)"),
      key,
      h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => form.closest(".new-fact")?.remove() ?? form.remove() }, "Cancel"), h("button", { type: "submit", class: "button primary" }, "Save")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const fact = { text: words.value.trim(), key: key.value.trim() || null };
      if (memory) Object.assign(fact, { category: memory.category, context: memory.context });
      save(fact);
    });
    return form;
  }

  #write() {
    this.#root.querySelector(".new-fact")?.remove();
    const card = h("div", { class: "card new-fact" }, this.#form(null, (fact) => this.#do(() => this.#fill([fact]), "Written: every caller is told it from now on.")));
    this.#list.before(card);
    card.querySelector("textarea").focus();
  }

  #fileButton() {
    const file = h("input", { type: "file", id: "facts-file", class: "visually-hidden", accept: ".txt,.md,.json,.jsonl,text/plain,application/json" });
    file.addEventListener("change", async () => {
      if (file.files.length) this.#preview(readFacts(await file.files[0].text()), file.files[0].name);
      file.value = "";
    });
    return h("span", { class: "file" }, file, h("label", { for: "facts-file", class: "button", title: "A fact on each line: plain, a bullet, or JSON with text and key" }, "Fill from a file…"));
  }

  /** What a file would write, before it does. */
  #preview({ facts, skipped }, name) {
    this.#root.querySelector(".new-fact")?.remove();
    const card = h(
      "div",
      { class: "card new-fact" },
      h("p", { class: "field" }, `${name}: ${counted(facts.length, "fact", "facts")}${skipped.length ? `, ${counted(skipped.length, "line", "lines")} left out` : ""}`),
      h("ol", { class: "preview", tabindex: "0", role: "region", "aria-label": "Facts in the file" }, ...facts.slice(0, 200).map((fact) => h("li", { dir: "auto" }, fact.key ? `${keyWords(fact.key)}: ${fact.text}` : fact.text))),
      skipped.length ? h("p", { class: "hint" }, skipped.slice(0, 5).map(({ line, why }) => `Line ${line}: ${why}.`).join(" ")) : null,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "button", onclick: () => card.remove() }, "Cancel"),
        h("button", { type: "button", class: "button primary", disabled: facts.length === 0, onclick: () => this.#do(() => this.#fill(facts)) }, `Write ${counted(facts.length, "fact", "facts")}`),
      ),
    );
    this.#list.before(card);
    card.querySelector("button:not([disabled])").focus();
  }

  // -- deciding

  #post(path, body, more = {}) {
    const query = new URLSearchParams({ deploymentId: this.#app.deployment, ...more });
    if (this.#by.value.trim()) query.set("by", this.#by.value.trim());
    return this.#app.api.send("POST", `${path}?${query}`, body);
  }

  async #fill(facts) {
    const done = { new: 0, changed: 0, unchanged: 0 };
    for (let at = 0; at < facts.length; at += AT_ONCE) {
      const filled = await this.#post("/api/global", { facts: facts.slice(at, at + AT_ONCE) });
      for (const name of Object.keys(done)) done[name] += filled[name];
    }
    return `Written: ${done.new} new, ${done.changed} changed, ${done.unchanged} there already.`;
  }

  async #edit(memory, fact) {
    await this.#do(async () => {
      await this.#fill([fact]);
      if (!memory.key && (fact.key || fact.text !== memory.text)) await this.#post(`/api/global/${encodeURIComponent(memory.id)}/withdraw`);
    }, `Changed: every caller is told “${fact.text}” from now on.`);
  }

  /** A proposal in the operator's own words: those are written, and the proposal goes. */
  async #reword(memory, fact) {
    await this.#do(async () => {
      await this.#fill([fact]);
      await this.#post(`/api/proposals/${encodeURIComponent(memory.id)}/reject`);
    }, `Written in your words: “${fact.text}”.`);
  }

  async #do(work, said) {
    if (this.#root.hasAttribute("aria-busy")) return; // pressed twice
    this.#trouble.hidden = true;
    this.#root.setAttribute("aria-busy", "true");
    try {
      const result = await work();
      await this.#show(await this.#read());
      this.#root.querySelector(".new-fact")?.remove();
      this.#status.textContent = said ?? result;
      const heading = this.#root.querySelector("h2");
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#root.removeAttribute("aria-busy");
    }
  }

  #failed(error) {
    if (!(error instanceof ApiError)) throw error;
    this.#trouble.textContent = error.message;
    this.#trouble.hidden = false;
    this.#trouble.scrollIntoView({ block: "nearest" });
  }
}

const NOTHING = {
  facts: "Nothing is global yet. Write a fact, or fill from a file with one on each line.",
  proposals: "Nothing waits for a decision.",
  lessons: "No agent has learned anything yet.",
  history: "Nobody has decided anything yet.",
};

function titleOf(memory) {
  return memory.key ? keyWords(memory.key) : memory.text;
}

function memoryCard(memory, ...meta) {
  return h(
    "li",
    { class: "card memory-card", "data-id": memory.id, "data-key": memory.key ?? "" },
    h("div", { class: "said" }, h("span", { class: "key", dir: "auto" }, memory.key ? keyWords(memory.key) : "fact"), h("span", { class: "value", dir: "auto" }, memory.text)),
    memory.context ? h("p", { class: "context", dir: "auto" }, `when: ${memory.context}`) : null,
    h("div", { class: "meta" }, h("span", { class: "tag" }, memory.category), ...meta),
  );
}

function decision({ what, of, key, text, by, at }) {
  const kind = { approved: "private", written: "global", withdrawn: "proposed" }[what] ?? "";
  const about = of === "lesson" ? `lesson of ${key}` : key ? keyWords(key) : "fact";
  return h(
    "li",
    { class: "decision" },
    h("time", { datetime: at }, moment(at)),
    h("span", { class: `tag ${kind}` }, what),
    h("span", { class: "what" }, h("b", { dir: "auto" }, about), text ? h("span", { dir: "auto" }, ` ${text}`) : h("i", {}, " destroyed")),
    h("span", { class: "decider", dir: "auto" }, by),
  );
}

function keptName() {
  try {
    return sessionStorage.getItem(BY) ?? "";
  } catch {
    return "";
  }
}

function keepName(name) {
  try {
    sessionStorage.setItem(BY, name);
  } catch {
    // then it is asked for again
  }
}
