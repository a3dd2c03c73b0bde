// SPDX-License-Identifier: MPL-2.0
// Small plots over time that are drawn as values come.

/** Colors of lines, light and dark enough for both themes. */
const COLORS = ["#14b8a6", "#f59e0b", "#818cf8", "#f472b6", "#84cc16", "#38bdf8", "#fb7185", "#c084fc", "#facc15", "#94a3b8"];
const LENGTH = 200;

/** A plot of one or more lines; those of `stacked` stand on each other. */
export class Plot {
  #canvas = document.createElement("canvas");
  #value = document.createElement("output");
  #legend = document.createElement("div");
  #lines = new Map();
  #format;
  #stacked;
  #waiting = false;
  /** How many values ago something was marked. */
  #marks = [];

  constructor(title, { format = (value) => value.toFixed(0), stacked = false, from = "zero" } = {}) {
    this.#format = format;
    this.#stacked = stacked;
    this.from = from;
    this.element = document.createElement("figure");
    this.element.className = "plot";
    const head = document.createElement("figcaption");
    head.append(Object.assign(document.createElement("span"), { textContent: title }), this.#value);
    this.#legend.className = "legend";
    this.#canvas.setAttribute("role", "img");
    this.title = title;
    this.element.append(head, this.#canvas, this.#legend);
  }

  /** Marks the last value with a line across. */
  mark() {
    this.#marks.push(0);
  }

  /** Adds one value to each named line; lines that are not named end. */
  add(values) {
    this.#marks = this.#marks.map((ago) => ago + 1).filter((ago) => ago < LENGTH);
    for (const name of this.#lines.keys()) if (!(name in values)) this.#forget(name);
    for (const [name, value] of Object.entries(values)) {
      if (!this.#lines.has(name)) this.#name(name);
      const line = this.#lines.get(name);
      line.push(value);
      if (line.length > LENGTH) line.shift();
    }
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(() => this.#draw(), 150);
  }

  #forget(name) {
    this.#lines.get(name).key.remove();
    this.#lines.delete(name);
    this.#legend.hidden = this.#lines.size < 2;
  }

  #name(name) {
    const used = [...this.#lines.values()].map((line) => line.color);
    const color = COLORS.find((color) => !used.includes(color)) ?? COLORS[0];
    const key = Object.assign(document.createElement("span"), { textContent: name });
    this.#lines.set(name, Object.assign([], { color, key }));
    key.style.setProperty("--key", color);
    this.#legend.append(key);
    this.#legend.hidden = this.#lines.size < 2;
  }

  #draw() {
    this.#waiting = false;
    const lines = [...this.#lines.values()];
    const last = lines.map((line) => line.at(-1));
    const text = this.#stacked
      ? this.#format(last.reduce((sum, value) => sum + value, 0))
      : last.map(this.#format).join(" · ");
    this.#value.textContent = text;
    this.#canvas.setAttribute("aria-label", `${this.title}: ${text}`);
    const ratio = devicePixelRatio, width = this.#canvas.clientWidth, height = this.#canvas.clientHeight;
    if (!width) return;
    if (this.#canvas.width !== Math.round(width * ratio)) {
      Object.assign(this.#canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    }
    const context = this.#canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const sums = new Array(LENGTH).fill(0);
    const tops = lines.map((line) => {
      const start = LENGTH - line.length;
      return line.map((value, i) => (this.#stacked ? (sums[start + i] += value) : value));
    });
    const all = tops.flat();
    const low = this.from === "zero" ? 0 : Math.min(...all), high = Math.max(...all, low + 1e-6);
    const x = (line, i) => ((LENGTH - line.length + i) / (LENGTH - 1)) * width;
    const y = (value) => height - 2 - ((value - low) / (high - low)) * (height - 6);
    // The highest first, so that those below stay in sight.
    lines.map((line, index) => [line, tops[index]]).reverse().forEach(([line, top]) => {
      context.beginPath();
      top.forEach((value, i) => context.lineTo(x(line, i), y(value)));
      context.strokeStyle = context.fillStyle = line.color;
      context.lineWidth = 1.5;
      context.globalAlpha = 1;
      context.stroke();
      if (!this.#stacked && lines.length > 1) return;
      context.lineTo(width, height);
      context.lineTo(x(line, 0), height);
      context.globalAlpha = this.#stacked ? 0.75 : 0.15;
      context.fill();
    });
    context.globalAlpha = 1;
    context.fillStyle = getComputedStyle(this.#canvas).color;
    for (const ago of this.#marks) context.fillRect(((LENGTH - 1 - ago) / (LENGTH - 1)) * width, 0, 1, height);
    this.#canvas.dataset.marks = this.#marks.length;
  }
}
