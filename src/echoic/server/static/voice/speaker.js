// The browser's own voice: sentence by sentence, and how far it came when it was interrupted.

/** A voice that has not begun by then will not: the text stands in the transcript all the same. */
const BEGINS_MS = 4000;

export class Speaker {
  #told;
  #waiting = [];
  #spoken = "";
  #now = null;
  #late = 0;

  /** @param {(on: boolean) => void} told when it begins to speak, and when it has nothing more to say */
  constructor(told) {
    this.#told = told;
  }

  /** Whether there is a voice at all. */
  static get exists() {
    return Boolean(window.speechSynthesis && window.SpeechSynthesisUtterance);
  }

  get speaking() {
    return this.#now !== null;
  }

  /** What of the present answer was heard so far. */
  get heard() {
    return this.#spoken + (this.#now ? this.#now.text.slice(0, this.#now.reached) : "");
  }

  /** What it says now and said just before: a recogniser may hear it too. */
  get saying() {
    return this.#spoken + (this.#now?.text ?? "");
  }

  /** Begin a new answer. */
  begin() {
    this.#spoken = "";
  }

  /** @param {string} text to be said after what came before */
  say(text) {
    if (!Speaker.exists) return;
    this.#waiting.push(...sentences(text));
    if (!this.#now) this.#next();
  }

  /**
   * Fall silent.
   * @returns {string} what was heard
   */
  stop() {
    const { heard } = this;
    this.#waiting = [];
    if (this.#now) this.#over();
    window.speechSynthesis?.cancel();
    this.#spoken = heard;
    return heard;
  }

  #next() {
    const text = this.#waiting.shift();
    if (text === undefined) return;
    const utterance = new SpeechSynthesisUtterance(text.trim());
    utterance.lang = navigator.language;
    const now = { text, reached: 0, utterance };
    this.#now = now;
    const lead = text.length - text.trimStart().length;
    utterance.onstart = () => clearTimeout(this.#late);
    utterance.onboundary = ({ charIndex }) => (now.reached = lead + charIndex);
    utterance.onend = () => now === this.#now && this.#ended(text);
    utterance.onerror = () => now === this.#now && this.#ended(text);
    this.#late = setTimeout(() => now === this.#now && this.stop(), BEGINS_MS);
    this.#told(true);
    speechSynthesis.speak(utterance);
  }

  #ended(text) {
    clearTimeout(this.#late);
    this.#spoken += text;
    if (this.#waiting.length) return this.#next();
    this.#over();
  }

  #over() {
    clearTimeout(this.#late);
    this.#now = null;
    this.#told(false);
  }
}

/** Pieces of a size a browser's voice says to the end; joined they are the text. */
function sentences(text) {
  return text.match(/[^.!?…]+(?:[.!?…]+["')\]]*|$)\s*|[.!?…]+\s*/g) ?? [];
}
