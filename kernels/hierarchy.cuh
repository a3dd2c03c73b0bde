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
  JOINED = 2,       // how many have joined in a round, by turns of three
  CUT = 5,          // of `Cut`, in order
  TICKET = 8,       // of the blocks that number
  MERGES = 9,       // how many are listed
  HIERARCHY_COUNTS = 10
};

// Of two arrays that of a turn. Indexed, the parameters of a kernel would be copied to memory of each thread.
template <class T>
__device__ __forceinline__ T *of_turn(T *const (&two)[2], u32 turn) {
  return turn & 1 ? two[1] : two[0];
}

// The table of pairs of a round; that of the next is beside it.
struct PairTable {
  u32 *keys, *lengths, *held;
  u64 *contrasts;
};

// The common boundary of two regions: pairs of 4-neighbors across, those of them whose superpixels were in one region of the last frame,
// and the sum of their differences.
struct Boundary {
  u32 length, held;
  u64 contrast;
};
__device__ __forceinline__ PairTable pairs_of(const Hierarchy &h, u32 round) {
  return {of_turn(h.keys, round), of_turn(h.lengths, round), of_turn(h.held, round), of_turn(h.contrasts, round)};
}

// Slots for all pairs of so many regions, more than twice as many as pairs: connected regions form a planar graph. Mirrored by
// `slots_for` in src/post/hierarchy/cuda.rs.
__device__ __forceinline__ u32 slots_for(const HierarchyArgs &args, u32 regions) {
  const u32 pairs = args.planar ? 3 * regions : min(args.max_pairs, regions * (regions - 1) / 2);
  return 1u << (32 - __clz((i32)(2 * pairs | 31)));
}

__device__ __forceinline__ void clear_pair(const PairTable &table, u32 slot) {
  table.keys[slot] = NO_PAIR;
  table.lengths[slot] = table.held[slot] = 0;
  table.contrasts[slot] = 0;
}

__device__ __forceinline__ u32 pair_key(u32 a, u32 b) { return min(a, b) << 16 | max(a, b); }

// Adds a piece of boundary; any number of threads at once.
__device__ __forceinline__ void add_pair(const PairTable &table, u32 mask, u32 key, const Boundary &boundary) {
  const u32 slot = insert_key<NO_PAIR>(key, mask, [&](u32 slot) { return table.keys + slot; }).slot;
  atomicAdd(&table.lengths[slot], boundary.length);
  if (boundary.held) atomicAdd(&table.held[slot], boundary.held);
  atomicAdd(&table.contrasts[slot], boundary.contrast);
}

// Boundary between the regions of a slot. In the first round, regions are superpixels, whose predecessors give `held`.
__device__ __forceinline__ Boundary load_boundary(const Hierarchy &h, const PairTable &table, u32 round, u32 slot, u32 a, u32 b) {
  Boundary boundary = {__ldcg(&table.lengths[slot]), 0, __ldcg(&table.contrasts[slot])};
  if (round > 0) {
    boundary.held = __ldcg(&table.held[slot]);
  } else if (h.earlier[a] != NO_JOIN && h.earlier[a] == h.earlier[b]) {
    boundary.held = boundary.length;
  }
  return boundary;
}

// Sums of a region, read past L1 because other blocks write them.
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

// How a region has joined, as other blocks left it.
__device__ __forceinline__ HierarchyJoin load_join(const Hierarchy &h, u32 i) {
  const uint4 join = __ldcg((const uint4 *)(h.joins + i));
  return {join.x, join.y, join.z, join.w};
}

// Up to where merges are kept: those of lower heights, and of this height those whose round and label are not above `last`.
struct Cut {
  u32 any, height, last;
};
__device__ __forceinline__ u32 order_of(const HierarchyJoin &join, u32 i) { return join.round << 16 | i; }
__device__ __forceinline__ bool keeps(const Cut &cut, const HierarchyJoin &join, u32 i) {
  if (!cut.any || join.into == NO_JOIN) return false;
  return join.height < cut.height || (join.height == cut.height && order_of(join, i) <= cut.last);
}
// That of an earlier grid.
__device__ __forceinline__ Cut load_cut(const Hierarchy &h) { return {h.counts[CUT], h.counts[CUT + 1], h.counts[CUT + 2]}; }

// Means of a region in 1/4 quantum and 1/4 px, rounded half up.
struct RegionMean {
  u32 color[3], position[2];
};
__device__ __forceinline__ RegionMean region_mean(const HierarchySums &sums) {
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

// 16 times the fifth root of a length below 2^30, rounded down. The guess is less by 2^-16 of it, give or take a tenth of that.
__device__ __forceinline__ u32 length_root(u32 length) {
  const u32 guess = (u32)(16.0f * (1.0f - 1.0f / (1 << 16)) * exp2f(log2f((float)length) * 0.2f));
  const u32 next = guess + 1, square = next * next;
  return guess + ((u64)square * square * next <= (u64)length << 20);
}

// A quotient by a number below 2^10, digit by digit of 16 bits.
__device__ __forceinline__ u64 quotient_by_small(u64 top, u32 number) {
  const Divisor divisor = divisor_of(number);
  u64 out = 0;
  u32 rest = 0;
#pragma unroll
  for (int shift = 48; shift >= 0; shift -= 16) {
    const u32 part = rest << 16 | ((u32)(top >> shift) & 0xffffu), digit = quotient(part, divisor);
    rest = part - digit * number;
    out = out << 16 | digit;
  }
  return out;
}

// An integer as the bits of the largest 32-bit float that is not larger.
__device__ __forceinline__ u32 cost_bits(u64 cost) {
  const u32 high = (u32)(cost >> 32), bits = high ? 64 - (u32)__clz((i32)high) : 32 - (u32)__clz((i32)(u32)cost);
  const u32 below = bits > 24 ? bits - 24 : 0;
  return (u32)__float_as_int((float)(cost >> below << below));
}

// By how much less, in 1/256, regions differ that were one in the last frame; that of src/post/hierarchy/mod.rs.
#define HELD 224u
__device__ __forceinline__ u32 discount(const Boundary &boundary) {
  if (boundary.held == 0) return 0;
  const u32 share = boundary.length < 1u << 24 ? 256 * boundary.held / boundary.length : (u32)(256 * (u64)boundary.held / boundary.length);
  return share * HELD >> 8;
}

// Bits of the cost of joining two regions along a boundary.
__device__ __forceinline__ u32 join_cost(const HierarchyArgs &args, const HierarchySums &a, const HierarchySums &b,
                                         const Boundary &boundary) {
  const RegionMean mean_a = region_mean(a), mean_b = region_mean(b);
  u32 color = 0;
#pragma unroll
  for (int j = 0; j < 3; j++) color = __usad(mean_a.color[j], mean_b.color[j], color);
  u64 apart = 0;
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const u64 d = __usad(mean_a.position[j], mean_b.position[j], 0);
    apart += d * d;
  }
  const u64 contrast = rounded_mean(4 * boundary.contrast, boundary.length);
  const u64 difference = (u64)color * color + args.least + (args.contrast * contrast * contrast >> 8) +
                         min((args.position * apart) >> args.position_shift, (u64)0xffffffffu);
  const u32 n = a.count, m = b.count;
  // Of 2^14 pixels at most each, the product has 32 bits.
  const u64 weight = max(n, m) < 1u << 14 ? 16 * n * m / (n + m) : 16 * (u64)n * m / (n + m);
  const u64 less = min(difference, (u64)0xffffffffu) * (256 - discount(boundary)) >> 8;
  return cost_bits(quotient_by_small(weight * less, length_root(boundary.length)));
}
