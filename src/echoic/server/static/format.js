// Numbers and moments as people read them.

/** Milliseconds with two digits that matter: "0.42 ms", "8.1 ms", "132 ms". */
export function ms(value) {
  const digits = value < 1 ? 2 : value < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ms`;
}

/** A score with enough digits to tell two apart. */
export function score(value) {
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Bytes as "812 B", "40 kB", "1.2 MB". */
export function bytes(value) {
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${Math.round(value / 1000)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** When it was, as one says it: the time of today, the day of any other. */
export function moment(iso) {
  const when = new Date(iso);
  const today = when.toDateString() === new Date().toDateString();
  const options = today ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  return when.toLocaleString(undefined, options);
}

/** A key as words: "user_name" is "name", "allergy:peanuts" is "allergy · peanuts". */
export function keyWords(key) {
  return key
    .replace(/^user_/, "")
    .replace(/_+/g, " ")
    .replace(/:+/g, " · ");
}

/** How long something took: "48 s", "3 min 20 s", "1 h 5 min". */
export function length(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** When it was, in full: "Thu 26 Nov 2026, 21:05". */
export function instant(iso) {
  return new Date(iso).toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** A place in a call: "0:06", "12:40". */
export function place(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** How the caller speaks, and how a call stands. */
export const CHANNELS = { text: "Text", voice: "Voice", phone: "Telephone" };
export const STATUSES = { active: "going on", created: "not begun", completed: "ended", failed: "failed" };

/** Who serves, as one says it: without a language model it is rules. */
export function agentName(name) {
  return name === "keyless" ? "rules" : name;
}
