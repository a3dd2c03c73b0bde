// SPDX-License-Identifier: MPL-2.0
// A round of absorption: every small component picks a neighbor, then all picks are united; mirrors `absorb` in
// src/post/connectivity/cpu.rs.
#pragma once
#include "connect.cuh"

// A list of pairs that touch.
struct PairList {
  uint2 *pairs;
  u32 count;
};

// What it costs a small component to join a neighbor, small itself or not; mirrors `cost` in src/post/connectivity/mod.rs.
__device__ __forceinline__ u32 cost(u32 distance, bool small, u32 min_region, u32 round) {
  if (round < (min_region > LIKE_REGION ? 3 : 2)) return small ? distance >> 2 : distance;
  return small ? 1u << 31 | distance >> 2 : distance >> 1;
}

// What a pair did in the first half of a round: whether one of its components is small, and which of them picked something and
// had not before, if that was asked for.
struct Picked {
  bool any, first_a, first_b;
};

// A pair's part in the first half of a round, in which every small component finds the neighbor of least cost. The pair's
// components become roots, here and at its place in the list.
template <bool FIRSTS>
__device__ __forceinline__ Picked pick_pair(const Components &c, u64 *picks, u32 min_region, u32 round, uint2 &pair,
                                            uint2 *at) {
  Picked picked = {false, false, false};
  if (pair.x == pair.y) return picked;
  u32 a = pair.x, b = pair.y;
  ComponentSums sums_a = load_sums(c, a), sums_b = load_sums(c, b);
  if (sums_a.count == 0 || sums_b.count == 0) {
    sums_a = root_sums(c, a);
    sums_b = root_sums(c, b);
    *at = pair = make_uint2(a, b);
  }
  const bool small_a = sums_a.count < min_region, small_b = sums_b.count < min_region;
  if (a == b || !(small_a || small_b)) return picked;
  i32 mean_a[3], mean_b[3];
  u32 distance = 0;
  means_of(sums_a, sums_b, mean_a, mean_b);
#pragma unroll
  for (int j = 0; j < 3; j++) distance += (u32)((mean_a[j] - mean_b[j]) * (mean_a[j] - mean_b[j]));
  u64 before_a = 0, before_b = 0;
  if (small_a) before_a = atomicMin(&picks[a], (u64)cost(distance, small_b, min_region, round) << 32 | sums_b.key);
  if (small_b) before_b = atomicMin(&picks[b], (u64)cost(distance, small_a, min_region, round) << 32 | sums_a.key);
  picked.any = true;
  if (FIRSTS) {
    picked.first_a = before_a == ~0ull;
    picked.first_b = before_b == ~0ull;
  }
  return picked;
}

// The same for all pairs of a list, of which `asked` is the thread's first. Returns whether this thread saw anything small.
__device__ __forceinline__ bool pick(const Components &c, u64 *picks, u32 min_region, u32 round, const PairList &list,
                                     uint2 asked, u32 first, u32 all) {
  bool any = false;
  for (u32 i = first; i < list.count; i += all) {
    uint2 pair = i == first ? asked : __ldcg(&list.pairs[i]);
    any |= pick_pair<false>(c, picks, min_region, round, pair, &list.pairs[i]).any;
  }
  return any;
}

// The pairs that rounds after the first go over: what is small by then was small from the start. Where the list is too short
// for them, all.
__device__ __forceinline__ PairList small_pairs(const Components &c, const ConnectArgs &args, uint2 *small) {
  const u32 count = c.counters[SMALL];
  return count <= args.small_places ? PairList{small, count} : PairList{c.edges, c.counters[EDGES]};
}

// The root that holds the pixel of a pick, and what it picked itself. Most hold it from the start, so that their parents and
// picks are asked for together.
__device__ __forceinline__ u32 picked(const Components &c, const ConnectArgs &args, const u64 *picks, u64 pick, u64 &onward) {
  const u32 i = component_at(c, args, (u32)pick), up = load_relaxed(c.parent + i);
  onward = __ldcg(&picks[i]);
  if (up == i) return i;
  const u32 root = find(c.parent, up);
  onward = __ldcg(&picks[root]);
  return root;
}

// Second half, of one component that picked: it joins where its pick leads. Picks lead to a component that is large enough, or
// into a pair that picked each other. All who get there must agree on the one that stays: of a pair, the first in the lists. Its
// key becomes the lowest of all, and of two marks, where there are any yet, that of the lower key stays.
template <bool MARKED>
__device__ __forceinline__ void join_picked(const Components &c, const ConnectArgs &args, const u64 *picks, const Marks &marks,
                                            u32 i, u64 own) {
  const ComponentSums sums = load_sums(c, i);
  u64 onward;
  u32 before = i, to = picked(c, args, picks, own, onward);
  for (;;) {
    if (onward == ~0ull) break;
    const u32 next = picked(c, args, picks, onward, onward);
    if (next == to) break;
    if (next == before) {
      to = min(to, before);
      break;
    }
    before = to;
    to = next;
  }
  if (to == i) return;
  const u32 key = atomicMin(&c.sums[to].key, sums.key);
  move_sums(c, sums, i, to);
  store_relaxed(c.parent + i, to);
  if (MARKED) mark(args, marks, mark_at(c, args, i, max(key, sums.key)), false);
}

// The same of all components: all picks are united at once. Clears the picks of the next round. Does nothing if `wanted` is
// there and zero.
template <bool MARKED>
__device__ __forceinline__ void hook(const Components &c, const ConnectArgs &args, const u64 *picks, u64 *next_picks,
                                     const Marks &marks, u32 first, u32 all, const u32 *wanted) {
  const u64 asked = ask(picks, first, pixels(args)), asked_next = ask((const u64 *)next_picks, first, pixels(args));
  const u32 components = c.counters[COMPONENTS];
  if (wanted && *wanted == 0) return;
  for (u32 i = first; i < components; i += all) {
    const u64 own = i == first ? asked : __ldcg(&picks[i]);
    if ((i == first ? asked_next : __ldcg(&next_picks[i])) != ~0ull) next_picks[i] = ~0ull;
    if (own != ~0ull) join_picked<MARKED>(c, args, picks, marks, i, own);
  }
}
