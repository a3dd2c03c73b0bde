// SPDX-License-Identifier: MPL-2.0
// Written by web/tests/types.rs from the parameters and records of the library. Change them there.

/** Options that all algorithms have. */
export interface CommonOptions {
  /** Measure `regions`, and with `temporal` `motion`. Takes time. Default: true. */
  regions?: boolean;
  /** Find `neighbors`. Takes time. Default: false. */
  neighbors?: boolean;
  /** Mean colors of light instead of code values. Default: false. */
  linearLight?: boolean;
  /** A byte a pixel: superpixels are made where it is not 0. Default: none. */
  mask?: Uint8Array | Uint8ClampedArray;
}

/** Options of SLIC. */
export interface SlicOptions extends CommonOptions {
  algorithm?: "slic";
  /** Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixelSize`). 0 or more. Default: 100. */
  nSegments?: number;
  /** Grid step in px, the distance between seeds; higher = fewer and larger superpixels. 4 to 1024. Default: 16. */
  superpixelSize?: number;
  /** Assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (`temporal: true`), and those after a cut, take two. 1 to 100. Default: 5. */
  iterations?: number;
  /** Weight of position against color, in Lab units; higher = more regular superpixels. 0.1 to 1000. Default: 10. */
  compactness?: number;
  /** Color space of the differences (LSC: always Lab). Default: "lab". */
  colorSpace?: "lab" | "lab-gslicr" | "xyz-gslicr" | "rgb";
  /** Adapt the compactness of each superpixel to its colors (SLICO). Default: false. */
  adaptive?: boolean;
  /** Make every label one 4-connected region of at least `minRegion`. Default: true. */
  connectivity?: boolean;
  /** Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. 0 to 4. Default: 0.25. */
  minRegion?: number;
  /** Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that are no sequence. Default: false. */
  temporal?: boolean;
  /** How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges. 0 to 0.9. Default: 0.2. */
  temporalInertia?: number;
  /** GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels of the frame stay. Default: false. */
  stretchGray16?: boolean;
  /** Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual 1.5 to 2.5); higher = fewer regions. 0 to 100. Default: 0. */
  merge?: number;
  /** When two regions merge. Default: "mutual". */
  mergeRule?: "mutual" | "either";
  /** Never merge across a larger difference of mean colors, in Delta E (`colorSpace: rgb`: code values; 0 = no limit). 0 to 400. Default: 0. */
  mergeMaxDistance?: number;
  /** Merging passes, each from the means that the last one left; more = fewer regions. 1 to 8. Default: 1. */
  mergePasses?: number;
  /** Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer. 0 to 65535. Default: 0. */
  nRegions?: number;
  /** With `nRegions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact. 0 to 100. Default: 4. */
  regionsCompactness?: number;
  /** Attach the list of merges from the label map's regions, as they are after `refine`, down to one to the metadata: any coarser level is a cut. Default: false. */
  levels?: boolean;
  /** Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2). 0 to 8. Default: 0. */
  refine?: number;
  /** With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`colorSpace: rgb`: code values); higher = smoother outlines. 0 to 100. Default: 5. */
  smoothness?: number;
}

/** Options of LSC. */
export interface LscOptions extends CommonOptions {
  algorithm: "lsc";
  /** Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixelSize`). 0 or more. Default: 100. */
  nSegments?: number;
  /** Grid step in px, the distance between seeds; higher = fewer and larger superpixels. 4 to 1024. Default: 16. */
  superpixelSize?: number;
  /** Assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (`temporal: true`), and those after a cut, take two. 1 to 100. Default: 5. */
  iterations?: number;
  /** Weight of position against color, C_s / C_c of the paper; higher = more regular superpixels. 0.01 to 1. Default: 0.1. */
  ratio?: number;
  /** Make every label one 4-connected region of at least `minRegion`. Default: true. */
  connectivity?: boolean;
  /** Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. 0 to 4. Default: 0.25. */
  minRegion?: number;
  /** Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that are no sequence. Default: false. */
  temporal?: boolean;
  /** How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges. 0 to 0.9. Default: 0.2. */
  temporalInertia?: number;
  /** GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels of the frame stay. Default: false. */
  stretchGray16?: boolean;
  /** Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual 1.5 to 2.5); higher = fewer regions. 0 to 100. Default: 0. */
  merge?: number;
  /** When two regions merge. Default: "mutual". */
  mergeRule?: "mutual" | "either";
  /** Never merge across a larger difference of mean colors, in Delta E (`colorSpace: rgb`: code values; 0 = no limit). 0 to 400. Default: 0. */
  mergeMaxDistance?: number;
  /** Merging passes, each from the means that the last one left; more = fewer regions. 1 to 8. Default: 1. */
  mergePasses?: number;
  /** Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer. 0 to 65535. Default: 0. */
  nRegions?: number;
  /** With `nRegions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact. 0 to 100. Default: 4. */
  regionsCompactness?: number;
  /** Attach the list of merges from the label map's regions, as they are after `refine`, down to one to the metadata: any coarser level is a cut. Default: false. */
  levels?: boolean;
  /** Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2). 0 to 8. Default: 0. */
  refine?: number;
  /** With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`colorSpace: rgb`: code values); higher = smoother outlines. 0 to 100. Default: 5. */
  smoothness?: number;
}

/** Options of Quick shift. */
export interface QuickshiftOptions extends CommonOptions {
  algorithm: "quickshift";
  /** Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixelSize`). 0 or more. Default: 100. */
  nSegments?: number;
  /** Grid step in px, the distance between seeds; higher = fewer and larger superpixels. 4 to 1024. Default: 16. */
  superpixelSize?: number;
  /** Color space of the differences (LSC: always Lab). Default: "lab". */
  colorSpace?: "lab" | "lab-gslicr" | "xyz-gslicr" | "rgb";
  /** Width of the density kernel in px; higher = smoother; time grows with its square. 0.5 to 20. Default: 3. */
  sigma?: number;
  /** Longest link in px, in position and color together; higher = fewer and larger regions. 1 to 64. Default: 8. */
  tau?: number;
  /** Weight of a color unit (Delta E; `colorSpace: rgb`: code value) against a px; higher = regions follow color more closely. 0.01 to 10. Default: 0.5. */
  colorScale?: number;
  /** Make every label one 4-connected region of at least `minRegion`. Default: true. */
  connectivity?: boolean;
  /** Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. 0 to 4. Default: 0.25. */
  minRegion?: number;
  /** Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that are no sequence. Default: false. */
  temporal?: boolean;
  /** How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges. 0 to 0.9. Default: 0.2. */
  temporalInertia?: number;
  /** GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels of the frame stay. Default: false. */
  stretchGray16?: boolean;
  /** Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual 1.5 to 2.5); higher = fewer regions. 0 to 100. Default: 0. */
  merge?: number;
  /** When two regions merge. Default: "mutual". */
  mergeRule?: "mutual" | "either";
  /** Never merge across a larger difference of mean colors, in Delta E (`colorSpace: rgb`: code values; 0 = no limit). 0 to 400. Default: 0. */
  mergeMaxDistance?: number;
  /** Merging passes, each from the means that the last one left; more = fewer regions. 1 to 8. Default: 1. */
  mergePasses?: number;
  /** Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer. 0 to 65535. Default: 0. */
  nRegions?: number;
  /** With `nRegions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact. 0 to 100. Default: 4. */
  regionsCompactness?: number;
  /** Attach the list of merges from the label map's regions, as they are after `refine`, down to one to the metadata: any coarser level is a cut. Default: false. */
  levels?: boolean;
  /** Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2). 0 to 8. Default: 0. */
  refine?: number;
  /** With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`colorSpace: rgb`: code values); higher = smoother outlines. 0 to 100. Default: 5. */
  smoothness?: number;
}

/** Options of SNIC. */
export interface SnicOptions extends CommonOptions {
  algorithm: "snic";
  /** Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixelSize`). 0 or more. Default: 100. */
  nSegments?: number;
  /** Grid step in px, the distance between seeds; higher = fewer and larger superpixels. 4 to 1024. Default: 16. */
  superpixelSize?: number;
  /** Weight of position against color, in Lab units; higher = more regular superpixels. 0.1 to 1000. Default: 10. */
  compactness?: number;
  /** Color space of the differences (LSC: always Lab). Default: "lab". */
  colorSpace?: "lab" | "lab-gslicr" | "xyz-gslicr" | "rgb";
  /** Make every label one 4-connected region of at least `minRegion`. Default: true. */
  connectivity?: boolean;
  /** Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. 0 to 4. Default: 0.25. */
  minRegion?: number;
  /** Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that are no sequence. Default: false. */
  temporal?: boolean;
  /** How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges. 0 to 0.9. Default: 0.2. */
  temporalInertia?: number;
  /** GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels of the frame stay. Default: false. */
  stretchGray16?: boolean;
  /** Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual 1.5 to 2.5); higher = fewer regions. 0 to 100. Default: 0. */
  merge?: number;
  /** When two regions merge. Default: "mutual". */
  mergeRule?: "mutual" | "either";
  /** Never merge across a larger difference of mean colors, in Delta E (`colorSpace: rgb`: code values; 0 = no limit). 0 to 400. Default: 0. */
  mergeMaxDistance?: number;
  /** Merging passes, each from the means that the last one left; more = fewer regions. 1 to 8. Default: 1. */
  mergePasses?: number;
  /** Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer. 0 to 65535. Default: 0. */
  nRegions?: number;
  /** With `nRegions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact. 0 to 100. Default: 4. */
  regionsCompactness?: number;
  /** Attach the list of merges from the label map's regions, as they are after `refine`, down to one to the metadata: any coarser level is a cut. Default: false. */
  levels?: boolean;
  /** Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2). 0 to 8. Default: 0. */
  refine?: number;
  /** With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`colorSpace: rgb`: code values); higher = smoother outlines. 0 to 100. Default: 5. */
  smoothness?: number;
}

/** Options of any algorithm. */
export type Options = SlicOptions | LscOptions | QuickshiftOptions | SnicOptions;

/** Pixel formats. */
export type PixelFormat =
  | "RGBA"
  | "BGRA"
  | "RGBx"
  | "BGRx"
  | "ARGB"
  | "ABGR"
  | "xRGB"
  | "xBGR"
  | "RGB"
  | "BGR"
  | "GRAY8"
  | "NV12"
  | "I420"
  | "P010_10LE"
  | "YUY2"
  | "UYVY"
  | "YVYU"
  | "NV21"
  | "YV12"
  | "NV16"
  | "NV61"
  | "Y42B"
  | "Y444"
  | "AYUV"
  | "A420"
  | "GBR"
  | "RGBP"
  | "GRAY16_LE"
  | "GRAY16_BE"
  | "P012_LE"
  | "P016_LE"
  | "I420_10LE"
  | "I420_12LE"
  | "I422_10LE"
  | "I422_12LE"
  | "Y444_10LE"
  | "Y444_12LE"
  | "Y444_16LE"
  | "RGB10A2_LE"
  | "BGR10A2_LE"
  | "ARGB64_LE"
  | "RGBA64_LE"
  | "BGRA64_LE"
  | "ABGR64_LE"
  | "RGB48_LE"
  | "BGR48_LE";

/** One region; record i belongs to label i; each field holds those of all records. */
export interface RegionTable {
  /** Name of the region over time; the label where `temporal` is off. */
  trackId: Uint32Array;
  /** Number of pixels [px]. */
  area: Uint32Array;
  /** Centroid, x then y; pixel centers have integer coordinates [px], 2 numbers each. */
  centroid: Float32Array;
  /** Mean R', G', B', rounded half up [code values], 3 numbers each. */
  meanRgb: Uint8Array;
  /** Mean CIE L, a, b (D65) [Lab units], 3 numbers each. */
  meanLab: Float32Array;
  /** Bounding box: x0, y0, x1, y1; x1 and y1 exclusive [px], 4 numbers each. */
  bounds: Uint16Array;
}

/** How a region has come to its place; record i belongs to label i; each field holds those of all records. */
export interface MotionTable {
  /** Motion since the last frame, x then y; 0 in the first frame and after a cut [px per frame], 2 numbers each. */
  velocity: Float32Array;
  /** Number of earlier frames with the same `track_id` [frames]. */
  age: Uint32Array;
}

/** Two regions that touch; records are sorted by (a, b); each field holds those of all records. */
export interface NeighborTable {
  /** Lower label [label]. */
  a: Uint32Array;
  /** Higher label [label]. */
  b: Uint32Array;
  /** Length of the shared boundary: pairs of pixels side by side or one above the other [pixel edges]. */
  length: Uint32Array;
}

/** Two regions that become one in the next coarser level; each field holds those of all records. */
export interface MergeStepTable {
  /** A label of one; its region is by then part of the first of both [label]. */
  a: Uint32Array;
  /** A label of the other [label]. */
  b: Uint32Array;
  /** How unlike both are, comparable in one frame only; never falls from record to record. */
  height: Float32Array;
  /** Area of the region that the two are in, with all that has joined it at the same time [px]. */
  area: Uint32Array;
}
