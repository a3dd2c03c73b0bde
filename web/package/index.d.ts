// SPDX-License-Identifier: MPL-2.0
// Types of the package.
/// <reference lib="esnext.disposable" />
import type { MergeStepTable, MotionTable, NeighborTable, Options, PixelFormat, RegionTable } from "./options.js";
export * from "./options.js";

/** An image: `ImageData` is one. */
export interface Image {
  /** Planes one after another, rows without gaps; for samples of 16 bits a `Uint16Array` or its bytes. */
  data: Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array;
  /** 1 to 16384 [px]. */
  width: number;
  /** 1 to 16384 [px]. */
  height: number;
  /** Default: "RGBA". */
  format?: PixelFormat;
  /** Matrix of Y'CbCr. Default: "bt601". */
  matrix?: "bt470bg" | "smpte170m" | "bt601" | "bt709" | "bt2020-ncl" | "smpte240m";
  /** Whether Y' is 0 to 255 and not 16 to 235. Default: true. */
  fullRange?: boolean;
}

/** What is read of a `VideoFrame` of WebCodecs: its visible pixels as they are, neither turned nor scaled. */
export interface Frame {
  /** `null` where only the graphics card knows the pixels; these are asked for as RGBA, which not every browser gives. */
  readonly format: string | null;
  readonly visibleRect: { readonly width: number; readonly height: number } | null;
  readonly colorSpace: { readonly matrix: string | null; readonly fullRange: boolean | null };
  allocationSize(options?: object): number;
  copyTo(destination: Uint8Array, options?: object): Promise<unknown>;
}

/** A label map: 0 to `nRegions - 1` row by row, and `NO_LABEL` outside of a mask. */
export interface LabelMap {
  width: number;
  height: number;
  labels: Uint16Array;
}

/** A level of a hierarchy. */
export interface Level extends LabelMap {
  nRegions: number;
}

/** A level by its superpixels. */
export interface Groups {
  nRegions: number;
  /** The region of each superpixel. */
  of: Uint16Array;
  /** Pixels of each region. */
  area: Uint32Array;
  /** x0, y0, x1, y1 of each region, the last two exclusive. */
  bounds: Uint16Array;
}

/** Boundaries between regions along the sides of pixels, from one corner where three or more meet to the next. */
export interface Boundaries {
  /** Labels to the right and to the left of each; `NO_LABEL` outside. */
  beside: Uint16Array;
  /** Each has the corners from `starts[i]` to `starts[i + 1]`. */
  starts: Uint32Array;
  /** x and y of the corners of pixels where boundaries begin, turn and end. */
  corners: Uint16Array;
}

/** A piece of a region: x and y of points in px in turn, of which the last is joined to the first. */
export interface Polygon {
  outer: number[];
  holes: number[][];
}

/** An option of an algorithm, from which a page makes a control. */
export interface Parameter {
  name: string;
  title: string;
  /** Empty where it has none. */
  unit: string;
  text: string;
  kind: "integer" | "number" | "boolean" | "choice";
  min?: number;
  max?: number;
  choices?: { name: string; text: string }[];
  default: number | boolean | string;
}

/** What a picture or frame gives. */
export interface Segmentation extends Level {
  /** With `regions`. */
  regions?: RegionTable;
  /** With `regions` and `temporal`. */
  motion?: MotionTable;
  /** With `neighbors`. */
  neighbors?: NeighborTable;
  /** With `levels`. */
  merges?: MergeStepTable;
}

/** Red, green and blue, 0 to 255. */
export type Color = [number, number, number];

/** What `Segmenter.draw` draws. */
export interface DrawOptions {
  fill?: "none" | "mean-color" | "labels" | "abstraction";
  width?: number;
  color?: Color;
}

/** The label of pixels outside of a mask. */
export const NO_LABEL: 65535;

/** Segments one picture. Throws `TypeError` or `RangeError`, with the name of what is wrong. */
export function segment(image: Image, options?: Options): Segmentation;
/** The same of a `VideoFrame`, which may be closed when the promise is kept. */
export function segment(frame: Frame, options?: Options): Promise<Segmentation>;

/** The image of a `VideoFrame`, for `Levels` and drawings. */
export function readFrame(frame: Frame): Promise<Image>;

/** Segments frames one after another, and keeps what that needs from call to call; with `temporal` a film. */
export class Segmenter {
  constructor(options?: Options);
  /** Segments the next frame. */
  segment(image: Image, mask?: Uint8Array | Uint8ClampedArray): Segmentation;
  /** Segments a `VideoFrame`. Frames have their turn in the order of calls. */
  segment(frame: Frame, mask?: Uint8Array | Uint8ClampedArray): Promise<Segmentation>;
  /** Changes options from the next frame on; the algorithm stays. */
  set(options: Partial<Options>): void;
  /** Forgets the frames before: the next one has new identities. */
  reset(): void;
  /** Draws the regions of the last frame on an image of its size and format, and returns the bytes of a copy. A `width` of 0 draws no lines. */
  draw(image: Image, options?: DrawOptions): Uint8ClampedArray;
  draw(frame: Frame, options?: DrawOptions): Promise<Uint8ClampedArray>;
  /** Gives the memory back. What nobody holds any more is freed, too, but later. */
  free(): void;
  [Symbol.dispose](): void;
}

/** All levels of a picture: superpixels, and the steps in which they are merged down to one. About 2000 superpixels by default. */
export class Levels {
  constructor(image: Image, options?: Options);
  readonly width: number;
  readonly height: number;
  /** Number of superpixels. */
  readonly nRegions: number;
  /** Superpixels, a copy. */
  readonly labels: Uint16Array;
  readonly regions: RegionTable;
  readonly merges: MergeStepTable;
  /** The map of exactly so many regions, 1 to 65535, or of as few as there can be. */
  cut(regions: number): Level;
  /** That level without its pixels. */
  groups(regions: number): Groups;
  /** The boundaries between superpixels, each once. The outline of a region of any level is some of them. */
  boundaries(): Boundaries;
  /** The region of a pixel in that map; `undefined` outside of a mask. `bounds` are x0, y0, x1, y1, the last two exclusive. */
  regionAt(x: number, y: number, regions: number): { label: number; area: number; bounds: [number, number, number, number] } | undefined;
  /** A region of that map inside of its bounds: a byte a pixel, 1 inside. */
  mask(label: number, regions: number): Uint8Array;
  /** Gives the memory back. */
  free(): void;
  [Symbol.dispose](): void;
}

/** The bytes of an image of packed RGB with lines: where the right or lower neighbor has another label. Default: yellow. */
export function boundaries(image: Image, map: LabelMap, options?: { color?: Color }): Uint8ClampedArray;

/** The bytes of an image of packed RGB with every region in its mean color. */
export function meanColor(image: Image, map: LabelMap): Uint8ClampedArray;

/** The mask of one region as COCO's run lengths. */
export function rle(map: LabelMap, label: number): { size: [number, number]; counts: string };

/** The pieces of one region, with `tolerance` 0, the default, exactly its pixels, else so many px from smoothed outlines at most. */
export function polygons(map: LabelMap, label: number, options?: { tolerance?: number }): Polygon[];

/** How many threads share the work: 1, but for the package superpixels-threads where it could start more. */
export function threads(): number;

/** Names of the algorithms. */
export function algorithms(): string[];

/** The options of an algorithm, with texts, ranges and defaults. */
export function parameters(algorithm: string): Parameter[];

/** The text of an SVG file. `colors` are three bytes a label, by default the mean colors in the map's table; `lines` is a width in px. */
export function svg(
  map: LabelMap & { regions?: RegionTable },
  options?: { tolerance?: number; lines?: number; color?: Color; colors?: Uint8Array },
): string;
