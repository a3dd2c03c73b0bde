// SPDX-License-Identifier: MPL-2.0
// Objects: a click or a box says where one is, the studio follows it, and the page outlines it.

import { outlineOfObject } from "./boundary.js";
import { falseColor } from "./painter.js";

const SVG = "http://www.w3.org/2000/svg";
/** From so many px of the screen on a press is a box. */
const DRAG = 4;
/** Lines of text that would fill the height of the picture. */
const LINES = 28;

const svg = (name, parent, kind) => {
  const element = parent.appendChild(document.createElementNS(SVG, name));
  element.setAttribute("class", kind);
  return element;
};
const button = (title, name, action) => {
  const element = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: title });
  element.setAttribute("aria-label", name);
  element.onclick = action;
  return element;
};

/** The tool, the list and the outlines. Fires `change` where their number or the chosen one changes. */
export class Objects extends EventTarget {
  #root;
  #group;
  #box;
  #drag = null;
  #frame = null;
  #entries = new Map();
  #chosen = null;
  #ids = "";

  /** `send` sends a request, `pixel(event)` is the pixel under a pointer. Outlines are seen within the clip path of side a. */
  constructor({ root, marks, canvas, viewport, send, pixel, announce }) {
    super();
    Object.assign(this, { canvas, viewport, send, pixel, announce, on: false });
    this.#root = root;
    this.#group = svg("g", marks, "objects");
    this.#group.setAttribute("clip-path", "url(#seen-a)");
    this.#box = svg("rect", marks, "box");
    this.#box.setAttribute("hidden", "");
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    canvas.addEventListener("pointercancel", () => this.cancel());
    this.#empty();
  }

  get count() {
    return this.#entries.size;
  }

  /** Switches the tool. A picture that moves on is hard to hit, so it pauses. */
  use(on) {
    this.on = on;
    this.viewport.classList.toggle("marking", on);
    if (on) this.send({ do: "pause", on: true });
    else this.cancel();
  }

  cancel() {
    this.#drag = null;
    this.#box.setAttribute("hidden", "");
  }

  /** Says that a pixel of the frame on show is in the object, or outside of it. */
  click({ x, y }, outside = false) {
    this.#mark({ [outside ? "outside" : "inside"]: [x, y] });
  }

  #mark(place) {
    if (this.#frame?.time == null) return;
    this.send({ do: "mark", object: this.#chosen, time: this.#frame.time, place });
  }

  #press(event) {
    if (!this.on || event.button !== 0 || !this.#frame) return;
    this.send({ do: "pause", on: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.#drag = { from: this.pixel(event), x: event.clientX, y: event.clientY, moved: false };
  }

  #move(event) {
    const drag = this.#drag;
    if (!drag) return;
    drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > DRAG;
    if (!drag.moved) return;
    this.#box.removeAttribute("hidden");
    ["x", "y", "width", "height"].forEach((name, i) => this.#box.setAttribute(name, this.#place(event)[i]));
  }

  /** The box from the press to a pointer. */
  #place(event) {
    const { from } = this.#drag, to = this.pixel(event);
    return [Math.min(from.x, to.x), Math.min(from.y, to.y), Math.abs(from.x - to.x) + 1, Math.abs(from.y - to.y) + 1];
  }

  #release(event) {
    const drag = this.#drag;
    if (!drag) return;
    if (drag.moved) this.#mark({ box: this.#place(event) });
    else this.click(drag.from, event.altKey);
    this.cancel();
  }

  /** The objects that the studio knows. */
  state(objects) {
    const ids = objects.map(({ id }) => id).join();
    for (const [id, entry] of this.#entries) if (!objects.some((object) => object.id === id)) this.#drop(id, entry);
    if (objects.length && !this.#entries.size) this.#root.replaceChildren();
    for (const { id, marks } of objects) {
      const entry = this.#entries.get(id) ?? this.#add(id);
      entry.marks = marks;
    }
    if (!objects.length) this.#empty();
    if (this.#frame) this.show(this.#frame);
    if (ids === this.#ids) return;
    this.#ids = ids;
    this.dispatchEvent(new Event("change"));
  }

  /** Outlines what is in a frame. */
  show(frame) {
    this.#frame = frame;
    const [side] = frame.sides;
    for (const [id, entry] of this.#entries) {
      const found = side.objects.find((object) => object.id === id), times = entry.marks.map((time) => `${time.toFixed(2)} s`).join(", ");
      entry.element.classList.toggle("lost", !found);
      for (const mark of [entry.shadow, entry.path, entry.tag]) mark.toggleAttribute("hidden", !found);
      if (!found) {
        entry.facts.textContent = `not in this picture · marked at ${times}`;
        continue;
      }
      const [x, y, width, height] = found.box, path = outlineOfObject(side, found);
      entry.shadow.setAttribute("d", path);
      entry.path.setAttribute("d", path);
      const size = frame.height / LINES;
      entry.tag.setAttribute("font-size", size);
      entry.tag.setAttribute("x", Math.min(x, frame.width - size));
      entry.tag.setAttribute("y", Math.max(y - size / 4, size));
      entry.facts.textContent = `${found.area} px in ${found.regions} regions, ${width} × ${height} at ${x}, ${y} · marked at ${times}`;
    }
  }

  #add(id) {
    const color = falseColor(id), element = document.createElement("article"), head = document.createElement("header");
    const title = Object.assign(document.createElement("h3"), { textContent: `Object ${id}` }), swatch = document.createElement("i");
    swatch.style.background = color;
    title.prepend(swatch);
    const correct = button("Correct", `Correct object ${id}`, () => this.#choose(this.#chosen === id ? null : id));
    correct.setAttribute("aria-pressed", false);
    correct.title = "Boxes and clicks say more about this object; Alt and a click: not there";
    head.append(title, correct, button("✕", `Remove object ${id}`, () => this.send({ do: "forget", object: id })));
    const facts = Object.assign(document.createElement("p"), { className: "facts" });
    element.className = "pin";
    element.dataset.id = id;
    element.append(head, facts);
    this.#root.append(element);
    const shadow = svg("path", this.#group, "shadow"), path = svg("path", this.#group, "object"), tag = svg("text", this.#group, "name");
    path.style.stroke = tag.style.fill = color;
    path.dataset.id = tag.textContent = id;
    const entry = { element, correct, facts, shadow, path, tag, marks: [] };
    this.#entries.set(id, entry);
    this.announce(`Object ${id}`);
    return entry;
  }

  #drop(id, { element, shadow, path, tag }) {
    for (const part of [element, shadow, path, tag]) part.remove();
    this.#entries.delete(id);
    if (this.#chosen === id) this.#choose(null);
  }

  #choose(id) {
    this.#chosen = id;
    for (const [own, { correct }] of this.#entries) correct.setAttribute("aria-pressed", own === id);
    this.dispatchEvent(new Event("change"));
  }

  /** Id of the object that boxes and clicks are about; null where they begin another. */
  get chosen() {
    return this.#chosen;
  }

  clear() {
    for (const id of this.#entries.keys()) this.send({ do: "forget", object: id });
  }

  #empty() {
    const text = Object.assign(document.createElement("p"), { className: "hint" });
    text.textContent = "Switch “Object” on, then drag a box around a thing, or click into it. It is followed from picture to picture.";
    this.#root.replaceChildren(text);
  }
}
