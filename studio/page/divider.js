// SPDX-License-Identifier: MPL-2.0
// The line between what is compared, dragged by pointer or moved by keys.

export class Divider {
  #part = 0.5;

  /** `moved()` is called when it stands elsewhere. */
  constructor(element, canvas, viewport, moved) {
    Object.assign(this, { element, canvas, viewport, moved });
    element.addEventListener("pointerdown", (event) => element.setPointerCapture(event.pointerId));
    element.addEventListener("pointermove", (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const box = canvas.getBoundingClientRect();
      this.move((event.clientX - box.left) / box.width);
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.move(this.#part + step);
    });
    viewport.addEventListener("moved", () => this.#place());
  }

  /** Where it stands, 0 to 1 of the picture's width. */
  get part() {
    return this.#part;
  }

  move(part) {
    this.#part = Math.min(1, Math.max(0, part));
    this.element.setAttribute("aria-valuenow", Math.round(100 * this.#part));
    this.#place();
    this.moved();
  }

  /** Shows the line between two things of these names, or none. */
  show(names) {
    this.element.hidden = !names;
    if (names) {
      this.element.querySelectorAll(".tag").forEach((tag, i) => { tag.textContent = names[i]; });
      this.element.setAttribute("aria-label", `Divider between ${names.join(" and ")}`);
    }
    this.#place();
  }

  #place() {
    const box = this.canvas.getBoundingClientRect(), view = this.viewport.getBoundingClientRect();
    this.element.style.left = `${box.left - view.left + this.#part * box.width}px`;
  }
}
