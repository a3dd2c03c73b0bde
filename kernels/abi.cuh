// SPDX-License-Identifier: MPL-2.0
// Every struct that crosses between the host and a kernel: arguments, and records of memory that the host takes, reads or writes.
// Those of the metadata are in records.cuh.
//
// Below each stands where its fields are. This compiler checks those lines here, and src/cuda/abi.rs, which has the same structs,
// reads them as text and checks them there: a field that moves on one side only does not compile. What a struct means is said here.
#pragma once
#include "common.cuh"

#ifdef EMULATED_DEVICE
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#else
#define OFFSET_OF(type, field) ((size_t)__INTADDR__(&((type *)0)->field))
#endif
#define ABI(type, field, at) static_assert(OFFSET_OF(type, field) == at, "src/cuda/abi.rs has it elsewhere")
#define ABI_SIZE(type, bytes) static_assert(sizeof(type) == bytes, "src/cuda/abi.rs has another size")

// Records of the metadata.
#include "records.cuh"

// Batches.

// Addresses of a frame in a batch.
struct FramePlanes {
  u8 *plane[3];    // as in `FrameArgs`
  const u8 *mask;  // null where all is inside
  const u8 *prior; // null where there is one area
  u64 absent;      // 1 for a stream without a frame in this batch
};
ABI(FramePlanes, plane, 0);
ABI(FramePlanes, mask, 24);
ABI(FramePlanes, prior, 32);
ABI(FramePlanes, absent, 40);
ABI_SIZE(FramePlanes, 48);

// Of some frames, as `list_planes` is given them.
struct PlaneList {
  FramePlanes frames[LISTED_FRAMES];
};
ABI(PlaneList, frames, 0);
ABI_SIZE(PlaneList, 3072);

// What a kernel finds its frame by, its last parameter; see kernels/batch.cuh. The launch adds it.
struct Batch {
  const FramePlanes *planes;  // [frames]; null for a frame by itself
  u32 distance;               // bytes from a frame's memory to the next frame's
  u32 some;                   // 1 if some are absent, as the list says
};
ABI(Batch, planes, 0);
ABI(Batch, distance, 8);
ABI(Batch, some, 12);
ABI_SIZE(Batch, 16);

// Frames and colors.

// A frame in device memory and its own channels: R, G, B or Y, Cb, Cr; see `DeviceFrame::args` in src/cuda/frame.rs.
struct FrameArgs {
  u8 *plane[3];   // of each channel: R, G, B or Y, Cb, Cr
  u32 stride[3];  // bytes
  u32 width, height;
  u32 layout;     // a `Layout` of kernels/frame.cuh
  u32 bytes;      // of a pixel in the first plane
  u32 offset[3];  // bytes from the start of a row to each channel's first sample
  i32 luma_offset;
  i32 to_rgb[5];
  i32 to_yuv[9];
  i32 neutral;    // code of no chroma: half of what a sample's bits hold
  u32 step[3];    // bytes from a channel's sample to the next
  u32 shift[3];   // bits of a word below those of each channel
  u32 word;       // bytes that hold a sample: 1, 2 or 4
  u32 family;     // a `Family` of kernels/frame.cuh
  u32 shared[2];  // log2 of the columns and rows that share a sample of the second and third channel
  u32 big_endian; // whether a word's upper byte comes first
  u32 unused;
};
ABI(FrameArgs, plane, 0);
ABI(FrameArgs, stride, 24);
ABI(FrameArgs, width, 36);
ABI(FrameArgs, height, 40);
ABI(FrameArgs, layout, 44);
ABI(FrameArgs, bytes, 48);
ABI(FrameArgs, offset, 52);
ABI(FrameArgs, luma_offset, 64);
ABI(FrameArgs, to_rgb, 68);
ABI(FrameArgs, to_yuv, 88);
ABI(FrameArgs, neutral, 124);
ABI(FrameArgs, step, 128);
ABI(FrameArgs, shift, 140);
ABI(FrameArgs, word, 152);
ABI(FrameArgs, family, 156);
ABI(FrameArgs, shared, 160);
ABI(FrameArgs, big_endian, 168);
ABI(FrameArgs, unused, 172);
ABI_SIZE(FrameArgs, 176);

// A color space: see `ColorTables` in src/color.rs.
struct SpaceArgs {
  u32 space;  // a `Space` of kernels/features.cuh
  i32 matrix[9];
};
ABI(SpaceArgs, space, 0);
ABI(SpaceArgs, matrix, 4);
ABI_SIZE(SpaceArgs, 40);

struct IngestArgs {
  SpaceArgs space;
  // Samples that rounds visit: every 2^sample_shift-th column and row, sample_width a row.
  u32 sample_shift, sample_width;
  u32 clear_words;  // words that have to be zero before the next stage, cleared on the way
};
ABI(IngestArgs, space, 0);
ABI(IngestArgs, sample_shift, 40);
ABI(IngestArgs, sample_width, 44);
ABI(IngestArgs, clear_words, 48);
ABI_SIZE(IngestArgs, 52);

struct DrawArgs {
  u32 label_stride;
  u32 fill;      // a `Fill` of kernels/overlay.cu
  u32 width;     // of the boundary in px, 0 for none
  u32 alpha;
  u32 color[3];  // of the boundary, in the frame's own channels
};
ABI(DrawArgs, label_stride, 0);
ABI(DrawArgs, fill, 4);
ABI(DrawArgs, width, 8);
ABI(DrawArgs, alpha, 12);
ABI(DrawArgs, color, 16);
ABI_SIZE(DrawArgs, 28);

// The grid and what is clustered on it.

// The grid of home cells; see `Grid` in src/grid.rs.
struct GridArgs {
  u32 width, height, step, nx, ny;
  u32 step_inverse;  // 2^32 / step, rounded up: a multiplication finds the home cell
  u32 sample_step, sample_width, sample_height;
  u32 identity;      // nothing is clustered: every pixel is its own label
};
ABI(GridArgs, width, 0);
ABI(GridArgs, height, 4);
ABI(GridArgs, step, 8);
ABI(GridArgs, nx, 12);
ABI(GridArgs, ny, 16);
ABI(GridArgs, step_inverse, 20);
ABI(GridArgs, sample_step, 24);
ABI(GridArgs, sample_width, 28);
ABI(GridArgs, sample_height, 32);
ABI(GridArgs, identity, 36);
ABI_SIZE(GridArgs, 40);

struct SlicArgs : GridArgs {
  u32 color_shift;
  u32 initial;          // SLICO: M_k before the first round
  u32 position_weight;  // SLICO
  u32 unused;
  const u32 *seeds;     // [cells] where frames may have masks: column of a cell's seed, and row in the upper half; else null
};
ABI(SlicArgs, color_shift, 40);
ABI(SlicArgs, initial, 44);
ABI(SlicArgs, position_weight, 48);
ABI(SlicArgs, unused, 52);
ABI(SlicArgs, seeds, 56);
ABI_SIZE(SlicArgs, 64);

// Members of a cluster of SLIC: count, three channels, scaled position relative to the cell column and row before the cluster's
// own, largest squared color distance. 32 bits hold them: see `sample_step` in src/grid.rs.
struct __align__(16) SlicSums {
  u32 value[8];
};
ABI(SlicSums, value, 0);
ABI_SIZE(SlicSums, 32);

// A cluster of SLIC: three channels, scaled position, M_k.
struct __align__(16) SlicCenter {
  i32 value[8];
};
ABI(SlicCenter, value, 0);
ABI_SIZE(SlicCenter, 32);

// Memory of a frame that follows another: sums and centers by turns, and the final centers of the last frame and this.
struct SlicTemporal {
  SlicSums *sums[3];
  SlicCenter *centers[2];
  const SlicCenter *carried_last;
  SlicCenter *carried;
  i64 scale[2];  // a scaled position of 1 in 1/16 px, and the other way; 2^16 is one
};
ABI(SlicTemporal, sums, 0);
ABI(SlicTemporal, centers, 24);
ABI(SlicTemporal, carried_last, 40);
ABI(SlicTemporal, carried, 48);
ABI(SlicTemporal, scale, 56);
ABI_SIZE(SlicTemporal, 72);

struct LscArgs : GridArgs {
  float position_weight;  // what products of positions are multiplied with
  u32 unused;
  const u32 *seeds;       // as in `SlicArgs`
};
ABI(LscArgs, position_weight, 40);
ABI(LscArgs, unused, 44);
ABI(LscArgs, seeds, 48);
ABI_SIZE(LscArgs, 56);

// Sum of a cluster's members in LSC: cosines and sines of L, a, b, then, in two's complement, of x and y. 32 bits hold them: see
// src/algo/lsc/mod.rs. Behind the last cluster of the first set stands `LscMeans`.
struct __align__(16) LscSums {
  u32 value[12];
};
ABI(LscSums, value, 0);
ABI_SIZE(LscSums, 48);

// The mean feature: its color in quanta, and that over its squared length.
struct MeanColor {
  i32 color[6];
};
struct LscMean : MeanColor {
  float weights[6];
};
ABI(LscMean, color, 0);
ABI(LscMean, weights, 24);
ABI_SIZE(LscMean, 48);

// What stage `lsc/mean` leaves: the sum of all samples, and the mean; `ticket` counts blocks. Sum and ticket are zero before.
struct LscMeans {
  u64 total[6];
  LscMean mean;
  u32 ticket, unused[11];
};
ABI(LscMeans, total, 0);
ABI(LscMeans, mean, 48);
ABI(LscMeans, ticket, 96);
ABI(LscMeans, unused, 100);
ABI_SIZE(LscMeans, 144);

// Memory of a frame that follows another: sums and those before a round by turns, and the final sums of the last frame and
// this.
struct LscTemporal {
  LscSums *sums[3];
  LscSums *state[2];
  const LscSums *carried_last;
  LscSums *carried;
  const u32 *turn;  // pair of each whole px of a turn
  float square;     // of a pixel's feature
  u32 unused;
};
ABI(LscTemporal, sums, 0);
ABI(LscTemporal, state, 24);
ABI(LscTemporal, carried_last, 40);
ABI(LscTemporal, carried, 48);
ABI(LscTemporal, turn, 56);
ABI(LscTemporal, square, 64);
ABI(LscTemporal, unused, 68);
ABI_SIZE(LscTemporal, 72);

// Quick shift.

struct QuickShiftArgs {
  u32 width, height;
  i32 radius;
  i32 rows;                       // of the density's neighborhood that fit in shared memory at once
  float color, span, bias, unit;  // the weight's constants: see src/algo/quickshift/mod.rs
  float color_sq, tau_sq;         // the link's
  u32 offsets;
  i32 reach;
};
ABI(QuickShiftArgs, width, 0);
ABI(QuickShiftArgs, height, 4);
ABI(QuickShiftArgs, radius, 8);
ABI(QuickShiftArgs, rows, 12);
ABI(QuickShiftArgs, color, 16);
ABI(QuickShiftArgs, span, 20);
ABI(QuickShiftArgs, bias, 24);
ABI(QuickShiftArgs, unit, 28);
ABI(QuickShiftArgs, color_sq, 32);
ABI(QuickShiftArgs, tau_sq, 36);
ABI(QuickShiftArgs, offsets, 40);
ABI(QuickShiftArgs, reach, 44);
ABI_SIZE(QuickShiftArgs, 48);

struct __align__(16) QuickShiftOffset {
  float length_sq;
  i32 step;  // from a pixel's index to the other's, which orders the others as their indices do
  i32 dx, dy;
};
ABI(QuickShiftOffset, length_sq, 0);
ABI(QuickShiftOffset, step, 4);
ABI(QuickShiftOffset, dx, 8);
ABI(QuickShiftOffset, dy, 12);
ABI_SIZE(QuickShiftOffset, 16);

// Components.

// Pixels and features of a component: one sector of memory. One that holds nothing has been joined to another, whose index
// stands in that of its key.
struct __align__(16) ComponentSums {
  u32 count;
  u32 key;
  u64 color[3];
};
ABI(ComponentSums, count, 0);
ABI(ComponentSums, key, 4);
ABI(ComponentSums, color, 8);
ABI_SIZE(ComponentSums, 32);

// Counters of a frame, at `Components::counters`. All but the two of the grid's barrier are zero when a frame starts; those of quick
// shift's passes begin at FLATTEN_COUNTER of kernels/tuning.h.
#define COUNTER_REGIONS 2
#define FRAME_COUNTERS 43
#define COUNTER_BEFORE_PRIOR 41
enum Counter {
  COMPONENTS = 0,
  EDGES = 1,
  REGIONS = COUNTER_REGIONS,
  ROUNDS = 3,           // whether a round found anything small
  LATE_DONE = 29,       // of the last rounds: their end, and what they go over
  LATE_PAIRS = 30,
  LATE_SELECTORS = 31,
  SMALL = 32,           // pairs that something small is in
  REST = 33,            // rounds inside a grid, by turns of three
  INSIDE = 40,          // samples inside of a mask
  BEFORE_PRIOR = COUNTER_BEFORE_PRIOR,  // components and pairs before areas cut them
  ARRIVED = FRAME_COUNTERS,  // the barrier of cooperative grids: blocks that have arrived, generation
  GENERATION
};

// Lists of components and of pairs that touch. A component is known by its index in the lists, in no particular order, and ordered
// by its key: the index of its first pixel in raster order.
struct Components {
  u16 *local;       // [height][width] component of a pixel, counted from its tile's first
  u32 *tile_first;  // [tiles] first component of a tile
  u32 *tile_count;  // [tiles]
  u32 *parent;      // [components] union-find; a parent's key is never above its child's
  u32 *cluster;
  ComponentSums *sums;  // moved to the root as components are joined
  uint2 *edges;
  u32 *counters;    // a `Counter` each
  const u32 *prior; // [height][width] area of a pixel, whose borders components do not cross; null without
  // Pixels from which on a component never has to join another: pairs of two such are left out.
  u32 large;
  u32 unused;
};
ABI(Components, local, 0);
ABI(Components, tile_first, 8);
ABI(Components, tile_count, 16);
ABI(Components, parent, 24);
ABI(Components, cluster, 32);
ABI(Components, sums, 40);
ABI(Components, edges, 48);
ABI(Components, counters, 56);
ABI(Components, prior, 64);
ABI(Components, large, 72);
ABI(Components, unused, 76);
ABI_SIZE(Components, 80);

struct ConnectArgs {
  u32 width, height;
  u32 tiles_x;
  u32 min_region;
  u32 max_regions;
  u32 connectivity;      // off: nothing is joined, labels are numbered by cluster
  u32 border_pairs;      // pixel pairs across the borders of tiles; none where nobody asks for them
  u32 words;             // of the marks' bitmap
  u32 group_bits;        // how many of them form a group: a power of two, at least four
  u32 small_capacity;    // of the list of pairs that a small component is in
  float inverse_width;   // as in `Divisor`
  u32 fits_later;        // whether `connect_fit` follows
};
ABI(ConnectArgs, width, 0);
ABI(ConnectArgs, height, 4);
ABI(ConnectArgs, tiles_x, 8);
ABI(ConnectArgs, min_region, 12);
ABI(ConnectArgs, max_regions, 16);
ABI(ConnectArgs, connectivity, 20);
ABI(ConnectArgs, border_pairs, 24);
ABI(ConnectArgs, words, 28);
ABI(ConnectArgs, group_bits, 32);
ABI(ConnectArgs, small_capacity, 36);
ABI(ConnectArgs, inverse_width, 40);
ABI(ConnectArgs, fits_later, 44);
ABI_SIZE(ConnectArgs, 48);

// What components selected, ~0 if nothing, found by their keys, so that a selection names the position of the next one. Rounds take
// turns with two of them, which lie side by side.
struct Selections {
  u64 *at;
};
ABI(Selections, at, 0);
ABI_SIZE(Selections, 8);

// What few components are left for after the rounds with launches of their own: pairs that something small is in, and what
// selected in the last of these rounds, with its key.
struct Late {
  uint2 *pairs;
  uint2 *selectors;
};
ABI(Late, pairs, 0);
ABI(Late, selectors, 8);
ABI_SIZE(Late, 16);

// A mark for every region, where its label is found: at its first pixel, or at its cluster. First how many there are in each
// group of words, then the bitmap.
struct Marks {
  u32 *groups;
};
ABI(Marks, groups, 0);
ABI_SIZE(Marks, 8);

// What is added up for every region.
struct __align__(16) RegionSums {
  u64 x, y;
  u64 color[3];
  u64 samples[3];
  u32 area;
  u32 x0, y0, x1, y1;
  u32 unused[3];
};
ABI(RegionSums, x, 0);
ABI(RegionSums, y, 8);
ABI(RegionSums, color, 16);
ABI(RegionSums, samples, 40);
ABI(RegionSums, area, 64);
ABI(RegionSums, x0, 68);
ABI(RegionSums, y0, 72);
ABI(RegionSums, x1, 76);
ABI(RegionSums, y1, 80);
ABI(RegionSums, unused, 84);
ABI_SIZE(RegionSums, 96);

// Merging.

struct MergeArgs {
  u32 ratio;  // C squared, in 1/256
  u32 limit;  // largest squared distance that is merged across
  u32 mutual;
  u32 price;  // that a border of two areas of a prior adds to the squared distance; 0: it is never crossed
};
ABI(MergeArgs, ratio, 0);
ABI(MergeArgs, limit, 4);
ABI(MergeArgs, mutual, 8);
ABI(MergeArgs, price, 12);
ABI_SIZE(MergeArgs, 16);

// Device memory of the stage: one entry for each label that connectivity gave.
struct Merging {
  u32 *parent;  // union-find; a parent is never above its child
  ComponentSums *sums;
  u64 *mean;    // 16 bits a channel, in 1/16 quantum
  u32 *nearest;
  u32 *number;  // of roots: the label to be
  u32 *count;   // labels that connectivity gave
};
ABI(Merging, parent, 0);
ABI(Merging, sums, 8);
ABI(Merging, mean, 16);
ABI(Merging, nearest, 24);
ABI(Merging, number, 32);
ABI(Merging, count, 40);
ABI_SIZE(Merging, 48);

// Refinement.

struct RefineArgs {
  u32 width, height;
  u32 straight, diagonal;  // what a 4-neighbor in another region costs, and a diagonal one
};
ABI(RefineArgs, width, 0);
ABI(RefineArgs, height, 4);
ABI(RefineArgs, straight, 8);
ABI(RefineArgs, diagonal, 12);
ABI_SIZE(RefineArgs, 16);

// The drawing `abstraction`.

struct AbstractionArgs {
  u32 label_stride;
  u32 radius;            // pixels on either side that the Gaussian reaches
  u32 sample_step;       // columns and rows from one sample to the next, 1 or 2
  u32 shading;           // regions are planes of color
  u32 fraction;          // fraction bits of a code
  i32 steepest;          // largest slope of a plane
  u32 deviation;         // of the Gaussian, in 1/256 px
  u32 keeps_corners;
  u32 ink;               // width of lines in 1/256 px
  u32 ink_alpha;
  u32 ink_color[3];      // in the frame's own channels
  u32 words;             // of `weights` in use
  u32 weights[4][9];     // of the Gaussian for four pixels beside or below each other, four to a word that begins at the first one's
};
ABI(AbstractionArgs, label_stride, 0);
ABI(AbstractionArgs, radius, 4);
ABI(AbstractionArgs, sample_step, 8);
ABI(AbstractionArgs, shading, 12);
ABI(AbstractionArgs, fraction, 16);
ABI(AbstractionArgs, steepest, 20);
ABI(AbstractionArgs, deviation, 24);
ABI(AbstractionArgs, keeps_corners, 28);
ABI(AbstractionArgs, ink, 32);
ABI(AbstractionArgs, ink_alpha, 36);
ABI(AbstractionArgs, ink_color, 40);
ABI(AbstractionArgs, words, 52);
ABI(AbstractionArgs, weights, 56);
ABI_SIZE(AbstractionArgs, 200);

// Sums over the samples of a region, and its boundary; `Moments` of src/post/abstraction/paint.rs.
struct Moments {
  u64 x, y, xx, xy, yy;
  u64 code[3], x_code[3], y_code[3];
  u32 low_gap[3];        // 65535 without the least code
  u32 high[3];
  u32 samples;
  u32 sides;
};
ABI(Moments, x, 0);
ABI(Moments, y, 8);
ABI(Moments, xx, 16);
ABI(Moments, xy, 24);
ABI(Moments, yy, 32);
ABI(Moments, code, 40);
ABI(Moments, x_code, 64);
ABI(Moments, y_code, 88);
ABI(Moments, low_gap, 112);
ABI(Moments, high, 124);
ABI(Moments, samples, 136);
ABI(Moments, sides, 140);
ABI_SIZE(Moments, 144);

// What a region is painted with; `Paint` of src/post/abstraction/paint.rs.
struct __align__(16) Paint {
  i32 base[3], slope_x[3], slope_y[3];
  u16 low[3], high[3];
  u16 middle[2];         // column and row
  u16 boost[2];          // weights at the wide and at the narrow scale
  u32 feature;           // of the color at the middle, in `lab`
  u32 age;               // of the region's track
};
ABI(Paint, base, 0);
ABI(Paint, slope_x, 12);
ABI(Paint, slope_y, 24);
ABI(Paint, low, 36);
ABI(Paint, high, 42);
ABI(Paint, middle, 48);
ABI(Paint, boost, 52);
ABI(Paint, feature, 56);
ABI(Paint, age, 60);
ABI_SIZE(Paint, 64);

// Paints over time; see src/post/abstraction/steady.rs. Tables of track ids are open: a key of 0 is none.
struct SteadyArgs {
  const Paint *last;
  const u32 *keys, *values;      // of the last frame: track id, label
  u32 *next_keys, *next_values;
  const u16 *cells;              // a label of each cell of the last frame
  u16 *next_cells;
  u32 *earlier;                  // [regions] label in the last frame of the same track
  u32 *matched;                  // how many regions have one
  u32 *continues;                // the frame is no cut
  u64 *seen;                     // cells of still pixels in this frame: mean color of 16 bits, and how far it is from that in `calm`
  u64 *calm;                     // the same cells over time: color, and frames without motion
  u64 *drawn;                    // [height][width] the last picture's colors of 16 bits; 0 where nothing was drawn
  u32 mask;                      // slots of a table - 1
  u32 columns, rows;             // of cells
  u32 share;                     // part of 256 that a paint goes to its new values; 256 without easing
  u32 follows;                   // the last frame's paints are there
  u32 is_same;                   // and were drawn with the same parameters
  u32 least_share;               // part of 256 that a drawn pixel goes at least
  u32 still_columns, still_rows; // of cells of still pixels
  u32 fraction;                  // bits below a code on the scale of 16 bits
};
ABI(SteadyArgs, last, 0);
ABI(SteadyArgs, keys, 8);
ABI(SteadyArgs, values, 16);
ABI(SteadyArgs, next_keys, 24);
ABI(SteadyArgs, next_values, 32);
ABI(SteadyArgs, cells, 40);
ABI(SteadyArgs, next_cells, 48);
ABI(SteadyArgs, earlier, 56);
ABI(SteadyArgs, matched, 64);
ABI(SteadyArgs, continues, 72);
ABI(SteadyArgs, seen, 80);
ABI(SteadyArgs, calm, 88);
ABI(SteadyArgs, drawn, 96);
ABI(SteadyArgs, mask, 104);
ABI(SteadyArgs, columns, 108);
ABI(SteadyArgs, rows, 112);
ABI(SteadyArgs, share, 116);
ABI(SteadyArgs, follows, 120);
ABI(SteadyArgs, is_same, 124);
ABI(SteadyArgs, least_share, 128);
ABI(SteadyArgs, still_columns, 132);
ABI(SteadyArgs, still_rows, 136);
ABI(SteadyArgs, fraction, 140);
ABI_SIZE(SteadyArgs, 144);

// A palette; see src/post/abstraction/palette.rs.
struct PaletteArgs {
  u64 *colors;           // [64] codes of 16 bits
  u32 *features;         // of them
  u32 *count;            // colors in use
  u32 *region_features;  // [regions] of their mean colors
  u32 *differences;      // [regions] to the nearest color, while a palette is found
  const u32 *last;       // [regions] their colors in the last frame
  u32 *chosen;           // [regions] in this
  u32 size;              // most colors, 0 without a palette
  u32 step;              // that a code may move by in a frame
  u32 follows;           // the last frame's palette is there and as large
  u32 unused;
};
ABI(PaletteArgs, colors, 0);
ABI(PaletteArgs, features, 8);
ABI(PaletteArgs, count, 16);
ABI(PaletteArgs, region_features, 24);
ABI(PaletteArgs, differences, 32);
ABI(PaletteArgs, last, 40);
ABI(PaletteArgs, chosen, 48);
ABI(PaletteArgs, size, 56);
ABI(PaletteArgs, step, 60);
ABI(PaletteArgs, follows, 64);
ABI(PaletteArgs, unused, 68);
ABI_SIZE(PaletteArgs, 72);

// The stage that leaves exactly as many regions as are asked for.

struct HierarchyArgs {
  u32 width, height;
  u32 regions;         // wanted, at most
  u32 planar;          // labels are connected
  u32 max_pairs;       // that any frame can have
  u32 least;           // of the cost, as in `Plan` of src/post/hierarchy/mod.rs
  u64 contrast, position;
  u32 position_shift;
  u32 until;           // rounds go on while as many regions or more can be left: as many as are wanted, or one where all are listed
  // Whether merges across the areas of a prior follow those within, and whether the wanted number counts for more than areas.
  u32 joins_areas, crosses;
  u32 price;  // that a border of two areas adds to each of its differences; 0: pairs across are kept apart
  u32 unused;
};
ABI(HierarchyArgs, width, 0);
ABI(HierarchyArgs, height, 4);
ABI(HierarchyArgs, regions, 8);
ABI(HierarchyArgs, planar, 12);
ABI(HierarchyArgs, max_pairs, 16);
ABI(HierarchyArgs, least, 20);
ABI(HierarchyArgs, contrast, 24);
ABI(HierarchyArgs, position, 32);
ABI(HierarchyArgs, position_shift, 40);
ABI(HierarchyArgs, until, 44);
ABI(HierarchyArgs, joins_areas, 48);
ABI(HierarchyArgs, crosses, 52);
ABI(HierarchyArgs, price, 56);
ABI(HierarchyArgs, unused, 60);
ABI_SIZE(HierarchyArgs, 64);

// What the pixels of a region add up to. Those of a region that has joined another stay as they were.
struct __align__(16) HierarchySums {
  u32 count, unused;
  u64 color[3];
  u64 position[2];
};
ABI(HierarchySums, count, 0);
ABI(HierarchySums, unused, 4);
ABI(HierarchySums, color, 8);
ABI(HierarchySums, position, 32);
ABI_SIZE(HierarchySums, 48);

// How a region has joined another, NO_JOIN if it has not.
struct __align__(16) HierarchyJoin {
  u32 into, height, round;  // height: its bits
  u32 root;                 // where `into` has got to in the same round
};
ABI(HierarchyJoin, into, 0);
ABI(HierarchyJoin, height, 4);
ABI(HierarchyJoin, round, 8);
ABI(HierarchyJoin, root, 12);
ABI_SIZE(HierarchyJoin, 16);

// Device memory of the stage: one entry for each label that connectivity gave, and tables of pairs. What there are two of, rounds take
// turns with.
struct Hierarchy {
  HierarchySums *sums;
  HierarchyJoin *joins;
  u64 *selected[2];  // bits of the least cost above the neighbor that has it
  u32 *heights;      // bits of the largest height within
  u32 *keys[2];      // [slots] two labels, the lower one above
  u32 *lengths[2], *held[2];
  u64 *contrasts[2];
  u32 *earlier;      // region of the last frame, NO_JOIN if none
  u32 *roots;        // after the cut
  u32 *lowest;       // of roots: the lowest label
  u32 *heads;        // a bit for each label that is the lowest of its root
  u32 *numbers;      // of roots: the label to be
  u32 *areas;        // of what has joined: pixels of what it is part of behind the round; null where nothing is listed
  u32 *counts;       // a `HierarchyCount` each
  const u32 *prior;  // the area of each region in a prior; null without, as are the next three
  u32 *across_keys, *across_lengths;  // [slots] pairs of regions in two areas, as in the tables of rounds
  u64 *across_contrasts;
};
ABI(Hierarchy, sums, 0);
ABI(Hierarchy, joins, 8);
ABI(Hierarchy, selected, 16);
ABI(Hierarchy, heights, 32);
ABI(Hierarchy, keys, 40);
ABI(Hierarchy, lengths, 56);
ABI(Hierarchy, held, 72);
ABI(Hierarchy, contrasts, 88);
ABI(Hierarchy, earlier, 104);
ABI(Hierarchy, roots, 112);
ABI(Hierarchy, lowest, 120);
ABI(Hierarchy, heads, 128);
ABI(Hierarchy, numbers, 136);
ABI(Hierarchy, areas, 144);
ABI(Hierarchy, counts, 152);
ABI(Hierarchy, prior, 160);
ABI(Hierarchy, across_keys, 168);
ABI(Hierarchy, across_lengths, 176);
ABI(Hierarchy, across_contrasts, 184);
ABI_SIZE(Hierarchy, 192);

// Where merges that the cut leaves out are listed, at most one fewer than regions.
struct MergeList {
  u64 *keys;         // in any order: bits of the height, round, label, from the highest bits down
  MergeStep *steps;  // in the order of keys
  u32 *count;
};
ABI(MergeList, keys, 0);
ABI(MergeList, steps, 8);
ABI(MergeList, count, 16);
ABI_SIZE(MergeList, 24);

// Statistics.

struct MeasureArgs {
  u32 label_stride;
  u32 measure;
  u32 components_hold;  // whether area and features are still with the components: connectivity brings them to the regions
  u32 refined;          // whether the kernel before makes the components, of refined labels
};
ABI(MeasureArgs, label_stride, 0);
ABI(MeasureArgs, measure, 4);
ABI(MeasureArgs, components_hold, 8);
ABI(MeasureArgs, refined, 12);
ABI_SIZE(MeasureArgs, 16);

struct NeighborArgs {
  u32 width, height;
  u32 label_stride;
  u32 slots;  // a power of two
};
ABI(NeighborArgs, width, 0);
ABI(NeighborArgs, height, 4);
ABI(NeighborArgs, label_stride, 8);
ABI(NeighborArgs, slots, 12);
ABI_SIZE(NeighborArgs, 16);

// From frame to frame.

// A region's way through time.
struct __align__(16) Track {
  u32 id, age;
  i32 velocity[2];  // in 1/16 px
};
ABI(Track, id, 0);
ABI(Track, age, 4);
ABI(Track, velocity, 8);
ABI_SIZE(Track, 16);

// A cluster as the next frame needs to know it.
struct __align__(16) Slot {
  i32 position[2], velocity[2];  // in 1/16 px; velocity less that of the picture
  u32 id, size, region;
  u32 reseeded;  // a region without a cluster has taken the slot: `color` is its mean
  u32 color[3];
  u32 unused;
};
ABI(Slot, position, 0);
ABI(Slot, velocity, 8);
ABI(Slot, id, 16);
ABI(Slot, size, 20);
ABI(Slot, region, 24);
ABI(Slot, reseeded, 28);
ABI(Slot, color, 32);
ABI(Slot, unused, 44);
ABI_SIZE(Slot, 48);

// Where a cell's cluster comes from, or NONE, and how far it has moved.
struct __align__(16) Source {
  u32 slot;
  i32 shift[2];
  u32 released;  // without a slot: the cell's pixels are predicted for no cluster
};
ABI(Source, slot, 0);
ABI(Source, shift, 4);
ABI(Source, released, 12);
ABI_SIZE(Source, 16);

// What a frame leaves to the next beside the arrays.
struct TemporalState {
  u64 residual_last, residual_first, residual;  // of the last labels, of the first warm round, of this frame's labels
  u64 offset[2];  // of slots that own a region, from the centers of their cells, added up in 1/16 px
  i32 shift[2];   // motion of the picture in 1/16 px
  i32 along[2];   // whole cells that all slots move by
  u32 unlike;     // no shift makes the last thumbnail like this one
  u32 next_id;
  u32 regions;    // of the last frame
  u32 pairs;      // in the list
  u32 tickets[3]; // blocks of the shifts that are done; of the names, and of merged regions' names, that have begun
  u32 eighth;     // largest discount for each eighth of a moved pixel's similarity
  u32 inside;     // samples inside of this frame's mask
  u32 barrier[2]; // of the grid that matches, which runs beside others of the frame
  u32 still;      // largest discount for a pixel that stays
  u32 owners;     // slots that `offset` is of
  u32 unused;
};
ABI(TemporalState, residual_last, 0);
ABI(TemporalState, residual_first, 8);
ABI(TemporalState, residual, 16);
ABI(TemporalState, offset, 24);
ABI(TemporalState, shift, 40);
ABI(TemporalState, along, 48);
ABI(TemporalState, unlike, 56);
ABI(TemporalState, next_id, 60);
ABI(TemporalState, regions, 64);
ABI(TemporalState, pairs, 68);
ABI(TemporalState, tickets, 72);
ABI(TemporalState, eighth, 84);
ABI(TemporalState, inside, 88);
ABI(TemporalState, barrier, 92);
ABI(TemporalState, still, 100);
ABI(TemporalState, owners, 104);
ABI(TemporalState, unused, 108);
ABI_SIZE(TemporalState, 112);

// How connectivity goes on from a frame; no `largest`: not at all.
struct Continued {
  u64 *largest;               // [cells] as in `Temporal`
  u32 *least_kept;            // [cells] the same
  TemporalState *state;
  u32 cells, follows;
};
ABI(Continued, largest, 0);
ABI(Continued, least_kept, 8);
ABI(Continued, state, 16);
ABI(Continued, cells, 24);
ABI(Continued, follows, 28);
ABI_SIZE(Continued, 32);

struct TemporalArgs {
  u32 square_log;    // of the side of a thumbnail's squares
  u32 thumbnail[2];  // squares in a row, rows
  u32 reach[2];      // largest shift in squares
  u32 inertia, sure;
  u32 samples;
  u32 track_step, track_points;
  u32 tiles_x, max_regions;
  u32 pair_mask;     // slots of the table of pairs less one; a power of two
  u32 in_slots;      // clusters are those of the slots
  u32 connectivity;
  u32 unlike[2];     // eighths of the variance, and more by square, that thumbnails differ by after a cut
  u32 in_regions;    // superpixels are merged to an exact number of regions
  u32 name_blocks;   // most blocks that name regions
  u32 flat_px;       // by how much a sample has to differ for each px that its region would move by, in 1/FLAT_ONE
  u32 flat_most;     // and by how much at most
  u32 parts;         // numbers of parts that a cluster can have
  u32 cells;         // of the grid
  u32 min_region;    // least pixels of a region
};
ABI(TemporalArgs, square_log, 0);
ABI(TemporalArgs, thumbnail, 4);
ABI(TemporalArgs, reach, 12);
ABI(TemporalArgs, inertia, 20);
ABI(TemporalArgs, sure, 24);
ABI(TemporalArgs, samples, 28);
ABI(TemporalArgs, track_step, 32);
ABI(TemporalArgs, track_points, 36);
ABI(TemporalArgs, tiles_x, 40);
ABI(TemporalArgs, max_regions, 44);
ABI(TemporalArgs, pair_mask, 48);
ABI(TemporalArgs, in_slots, 52);
ABI(TemporalArgs, connectivity, 56);
ABI(TemporalArgs, unlike, 60);
ABI(TemporalArgs, in_regions, 68);
ABI(TemporalArgs, name_blocks, 72);
ABI(TemporalArgs, flat_px, 76);
ABI(TemporalArgs, flat_most, 80);
ABI(TemporalArgs, parts, 84);
ABI(TemporalArgs, cells, 88);
ABI(TemporalArgs, min_region, 92);
ABI_SIZE(TemporalArgs, 96);

// Where everything is in this frame; `last` is of the frame before.
struct Temporal {
  TemporalState *state;
  Slot *slots_last;          // [cells]
  Slot *slots;               // [cells]
  Source *sources;           // [cells]
  int2 *moves;               // [cells] motion in whole px
  u64 *claims;               // [1 + CLAIM_ROUNDS][cells] size, then the lower slot
  u32 *wanted;               // [cells] what each slot claims
  u32 *cells;                // [regions] of the last frame: column of its cluster's cell, from bit 16 on the row, from PART_BIT on its
                             // number as a part; where frames may have masks, that of NO_LABEL, too
  const u16 *labels;         // the last frame's, before merging, until this frame's are written
  const u32 *features_last;
  const u32 *features;
  u16 *thumbnail_last;
  u16 *thumbnail;
  u64 *differences;          // of all shifts, in raster order; then sum and squares of this thumbnail
  u64 *largest;              // [cells] of a cluster's largest component: size, then the lower first pixel
  u32 *largest_label;        // [cells]
  int2 *positions;           // [cells] what the algorithm leaves, in 1/16 px
  u64 *owners;               // [regions] size, then the lower slot
  Track *tracks_last;        // [regions]
  Track *tracks;             // [regions]
  Motion *motion;            // [regions]
  u64 *sums;                 // [regions][6] samples of regions without a cluster: number, x, y, channels
  u64 *reseed_claims;        // [cells]
  u32 *reseed_wanted;        // [regions]
  u64 *best;                 // [2][regions] best pair of a region, of an earlier region: round, overlap, then the lower other one
  u32 *taken;                // [2][regions] earlier region that a region has taken, plus one; whether one is taken
  u32 *new_tracks;           // [blocks] tracks that begin in each block that names, plus one; 0 before it has counted them
  u32 *from;                 // [regions] the last frame's region that it goes on from, or NONE
  uint2 *pairs;              // the table: region and earlier region, plus one; overlap
  u32 *pair_list;            // used slots of the table
  u64 *part_claims;          // [cells][parts] region with each number: samples, then the lower label
  u32 *part_clusters;        // [regions] the cluster that a region would be a part of
  u32 *least_kept;           // [cells] least pixels of a component of the cluster that is kept
};
ABI(Temporal, state, 0);
ABI(Temporal, slots_last, 8);
ABI(Temporal, slots, 16);
ABI(Temporal, sources, 24);
ABI(Temporal, moves, 32);
ABI(Temporal, claims, 40);
ABI(Temporal, wanted, 48);
ABI(Temporal, cells, 56);
ABI(Temporal, labels, 64);
ABI(Temporal, features_last, 72);
ABI(Temporal, features, 80);
ABI(Temporal, thumbnail_last, 88);
ABI(Temporal, thumbnail, 96);
ABI(Temporal, differences, 104);
ABI(Temporal, largest, 112);
ABI(Temporal, largest_label, 120);
ABI(Temporal, positions, 128);
ABI(Temporal, owners, 136);
ABI(Temporal, tracks_last, 144);
ABI(Temporal, tracks, 152);
ABI(Temporal, motion, 160);
ABI(Temporal, sums, 168);
ABI(Temporal, reseed_claims, 176);
ABI(Temporal, reseed_wanted, 184);
ABI(Temporal, best, 192);
ABI(Temporal, taken, 200);
ABI(Temporal, new_tracks, 208);
ABI(Temporal, from, 216);
ABI(Temporal, pairs, 224);
ABI(Temporal, pair_list, 232);
ABI(Temporal, part_claims, 240);
ABI(Temporal, part_clusters, 248);
ABI(Temporal, least_kept, 256);
ABI_SIZE(Temporal, 264);

// What merging gave: a forest of superpixels, the merged label of each root, and how many superpixels there are.
struct Forest {
  const u32 *parent;
  const u32 *number;
  const u32 *count;
};
ABI(Forest, parent, 0);
ABI(Forest, number, 8);
ABI(Forest, count, 16);
ABI_SIZE(Forest, 24);

// Names of merged regions; mirrors src/temporal/merged.rs.
struct Merged {
  const u32 *numbers_last;  // [regions] merged label of each superpixel of the last frame
  u32 *numbers;             // [regions] and of this one
  Track *tracks_last;
  Track *tracks;
  u64 *totals;              // [regions][3] pixels, and velocity times pixels; zero between frames
  u32 *next_id;
};
ABI(Merged, numbers_last, 0);
ABI(Merged, numbers, 8);
ABI(Merged, tracks_last, 16);
ABI(Merged, tracks, 24);
ABI(Merged, totals, 32);
ABI(Merged, next_id, 40);
ABI_SIZE(Merged, 48);

// Bytes of shared memory that a cluster in reach of a tile takes: `Reach` of kernels/clusters.cuh, `Cluster` of kernels/lsc.cu.
#define SLIC_REACH_BYTES 32
#define LSC_REACH_BYTES 48
