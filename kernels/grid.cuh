// SPDX-License-Identifier: MPL-2.0
// The grid of home cells and what a tile can reach of it; mirrors src/grid.rs.
#pragma once
#include "abi.cuh"

// Column or row of the home cell of a pixel, along one axis: `at` / step, which the rounded inverse gives exactly as both
// are below 2^16. The last cell takes the remainder. Not for a step of 1, where nothing is clustered.
__device__ __forceinline__ u32 home(const GridArgs &args, u32 at, u32 cells) {
  return min(__umulhi(at, args.step_inverse), cells - 1);
}
// Center of a cell along one axis of `side` px.
__device__ __forceinline__ u32 seed_position(u32 cell, u32 cells, u32 step, u32 side) {
  const u32 begin = cell * step, end = cell + 1 == cells ? side : (cell + 1) * step;
  return min((begin + end) / 2, side - 1);
}

// Seed of a cell's cluster: the pixel at its center or, with masks, the nearest one inside, which stage `ingest` finds.
template <class Args>
__device__ __forceinline__ uint2 seed_of(const Args &args, u32 x, u32 y) {
  if (!args.seeds) return make_uint2(seed_position(x, args.nx, args.step, args.width), seed_position(y, args.ny, args.step, args.height));
  const u32 seed = args.seeds[y * args.nx + x];
  return make_uint2(seed & 0xffffu, seed >> 16);
}

// Clusters in reach of a tile: those of its pixels' home cells and of one cell more all around, since a pixel chooses among 3x3
// cells. A slot is an index in the tile's list of these, even of cells outside of the grid; not a `Slot` of temporal mode.
struct Slots {
  u32 gx, gy, columns, rows;  // the inner rectangle; the slots are columns + 2 by rows + 2
  __device__ u32 stride() const { return columns + 2; }
  __device__ u32 count() const { return (columns + 2) * (rows + 2); }
  __device__ u32 of(u32 x, u32 y) const { return (y - gy + 1) * stride() + (x - gx + 1); }
};

// Slots of the tile of columns x0 to x1 and rows y0 to y1, all included.
__device__ __forceinline__ Slots slots_of(const GridArgs &args, u32 x0, u32 y0, u32 x1, u32 y1) {
  Slots slots;
  slots.gx = home(args, x0, args.nx);
  slots.gy = home(args, y0, args.ny);
  slots.columns = home(args, x1, args.nx) - slots.gx + 1;
  slots.rows = home(args, y1, args.ny) - slots.gy + 1;
  return slots;
}

// A tile of labels has fewer slots than 2 to the power of this; in its tags the number of a part is above the slot.
#define PART_TAG_BIT 9
__device__ __forceinline__ u32 slot_of_tag(u32 tag) { return tag & ((1u << PART_TAG_BIT) - 1); }
static_assert((TILE / 2 + 3) * (TILE / 2 + 3) <= 1 << PART_TAG_BIT, "slots of a tile of cells of 2 px");

// No slot, where a pixel has none; also the label of a cluster outside of the grid.
#define NO_SLOT 0xffffffffu
