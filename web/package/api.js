// SPDX-License-Identifier: MPL-2.0
// Names that the package exports.
import { isFrame, readFrame } from "./frame.js";
import * as native from "./native.js";

export { Levels, algorithms, boundaries, meanColor, parameters, polygons, rle, svg, threads } from "./native.js";
export { readFrame };

/** The label of pixels outside of a mask. */
export const NO_LABEL = 65535;

export function segment(image, options) {
  return isFrame(image) ? readFrame(image).then((image) => native.segment(image, options)) : native.segment(image, options);
}

export class Segmenter extends native.Segmenter {
  /** The last frame that is being read. */
  #last = Promise.resolve();

  segment(image, mask) {
    return isFrame(image) ? this.#read(image, (image) => super.segment(image, mask)) : super.segment(image, mask);
  }

  draw(image, options) {
    return isFrame(image) ? this.#read(image, (image) => super.draw(image, options)) : super.draw(image, options);
  }

  /** Frames have their turn as they came, whichever is read first. */
  #read(frame, use) {
    const done = Promise.all([readFrame(frame), this.#last]).then(([image]) => use(image));
    this.#last = Promise.allSettled([this.#last, done]);
    return done;
  }
}
