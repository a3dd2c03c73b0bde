// SPDX-License-Identifier: MPL-2.0
// Reader of the binary message of a frame: pictures, label maps and records. studio/src/encode/mod.rs writes it and says how.
// Typed arrays lie on the message itself: sections begin at multiples of 8, and numbers are little endian on both sides.

import { decodeLabels } from "./labels.js";

/** Views of the types that a layout names. */
const VIEWS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

/** Kinds of events by their numbers. */
const KINDS = [null, "birth", "split", "death", "merge", "cut"];

/** Records of one section, read by the layout that the studio has sent. `viewOf(Type, range)` is a section as typed array. */
class Records {
  #fields = {};

  constructor(layout, viewOf, range) {
    this.count = range[1] / layout.bytes;
    // Within a view, `first` and `step` count elements: offsets and records are whole numbers of them.
    for (const [name, { offset, type, count: components }] of Object.entries(layout.fields)) {
      const View = VIEWS[type], { BYTES_PER_ELEMENT: bytes } = View;
      this.#fields[name] = { view: viewOf(View, range), first: offset / bytes, step: layout.bytes / bytes, components };
    }
  }

  /** One component of a field. */
  value(record, name, component = 0) {
    const { view, first, step } = this.#fields[name];
    return view[record * step + first + component];
  }

  /** All components of a field. */
  values(record, name) {
    const { view, first, step, components } = this.#fields[name], start = record * step + first;
    return [...view.subarray(start, start + components)];
  }
}

/** Segmentation of a frame by one setting; the page compares up to two, A and B, side by side. */
export class Side {
  constructor(head, viewOf, layouts) {
    Object.assign(this, { width: head.width, height: head.height, regions: head.regions, algo: head.algo });
    this.timeUs = head.time_us;
    this.stages = head.stages;
    this.labels = decodeLabels(viewOf(Uint8Array, head.labels), head.width, head.height);
    const records = (section) => new Records(layouts[section], viewOf, head[section]);
    this.table = records("table");
    this.motion = records("motion");
    this.pairs = records("neighbors");
    this.events = records("events");
    /** Objects that are seen, with id, box, area and number of regions; and the object of each label, 0 for none. */
    this.objects = head.objects ?? [];
    this.owners = head.owners ? viewOf(Uint8Array, head.owners) : new Uint8Array(head.regions);
    /** The element's own drawing; null unless this page looks at it. */
    this.abstraction = null;
  }

  /** The label at a pixel. */
  labelAt(x, y) {
    return this.labels[y * this.width + x];
  }

  /** The track id of a label. */
  id(label) {
    return this.table.value(label, "track_id");
  }

  /** The label of a track id, or -1 if the frame has no region of that track. */
  labelOf(id) {
    for (let label = 0; label < this.regions; label++) if (this.id(label) === id) return label;
    return -1;
  }

  /** Mean R, G, B of a region, red in the lowest byte. */
  color(label) {
    const channel = (i) => this.table.value(label, "mean_rgb", i) << (8 * i);
    return channel(0) | channel(1) | channel(2);
  }

  /** Everything that is known about a region. Velocity and age are null without temporal mode. */
  region(label) {
    const { table, motion } = this, [x, y] = table.values(label, "centroid"), moves = label < motion.count;
    return {
      label, x, y,
      id: this.id(label),
      area: table.value(label, "area"),
      rgb: table.values(label, "mean_rgb"),
      lab: table.values(label, "mean_lab"),
      bounds: table.values(label, "bounds"),
      velocity: moves ? motion.values(label, "velocity") : null,
      age: moves ? motion.value(label, "age") : null,
    };
  }

  /** What became of regions since the last frame: its kind, the track id, and the id that it split off from or merged into, or 0. */
  changes() {
    const { events } = this, field = (i, name) => events.value(i, name);
    return Array.from({ length: events.count }, (_, i) => ({
      kind: KINDS[field(i, "kind")], id: field(i, "track_id"), other: field(i, "other"),
    }));
  }

  /** Labels that touch a region. */
  neighbors(label) {
    const found = [];
    for (let i = 0; i < this.pairs.count; i++) {
      const a = this.pairs.value(i, "a"), b = this.pairs.value(i, "b");
      if (a === label) found.push(b);
      else if (b === label) found.push(a);
    }
    return found;
  }
}

/** Reads a message. `layouts` came with `hello`, the server's first message. Pictures are decoded meanwhile. */
export async function readFrame(buffer, layouts) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const viewOf = (Type, [start, bytes]) => new Type(buffer, 4 + length + start, bytes / Type.BYTES_PER_ELEMENT);
  const decode = (range, type) => createImageBitmap(new Blob([viewOf(Uint8Array, range)], { type }));
  const picture = decode(head.picture, "image/jpeg");
  const drawings = head.sides.map(({ abstraction }) => (abstraction ? decode(abstraction, "image/png") : null));
  const sides = head.sides.map((side) => new Side(side, viewOf, layouts));
  for (const [i, side] of sides.entries()) side.abstraction = await drawings[i];
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

/** Frees the pictures of a frame. */
export function closeFrame({ picture, sides }) {
  for (const bitmap of [picture, ...sides.map((side) => side.abstraction)]) bitmap?.close();
}

/** A copy of a frame, which keeps its pictures when the frame is closed. */
export async function copyFrame(frame) {
  const sides = frame.sides.map(async (side) => {
    const abstraction = side.abstraction && await createImageBitmap(side.abstraction);
    return Object.assign(Object.create(Object.getPrototypeOf(side)), side, { abstraction });
  });
  return { ...frame, picture: await createImageBitmap(frame.picture), sides: await Promise.all(sides) };
}
