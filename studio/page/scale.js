// SPDX-License-Identifier: MPL-2.0
// Sliders over ranges of any kind: the default stands a third of the way, so that what is usual has room.

/** Ranges without an end in practice end here on the slider; the number beside it takes all. */
const ENDLESS = 1e6, SHOWN = 10000;
const STEPS = 1000;

export class Scale {
  constructor({ kind, min, max, default: usual }) {
    this.whole = kind === "integer";
    this.low = min;
    this.high = max > ENDLESS ? SHOWN : max;
    const third = (usual - this.low) / (this.high - this.low);
    // Linear where the default is at an end of a short range.
    this.bend = third > 0 && third < 1 ? bendFor(third) : this.high - this.low > 60 ? 5 : 0;
    this.steps = this.whole && this.high - this.low <= 60 ? this.high - this.low : STEPS;
    if (this.whole && this.steps < STEPS) this.bend = 0;
  }

  /** From a step of the slider to a value of a few digits. */
  value(step) {
    const t = step / this.steps;
    const part = this.bend === 0 ? t : Math.expm1(this.bend * t) / Math.expm1(this.bend);
    const value = this.low + part * (this.high - this.low);
    if (this.whole) return Math.round(value);
    return Math.min(this.high, Math.max(this.low, Number(value.toPrecision(3))));
  }

  /** The step at a value. */
  step(value) {
    const part = Math.min(1, Math.max(0, (value - this.low) / (this.high - this.low)));
    const t = this.bend === 0 ? part : Math.log1p(part * Math.expm1(this.bend)) / this.bend;
    return Math.round(t * this.steps);
  }
}

/** The bend of a curve that has come to `part` of the range after a third of the way. */
function bendFor(part) {
  let [low, high] = [-20, 40];
  for (let i = 0; i < 60; i++) {
    const bend = (low + high) / 2;
    const there = Math.abs(bend) < 1e-6 ? 1 / 3 : Math.expm1(bend / 3) / Math.expm1(bend);
    if (there > part) low = bend;
    else high = bend;
  }
  const bend = (low + high) / 2;
  return Math.abs(bend) < 1e-3 ? 0 : bend;
}
