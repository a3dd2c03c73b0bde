// SPDX-License-Identifier: MPL-2.0
// What a person takes along: pictures, label maps, tables, videos, and the pipeline as text.

import { Painter, VIEWS } from "./painter.js";
import { grayPng } from "./png.js";

/** Rows of a contact sheet, and frames from one to the next. */
const ROWS = 3, APART = 12;
const TILE = 480, GAP = 8, HEAD = 34;

/** Gives a file to the person. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  saveFrom(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** The same of an address of the studio. */
export function saveFrom(address, name) {
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

const png = (canvas) => new Promise((done) => canvas.toBlob(done, "image/png"));

/** The picture as it is seen. */
export async function savePicture(canvas, frame) {
  save(await png(canvas), `superpixels-${frame.number}.png`);
}

/** The exact label map of a side. */
export async function saveLabels(frame, index) {
  const { labels, width, height } = frame.sides[index];
  save(await grayPng(labels, width, height), `labels-${frame.number}.png`);
}

/** Collects frames of some moments, and draws each in all views that it has. */
export class Sheet {
  #frames = [];

  /** `done(blob, name)` gets the sheet, `progress(part)` how far it is. */
  constructor(look, { done, progress }) {
    Object.assign(this, { look, done, progress });
  }

  /** Takes a frame; `true` once no more are needed. A paused picture gives one row. */
  async offer(frame, paused) {
    const last = this.#frames.at(-1);
    if (last && frame.number < last.number + APART && !paused) {
      this.progress((this.#frames.length - 1 + (frame.number - last.number) / APART) / ROWS);
      return false;
    }
    this.#frames.push(frame);
    this.progress(this.#frames.length / ROWS);
    if (this.#frames.length < ROWS && !paused) return false;
    this.done(await png(this.#draw()), `contact-sheet-${frame.number}.png`);
    return true;
  }

  #draw() {
    const [first] = this.#frames, tall = Math.round((TILE * first.height) / first.width);
    const sheet = document.createElement("canvas"), tile = document.createElement("canvas");
    // The element draws only for those who look at it.
    const views = VIEWS.filter(({ name }) => name !== "abstraction" || this.#frames.every(({ sides }) => sides[0].abstraction));
    sheet.width = views.length * (TILE + GAP) + GAP;
    sheet.height = HEAD + this.#frames.length * (tall + GAP) + GAP;
    const context = sheet.getContext("2d"), painter = new Painter(tile);
    context.fillStyle = "#0e1116";
    context.fillRect(0, 0, sheet.width, sheet.height);
    context.fillStyle = "#e6edf3";
    context.font = "600 16px system-ui, sans-serif";
    views.forEach(({ name, title }, column) => {
      const left = GAP + column * (TILE + GAP);
      context.fillText(title, left, HEAD - 10);
      this.#frames.forEach((frame, row) => {
        painter.paint(frame, { ...this.look, view: name, beside: false, edges: false, cover: 1 });
        context.drawImage(tile, left, HEAD + row * (tall + GAP), TILE, tall);
      });
    });
    return sheet;
  }
}

/** Puts a text into the clipboard; where that is forbidden, into a field to copy from. */
export async function copyText(text, show) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    show(text);
    return false;
  }
}
