// The caller's microphone: asked for, chosen, muted, lost. What goes wrong is said with the way out.

const CHOSEN = "echoic.microphone";
const TYPING = "Typing works meanwhile.";
const TROUBLE = {
  NotAllowedError: `The microphone is blocked for this page. Allow it in the address bar, then call again. ${TYPING}`,
  SecurityError: `The microphone is blocked for this page. Allow it in the address bar, then call again. ${TYPING}`,
  NotFoundError: `There is no microphone. Plug one in, or allow this browser to use it in the system's settings, then call again. ${TYPING}`,
  NotReadableError: `The microphone cannot be used: another program may be using it. Close that program, then call again. ${TYPING}`,
  OverconstrainedError: "This microphone was disconnected. Choose another.",
  AbortError: `The microphone stopped working. Plug it in again, then call again. ${TYPING}`,
};

/** There is no microphone to be had; the message says why and what to do. */
export class NoMicrophone extends Error {}

export class Microphone {
  #stream = null;
  #muted = false;
  #closed = false;
  #told;
  #look = () => {
    this.#told.devices();
    // unplugged, with no other there then: what is plugged in now is gone on with
    if (this.#stream?.getAudioTracks()[0].readyState === "ended") this.#replace(this.#stream);
  };

  /**
   * @param {{changed: (stream: MediaStream) => void, lost: (message: string) => void, devices: () => void}} told
   *   `changed`: another device speaks from now on; `lost`: it was unplugged and there is no other, or "" once there
   *   is; `devices`: there are others to choose from
   */
  constructor(told) {
    this.#told = told;
  }

  get stream() {
    return this.#stream;
  }

  get muted() {
    return this.#muted;
  }

  /** Which device is used; empty before it is known. */
  get device() {
    return this.#stream?.getAudioTracks()[0]?.getSettings().deviceId ?? "";
  }

  /** @throws {NoMicrophone} */
  async open() {
    // one that was chosen before and is not there now is no reason to have none
    this.#stream = await this.#ask({ ideal: remembered() });
    navigator.mediaDevices.addEventListener("devicechange", this.#look);
  }

  /** @returns {Promise<{id: string, label: string}[]>} the microphones there are */
  async devices() {
    const all = await navigator.mediaDevices.enumerateDevices();
    const inputs = all.filter((device) => device.kind === "audioinput" && device.deviceId);
    return inputs.map(({ deviceId, label }, place) => ({ id: deviceId, label: label || `Microphone ${place + 1}` }));
  }

  /**
   * Speak through another one from now on.
   * @throws {NoMicrophone} the one there was goes on
   */
  async choose(device) {
    const stream = await this.#ask({ exact: device });
    stop(this.#stream);
    this.#stream = stream;
    remember(device);
    this.#told.changed(this.#stream);
  }

  /** Muted, nothing but silence leaves the device, and the browser shows so. */
  mute(on) {
    this.#muted = on;
    for (const track of this.#stream?.getAudioTracks() ?? []) track.enabled = !on;
  }

  close() {
    this.#closed = true;
    navigator.mediaDevices?.removeEventListener("devicechange", this.#look);
    stop(this.#stream);
    this.#stream = null;
  }

  async #ask(deviceId) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new NoMicrophone(`Browsers give the microphone only to pages over https, or on this machine. ${TYPING}`);
    }
    const audio = { deviceId, echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      throw new NoMicrophone(TROUBLE[error.name] ?? `The microphone cannot be used (${error.name}). ${TYPING}`);
    }
    if (this.#closed) {
      stop(stream);
      throw new NoMicrophone("The call is over.");
    }
    const [track] = stream.getAudioTracks();
    track.enabled = !this.#muted;
    track.addEventListener("ended", () => this.#replace(stream));
    return stream;
  }

  /** The device went: the system's own choice takes over. */
  async #replace(stream) {
    if (stream !== this.#stream) return;
    try {
      this.#stream = await this.#ask({ ideal: "" });
      this.#told.changed(this.#stream);
      this.#told.devices();
      this.#told.lost("");
    } catch (error) {
      this.#told.lost(error.message);
    }
  }
}

function stop(stream) {
  for (const track of stream?.getTracks() ?? []) track.stop();
}

function remembered() {
  try {
    return localStorage.getItem(CHOSEN) ?? "";
  } catch {
    return "";
  }
}

function remember(device) {
  try {
    localStorage.setItem(CHOSEN, device);
  } catch {
    // asked again next time
  }
}
