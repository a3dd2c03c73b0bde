// SPDX-License-Identifier: MPL-2.0
// A mask of pixels, and its strokes to undo: boxes with a bit for each pixel that changed, so that undoing and redoing are the same.

/** Strokes are forgotten, the oldest first, beyond so many bytes. */
const KEPT = 64 * 1024 * 1024;

export class PixelMask {
  #stroke = null;
  #done = [];
  #undone = [];
  #bytes = 0;
  #kept;

  constructor(width, height, kept = KEPT) {
    Object.assign(this, { width, height, area: 0 });
    this.#kept = kept;
    /** 1 inside, 0 outside. */
    this.data = new Uint8Array(width * height);
  }

  get canUndo() { return this.#done.length > 0; }
  get canRedo() { return this.#undone.length > 0; }

  /** Takes another mask, not 0 inside; nothing can be undone then. */
  replace(mask) {
    this.area = 0;
    for (let i = 0; i < mask.length; i++) this.area += this.data[i] = mask[i] ? 1 : 0;
    [this.#stroke, this.#done, this.#undone, this.#bytes] = [null, [], [], 0];
  }

  begin() {
    this.#stroke = [];
  }

  /** Gives `value` to the pixels of a box [x0, y0, x1, y1] that have a label; `null` has all. Returns whether one changed. */
  paint([x0, y0, x1, y1], labels, label, value) {
    const { data, width } = this, columns = x1 - x0;
    const bits = new Uint8Array((columns * (y1 - y0) + 7) >> 3);
    let changed = 0;
    for (let y = y0, bit = 0; y < y1; y++) {
      for (let i = y * width + x0, end = i + columns; i < end; i++, bit++) {
        if (data[i] === value || (labels !== null && labels[i] !== label)) continue;
        data[i] = value;
        bits[bit >> 3] |= 1 << (bit & 7);
        changed++;
      }
    }
    if (changed === 0) return false;
    this.area += value ? changed : -changed;
    this.#stroke.push({ box: [x0, y0, x1, y1], bits });
    return true;
  }

  /** Ends a stroke; returns whether it changed anything. */
  end() {
    const stroke = this.#stroke;
    this.#stroke = null;
    if (!stroke?.length) return false;
    this.#done.push(stroke);
    this.#undone = [];
    this.#bytes += size(stroke);
    while (this.#bytes > this.#kept && this.#done.length > 1) this.#bytes -= size(this.#done.shift());
    return true;
  }

  /** Takes a stroke back that has not ended; returns the boxes to be shown anew. */
  cancel() {
    const stroke = this.#stroke ?? [];
    this.#stroke = null;
    return this.#flip(stroke);
  }

  undo() { return this.#move(this.#done, this.#undone); }
  redo() { return this.#move(this.#undone, this.#done); }

  #move(from, to) {
    if (this.#stroke || !from.length) return [];
    to.push(from.pop());
    this.#flip(to.at(-1));
    const moved = size(to.at(-1));
    this.#bytes += to === this.#done ? moved : -moved;
    return to.at(-1).map(({ box }) => box);
  }

  #flip(stroke) {
    const { data, width } = this;
    for (const { box: [x0, y0, x1, y1], bits } of stroke) {
      for (let y = y0, bit = 0; y < y1; y++) {
        for (let i = y * width + x0, end = i + x1 - x0; i < end; i++, bit++) {
          if ((bits[bit >> 3] >> (bit & 7) & 1) === 0) continue;
          data[i] ^= 1;
          this.area += data[i] ? 1 : -1;
        }
      }
    }
    return stroke.map(({ box }) => box);
  }
}

const size = (stroke) => stroke.reduce((sum, { bits }) => sum + bits.length, 0);
