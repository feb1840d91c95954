// Beside a person's memories: who they are, whether anything may be kept, and how they prove who they are.

import { h } from "./dom.js";
import { moment } from "./format.js";
import { directiveRows, factRows, profileRows } from "./known.js";

export function profilePanel(profile) {
  const known = profileRows(profile);
  const wishes = directiveRows(profile);
  return panel(
    "Profile",
    "profile-panel",
    known.length ? h("dl", { class: "facts" }, ...factRows(known)) : h("p", { class: "hint" }, "Nothing is known under the keys of a profile."),
    wishes.length ? h("h4", {}, "How they want to be served") : null,
    wishes.length ? h("dl", { class: "facts" }, ...factRows(wishes)) : null,
  );
}

function panel(title, kind, ...children) {
  return h("section", { class: `side-panel ${kind}`, "aria-label": title }, h("h3", {}, title), ...children);
}

const CONSENT = [
  ["keep", "Keep", "What they say is kept and learned from."],
  ["ask", "Ask first", "In each conversation, nothing is kept until they agree."],
  ["never", "Never", "Nothing is kept beyond the running conversation. What is kept already stays until it is forgotten."],
];

export class ConsentPanel {
  #acting;
  #change;
  #say;

  constructor(acting, change, say) {
    this.#acting = acting;
    this.#change = change;
    this.#say = say;
  }

  draw(consent) {
    let holds = consent;
    const form = h(
      "fieldset",
      { class: "choices" },
      h("legend", { class: "visually-hidden" }, "May what they say be kept?"),
      ...CONSENT.map(([value, label, means]) =>
        h(
          "label",
          { class: "choice" },
          h("input", { type: "radio", name: "consent", value, checked: value === consent }),
          h("span", {}, h("b", {}, label), h("span", { class: "means" }, means)),
        ),
      ),
    );
    form.addEventListener("change", async ({ target }) => {
      const done = await this.#change(() => this.#acting.send("PUT", "/api/consent", { consent: target.value }));
      if (done) {
        holds = target.value;
        this.#say("Consent changed. It holds from now on.");
      } else {
        form.querySelector(`[value=${holds}]`).checked = true;
      }
    });
    return panel("Consent", "consent-panel", form);
  }
}

const LEVELS = {
  device: ["Device", "a page’s own anonymous identity"],
  unattested: ["Unattested", "a number that nobody vouches for"],
  attested: ["Attested", "a number that the carrier vouches for"],
  linked: ["Linked", "such a number, linked by a code"],
  proved: ["Proved", "a PIN or a code given in the call"],
  account: ["Account", "your own sign-in or backend"],
};
const TOLD = { open: "nothing personal", personal: "what is personal", sensitive: "everything" };

export class AccessPanel {
  #acting;
  #change;
  #say;
  #self;

  constructor(acting, change, say, self) {
    this.#acting = acting;
    this.#change = change;
    this.#say = say;
    this.#self = self;
  }

  draw(phones, assurance) {
    const element = panel("Devices and lines", "access-panel", this.#lines(phones), this.#levels(assurance));
    return element;
  }

  #lines({ phones, pin, takenAt }) {
    const taken = takenAt.map(moment).join(", ");
    const rows = [
      ["Telephones", phones ? `${phones} linked` : "none linked", false],
      ["PIN", pin ? "set" : "none", false],
      ["Taken away", taken, false],
    ];
    const button = (label, method, path, said) => h("button", { type: "button", class: "button", onclick: () => this.#do(method, path, said) }, label);
    return h(
      "div",
      { class: "lines" },
      h("dl", { class: "facts" }, ...factRows(rows.filter(([, value]) => value))),
      h(
        "div",
        { class: "buttons" },
        phones ? button("Unlink all telephones", "POST", "/api/phone/unlink", "Unlinked. The next caller from each is told.") : null,
        pin ? button("Remove the PIN", "DELETE", "/api/phone/pin", "The PIN is removed: none is accepted.") : null,
      ),
    );
  }

  async #do(method, path, said) {
    const done = await this.#change(async () => {
      await this.#acting.send(method, path);
      const lines = this.#lines(await this.#acting.get("/api/phone/links"));
      document.querySelector(".access-panel .lines").replaceWith(lines);
    });
    if (done) this.#say(said);
  }

  #levels({ level, levels }) {
    return h(
      "table",
      { class: "levels" },
      h("caption", {}, "What is told, by how sure it is who asks"),
      h("thead", { class: "visually-hidden" }, h("tr", {}, h("th", { scope: "col" }, "Level"), h("th", { scope: "col" }, "Told"))),
      h(
        "tbody",
        {},
        ...Object.entries(levels).map(([name, most]) => {
          const [label, evidence] = LEVELS[name] ?? [name, ""];
          const here = name === level;
          return h(
            "tr",
            { class: here ? "here" : null },
            h("th", { scope: "row" }, label, here ? h("span", { class: "tag private" }, this.#self ? "you" : "you act as") : null, h("span", { class: "means" }, evidence)),
            h("td", {}, TOLD[most] ?? most),
          );
        }),
      ),
    );
  }
}
