// SPDX-License-Identifier: MPL-2.0
// Connected components of equal cluster label inside a tile, with the sums of their features and the pairs that touch. Tiles first, borders
// afterwards (connectivity.cu), as in Playne and Stephenson 2018, on runs. Ends every label kernel. Mirrors src/post/connectivity/cpu.rs.
#pragma once
#include "abi.cuh"
#include "block.cuh"

// Above the first row of a warp: no tag, and above that of a tile no component.
#define NO_CLUSTER 0xffffffffu
#define NO_COMPONENT 0xffffu
// Tag of pixels outside of a mask, whose cluster is NO_CLUSTER: above all that `cluster` reads. Of a component of such pixels this bit
// stands in the count, which else has no more bits than pixels have.
#define OUTSIDE_TAG 0xffeu
#define OUTSIDE_COUNT (1u << 31)
// Bit in the count of a component that is kept however small it is: above all counts of small ones. What is joined to it leaves
// it as it is.
#define KEPT_COUNT (1u << 30)
__device__ __forceinline__ u32 pixels_of(u32 count) { return count & ~KEPT_COUNT; }

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

// Sets of a tile's nodes, as `unite` of kernels/block.cuh wants them; the root is the node with the earliest first pixel.
struct NodeSets : PlainOrder {
  u32 *node;  // in shared memory
  __device__ __forceinline__ explicit NodeSets(u32 *node) : node(node) {}
  __device__ __forceinline__ u32 parent(u32 i) const { return *(const volatile u32 *)(node + i) & NODE_MASK; }
  __device__ __forceinline__ bool link(Node a, Node b) const {
    const u32 word = *(volatile u32 *)(node + a.at);
    return (word & NODE_MASK) == a.at && atomicCAS(&node[a.at], word, (word & ~NODE_MASK) | b.at) == word;
  }
};

// Sums of a lane over its column inside one component: pixels above channel 0, which 21 bits hold for a whole tile, and channels 1
// and 2 in 16 bits each, which hold those of 32 px.
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
    if (keep) edges[kept + rank_among(lanes)] = edge;
    kept += __popc(lanes);
    __syncwarp();
  }
  return kept;
}

// Writes a warp's pairs that wait.
__device__ __forceinline__ void write_edges(const Components &out, const u32 *edges, u32 count, u32 start, u32 first) {
  for (u32 i = lane_id(); i < count; i += 32) {
    out.edges[start + i] = make_uint2(first + (edges[i] & 0xffffu), first + (edges[i] >> 16));
  }
}

// A tile's part of a plane of the frame; a lane has a column of it. What is outside the frame repeats its border.
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

// Position of a warp in the tile of a block of `WARPS`: a lane has a column, a warp some rows, which it goes down.
template <u32 WARPS>
struct TileWarp {
  // Rows of a warp.
  static const u32 ROWS = TILE / WARPS;
  static_assert(ROWS % 4 == 0, "rows are loaded by four");
  TileShared<WARPS> &shared;
  const Components &out;
  u32 width;  // of the frame
  u32 lane, warp, left, top;
  u32 begin, end;  // its rows of the tile that are inside the frame
  u32 first_node, last_lane;

  __device__ __forceinline__ TileWarp(TileShared<WARPS> &shared, const Components &out, u32 width, u32 height)
      : shared(shared), out(out), width(width), lane(lane_id()), warp(threadIdx.x / 32),
        left(blockIdx.x * TILE), top(blockIdx.y * TILE), begin(warp * ROWS), end(min(begin + ROWS, height - top)),
        first_node(begin * TILE), last_lane(min(width - left, TILE) - 1) {}

  // Calls `function(node)` for the lane's share of the warp's nodes.
  template <class Function>
  __device__ __forceinline__ void each_node(u32 nodes, Function function) const {
    for (u32 n = first_node + lane; n < nodes; n += 32) function(n);
  }
  __device__ __forceinline__ bool is_root(u32 n) const { return (shared.node[n] & NODE_MASK) == n; }
};

// Finds the runs of a warp's rows and joins those of one tag that touch. A run takes over the node of the last run above it that it
// touches; where it touches more they are united. What lies right of the frame repeats its last column, as part of the same runs.
// Whole warps; no barrier but `ready` of the pixels.
template <u32 WARPS>
struct RunFinder {
  const TileWarp<WARPS> &t;
  u32 after;      // lanes after this one
  u32 nodes;      // end of the warp's nodes so far
  u32 first_tag;  // of the lane in the first row
  // Of the row above: tag and node of the lane's column, and where runs begin.
  u32 above, above_node, above_starts;
  u16 *at;    // in `TileShared::at`
  u32 pixel;  // index in the tile, where nodes have it

  __device__ __forceinline__ explicit RunFinder(const TileWarp<WARPS> &t)
      : t(t), after(lanes_after()), nodes(t.first_node), first_tag(NO_CLUSTER), above(NO_CLUSTER), above_node(0), above_starts(0),
        at(t.shared.at + t.begin * TILE + t.lane), pixel((t.begin * TILE + t.lane) << NODE_BITS) {}

  // The next row, in which the lane's pixel has the tag `here`.
  __device__ __forceinline__ void add_row(u32 here) {
    const u32 own_bit = 1u << t.lane;
    const bool begins = __shfl_up_sync(FULL_WARP, here, 1) != here || t.lane == 0, joins = here == above;
    const u32 starts = __ballot_sync(FULL_WARP, begins), later = starts & after;
    const u32 touching = __ballot_sync(FULL_WARP, joins) & ~later & (later - 1);
    const i32 start = highest_lane(starts & ~after), touched = highest_lane(touching);
    const u32 taken = __shfl_sync(FULL_WARP, above_node, touched);
    const bool is_fresh = begins && touched < start;
    const u32 fresh = __ballot_sync(FULL_WARP, is_fresh);
    const u32 made = nodes + __popc(fresh & ~after) - 1, node = touched < start ? made : taken;
    if (is_fresh) t.shared.node[node] = (here << (2 * NODE_BITS)) + (node + pixel);
    nodes += __popc(fresh);
    *at = (u16)node;
    at += TILE;
    pixel += TILE << NODE_BITS;
    const bool meets = joins && node != above_node && ((starts | above_starts) & own_bit);
    if (__any_sync(FULL_WARP, meets)) {
      __syncwarp();
      if (meets) unite(NodeSets(t.shared.node), {node}, {above_node});
    }
    above = here;
    above_node = node;
    above_starts = starts;
  }

  template <class Pixels>
  __device__ __forceinline__ void find(Pixels &pixels) {
    u32 value[4];
    if (t.begin < t.end) pixels.load(t.begin, value);
    pixels.ready();
#pragma unroll 1
    for (u32 y = t.begin; y < t.end; y += 4) {
      u32 tag[4];
      const u32 own[4] = {value[0], value[1], value[2], value[3]};
      if (y + 4 < t.end) pixels.load(y + 4, value);
      pixels.assign(y, own, tag);
#pragma unroll
      for (u32 i = 0; i < 4; i++) tag[i] = own[i] == OUTSIDE ? OUTSIDE_TAG : tag[i];
      if (t.last_lane != TILE - 1) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) tag[i] = __shfl_sync(FULL_WARP, tag[i], min(t.lane, t.last_lane));
      }
      if (y == t.begin) first_tag = tag[0];
      // Rolled, here and below: unrolled, the kernel was 58 KB, and a fifth of its warps' stalls were for instructions.
#pragma unroll 1
      for (u32 rows = min(t.end - y, 4); rows; rows--) {
        const u32 here = tag[0];
        tag[0] = tag[1];
        tag[1] = tag[2];
        tag[2] = tag[3];
        add_row(here);
      }
    }
  }
};

// Joins the runs on both sides of the row between two warps, of which the lower one does it: runs begin where nodes change. A lane
// gives the tags of the first and the last row of its warp. Barriers: one before, for what the warps have found, and one after.
template <u32 WARPS>
__device__ __forceinline__ void join_warps(const TileWarp<WARPS> &t, u32 first_tag, u32 last_tag) {
  t.shared.tag[t.warp][t.lane] = last_tag;
  __syncthreads();
  if (t.warp > 0 && t.begin < t.end) {
    const u32 here = t.shared.at[t.begin * TILE + t.lane], over = t.shared.at[t.begin * TILE - TILE + t.lane];
    const u32 beside = __shfl_up_sync(FULL_WARP, here, 1), over_left = __shfl_up_sync(FULL_WARP, over, 1);
    const bool begins = t.lane == 0 || beside != here || over_left != over;
    if (begins && t.shared.tag[t.warp - 1][t.lane] == first_tag) unite(NodeSets(t.shared.node), {here}, {over});
  }
  __syncthreads();
}

// How a tile's components are counted and where they stand.
struct TileList {
  u32 total, before;  // components of the tile, and of the warps before this one
  u32 start;          // in the list of components; thread 0 alone knows it before it is in `TileShared::first`
};

// Numbers the roots of a tile, gives every node the number of its root, and clears the sums: in shared memory, or in the list of
// components, whose indices are taken here. `nodes` is the end of the warp's nodes. Barriers: two, three where components are many.
template <u32 WARPS>
__device__ __forceinline__ TileList list_roots(const TileWarp<WARPS> &t, u32 nodes) {
  TileShared<WARPS> &shared = t.shared;
  const u32 after = lanes_after();
  u32 roots = 0;
  for (u32 base = t.first_node; base < nodes; base += 32) {
    const u32 n = base + t.lane;
    const u32 here = __ballot_sync(FULL_WARP, n < nodes && t.is_root(n));
    if (n < nodes) shared.component[n] = (u16)(roots + __popc(here & ~after) - 1);
    roots += __popc(here);
  }
  if (t.lane == 0) shared.roots[t.warp] = roots;
  __syncthreads();
  TileList list = {0, 0, 0};
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    if (i == t.warp) list.before = list.total;
    list.total += shared.roots[i];
  }
  if (threadIdx.x == 0) list.start = atomicAdd(&t.out.counters[COMPONENTS], list.total);
  t.each_node(nodes, [&](u32 n) {
    if (t.is_root(n)) shared.component[n] += (u16)list.before;
  });
  if (list.total <= TileShared<WARPS>::FEW) {
    for (u32 i = threadIdx.x; i < list.total; i += 32 * WARPS) {
#pragma unroll
      for (int j = 0; j < 3; j++) shared.sums[j][i] = 0;
    }
  } else {
    if (threadIdx.x == 0) shared.first = list.start;
    __syncthreads();
    const ComponentSums zero = {0, 0, {0, 0, 0}};
    for (u32 i = threadIdx.x; i < list.total; i += 32 * WARPS) t.out.sums[shared.first + i] = zero;
  }
  __syncthreads();
  t.each_node(nodes, [&](u32 n) {
    const u32 root = find_root(NodeSets(shared.node), n);
    if (root != n) shared.component[n] = shared.component[root];
  });
  __syncwarp();
  return list;
}

// Writes a warp's roots to the lists of components; `cluster` is that of `Pixels`. No barrier.
template <u32 WARPS, class Pixels>
__device__ __forceinline__ void write_roots(const TileWarp<WARPS> &t, bool few, u32 first, u32 nodes, const Pixels &pixels) {
  const TileShared<WARPS> &shared = t.shared;
  for (u32 n = t.first_node + t.lane; n < nodes; n += 32) {
    const u32 word = shared.node[n];
    if ((word & NODE_MASK) != n) continue;
    const u32 component = first + shared.component[n], pixel = word >> NODE_BITS & NODE_MASK;
    const u32 x = t.left + pixel % TILE, y = t.top + pixel / TILE;
    const u32 cluster = pixels.cluster(word >> (2 * NODE_BITS), x, y), outside = cluster == NO_CLUSTER ? OUTSIDE_COUNT : 0;
    t.out.parent[component] = component;
    t.out.cluster[component] = cluster;
    if (few) {
      const u32 i = component - first;
      const u32 sum = shared.sums[0][i];
      const ComponentSums own = {sum >> COUNT_SHIFT | outside, y * t.width + x,
                                 {below_count(sum), shared.sums[1][i], shared.sums[2][i]}};
      t.out.sums[component] = own;
    } else {
      t.out.sums[component].key = y * t.width + x;
      if (outside) t.out.sums[component].count |= outside;
    }
  }
}

// Writes what a tile has found to the lists: its roots, its own record, and the pairs of a warp, `waiting` of them. After a barrier since
// the sums were added up; none inside, and whole warps.
template <u32 WARPS, class Pixels>
__device__ __forceinline__ void write_tile(const TileWarp<WARPS> &t, u32 total, u32 nodes, u32 waiting, const Pixels &pixels) {
  TileShared<WARPS> &shared = t.shared;
  u32 *const edges = shared.edges[t.warp];
  const bool few = total <= TileShared<WARPS>::FEW;
  if (few) waiting = keep_edges(edges, waiting, shared.sums[0], t.out.large);
  u32 first_edge = 0;
  if (t.lane == 0 && waiting) first_edge = atomicAdd(&t.out.counters[EDGES], waiting);
  const u32 first = shared.first;
  write_roots(t, few, first, nodes, pixels);
  if (threadIdx.x == 0) {
    const u32 tile = blockIdx.y * gridDim.x + blockIdx.x;
    t.out.tile_first[tile] = first;
    t.out.tile_count[tile] = total;
  }
  write_edges(t.out, edges, waiting, __shfl_sync(FULL_WARP, first_edge, 0), first);
}

// The components of the tile of a block of `WARPS`: a lane has a column, a warp some rows, which it goes down. Grid: tiles of
// 32 x 32 px. Writes of `Components` what belongs to the tile: `local`, `tile_first`, `tile_count`, and its components' and
// pairs' entries in the lists, whose indices it takes by atomic additions to two counters. All threads of the block call it; shared
// memory: one `TileShared`, declared here; barriers: those of the steps and one of its own. `pixels` says which cluster a pixel
// belongs to:
//
//     load(y, value)               what rows y to y + 3 of the tile need, asked for one step ahead
//     ready()                      once, when the first rows have been asked for: what the block has to wait for
//     assign(y, value, tag)        tags, equal where clusters are, below 1024 if `cluster` reads them
//     cluster(tag, x, y)           the cluster of a tag, at a pixel of it; NO_CLUSTER outside of a mask
//
// A value of OUTSIDE makes the tag OUTSIDE_TAG, whatever `assign` says.
template <u32 WARPS, class Pixels>
__device__ __forceinline__ void tile_components(const Components &out, u32 width, u32 height, const u32 *features,
                                                Pixels &pixels) {
  __shared__ TileShared<WARPS> shared;
  const TileWarp<WARPS> t(shared, out, width, height);
  RunFinder<WARPS> runs(t);
  runs.find(pixels);
  join_warps(t, runs.first_tag, runs.above);
  const u32 nodes = runs.nodes;
  const TileList list = list_roots(t, nodes);
  // Every pixel's component, their sums, and the pairs that touch, once for each stretch of a shared boundary. What lies right of the
  // frame is like its neighbor, so that it touches nothing, and is not counted. Here, since as a function of its own it spills.
  const u32 lane = t.lane, after = lanes_after(), begin = t.begin, end = t.end;
  const bool inside = t.left + lane < t.width, few = list.total <= TileShared<WARPS>::FEW;
  ColumnSums sums = {NO_COMPONENT, 0, 0};
  // Component above the lane's pixel, and of that to its left.
  u32 over = NO_COMPONENT, over_left = NO_COMPONENT, waiting = 0;
  u32 *const edges = shared.edges[t.warp];
  if (t.warp > 0 && begin < end) {
    over = shared.component[find_root(NodeSets(shared.node), shared.at[begin * TILE - TILE + lane])];
    over_left = __shfl_up_sync(FULL_WARP, over, 1);
  }
  const size_t corner = (size_t)(t.top + begin) * t.width + t.left;
  const u32 *feature_at = features + corner + min(lane, t.last_lane);
  u16 *local_at = t.out.local + corner + lane;
  const u32 one = inside ? 1u << COUNT_SHIFT : 0;
  const u16 *at = shared.at + begin * TILE + lane;
#pragma unroll 1
  for (u32 y = begin; y < end; y += 4) {
    const u32 rows = min(end - y, 4);
    u32 feature[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (i < rows) feature[i] = *feature_at;
      feature_at += t.width;
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
      local_at += t.width;
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
        if (sums.first >> COUNT_SHIFT) sums.add(shared, t.out, few);
        sums = {here, 0, 0};
      }
      sums.first += (own & 0x3ffu) + one;
      sums.others += (own >> 10 & 0x7ffu) | (own >> 5 & 0x7ff0000u);
    }
  }
  if (sums.first >> COUNT_SHIFT) sums.add(shared, t.out, few);
  if (few && threadIdx.x == 0) shared.first = list.start;
  __syncthreads();
  write_tile(t, list.total, nodes, waiting, pixels);
}
