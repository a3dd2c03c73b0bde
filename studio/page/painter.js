// SPDX-License-Identifier: MPL-2.0
// Draws a frame as it is to be seen: original, boundaries, mean colors, false colors or abstraction, of one or two sides.

/** Name, title, and what the element's property `overlay` calls the same. */
export const VIEWS = [
  { name: "original", title: "Original", overlay: "none" },
  { name: "boundaries", title: "Boundaries", overlay: "boundaries" },
  { name: "mean", title: "Mean colors", overlay: "mean-color" },
  { name: "false", title: "False colors", overlay: "labels" },
  { name: "abstraction", title: "Abstraction", overlay: "abstraction" },
];
/** Views that are one color a label. */
const FLAT = ["mean", "false"];

const PALETTE = makePalette(4096);

/** Opaque colors in the order of bytes that ImageData has; neighbors in number are far apart in hue. */
function makePalette(count) {
  const colors = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const hue = (i * 0.618033988749895) % 1, light = 0.4 + 0.3 * ((i * 0.754877666) % 1), strong = 0.4 + 0.35 * ((i * 0.569840291) % 1);
    const part = (shift) => {
      const k = (shift + 12 * hue) % 12;
      return Math.round(255 * (light - strong * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    colors[i] = (255 << 24) | (part(4) << 16) | (part(8) << 8) | part(0);
  }
  return colors;
}

/** The false color of an identity, as CSS. */
export function falseColor(id) {
  const color = PALETTE[id % PALETTE.length];
  return `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;
}

/** Columns of the picture, each `from` to `to` with the view of a side: two where something is compared. */
function split({ width, sides }, { view, beside, divider }) {
  const middle = Math.round(divider * width);
  let shown = sides.map((side, index) => ({ side, index, view }));
  if (beside && view === "abstraction" && sides.length === 1) shown = [...shown, { ...shown[0], view: "mean" }];
  return shown.map((part, i) => ({
    ...part,
    // The first frame after a change of view has no drawing yet; mean colors come nearest.
    view: part.view === "abstraction" && !part.side.abstraction ? "mean" : part.view,
    from: i === 0 ? 0 : middle,
    to: i === 0 && shown.length > 1 ? middle : width,
  }));
}

export class Painter {
  #canvas;
  #context;
  #layer = document.createElement("canvas");
  #image = null;
  #pixels = null;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { alpha: false });
  }

  /**
   * Draws. `look`: {view, beside, edges, cover 0..1, divider 0..1, edge: [{color 0xAARRGGBB, width}, ...] of both sides}. With
   * `beside` mean colors stand beside the abstraction.
   */
  paint(frame, look) {
    const { width, height } = frame;
    const canvas = this.#canvas, context = this.#context;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const parts = split(frame, look), edges = look.edges || look.view === "boundaries";
    const opaque = !edges || look.edge.every(({ color }) => color >>> 24 === 255);
    // If the overlay hides the picture completely, a single copy is enough.
    const covered = parts.every(({ view }) => FLAT.includes(view)) && look.cover >= 1 && opaque;
    if (!covered) context.drawImage(frame.picture, 0, 0, width, height);
    context.globalAlpha = look.cover;
    for (const { side, view, from, to } of parts) {
      if (view === "abstraction" && to > from) context.drawImage(side.abstraction, from, 0, to - from, height, from, 0, to - from, height);
    }
    context.globalAlpha = 1;
    if (!edges && !parts.some(({ view }) => FLAT.includes(view))) return;
    this.#size(width, height);
    const alpha = Math.round(255 * look.cover);
    for (const { side, index, view, from, to } of parts) {
      this.#fill(side, FLAT.includes(view) ? this.#colors(side, view, alpha) : null, from, to);
      if (edges) this.#edges(side, look.edge[index], from, to);
    }
    if (covered) {
      context.putImageData(this.#image, 0, 0);
      return;
    }
    this.#layer.getContext("2d").putImageData(this.#image, 0, 0);
    context.drawImage(this.#layer, 0, 0);
  }

  #size(width, height) {
    if (this.#image?.width === width && this.#image.height === height) return;
    Object.assign(this.#layer, { width, height });
    this.#image = new ImageData(width, height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
  }

  /** One color a label. */
  #colors(side, view, alpha) {
    const colors = new Uint32Array(side.regions);
    for (let label = 0; label < side.regions; label++) {
      const color = view === "false" ? PALETTE[side.id(label) % PALETTE.length] : side.color(label);
      colors[label] = (color & 0xffffff) | (alpha << 24);
    }
    return colors;
  }

  /** Columns `from` to `to` get their label's color, or none. */
  #fill(side, colors, from, to) {
    const { labels, width, height } = side, pixels = this.#pixels;
    for (let y = 0; y < height; y++) {
      const row = y * width;
      if (!colors) {
        pixels.fill(0, row + from, row + to);
        continue;
      }
      for (let i = row + from; i < row + to; i++) pixels[i] = colors[labels[i]];
    }
  }

  /** Pixels whose right or lower neighbor has another label, as wide as wanted. */
  #edges(side, { color, width: thick }, from, to) {
    const { labels, width, height } = side, pixels = this.#pixels;
    const shade = ((color & 0xff00ff00) | ((color >>> 16) & 255) | ((color & 255) << 16)) >>> 0;
    const before = (thick - 1) >> 1;
    for (let y = 0; y < height; y++) {
      const below = y + 1 < height ? width : 0;
      for (let i = y * width + from, end = y * width + to; i < end; i++) {
        const label = labels[i], x = i - y * width;
        if (labels[i + below] === label && (x + 1 >= width || labels[i + 1] === label)) continue;
        if (thick === 1) {
          pixels[i] = shade;
          continue;
        }
        const left = Math.max(from, x - before), right = Math.min(to, x - before + thick);
        for (let dy = -before; dy < thick - before; dy++) {
          if (y + dy >= 0 && y + dy < height) pixels.fill(shade, (y + dy) * width + left, (y + dy) * width + right);
        }
      }
    }
  }
}
