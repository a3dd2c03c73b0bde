// SPDX-License-Identifier: MPL-2.0
// Types of the functions that a worker keeps: as in index.d.ts, as promises.
import type * as direct from "./index.js";
import type { Boundaries, Color, DrawOptions, Frame, Groups, Image, LabelMap, Level, MergeStepTable, Options, Parameter, Polygon, RegionTable, Segmentation } from "./index.js";

/** All levels of a picture, in a worker. */
export interface WorkerLevels {
  readonly width: number;
  readonly height: number;
  readonly nRegions: number;
  readonly labels: Uint16Array;
  readonly regions: RegionTable;
  readonly merges: MergeStepTable;
  cut(regions: number): Promise<Level>;
  groups(regions: number): Promise<Groups>;
  boundaries(): Promise<Boundaries>;
  regionAt(x: number, y: number, regions: number): Promise<ReturnType<direct.Levels["regionAt"]>>;
  mask(label: number, regions: number): Promise<Uint8Array>;
  /** Gives the worker's memory back. */
  free(): Promise<void>;
}

/** Segments frames one after another, in a worker. */
export interface WorkerSegmenter {
  segment(image: Image | Frame, mask?: Uint8Array | Uint8ClampedArray): Promise<Segmentation>;
  set(options: Partial<Options>): Promise<void>;
  reset(): Promise<void>;
  draw(image: Image | Frame, options?: DrawOptions): Promise<Uint8ClampedArray>;
  /** Gives the worker's memory back. */
  free(): Promise<void>;
}

/** The package's functions, kept by a worker. Calls are done in their order; errors are those of the functions. */
export class SuperpixelWorker {
  /**
   * Starts a worker, or takes one that runs the package's `worker.js`. `threads` says how many share the work, 1 to 64, in the package
   * superpixels-threads on a page that is cross-origin isolated; by default one per core, at most 8. Elsewhere there is one.
   */
  constructor(worker?: Worker, options?: { threads?: number });
  segment(image: Image | Frame, options?: Options): Promise<Segmentation>;
  levels(image: Image | Frame, options?: Options): Promise<WorkerLevels>;
  segmenter(options?: Options): Promise<WorkerSegmenter>;
  boundaries(image: Image | Frame, map: LabelMap, options?: { color?: Color }): Promise<Uint8ClampedArray>;
  meanColor(image: Image | Frame, map: LabelMap): Promise<Uint8ClampedArray>;
  rle(map: LabelMap, label: number): Promise<ReturnType<typeof direct.rle>>;
  polygons(map: LabelMap, label: number, options?: { tolerance?: number }): Promise<Polygon[]>;
  svg(...values: Parameters<typeof direct.svg>): Promise<string>;
  threads(): Promise<number>;
  algorithms(): Promise<string[]>;
  parameters(algorithm: string): Promise<Parameter[]>;
  /** Ends the worker; calls that have no answer yet are errors. */
  terminate(): void;
}
