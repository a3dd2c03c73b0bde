// SPDX-License-Identifier: MPL-2.0
// Types of the custom element <superpixel-brush>.
import type { SuperpixelWorker } from "./client.js";
import type { Options, Polygon } from "./index.js";

export type BrushMode = "add" | "remove";

/** Detail of `hover`; null while no region is pointed at. */
export interface Hover {
  x: number;
  y: number;
  /** Number of the region at this level. */
  region: number;
  /** Its pixels. */
  area: number;
  level: number;
}

export interface SuperpixelBrushEventMap extends HTMLElementEventMap {
  /** Regions of the picture can be selected. */
  load: CustomEvent<{ width: number; height: number; nRegions: number }>;
  /** A stroke, an undo or a redo has changed the mask. */
  change: CustomEvent<{ area: number; canUndo: boolean; canRedo: boolean }>;
  levelchange: CustomEvent<{ level: number; nRegions: number }>;
  hover: CustomEvent<Hover | null>;
  error: ErrorEvent;
}

/** Selects parts of a picture region by region. Importing this module defines the element. */
export class SuperpixelBrush extends HTMLElement {
  /** Address of the picture, the attribute `src`. */
  src: string | null;
  /** The picture; ImageData once it has been read. */
  get image(): ImageData | null;
  set image(picture: ImageData | ImageBitmap | HTMLImageElement | HTMLCanvasElement | Blob);
  /** Of the segmentation, as `Levels` takes them; `nSegments` and `algorithm` are attributes, too. A change keeps the mask. */
  options: Options;
  /** One that others use, too; without it the element starts its own. */
  get worker(): SuperpixelWorker | null;
  set worker(worker: SuperpixelWorker);
  /** Effect of a stroke; with Alt or the right button it has the other one. */
  mode: BrushMode;
  /** Regions of the picture at this level, 1 to 65535; unset a fifth of the superpixels. */
  get level(): number | null;
  set level(level: number | null);
  /** Superpixels, the finest level; 0 without a picture. */
  readonly nRegions: number;
  /** Labels of the finest level, not a copy. */
  readonly labels: Uint16Array | null;
  /** Resolves once regions can be selected, rejects if the picture or its segmentation fails. */
  readonly ready: Promise<void>;
  /** A byte a pixel, 1 where it is selected; not a copy. Setting one, not 0 inside, forgets strokes. */
  get mask(): Uint8Array | null;
  set mask(mask: Uint8Array | Uint8ClampedArray);
  /** Selected pixels. */
  readonly area: number;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  undo(): void;
  redo(): void;
  /** Selects nothing any more; can be undone. */
  clear(): void;
  /** Adds or removes the region of a pixel. */
  paint(x: number, y: number, mode?: BrushMode): void;
  /** The mask as PNG of 8-bit gray, 255 where it is selected. */
  toPNG(): Promise<Blob>;
  /** The mask as COCO's run lengths. */
  toRLE(): Promise<{ size: [number, number]; counts: string }>;
  /** The mask as polygons, exactly with `tolerance` 0, the default. */
  toPolygons(options?: { tolerance?: number }): Promise<Polygon[]>;
  addEventListener<K extends keyof SuperpixelBrushEventMap>(
    type: K, listener: (this: SuperpixelBrush, event: SuperpixelBrushEventMap[K]) => void, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "superpixel-brush": SuperpixelBrush;
  }
}
