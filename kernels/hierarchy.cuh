// SPDX-License-Identifier: MPL-2.0
// Pairs of regions that touch, and the cost of joining two; mirrors src/post/hierarchy/mod.rs, which has the formulas.
#pragma once
#include "connect.cuh"

#define NO_PAIR 0xffffffffu   // key of a free slot of a table of pairs
#define NO_SELECTION (~0ull)  // of a region that touches no other: above every selection
#define NO_JOIN 0xffffffffu   // no region, or none of the last frame

// Words at `Hierarchy::counts`.
enum HierarchyCount {
  SUPERPIXELS = 0,  // regions before any round
  FLOOR = 1,        // bits of t, the least height of merges in later stages
  JOINED = 2,       // regions that have joined in a round: three words by turns, one counts, one is read, one is cleared
  CUT = 5,          // three words of a `Cut`
  TICKET = 8,       // blocks of `hierarchy_number` that are done
  MERGES = 9,       // listed merges
  LEFT = 10,        // regions behind the rounds so far
  STAGE = 11,       // rounds go on until at most so many are left
  ROUND = 12,       // rounds so far
  OPEN = 13,        // whether the next one is open
  JOINS = 14,       // whether there may be anything to join
  SLOTS = 15,       // of the next round's table, where a round has been
  WITHIN = 16,      // regions that had joined within the areas of a prior when merges across them began; NO_JOIN before
  HIERARCHY_COUNTS = 17
};

// The word at `Hierarchy::counts` before any round.
__device__ __forceinline__ u32 first_count(u32 word, u32 regions, u32 until) {
  if (word == JOINS) return regions > until;
  if (word == WITHIN) return NO_JOIN;
  return word == SUPERPIXELS || word == LEFT || word == STAGE ? regions : 0;
}

// The one of two alternating arrays that a turn uses. An index that varies would make the compiler copy the kernel's parameters
// to local memory of each thread.
template <class T>
__device__ __forceinline__ T *of_turn(T *const (&two)[2], u32 turn) {
  return turn & 1 ? two[1] : two[0];
}

// Hash table of the pairs that touch in a round, a slot each: key, and the three sums of a `Boundary`. While a round reads its
// table the next round's is filled.
struct PairTable {
  u32 *keys, *lengths, *held;
  u64 *contrasts;
};

// The common boundary of two regions: `length`, the pairs of 4-neighbors across; `held`, the part of these between superpixels
// that were in one region of the last frame; `contrast`, the sum of the differences of their features.
struct Boundary {
  u32 length, held;
  u64 contrast;
};
__device__ __forceinline__ PairTable pairs_of(const Hierarchy &h, u32 round) {
  return {of_turn(h.keys, round), of_turn(h.lengths, round), of_turn(h.held, round), of_turn(h.contrasts, round)};
}

// Slots of a table for all pairs of so many regions: a power of two, more than twice as many as pairs, so that searches stay
// short. Connected regions form a planar graph, which has fewer than three edges a node. `slots_for` in
// src/post/hierarchy/cuda.rs allocates by this formula for the most pairs of any frame.
__device__ __forceinline__ u32 slots_for(const HierarchyArgs &args, u32 regions) {
  const u32 pairs = args.planar ? 3 * regions : min(args.max_pairs, regions * (regions - 1) / 2);
  return 1u << (32 - __clz((i32)(2 * pairs | 31)));
}

__device__ __forceinline__ void clear_pair(const PairTable &table, u32 slot) {
  table.keys[slot] = NO_PAIR;
  table.lengths[slot] = table.held[slot] = 0;
  table.contrasts[slot] = 0;
}

// Labels are below 65535, so that no key is NO_PAIR.
__device__ __forceinline__ u32 pair_key(u32 a, u32 b) { return min(a, b) << 16 | max(a, b); }

// Adds a piece of boundary; any number of threads at once.
__device__ __forceinline__ void add_pair(const PairTable &table, u32 mask, u32 key, const Boundary &boundary) {
  const u32 slot = insert_key<NO_PAIR>(key, mask, [&](u32 slot) { return table.keys + slot; }).slot;
  atomicAdd(&table.lengths[slot], boundary.length);
  if (boundary.held) atomicAdd(&table.held[slot], boundary.held);
  atomicAdd(&table.contrasts[slot], boundary.contrast);
}

// The pairs of superpixels in two areas; they have no `held`.
__device__ __forceinline__ PairTable pairs_across(const Hierarchy &h) { return {h.across_keys, h.across_lengths, nullptr, h.across_contrasts}; }

// Whether the superpixels of a pair were in one region of the last frame.
__device__ __forceinline__ bool is_held(const Hierarchy &h, u32 a, u32 b) { return h.earlier[a] != NO_JOIN && h.earlier[a] == h.earlier[b]; }

// Boundary between the regions of a slot. The first round's table has no `held`: regions are superpixels still, so that a
// boundary is held as a whole or not at all, as their predecessors tell.
__device__ __forceinline__ Boundary load_boundary(const Hierarchy &h, const PairTable &table, u32 round, u32 slot, u32 a, u32 b) {
  Boundary boundary = {__ldcg(&table.lengths[slot]), 0, __ldcg(&table.contrasts[slot])};
  if (round > 0) {
    boundary.held = __ldcg(&table.held[slot]);
  } else if (is_held(h, a, b)) {
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

// Calls `add(key, boundary)` for the thread's pairs across areas, by the roots of their regions; `superpixels`: how many there were.
template <class Add>
__device__ __forceinline__ void for_pairs_across(const Hierarchy &h, const HierarchyArgs &args, u32 superpixels, u32 first, u32 step, Add add) {
  const PairTable table = pairs_across(h);
  const auto root_of = [&](u32 i) {
    for (;;) {
      const HierarchyJoin join = load_join(h, i);
      if (join.into == NO_JOIN) return i;
      i = join.root;
    }
  };
  const u32 slots = slots_for(args, superpixels);
  for (u32 slot = first; slot < slots; slot += step) {
    const u32 key = table.keys[slot];
    if (key == NO_PAIR) continue;
    const u32 a = key >> 16, b = key & 0xffffu, length = table.lengths[slot];
    add(pair_key(root_of(a), root_of(b)), Boundary{length, is_held(h, a, b) ? length : 0, table.contrasts[slot]});
  }
}

// The cut keeps the merges of lower heights than `height`, and of that height those whose `order_of` is at most `last`; none
// where `any` is 0. A round joins one region at least, so that round and label have 16 bits each.
struct Cut {
  u32 any, height, last;
};
__device__ __forceinline__ u32 order_of(const HierarchyJoin &join, u32 i) { return join.round << 16 | i; }
__device__ __forceinline__ bool keeps(const Cut &cut, const HierarchyJoin &join, u32 i) {
  if (!cut.any || join.into == NO_JOIN) return false;
  return join.height < cut.height || (join.height == cut.height && order_of(join, i) <= cut.last);
}
// The cut that `hierarchy_rounds` has stored.
__device__ __forceinline__ Cut load_cut(const Hierarchy &h) { return {h.counts[CUT], h.counts[CUT + 1], h.counts[CUT + 2]}; }

// Means of a region in 1/4 quantum and 1/4 px, rounded half up.
struct RegionMean {
  u32 color[3], position[2];
};
__device__ __forceinline__ RegionMean region_mean(const HierarchySums &sums) {
  RegionMean mean;
  // Positions are below 2^14 and channels below 2^11: of so many pixels, eight times a sum and the count have 32 bits.
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

// R: 16 times the fifth root of a length below 2^30, rounded down. The error of the floats is at most a tenth of 2^-16 of the
// root, which is below 2^10. So a guess that is made smaller by 2^-16 is never too large and at most one too small, which the
// last line mends.
__device__ __forceinline__ u32 length_root(u32 length) {
  const u32 guess = (u32)(16.0f * (1.0f - 1.0f / (1 << 16)) * exp2f(log2f((float)length) * 0.2f));
  const u32 next = guess + 1, square = next * next;
  return guess + ((u64)square * square * next <= (u64)length << 20);
}

// Long division by a number below 2^10 in digits of 16 bits, which `quotient` gives exactly.
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

// Bits of the largest 32-bit float that is not above an integer. Bits are in the order of the floats.
__device__ __forceinline__ u32 cost_bits(u64 cost) {
  const u32 high = (u32)(cost >> 32), bits = high ? 64 - (u32)__clz((i32)high) : 32 - (u32)__clz((i32)(u32)cost);
  const u32 below = bits > 24 ? bits - 24 : 0;
  return (u32)__float_as_int((float)(cost >> below << below));
}

// Discount in 1/256 on the difference of regions that were one in the last frame: `HELD` of src/post/hierarchy/mod.rs. A
// boundary that is held in part gets that part of it.
#define HELD 224u
__device__ __forceinline__ u32 discount(const Boundary &boundary) {
  if (boundary.held == 0) return 0;
  const u32 share = boundary.length < 1u << 24 ? 256 * boundary.held / boundary.length : (u32)(256 * (u64)boundary.held / boundary.length);
  return share * HELD >> 8;
}

// Bits of cost(i, j), of joining two regions along a boundary.
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
