// SPDX-License-Identifier: MPL-2.0
// Sums and centers of SLIC's clusters; mirrors src/algo/slic/cpu.rs.
#pragma once
#include "grid.cuh"

typedef SlicSums Sums;
typedef SlicCenter Center;

// Geometry tables of a plan: scaled position of each column and row.
struct Positions {
  const i32 *px, *py;
};

// Origin of the positions in a cluster's sums: no member lies left of or above it.
__device__ __forceinline__ i32 sums_origin(const i32 *position, u32 cell, u32 step) {
  return position[(cell == 0 ? 0 : cell - 1) * step];
}

// A tile's view of a cluster in reach; positions count from the middle of the tile. For distances d = color² + |p - c|² the parts
// of 16 (d - |p|²) = (4 color)² + 16 |c|² - 32 p c: 4 times the channels, -32 c, and 16 |c|² as `rest`; d is below 2^24 and |p|²
// below 2^26, so that 32 bits hold the sum, whatever its parts do. With SLICO channels and c themselves, and M_k.
struct __align__(16) Reach {
  int4 color_x;
  i32 y;
  i32 rest;
  u32 label;  // NO_SLOT outside the grid
  u32 unused;
};
// The `rest` of a cluster outside the grid, all else being zero: never the nearest.
#define FAR (1 << 30)
static_assert(sizeof(Reach) == SLIC_REACH_BYTES, "src/algo/slic/cuda.rs asks for as much");

// Rounds half up. Channels and positions are below 2^13.
__device__ __forceinline__ i32 mean_of(u32 sum, u32 n, const Divisor &twice_n) { return (i32)quotient(2 * sum + n, twice_n); }

// The cell of a slot, and where the positions in its sums start: known before the sums are.
struct Cell {
  u32 x, y;
  i32 origin_x, origin_y;
  bool exists;
};
__device__ __forceinline__ Cell cell_of(const SlicArgs &args, const Positions &positions, const Slots &slots, u32 slot) {
  const u32 row = slot / slots.stride(), x = slots.gx + slot - row * slots.stride() - 1, y = slots.gy + row - 1;
  const bool exists = x < args.nx && y < args.ny;
  const u32 near_x = min(x, args.nx - 1), near_y = min(y, args.ny - 1);
  return {x, y, sums_origin(positions.px, near_x, args.step), sums_origin(positions.py, near_y, args.step), exists};
}

// Start of a round: the sums of the last round's members, and the center before, which stays if there were none.
struct Turn {
  uint4 own, own_position;
  int4 before, before_position;
};
__device__ __forceinline__ Turn begin_with(const Center &center) {
  const i32 *v = center.value;
  const uint4 none = make_uint4(0, 0, 0, 0);
  return {none, none, make_int4(v[0], v[1], v[2], v[3]), make_int4(v[4], v[5], 0, 0)};
}
__device__ __forceinline__ Turn load_turn(const Sums *sums, const Center *old) {
  const uint4 *own = (const uint4 *)sums;
  const int4 *before = (const int4 *)old;
  return {own[0], own[1], before[0], before[1]};
}

// Stage `slic/update`: the center that the last round's members give; without members the old one.
__device__ __forceinline__ Center update(const Cell &cell, const Turn &turn) {
  const bool has = turn.own.x != 0;
  const u32 n = has ? turn.own.x : 1;
  const Divisor twice_n = divisor_of(2 * n);
  const i32 l = mean_of(turn.own.y, n, twice_n), a = mean_of(turn.own.z, n, twice_n), b = mean_of(turn.own.w, n, twice_n);
  const i32 x = mean_of(turn.own_position.x, n, twice_n) + cell.origin_x, y = mean_of(turn.own_position.y, n, twice_n) + cell.origin_y;
  return {{has ? l : turn.before.x, has ? a : turn.before.y, has ? b : turn.before.z, has ? x : turn.before.w,
           has ? y : turn.before_position.x, max(turn.before_position.y, (i32)turn.own_position.z), 0, 0}};
}

// Stage `slic/seed`: the center of a cell before the first round.
__device__ __forceinline__ Center seed(const SlicArgs &args, const Positions &positions, const u32 *features, u32 x, u32 y) {
  const uint2 at = seed_of(args, x, y);
  const u32 column = at.x, row = at.y;
  const u32 feature = features[(size_t)row * args.width + column];
  const Center center = {{(i32)(feature_0(feature) >> args.color_shift), (i32)(feature_1(feature) >> args.color_shift),
                          (i32)(feature_2(feature) >> args.color_shift), positions.px[column], positions.py[row],
                          (i32)args.initial, 0, 0}};
  return center;
}
