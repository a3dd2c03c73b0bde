// SPDX-License-Identifier: MPL-2.0
// What the forms of stage `connectivity` share: see connectivity.cu and connect_cluster.cu.
#pragma once
#include "components.cuh"
#include "regions.cuh"

struct ConnectArgs {
  u32 width, height;
  u32 tiles_x;
  u32 min_region;
  u32 max_regions;
  // Off: nothing is joined, labels are numbered by cluster.
  u32 connectivity;
  // Words of the bitmap that numbering marks.
  u32 words;
};
static_assert(sizeof(ConnectArgs) == 4 * 7, "mirrored in src/post/connectivity/cuda.rs");

// Counters: components, edges, regions, whether a round found anything small, whether the frame is done with, and the two
// of the grid's barrier, which alone are not cleared with each frame.
enum Counter { COMPONENTS = 0, EDGES = 1, REGIONS = 2, ROUNDS = 3, CONNECTED = 35, ARRIVED = 40, GENERATION = 41 };

// Mean feature in 1/16 quantum, rounded half up.
__device__ __forceinline__ i32 mean(u64 sum, u32 count) {
  const u64 top = 32 * sum + count;
  return top >> 32 ? (i32)(top / (2 * (u64)count)) : (i32)((u32)top / (2 * count));
}

__device__ __forceinline__ u32 component_at(const Components &c, const ConnectArgs &args, u32 pixel) {
  const u32 x = pixel % args.width, y = pixel / args.width;
  return c.tile_first[y / TILE * args.tiles_x + x / TILE] + c.local[pixel];
}

// The bit that the region with this first pixel is counted by: rows begin with a word of their own.
__device__ __forceinline__ u32 mark_at(const ConnectArgs &args, u32 pixel) {
  return pixel / args.width * ((args.width + 31) / 32 * 32) + pixel % args.width;
}

// One pair of pixels across a border of tiles, first those across vertical borders, then those across horizontal ones.
struct BorderPair {
  u32 pixel, step;
  // Whether the pair before lies beside it.
  bool along;
};
__device__ __forceinline__ u32 vertical_pairs(const ConnectArgs &args) { return (args.width - 1) / TILE * args.height; }
__device__ __forceinline__ u32 border_pairs(const ConnectArgs &args) {
  return vertical_pairs(args) + (args.height - 1) / TILE * args.width;
}
__device__ __forceinline__ BorderPair border_pair(const ConnectArgs &args, u32 i) {
  const u32 vertical = vertical_pairs(args);
  BorderPair pair;
  if (i < vertical) {
    pair.pixel = i % args.height * args.width + (i / args.height + 1) * TILE - 1;
    pair.step = 1;
    pair.along = i % args.height != 0;
  } else {
    const u32 j = i - vertical;
    pair.pixel = ((j / args.width + 1) * TILE - 1) * args.width + j % args.width;
    pair.step = args.width;
    pair.along = j % args.width != 0;
  }
  return pair;
}

struct BlockSum {
  u32 warp_total[32];
  u32 total;
};

// Exclusive sum over a block of 1024 threads; `shared.total` afterwards holds the sum of all.
__device__ __forceinline__ u32 block_sum(BlockSum &shared, u32 value) {
  const u32 sum = inclusive_sum(value), warp = threadIdx.x / 32;
  __syncthreads();
  if (lane_id() == 31) shared.warp_total[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    const u32 here = shared.warp_total[lane_id()], up = inclusive_sum(here);
    shared.warp_total[lane_id()] = up - here;
    if (lane_id() == 31) shared.total = up;
  }
  __syncthreads();
  return shared.warp_total[warp] + sum - value;
}
