// SPDX-License-Identifier: MPL-2.0
// Fits the picture into its place, zooms and moves it; tells clicks from drags.

const MOST = 24;

export class Zoom {
  #scale = 1;
  #x = 0;
  #y = 0;

  /** `click(event)` is called where a press was no drag. Presses are somebody else's while `taken()`. */
  constructor(viewport, content, canvas, click, taken = () => false) {
    Object.assign(this, { viewport, content, canvas });
    viewport.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.by(Math.exp(-event.deltaY / 300), event);
    }, { passive: false });
    this.#drag(click, taken);
    new ResizeObserver(() => this.fit()).observe(viewport);
  }

  /** Zooms by a factor around a pointer, or around the middle. */
  by(factor, at = null) {
    const box = this.viewport.getBoundingClientRect();
    const x = (at?.clientX ?? box.left + box.width / 2) - box.left - box.width / 2;
    const y = (at?.clientY ?? box.top + box.height / 2) - box.top - box.height / 2;
    const scale = Math.min(MOST, Math.max(1, this.#scale * factor)), ratio = scale / this.#scale;
    [this.#x, this.#y] = [x - (x - this.#x) * ratio, y - (y - this.#y) * ratio];
    this.#scale = scale;
    this.#apply();
  }

  reset() {
    [this.#scale, this.#x, this.#y] = [1, 0, 0];
    this.#apply();
  }

  /** Makes the picture as large as its place allows. */
  fit() {
    const { width, height } = this.canvas;
    const part = Math.min(this.viewport.clientWidth / width, this.viewport.clientHeight / height);
    this.content.style.width = `${width * part}px`;
    this.content.style.height = `${height * part}px`;
    this.#apply();
  }

  #apply() {
    const { clientWidth, clientHeight } = this.content;
    const room = (size) => (size * (this.#scale - 1)) / 2;
    this.#x = Math.min(room(clientWidth), Math.max(-room(clientWidth), this.#x));
    this.#y = Math.min(room(clientHeight), Math.max(-room(clientHeight), this.#y));
    this.content.style.transform = `translate(${this.#x}px, ${this.#y}px) scale(${this.#scale})`;
    this.content.classList.toggle("near", this.#scale > 1.5);
    this.viewport.dispatchEvent(new Event("moved"));
  }

  #drag(click, taken) {
    let from = null, moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || taken()) return;
      from = { x: event.clientX, y: event.clientY, left: this.#x, top: this.#y };
      moved = false;
    });
    window.addEventListener("pointermove", (event) => {
      if (!from) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      moved ||= Math.hypot(dx, dy) > 4;
      if (!moved || this.#scale === 1) return;
      [this.#x, this.#y] = [from.left + dx, from.top + dy];
      this.#apply();
    });
    window.addEventListener("pointerup", (event) => {
      if (from && !moved) click(event);
      from = null;
    });
  }
}
