// On the audio thread: the microphone's samples, at whatever rate the device has, into frames of the call's rate.

import { Frames, loudness } from "./frames.js";
import { Resampler } from "./resampler.js";

class Capture extends AudioWorkletProcessor {
  #resampler;
  #frames;
  #muted = false;
  #over = false;

  constructor({ processorOptions: { hz } }) {
    super();
    this.#resampler = new Resampler(sampleRate, hz);
    this.#frames = new Frames(hz);
    this.port.onmessage = ({ data }) => {
      if ("muted" in data) this.#muted = data.muted;
      if (data.over) this.#over = true;
    };
  }

  process([[samples]]) {
    if (samples) this.#frames.push(this.#resampler.push(samples), (frame) => this.#give(frame));
    return !this.#over;
  }

  #give(frame) {
    // silence, not nothing: the far end tells the time and the end of a sentence by what comes
    if (this.#muted) frame.fill(0);
    const level = loudness(frame);
    this.port.postMessage({ pcm: frame.buffer, level }, [frame.buffer]);
  }
}

registerProcessor("echoic-capture", Capture);
