// SPDX-License-Identifier: MPL-2.0
// What is under the mouse, or under the cursor of the keyboard: outlines, and a card of what is known.

import { outline } from "./boundary.js";

const SVG = "http://www.w3.org/2000/svg";

/** A color as people write it. */
export const hex = (rgb) => `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

/** Name and text of everything that is known about a region. */
export function facts(region) {
  const [x0, y0, x1, y1] = region.bounds;
  const rows = [
    ["Track id", String(region.id)],
    ["Age", region.age === null ? "– (temporal is off)" : `${region.age} frames`],
    ["Area", `${region.area} px`],
    ["Mean color", hex(region.rgb)],
    ["Velocity", region.velocity ? `${region.velocity.map((v) => v.toFixed(1)).join(", ")} px` : "–"],
    ["Centroid", `${region.x.toFixed(1)}, ${region.y.toFixed(1)}`],
    ["Box", `${x0}, ${y0} – ${x1}, ${y1}`],
  ];
  return rows;
}

/** Follows a place on the picture. `pin(side, id, place)` is called for a click. */
export class Inspector {
  #marks;
  #card;
  #frame = null;
  #place = null;
  #divider = () => 1;

  constructor({ canvas, marks, card, viewport, announce, divider, pin }) {
    Object.assign(this, { canvas, viewport, announce, pin });
    this.#marks = marks;
    this.#card = card;
    this.#divider = divider;
    this.around = this.#add("around");
    this.shadow = this.#add("shadow");
    this.own = this.#add("own");
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("blur", () => this.leave());
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #add(kind) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", kind);
    this.#marks.append(path);
    return path;
  }

  /** A new frame: the same place, on what is there now. */
  show(frame) {
    if (this.#frame?.width !== frame.width || this.#frame.height !== frame.height) {
      this.#marks.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      if (this.#place && (this.#place.x >= frame.width || this.#place.y >= frame.height)) this.#place = null;
    }
    this.#frame = frame;
    this.#draw();
  }

  leave() {
    this.#place = null;
    this.#draw();
  }

  /** Pixel of the picture under a pointer. */
  pixel(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * this.canvas.width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * this.canvas.height);
    return { x: Math.min(Math.max(x, 0), this.canvas.width - 1), y: Math.min(Math.max(y, 0), this.canvas.height - 1) };
  }

  /** Index of the side that is seen at a column. */
  sideAt(x) {
    return this.#frame.sides.length > 1 && x >= Math.round(this.#divider() * this.#frame.width) ? 1 : 0;
  }

  /** Pins the region at the place, where there is one. */
  choose() {
    if (!this.#place || !this.#frame) return;
    const index = this.sideAt(this.#place.x), side = this.#frame.sides[index];
    this.pin(index, side.id(side.labelAt(this.#place.x, this.#place.y)), this.#place);
  }

  #move(event) {
    if (!this.#frame) return;
    this.#place = this.pixel(event);
    this.#draw();
  }

  #key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!this.#frame) return;
    if (event.key in steps) {
      event.preventDefault();
      const [dx, dy] = steps[event.key];
      const { width, height } = this.#frame;
      const from = this.#place ?? { x: width >> 1, y: height >> 1 };
      this.#place = this.#next(from, dx, dy, width, height);
      this.#draw();
      const side = this.#frame.sides[this.sideAt(this.#place.x)];
      const region = side.region(side.labelAt(this.#place.x, this.#place.y));
      this.announce(facts(region).slice(0, 4).map((fact) => fact.join(" ")).join(", "));
    } else if (event.key === "Enter") {
      this.choose();
    } else if (event.key === "Escape") {
      this.leave();
    }
  }

  /** The first pixel of another region in a direction, and a little into it. */
  #next({ x, y }, dx, dy, width, height) {
    const side = this.#frame.sides[this.sideAt(x)], label = side.labelAt(x, y);
    const inside = (a, b) => a >= 0 && b >= 0 && a < width && b < height;
    let [a, b] = [x, y];
    while (inside(a + dx, b + dy) && side.labelAt(a, b) === label) [a, b] = [a + dx, b + dy];
    const found = side.labelAt(a, b);
    for (let i = 0; i < 6 && inside(a + dx, b + dy) && side.labelAt(a + dx, b + dy) === found; i++) [a, b] = [a + dx, b + dy];
    return { x: a, y: b };
  }

  #draw() {
    const frame = this.#frame, place = this.#place;
    this.#card.hidden = !place || !frame;
    if (!place || !frame) {
      for (const path of [this.own, this.shadow, this.around]) path.removeAttribute("d");
      return;
    }
    const index = this.sideAt(place.x), side = frame.sides[index];
    const label = side.labelAt(place.x, place.y), region = side.region(label);
    const path = outline(side, label), around = side.neighbors(label);
    this.own.setAttribute("d", path);
    this.shadow.setAttribute("d", path);
    this.around.setAttribute("d", around.map((other) => outline(side, other)).join(""));
    const rows = facts(region);
    if (frame.sides.length > 1) rows.unshift(["Setting", "AB"[index]]);
    rows.push(["Neighbors", String(around.length)]);
    this.#card.replaceChildren(
      ...rows.flatMap(([name, text]) => {
        const dt = Object.assign(document.createElement("dt"), { textContent: name });
        const dd = Object.assign(document.createElement("dd"), { textContent: text });
        if (name === "Track id") dd.id = "inspected";
        if (name === "Mean color") {
          const swatch = document.createElement("i");
          swatch.style.background = text;
          dd.prepend(swatch);
        }
        return [dt, dd];
      }),
    );
    this.#placeCard(place, frame);
  }

  /** Beside the place, on the side with more room. */
  #placeCard(place, frame) {
    const box = this.canvas.getBoundingClientRect(), view = this.viewport.getBoundingClientRect();
    const x = box.left - view.left + ((place.x + 0.5) / frame.width) * box.width;
    const y = box.top - view.top + ((place.y + 0.5) / frame.height) * box.height;
    const left = x > view.width / 2 ? x - this.#card.offsetWidth - 24 : x + 24;
    const top = Math.min(Math.max(8, y - this.#card.offsetHeight / 2), view.height - this.#card.offsetHeight - 8);
    this.#card.style.left = `${Math.max(8, left)}px`;
    this.#card.style.top = `${top}px`;
  }
}
