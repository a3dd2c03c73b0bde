// SPDX-License-Identifier: MPL-2.0
// Pairs of regions that touch, and what joining two costs; mirrors src/post/hierarchy/mod.rs.
#pragma once
#include "connect.cuh"

// The key of a free slot, what selects nothing, and what has joined nothing.
#define NO_PAIR 0xffffffffu
#define NO_SELECTION (~0ull)
#define NO_JOIN 0xffffffffu

// Words at `Hierarchy::counts`.
enum HierarchyCount {
  SUPERPIXELS = 0,  // regions before any round
  FLOOR = 1,        // bits of the least height of what follows
  JOINED = 2        // how many have joined in a round, by turns of three
};

// The table of pairs of a round; that of the next is beside it.
struct PairTable {
  u32 *keys, *lengths;
  u64 *contrasts;
};
__device__ __forceinline__ PairTable pairs_of(const Hierarchy &h, u32 round) {
  const u32 turn = round & 1;
  return {h.keys[turn], h.lengths[turn], h.contrasts[turn]};
}

// Slots for all pairs of so many regions, more than twice as many as pairs: connected regions form a planar graph. Mirrored by
// `slots_for` in src/post/hierarchy/cuda.rs.
__device__ __forceinline__ u32 slots_for(const HierarchyArgs &args, u32 regions) {
  const u32 pairs = args.planar ? 3 * regions : min(args.max_pairs, regions * (regions - 1) / 2);
  return 1u << (32 - __clz((i32)(2 * pairs | 31)));
}

__device__ __forceinline__ void clear_pair(const PairTable &table, u32 slot) {
  table.keys[slot] = NO_PAIR;
  table.lengths[slot] = 0;
  table.contrasts[slot] = 0;
}

__device__ __forceinline__ u32 pair_key(u32 a, u32 b) { return min(a, b) << 16 | max(a, b); }

// Adds a piece of boundary; any number of threads at once.
__device__ __forceinline__ void add_pair(const PairTable &table, u32 mask, u32 key, u32 length, u64 contrast) {
  const u32 slot = insert_key<NO_PAIR>(key, mask, [&](u32 slot) { return table.keys + slot; }).slot;
  atomicAdd(&table.lengths[slot], length);
  atomicAdd(&table.contrasts[slot], contrast);
}

// What a region holds, as other blocks left it.
__device__ __forceinline__ HierarchySums load_region(const Hierarchy &h, u32 i) {
  const uint4 *at = (const uint4 *)(h.sums + i);
  const uint4 low = __ldcg(at), middle = __ldcg(at + 1), high = __ldcg(at + 2);
  HierarchySums sums;
  sums.count = low.x;
  sums.unused = 0;
  sums.color[0] = (u64)low.w << 32 | low.z;
  sums.color[1] = (u64)middle.y << 32 | middle.x;
  sums.color[2] = (u64)middle.w << 32 | middle.z;
  sums.position[0] = (u64)high.y << 32 | high.x;
  sums.position[1] = (u64)high.w << 32 | high.z;
  return sums;
}

// Means of a region in 1/4 quantum and 1/4 px, rounded half up.
struct RegionMean {
  u32 color[3], position[2];
};
__device__ __forceinline__ RegionMean mean_of(const HierarchySums &sums) {
  RegionMean mean;
  // Of so many pixels at sides of at most 2^14 px, eight times the sums have 32 bits.
  if (sums.count <= 1u << 14) {
    const Divisor twice = divisor_of(2 * sums.count);
#pragma unroll
    for (int j = 0; j < 3; j++) mean.color[j] = quotient(8 * (u32)sums.color[j] + sums.count, twice);
#pragma unroll
    for (int j = 0; j < 2; j++) mean.position[j] = quotient(8 * (u32)sums.position[j] + sums.count, twice);
  } else {
#pragma unroll
    for (int j = 0; j < 3; j++) mean.color[j] = rounded_mean(4 * sums.color[j], sums.count);
#pragma unroll
    for (int j = 0; j < 2; j++) mean.position[j] = rounded_mean(4 * sums.position[j], sums.count);
  }
  return mean;
}

__device__ __forceinline__ u64 eighth_power(u64 r) {
  const u64 square = r * r, fourth = square * square;
  return fourth * fourth;
}

// 16 times the eighth root of a length below 2^30, rounded down. A guess may be wrong by one.
__device__ __forceinline__ u32 length_root(u32 length) {
  const u64 wanted = (u64)length << 32;
  u32 r = (u32)(16.0f * sqrtf(sqrtf(sqrtf((float)length))));
  r -= eighth_power(r) > wanted;
  r += eighth_power(r + 1) <= wanted;
  return r;
}

// An integer as the bits of the largest 32-bit float that is not larger.
__device__ __forceinline__ u32 cost_bits(u64 cost) {
  const u32 high = (u32)(cost >> 32), bits = high ? 64 - (u32)__clz((i32)high) : 32 - (u32)__clz((i32)(u32)cost);
  const u32 below = bits > 24 ? bits - 24 : 0;
  return (u32)__float_as_int((float)(cost >> below << below));
}

// Bits of the cost of joining two regions along a boundary.
__device__ __forceinline__ u32 join_cost(const HierarchyArgs &args, const HierarchySums &a, const HierarchySums &b, u32 length,
                                         u64 contrast_sum) {
  const RegionMean mean_a = mean_of(a), mean_b = mean_of(b);
  u32 color = 0;
#pragma unroll
  for (int j = 0; j < 3; j++) color = __usad(mean_a.color[j], mean_b.color[j], color);
  u64 apart = 0;
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const u64 d = __usad(mean_a.position[j], mean_b.position[j], 0);
    apart += d * d;
  }
  const u64 contrast = rounded_mean(4 * contrast_sum, length);
  const u64 difference = (u64)color * color + args.least + (args.contrast * contrast * contrast >> 8) +
                         min((args.position * apart) >> args.position_shift, (u64)0xffffffffu);
  const u32 n = a.count, m = b.count;
  // Of 2^14 pixels at most each, the product has 32 bits.
  const u64 weight = max(n, m) < 1u << 14 ? 16 * n * m / (n + m) : 16 * (u64)n * m / (n + m);
  return cost_bits(weight * min(difference, (u64)0xffffffffu) / length_root(length));
}
