// The console: who is here, which views they may open, and the place in the address that says which one is shown.

import { Api, ApiError } from "./api.js";
import { Callers, labelOf } from "./callers.js";
import { byId, h } from "./dom.js";
import { Live } from "./live.js";
import { parsed, written } from "./places.js";

/** Every view, in the order of the navigation. A view is the module `views/<name>.js`, which exports `show`. */
const VIEWS = [
  { name: "try", title: "Try it", roles: ["user", "agent", "operator", "auditor", "read-only"] },
  { name: "calls", title: "Calls", roles: ["user", "operator", "read-only"] },
  { name: "people", title: "People", roles: ["user", "operator", "read-only"] },
  { name: "shared", title: "Shared", roles: ["operator", "read-only"] },
  { name: "health", title: "Health", roles: ["operator", "read-only"] },
];
const KEY = "echoic.key";
const ROLES = { agent: "Agent", operator: "Operator", auditor: "Auditor", "read-only": "Read-only" };

const callers = new Callers();
const roots = new Map();
let leave = null;
let shown = null;
let visit = 0;
/** Done once whoever was chosen in another view is who speaks. */
let choosing = Promise.resolve();

/**
 * What every view is given.
 * `api`: the server, as whoever is signed in: with a key, or as this browser's caller.
 * `caller`: the server as this browser's caller, whose conversation is tried.
 * `user`: whose memory `api` means; "" with a key, which means every user of `deployment`.
 * `events`: dispatches "memory" with `detail` {name, data}, as the server tells what happens to the caller's memory, and
 * "who" when somebody else is here.
 */
const app = {
  api: new Api(),
  caller: new Api(),
  callers,
  events: new EventTarget(),
  about: null,
  user: "",
  role: "user",
  deployment: "",
  go: (place) => (location.hash = written(place)),
  href: written,
  /** The address of what is shown already: no new step in the history. */
  keep: (place) => {
    if (shown?.view !== place.view) return;
    history.replaceState(null, "", written(place));
    shown = parsed(location.hash);
  },
  arrive,
  meet,
  choose,
  renamed: (name) => {
    callers.name(callers.current?.user, name);
    showWho();
  },
  refused,
};
app.live = new Live(app.caller, (name, data) => tell("memory", { name, data }), (on) => tell("listening", on));

function tell(name, detail) {
  app.events.dispatchEvent(new CustomEvent(name, { detail }));
}

// -- who is here

/** What the server is, and whom this browser was last; somebody new where it was nobody yet. */
async function arrive() {
  app.about ??= await app.api.get("/api/about");
  if (app.caller.caller) return;
  if (callers.current) await renew();
  else if (app.role === "user") await meet();
}

/** Somebody new, who speaks from now on. */
async function meet() {
  app.caller.caller = "";
  await take();
}

/** One of those whom this browser knows speaks from now on. */
async function choose(user) {
  callers.choose(user);
  await renew();
}

async function renew() {
  app.caller.caller = callers.current.caller;
  await take();
}

async function take() {
  const identity = await app.caller.identity();
  callers.take(identity.user, identity.caller);
  app.caller.caller = identity.caller;
  if (app.role === "user") {
    app.api.caller = identity.caller;
    app.user = identity.user;
    app.deployment = identity.deploymentId;
  }
  showWho();
}

/** The server knows this identity no longer: it is dropped, with its cookie. */
function refused() {
  // where nobody was meant nobody was refused: whoever else this browser knows is still good
  if (app.caller.caller && callers.current) {
    callers.drop(callers.current.user);
    forget(app.caller.caller);
  }
  app.caller.caller = "";
  if (app.role === "user") app.api.caller = "";
  app.live.stop();
  showWho();
  byId("caller").selectedIndex = -1; // so that any of them can be chosen
}

/** Have the browser forget a cookie; one that it cannot be told to forget ends by itself. */
function forget(caller) {
  const leaving = new Api();
  leaving.caller = caller;
  leaving.signOut().catch(() => {});
}

/** With a key, all that its role may see; without, this browser's caller. */
async function signIn(key) {
  signedIn(await new Api().signIn(key));
}

/** Go on with the key that was given in this tab before. */
async function stayIn(caller) {
  const asking = new Api();
  asking.caller = caller;
  signedIn({ ...(await asking.get("/api/access")), caller });
}

function signedIn(access) {
  app.api.caller = access.caller;
  Object.assign(app, { role: access.role, user: "", deployment: access.deploymentId });
  keepKey(access.caller);
  showWho();
}

function signOut() {
  forget(app.api.caller);
  keepKey("");
  Object.assign(app, { role: "user", user: callers.current?.user ?? "" });
  app.api.caller = app.caller.caller;
  showWho();
}

/** Which cookie stands for the key, for this tab alone: other tabs are this browser's callers still. */
function keepKey(caller) {
  try {
    if (caller) sessionStorage.setItem(KEY, caller);
    else sessionStorage.removeItem(KEY);
  } catch {
    // then the key is asked for again
  }
}

function keptKey() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function showWho() {
  const select = byId("caller");
  const current = callers.current;
  select.replaceChildren(
    ...callers.all.map((caller) => h("option", { value: caller.user, selected: caller === current }, labelOf(caller))),
  );
  select.disabled = callers.all.length === 0;
  const keyed = app.role !== "user";
  byId("role").textContent = ROLES[app.role] ?? "";
  byId("role").hidden = !keyed;
  byId("sign-in").hidden = keyed;
  byId("sign-out").hidden = !keyed;
  byId("caller-chip").hidden = keyed && shown?.view !== "try";
  showNavigation();
}

// -- places

function views() {
  return VIEWS.filter((view) => view.roles.includes(app.role));
}

function showNavigation() {
  const list = byId("nav");
  const at = shown?.view;
  list.parentElement.hidden = views().length < 2;
  const names = views().map((view) => view.name).join();
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...views().map(({ name, title }) => h("li", {}, h("a", { href: written({ view: name }), "data-view": name }, title))));
  }
  for (const link of list.querySelectorAll("a")) {
    if (link.dataset.view === at) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Show what the address says. */
async function route() {
  const asked = parsed(location.hash);
  const view = views().find(({ name }) => name === asked.view) ?? views()[0];
  const place = view.name === asked.view ? asked : { view: view.name, id: "", params: {} };
  const moved = shown !== null && shown.view !== place.view;
  visit += 1;
  const mine = visit;
  shown = place;
  await leaveView();
  const root = rootOf(view);
  for (const other of roots.values()) other.hidden = other !== root;
  document.body.dataset.view = view.name;
  document.title = view.name === "try" ? "Echoic: memory for voice agents" : `${view.title} · Echoic`;
  showWho();
  try {
    const module = await import(`./views/${view.name}.js`);
    await choosing;
    if (view.name !== "try") await arrive(); // which says itself what goes wrong
    if (visit !== mine) return;
    const done = await module.show(root, place, app);
    if (visit === mine) leave = done ?? null;
    else done?.();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401 && app.role === "user") refused();
    if (visit === mine) showFailure(root, error);
  }
  if (moved && view.name !== "try" && !root.contains(document.activeElement)) focusHeading(root);
}

async function leaveView() {
  const done = leave;
  leave = null;
  await done?.();
}

function rootOf({ name, title }) {
  const there = roots.get(name) ?? byId(`view-${name}`);
  const root = there ?? h("div", { class: `view ${name}`, id: `view-${name}`, role: "region", "aria-label": title });
  if (!there) byId("views").append(root);
  roots.set(name, root);
  return root;
}

function showFailure(root, error) {
  root.replaceChildren(
    h("div", { class: "page" }, h("p", { class: "notice", role: "alert" }, error.message), h("button", { type: "button", class: "button", onclick: route }, "Try again")),
  );
}

/** Whoever comes to another view by keyboard or by ear begins at its heading. */
function focusHeading(root) {
  const heading = root.querySelector("h2");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// -- the start

function listen() {
  addEventListener("hashchange", route);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    const to = shown?.view === "try" ? byId("say") : byId("views");
    to.focus();
  });
  byId("caller").addEventListener("change", (event) => tell("caller", event.target.value));
  app.events.addEventListener("caller", async ({ detail }) => {
    if (shown?.view === "try") return; // a conversation may be going on: the view ends it first
    choosing = choose(detail).catch((error) => {
      if (error.status === 401) refused();
      else app.caller.caller = ""; // `route` tries again, and shows what goes wrong
    });
    await choosing;
    app.go({ view: shown.view });
    route();
  });
  byId("sign-in").addEventListener("click", () => {
    byId("key-trouble").hidden = true;
    byId("key-field").value = "";
    byId("key").showModal();
  });
  byId("key-cancel").addEventListener("click", () => byId("key").close());
  byId("key-form").addEventListener("submit", takeKey);
  byId("sign-out").addEventListener("click", () => {
    signOut();
    route();
  });
}

async function takeKey(event) {
  event.preventDefault();
  try {
    await signIn(byId("key-field").value.trim());
    byId("key").close();
    route();
  } catch (error) {
    byId("key-trouble").textContent = error.message;
    byId("key-trouble").hidden = false;
  }
}

async function start() {
  listen();
  showWho();
  const caller = keptKey();
  if (caller) await stayIn(caller).catch(() => keepKey(""));
  await route();
}

start();
