// SPDX-License-Identifier: MPL-2.0
// A segmented picture as the studio's painter takes it.

export class Side {
  /** `ids` are identities of the labels, if regions have any. */
  constructor({ labels, width, height, nRegions }, image, ids = null) {
    Object.assign(this, { labels, width, height, regions: nRegions, ids, abstraction: null });
    this.colors = means(labels, image.data, nRegions);
  }

  id(label) {
    return this.ids ? this.ids[label] : label;
  }

  /** Red in the lowest byte. */
  color(label) {
    const [r, g, b] = this.colors.subarray(3 * label, 3 * label + 3);
    return r | (g << 8) | (b << 16);
  }
}

/** Mean red, green and blue of each label, rounded half up, as the library draws them. */
function means(labels, data, count) {
  const sums = new Float64Array(4 * count), colors = new Uint8Array(3 * count);
  for (let i = 0, at = 0; i < labels.length; i++, at += 4) {
    const sum = 4 * labels[i];
    sums[sum] += data[at];
    sums[sum + 1] += data[at + 1];
    sums[sum + 2] += data[at + 2];
    sums[sum + 3]++;
  }
  for (let label = 0; label < count; label++) {
    for (let part = 0; part < 3; part++) colors[3 * label + part] = Math.floor(sums[4 * label + part] / Math.max(1, sums[4 * label + 3]) + 0.5);
  }
  return colors;
}
