// The media of a call that goes straight between the browser and the provider. Our server passes on the offer, and
// hears of the rest by itself; the key of the provider never comes here.

import { ApiError } from "../api.js";

/** For gathering the ways this browser can be reached; what was found until then is offered. */
const GATHERING_MS = 1500;
const LEVEL_MS = 50;
/** Of full scale, as root mean square: what is louder is the agent speaking. -46 dB. */
const SOUND = 0.005;
/** Between words nobody has stopped speaking. */
const PAUSE_MS = 400;
/** How soon after a break another way is looked for: most mend by themselves. */
const MEND_MS = 6000;

export class Peer {
  #api;
  #line;
  #call;
  #told;
  #connection = null;
  #sender = null;
  #stream = null;
  #audio = new Audio();
  #context = new AudioContext();
  #ears = { caller: null, agent: null };
  #looking = 0;
  #heardAt = -Infinity;
  #dialling = false;
  #mending = 0;

  /**
   * @param {import("../api.js").Api} api
   * @param {import("./line.js").Line} line
   * @param {{session: string}} call
   * @param {{levels: (caller: number, agent: number) => void, sounding: (on: boolean) => void,
   *   lost: () => void, restored: () => void, failed: (message: string) => void}} told
   */
  constructor(api, line, call, told) {
    this.#api = api;
    this.#line = line;
    this.#call = call;
    this.#told = told;
    this.#audio.autoplay = true;
  }

  /** Whether sound goes both ways, or may again by itself. */
  get stands() {
    return ["new", "connecting", "connected", "disconnected"].includes(this.#connection?.connectionState);
  }

  /** @param {MediaStream} stream what will be sent, once the line stands and an offer can be made */
  prepare(stream) {
    this.#stream = stream;
    this.#ears.caller = this.#ear(stream);
    this.#looking = setInterval(() => this.#look(), LEVEL_MS);
    this.#context.resume().catch(() => {});
  }

  /** The provider stops by itself when the caller interrupts; there is nothing here to drop. */
  flush() {}

  /** After how long it stopped is not known here. */
  interrupted() {}

  sounds() {}

  lost() {}

  /**
   * The line stands. The sound may have outlived the one before; where it did not, an offer is made.
   * @throws {ApiError} it is not taken
   */
  async opened() {
    if (!this.stands && !this.#dialling) await this.#dial();
    else this.#changed();
  }

  /** What there was leads nowhere any more. */
  async renew() {
    if (!this.#dialling) await this.#dial();
  }

  restored() {}

  /** The microphone's track is off by now: what is sent is silence. */
  mute() {}

  listen(stream) {
    this.#stream = stream;
    this.#sender?.replaceTrack(stream.getAudioTracks()[0]);
    this.#ears.caller = this.#ear(stream);
  }

  async close() {
    clearInterval(this.#looking);
    clearTimeout(this.#mending);
    this.#hangUp();
    if (this.#context.state !== "closed") await this.#context.close();
  }

  async #dial() {
    this.#dialling = true;
    try {
      await this.#offer();
    } finally {
      this.#dialling = false;
    }
  }

  async #offer() {
    this.#hangUp();
    const connection = new RTCPeerConnection();
    this.#connection = connection;
    connection.ontrack = ({ streams, track }) => this.#hear(streams[0] ?? new MediaStream([track]));
    connection.onconnectionstatechange = () => connection === this.#connection && this.#changed();
    this.#sender = connection.addTrack(this.#stream.getAudioTracks()[0], this.#stream);
    // the provider expects it in an offer; events come over our own line
    connection.createDataChannel("oai-events");
    await connection.setLocalDescription(await connection.createOffer());
    await gathered(connection);
    const sdp = await this.#api.offer(this.#call.session, connection.localDescription.sdp);
    await connection.setRemoteDescription({ type: "answer", sdp }).catch(() => {
      throw new ApiError(0, "The provider's answer could not be read. Call again.");
    });
  }

  #hear(stream) {
    this.#audio.srcObject = stream;
    this.#audio.play().catch(() => this.#told.failed("The browser does not play sound before the page is touched. Press a key."));
    this.#ears.agent = this.#ear(stream);
  }

  #changed() {
    const state = this.#connection?.connectionState;
    clearTimeout(this.#mending);
    if (state === "connected") this.#told.restored();
    if (state === "failed") this.#mend();
    if (state === "disconnected") this.#mending = setTimeout(() => this.#mend(), MEND_MS);
  }

  /** Look for another way, once there is a line to offer it on: until then the sound may come back by itself. */
  async #mend() {
    if (this.#dialling || !this.#line.up) return;
    this.#told.lost();
    try {
      await this.#dial();
    } catch (error) {
      this.#told.failed(error.message);
    }
  }

  #hangUp() {
    const connection = this.#connection;
    this.#connection = null;
    connection?.close();
    this.#audio.srcObject = null;
  }

  /** Something that tells how loud a stream is. */
  #ear(stream) {
    const analyser = new AnalyserNode(this.#context, { fftSize: 1024 });
    this.#context.createMediaStreamSource(stream).connect(analyser);
    return { analyser, samples: new Float32Array(analyser.fftSize) };
  }

  #look() {
    const agent = level(this.#ears.agent);
    this.#told.levels(level(this.#ears.caller), agent);
    if (agent > SOUND) this.#heardAt = performance.now();
    this.#told.sounding(performance.now() - this.#heardAt < PAUSE_MS);
  }
}

function level(ear) {
  if (!ear) return 0;
  ear.analyser.getFloatTimeDomainData(ear.samples);
  return Math.sqrt(ear.samples.reduce((sum, sample) => sum + sample * sample, 0) / ear.samples.length);
}

function gathered(connection) {
  if (connection.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((done) => {
    const late = setTimeout(done, GATHERING_MS);
    connection.addEventListener("icegatheringstatechange", () => {
      if (connection.iceGatheringState !== "complete") return;
      clearTimeout(late);
      done();
    });
  });
}
