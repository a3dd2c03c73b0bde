// SPDX-License-Identifier: MPL-2.0
// Stage `connectivity`: joins the tiles' components, absorbs small ones, numbers what is left; mirrors
// src/post/connectivity/cpu.rs. The result does not depend on the order in which threads run: unions keep the lowest
// key, sums are integers, selections are minima.
#include "absorb.cuh"
#include "batch.cuh"
#include "largest.cuh"
#include "numbering.cuh"

// Pixel pairs across the borders of tiles: equal clusters are joined, others touch; in a prior, those of one area. Clears the marks, too.
// Grid: a thread a pair, first those across vertical borders, then those across horizontal ones; block: BORDER_THREADS.
// In: of `c` what the label kernel has written.
// Out: parents, by `unite`; pairs behind those of the tiles, at indices that a block takes by one atomic addition; marks
// [MARK_GROUPS + words], zero.
// Race-free: parents change by compare-and-swap to lower keys only, so that sets do not depend on the order; keys and clusters are
// only read.
KERNEL __launch_bounds__(BORDER_THREADS) connect_borders(Components c, Marks marks, ConnectArgs args, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, marks);
  if (is_absent(batch)) return;
  const u32 vertical = (args.width - 1) / TILE * args.height, all = args.border_pairs;
  const u32 i = blockIdx.x * BORDER_THREADS + threadIdx.x, lane = lane_id();
  for (u32 word = i; word < MARK_GROUPS + args.words; word += gridDim.x * BORDER_THREADS) marks.groups[word] = 0;
  __shared__ u32 waiting, first;
  if (threadIdx.x == 0) waiting = 0;
  __syncthreads();
  // Position of the pair, computed before the wait.
  u32 x, y;
  if (i < vertical) {
    const u32 border = i / args.height;
    y = i - border * args.height;
    x = (border + 1) * TILE - 1;
  } else {
    const uint2 xy = position(args, i - vertical);
    x = xy.x;
    y = (xy.y + 1) * TILE - 1;
  }
  const u32 pixel = y * args.width + x, beside = pixel + (i < vertical ? 1 : args.width);
  const u32 tile = y / TILE * args.tiles_x + x / TILE, tile_beside = tile + (i < vertical ? 1 : args.tiles_x);
  // True if the pair of the lane before is next to this one.
  const bool along = lane > 0 && (i < vertical ? y != 0 : x != 0);
  wait_for_last_kernel();
  u32 a = 0, b = 0;
  if (i < all) {
    a = c.tile_first[tile] + c.local[pixel];
    b = c.tile_first[tile_beside] + c.local[beside];
  }
  const u32 a_before = __shfl_up_sync(FULL_WARP, a, 1), b_before = __shfl_up_sync(FULL_WARP, b, 1);
  const bool seen = along && i != vertical && a_before == a && b_before == b;
  bool edge = false, join = false;
  const ComponentSets sets = {c};
  ComponentSets::Node join_a, join_b;
  if (i < all && !seen) {
    // Most pairs are of one cluster, and most of those roots: all is asked for at once.
    const u32 cluster_a = c.cluster[a], cluster_b = c.cluster[b], count_a = c.sums[a].count, count_b = c.sums[b].count;
    join_a = sets.load(a);
    join_b = sets.load(b);
    const bool differ = cluster_a != cluster_b;
    // Components outside of a mask touch none, and need not be joined.
    const bool inside = !((count_a | count_b) & OUTSIDE_COUNT);
    const bool together = inside && (!c.prior || c.prior[pixel] == c.prior[beside]);
    edge = differ && together && (count_a < c.large || count_b < c.large);
    join = !differ && together && args.connectivity;
  }

  const u32 edges = __ballot_sync(FULL_WARP, edge);
  u32 index = 0;
  if (lane == 0 && edges) index = atomicAdd(&waiting, __popc(edges));
  index = __shfl_sync(FULL_WARP, index, 0) + rank_among(edges);
  __syncthreads();
  if (threadIdx.x == 0 && waiting) first = atomicAdd(&c.counters[EDGES], waiting);
  // While the block's edges wait for their index.
  if (join) unite(sets, join_a, join_b);
  __syncthreads();
  if (edge) c.edges[first + index] = make_uint2(a, b);
}

// The kernels below are one phase each, but for the last two; the launch between two of them is the barrier, which costs less
// than one inside a grid.

// Clears what the rounds start with, then moves the sums of components that borders have joined.
// Grid: any number of blocks of CONNECT_THREADS, a component a thread by turns.
// In: parents, which nobody changes meanwhile.
// Out: selections of every component, none; sums [components].
// Race-free: a component that is no root is emptied by its own thread, and roots get what it held by integer atomics; which
// component is a root does not change here.
KERNEL __launch_bounds__(CONNECT_THREADS) connect_move_sums(Components c, Selections selections, ConnectArgs args,
                                                            Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections);
  if (is_absent(batch)) return;
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = FIRST; args.connectivity && i < components; i += ALL) clear_selections(selections, c.sums[i].key);
  wait_for_last_kernel();
  if (!args.connectivity) return;
  for (u32 i = FIRST; i < components; i += ALL) {
    const u32 up = __ldcg(&c.parent[i]);
    if (up != i) move_sums(c, load_sums(c, i), i, find_root(FixedSets<true>{c.parent}, up));
  }
}

// The first round's first half, which also lists the pairs for the others, and finds the largest components if somebody wants them.
// Grid: any number of blocks of CONNECT_THREADS, a pair a thread by turns.
// In: sums and pairs, as joined.
// Out: selections, by atomic minima; pairs, replaced by those of their roots, by the one thread that has them; `small`
// [small_capacity], at indices that a block takes by one atomic addition; in temporal mode `largest` [cells], by atomic maxima, bits of
// counts of components that are kept, and of clusters of those that are not small.
// Race-free: nothing is joined here, and minima and maxima do not depend on the order; bits are set by whoever sees the component, and
// read as if they were clear.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_select_first(Components c, Selections selections, uint2 *small, Continued continued, ConnectArgs args,
                         Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections, small, continued);
  if (is_absent(batch)) return;
  __shared__ uint2 kept[CONNECT_THREADS];
  __shared__ u32 waiting, found, start;
  const uint2 asked = ask(c.edges, FIRST, 2 * pixels(args));
  const u32 edges = c.counters[EDGES];
  if (threadIdx.x == 0) waiting = 0;
  __syncthreads();
  wait_for_last_kernel();
  const Smallness smallness(continued, args.min_region);
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < edges; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    bool keep = false;
    if (i < edges) {
      if (i != FIRST) pair = __ldcg(&c.edges[i]);
      keep = select_pair<false>(c, selections, args.min_region, 0, pair, &c.edges[i], [&](u32 component, u32 count) {
               if (count >= args.min_region) return false;
               if (!smallness.follows || count < smallness.least(c.cluster[component])) return true;
               // Every thread that sees it finds so, whether or not another was first.
               atomicOr(&c.sums[component].count, KEPT_COUNT);
               return false;
             }).any;
    }
    const u32 lanes = __ballot_sync(FULL_WARP, keep);
    u32 before = 0;
    if (lanes && lane_id() == 0) before = atomicAdd(&waiting, __popc(lanes));
    before = __shfl_sync(FULL_WARP, before, 0) + rank_among(lanes);
    if (keep) kept[before] = pair;
    __syncthreads();
    if (threadIdx.x == 0) {
      found = waiting;
      waiting = 0;
      if (found) {
        start = atomicAdd(&c.counters[SMALL], found);
        c.counters[ROUNDS] = 1;
      }
    }
    __syncthreads();
    if (threadIdx.x < found && start + threadIdx.x < args.small_capacity) small[start + threadIdx.x] = kept[threadIdx.x];
    __syncthreads();
  }
  if (!continued.largest) return;
  find_largest(c, continued.largest, continued.cells, args.connectivity, FIRST, ALL, [&](u32 i, u32 size, u32 cluster) {
    if (size >= smallness.least(cluster)) c.cluster[i] = cluster | LARGE_CLUSTER;
  });
}

// The first half of a further round: every small component selects a neighbor.
// Grid: any number of blocks of CONNECT_THREADS, a pair a thread by turns.
// In: sums, and the pairs of `small` or all.
// Out: selections, by atomic minima; pairs, replaced by those of their roots, by the one thread that has them; the round's counter,
// set to one by any block.
// Race-free: nothing is joined here, and minima do not depend on the order.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_select(Components c, Selections selections, uint2 *small, u32 round, ConnectArgs args, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections, small);
  if (is_absent(batch)) return;
  const uint2 asked = ask(small, FIRST, args.small_capacity);
  const PairList list = small_pairs(c, args, small);
  // True if the round before left small components.
  const bool wanted = c.counters[ROUNDS + round - 1] != 0;
  const uint2 pair = list.pairs == small ? asked : ask(list.pairs, FIRST, 2 * pixels(args));
  wait_for_last_kernel();
  if (!wanted) return;
  const bool any = select(c, selections, args.min_region, round, list, pair, FIRST, ALL);
  if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[ROUNDS + round] = 1;
}

// Puts what a warp's pairs did into the lists, of which no more is written than they hold: both indices are asked for at once.
__device__ __forceinline__ void list_late(const Late &late, u32 *counters, uint2 pair, const Selected &selected) {
  static_assert(LATE_SELECTORS == LATE_PAIRS + 1, "a lane each");
  const u32 lane = lane_id();
  const u32 pairs = __ballot_sync(FULL_WARP, selected.any);
  if (!pairs) return;
  const u32 firsts_a = __ballot_sync(FULL_WARP, selected.first_a), firsts_b = __ballot_sync(FULL_WARP, selected.first_b);
  u32 start = 0;
  if (lane < 2) start = atomicAdd(&counters[LATE_PAIRS + lane], lane == 0 ? __popc(pairs) : __popc(firsts_a) + __popc(firsts_b));
  const u32 at = __shfl_sync(FULL_WARP, start, 0) + rank_among(pairs);
  const u32 at_a = __shfl_sync(FULL_WARP, start, 1) + rank_among(firsts_a);
  const u32 at_b = __shfl_sync(FULL_WARP, start, 1) + __popc(firsts_a) + rank_among(firsts_b);
  if (selected.any && at < LATE_CAPACITY) late.pairs[at] = pair;
  if (selected.first_a && at_a < LATE_SELECTOR_CAPACITY) late.selectors[at_a] = make_uint2(pair.x, selected.key_a);
  if (selected.first_b && at_b < LATE_SELECTOR_CAPACITY) late.selectors[at_b] = make_uint2(pair.y, selected.key_b);
}

// Marks what is left, and begins the round after those with launches of their own. From it on little is small: lists that and its
// pairs. Clears the selections of the round before, as `hook` does.
// Grid: any number of blocks of CONNECT_THREADS, a pair and a component a thread by turns.
// In: sums, and the pairs of `small` or all.
// Out: selections, by atomic minima; `late` [LATE_CAPACITY] and [LATE_SELECTOR_CAPACITY], at indices taken by atomic additions;
// marks, by atomics.
// Race-free: nothing is joined here; whoever selects first, which an atomic tells one thread alone, lists a component; the
// selections that are cleared are those of the other turn.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_select_late(Components c, Selections selections, uint2 *small, Late late, Marks marks, u32 round, ConnectArgs args,
                        Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections, small, late, marks);
  if (is_absent(batch)) return;
  const uint2 asked = ask(small, FIRST, args.small_capacity);
  const u32 components = c.counters[COMPONENTS];
  const PairList list = small_pairs(c, args, small);
  const bool wanted = round != 0 && c.counters[ROUNDS + round - 1] != 0;
  wait_for_last_kernel();
  const uint2 asked_head = load_head(c, min(FIRST, pixels(args) - 1));
  const u32 listed = wanted && list.count <= MOST_LISTED ? list.count : 0;
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < listed; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    Selected selected = {false, false, false, 0, 0};
    if (i < list.count) {
      if (i != FIRST || list.pairs != small) pair = __ldcg(&list.pairs[i]);
      selected = select_pair<true>(c, selections, args.min_region, round, pair, &list.pairs[i]);
    }
    list_late(late, c.counters, pair, selected);
  }
  // Of very many, as in noise, more are left than the lists hold: that is all there is to know then.
  if (wanted && list.count > MOST_LISTED) {
    const uint2 pair = ask(list.pairs, FIRST, list.count);
    const bool any = select(c, selections, args.min_region, round, list, pair, FIRST, ALL);
    if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[LATE_PAIRS] = c.counters[LATE_SELECTORS] = ~0u;
  }
  // Last, since nothing waits for it.
  for (u32 i = FIRST; i < components; i += ALL) {
    const uint2 head = i == FIRST ? asked_head : load_head(c, i);
    const bool inside = !(head.x & OUTSIDE_COUNT);
    if (inside && (!args.connectivity || head.x != 0)) mark(args, marks, mark_at(c, args, i, head.y), true);
    if (args.connectivity && head.x != 0) *selection(selections, head.y, round + 1) = ~0ull;
  }
}

// The second half of a round: all selections are united at once. Left alone, the compiler takes 32 registers and spills.
// Grid: any number of blocks of CONNECT_THREADS, a component a thread by turns.
// In: selections of this round, which nobody changes.
// Out: parents, sums, keys; selections of the next round, none.
// Race-free: a component's own thread alone writes its parent, and empties it; roots get sums by integer atomics and keys by minima;
// where a selection leads does not depend on what has been joined meanwhile.
KERNEL __launch_bounds__(CONNECT_THREADS, 6) connect_hook(Components c, Selections selections, u32 round, ConnectArgs args,
                                                          Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections);
  if (is_absent(batch)) return;
  // The first half of a round changes nothing of it.
  const u32 components = c.counters[COMPONENTS];
  ComponentSums asked;
  if (FIRST < components) asked = load_sums(c, FIRST);
  wait_for_last_kernel();
  hook<false>(c, args, selections, Marks{nullptr}, round, components, asked, FIRST, ALL);
}

#define NO_SELECTOR 0xffffffffu

// The rest of a round and those after it, by one block. What selects is listed by whoever sees it first.
__device__ __forceinline__ void absorb_late(NumberShared &shared, const Components &c, const ConnectArgs &args, const Selections &selections,
                                            const Marks &marks, const Late &late, u32 pairs, u32 selecting, uint2 asked_selector,
                                            u32 round) {
  uint2 *selectors = shared.selectors[0], *next_selectors = shared.selectors[1];
  for (u32 i = threadIdx.x; i < selecting; i += NUMBER_THREADS) {
    selectors[i] = i == threadIdx.x ? asked_selector : __ldcg(&late.selectors[i]);
  }
  for (;; round++) {
    // Only a component that joins another small one may still be small.
    const bool always_like = cost(0, true, args.min_region, round) == 0;
    bool like = false;
    for (u32 i = threadIdx.x; i < selecting; i += NUMBER_THREADS) {
      const u32 component = selectors[i].x;
      const u64 own = __ldcg(selection(selections, selectors[i].y, round));
      const u32 root = join_selected<true>(c, args, selections, marks, round, component, load_sums(c, component), own);
      selectors[i].x = always_like || own >> 63 != 0 ? root : NO_SELECTOR;
      like |= selectors[i].x != NO_SELECTOR;
    }
    if (threadIdx.x == 0) shared.selecting = 0;
    if (!__syncthreads_or(like)) return;
    bool again = false;
    for (u32 i = threadIdx.x; i < selecting; i += NUMBER_THREADS) {
      if (selectors[i].x != NO_SELECTOR) again |= load_head(c, selectors[i].x).x < args.min_region;
      *selection(selections, selectors[i].y, round) = ~0ull;
    }
    if (!__syncthreads_or(again)) return;
    for (u32 i = threadIdx.x; i < pairs; i += NUMBER_THREADS) {
      uint2 pair = __ldcg(&late.pairs[i]);
      const Selected selected = select_pair<true>(c, selections, args.min_region, round + 1, pair, &late.pairs[i]);
      if (selected.first_a) next_selectors[atomicAdd(&shared.selecting, 1)] = make_uint2(pair.x, selected.key_a);
      if (selected.first_b) next_selectors[atomicAdd(&shared.selecting, 1)] = make_uint2(pair.y, selected.key_b);
    }
    __syncthreads();
    selecting = shared.selecting;
    if (selecting == 0) return;
    uint2 *swap = selectors;
    selectors = next_selectors;
    next_selectors = swap;
    __syncthreads();
  }
}

// Rounds until nothing small is left, of one grid with barriers between their halves. `begun`: the first half of the first is
// done. `flags` are three words, clear.
__device__ __forceinline__ void absorb(const Components &c, const ConnectArgs &args, const Selections &selections, const Marks &marks,
                                       const PairList &list, u32 min_region, u32 round, bool begun, volatile u32 *flags) {
  for (;; round++, begun = false) {
    if (!begun) {
      const uint2 asked = FIRST < list.count ? __ldcg(&list.pairs[FIRST]) : make_uint2(0, 0);
      const bool any = select(c, selections, min_region, round, list, asked, FIRST, ALL);
      if (__syncthreads_or(any) && threadIdx.x == 0) flags[round % 3] = 1;
      grid_barrier(c.counters + ARRIVED);
      const bool again = flags[round % 3];
      // The flag of the round after; those of this one and the last may still be being read.
      if (FIRST == 0) flags[(round + 1) % 3] = 0;
      if (!again) break;
    }
    const u32 components = c.counters[COMPONENTS];
    ComponentSums asked;
    if (FIRST < components) asked = load_sums(c, FIRST);
    hook<true>(c, args, selections, marks, round, components, asked, FIRST, ALL);
    grid_barrier(c.counters + ARRIVED);
  }
}

// Completes absorption from the second half of `round` on, in one block if few components are left; then numbers.
// Grid: cooperative, blocks of NUMBER_THREADS, all resident.
// In: sums, selections, `late`, marks.
// Out: labels [components], regions [regions], the number of regions; in temporal mode part_clusters [regions].
// Race-free: few components are absorbed by block 0, which ends with a store-release that the others wait for with acquire; many are
// absorbed by all blocks between barriers of the grid. No components are joined afterwards, and a component's label and a root's
// region have one thread that writes them.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_number(Components c, Selections selections, uint2 *small, Late late, Marks marks, u16 *labels, RegionSums *regions,
                   u32 *part_clusters, u32 round, ConnectArgs args, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, selections, small, late, marks, labels, regions);
  select_some(batch, part_clusters);
  if (is_absent(batch)) return;
  __shared__ NumberShared shared;
  // Roots as the rounds before left them: few are joined to others in what follows.
  u32 root = FIRST;
  const u32 components = c.counters[COMPONENTS];
  if (root < components) {
    uint2 head = load_head(c, root);
    root = root_of(c, args, root, head);
  }
  wait_for_last_kernel();
  // Asked for at once.
  const uint2 asked_selector = __ldcg(&late.selectors[threadIdx.x]);
  const u32 pairs = load_relaxed(c.counters + LATE_PAIRS), selectors = load_relaxed(c.counters + LATE_SELECTORS);
  if (selectors != 0) {
    if (pairs > LATE_CAPACITY || selectors > LATE_SELECTOR_CAPACITY) {
      absorb(c, args, selections, marks, small_pairs(c, args, small), args.min_region, round, true, c.counters + REST);
    } else {
      u32 *done = c.counters + LATE_DONE;
      if (blockIdx.x == 0) {
        absorb_late(shared, c, args, selections, marks, late, pairs, selectors, asked_selector, round);
        __syncthreads();
        if (threadIdx.x == 0) store_release(done, 1);
      } else {
        if (threadIdx.x == 0) wait_for_change(done, 0);
        __syncthreads();
      }
    }
  }
  number(shared, c, args, marks, labels, regions, part_clusters, LARGE_CLUSTER, components, root);
}

// For frames that may be left with more regions than labels can name: doubles the smallest region and absorbs until they fit, or until
// nothing can be absorbed that has a neighbor. Returns at once if they do.
// Grid: cooperative, blocks of NUMBER_THREADS, all resident.
// In and out: as `connect_number`.
// Race-free: all blocks see the same number of regions, so that they go the same way; halves of rounds are between barriers of the
// grid.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_fit(Components c, Selections selections, Marks marks, u16 *labels, RegionSums *regions, u32 *part_clusters,
                ConnectArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, selections, marks, labels, regions);
  select_some(batch, part_clusters);
  if (is_absent(batch)) return;
  __shared__ NumberShared shared;
  if (c.counters[REGIONS] <= args.max_regions) return;
  volatile u32 *flags = c.counters + REST;
  u32 total, min_region = args.min_region;
  do {
    min_region *= 2;
    grid_barrier(c.counters + ARRIVED);
    const u32 components = c.counters[COMPONENTS];
    for (u32 i = FIRST; i < components; i += ALL) {
      const uint2 head = load_head(c, i);
      if (head.x != 0) clear_selections(selections, head.y);
    }
    if (FIRST < 3) flags[FIRST] = 0;
    grid_barrier(c.counters + ARRIVED);
    absorb(c, args, selections, marks, PairList{c.edges, c.counters[EDGES]}, min_region, 0, false, flags);
    u32 groups[GROUPS_A_THREAD];
    load_groups(marks, groups);
    total = sum_groups(shared, groups);
  } while (total > args.max_regions && min_region <= pixels(args));
  args.fits_later = 0;
  // Of several that were not small none stands for the region.
  number(shared, c, args, marks, labels, regions, part_clusters, 0, c.counters[COMPONENTS], FIRST);
}
