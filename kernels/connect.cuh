// SPDX-License-Identifier: MPL-2.0
// Arguments, lists and marks that the parts of stage `connectivity` share.
#pragma once
#include "components.cuh"

// Column and row of a pixel index.
__device__ __forceinline__ uint2 position(const ConnectArgs &args, u32 pixel) {
  const u32 y = quotient(pixel, {args.width, args.inverse_width});
  return make_uint2(pixel - y * args.width, y);
}

__device__ __forceinline__ u32 *bitmap(const Marks &marks) { return marks.groups + MARK_GROUPS; }

// Sets of components, as `unite` of kernels/block.cuh wants them: the component of the lower key is below.
struct ComponentSets {
  const Components &c;
  struct Node {
    u32 at, up, key;
  };
  __device__ __forceinline__ u32 parent(u32 i) const { return load_relaxed(c.parent + i); }
  __device__ __forceinline__ Node load(u32 i) const { return {i, parent(i), c.sums[i].key}; }
  __device__ __forceinline__ Node root(u32 i) const { return {i, i, c.sums[i].key}; }
  static __device__ __forceinline__ bool is_root(const Node &node) { return node.up == node.at; }
  static __device__ __forceinline__ u32 way(const Node &node) { return node.up; }
  static __device__ __forceinline__ void sort(Node &a, Node &b) {
    if (a.key < b.key) {
      const Node swap = a;
      a = b;
      b = swap;
    }
  }
  __device__ __forceinline__ bool link(const Node &a, const Node &b) const {
    return atomicCAS(&c.parent[a.at], a.at, b.at) == a.at;
  }
};

// The component of a pixel, as it was asked for: in two parts, so that nobody waits for them before they are used.
struct ComponentAt {
  u32 first, local;
  __device__ __forceinline__ u32 index() const { return first + local; }
};
__device__ __forceinline__ ComponentAt component_at(const Components &c, const ConnectArgs &args, u32 pixel) {
  const uint2 xy = position(args, pixel);
  return {c.tile_first[xy.y / TILE * args.tiles_x + xy.x / TILE], c.local[pixel]};
}

// All blocks of a cooperative launch wait for each other; what any thread wrote before is seen by all afterwards. `barrier` is two words
// that no other grid of the same time uses: how many blocks have arrived, and the generation.
__device__ __forceinline__ void grid_barrier(u32 *barrier) {
  __syncthreads();
  // One block sees what it wrote itself.
  if (gridDim.x == 1) return;
  if (threadIdx.x == 0) {
    u32 *generation = barrier + 1;
    const u32 before = load_relaxed(generation);
    if (add_acq_rel(barrier, 1) == gridDim.x - 1) {
      *barrier = 0;
      store_release(generation, before + 1);
    } else {
      wait_for_change(generation, before);
    }
  }
  __syncthreads();
}

// Sums of a component, read past L1 because other blocks write them.
__device__ __forceinline__ ComponentSums load_sums(const Components &c, u32 i) {
  const uint4 *at = (const uint4 *)(c.sums + i);
  const uint4 low = __ldcg(at), high = __ldcg(at + 1);
  ComponentSums sums;
  sums.count = low.x;
  sums.key = low.y;
  sums.color[0] = (u64)low.w << 32 | low.z;
  sums.color[1] = (u64)high.y << 32 | high.x;
  sums.color[2] = (u64)high.w << 32 | high.z;
  return sums;
}

// Mean features of two components in 1/16 quantum, rounded half up. Means are below 2^15, so that nearly all components' sums have 32
// bits; one branch for all six, which then are worked out side by side.
__device__ __forceinline__ void means_of(const ComponentSums &a, const ComponentSums &b, i32 (&mean_a)[3], i32 (&mean_b)[3]) {
  const u32 count_a = pixels_of(a.count), count_b = pixels_of(b.count);
  if (max(count_a, count_b) <= 1u << 16) {
    const Divisor twice_a = divisor_of(2 * count_a), twice_b = divisor_of(2 * count_b);
#pragma unroll
    for (int j = 0; j < 3; j++) {
      mean_a[j] = (i32)quotient(32 * (u32)a.color[j] + count_a, twice_a);
      mean_b[j] = (i32)quotient(32 * (u32)b.color[j] + count_b, twice_b);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 3; j++) {
      mean_a[j] = (i32)((32 * a.color[j] + count_a) / (2 * (u64)count_a));
      mean_b[j] = (i32)((32 * b.color[j] + count_b) / (2 * (u64)count_b));
    }
  }
}

// Adds what a component holds to its root.
__device__ __forceinline__ void move_sums(const Components &c, const ComponentSums &sums, u32 i, u32 root) {
  *(uint2 *)(c.sums + i) = make_uint2(0, root);
  atomicAdd(&c.sums[root].count, sums.count);
#pragma unroll
  for (int j = 0; j < 3; j++) atomicAdd(&c.sums[root].color[j], sums.color[j]);
}

// Selection of the component with a key in a round.
__device__ __forceinline__ u64 *selection(const Selections &selections, u32 key, u32 round) {
  return selections.at + 2 * (size_t)key + (round & 1);
}
// Clears it for both rounds that take turns.
__device__ __forceinline__ void clear_selections(const Selections &selections, u32 key) {
  *(uint4 *)(selections.at + 2 * (size_t)key) = make_uint4(~0u, ~0u, ~0u, ~0u);
}

// Capacity of the lists of components; that of edges has twice as much.
__device__ __forceinline__ u32 pixels(const ConnectArgs &args) { return args.width * args.height; }

// A list's entry at a thread's first index. It is loaded together with the list's length, so entries past that may be read, which
// are not used.
template <class T>
__device__ __forceinline__ T ask(const T *list, u32 first, u32 capacity) {
  return __ldcg(list + min(first, capacity - 1));
}

// Index of a root's mark: its first pixel, or its cluster.
__device__ __forceinline__ u32 mark_at(const Components &c, const ConnectArgs &args, u32 root, u32 key) {
  if (!args.connectivity) return c.cluster[root];
  const uint2 xy = position(args, key);
  return xy.y * ((args.width + 31) / 32 * 32) + xy.x;
}

// Adds or takes away a mark.
__device__ __forceinline__ void mark(const ConnectArgs &args, const Marks &marks, u32 at, bool there) {
  const u32 word = at / 32, bit = 1u << at % 32;
  u32 *group = marks.groups + (word >> args.group_bits), *bits = bitmap(marks) + word;
  // Several components may be of one cluster.
  if (!args.connectivity && (atomicOr(bits, bit) & bit)) return;
  if (there) {
    atomicOr(bits, bit);
  } else {
    atomicAnd(bits, ~bit);
  }
  atomicAdd(group, there ? 1u : ~0u);
}

// Pixels and key of a component, asked for alone.
__device__ __forceinline__ uint2 load_head(const Components &c, u32 i) { return __ldcg((const uint2 *)(c.sums + i)); }
