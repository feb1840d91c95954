// A file of facts, as `echoic global set --from` reads it: a line each, plain, as a bullet or as JSON.

const BULLET = /^(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?/;
// a heading, a rule, the border of a table, a fence
const NO_FACT = /^(?:#{1,6}(?:\s|$)|[-*_=|: ]{3,}$|```|~~~|-$)/;
const EMPHASIS = /(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1/g;
const FIELDS = ["key", "text", "value", "category", "context"];

/** @returns {{facts: {text: string, key?: string}[], skipped: {line: number, why: string}[]}} */
export function readFacts(file) {
  const facts = [];
  const skipped = [];
  const keys = new Map();
  for (const { line, text } of lines(file)) {
    const fact = factOf(text);
    const before = fact.key === undefined ? undefined : keys.get(fact.key);
    if (fact.why) skipped.push({ line, why: fact.why });
    else if (before !== undefined && before !== fact.text) skipped.push({ line, why: "its key stands there already, with another text" });
    else if (before === undefined) facts.push(fact);
    if (fact.key !== undefined && before === undefined) keys.set(fact.key, fact.text);
  }
  return { facts, skipped };
}

function lines(file) {
  const found = [];
  let open = false;
  let comment = false;
  const all = file.replace(/^\ufeff/, "").split(/\r?\n/);
  // a rule of Markdown looks alike, but has no field after it
  const opens = /^---\s*$/.test(all[0]) && /^[\w-]+[ \t]*:/.test(all[1] ?? "");
  const front = opens ? all.findIndex((line, at) => at && /^(?:---|\.\.\.)\s*$/.test(line)) : -1;
  for (const [at, raw] of all.entries()) {
    let text = raw.trim();
    if (at <= front || comment || text.startsWith("<!--")) {
      comment = at > front && !text.includes("-->");
      text = at > front && !comment ? text.slice(text.indexOf("-->") + 3).trim() : "";
    }
    const bullet = text.match(BULLET);
    const none = !text || NO_FACT.test(text);
    if (open && !none && !bullet && /^\s/.test(raw)) {
      found.at(-1).text += ` ${text}`;
      continue;
    }
    open = Boolean(bullet) && !none;
    if (!none) found.push({ line: at + 1, text: bullet ? text.slice(bullet[0].length) : text });
  }
  return found;
}

function factOf(line) {
  if (!line.startsWith("{")) return { text: line.replace(EMPHASIS, "$2") };
  let fields;
  try {
    fields = JSON.parse(line);
  } catch {
    return { why: "it is not JSON" };
  }
  const { value, text = value, key, ...rest } = fields;
  if (Object.keys(fields).some((name) => !FIELDS.includes(name))) return { why: `it may have ${FIELDS.join(", ")}, and nothing else` };
  if (typeof text !== "string" || !text.trim()) return { why: "it has no text" };
  return { text, ...(key === undefined || key === null ? {} : { key }), ...rest };
}
