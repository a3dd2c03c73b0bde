// SPDX-License-Identifier: MPL-2.0
// One level of a picture: its regions as superpixels to paint and as outlines to draw, without a label map of its own.

/** Lists of the numbers below `count` that belong to each of some owners: those of `i` are in `items` from `starts[i]` to `starts[i + 1]`. */
function listed(owners, count, ownersOf) {
  const starts = new Uint32Array(owners + 1);
  for (let i = 0; i < count; i++) for (const owner of ownersOf(i)) starts[owner + 1]++;
  for (let i = 0; i < owners; i++) starts[i + 1] += starts[i];
  const items = new Uint32Array(starts[owners]), next = starts.slice();
  for (let i = 0; i < count; i++) for (const owner of ownersOf(i)) items[next[owner]++] = i;
  return { starts, items };
}

const of = ({ starts, items }, owner) => items.subarray(starts[owner], starts[owner + 1]);

export class Level {
  #boundaries;
  #lines;
  #members;
  #grain = 0;
  #paths = new Map();

  /** `groups` and `boundaries` as `Levels` gives them. */
  constructor(groups, boundaries) {
    Object.assign(this, { nRegions: groups.nRegions, of: groups.of, area: groups.area, bounds: groups.bounds });
    this.#boundaries = boundaries;
    const { beside } = boundaries, region = (label) => groups.of[label] ?? -1;
    this.#members = listed(groups.nRegions, groups.of.length, (superpixel) => [groups.of[superpixel]]);
    this.#lines = listed(groups.nRegions, beside.length / 2, (line) => {
      const right = region(beside[2 * line]), left = region(beside[2 * line + 1]);
      return right === left ? [] : [right, left].filter((one) => one >= 0);
    });
  }

  /** The region of a superpixel, or -1. */
  regionOf(superpixel) {
    return this.of[superpixel] ?? -1;
  }

  /** Superpixels of a region. */
  members(region) {
    return of(this.#members, region);
  }

  /** x0, y0, x1, y1 of a region, the last two exclusive. */
  box(region) {
    return this.bounds.subarray(4 * region, 4 * region + 4);
  }

  /** The outline of a region in pixels of the picture. Corners nearer than `grain` px to the last one are left out, which nobody sees where
   * the picture is shown that much smaller. */
  path(region, grain) {
    if (grain !== this.#grain) [this.#grain, this.#paths] = [grain, new Map()];
    const known = this.#paths.get(region);
    if (known) return known;
    const { starts, corners } = this.#boundaries, path = new Path2D();
    for (const line of of(this.#lines, region)) {
      const first = 2 * starts[line], end = 2 * starts[line + 1];
      let x = corners[first], y = corners[first + 1];
      path.moveTo(x, y);
      for (let i = first + 2; i < end; i += 2) {
        if (i + 2 < end && Math.abs(corners[i] - x) + Math.abs(corners[i + 1] - y) < grain) continue;
        [x, y] = [corners[i], corners[i + 1]];
        path.lineTo(x, y);
      }
    }
    this.#paths.set(region, path);
    return path;
  }
}
