// SPDX-License-Identifier: MPL-2.0
// What a user without a browser's types may write, and what the compiler has to refuse. No program runs this.
import { Levels, NO_LABEL, Segmenter, algorithms, boundaries, meanColor, parameters, polygons, readFrame, rle, segment, svg, threads } from "superpixels";
import type { Frame, Image, LabelMap, Options, Segmentation } from "superpixels";

const image: Image = { data: new Uint8Array(4 * 20 * 10), width: 20, height: 10 };
const planes: Image = { data: new Uint16Array(300), width: 20, height: 10, format: "I420_10LE", matrix: "bt709", fullRange: false };
const map: Segmentation = segment(image, { nSegments: 20, neighbors: true });
const labels: Uint16Array = map.labels;
const outside: 65535 = NO_LABEL;
const area: Uint32Array | undefined = map.regions?.area;
const options: Options = { algorithm: "lsc", ratio: 0.2, mask: new Uint8Array(200) };
segment(planes, options);
const count: number = threads();
segment(image, { algorithm: "quickshift", sigma: 3 });
// @ts-expect-error: no such option
segment(image, { nSegment: 20 });
// @ts-expect-error: no such algorithm
segment(image, { algorithm: "watershed" });
// @ts-expect-error: an option of another algorithm
segment(image, { algorithm: "snic", sigma: 3 });
// @ts-expect-error: an image has a height
segment({ data: new Uint8Array(4), width: 1 });
// @ts-expect-error: no such format
segment({ ...image, format: "RGBX" });
// @ts-expect-error: may be undefined
const certain: Uint32Array = map.regions.area;

declare const frame: Frame;
const promised: Promise<Segmentation> = segment(frame, options);
// @ts-expect-error: only a promise
const early: Segmentation = segment(frame);
readFrame(frame).then((read) => new Levels(read).cut(10).nRegions);
// @ts-expect-error: takes what readFrame gives
new Levels(frame);

const segmenter = new Segmenter({ temporal: true });
const next: Segmentation = segmenter.segment(image, new Uint8Array(200));
const later: Promise<Segmentation> = segmenter.segment(frame);
const velocity: Float32Array | undefined = next.motion?.velocity;
const drawn: Uint8ClampedArray = segmenter.draw(image, { fill: "mean-color", width: 0, color: [255, 0, 0] });
// @ts-expect-error: no such fill
segmenter.draw(image, { fill: "gray" });
segmenter.set({ compactness: 20 });
segmenter.free();

const levels = new Levels(image);
const region = levels.regionAt(1, 2, 30);
const bounds: [number, number, number, number] | undefined = region?.bounds;
// @ts-expect-error: outside of a mask there is none
region.area;
// @ts-expect-error: cannot be set
levels.nRegions = 5;
const level: LabelMap = levels.cut(5);
const pixels: Uint8ClampedArray = meanColor(image, boundaries.length ? level : map);
const text: string = svg(level, { colors: new Uint8Array(15) }) + rle(level, 3).counts;
const corners: number[] = polygons(level, 0, { tolerance: 1 }).flatMap(({ outer, holes }) => [...outer, ...holes.flat()]);
const titles: string[] = algorithms().flatMap((name) => parameters(name)).map(({ title }) => title);
export { area, bounds, certain, corners, count, drawn, early, labels, later, outside, pixels, promised, text, titles, velocity };
