// The browser's own speech recognition, where there is one. Some browsers send what they hear to their maker.

const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
/** A recogniser ends when it likes, and is begun again; one that ends at once, so often in a row, does not work. */
const LIVES = 4;
const SHORT_MS = 700;
const AGAIN_MS = 250;
const TYPE = "Type instead.";
const TROUBLE = {
  "not-allowed": `The microphone, or speech recognition, is blocked for this page. Allow it in the address bar. ${TYPE}`,
  "service-not-allowed": `This browser does not let pages use its speech recognition. ${TYPE}`,
  "audio-capture": `There is no microphone. Plug one in and try again. ${TYPE}`,
  network: `The speech recognition of this browser cannot be reached. ${TYPE}`,
  "language-not-supported": `The speech recognition of this browser does not know the language it is set to. ${TYPE}`,
};

export class Recogniser {
  /** Whether this browser has one at all. */
  static get exists() {
    return Boolean(Recognition);
  }

  #told;
  #recognition = null;
  #wanted = false;
  #began = 0;
  #short = 0;
  #again = 0;

  /**
   * @param {{interim: (text: string) => void, final: (text: string) => void, failed: (message: string) => void}} told
   *   `interim`: what is being said, so far; `final`: what was said
   */
  constructor(told) {
    this.#told = told;
  }

  listen() {
    this.#wanted = true;
    this.#begin();
  }

  /** Hear nothing more, and forget what was half heard. */
  pause() {
    this.#wanted = false;
    clearTimeout(this.#again);
    this.#recognition?.abort();
    this.#recognition = null;
  }

  #begin() {
    const recognition = new Recognition();
    this.#recognition = recognition;
    recognition.continuous = true;
    recognition.interimResults = true;
    recognition.lang = navigator.language;
    recognition.onresult = (event) => recognition === this.#recognition && this.#heard(event);
    recognition.onerror = ({ error }) => recognition === this.#recognition && this.#failed(error);
    recognition.onend = () => recognition === this.#recognition && this.#ended();
    this.#began = performance.now();
    recognition.start();
  }

  #heard({ results, resultIndex }) {
    this.#short = 0;
    let interim = "";
    for (let place = resultIndex; place < results.length; place++) {
      const { transcript } = results[place][0];
      if (results[place].isFinal) this.#told.final(transcript.trim());
      else interim += transcript;
    }
    if (interim.trim()) this.#told.interim(interim.trim());
  }

  #failed(error) {
    if (error === "no-speech" || error === "aborted") return;
    this.pause();
    this.#told.failed(TROUBLE[error] ?? `The speech recognition of this browser failed (${error}). ${TYPE}`);
  }

  #ended() {
    if (!this.#wanted) return;
    this.#short = performance.now() - this.#began < SHORT_MS ? this.#short + 1 : 0;
    if (this.#short >= LIVES) return this.#failed("it ends at once");
    this.#again = setTimeout(() => this.#wanted && this.#begin(), AGAIN_MS);
  }
}
