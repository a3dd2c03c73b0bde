// SPDX-License-Identifier: MPL-2.0
// Names that the package exports.
export { Levels, Segmenter, algorithms, boundaries, meanColor, parameters, polygons, rle, segment, svg } from "./native.js";

/** The label of pixels outside of a mask. */
export const NO_LABEL = 65535;
