// Health: whether memory works, how fast it finds, how often it has nothing to say, and what to do about what is wrong.

import { h, svg } from "../dom.js";
import { ms } from "../format.js";

const SEVERITIES = { critical: "Act now", warning: "Look at this", note: "Good to know" };
const FIRST_WAIT_MS = 1000;
const LAST_WAIT_MS = 15000;

export async function show(root, _place, app) {
  const body = h("div", {});
  const live = h("span", { class: "listening", hidden: true }, "live");
  root.replaceChildren(h("div", { class: "page" }, h("div", { class: "health-head" }, h("h2", {}, "Health"), live), body));
  const line = new AbortController();
  await draw(app.api.get("/api/health"));
  follow();
  return () => line.abort();

  async function draw(asked) {
    const health = await asked;
    if (!line.signal.aborted) body.replaceChildren(...picture(health));
  }

  /** The line ends now and then, and where the server goes away: it is taken up again. */
  async function follow() {
    let wait = FIRST_WAIT_MS;
    while (!line.signal.aborted) {
      try {
        await app.api.stream("/api/health/events", line.signal, (name, data) => {
          live.hidden = false;
          wait = FIRST_WAIT_MS;
          if (name === "health") draw(data);
        });
      } catch (error) {
        if (error.status === 401 || error.status === 403) break;
      }
      live.hidden = true;
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, LAST_WAIT_MS);
    }
  }
}

function picture(health) {
  const { minutes } = health;
  const recalls = sum(minutes, "recalls");
  const silent = sum(minutes, "silent");
  const incomplete = sum(minutes, "incomplete");
  return [
    alarms(health),
    h(
      "ul",
      { class: "tiles wide" },
      tile("Recall, median", ms(middle(minutes, "p50Ms")), "of the last hour, in this process", recalls),
      tile("Ready in time", share(health.turns.ready, health.turns.count), "of the spoken turns: found before the caller stopped", health.turns.count),
      tile("First word", ms(health.turns.firstWordMs ?? 0), "after the caller stopped, median", health.turns.firstWordMs !== null),
      tile("Silence", share(silent, recalls), "of recalls found nothing likely to answer", recalls),
    ),
    h(
      "div",
      { class: "charts" },
      chart("Recall latency", "by the minute: median, and 95th percentile", minutes, (minute) => [minute.p50Ms ?? 0, minute.p95Ms ?? 0], ms),
      chart("Recalls", `${recalls} in the last hour, ${incomplete} of them incomplete`, minutes, (minute) => [minute.recalls - minute.incomplete, minute.recalls], String),
      chart("Silence", `${silent} in the last hour`, minutes, (minute) => [minute.silent, minute.silent], String),
    ),
    h(
      "dl",
      { class: "facts plain" },
      ...[
        ["Store", health.store === "ok" ? "can be read and written" : "unavailable"],
        ["Embedder", health.embeddingFailure ? `${health.embedder}: ${health.embeddingFailure}` : health.embedder],
        ["Conversations to read", `${health.waiting} waiting, ${health.failing} failing, ${health.parked} given up`],
        ["Audit log", health.audit ? "written" : "off; --audit turns it on"],
      ].flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]),
    ),
  ];
}

function alarms({ alarms: given }) {
  if (!given.length) return h("p", { class: "all-well", role: "status" }, "All is well.");
  return h(
    "ul",
    { class: "alarms", "aria-label": "Alarms" },
    ...given.map((alarm) => h("li", { class: `alarm is-${alarm.severity}` }, h("p", {}, h("span", { class: "tag" }, SEVERITIES[alarm.severity]), " ", h("strong", {}, `${alarm.what}.`)), h("p", { class: "soft" }, ...withCode(alarm.do)))),
  );
}

function tile(label, number, what, known) {
  return h("li", { class: "tile" }, h("span", { class: "label" }, label), h("span", { class: "number" }, known ? number : "–"), h("span", { class: "what" }, known ? what : "nothing in the last hour"));
}

/** A bar a minute: its lower part, and how much further it goes. */
function chart(title, what, minutes, of, written) {
  const bars = minutes.map(of);
  const most = Math.max(...bars.map(([, high]) => high));
  const scale = 40 / Math.max(most, 1e-9);
  const width = 100 / minutes.length;
  const bar = ([low, high], place) => [
    high > low ? svg("rect", { class: "high", x: place * width, width: width * 0.72, y: 40 - high * scale, height: (high - low) * scale }) : null,
    low > 0 ? svg("rect", { class: "low", x: place * width, width: width * 0.72, y: 40 - low * scale, height: low * scale }) : null,
  ];
  const label = most ? `${title}, the last 60 minutes. Highest: ${written(most)}. Now: ${written(bars.at(-1)[0])}.` : `${title}: nothing in the last 60 minutes.`;
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("strong", {}, title), h("span", { class: "soft" }, what)),
    svg("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": label }, ...bars.flatMap(bar)),
    h("p", { class: "axis soft" }, h("span", {}, "an hour ago"), h("span", {}, most ? `highest ${written(most)}` : "nothing yet"), h("span", {}, "now")),
  );
}

/** A sentence in which `commands` stand between backticks. */
function withCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));
}

function sum(minutes, name) {
  return minutes.reduce((total, minute) => total + minute[name], 0);
}

function middle(minutes, name) {
  const values = minutes.map((minute) => minute[name]).filter((value) => value !== null).toSorted((a, b) => a - b);
  return values[Math.floor(values.length / 2)] ?? 0;
}

function share(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "–";
}
