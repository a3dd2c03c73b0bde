// SPDX-License-Identifier: MPL-2.0
// A frame as it comes: one binary message -> picture, label maps and records as typed arrays. studio/src/encode/mod.rs writes it.

import { decodeLabels } from "./labels.js";

/** Words of a record of 32 bits. */
const REGION = 10, MOTION = 3, NEIGHBOR = 3;

/** What the element said about one frame. */
export class Side {
  constructor(head, at) {
    Object.assign(this, { width: head.width, height: head.height, regions: head.regions, algo: head.algo });
    this.timeUs = head.time_us;
    this.stages = head.stages;
    this.labels = decodeLabels(at(Uint8Array, head.labels), head.width, head.height);
    this.words = at(Uint32Array, head.table);
    this.floats = at(Float32Array, head.table);
    this.bytes = at(Uint8Array, head.table);
    this.shorts = at(Uint16Array, head.table);
    this.motion = at(Float32Array, head.motion);
    this.ages = at(Uint32Array, head.motion);
    this.pairs = at(Uint32Array, head.neighbors);
  }

  /** The label at a pixel. */
  labelAt(x, y) {
    return this.labels[y * this.width + x];
  }

  id(label) {
    return this.words[label * REGION];
  }

  /** The label of a track id, or -1. */
  labelOf(id) {
    for (let label = 0; label < this.regions; label++) if (this.words[label * REGION] === id) return label;
    return -1;
  }

  /** Everything that is known about a region. */
  region(label) {
    const f = label * REGION, b = 4 * f, s = 2 * f, m = label * MOTION;
    const moves = this.motion.length > m;
    return {
      label,
      id: this.words[f],
      area: this.words[f + 1],
      x: this.floats[f + 2],
      y: this.floats[f + 3],
      rgb: [...this.bytes.subarray(b + 16, b + 19)],
      lab: [...this.floats.subarray(f + 5, f + 8)],
      bounds: [...this.shorts.subarray(s + 16, s + 20)],
      velocity: moves ? [this.motion[m], this.motion[m + 1]] : null,
      age: moves ? this.ages[m + 2] : null,
    };
  }

  /** Labels that touch a region. */
  neighbors(label) {
    const found = [];
    for (let i = 0; i < this.pairs.length; i += NEIGHBOR) {
      if (this.pairs[i] === label) found.push(this.pairs[i + 1]);
      else if (this.pairs[i + 1] === label) found.push(this.pairs[i]);
    }
    return found;
  }
}

/** Reads a message; the picture is decoded meanwhile. */
export async function readFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const at = (Type, [start, bytes]) => new Type(buffer, 4 + length + start, bytes / Type.BYTES_PER_ELEMENT);
  const picture = createImageBitmap(new Blob([at(Uint8Array, head.picture)], { type: "image/jpeg" }));
  const sides = head.sides.map((side) => new Side(side, at));
  return {
    number: head.number,
    time: head.time,
    encodeUs: head.encode_us,
    bytes: buffer.byteLength,
    width: sides[0].width,
    height: sides[0].height,
    sides,
    picture: await picture,
  };
}
