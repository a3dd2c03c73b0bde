// SPDX-License-Identifier: MPL-2.0
// A control for every property of the element, made from what GObject says of it; no property is named here.

import { Scale } from "./scale.js";

/** How a text says that a whole number is a color. */
const COLOR = /0xAARRGGBB/;
/** Units as the texts name them. */
const UNIT = /\bin (px|Delta E|Lab units)\b/;

const plain = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Shows all properties in `root`; `change(name, value)` is called with what a person chooses. */
export class Controls {
  #rows = new Map();
  #values = {};
  #change;

  constructor(root, properties, change) {
    this.#change = change;
    const usual = make("div"), others = make("details"), restarting = make("details");
    others.append(make("summary", {}, "For other algorithms or settings"));
    restarting.append(make("summary", {}, "Start the pipeline again"));
    this.groups = { usual, others, restarting };
    for (const property of properties) {
      const row = new Row(property, (value) => this.#change(property.name, value));
      this.#rows.set(property.name, row);
      (property.playing ? usual : restarting).append(row.element);
    }
    root.replaceChildren(usual, others, restarting);
  }

  /** Shows values, the view's `overlay` among them, and puts properties without effect out of the way. */
  show(values) {
    this.#values = values;
    for (const [name, row] of this.#rows) {
      row.show(values[name]);
      if (!row.property.playing) continue;
      const group = this.#matters(row.property) ? this.groups.usual : this.groups.others;
      if (row.element.parentElement === group) continue;
      const after = [...group.querySelectorAll(".row")].find((other) => this.#place(other) > this.#place(row.element));
      group.insertBefore(row.element, after ?? null);
    }
  }

  /** Hides what does not hold `text`, and with `changed` what has its default. */
  filter(text, changed) {
    const wanted = text.trim().toLowerCase();
    for (const row of this.#rows.values()) row.element.hidden = !row.matches(wanted) || (changed && row.isDefault());
    for (const group of [this.groups.others, this.groups.restarting]) {
      group.hidden = !group.querySelector(".row:not([hidden])");
      if (wanted || changed) group.open = true;
    }
  }

  #place(element) {
    return [...this.#rows.values()].findIndex((row) => row.element === element);
  }

  /** A text may begin with what it is for: algorithms, or another property that has to be on. */
  #matters({ text }) {
    const head = text.split(":")[0];
    if (head === text) return true;
    const pairs = [...head.matchAll(/([\w-]+)=([\w-]+)/g)];
    if (pairs.length) return pairs.every(([, name, value]) => String(this.#values[name]) === value);
    const named = head.split(", ").map((part) => plain(part.replace(/^With /, "")));
    for (const { property } of this.#rows.values()) {
      if (property.kind === "enum") {
        const known = property.values.map(({ nick }) => plain(nick));
        if (named.every((name) => known.includes(name))) return named.includes(plain(String(this.#values[property.name])));
      } else if (named.length === 1 && (plain(property.nick) === named[0] || plain(property.name) === named[0])) {
        return this.#values[property.name] !== property.default;
      }
    }
    return true;
  }
}

/** One property: title, control, default, text. */
class Row {
  constructor(property, change) {
    this.property = property;
    const id = `property-${property.name}`;
    const unit = property.unit || property.text.match(UNIT)?.[1];
    this.reset = make("button", { type: "button", class: "quiet reset", title: `Default: ${property.default}` }, "↺");
    this.reset.setAttribute("aria-label", `${property.nick}: default, ${property.default}`);
    this.reset.onclick = () => change(property.default);
    const title = make("label", { for: id, title: property.name }, property.nick);
    if (unit) title.append(make("span", { class: "unit" }, unit));
    const inputs = KINDS[COLOR.test(property.text) ? "color" : property.kind](property, id, change);
    this.showValue = inputs.show;
    const text = make("p", { id: `${id}-text`, class: "text" }, property.text);
    for (const input of inputs.elements) input.setAttribute("aria-describedby", text.id);
    const head = make("div", { class: "head" }, title, this.reset);
    if (inputs.aside) head.append(inputs.aside);
    this.element = make("div", { class: "row", "data-name": property.name }, head, ...inputs.below, text);
  }

  show(value) {
    this.value = value;
    this.element.classList.toggle("is-changed", !this.isDefault());
    this.reset.hidden = this.isDefault();
    this.showValue(value);
  }

  isDefault() {
    return this.value === this.property.default;
  }

  matches(text) {
    const { name, nick, text: about } = this.property;
    return `${name} ${nick} ${about}`.toLowerCase().includes(text);
  }
}

/** Each kind gives what stands beside the title, what stands below it, and how a value is shown. */
const KINDS = {
  integer: numeric,
  float: numeric,
  boolean(property, id, change) {
    const input = make("input", { type: "checkbox", id, class: "toggle" });
    input.onchange = () => change(input.checked);
    return { elements: [input], aside: input, below: [], show: (value) => { input.checked = value; } };
  },
  enum(property, id, change) {
    const select = make("select", { id });
    for (const { nick, text } of property.values) select.append(make("option", { value: nick, title: text }, nick));
    select.onchange = () => change(select.value);
    return { elements: [select], aside: select, below: [], show: (value) => { select.value = value; } };
  },
  color(property, id, change) {
    const color = make("input", { type: "color", id });
    const cover = make("input", { type: "range", min: 0, max: 255, "aria-label": `${property.nick}: cover` });
    const send = () => change(Number(cover.value) * 2 ** 24 + parseInt(color.value.slice(1), 16));
    color.oninput = cover.oninput = send;
    const show = (value) => {
      color.value = `#${(value & 0xffffff).toString(16).padStart(6, "0")}`;
      cover.value = value >>> 24;
    };
    return { elements: [color, cover], aside: color, below: [cover], show };
  },
};

function numeric(property, id, change) {
  const scale = new Scale(property);
  const number = make("input", { type: "number", id, min: property.min, max: property.max, step: scale.whole ? 1 : "any" });
  const slider = make("input", { type: "range", min: 0, max: scale.steps, "aria-label": property.nick });
  slider.oninput = () => {
    const value = scale.value(Number(slider.value));
    number.value = value;
    slider.setAttribute("aria-valuetext", value);
    change(value);
  };
  number.onchange = () => {
    const value = Number(number.value);
    if (number.value === "" || !number.checkValidity()) number.reportValidity();
    else change(value);
  };
  const show = (value) => {
    // A value that the user is editing must not change under the cursor.
    if (document.activeElement !== number) number.value = value;
    if (document.activeElement !== slider || scale.value(Number(slider.value)) !== value) slider.value = scale.step(value);
    slider.setAttribute("aria-valuetext", value);
  };
  return { elements: [number, slider], aside: number, below: [slider], show };
}
