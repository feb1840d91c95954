// People: everyone that something is kept about, and what is known of one of them.

import { h } from "../dom.js";
import { PagedList } from "../paged.js";
import { Person } from "../person.js";
import { counted } from "../receipt.js";

const PAGE = 100;

export async function show(root, place, app) {
  const one = app.role === "user" ? app.user : place.id;
  if (!one) return showEveryone(root, place, app);
  const person = new Person(root, { ...place, id: one }, app);
  await person.show();
  return () => person.close();
}

async function showEveryone(root, place, app) {
  const opens = app.role === "operator";
  const list = h("ul", { class: "everyone" });
  const count = h("span", { class: "count", role: "status" });
  const nobody = h("p", { class: "empty", hidden: true });
  const find = h("input", { id: "people-find", class: "input", type: "search", value: place.params.find ?? "", autocomplete: "off", placeholder: "Any part of an id" });
  const trouble = h("p", { class: "notice", role: "alert", hidden: true });
  const failed = (error) => {
    trouble.textContent = error.message;
    trouble.hidden = false;
  };
  root.replaceChildren(
    h(
      "div",
      { class: "records" },
      h(
        "div",
        { class: "records-head" },
        h("div", { class: "records-title" }, h("h2", {}, "People"), count),
        h("form", { role: "search", class: "find", onsubmit: (event) => event.preventDefault() }, h("label", { for: "people-find", class: "visually-hidden" }, "Find by id"), find),
      ),
      opens ? null : h("p", { class: "hint" }, "This key may list people. Reading what is known of one needs a key with the role operator."),
      trouble,
      list,
      nobody,
    ),
  );

  async function load(cursor) {
    const query = new URLSearchParams({ deploymentId: app.deployment, limit: PAGE, containing: find.value });
    if (cursor) query.set("cursor", cursor);
    const page = await app.api.get(`/api/users?${query}`);
    trouble.hidden = true;
    count.textContent = counted(page.total, "person", "people");
    nobody.textContent = find.value ? "Nobody’s id contains this." : "Nothing is kept of anybody yet.";
    nobody.hidden = page.total > 0;
    return { items: page.users, cursor: page.cursor };
  }

  function row({ user, name }) {
    const words = [h("span", { class: "who-name", dir: "auto" }, name ?? "No name known"), h("span", { class: "who-id", dir: "auto" }, user)];
    return h("li", {}, opens ? h("a", { href: app.href({ view: "people", id: user }) }, ...words) : h("div", {}, ...words));
  }

  const pages = new PagedList(list, load, row, failed);
  let typed = 0;
  find.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => {
      app.keep({ view: "people", params: { find: find.value } });
      pages.reset().catch(failed);
    }, 200);
  });
  await pages.reset();
  return () => pages.close();
}
