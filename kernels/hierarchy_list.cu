// SPDX-License-Identifier: MPL-2.0
// The merges that the cut of stage `hierarchy` leaves out, in their order; mirrors `Graph::list_merges` of src/post/hierarchy. No two keys
// are equal, so that the list does not depend on the order in which threads run.
#include "batch.cuh"
#include "block.cuh"
#include "hierarchy.cuh"

// Gathers the keys of all merges that are not kept.
// Grid: any number of blocks of MERGE_THREADS, a label a thread by turns.
// In: of `h` joins [regions], the cut.
// Out: keys, in any order, and in the counts of `h` how many.
// Race-free: a warp takes places for its keys by an atomic addition, and a thread writes its own.
KERNEL __launch_bounds__(MERGE_THREADS) hierarchy_keys(Hierarchy h, MergeList list, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, list);
  if (is_absent(batch)) return;
  const u32 count = h.counts[SUPERPIXELS];
  const Cut cut = load_cut(h);
  for (u32 base = FIRST - lane_id(); base < count; base += ALL) {
    const u32 i = base + lane_id();
    const HierarchyJoin join = load_join(h, min(i, count - 1));
    const bool listed = i < count && join.into != NO_JOIN && !keeps(cut, join, i);
    const u32 lanes = __ballot_sync(FULL_WARP, listed);
    u32 place = 0;
    if (lane_id() == 0 && lanes) place = atomicAdd(&h.counts[MERGES], __popc(lanes));
    place = __shfl_sync(FULL_WARP, place, 0) + rank_among(lanes);
    if (listed) list.keys[place] = (u64)join.height << 32 | order_of(join, i);
  }
}

// Merges that a warp finds the places of at once: a key that it loads is compared with as many.
#define MERGES_A_WARP 8

// Lists the merges in the order of their keys: the place of one is the number of lower ones. For a few thousand of them that is done
// before the passes of a sort would have begun.
// Grid: any number of blocks of MERGE_THREADS, MERGES_A_WARP merges a warp by turns.
// In: keys, how many; of `h` joins, areas, roots and numbers [regions].
// Out: steps, their number.
// Race-free: keys are only read; places differ as keys do.
KERNEL __launch_bounds__(MERGE_THREADS) hierarchy_list(Hierarchy h, MergeList list, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, list);
  if (is_absent(batch)) return;
  const u32 total = h.counts[MERGES], lane = lane_id();
  if (FIRST == 0) *list.count = total;
  for (u32 first = FIRST / 32 * MERGES_A_WARP; first < total; first += ALL / 32 * MERGES_A_WARP) {
    u64 keys[MERGES_A_WARP];
    u32 lower[MERGES_A_WARP];
#pragma unroll
    for (u32 j = 0; j < MERGES_A_WARP; j++) {
      keys[j] = list.keys[min(first + j, total - 1)];
      lower[j] = 0;
    }
    for (u32 i = lane; i < total; i += 32) {
      const u64 other = list.keys[i];
#pragma unroll
      for (u32 j = 0; j < MERGES_A_WARP; j++) lower[j] += other < keys[j];
    }
    u64 key = 0;
    u32 place = 0;
#pragma unroll
    for (u32 j = 0; j < MERGES_A_WARP; j++) {
      const u32 sum = warp_sum(FULL_WARP, lower[j]);
      if (lane == j) {
        key = keys[j];
        place = sum;
      }
    }
    if (lane >= MERGES_A_WARP || first + lane >= total) continue;
    const u32 i = (u32)key & 0xffffu, into = h.joins[i].into;
    list.steps[place] = {h.numbers[h.roots[into]], h.numbers[h.roots[i]], __int_as_float((i32)(key >> 32)), h.areas[i]};
  }
}
