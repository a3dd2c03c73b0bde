// SPDX-License-Identifier: MPL-2.0
// Pinned regions: each is followed by its identity, plotted, and exported.

import { outline } from "./boundary.js";
import { hex } from "./inspect.js";
import { falseColor } from "./painter.js";
import { Plot } from "./plots.js";

const SVG = "http://www.w3.org/2000/svg";
/** Frames of a pin that are kept; the oldest go first. */
const LONGEST = 5000;
const COLUMNS = ["setting", "track_id", "frame", "time", "area", "x", "y", "velocity_x", "velocity_y", "age", "mean_color"];

export class Pins extends EventTarget {
  #pins = [];
  #root;
  /** Of each side: its outlines, and the part of the picture where they are seen. */
  #marks;
  #part = 0.5;
  #frame = null;

  constructor(root, marks) {
    super();
    this.#root = root;
    const make = (name, parent) => parent.appendChild(document.createElementNS(SVG, name));
    this.#marks = [0, 1].map((index) => {
      const clip = make("clipPath", marks), rect = make("rect", clip), group = make("g", marks);
      clip.id = `seen-${"ab"[index]}`;
      rect.setAttribute("height", "100%");
      group.setAttribute("clip-path", `url(#${clip.id})`);
      return { rect, group };
    });
    this.#empty();
  }

  get count() {
    return this.#pins.length;
  }

  /** Pins a region of a side, or lets it go where it is pinned. */
  toggle(index, id) {
    const known = this.#pins.find((pin) => pin.index === index && pin.id === id);
    if (known) this.remove(known);
    else this.#add(index, id);
  }

  clear() {
    for (const pin of [...this.#pins]) this.remove(pin);
  }

  /** The divider stands at this part of the width. */
  divide(part) {
    this.#part = part;
    if (this.#frame) this.#clip(this.#frame);
  }

  #clip({ width, sides }) {
    const middle = sides.length > 1 ? this.#part * width : width;
    const [a, b] = this.#marks;
    a.rect.setAttribute("width", middle);
    b.rect.setAttribute("x", middle);
    b.rect.setAttribute("width", width - middle);
  }

  /** Follows all pins into a frame. */
  show(frame) {
    this.#frame = frame;
    this.#clip(frame);
    for (const pin of this.#pins) {
      const side = frame.sides[pin.index];
      const label = side ? side.labelOf(pin.id) : -1;
      // A frame comes again when something else about it changes.
      if (pin.told !== frame.number) this.#tell(pin, side?.changes() ?? []);
      pin.told = frame.number;
      pin.element.classList.toggle("lost", label < 0);
      pin.mark.toggleAttribute("hidden", label < 0);
      if (label < 0) {
        const last = pin.history.at(-1);
        pin.facts.textContent = last ? `${pin.end || "ended"} after frame ${last.frame}, seen in ${pin.history.length} frames` : "not in this picture";
        pin.mark.removeAttribute("d");
        continue;
      }
      const region = side.region(label);
      pin.mark.setAttribute("d", outline(side, label));
      pin.facts.textContent = `${region.area} px at ${region.x.toFixed(0)}, ${region.y.toFixed(0)} · ${region.age === null ? "" : `age ${region.age} · `}${hex(region.rgb)}${pin.start ? ` · ${pin.start}` : ""}`;
      if (pin.history.at(-1)?.frame === frame.number) continue;
      pin.history.push({
        setting: "AB"[pin.index], track_id: pin.id, frame: frame.number, time: frame.time, area: region.area,
        x: region.x, y: region.y, velocity_x: region.velocity?.[0] ?? null, velocity_y: region.velocity?.[1] ?? null,
        age: region.age, mean_color: hex(region.rgb),
      });
      if (pin.history.length > LONGEST) pin.history.shift();
      pin.area.add({ area: region.area });
      pin.place.add({ x: region.x, y: region.y });
      if (region.age !== null) pin.life.add({ age: region.age });
    }
  }

  /** Where a pinned region came from, where it went, and marks where others split off from it or merged into it. */
  #tell(pin, changes) {
    for (const { kind, id, other } of changes) {
      if (id === pin.id && kind === "split") pin.start = `split off from ${other}`;
      if (id === pin.id && kind === "merge") pin.end = `merged into ${other}`;
      if (id === pin.id && kind === "death") pin.end = "ended";
      if (other === pin.id) pin.life.mark();
      if (kind === "cut") pin.end = "ended by a cut";
    }
  }

  remove(pin) {
    this.#pins.splice(this.#pins.indexOf(pin), 1);
    pin.element.remove();
    pin.mark.remove();
    if (!this.#pins.length) this.#empty();
    this.dispatchEvent(new Event("change"));
  }

  json() {
    return JSON.stringify(this.#pins.map(({ index, id, history }) => ({ setting: "AB"[index], track_id: id, frames: history })), null, 1);
  }

  csv() {
    const rows = this.#pins.flatMap(({ history }) => history.map((entry) => COLUMNS.map((name) => entry[name] ?? "").join(",")));
    return `${[COLUMNS.join(","), ...rows].join("\n")}\n`;
  }

  #empty() {
    const text = document.createElement("p");
    text.className = "hint";
    text.textContent = "Click a region of the picture to pin it. It is followed by its track id; area, position and life are plotted here.";
    this.#root.replaceChildren(text);
  }

  #add(index, id) {
    if (!this.#pins.length) this.#root.replaceChildren();
    const pin = { index, id, history: [], color: falseColor(id), start: "", end: "" };
    pin.area = new Plot("Area, px");
    pin.place = new Plot("Position, px", { from: "low" });
    pin.life = new Plot("Life, frames");
    pin.facts = document.createElement("p");
    pin.facts.className = "facts";
    const title = Object.assign(document.createElement("h3"), { textContent: `Region ${id}` });
    const swatch = document.createElement("i");
    swatch.style.background = pin.color;
    title.prepend(swatch);
    const remove = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "✕" });
    remove.setAttribute("aria-label", `Let region ${id} go`);
    remove.onclick = () => this.remove(pin);
    const head = document.createElement("header");
    head.append(title, remove);
    pin.element = document.createElement("article");
    pin.element.className = "pin";
    pin.element.dataset.id = id;
    const plots = document.createElement("div");
    plots.className = "plots small";
    plots.append(pin.area.element, pin.place.element, pin.life.element);
    pin.element.append(head, pin.facts, plots);
    pin.mark = document.createElementNS(SVG, "path");
    pin.mark.setAttribute("class", "pinned");
    pin.mark.style.stroke = pin.color;
    this.#marks[index].group.append(pin.mark);
    this.#root.prepend(pin.element);
    this.#pins.push(pin);
    this.dispatchEvent(new Event("change"));
  }
}
