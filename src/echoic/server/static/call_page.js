// One call: what was said and heard, turn by turn, with the stages of each, what memory was found for it, and what was
// learned. A scrubber replays it.

import { h } from "./dom.js";
import { agentName, CHANNELS, instant, keyWords, length, moment, ms, place as placeIn, score, STATUSES } from "./format.js";
import { sourceOf } from "./sources.js";

const FATES = {
  in_block: "given before",
  repeated: "repeats another",
  over_budget: "did not fit",
  late: "too late",
  forgotten: "forgotten since",
};
const LONGEST_GAP_MS = 4000;
const DRAWN_AT_ONCE = 100;

/**
 * @param {any} data as GET /api/calls/{call} returns it
 * @param {{place: any, app: any, alone: boolean}} where
 */
export function showCall(data, { place, app, alone }) {
  const { call } = data;
  const items = itemsOf(data);
  // what was given before anybody spoke belongs to no turn
  const opening = data.exchanges.find((each) => !each.userTurn && !each.spoken.length && each.given.length);
  const transcript = new Transcript(items);
  const replay = items.length > 1 ? new Replay(items, (place) => transcript.reach(place)) : null;
  const user = app.role === "user" ? "" : call.user;
  const element = h(
    "article",
    { class: "call-page", "aria-label": `Call of ${instant(call.startedAt)}` },
    h(
      "header",
      { class: "call-head" },
      h("a", { class: "back", href: app.href({ view: "calls" }) }, "← Calls"),
      h("h2", {}, instant(call.startedAt)),
      h("p", { class: "soft" }, aboutOf(call, data, app).join(" · ")),
      h(
        "p",
        { class: "call-links" },
        app.role === "user" && call.channel === "text" && call.status !== "completed" ? h("a", { href: app.href({ view: "try", id: call.id }) }, "Go on with it") : null,
        alone ? h("a", { href: app.href({ view: "calls", params: { with: call.id, withUser: user } }) }, "Compare with another call") : null,
        alone ? null : h("a", { href: app.href({ view: "calls", id: call.id, params: { user } }) }, "This call alone"),
      ),
    ),
    opening ? h("div", { class: "exchange-done" }, given("What the model was given at the beginning", opening.given)) : null,
    replay?.element ?? null,
    ...(items.length ? transcript.elements : [h("p", { class: "empty" }, "Nothing of what was said is kept.")]),
    learned(data, (turn) => goTo(turn)),
  );
  const goTo = (turn) => {
    const place = items.findIndex((item) => item.turns.includes(turn));
    if (place < 0) return;
    const found = transcript.reach(place);
    found.scrollIntoView({ block: "center" });
    found.classList.add("meant");
    found.tabIndex = -1;
    found.focus({ preventScroll: true });
  };
  const stop = () => {
    replay?.stop();
    transcript.stop();
  };
  return { element, stop, goTo: (turn) => turn && goTo(turn) };
}

function aboutOf(call, data, app) {
  const took = new Date(call.endedAt ?? call.lastSaidAt ?? call.startedAt) - new Date(call.startedAt);
  const latencies = data.exchanges.map((each) => each.latencyMs).filter((value) => value !== null);
  const middle = latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length / 2)];
  return [
    app.role === "user" ? "" : call.user,
    CHANNELS[call.channel],
    call.agents.map(agentName).join(", then "),
    call.model,
    length(took),
    call.reason && call.reason !== "ended" && call.status === "completed" ? `ended: ${call.reason}` : STATUSES[call.status],
    latencies.length ? `answers after ${ms(middle)} (median)` : "",
  ].filter(Boolean);
}

// -- the transcript

/** Each turn of the caller with what was answered, as one item; its element is there once it is drawn. */
function itemsOf(data) {
  const began = new Date(data.call.startedAt).getTime();
  const exchanges = new Map(data.exchanges.flatMap((each) => [each.userTurn, ...each.spoken.map((one) => one.turn)].filter(Boolean).map((turn) => [turn, each])));
  const sounds = data.call.channel === "text" ? new Map() : soundsOf(data.exchanges);
  const groups = [];
  for (const turn of data.turns) {
    if (turn.speaker !== "agent" || !groups.length) groups.push({ turns: [], exchange: exchanges.get(turn.id) ?? null });
    groups.at(-1).turns.push(turn);
  }
  return groups.map(({ turns, exchange }) => ({
    turns: turns.map((turn) => turn.id),
    at: sounds.has(turns[0].id) ? began + sounds.get(turns[0].id).from : new Date(turns[0].saidAt).getTime(),
    ended: sounds.has(turns.at(-1).id) ? began + sounds.get(turns.at(-1).id).to : new Date(turns.at(-1).saidAt).getTime(),
    element: null,
    draw: () =>
      h(
        "li",
        { class: "exchange" },
        h("div", { class: "exchange-said" }, ...turns.map((turn) => turnOf(turn, sounds.get(turn.id)))),
        h("div", { class: "exchange-done" }, ...doneOf(exchange)),
      ),
  }));
}

/** The items from one place to another; more of them as they are scrolled to. A call of hours has thousands. */
class Transcript {
  #items;
  #first = 0;
  #end = 0;
  #list = h("ol", { class: "said-list", "aria-label": "Transcript" });
  #earlier = h("button", { type: "button", class: "button more", onclick: () => this.#drawEarlier() }, "Show earlier turns");
  #later = h("button", { type: "button", class: "button more", onclick: () => this.#drawLater() }, "Show later turns");
  #seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.#drawLater(), { rootMargin: "800px", scrollMargin: "800px" });

  constructor(items) {
    this.#items = items;
    this.elements = [this.#earlier, this.#list, this.#later];
    this.#drawLater();
  }

  stop() {
    this.#seen.disconnect();
  }

  /** The element of the item at `place`, drawn with those around it where it is not yet. */
  reach(place) {
    if (place < this.#first || place >= this.#end) {
      this.#first = this.#end = Math.max(0, place - DRAWN_AT_ONCE / 2);
      this.#list.replaceChildren();
      this.#drawLater();
    }
    return this.#items[place].element;
  }

  #drawLater() {
    const from = this.#end;
    this.#end = Math.min(this.#items.length, from + DRAWN_AT_ONCE);
    this.#list.append(...this.#drawn(from, this.#end));
    this.#seen.disconnect(); // watched anew, it tells at once if it is still in sight
    if (!this.#later.hidden) this.#seen.observe(this.#later);
  }

  #drawEarlier() {
    const end = this.#first;
    this.#first = Math.max(0, end - DRAWN_AT_ONCE);
    this.#list.prepend(...this.#drawn(this.#first, end));
    this.#items[end].element.scrollIntoView({ block: "start" });
  }

  #drawn(from, end) {
    this.#earlier.hidden = this.#first === 0;
    this.#later.hidden = this.#end === this.#items.length;
    const items = this.#items.slice(from, end);
    for (const item of items) {
      item.element ??= item.draw();
      mark(item);
    }
    return items.map((item) => item.element);
  }
}

/** Show where in the replay an item is. */
function mark({ element, now, later }) {
  element?.classList.toggle("now", Boolean(now));
  element?.classList.toggle("later", Boolean(later));
}

/** Where in the call each turn sounded, in milliseconds since it began, and how much of it was never played. */
function soundsOf(exchanges) {
  const sounds = new Map();
  for (const { stages, spoken, userTurn } of exchanges) {
    const from = stages.speech_began ?? stages.transcript;
    if (userTurn && from !== undefined) sounds.set(userTurn, { from, to: stages.speech_ended ?? from });
    let at = stages.first_played ?? stages.first_audio;
    for (const { turn, playedMs, generatedMs, source } of at === undefined ? [] : spoken) {
      // one that follows another in the same turn of the caller begins when that one was heard
      sounds.set(turn, { from: at, to: at + playedMs, playedMs, generatedMs, cut: source !== "whole" });
      at += playedMs;
    }
  }
  return sounds;
}

function turnOf(turn, sound) {
  const cut = turn.heard !== null && turn.heard.trim() !== turn.text.trim();
  const rest = cut ? turn.text.slice(turn.heard.length) : "";
  const notes = [
    sound ? `at ${placeIn(sound.from)}` : new Date(turn.saidAt).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" }),
    turn.confidence === null ? "" : `heard ${percent(turn.confidence)} surely`,
    sound?.cut ? `cut off after ${seconds(sound.playedMs)} of ${seconds(sound.generatedMs)}` : cut ? "cut off" : "",
  ];
  const mine = turn.speaker !== "agent";
  return h(
    "div",
    { class: `turn ${mine ? "user" : "agent"}` },
    h("span", { class: "speaker" }, `${mine ? "Caller" : "Agent"}, ${notes.filter(Boolean).join(", ")}`),
    h("p", { class: "words", dir: "auto" }, cut ? turn.heard : turn.text, cut ? h("s", { class: "unheard", title: "not heard" }, h("span", { class: "visually-hidden" }, " (not heard:) "), rest) : null),
  );
}

function doneOf(exchange) {
  if (!exchange) return [];
  return [waterfall(exchange), recalled(exchange), given("Text the model was given", exchange.given)].filter(Boolean);
}

// -- the stages

/** What took how long, counted from the end of the caller's words. */
function spansOf({ stages, tools, recall }) {
  const zero = stages.speech_ended ?? stages.transcript;
  if (zero === undefined) return [];
  const spans = [];
  const add = (name, from, to, kind = "") => {
    if (from !== undefined && to !== undefined && to >= from) spans.push({ name, from: from - zero, to: to - zero, kind });
  };
  add("caller speaks", stages.speech_began ?? stages.first_partial, stages.speech_ended, "caller");
  add("transcript", stages.speech_ended, stages.transcript);
  if (stages.speech_ended === undefined) add("kept, read", stages.transcript, stages.recall_began, "kept");
  add(recall?.ready ? "recall, ready before" : "recall", stages.recall_began ?? (stages.recalled === undefined ? undefined : zero), stages.recalled, "memory");
  for (const tool of tools) add(`tool ${tool.name}`, tool.beganMs, tool.endedMs ?? undefined, "tool");
  const asked = stages.handed_over ?? stages.recalled ?? zero;
  add("model, first word", asked, stages.first_audio, "model");
  add("first word, played", stages.first_audio, stages.first_played);
  add(stages.first_audio === undefined ? "answer" : "answer, whole", stages.first_audio ?? asked, stages.generated, "model");
  if (stages.barge_in !== undefined) spans.push({ name: "caller cuts in", from: stages.barge_in - zero, to: stages.barge_in - zero, kind: "cut" });
  return spans;
}

function waterfall(exchange) {
  const spans = spansOf(exchange);
  if (!spans.length) return null;
  const first = Math.min(0, ...spans.map((span) => span.from));
  const last = Math.max(1, ...spans.map((span) => span.to));
  const part = (value) => `${(100 * (value - first)) / (last - first)}%`;
  const row = (span) => {
    const bar = h("span", { class: `stage-bar ${span.kind}` });
    bar.style.setProperty("--from", part(span.from));
    bar.style.setProperty("--long", `${(100 * (span.to - span.from)) / (last - first)}%`);
    const took = span.to - span.from;
    return h("li", {}, h("span", { class: "stage-name" }, span.name), h("span", { class: "stage-track", "aria-hidden": "true" }, bar), h("span", { class: "ms" }, span.kind === "cut" ? `at ${ms(span.from)}` : ms(took)));
  };
  const total = exchange.latencyMs === null ? "" : `, first word after ${ms(exchange.latencyMs)}`;
  return h("ol", { class: "waterfall", "aria-label": `Stages${total}` }, ...spans.map(row));
}

// -- what memory did

function recalled({ recall, stages }) {
  if (!recall) return null;
  const looked = { complete: "everything was searched", deadline: "the best hits in time", unavailable: "the search was incomplete" }[recall.outcome];
  if (!recall.hits.length) {
    const words = recall.outcome === "complete" ? "Nothing is known about this. Everything was searched." : "The search was incomplete, so something may be known.";
    return h("p", { class: "none" }, words);
  }
  const [shown, notGiven] = [true, false].map((had) => recall.hits.filter((hit) => (hit.fate === "shown" || hit.fate === "in_block") === had));
  const after = stages.recalled - (stages.speech_ended ?? stages.transcript);
  return h(
    "div",
    { class: "memory-given" },
    h("h3", {}, shown.length ? "Memory given for this turn" : "Memory that was found, and not given"),
    h("ul", { class: "hit-list" }, ...(shown.length ? shown : notGiven).map(hitOf)),
    shown.length && notGiven.length ? h("details", {}, h("summary", {}, `${notGiven.length} more found, not given`), h("ul", { class: "hit-list" }, ...notGiven.map(hitOf))) : null,
    h("p", { class: "fine" }, `${looked}${recall.cut.length ? `, without ${recall.cut.join(", ")}` : ""}; ${recall.ready ? "ready before the turn ended" : `${ms(after >= 0 ? after : recall.delayMs)} after the turn`}`),
  );
}

function hitOf(hit) {
  const ranks = Object.entries(hit.ranks);
  return h(
    "li",
    { class: `hit ${hit.fate} ${hit.kind === "turn" ? "sentence" : ""}` },
    h("p", { class: "hit-text", dir: "auto" }, hit.text ?? "forgotten since"),
    h("p", { class: "fine" }, [hit.key ? keyWords(hit.key) : hit.kind === "turn" ? "a sentence" : "", sourceOf(hit), hit.fate === "shown" ? "" : FATES[hit.fate]].filter(Boolean).join(" · ")),
    h(
      "details",
      {},
      h("summary", {}, `${percent(hit.relevance)} likely to answer`),
      h("p", { class: "fine" }, `rank ${hit.rank}, score ${score(hit.score)}${ranks.length ? `: ${ranks.map(([name, rank]) => `${name} #${rank}`).join(", ")}` : ""}. ${hit.means}.`),
    ),
  );
}

function given(summary, texts) {
  if (!texts.length) return null;
  const tokens = texts.reduce((sum, text) => sum + text.tokens, 0);
  return h(
    "details",
    { class: "given" },
    h("summary", {}, `${summary}, ${tokens} tokens`),
    ...texts.map((text) => h("div", {}, h("p", { class: "fine" }, [text.role, text.name].filter(Boolean).join(" ")), h("pre", { class: "scroll pipeline", tabindex: "0", role: "region", "aria-label": text.role, dir: "auto" }, text.text))),
  );
}

function learned({ learned: memories }, goTo) {
  if (!memories.length) return null;
  const card = (memory) =>
    h(
      "li",
      { class: "card" },
      h("div", { class: "said" }, h("span", { class: "key" }, memory.key ? keyWords(memory.key) : "remembered"), h(memory.current ? "span" : "s", { class: "value", dir: "auto" }, memory.text)),
      h(
        "div",
        { class: "meta" },
        h("span", { class: "tag" }, memory.category),
        memory.current ? null : h("span", {}, `until ${moment(memory.validUntil)}`),
        h("span", { class: "links" }, h("button", { type: "button", class: "link", onclick: () => goTo(memory.source.at(-1)) }, "the sentence")),
      ),
    );
  return h("section", { class: "learned", "aria-label": "Learned from this call" }, h("h3", {}, "Learned from this call"), h("ul", { class: "cards" }, ...memories.map(card)));
}

function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

function percent(part) {
  return `${Math.round(100 * part)} %`;
}

// -- the replay

/** Goes through a call in time; long silences are cut short. */
class Replay {
  #items;
  #reach;
  #ends;
  #slider;
  #button;
  #clock;
  #frame = 0;
  #at;

  /** @param {(place: number) => HTMLElement} reach the element of the item there, drawn if it was not */
  constructor(items, reach) {
    this.#items = items;
    this.#reach = reach;
    let at = 0;
    this.#ends = items.map((item, place) => {
      const before = items[place - 1];
      if (before) at += Math.min(LONGEST_GAP_MS, Math.max(600, item.at - before.at));
      return at;
    });
    this.#at = at;
    this.#slider = h("input", { type: "range", min: 0, max: Math.max(1, at), value: at, step: 1, "aria-label": "Place in the call", oninput: () => this.#seek(Number(this.#slider.value)) });
    this.#button = h("button", { type: "button", class: "button", onclick: () => (this.#frame ? this.stop() : this.#play()) }, "Replay");
    this.#clock = h("output", { class: "count" });
    this.element = h("div", { class: "replay", role: "group", "aria-label": "Replay" }, this.#button, this.#slider, this.#clock);
    this.#show(false);
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#button.textContent = "Replay";
  }

  #play() {
    if (this.#at >= this.#ends.at(-1)) this.#at = 0;
    this.#button.textContent = "Pause";
    let before = performance.now();
    const step = (now) => {
      this.#at += now - before;
      before = now;
      this.#show(true);
      if (this.#at >= this.#ends.at(-1)) this.stop();
      else this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  #seek(at) {
    this.#at = at;
    this.#show(true);
  }

  #show(scroll) {
    const last = this.#ends.findLastIndex((end) => end <= this.#at + 0.5);
    this.#slider.value = this.#at;
    this.#items.forEach((item, place) => {
      const now = place === last && this.#at < this.#ends.at(-1);
      const later = place > last;
      if (now && scroll && !item.now) this.#reach(place).scrollIntoView({ block: "nearest" });
      if (now === item.now && later === item.later) return;
      Object.assign(item, { now, later });
      mark(item);
    });
    const from = this.#items[0].at;
    const at = this.#items[Math.max(0, last)].at;
    this.#clock.textContent = `${length(at - from)} of ${length(this.#items.at(-1).ended - from)}`;
  }
}
