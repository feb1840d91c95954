// How loud both are, as it was over the last seconds.

const BAR_PX = 3;
const GAP_PX = 2;
const BAR_MS = 60;

export class Wave {
  #canvas;
  #bars = [];
  #peak = { caller: 0, agent: 0 };
  #since = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
  }

  clear() {
    this.#bars = [];
    this.#draw();
  }

  /** @param {number} caller from 0 to 1 @param {number} agent likewise */
  push(caller, agent) {
    const peak = this.#peak;
    peak.caller = Math.max(peak.caller, caller);
    peak.agent = Math.max(peak.agent, agent);
    const now = performance.now();
    if (now - this.#since < BAR_MS) return;
    this.#since = now;
    this.#bars.push({ ...peak });
    this.#peak = { caller: 0, agent: 0 };
    requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio;
    this.#canvas.width = width * scale;
    this.#canvas.height = height * scale;
    const pen = this.#canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(this.#canvas);
    // asked once a picture: each question has the style worked out
    const [callers, agents, still] = ["--caller", "--agent", "--still"].map((name) => style.getPropertyValue(name));
    const room = Math.max(1, Math.floor(width / (BAR_PX + GAP_PX)));
    this.#bars = this.#bars.slice(-room);
    const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (let place = 0; place < room; place++) {
      // where nothing should move, every bar shows the present
      const bar = this.#bars.at(moves ? place - room : -1) ?? { caller: 0, agent: 0 };
      const speaks = bar.agent > bar.caller ? agents : callers;
      const tall = Math.max(2, height * seen(Math.max(bar.agent, bar.caller)));
      pen.fillStyle = tall > 2 ? speaks : still;
      pen.fillRect(place * (BAR_PX + GAP_PX), (height - tall) / 2, BAR_PX, tall);
    }
  }
}

/** Loudness as it is perceived, nearly: its root, so that quiet speech is seen. */
function seen(level) {
  return Math.min(1, Math.sqrt(Math.max(0, level - 0.003)) * 1.6);
}
