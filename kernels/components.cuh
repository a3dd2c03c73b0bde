// SPDX-License-Identifier: MPL-2.0
// Connected components of equal cluster label inside a tile, with the sums of their features and the pairs that touch.
// Every algorithm ends its label kernel here; connectivity.cu joins the tiles. Mirrors src/post/connectivity/cpu.rs.
#pragma once
#include "common.cuh"

// A pixel outside the frame.
#define NO_CLUSTER 0xffffffffu

// Device memory of the stage. A component is known by its place in the lists, in no particular order, and ordered by
// its key: the index of its first pixel in raster order.
struct Components {
  u16 *local;       // [height][width] component of a pixel, counted from its tile's first
  u32 *tile_first;  // [tiles] first component of a tile
  u32 *tile_count;  // [tiles]
  u32 *parent;      // [components] union-find; a parent's key is never above its child's
  u32 *key;
  u32 *cluster;
  struct ComponentSums *sums;  // moved to the root as components are joined
  uint2 *edges;
  u32 *counters;  // components, edges, regions, rounds' flags
};

// Pixels and features of a component: one sector of memory.
struct __align__(16) ComponentSums {
  u32 count;
  u32 unused;
  u64 color[3];
};
static_assert(sizeof(ComponentSums) == 32, "mirrored in src/cuda/work.rs");

struct TileShared {
  u32 parent[TILE * TILE];
  u32 starts[TILE];  // bit l: a run starts in lane l of the row
  u32 roots[TILE];   // bit l: the run that starts in lane l is its component's first
  u32 before[TILE];  // components that start in the rows above
  u32 node[TILE_THREADS];  // nodes of the last row of each warp
  u32 cluster[TILE * TILE];
  u32 sums[4][TILE * TILE];  // per component: count, channels
  u32 warp_total[TILE_THREADS / 32];
  u32 total, first, first_edge;
};

__device__ __forceinline__ u32 run_start(u32 starts, u32 lane) { return 31u - __clz(starts & lanes_up_to(lane)); }

__device__ __forceinline__ u32 find_shared(volatile u32 *parent, u32 i) {
  while (parent[i] != i) i = parent[i];
  return i;
}

// Joins two sets; the lower root stays.
__device__ __forceinline__ void unite_shared(u32 *parent, u32 a, u32 b) {
  for (;;) {
    a = find_shared(parent, a);
    b = find_shared(parent, b);
    if (a == b) return;
    if (a < b) {
      const u32 swap = a;
      a = b;
      b = swap;
    }
    const u32 old = atomicMin(&parent[a], b);
    if (old == a) return;
    a = old;
  }
}

// Called by all threads of a block of TILE_THREADS for the tile at (left, top): lane = column, four rows a warp.
__device__ __forceinline__ void tile_components(const Components &out, u32 width, u32 left, u32 top,
                                                const u32 (&cluster)[4], const u32 (&feature)[4]) {
  __shared__ TileShared shared;
  const u32 lane = lane_id(), row0 = threadIdx.x / 32 * 4;
  u32 starts[4], node[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 before = __shfl_up_sync(FULL_WARP, cluster[i], 1);
    starts[i] = __ballot_sync(FULL_WARP, lane == 0 || before != cluster[i]);
    const u32 at = (row0 + i) * TILE + lane;
    shared.parent[at] = at;
  }
  shared.cluster[(row0 + 3) * TILE + lane] = cluster[3];
  if (lane == 0) shared.starts[row0 + 3] = starts[3];
  // Down the warp's own rows a run takes over the node of the run above it, without a look at memory; a second run above
  // it is rare and is united below.
  node[0] = row0 * TILE + run_start(starts[0], lane);
  u32 merges = 0;
#pragma unroll
  for (int i = 1; i < 4; i++) {
    const u32 start = run_start(starts[i], lane);
    const u32 after = starts[i] & ~lanes_up_to(lane);
    const u32 run = (after ? (1u << (__ffs(after) - 1)) - 1 : FULL_WARP) & ~((1u << start) - 1);
    const u32 touching = __ballot_sync(FULL_WARP, cluster[i] == cluster[i - 1]) & run;
    const u32 above = __shfl_sync(FULL_WARP, node[i - 1], touching ? __ffs(touching) - 1 : lane);
    node[i] = touching ? above : (row0 + i) * TILE + start;
    if (cluster[i] == cluster[i - 1] && node[i] != node[i - 1] && cluster[i] != NO_CLUSTER) merges |= 1u << i;
  }
  shared.node[row0 / 4 * TILE + lane] = node[3];
  __syncthreads();
  if (row0 > 0 && cluster[0] != NO_CLUSTER && shared.cluster[(row0 - 1) * TILE + lane] == cluster[0]) {
    // Only where the two runs begin to overlap.
    if ((starts[0] | shared.starts[row0 - 1]) >> lane & 1) {
      unite_shared(shared.parent, node[0], shared.node[(row0 / 4 - 1) * TILE + lane]);
    }
  }
#pragma unroll
  for (int i = 1; i < 4; i++) {
    if (merges >> i & 1) unite_shared(shared.parent, node[i], node[i - 1]);
  }
  __syncthreads();
  // A set's root is its lowest node, which is its first pixel: a run's node is never below its component's first.
  u32 root[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    root[i] = find_shared(shared.parent, node[i]);
    const u32 roots =
        __ballot_sync(FULL_WARP, cluster[i] != NO_CLUSTER && root[i] == (row0 + i) * TILE + lane);
    if (lane == 0) shared.roots[row0 + i] = roots;
  }
  __syncthreads();
  // Both places in the lists are asked for early and looked at late: the answers take as long as many instructions.
  u32 first_component = 0;
  if (threadIdx.x < 32) {
    const u32 here = __popc(shared.roots[lane]), sum = inclusive_sum(here);
    shared.before[lane] = sum - here;
    if (lane == 31) {
      shared.total = sum;
      first_component = atomicAdd(&out.counters[0], sum);
    }
  }
  __syncthreads();
  const u32 total = shared.total;
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) {
#pragma unroll
    for (int j = 0; j < 4; j++) shared.sums[j][i] = 0;
  }
  u32 index[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 row = root[i] / TILE, column = root[i] % TILE;
    index[i] = shared.before[row] + __popc(shared.roots[row] & ((1u << column) - 1));
    if (cluster[i] == NO_CLUSTER) {
      index[i] = 0xffffu;
      continue;
    }
    out.local[(top + row0 + i) * width + left + lane] = (u16)index[i];
  }
  __syncthreads();

  // A run's sums are the difference of two prefix sums of its row; channels of 32 px fit 16 bits.
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 low = inclusive_sum(feature_0(feature[i]) | feature_1(feature[i]) << 16);
    const u32 high = inclusive_sum(feature_2(feature[i]));
    const u32 start = run_start(starts[i], lane);
    const u32 low_before = __shfl_sync(FULL_WARP, low, start - 1), high_before = __shfl_sync(FULL_WARP, high, start - 1);
    const bool ends = lane == 31 || starts[i] >> (lane + 1) & 1;
    if (ends && cluster[i] != NO_CLUSTER) {
      const u32 low_sum = start ? low - low_before : low;
      atomicAdd(&shared.sums[0][index[i]], lane + 1 - start);
      atomicAdd(&shared.sums[1][index[i]], low_sum & 0xffffu);
      atomicAdd(&shared.sums[2][index[i]], low_sum >> 16);
      atomicAdd(&shared.sums[3][index[i]], start ? high - high_before : high);
    }
    shared.cluster[(row0 + i) * TILE + lane] = index[i];
  }
  if (threadIdx.x == 31) {
    const u32 tile = blockIdx.y * gridDim.x + blockIdx.x;
    shared.first = first_component;
    out.tile_first[tile] = first_component;
    out.tile_count[tile] = total;
  }
  __syncthreads();
  const u32 first = shared.first;
  // Touching pairs inside the tile, once for each stretch of a shared boundary.
  const u32 *grid = shared.cluster;
  u32 pairs = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 row = row0 + i, at = row * TILE + lane, here = index[i];
    if (here == 0xffffu) continue;
    if (lane < 31) {
      const u32 beside = grid[at + 1];
      const bool seen = row > 0 && grid[at - TILE] == here && grid[at - TILE + 1] == beside;
      if (beside != here && beside != 0xffffu && !seen) pairs |= 1u << (2 * i);
    }
    if (row < TILE - 1) {
      const u32 below = grid[at + TILE];
      const bool seen = lane > 0 && grid[at - 1] == here && grid[at + TILE - 1] == below;
      if (below != here && below != 0xffffu && !seen) pairs |= 2u << (2 * i);
    }
  }
  const u32 mine = __popc(pairs), sum = inclusive_sum(mine);
  if (lane == 31) shared.warp_total[threadIdx.x / 32] = sum;
  __syncthreads();
  u32 first_edge = 0;
  if (threadIdx.x == 0) {
    u32 all = 0;
    for (u32 i = 0; i < TILE_THREADS / 32; i++) {
      const u32 warp = shared.warp_total[i];
      shared.warp_total[i] = all;
      all += warp;
    }
    first_edge = all ? atomicAdd(&out.counters[1], all) : 0;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (cluster[i] == NO_CLUSTER || root[i] != (row0 + i) * TILE + lane) continue;
    const u32 component = first + index[i];
    out.parent[component] = component;
    out.key[component] = (top + row0 + i) * width + left + lane;
    out.cluster[component] = cluster[i];
  }
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) {
    const ComponentSums sums = {shared.sums[0][i], 0, {shared.sums[1][i], shared.sums[2][i], shared.sums[3][i]}};
    out.sums[first + i] = sums;
  }
  if (threadIdx.x == 0) shared.first_edge = first_edge;
  __syncthreads();
  u32 edge = shared.first_edge + shared.warp_total[threadIdx.x / 32] + sum - mine;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const u32 at = (row0 + i) * TILE + lane;
    if (pairs >> (2 * i) & 1) out.edges[edge++] = make_uint2(first + index[i], first + grid[at + 1]);
    if (pairs >> (2 * i) & 2) out.edges[edge++] = make_uint2(first + index[i], first + grid[at + TILE]);
  }
}
