// What an agent would know of the caller when a session starts: the profile, the block with its tokens, and the jobs.

import { byId, h } from "./dom.js";
import { moment } from "./format.js";

const FIELDS = [
  ["name", "Name"],
  ["age", "Age"],
  ["home", "Home"],
  ["occupation", "Occupation"],
  ["interests", "Interests"],
  ["preferences", "Preferences"],
  ["avoid_topics", "Topics to avoid"],
];
const DIRECTIVES = ["pacing", "verbosity", "formality", "language"];
const SECTIONS = {
  about: "How to read the block",
  experience: "Lessons of this agent",
  profile: "Who is calling",
  directives: "How they want to be served",
  memories: "Other memories",
  conversations: "Conversations that can be recalled",
  now: "Recalled for the current turn",
};

export class ProfilePanel {
  show(profile) {
    const rows = profileRows(profile);
    const wishes = directiveRows(profile);
    byId("profile").replaceChildren(...factRows(rows));
    byId("directives").replaceChildren(...factRows(wishes));
    byId("directives-title").hidden = wishes.length === 0;
    byId("no-profile").hidden = rows.length > 0;
  }
}

/** The fields of a profile that are known: label, value, and whether its source was uncertain. */
export function profileRows(profile) {
  const unsure = new Set(profile.unconfirmed);
  return FIELDS.map(([name, label]) => [label, said(profile[name]), unsure.has(name)]).filter(([, value]) => value);
}

/** How somebody wants to be served, likewise. */
export function directiveRows({ directives }) {
  const wishes = DIRECTIVES.filter((name) => directives[name]).map((name) => [name, directives[name], false]);
  return [...wishes, ...Object.entries(directives.free).map(([name, text]) => [name.replaceAll("_", " "), text, false])];
}

/** Rows as terms and definitions. */
export function factRows(rows) {
  return rows.flatMap(row);
}

function said(value) {
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}

function row([label, value, unsure]) {
  const mark = unsure ? h("span", { class: "tag proposed", title: "Its source was uncertain." }, "unconfirmed") : null;
  return [h("dt", {}, label), h("dd", { dir: "auto" }, String(value), mark ? " " : null, mark)];
}

export class PhonePanel {
  #trust = "";

  /** @param {{phoneTrust: string, phoneTrustMeans: string}} about which calls count as a caller's own */
  about({ phoneTrust, phoneTrustMeans }) {
    this.#trust = phoneTrust;
    byId("phone-trust").textContent = phoneTrustMeans;
  }

  show({ phones, pin, takenAt }) {
    const taken = takenAt.map(moment).join(", ");
    const rows = [
      ["linked", phones === 1 ? "1 telephone" : `${phones} telephones`],
      ["level", this.#trust],
      ["PIN", pin ? "set" : "none"],
      ["taken from you", taken && `${taken}. If that was not you, call from it and say so.`],
    ];
    byId("phone").replaceChildren(...rows.filter(([, value]) => value).flatMap(row));
  }
}

export class BlockPanel {
  #closed = new Set(["about"]);

  show(block) {
    const { tokens, budgetTokens, leftOut } = block;
    byId("tokens").textContent = tokens ? `${tokens}` : "";
    byId("block-tokens").textContent = `${tokens} of ${budgetTokens} tokens${leftOut ? `, ${leftOut} known things left out` : ""}`;
    const meter = byId("block-meter");
    meter.max = budgetTokens;
    meter.value = tokens;
    byId("block-agent").textContent = `What the agent “${block.agent}” is given when a session starts`;
    byId("block").replaceChildren(...block.sections.map((section) => this.#section(section)));
  }

  #section({ name, text, tokens }) {
    const details = h(
      "details",
      { class: "section", "data-section": name, open: !this.#closed.has(name) },
      h(
        "summary",
        {},
        h("span", { class: "name" }, name),
        h("span", { class: "what" }, SECTIONS[name] ?? ""),
        h("span", { class: "ms" }, `${tokens} tokens`),
      ),
      h("pre", { class: "text", dir: "auto" }, text),
    );
    // it is made anew whenever something is learned: what was folded stays folded
    details.addEventListener("toggle", () => (details.open ? this.#closed.delete(name) : this.#closed.add(name)));
    return details;
  }
}

export class JobsPanel {
  show(jobs) {
    const parked = jobs.parked.length;
    const undone = jobs.waiting + jobs.failing + parked;
    byId("undone").textContent = undone ? `${undone}` : "";
    byId("jobs").replaceChildren(
      tile("waiting", jobs.waiting, "conversations to read", ""),
      tile("failing", jobs.failing, "the model failed; it will be retried", jobs.failing ? "proposed" : ""),
      tile("parked", parked, "given up; an operator can retry", parked ? "danger" : ""),
    );
    byId("parked").replaceChildren(
      ...jobs.parked.map((job) =>
        h(
          "li",
          {},
          h("span", { class: "key" }, `conversation ${job.conversation.slice(0, 8)}`),
          h("span", { class: "tag" }, job.reason),
          h("span", { class: "when" }, `${job.attempts} times in a row`),
        ),
      ),
    );
    const vectors = byId("vectors");
    vectors.textContent = jobs.embeddingFailure
      ? `Vectors wait: ${jobs.embeddingFailure}. Turns are stored, and found by their words meanwhile.`
      : "Embedding is up to date.";
    vectors.className = jobs.embeddingFailure ? "note bad" : "note";
  }
}

function tile(name, count, what, kind) {
  return h(
    "li",
    { class: `tile ${kind}`, "data-job": name },
    h("span", { class: "number" }, `${count}`),
    h("span", { class: "label" }, name),
    h("span", { class: "what" }, what),
  );
}
