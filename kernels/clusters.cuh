// SPDX-License-Identifier: MPL-2.0
// Cells, sums and centers of the clusters on the grid of home cells; mirrors src/algo/grid.rs and src/algo/slic/cpu.rs.
#pragma once
#include "common.cuh"

struct SlicArgs {
  u32 width, height, step, nx, ny;
  // 2^32 / step, rounded up: a multiplication finds the home cell.
  u32 step_inverse;
  u32 color_shift;
  u32 sample_step, sample_width, sample_height;
  // SLICO: M_k before the first round, weight of place.
  u32 initial, place_weight;
  // Nothing is clustered: every pixel is its own label.
  u32 identity;
};
static_assert(sizeof(SlicArgs) == 4 * 13, "mirrored in src/algo/slic/cuda.rs");

// Members of a cluster: count, three channels, scaled place relative to the cell column and row before the cluster's
// own, largest squared color distance. 32 bits hold them: see `sample_step` in src/algo/grid.rs.
struct __align__(16) Sums {
  u32 value[8];
};
// A cluster: three channels, scaled place, M_k.
struct __align__(16) Center {
  i32 value[8];
};

// Geometry tables of a plan: scaled position of each column and row.
struct Places {
  const i32 *px, *py;
};

__device__ __forceinline__ u32 home(const SlicArgs &args, u32 at, u32 cells) {
  return min(__umulhi(at, args.step_inverse), cells - 1);
}
__device__ __forceinline__ u32 seed_place(u32 cell, u32 cells, u32 step, u32 side) {
  const u32 begin = cell * step, end = cell + 1 == cells ? side : (cell + 1) * step;
  return min((begin + end) / 2, side - 1);
}
// Where the places in a cluster's sums start: no member lies left of or above it.
__device__ __forceinline__ i32 sums_origin(const i32 *place, u32 cell, u32 step) {
  return place[(cell == 0 ? 0 : cell - 1) * step];
}

// The clusters in reach of a tile: a rectangle of cells with one more all around, as slots.
struct Slots {
  u32 gx, gy, columns, rows;  // the inner rectangle; the slots are columns + 2 by rows + 2
  __device__ u32 stride() const { return columns + 2; }
  __device__ u32 count() const { return (columns + 2) * (rows + 2); }
  __device__ u32 of(u32 x, u32 y) const { return (y - gy + 1) * stride() + (x - gx + 1); }
};

__device__ __forceinline__ Slots slots_of(const SlicArgs &args, u32 x0, u32 y0, u32 x1, u32 y1) {
  Slots slots;
  slots.gx = home(args, x0, args.nx);
  slots.gy = home(args, y0, args.ny);
  slots.columns = home(args, x1, args.nx) - slots.gx + 1;
  slots.rows = home(args, y1, args.ny) - slots.gy + 1;
  return slots;
}

// What a tile knows of the clusters in reach. Floats are exact: all values stay below 2^24.
struct SharedClusters {
  float4 color_x[MAX_SLOTS];
  float y[MAX_SLOTS];
  u32 spread[MAX_SLOTS];
  u32 label[MAX_SLOTS];  // NO_SLOT outside the grid
};
#define NO_SLOT 0xffffffffu

__device__ __forceinline__ i32 mean_of(u32 sum, u32 n) { return (i32)((2 * sum + n) / (2 * n)); }

// Stage `slic/update`: the center that the last round's members give; without members the old one.
__device__ __forceinline__ Center update(const SlicArgs &args, const Places &places, const Sums *sums,
                                         const Center *old, u32 x, u32 y) {
  const u32 k = y * args.nx + x;
  const uint4 low = ((const uint4 *)(sums + k))[0], high = ((const uint4 *)(sums + k))[1];
  const int4 before = ((const int4 *)(old + k))[0], before_high = ((const int4 *)(old + k))[1];
  const i32 origin_x = sums_origin(places.px, x, args.step), origin_y = sums_origin(places.py, y, args.step);
  Center center = {{before.x, before.y, before.z, before.w, before_high.x, before_high.y, 0, 0}};
  const u32 n = low.x;
  if (n != 0) {
    center.value[0] = mean_of(low.y, n);
    center.value[1] = mean_of(low.z, n);
    center.value[2] = mean_of(low.w, n);
    center.value[3] = mean_of(high.x, n) + origin_x;
    center.value[4] = mean_of(high.y, n) + origin_y;
    center.value[5] = max(before_high.y, (i32)high.z);
  }
  return center;
}

// Stage `slic/seed`: the center of a cell before the first round.
__device__ __forceinline__ Center seed(const SlicArgs &args, const Places &places, const u32 *features, u32 x, u32 y) {
  const u32 column = seed_place(x, args.nx, args.step, args.width), row = seed_place(y, args.ny, args.step, args.height);
  const u32 feature = features[(size_t)row * args.width + column];
  const Center center = {{(i32)(feature_0(feature) >> args.color_shift), (i32)(feature_1(feature) >> args.color_shift),
                          (i32)(feature_2(feature) >> args.color_shift), places.px[column], places.py[row],
                          (i32)args.initial, 0, 0}};
  return center;
}
