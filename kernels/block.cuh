// SPDX-License-Identifier: MPL-2.0
// Operations of the threads of a block together, one implementation each: exclusive sums, disjoint sets, tables with open addressing.
//
// Every member says what a thread gives and gets, which barriers it has, and which shared memory it needs. Types that come in as
// template parameters are named by what is asked of them.
#pragma once
#include "common.cuh"

// Rank of this lane among some lanes of its warp: how many of them are below it.
__device__ __forceinline__ u32 rank_among(u32 lanes) { return __popc(lanes & (lanes_up_to(lane_id()) >> 1)); }

// Sums over the threads of a block.
//
// THREADS: threads of the block, whole warps, at most 1024. All of them call every member, in the same order.
// Shared memory: one `Shared` of the block, which any number of calls may use in turn.
template <u32 THREADS>
struct BlockScan {
  static const u32 WARPS = THREADS / 32;
  static_assert(THREADS % 32 == 0 && WARPS <= 32, "a lane for each warp");
  struct Shared {
    u32 warp_total[WARPS];
    u32 total;
  };

  // A thread gives `value` and gets the sum of the values of the threads before it; `shared.total` is then the sum of all.
  // Barriers: one at the beginning where REUSED, for threads that may still be reading what an earlier call left, and two after
  // it. None at the end: `shared` must not be written before all threads have met again.
  template <bool REUSED>
  static __device__ __forceinline__ u32 exclusive_sum(Shared &shared, u32 value) {
    const u32 sum = inclusive_sum(value), warp = threadIdx.x / 32, lane = lane_id();
    if (REUSED) __syncthreads();
    if (lane == 31) shared.warp_total[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      const u32 here = WARPS == 32 || lane < WARPS ? shared.warp_total[lane] : 0, up = inclusive_sum(here);
      if (WARPS == 32 || lane < WARPS) shared.warp_total[lane] = up - here;
      if (lane == 31) shared.total = up;
    }
    __syncthreads();
    return shared.warp_total[warp] + sum - value;
  }
};

// Disjoint sets that any number of threads of the grid join at once: lock-free union-find that links roots by compare-and-swap (Anderson
// and Woll 1991; Komura 2015 and Playne and Stephenson 2018 do so on images, by atomic minima). Parents are below their children in a
// strict order, so every path ends, and the root of a set is its least element in any order of threads. No barriers; memory is `Sets`'.
//
// `Sets` says where they stand:
//
//     struct Node      an element with its index `at`, and what of it was loaded ahead
//     parent(i)        parent of an element, itself for a root; read past caches that others do not write through
//     load(i)          an element as a node
//     root(i)          a root as a node
//     is_root(node)    whether it was one when it was loaded; may deny it of a root, never claim it of another
//     way(node)        where the way to the root of a node that is none begins
//     sort(a, b)       exchanges two, if need be, so that `b` is below `a`
//     link(a, b)       makes `b` the parent of `a` if that is a root still; whether it was

// A thread gives an element and gets the root of its set; while others join, it may be none any more when it is used.
template <class Sets>
__device__ __forceinline__ u32 find_root(const Sets &sets, u32 i) {
  for (;;) {
    const u32 up = sets.parent(i);
    if (up == i) return i;
    i = up;
  }
}

// A thread gives two elements; afterwards they are in one set.
template <class Sets>
__device__ __forceinline__ void unite(const Sets &sets, typename Sets::Node a, typename Sets::Node b) {
  for (;;) {
    if (!sets.is_root(a) || !sets.is_root(b)) {
      const u32 root_a = find_root(sets, sets.way(a)), root_b = find_root(sets, sets.way(b));
      if (root_a == root_b) return;
      a = sets.root(root_a);
      b = sets.root(root_b);
    }
    sets.sort(a, b);
    if (sets.link(a, b)) return;
    a = sets.load(a.at);
    b = sets.load(b.at);
  }
}

// An element of which nothing is loaded ahead; of two the one of the lower index is below.
struct PlainNode {
  u32 at;
};
struct PlainOrder {
  typedef PlainNode Node;
  static __device__ __forceinline__ Node load(u32 i) { return {i}; }
  static __device__ __forceinline__ Node root(u32 i) { return {i}; }
  static __device__ __forceinline__ bool is_root(Node) { return false; }
  static __device__ __forceinline__ u32 way(Node node) { return node.at; }
  static __device__ __forceinline__ void sort(Node &a, Node &b) {
    const u32 low = min(a.at, b.at), high = max(a.at, b.at);
    a.at = high;
    b.at = low;
  }
};

// Parents of sets that nobody joins meanwhile, for `find_root`: as an earlier grid left them, or PAST_L1, as other blocks of this
// grid did before a barrier of the grid.
template <bool PAST_L1>
struct FixedSets {
  const u32 *up;
  __device__ __forceinline__ u32 parent(u32 i) const { return PAST_L1 ? __ldcg(up + i) : up[i]; }
};

// Tables with open addressing and linear probing, in which any number of threads of the grid count at once.
struct Inserted {
  u32 slot;
  bool fresh;  // this thread has put the key there
};

// A thread gives a key other than EMPTY and gets its slot, which holds that key from then on. `key_at(slot)` is the address of the key
// in a slot; there are `mask` + 1 slots, a power of two, and more than there are keys. No barriers, no shared memory.
template <u32 EMPTY, class KeyAt>
__device__ __forceinline__ Inserted insert_key(u32 key, u32 mask, KeyAt key_at) {
  for (u32 slot = key * 0x9e3779b1u >> 7 & mask;; slot = (slot + 1) & mask) {
    const u32 seen = atomicCAS(key_at(slot), EMPTY, key);
    if (seen == EMPTY || seen == key) return {slot, seen == EMPTY};
  }
}
