// SPDX-License-Identifier: MPL-2.0
// A round of absorption: every small component selects a neighbor, then all selections are united; mirrors `absorb` in
// src/post/connectivity/cpu.rs.
#pragma once
#include "connect.cuh"

// A list of pairs that touch.
struct PairList {
  uint2 *pairs;
  u32 count;
};

// Cost of joining a neighbor for a small component; `small`: so is the neighbor. Mirrors `cost` in src/post/connectivity/mod.rs.
__device__ __forceinline__ u32 cost(u32 distance, bool small, u32 min_region, u32 round) {
  if (round < (min_region > LIKE_REGION ? 3 : 2)) return small ? distance >> 2 : distance;
  return small ? 1u << 31 | distance >> 2 : distance >> 1;
}

// Result of a pair in the first half of a round: `any` if one of its components is small; if asked for, which of them selected for
// the first time, with their keys.
struct Selected {
  bool any, first_a, first_b;
  u32 key_a, key_b;
};

// Loads the sums of a pair's roots, and replaces its components by them, here and in the list. No components may be joined meanwhile.
__device__ __forceinline__ void load_pair(const Components &c, uint2 &pair, uint2 *at, ComponentSums &sums_a, ComponentSums &sums_b) {
  sums_a = load_sums(c, pair.x);
  sums_b = load_sums(c, pair.y);
  if (sums_a.count != 0 && sums_b.count != 0) return;
  // Both ways at once.
  do {
    if (sums_a.count == 0) pair.x = sums_a.key;
    if (sums_b.count == 0) pair.y = sums_b.key;
    sums_a = load_sums(c, pair.x);
    sums_b = load_sums(c, pair.y);
    // The last condition never holds. It uses all words, so that all loads are in flight together: the compiler would move those that
    // only later code uses behind the loop, which waits a second time.
  } while (sums_a.count == 0 || sums_b.count == 0 || (sums_a.color[2] & sums_b.color[2]) == ~0ull);
  *at = pair;
}

// A pair's part in the first half of a round, in which every small component finds the neighbor of least cost. The pair's
// components become roots as by `load_pair`. `is_small` is asked about a component and its count.
template <bool FIRSTS, class IsSmall>
__device__ __forceinline__ Selected select_pair(const Components &c, const Selections &selections, u32 min_region, u32 round, uint2 &pair,
                                            uint2 *at, IsSmall is_small) {
  Selected selected = {false, false, false, 0, 0};
  if (pair.x == pair.y) return selected;
  ComponentSums sums_a, sums_b;
  load_pair(c, pair, at, sums_a, sums_b);
  const bool small_a = is_small(pair.x, sums_a.count), small_b = is_small(pair.y, sums_b.count);
  if (pair.x == pair.y || !(small_a || small_b) || (sums_a.count | sums_b.count) & OUTSIDE_COUNT) return selected;
  i32 mean_a[3], mean_b[3];
  u32 distance = 0;
  means_of(sums_a, sums_b, mean_a, mean_b);
#pragma unroll
  for (int j = 0; j < 3; j++) distance += (u32)((mean_a[j] - mean_b[j]) * (mean_a[j] - mean_b[j]));
  u64 before_a = 0, before_b = 0;
  if (small_a) before_a = atomicMin(selection(selections, sums_a.key, round), (u64)cost(distance, small_b, min_region, round) << 32 | sums_b.key);
  if (small_b) before_b = atomicMin(selection(selections, sums_b.key, round), (u64)cost(distance, small_a, min_region, round) << 32 | sums_a.key);
  selected.any = true;
  if (FIRSTS) selected = {true, before_a == ~0ull, before_b == ~0ull, sums_a.key, sums_b.key};
  return selected;
}

// The same where counts alone tell: what is kept has a large one.
template <bool FIRSTS>
__device__ __forceinline__ Selected select_pair(const Components &c, const Selections &selections, u32 min_region, u32 round, uint2 &pair,
                                            uint2 *at) {
  return select_pair<FIRSTS>(c, selections, min_region, round, pair, at, [&](u32, u32 count) { return count < min_region; });
}

// Selects for all pairs of a list, of which `asked` is the thread's first. Returns true if this thread saw a small component.
__device__ __forceinline__ bool select(const Components &c, const Selections &selections, u32 min_region, u32 round,
                                     const PairList &list, uint2 asked, u32 first, u32 all) {
  bool any = false;
  for (u32 i = first; i < list.count; i += all) {
    uint2 pair = i == first ? asked : __ldcg(&list.pairs[i]);
    any |= select_pair<false>(c, selections, min_region, round, pair, &list.pairs[i]).any;
  }
  return any;
}

// The pairs that rounds after the first go over: what is small by then was small from the start. Where the list is too short
// for them, all.
__device__ __forceinline__ PairList small_pairs(const Components &c, const ConnectArgs &args, uint2 *small) {
  const u32 count = c.counters[SMALL];
  return count <= args.small_capacity ? PairList{small, count} : PairList{c.edges, c.counters[EDGES]};
}

// Second half, of one component that selected: it joins where its selection leads. Selections lead to a component that is large enough, or
// into a pair that selected each other, of which that of the lower key stays: all who get there must agree. Its key becomes the
// lowest of all, and of two marks, where there are any yet, that of the lower key stays. Returns what it has joined, or itself.
template <bool MARKED>
__device__ __forceinline__ u32 join_selected(const Components &c, const ConnectArgs &args, const Selections &selections, const Marks &marks,
                                           u32 round, u32 i, const ComponentSums &sums, u64 own) {
  u32 before = sums.key, to = (u32)own;
  ComponentAt before_at = {i, 0}, at;
  for (;;) {
    // Only the last of these is used: asked for beside, not after.
    at = component_at(c, args, to);
    const u64 onward = __ldcg(selection(selections, to, round));
    if (onward == ~0ull) break;
    if ((u32)onward == before) {
      if (before < to) {
        to = before;
        at = before_at;
      }
      break;
    }
    before = to;
    before_at = at;
    to = (u32)onward;
  }
  const u32 root = find_root(ComponentSets{c}, at.index());
  if (root == i) return i;
  const u32 key = sums.key < to ? atomicMin(&c.sums[root].key, sums.key) : to;
  move_sums(c, sums, i, root);
  store_relaxed(c.parent + i, root);
  if (MARKED) mark(args, marks, mark_at(c, args, i, max(key, sums.key)), false);
  return root;
}

// Hooks all components: all selections are united at once. Clears the selections of the next round. `asked` are the sums of the thread's
// first component.
template <bool MARKED>
__device__ __forceinline__ void hook(const Components &c, const ConnectArgs &args, const Selections &selections, const Marks &marks,
                                     u32 round, u32 components, const ComponentSums &asked, u32 first, u32 all) {
  for (u32 i = first; i < components; i += all) {
    const ComponentSums sums = i == first ? asked : load_sums(c, i);
    // A component that joined another has no key of its own.
    if (sums.count == 0) continue;
    const uint4 both = __ldcg((const uint4 *)selection(selections, sums.key, 0));
    const u64 even = (u64)both.y << 32 | both.x, odd = (u64)both.w << 32 | both.z;
    const u64 own = round & 1 ? odd : even, next = round & 1 ? even : odd;
    if (next != ~0ull) *selection(selections, sums.key, round + 1) = ~0ull;
    if (own != ~0ull) join_selected<MARKED>(c, args, selections, marks, round, i, sums, own);
  }
}
