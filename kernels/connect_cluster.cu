// SPDX-License-Identifier: MPL-2.0
// Stage `connectivity` in one launch: the components of a frame that fit the shared memory of one cluster of blocks, which
// pass through the phases of connectivity.cu at the cost of a cluster's barrier between two of them. The same result; a
// frame with more components is left to connectivity.cu.
#include "cluster.cuh"
#include "connect.cuh"

#define BLOCKS CLUSTER_BLOCKS
// Edges that a thread keeps in registers from round to round.
#define KEPT_EDGES 8
// A pick: newer rounds are lower, so that nothing has to be cleared; then distance, then key.
#define PICK_KEY_BITS 21
#define PICK_ROUND_SHIFT (PICK_KEY_BITS + 32)
#define PICK_NONE (~0ull)

#if HAS_CLUSTERS
struct Node {
  u32 parent, key;
};

// A block's share. Component i of the lists belongs to block i / share.
struct ClusterShared {
  uint4 sums[CLUSTER_COMPONENTS];  // count, channels: 32 bits hold them in frames of up to 2^32 / 2047 px
  u64 picks[CLUSTER_COMPONENTS];
  Node nodes[CLUSTER_COMPONENTS];
  u32 bitmap[CLUSTER_WORDS];
  u16 word_before[CLUSTER_WORDS];
  u32 totals[BLOCKS];
  u32 flags[32];
  BlockSum sum;
  u32 border_edges;
};
static_assert(sizeof(ClusterShared) <= CLUSTER_SHARED, "what the host asks for");

struct Shares {
  u32 share, magic;
  __device__ u32 rank(u32 i) const { return __umulhi(i, magic); }
};

// Division by multiplication: exact for components below 2^17 and shares below 2^13.
__device__ __forceinline__ Shares shares_of(u32 components) {
  Shares shares;
  shares.share = max((components + BLOCKS - 1) / BLOCKS, 2u);
  shares.magic = (u32)(0x100000000ull / shares.share) + 1;
  return shares;
}
static_assert(BLOCKS * CLUSTER_COMPONENTS <= 1 << 17, "see `Shares::rank`");

template <class T> __device__ __forceinline__ T *item(T *array, const Shares &shares, u32 i) {
  const u32 rank = shares.rank(i);
  return of_rank(array + (i - rank * shares.share), rank);
}

// A component's root and its key, while others are joined or not.
__device__ __forceinline__ u32 find(ClusterShared &shared, const Shares &shares, u32 i) {
  for (;;) {
    const u32 up = *(volatile u32 *)&item(shared.nodes, shares, i)->parent;
    if (up == i) return i;
    i = up;
  }
}
__device__ __forceinline__ Node find_node(ClusterShared &shared, const Shares &shares, u32 i) {
  for (;;) {
    const Node node = *item(shared.nodes, shares, i);
    if (node.parent == i) return node;
    i = node.parent;
  }
}

__device__ __forceinline__ void unite(ClusterShared &shared, const Shares &shares, u32 a, u32 b) {
  for (;;) {
    a = find(shared, shares, a);
    b = find(shared, shares, b);
    if (a == b) return;
    Node *node_a = item(shared.nodes, shares, a), *node_b = item(shared.nodes, shares, b);
    if (node_a->key < node_b->key) {
      const u32 swap = a;
      a = b;
      b = swap;
      node_a = node_b;
    }
    if (atomicCAS(&node_a->parent, a, b) == a) return;
  }
}

__device__ __forceinline__ void move_sums(ClusterShared &shared, const Shares &shares, u32 own, u32 root) {
  const uint4 sums = shared.sums[own];
  shared.sums[own].x = 0;
  uint4 *to = item(shared.sums, shares, root);
  atomicAdd(&to->x, sums.x);
  atomicAdd(&to->y, sums.y);
  atomicAdd(&to->z, sums.z);
  atomicAdd(&to->w, sums.w);
}

__device__ __forceinline__ u32 squared(u32 sum_a, u32 count_a, u32 sum_b, u32 count_b) {
  const i32 difference = mean(sum_a, count_a) - mean(sum_b, count_b);
  return (u32)(difference * difference);
}

__device__ __forceinline__ void pick_for(ClusterShared &shared, const Shares &shares, u32 i, u32 round, u32 distance,
                                         u32 key) {
  const u64 value = (u64)(31 - round) << PICK_ROUND_SHIFT | (u64)distance << PICK_KEY_BITS | key;
  atomicMin(item(shared.picks, shares, i), value);
}

// Lets the small ones of two neighbors pick; returns whether there is one. An edge that no longer matters becomes (0, 0).
__device__ __forceinline__ bool pick(ClusterShared &shared, const Shares &shares, u32 min_region, u32 round, uint2 &edge) {
  if (edge.x == edge.y) return false;
  const Node a = find_node(shared, shares, edge.x), b = find_node(shared, shares, edge.y);
  edge = make_uint2(a.parent, b.parent);
  if (edge.x == edge.y) return false;
  const uint4 sums_a = *item(shared.sums, shares, edge.x), sums_b = *item(shared.sums, shares, edge.y);
  if (sums_a.x >= min_region && sums_b.x >= min_region) {
    edge = make_uint2(0, 0);
    return false;
  }
  const u32 distance = squared(sums_a.y, sums_a.x, sums_b.y, sums_b.x) + squared(sums_a.z, sums_a.x, sums_b.z, sums_b.x) +
                       squared(sums_a.w, sums_a.x, sums_b.w, sums_b.x);
  if (sums_a.x < min_region) pick_for(shared, shares, edge.x, round, distance, b.key);
  if (sums_b.x < min_region) pick_for(shared, shares, edge.y, round, distance, a.key);
  return true;
}

// The component that a pick of this round names, or `none`.
__device__ __forceinline__ u32 picked(ClusterShared &shared, const Shares &shares, const Components &c,
                                      const ConnectArgs &args, u64 pick, u32 round, u32 none) {
  if (pick >> PICK_ROUND_SHIFT != 31 - round) return none;
  return find(shared, shares, component_at(c, args, (u32)pick & ((1u << PICK_KEY_BITS) - 1)));
}

// One component joins what it picked: see `hook` of connectivity.cu.
__device__ __forceinline__ void hook(ClusterShared &shared, const Shares &shares, const Components &c,
                                     const ConnectArgs &args, u32 own, u32 i, u32 round) {
  u32 before = i, to = picked(shared, shares, c, args, shared.picks[own], round, i);
  if (to == i) return;
  for (;;) {
    const u32 next = picked(shared, shares, c, args, *item(shared.picks, shares, to), round, to);
    if (next == to) break;
    if (next == before) {
      to = min(to, before);
      break;
    }
    before = to;
    to = next;
  }
  if (to == i) return;
  atomicMin(&item(shared.nodes, shares, to)->key, shared.nodes[own].key);
  move_sums(shared, shares, own, to);
  *(volatile u32 *)&shared.nodes[own].parent = to;
}
#endif

// Grid: one cluster of BLOCKS blocks of 1024 threads. Sets the counter CONNECTED where it did the work.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_cluster(Components c, u16 *labels, RegionSums *regions, ConnectArgs args) {
  after_last_kernel();
#if HAS_CLUSTERS
  DYNAMIC_SHARED(ClusterShared, shared);
  const u32 components = c.counters[COMPONENTS];
  if (components > BLOCKS * CLUSTER_COMPONENTS) return;
  const u32 block = cluster_rank(), thread = threadIdx.x, lane = lane_id();
  const Shares shares = shares_of(components);
  const u32 first = min(block * shares.share, components), owned = min(shares.share, components - first);

  // Load.
  for (u32 own = thread; own < owned; own += NUMBER_THREADS) {
    const uint4 *at = (const uint4 *)(c.sums + first + own);
    const uint4 low = at[0], high = at[1];
    shared.sums[own] = make_uint4(low.x, low.z, high.x, high.z);
    shared.picks[own] = PICK_NONE;
    shared.nodes[own].parent = first + own;
    shared.nodes[own].key = c.key[first + own];
  }
  const u32 words = (args.words + BLOCKS - 1) / BLOCKS;
  for (u32 i = thread; i < words; i += NUMBER_THREADS) shared.bitmap[i] = 0;
  if (thread < 32) shared.flags[thread] = 0;
  if (thread == 0) shared.border_edges = 0;
  cluster_barrier();

  // Borders: equal clusters are joined, others touch. Each block notes the edges that it finds behind those of the tiles.
  const u32 inside = c.counters[EDGES], pairs = border_pairs(args), round_pairs = BLOCKS * NUMBER_THREADS;
  const u32 border_first =
      inside + pairs / round_pairs * NUMBER_THREADS * block + min(pairs % round_pairs, block * NUMBER_THREADS);
  for (u32 base = 0; base < pairs; base += round_pairs) {
    const u32 i = base + block * NUMBER_THREADS + thread;
    u32 a = 0, b = 0;
    bool other = false, along = false;
    if (i < pairs) {
      const BorderPair pair = border_pair(args, i);
      a = component_at(c, args, pair.pixel);
      b = component_at(c, args, pair.pixel + pair.step);
      along = pair.along;
      other = c.cluster[a] != c.cluster[b];
    }
    const u32 a_before = __shfl_up_sync(FULL_WARP, a, 1), b_before = __shfl_up_sync(FULL_WARP, b, 1);
    const bool fresh = i < pairs && !(lane > 0 && along && a_before == a && b_before == b);
    if (fresh && !other) unite(shared, shares, a, b);
    const u32 edges = __ballot_sync(FULL_WARP, fresh && other);
    u32 at = 0;
    if (lane == 0 && edges) at = atomicAdd(&shared.border_edges, __popc(edges));
    at = border_first + __shfl_sync(FULL_WARP, at, 0);
    if (fresh && other) c.edges[at + __popc(edges & (lanes_up_to(lane) >> 1))] = make_uint2(a, b);
  }
  cluster_barrier();

  // Settle.
  for (u32 own = thread; own < owned; own += NUMBER_THREADS) {
    const u32 root = find(shared, shares, first + own);
    if (root != first + own) {
      *(volatile u32 *)&shared.nodes[own].parent = root;
      move_sums(shared, shares, own, root);
    }
  }
  const u32 inside_share = (inside + BLOCKS - 1) / BLOCKS, inside_first = min(block * inside_share, inside);
  const u32 inside_edges = min(inside_share, inside - inside_first), edges = inside_edges + shared.border_edges;
  uint2 *const inside_at = c.edges + inside_first, *const border_at = c.edges + border_first - inside_edges;
  uint2 kept[KEPT_EDGES];
#pragma unroll
  for (int k = 0; k < KEPT_EDGES; k++) {
    const u32 i = k * NUMBER_THREADS + thread;
    kept[k] = i < edges ? __ldcg((i < inside_edges ? inside_at : border_at) + i) : make_uint2(0, 0);
  }
  cluster_barrier();

  // Rounds of absorption.
  for (u32 round = 0;; round++) {
    bool any = false;
#pragma unroll
    for (int k = 0; k < KEPT_EDGES; k++) any |= pick(shared, shares, args.min_region, round, kept[k]);
    for (u32 i = KEPT_EDGES * NUMBER_THREADS + thread; i < edges; i += NUMBER_THREADS) {
      uint2 *const at = (i < inside_edges ? inside_at : border_at) + i;
      uint2 edge = *at;
      any |= pick(shared, shares, args.min_region, round, edge);
      *at = edge;
    }
    if (__syncthreads_or(any) && thread < BLOCKS) *of_rank(&shared.flags[round], thread) = 1;
    cluster_barrier();
    if (!shared.flags[round]) break;
    for (u32 own = thread; own < owned; own += NUMBER_THREADS) {
      hook(shared, shares, c, args, own, first + own, round);
    }
    cluster_barrier();
  }

  // Mark.
  for (u32 own = thread; own < owned; own += NUMBER_THREADS) {
    if (shared.nodes[own].parent != first + own) continue;
    const u32 at = mark_at(args, shared.nodes[own].key), rank = at / 32 / words;
    atomicOr(of_rank(&shared.bitmap[at / 32 - rank * words], rank), 1u << at % 32);
  }
  cluster_barrier();

  // Count.
  const u32 each = (words + NUMBER_THREADS - 1) / NUMBER_THREADS;
  const u32 begin = min(thread * each, words), end = min(begin + each, words);
  u32 marks = 0;
  for (u32 i = begin; i < end; i++) marks += __popc(shared.bitmap[i]);
  u32 before = block_sum(shared.sum, marks);
  for (u32 i = begin; i < end; i++) {
    shared.word_before[i] = (u16)before;
    before += __popc(shared.bitmap[i]);
  }
  if (thread < BLOCKS) *of_rank(&shared.totals[block], thread) = shared.sum.total;
  cluster_barrier();

  // Number.
  u32 before_block[BLOCKS], regions_found = 0;
#pragma unroll
  for (u32 i = 0; i < BLOCKS; i++) {
    before_block[i] = regions_found;
    regions_found += shared.totals[i];
  }
  __syncthreads();
  if (thread == 0) {
#pragma unroll
    for (u32 i = 0; i < BLOCKS; i++) shared.totals[i] = before_block[i];
  }
  __syncthreads();
  for (u32 own = thread; own < owned; own += NUMBER_THREADS) {
    const u32 at = mark_at(args, find_node(shared, shares, first + own).key), rank = at / 32 / words;
    const u32 word = at / 32 - rank * words;
    const u32 below = __popc(*of_rank(&shared.bitmap[word], rank) & ((1u << at % 32) - 1));
    const u32 label = shared.totals[rank] + *of_rank(&shared.word_before[word], rank) + below;
    labels[first + own] = (u16)label;
    if (shared.nodes[own].parent == first + own) {
      const uint4 sums = shared.sums[own];
      regions[label] = region_of(sums.x, sums.y, sums.z, sums.w);
    }
  }
  if (block == 0 && thread == 0) {
    c.counters[REGIONS] = regions_found;
    c.counters[CONNECTED] = 1;
  }
  // Nobody leaves while others read its memory.
  cluster_barrier();
#endif
}
