// Try it: a caller, a conversation, and what memory makes of it.

import { ApiError } from "../api.js";
import { Calling } from "../calling.js";
import { byId, h } from "../dom.js";
import { BlockPanel, JobsPanel, PhonePanel, ProfilePanel } from "../known.js";
import { MemoryPanel } from "../memories.js";
import { OperationLog, stepsOfLearned, stepsOfReply } from "../operations.js";
import { QueriesPanel } from "../queries.js";
import { receiptOf } from "../receipt.js";
import { provenance } from "../sources.js";
import { Tabs } from "../tabs.js";
import { Transcript, unanswered } from "../transcript.js";

const SUGGESTIONS = [
  "I'm Pavel and I live in Tel Aviv",
  "Where do I live?",
  "Actually I moved to Lisbon",
  "Where did I live before?",
  "We're open nine to five",
  "What do you know about me?",
];

let app = null;
let api = null;
const memories = new MemoryPanel((memory, how) => alone(() => forget(memory, how)));
const profile = new ProfilePanel();
const phone = new PhonePanel();
const block = new BlockPanel();
const jobs = new JobsPanel();
const queries = new QueriesPanel();
const operations = new OperationLog();
const transcript = new Transcript(byId("transcript"));

let conversation = "";
/** Whose conversation it is; in another view, somebody else may be chosen. */
let speaking = "";
let erased = false;
let last = Promise.resolve();
let lookAgain = 0;
let jobsAgain = 0;
let calling = null;

/**
 * The conversation that the place names is taken up; without one, the one that is going on, or a new one. What is here
 * goes on while another view is shown: a call is not cut off by looking at something else.
 */
export async function show(_root, place, console) {
  if (app) {
    if (api.caller && api.caller !== speaking) await alone(() => beginAnew("A call from somebody known", "A call"));
    else if (place.id && place.id !== conversation && !calling.active) await alone(() => takeUp(place.id));
    else keepPlace();
    focusInput();
    return;
  }
  app = console;
  api = app.caller;
  calling = new Calling({
    api,
    transcript,
    operations,
    notice,
    alone,
    exchange: async (text, coming) => {
      const reply = await exchange(text, coming);
      showMemories().catch(() => {});
      // an erasure took the answer along
      const cut = (heard) => reply.heard && api.truncate(reply.conversation, heard, reply.heard.id);
      return { text: reply.text, cut };
    },
    user: () => app.callers.current?.user ?? "",
    leave: () => complete("What was typed before the call"),
    begin: () => begin("A talk"),
    ended: (untaken) => {
      handBack(untaken.join(" "));
      showMemories().catch(() => {}); // not `alone`: that would take away the notice of why it ended
    },
  });
  new Tabs(byId("tabs"));
  showSuggestions();
  listen();
  await alone(() => start(place.id));
  focusInput();
}

/** Do one thing after another, in the order asked; what goes wrong is said. Whether it went well. */
function alone(work) {
  const done = last.then(() => attempt(work));
  last = done.catch(() => {});
  return done;
}

async function attempt(work) {
  document.body.setAttribute("aria-busy", "true");
  notice("");
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) refused(error);
    else notice(error.message);
    return false;
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function notice(text) {
  const element = byId("notice");
  element.textContent = text;
  element.hidden = !text;
}

/** The server knows this identity no longer: the way on is shown. */
function refused(error) {
  app.refused();
  notice(`${error.message} “New caller” begins with a new one.`);
}

// -- conversations

async function begin(title) {
  speaking = api.caller;
  const begun = await api.begin();
  conversation = begun.conversation;
  keepPlace();
  transcript.say("agent", begun.text);
  app.live.follow();
  operations.add(title, [
    { name: "warm", ms: begun.timings.warm, detail: "the caller's memory, into RAM" },
    { name: "greet", ms: begun.timings.greet, detail: "from what is known" },
  ]);
  await showMemories();
  return { text: begun.text, cut: (heard) => api.truncate(begun.conversation, heard) };
}

async function showMemories() {
  const asker = api.caller;
  if (!asker) return; // somebody new is being met
  const asked = [api.memories(), api.profile(), api.block(), api.jobs(), api.phones()];
  const [known, who, given, undone, phones] = await Promise.all(asked);
  if (asker !== api.caller) return; // somebody else is speaking by now
  memories.show(known);
  profile.show(who);
  phone.show(phones);
  block.show(given);
  showJobs(undone);
  const name = known.memories.find((memory) => memory.key === "user_name");
  app.renamed(name ? name.text : "");
}

/** What waits is done soon, and often nothing comes of it that would be told: look again until it is done. */
function showJobs(undone, wait = 800) {
  jobs.show(undone);
  clearTimeout(jobsAgain);
  if (!undone.waiting || document.hidden) return;
  const asker = api.caller;
  jobsAgain = setTimeout(async () => {
    if (asker !== api.caller) return;
    const now = await api.jobs().catch(() => undone);
    if (asker === api.caller) showJobs(now, Math.min(2 * wait, 15000));
  }, wait);
}

/** The server tells of memory forming, here or in any other conversation of this caller. */
function told(name, data) {
  // what the rules hear in this conversation stands in the log with the answer to it
  if (name === "learned" && data.reader !== "rules") operations.add("Learned after the conversation", stepsOfLearned(data));
  if (name === "tool") {
    queries.add(data);
    if (data.operation === "get" || data.operation === "query") return; // nothing was changed
  }
  if (name === "failure" && data.what === "distilling") {
    const again = data.againS === null ? "given up" : `retry in ${Math.round(data.againS)} s`;
    operations.add("A model could not learn from this", [{ name: "distil", detail: `${data.reason}: nothing was changed; ${again}` }]);
  }
  // what comes in a burst is looked at once
  clearTimeout(lookAgain);
  lookAgain = setTimeout(() => showMemories().catch(() => {}), 120);
}

async function say(text) {
  if (await calling.type(text)) return;
  const said = transcript.say("user", text);
  const answer = transcript.hear();
  try {
    const reply = await exchange(text, (words) => answer.add(words), (name) => answer.uses(name));
    transcript.under(answer.end(reply.text), provenance(reply.recall, reply.text));
    await showMemories();
  } catch (error) {
    answer.breakOff();
    unanswered(said);
    throw error;
  }
}

/** What memory made of one thing that was said, and the answer to it. */
async function exchange(text, coming, uses = () => {}) {
  const held = conversation;
  const reply = await api.say(text, held, (name, data) => (name === "tool" ? uses(data.name) : coming(data.text)));
  operations.add(`“${text}”`, stepsOfReply(reply));
  // an erasure of everything destroys the conversation too; what is said next begins another
  if (conversation === held) conversation = reply.receipt && !reply.heard ? "" : reply.conversation;
  keepPlace();
  return reply;
}

/** The conversation is over: it is learned from to its last word. */
async function complete(title = "The call ended") {
  if (!conversation) return;
  const done = await api.complete(conversation);
  conversation = "";
  keepPlace();
  operations.add(title, [{ name: "complete", ms: done.elapsed, detail: "learned from to the last word" }]);
}

async function comeBackTomorrow() {
  await calling.hangUp();
  await complete();
  transcript.divide("The next day");
  await begin("A new call, the same caller");
}

async function newCaller() {
  await calling.hangUp();
  await app.meet();
  await beginAnew("Somebody else calls", "A new caller");
}

async function switchCaller(user) {
  await calling.hangUp();
  await app.choose(user);
  await beginAnew("A call from somebody known", "A call");
}

async function beginAnew(divider, title) {
  conversation = "";
  memories.reset();
  queries.clear();
  operations.clear();
  transcript.clear();
  transcript.divide(divider);
  await begin(title);
}

/** One memory: taken back, so that it stays as history, or destroyed with the words that said it. */
async function forget(memory, how) {
  const title = `Forget “${memory.text}”`;
  if (how === "destroy") {
    const receipt = await api.destroy(memory.id);
    const detail = `${receipt.records} records destroyed, ${receipt.rewritten} rewritten: ${receipt.verified ? "verified gone" : "not verified"}`;
    operations.add(title, [{ name: "forget", ms: receipt.elapsed, detail }]);
  } else {
    const { result, elapsed } = await api.takeBack(memory.id);
    operations.add(title, [{ name: "delete", ms: elapsed, detail: result.deleted ? "deleted; it stays in the history" : "nothing to delete" }]);
  }
  await showMemories();
}

// -- erasure

function askErasure() {
  byId("erasure-ask").hidden = false;
  byId("erasure-done").hidden = true;
  byId("erasure-trouble").hidden = true;
  byId("erasure").showModal();
}

async function erase() {
  if (erased) return; // asked twice: the receipt stands
  await calling.hangUp(); // nothing of a call that goes on could be kept
  const trouble = byId("erasure-trouble");
  trouble.hidden = true;
  try {
    const receipt = await api.forgetEverything();
    erased = true;
    showReceipt(receipt);
    operations.add("Forget me", [
      { name: "forget", ms: receipt.elapsed, detail: `${receipt.records} records and ${receipt.vectors} vectors destroyed` },
    ]);
    await showMemories();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    trouble.textContent = error.message;
    trouble.hidden = false;
  }
}

function showReceipt(receipt) {
  byId("receipt").replaceChildren(receiptOf(receipt));
  byId("erasure-ask").hidden = true;
  byId("erasure-done").hidden = false;
  byId("erasure-done").querySelector(".actions button").focus();
}

async function afterErasure() {
  if (!erased) return;
  erased = false;
  conversation = "";
  memories.reset();
  queries.clear();
  transcript.clear();
  transcript.divide("Forgotten");
  await begin("After the erasure");
}

// -- the start

function showAbout(about) {
  phone.about(about);
  if (!about.model) return;
  byId("fine").textContent = `Answered by ${about.model} from this memory. What it learns is shown as it forms.`;
}

function showSuggestions() {
  byId("suggestions").replaceChildren(
    ...SUGGESTIONS.map((text) =>
      h("button", { type: "button", class: "suggestion", onclick: () => alone(() => say(text)).then(focusInput) }, text),
    ),
  );
}

/** What was not taken is handed back, unless something else is being typed by now. */
function handBack(text) {
  byId("say").value ||= text;
}

function focusInput() {
  byId("say").focus();
}

function listen() {
  byId("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const input = byId("say");
    const text = input.value.trim();
    if (!text) return;
    input.value = "";
    if (!(await alone(() => say(text)))) handBack(text);
    focusInput();
  });
  byId("tomorrow").addEventListener("click", () => alone(comeBackTomorrow).then(focusInput));
  byId("new-caller").addEventListener("click", () => alone(newCaller).then(focusInput));
  app.events.addEventListener("caller", ({ detail }) => {
    if (byId("view-try").hidden) calling.hangUp(); // `show` begins with whoever was chosen
    else alone(() => switchCaller(detail)).then(focusInput);
  });
  app.events.addEventListener("memory", ({ detail }) => told(detail.name, detail.data));
  app.events.addEventListener("listening", ({ detail }) => (byId("listening").hidden = !detail));
  byId("forget").addEventListener("click", askErasure);
  byId("erase").addEventListener("click", () => alone(erase));
  byId("erasure").addEventListener("close", () => alone(afterErasure).then(focusInput));
}

async function start(kept) {
  await app.arrive();
  showAbout(app.about);
  if (!(kept && (await takeUp(kept)))) {
    transcript.divide("Today");
    await begin("A call");
  }
  await calling.prepare();
}

/** Go on with a conversation of this caller, where they have it. Whether they do. */
async function takeUp(kept) {
  const call = await api.get(`/api/calls/${encodeURIComponent(kept)}`).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  if (!call) return false;
  speaking = api.caller;
  conversation = kept;
  keepPlace();
  transcript.clear();
  transcript.divide("Today");
  const found = new Map(call.exchanges.map((each) => [each.userTurn, each.recall]));
  let recall = null;
  for (const turn of call.turns) {
    const mine = turn.speaker === "user";
    const item = transcript.say(mine ? "user" : "agent", turn.heard ?? turn.text);
    if (!mine) transcript.under(item, provenance(recall, turn.text));
    recall = mine ? (found.get(turn.id) ?? null) : null;
  }
  app.live.follow();
  await showMemories();
  return true;
}

/** The address names the conversation, so that it is the same one after the page is loaded again. */
function keepPlace() {
  app.keep({ view: "try", id: conversation });
}
