// SPDX-License-Identifier: MPL-2.0
// Connected components of equal cluster label inside a tile, with the sums of their features and the pairs that touch.
// Every algorithm ends its label kernel here; connectivity.cu joins the tiles. Mirrors src/post/connectivity/cpu.rs.
#pragma once
#include "common.cuh"

// Above the first row of a warp: no tag, and above that of a tile no component.
#define NO_CLUSTER 0xffffffffu
#define NO_COMPONENT 0xffffu

// Device memory of the stage. A component is known by its place in the lists, in no particular order, and ordered by
// its key: the index of its first pixel in raster order.
struct Components {
  u16 *local;       // [height][width] component of a pixel, counted from its tile's first
  u32 *tile_first;  // [tiles] first component of a tile
  u32 *tile_count;  // [tiles]
  u32 *parent;      // [components] union-find; a parent's key is never above its child's
  u32 *cluster;
  struct ComponentSums *sums;  // moved to the root as components are joined
  uint2 *edges;
  u32 *counters;  // components, edges, regions, rounds' flags
  // Pixels from which on a component never has to join another: pairs of two such are left out.
  u32 large;
};
static_assert(sizeof(Components) == 72, "mirrored in src/cuda/abi.rs");

// Pixels and features of a component: one sector of memory. One that holds nothing has been joined to another, whose place
// stands in that of its key.
struct __align__(16) ComponentSums {
  u32 count;
  u32 key;
  u64 color[3];
};
static_assert(sizeof(ComponentSums) == 32, "mirrored in src/buffers/cuda.rs");

// Components of a tile whose sums fit shared memory; those of tiles with more are added up in the lists. Frames of few tiles are
// small photographs as a rule, with up to 300 in a tile, and memory does not decide how many of these fit a multiprocessor.
#define FEW_COMPONENTS 96
#define FEW_COMPONENTS_SMALL 320
// Sets of runs while a tile is scanned: the parent, the first pixel in the tile, the tag of the cluster. Nodes of a warp begin
// with the pixel that it begins with, so that of two the lower has the earlier first pixel.
#define NODE_BITS 10
#define NODE_MASK ((1u << NODE_BITS) - 1)
static_assert(TILE * TILE <= 1 << NODE_BITS, "a pixel of a tile in a node");

template <u32 WARPS>
struct TileShared {
  static const u32 FEW = 32 * WARPS == LABEL_THREADS_SMALL ? FEW_COMPONENTS_SMALL : FEW_COMPONENTS;
  u32 node[TILE * TILE];
  u16 at[TILE * TILE];                 // node of each pixel
  u16 component[TILE * TILE];          // of each node
  u32 sums[3][FEW];                    // per component: count and channel 0 as in `ColumnSums`, the other channels
  // Touching pairs that a warp finds, of which a pixel has up to two: two components of the tile, 16 bits each.
  u32 edges[WARPS][2 * TILE * TILE / WARPS];
  u32 tag[WARPS][TILE];                // of the warps' last rows
  u32 roots[WARPS];
  u32 first;
};

__device__ __forceinline__ u32 find_node(const volatile u32 *node, u32 i) {
  for (u32 up = node[i] & NODE_MASK; up != i; up = node[i] & NODE_MASK) i = up;
  return i;
}

// Joins two sets; the lower root stays, which is the one with the earlier first pixel.
__device__ __forceinline__ void unite_nodes(u32 *node, u32 a, u32 b) {
  for (;;) {
    a = find_node(node, a);
    b = find_node(node, b);
    if (a == b) return;
    const u32 low = min(a, b), high = max(a, b), word = *(volatile u32 *)(node + high);
    if ((word & NODE_MASK) == high && atomicCAS(&node[high], word, (word & ~NODE_MASK) | low) == word) return;
  }
}

// What a lane has added up going down its column inside one component: pixels above channel 0, which 21 bits hold for a whole
// tile, and the channels 1 and 2 in 16 bits each, which those of 32 px fit.
#define COUNT_SHIFT 21
__device__ __forceinline__ u32 below_count(u32 sum) { return sum & ((1u << COUNT_SHIFT) - 1); }
static_assert(TILE * TILE * 1023 < 1 << COUNT_SHIFT && TILE * TILE <= 1 << (32 - COUNT_SHIFT - 1), "sums of a tile");

struct ColumnSums {
  u32 component, first, others;

  template <u32 WARPS>
  __device__ void add(TileShared<WARPS> &shared, const Components &out, bool few) const {
    if (few) {
      atomicAdd(&shared.sums[0][component], first);
      atomicAdd(&shared.sums[1][component], others & 0xffffu);
      atomicAdd(&shared.sums[2][component], others >> 16);
    } else {
      ComponentSums *to = out.sums + shared.first + component;
      atomicAdd(&to->count, first >> COUNT_SHIFT);
      atomicAdd(&to->color[0], (u64)below_count(first));
      atomicAdd(&to->color[1], (u64)(others & 0xffffu));
      atomicAdd(&to->color[2], (u64)(others >> 16));
    }
  }
};

// Leaves a warp's pairs that wait but those of two large components; returns how many.
__device__ __forceinline__ u32 keep_edges(u32 *edges, u32 count, const u32 *sums, u32 large) {
  u32 kept = 0;
  for (u32 base = 0; base < count; base += 32) {
    const u32 i = base + lane_id(), edge = i < count ? edges[i] : 0;
    const bool keep = i < count && (sums[edge & 0xffffu] >> COUNT_SHIFT < large || sums[edge >> 16] >> COUNT_SHIFT < large);
    const u32 lanes = __ballot_sync(FULL_WARP, keep);
    if (keep) edges[kept + __popc(lanes & (lanes_up_to(lane_id()) >> 1))] = edge;
    kept += __popc(lanes);
    __syncwarp();
  }
  return kept;
}

// Writes a warp's pairs that wait.
__device__ __forceinline__ void write_edges(const Components &out, const u32 *edges, u32 count, u32 place, u32 first) {
  for (u32 i = lane_id(); i < count; i += 32) {
    out.edges[place + i] = make_uint2(first + (edges[i] & 0xffffu), first + (edges[i] >> 16));
  }
}

// A tile's part of a plane of the frame; a lane has a column of it. In the place of what is outside the frame stands its border.
struct TilePlane {
  const u32 *plane;
  u32 width;
  u32 left, top, right, bottom;  // of the tile, right and bottom inside the frame

  __device__ u32 column() const { return min(left + lane_id(), right); }
  __device__ u32 row(u32 y) const { return min(top + y, bottom); }
  __device__ bool inside(u32 y) const { return left + lane_id() <= right && top + y <= bottom; }
  __device__ void load(u32 y, u32 (&value)[4]) const {
    const u32 *down = plane + column();
#pragma unroll
    for (u32 i = 0; i < 4; i++) value[i] = down[(size_t)row(y + i) * width];
  }
};
__device__ __forceinline__ TilePlane tile_plane(const u32 *plane, u32 width, u32 height) {
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  return {plane, width, left, top, min(left + TILE, width) - 1, min(top + TILE, height) - 1};
}

// The components of the tile of a block of `WARPS`: a lane has a column, a warp some rows, which it goes down. `pixels`
// says which cluster a pixel belongs to:
//
//     load(y, value)               what rows y to y + 3 of the tile need, asked for one step ahead
//     ready()                      once, when the first rows have been asked for: what the block has to wait for
//     assign(y, value, tag)        tags, equal where clusters are, below 1024 if `cluster` reads them
//     cluster(tag, x, y)           the cluster of a tag, at a pixel of it
template <u32 WARPS, class Pixels>
__device__ __forceinline__ void tile_components(const Components &out, u32 width, u32 height, const u32 *features,
                                                Pixels &pixels) {
  __shared__ TileShared<WARPS> shared;
  // Rows of a warp.
  const u32 ROWS = TILE / WARPS;
  static_assert(ROWS % 4 == 0, "rows are loaded by four");
  const u32 lane = lane_id(), own_bit = 1u << lane, after = lanes_after(), warp = threadIdx.x / 32;
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  const u32 begin = warp * ROWS, end = min(begin + ROWS, height - top);
  const u32 first_node = begin * TILE;
  const bool inside = left + lane < width;
  const u32 last_lane = min(width - left, TILE) - 1;

  // A run takes over the node of the last run above it that it touches; where it touches more they are united. What lies right
  // of the frame repeats its last column, as part of the same runs.
  u32 nodes = first_node, above = NO_CLUSTER, above_node = 0, above_starts = 0, first_tag = NO_CLUSTER, value[4];
  u16 *at = shared.at + begin * TILE + lane;
  u32 pixel = (begin * TILE + lane) << NODE_BITS;
  if (begin < end) pixels.load(begin, value);
  pixels.ready();
#pragma unroll 1
  for (u32 y = begin; y < end; y += 4) {
    u32 tag[4];
    const u32 own[4] = {value[0], value[1], value[2], value[3]};
    if (y + 4 < end) pixels.load(y + 4, value);
    pixels.assign(y, own, tag);
    if (last_lane != TILE - 1) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) tag[i] = __shfl_sync(FULL_WARP, tag[i], min(lane, last_lane));
    }
    if (y == begin) first_tag = tag[0];
    // Rolled, here and below: unrolled, the kernel was 58 KB, and a fifth of its warps' stalls were for instructions.
#pragma unroll 1
    for (u32 rows = min(end - y, 4); rows; rows--) {
      const u32 here = tag[0];
      tag[0] = tag[1];
      tag[1] = tag[2];
      tag[2] = tag[3];
      const bool begins = __shfl_up_sync(FULL_WARP, here, 1) != here || lane == 0, joins = here == above;
      const u32 starts = __ballot_sync(FULL_WARP, begins), later = starts & after;
      const u32 touching = __ballot_sync(FULL_WARP, joins) & ~later & (later - 1);
      const i32 start = highest_lane(starts & ~after), touched = highest_lane(touching);
      const u32 taken = __shfl_sync(FULL_WARP, above_node, touched);
      const bool is_fresh = begins && touched < start;
      const u32 fresh = __ballot_sync(FULL_WARP, is_fresh);
      const u32 made = nodes + __popc(fresh & ~after) - 1, node = touched < start ? made : taken;
      if (is_fresh) shared.node[node] = (here << (2 * NODE_BITS)) + (node + pixel);
      nodes += __popc(fresh);
      *at = (u16)node;
      at += TILE;
      pixel += TILE << NODE_BITS;
      const bool meets = joins && node != above_node && ((starts | above_starts) & own_bit);
      if (__any_sync(FULL_WARP, meets)) {
        __syncwarp();
        if (meets) unite_nodes(shared.node, node, above_node);
      }
      above = here;
      above_node = node;
      above_starts = starts;
    }
  }
  shared.tag[warp][lane] = above;
  __syncthreads();
  // The rows between two warps: runs begin where nodes change.
  if (warp > 0 && begin < end) {
    const u32 here = shared.at[begin * TILE + lane], over = shared.at[begin * TILE - TILE + lane];
    const u32 beside = __shfl_up_sync(FULL_WARP, here, 1), over_left = __shfl_up_sync(FULL_WARP, over, 1);
    const bool begins = lane == 0 || beside != here || over_left != over;
    if (begins && shared.tag[warp - 1][lane] == first_tag) unite_nodes(shared.node, here, over);
  }
  __syncthreads();

  u32 roots = 0;
  for (u32 base = first_node; base < nodes; base += 32) {
    const u32 n = base + lane;
    const u32 here = __ballot_sync(FULL_WARP, n < nodes && (shared.node[n] & NODE_MASK) == n);
    if (n < nodes) shared.component[n] = (u16)(roots + __popc(here & ~after) - 1);
    roots += __popc(here);
  }
  if (lane == 0) shared.roots[warp] = roots;
  __syncthreads();
  u32 total = 0, before = 0;
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    if (i == warp) before = total;
    total += shared.roots[i];
  }
  const bool few = total <= TileShared<WARPS>::FEW;
  u32 place = 0;
  if (threadIdx.x == 0) place = atomicAdd(&out.counters[0], total);
  for (u32 n = first_node + lane; n < nodes; n += 32) {
    if ((shared.node[n] & NODE_MASK) == n) shared.component[n] += (u16)before;
  }
  if (few) {
    for (u32 i = threadIdx.x; i < total; i += 32 * WARPS) {
#pragma unroll
      for (int j = 0; j < 3; j++) shared.sums[j][i] = 0;
    }
  } else {
    if (threadIdx.x == 0) shared.first = place;
    __syncthreads();
    const ComponentSums zero = {0, 0, {0, 0, 0}};
    for (u32 i = threadIdx.x; i < total; i += 32 * WARPS) out.sums[shared.first + i] = zero;
  }
  __syncthreads();
  for (u32 n = first_node + lane; n < nodes; n += 32) {
    const u32 root = find_node(shared.node, n);
    if (root != n) shared.component[n] = shared.component[root];
  }
  __syncwarp();

  // Every pixel's component, their sums, and the pairs that touch, once for each stretch of a shared boundary. What lies right of
  // the frame is like its neighbor, so that it touches nothing, and is not counted.
  ColumnSums sums = {NO_COMPONENT, 0, 0};
  u32 over = NO_COMPONENT, over_left = NO_COMPONENT, waiting = 0;
  u32 *const edges = shared.edges[warp];
  if (warp > 0 && begin < end) {
    over = shared.component[find_node(shared.node, shared.at[begin * TILE - TILE + lane])];
    over_left = __shfl_up_sync(FULL_WARP, over, 1);
  }
  const size_t corner = (size_t)(top + begin) * width + left;
  const u32 *feature_at = features + corner + min(lane, last_lane);
  u16 *local_at = out.local + corner + lane;
  const u32 one = inside ? 1u << COUNT_SHIFT : 0;
  at = shared.at + begin * TILE + lane;
#pragma unroll 1
  for (u32 y = begin; y < end; y += 4) {
    const u32 rows = min(end - y, 4);
    u32 feature[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (i < rows) feature[i] = *feature_at;
      feature_at += width;
    }
#pragma unroll 1
    for (u32 row = rows; row; row--) {
      const u32 own = feature[0];
      feature[0] = feature[1];
      feature[1] = feature[2];
      feature[2] = feature[3];
      const u32 here = shared.component[*at];
      at += TILE;
      if (inside) *local_at = (u16)here;
      local_at += width;
      const u32 beside = __shfl_up_sync(FULL_WARP, here, 1);
      const bool changes = over != here, begins = beside != here;
      const bool across = begins && (changes || over_left != beside);
      const bool down = (lane == 0 || over_left != over || begins) && changes && over != NO_COMPONENT;
      const u32 pairs_across = __ballot_sync(FULL_WARP, across), pairs_down = __ballot_sync(FULL_WARP, down);
      if (across) edges[waiting + __popc(pairs_across & ~after) - 1] = (here << 16) + beside;
      waiting += __popc(pairs_across);
      if (down) edges[waiting + __popc(pairs_down & ~after) - 1] = (here << 16) + over;
      waiting += __popc(pairs_down);
      over = here;
      over_left = beside;
      if (here != sums.component) {
        if (sums.first >> COUNT_SHIFT) sums.add(shared, out, few);
        sums = {here, 0, 0};
      }
      sums.first += (own & 0x3ffu) + one;
      sums.others += (own >> 10 & 0x7ffu) | (own >> 5 & 0x7ff0000u);
    }
  }
  if (sums.first >> COUNT_SHIFT) sums.add(shared, out, few);
  if (few && threadIdx.x == 0) shared.first = place;
  __syncthreads();

  if (few) waiting = keep_edges(edges, waiting, shared.sums[0], out.large);
  u32 first_edge = 0;
  if (lane == 0 && waiting) first_edge = atomicAdd(&out.counters[1], waiting);
  const u32 first = shared.first;
  for (u32 n = first_node + lane; n < nodes; n += 32) {
    const u32 word = shared.node[n];
    if ((word & NODE_MASK) != n) continue;
    const u32 component = first + shared.component[n], pixel = word >> NODE_BITS & NODE_MASK;
    const u32 x = left + pixel % TILE, y = top + pixel / TILE;
    out.parent[component] = component;
    out.cluster[component] = pixels.cluster(word >> (2 * NODE_BITS), x, y);
    if (few) {
      const u32 i = component - first;
      const u32 sum = shared.sums[0][i];
      const ComponentSums own = {sum >> COUNT_SHIFT, y * width + x,
                                 {below_count(sum), shared.sums[1][i], shared.sums[2][i]}};
      out.sums[component] = own;
    } else {
      out.sums[component].key = y * width + x;
    }
  }
  if (threadIdx.x == 0) {
    const u32 tile = blockIdx.y * gridDim.x + blockIdx.x;
    out.tile_first[tile] = first;
    out.tile_count[tile] = total;
  }
  write_edges(out, edges, waiting, __shfl_sync(FULL_WARP, first_edge, 0), first);
}
