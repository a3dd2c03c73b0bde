// SPDX-License-Identifier: MPL-2.0
// Options of the segmentation as the studio's controls; which there are, the library says.

import { Controls } from "./controls.js";

const KINDS = { integer: "integer", number: "float", boolean: "boolean", choice: "enum" };
/** Options that the page sets itself. */
const OWN = ["temporal", "levels"];
/** Defaults of the page: levels need more superpixels to begin with than the library's default. */
const FIRST = { nSegments: 1500 };

/** A parameter as Controls takes one. */
function property({ name, title, unit, text, kind, min, max, choices, default: usual }) {
  return {
    name, nick: title, unit, text, min, max, kind: KINDS[kind], default: FIRST[name] ?? usual, playing: true,
    values: choices?.map((choice) => ({ nick: choice.name, text: choice.text })),
  };
}

export class Knobs {
  #root;
  #worker;
  #changed;
  #controls = null;
  #properties = [];
  #known = new Set();
  #filter = ["", false];
  #values = { algorithm: "slic" };

  /** `changed()` is called when an option has another value. */
  constructor(root, worker, changed) {
    [this.#root, this.#worker, this.#changed] = [root, worker, changed];
  }

  /** Shows the options of an algorithm; those of the last one keep their values where they have the same names. */
  async load(algorithm = this.#values.algorithm) {
    const [algorithms, parameters] = await Promise.all([this.#worker.algorithms(), this.#worker.parameters(algorithm)]);
    const choice = {
      name: "algorithm", title: "Algorithm", unit: "", text: "How superpixels are found", kind: "choice", default: algorithms[0],
      choices: algorithms.map((name) => ({ name, text: name })),
    };
    this.#known = new Set(parameters.map(({ name }) => name));
    this.#properties = [choice, ...parameters.filter(({ name }) => !OWN.includes(name))].map(property);
    const usual = Object.fromEntries(this.#properties.map((one) => [one.name, one.default]));
    const kept = Object.entries(this.#values).filter(([name]) => name in usual);
    this.#values = { ...usual, ...Object.fromEntries(kept), algorithm };
    this.#controls = new Controls(this.#root, this.#properties, (name, value) => this.#set(name, value));
    this.#show();
  }

  /** Options for the package: those that differ from its own defaults. */
  options() {
    const { nSegments, superpixelSize, algorithm, ...others } = this.#values;
    const options = { algorithm };
    if (nSegments > 0) options.nSegments = nSegments;
    else options.superpixelSize = superpixelSize;
    for (const { name, default: usual } of this.#properties) if (name in others && others[name] !== usual) options[name] = others[name];
    return options;
  }

  /** True if the algorithm has an option, also one that the page sets itself. */
  has(name) {
    return this.#known.has(name);
  }

  reset() {
    this.#values = { algorithm: this.#values.algorithm };
    this.load().then(this.#changed);
  }

  filter(text, changed) {
    this.#filter = [text, changed];
    this.#controls?.filter(text, changed);
  }

  async #set(name, value) {
    this.#values[name] = value;
    // Both say how large superpixels are; the last one that is touched counts.
    if (name === "superpixelSize") this.#values.nSegments = 0;
    if (name === "algorithm") await this.load(value);
    else this.#show();
    this.#changed();
  }

  #show() {
    this.#controls.show(this.#values);
    this.#controls.filter(...this.#filter);
  }
}
