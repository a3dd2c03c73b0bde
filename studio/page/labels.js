// SPDX-License-Identifier: MPL-2.0
// Decodes label maps; studio/src/encode/labels.rs says how they are written.

/** The labels of a map in row order: bytes as they came -> Uint16Array of width * height. Throws where they are no such map. */
export function decodeLabels(bytes, width, height, labels = new Uint16Array(width * height)) {
  let at = 0;
  const next = () => {
    let byte = bytes[at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let shift = 7; shift < 32; shift += 7) {
      byte = bytes[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new Error("a number without an end in a label map");
  };
  for (let y = 0, row = 0; y < height; y++, row += width) {
    const end = row + width;
    let place = row, last = 0;
    while (place < end) {
      const copied = next();
      if (!(place + copied <= end)) throw new Error("a label map that ends early");
      if (y === 0) labels.fill(0, place, place + copied);
      else if (copied < 48) for (let i = place; i < place + copied; i++) labels[i] = labels[i - width];
      else labels.copyWithin(place, place - width, place - width + copied);
      place += copied;
      const run = next();
      if (run === 0) continue;
      const folded = next();
      last += (folded >>> 1) ^ -(folded & 1);
      if (place + run > end) throw new Error("a label map with a row that is too long");
      for (const stop = place + run; place < stop; place++) labels[place] = last;
    }
  }
  if (at !== bytes.length) throw new Error("a label map with bytes left over");
  return labels;
}
