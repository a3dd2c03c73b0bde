// SPDX-License-Identifier: MPL-2.0
// What a page may write, and what the compiler has to refuse. No program runs this.
import { Segmenter, segment, type Segmentation } from "superpixels";
import { SuperpixelBrush } from "superpixels/brush";
import { SuperpixelWorker, type WorkerLevels } from "superpixels/worker";

const image = new ImageData(20, 10);
const map: Segmentation = segment(image);
declare const frame: VideoFrame;
const promised: Promise<Segmentation> = segment(frame);
const next: Promise<Segmentation> = new Segmenter().segment(frame);

const worker = new SuperpixelWorker(new Worker("worker.js", { type: "module" }));
const levels: WorkerLevels = await worker.levels(frame, { nSegments: 2000 });
const labels: Uint16Array = (await levels.cut(10)).labels;
const drawn: Uint8ClampedArray = await worker.boundaries(image, map, { color: [0, 0, 255] });
const count: number = await new SuperpixelWorker(undefined, { threads: 2 }).threads();
// @ts-expect-error: no such option
new SuperpixelWorker(undefined, { thread: 2 });
// @ts-expect-error: a promise
const early: Segmentation = worker.segment(image);
// @ts-expect-error: no such option
worker.segment(image, { nSegment: 20 });
// @ts-expect-error: no such function
worker.watershed(image);

const brush: SuperpixelBrush = document.querySelector("superpixel-brush") ?? new SuperpixelBrush();
brush.image = image;
brush.options = { algorithm: "snic", nSegments: 900 };
brush.addEventListener("change", ({ detail }) => { const area: number = detail.area; return area; });
brush.addEventListener("hover", ({ detail }) => detail?.region.toFixed());
// @ts-expect-error: null while no region is pointed at
brush.addEventListener("hover", ({ detail }) => detail.region);
// @ts-expect-error: no such mode
brush.mode = "erase";
// @ts-expect-error: cannot be set
brush.area = 5;
const png: Blob = await brush.toPNG();
export { count, drawn, early, labels, next, png, promised };
