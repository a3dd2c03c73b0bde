// SPDX-License-Identifier: MPL-2.0
// Sums and centers of SLIC's clusters; mirrors src/algo/slic/cpu.rs.
#pragma once
#include "grid.cuh"

struct SlicArgs : GridArgs {
  u32 color_shift;
  // SLICO: M_k before the first round, weight of place.
  u32 initial, place_weight;
};
static_assert(sizeof(SlicArgs) == sizeof(GridArgs) + 12, "mirrored in src/algo/slic/cuda.rs");

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

// Where the places in a cluster's sums start: no member lies left of or above it.
__device__ __forceinline__ i32 sums_origin(const i32 *place, u32 cell, u32 step) {
  return place[(cell == 0 ? 0 : cell - 1) * step];
}

// What a tile knows of a cluster in reach; places count from the middle of the tile. For distances d = |p - c|^2 the parts of
// 16 (d - |p|^2) = 16 |c|^2 - 32 p c: -32 c, and 16 |c|^2 as `rest`; d is below 2^24 and |p|^2 below 2^26, so that 32 bits
// hold the sum, whatever its parts do. With SLICO c itself, and M_k.
struct __align__(16) Reach {
  int4 color_x;
  i32 y;
  i32 rest;
  u32 label;  // NO_SLOT outside the grid
  u32 unused;
};
// The `rest` of a cluster outside the grid, all else being zero: never the nearest.
#define FAR (1 << 30)
static_assert(sizeof(Reach) == 32, "mirrored in src/algo/slic/cuda.rs");

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
