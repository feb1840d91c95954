// Calls: a list with filters, and one call as a page, or two beside each other.

import { h } from "../dom.js";
import { agentName, CHANNELS, length, STATUSES } from "../format.js";
import { PagedList } from "../paged.js";
import { showCall } from "../call_page.js";

const FILTERS = ["user", "channel", "status", "since", "until"];
const PAGE = 50;

export async function show(root, place, app) {
  // with a key a call is named together with its user: whoever signs in on a call of their own comes to the list
  const named = place.id && (app.role === "user" || place.params.user);
  return named ? one(root, place, app) : list(root, place, app);
}

// -- one, or two

async function one(root, place, app) {
  const { user, other, otherUser } = place.params;
  const asked = [ask(app, place.id, user)];
  if (other) asked.push(ask(app, other, otherUser ?? user));
  const calls = await Promise.all(asked);
  const pages = calls.map((call) => showCall(call, { place, app, alone: calls.length === 1 }));
  root.replaceChildren(h("div", { class: calls.length > 1 ? "beside" : "page wide" }, ...pages.map((page) => page.element)));
  pages[0].goTo(place.params.turn);
  return () => pages.forEach((page) => page.stop());
}

function ask(app, id, user) {
  const query = new URLSearchParams(user && app.role !== "user" ? { user } : {});
  return app.api.get(`/api/calls/${encodeURIComponent(id)}?${query}`);
}

// -- the list

async function list(root, place, app) {
  const rows = h("ol", { class: "rows", "aria-label": "Calls" });
  const empty = h("p", { class: "empty", hidden: true });
  const { with: beside } = place.params;
  root.replaceChildren(
    h(
      "div",
      { class: "page" },
      h("h2", {}, "Calls"),
      beside ? h("p", { class: "note" }, "Choose the call to show beside the first one. ", h("a", { href: app.href({ view: "calls", id: beside, params: { user: place.params.withUser } }) }, "Back to it")) : null,
      filters(place, app),
      rows,
      empty,
    ),
  );
  const none = FILTERS.some((name) => place.params[name]) ? "No call matches these filters." : "No calls yet. A conversation in Try it appears here, as do calls by voice and telephone.";
  const tell = (words) => {
    empty.hidden = !words;
    empty.textContent = words;
  };
  const load = async (cursor) => {
    const page = await app.api.get(`/api/calls?${queryOf(place, cursor)}`);
    tell(rows.children.length || page.calls.length || page.next ? "" : none);
    return { items: page.calls, cursor: page.next };
  };
  const pages = new PagedList(rows, load, drawing(place, app), (error) => tell(error.message));
  await pages.reset();
  return () => pages.close();
}

function filters(place, app) {
  const { params } = place;
  const choose = (name) => (event) => app.go({ ...place, params: { ...params, [name]: event.target.value } });
  const options = (names, all) => [h("option", { value: "" }, all), ...Object.entries(names).map(([value, text]) => h("option", { value }, text))];
  const select = (name, label, names, all) => {
    const element = h("select", { class: "input", onchange: choose(name) }, ...options(names, all));
    element.value = params[name] ?? "";
    return h("label", {}, h("span", {}, label), element);
  };
  const field = (name, label, type) => h("label", {}, h("span", {}, label), h("input", { class: "input", type, value: params[name] ?? "", onchange: choose(name) }));
  const chosen = FILTERS.some((name) => params[name]);
  return h(
    "form",
    { class: "filters", role: "search", "aria-label": "Filter calls", onsubmit: (event) => event.preventDefault() },
    app.role === "user" ? null : field("user", "User", "search"),
    select("channel", "Channel", CHANNELS, "All"),
    select("status", "Outcome", STATUSES, "All"),
    field("since", "From", "date"),
    field("until", "To", "date"),
    chosen ? h("a", { class: "button quiet", href: app.href({ view: "calls" }) }, "Clear") : null,
  );
}

function queryOf({ params }, cursor) {
  const query = new URLSearchParams({ limit: PAGE });
  for (const name of ["user", "channel", "status"]) if (params[name]) query.set(name, params[name]);
  if (params.since) query.set("since", dayOf(params.since, 0));
  if (params.until) query.set("until", dayOf(params.until, 1));
  if (cursor) query.set("cursor", cursor);
  return query;
}

/** Draws calls as they come, newest first, with a heading where another day begins. */
function drawing(place, app) {
  let before = "";
  return (call) => {
    const began = new Date(call.startedAt);
    const day = began.toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
    const heading = day === before ? [] : [h("li", { class: "day" }, h("h3", {}, day))];
    before = day;
    return [...heading, h("li", {}, row(call, began, place, app))];
  };
}

function row(call, began, place, app) {
  return h(
    "a",
    { class: "row", href: hrefOf(call, place, app) },
    h("time", { datetime: call.startedAt }, began.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })),
    h("span", { class: "row-what" }, h("strong", {}, CHANNELS[call.channel]), h("span", { class: "soft" }, call.agents.length ? ` with ${call.agents.map(agentName).join(", then ")}` : "")),
    app.role === "user" ? null : h("span", { class: "row-user soft" }, call.user),
    h("span", { class: "row-length soft" }, length(new Date(call.endedAt ?? call.lastSaidAt ?? began) - began)),
    h("span", { class: "row-state" }, h("span", { class: `tag status ${call.status}` }, STATUSES[call.status])),
  );
}

function hrefOf(call, place, app) {
  const user = app.role === "user" ? "" : call.user;
  const { with: first, withUser } = place.params;
  if (!first) return app.href({ view: "calls", id: call.id, params: { user } });
  return app.href({ view: "calls", id: first, params: { user: withUser, other: call.id, otherUser: user } });
}

/** The beginning of a day of this browser's zone, or of the one after it. */
function dayOf(date, later) {
  const [year, month, day] = date.split("-").map(Number);
  return new Date(year, month - 1, day + later).toISOString();
}

