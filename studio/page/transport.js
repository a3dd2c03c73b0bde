// SPDX-License-Identifier: MPL-2.0
// Pause, step, speed and position.

const SPEEDS = [0.1, 0.25, 0.5, 1, 1.5, 2, 4, 8];

const seconds = (value) => `${value.toFixed(2)} s`;

export class Transport {
  #link;
  #held = false;
  #paused = false;

  constructor(link, elements) {
    this.#link = link;
    Object.assign(this, elements);
    this.play.onclick = () => this.toggle();
    this.step.onclick = () => this.#link.send({ do: "step" });
    this.scrub.oninput = () => {
      this.#held = true;
      this.time.textContent = seconds(Number(this.scrub.value));
      this.#link.sendPaced("seek", { do: "seek", to: Number(this.scrub.value) });
    };
    this.scrub.onchange = () => { this.#held = false; };
    this.speed.onchange = () => this.#link.send({ do: "speed", factor: Number(this.speed.value) });
    for (const factor of SPEEDS) this.speed.append(new Option(`${factor}×`, factor));
    this.speed.value = 1;
  }

  get paused() {
    return this.#paused;
  }

  toggle() {
    this.#link.send({ do: "pause", on: !this.#paused });
  }

  /** A state of the studio. */
  state({ paused, speed, seekable, duration, live }) {
    this.#paused = paused;
    this.play.textContent = paused ? "▶" : "❚❚";
    this.play.setAttribute("aria-label", paused ? "Play" : "Pause");
    this.scrub.disabled = !seekable;
    this.scrub.title = seekable ? "" : live ? "A live source has no positions" : "This source cannot seek";
    if (duration !== null) this.scrub.max = duration;
    this.duration.textContent = duration === null ? (live ? "live" : "") : seconds(duration);
    this.speed.disabled = live;
    if (![...this.speed.options].some((option) => Number(option.value) === speed)) this.speed.append(new Option(`${speed}×`, speed));
    this.speed.value = speed;
  }

  /** A frame. */
  show({ time, number }) {
    this.number.textContent = `#${number}`;
    if (this.#held || time === null) return;
    this.scrub.value = time;
    this.time.textContent = seconds(time);
    this.scrub.setAttribute("aria-valuetext", seconds(time));
  }
}
