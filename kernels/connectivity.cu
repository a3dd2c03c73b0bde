// SPDX-License-Identifier: MPL-2.0
// Stage `connectivity`: joins the tiles' components, absorbs small ones, numbers what is left; mirrors
// src/post/connectivity/cpu.rs. The result does not depend on the order in which threads run: unions keep the lowest
// key, sums are integers, picks are minima.
#include "absorb.cuh"
#include "mains.cuh"
#include "numbering.cuh"

// Pixel pairs across the borders of tiles: equal clusters are joined, others touch. Grid: one thread a pair, first the
// pairs across vertical borders, then those across horizontal ones. Clears the marks, too.
KERNEL __launch_bounds__(BORDER_THREADS) connect_borders(Components c, Marks marks, ConnectArgs args) {
  beside_last_kernel(c, args);
  const u32 vertical = (args.width - 1) / TILE * args.height, all = args.border_pairs;
  const u32 i = blockIdx.x * BORDER_THREADS + threadIdx.x, lane = lane_id();
  for (u32 word = i; word < MARK_GROUPS + args.words; word += gridDim.x * BORDER_THREADS) marks.groups[word] = 0;
  __shared__ u32 waiting, first;
  if (threadIdx.x == 0) waiting = 0;
  __syncthreads();
  // Where the pair is, worked out before anything is waited for.
  u32 x, y;
  if (i < vertical) {
    const u32 border = i / args.height;
    y = i - border * args.height;
    x = (border + 1) * TILE - 1;
  } else {
    const uint2 place = args.place(i - vertical);
    x = place.x;
    y = (place.y + 1) * TILE - 1;
  }
  const u32 pixel = y * args.width + x, beside = pixel + (i < vertical ? 1 : args.width);
  const u32 tile = y / TILE * args.tiles_x + x / TILE, tile_beside = tile + (i < vertical ? 1 : args.tiles_x);
  // Whether the pair before is beside this one.
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
    edge = differ && (count_a < c.large || count_b < c.large);
    join = !differ && args.connectivity;
  }

  const u32 edges = __ballot_sync(FULL_WARP, edge);
  u32 place = 0;
  if (lane == 0 && edges) place = atomicAdd(&waiting, __popc(edges));
  place = __shfl_sync(FULL_WARP, place, 0) + rank_among(edges);
  __syncthreads();
  if (threadIdx.x == 0 && waiting) first = atomicAdd(&c.counters[EDGES], waiting);
  // Beside the place for the block's edges.
  if (join) unite(sets, join_a, join_b);
  __syncthreads();
  if (edge) c.edges[first + place] = make_uint2(a, b);
}

// The kernels below are one phase each, but for the last two; the launch between two of them is the barrier, which costs less
// than one inside a grid. Grid of each: any number of blocks.
#define FIRST (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL (gridDim.x * blockDim.x)

// Clears what the rounds start with, then moves the sums of components that borders have joined.
KERNEL __launch_bounds__(CONNECT_THREADS) connect_settle(Components c, Picks picks, ConnectArgs args) {
  beside_last_kernel(c, args);
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = FIRST; args.connectivity && i < components; i += ALL) picks.clear(c.sums[i].key);
  wait_for_last_kernel();
  if (!args.connectivity) return;
  for (u32 i = FIRST; i < components; i += ALL) {
    const u32 up = __ldcg(&c.parent[i]);
    if (up != i) move_sums(c, load_sums(c, i), i, find_root(SettledSets<true>{c.parent}, up));
  }
}

// The first round, which also lists the pairs for the others, and finds the main components if somebody wants them.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick_first(Components c, Picks picks, uint2 *small, u64 *mains, ConnectArgs args) {
  beside_last_kernel(c, args);
  __shared__ uint2 kept[CONNECT_THREADS];
  __shared__ u32 waiting, found, place;
  const uint2 asked = ask(c.edges, FIRST, 2 * pixels(args));
  const u32 edges = c.counters[EDGES];
  if (threadIdx.x == 0) waiting = 0;
  __syncthreads();
  wait_for_last_kernel();
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < edges; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    bool keep = false;
    if (i < edges) {
      if (i != FIRST) pair = __ldcg(&c.edges[i]);
      keep = pick_pair<false>(c, picks, args.min_region, 0, pair, &c.edges[i]).any;
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
        place = atomicAdd(&c.counters[SMALL], found);
        c.counters[ROUNDS] = 1;
      }
    }
    __syncthreads();
    if (threadIdx.x < found && place + threadIdx.x < args.small_places) small[place + threadIdx.x] = kept[threadIdx.x];
    __syncthreads();
  }
  if (mains) find_mains(c, mains, args.connectivity, FIRST, ALL);
}

KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick(Components c, Picks picks, uint2 *small, u32 round, ConnectArgs args) {
  beside_last_kernel(c, args);
  const uint2 asked = ask(small, FIRST, args.small_places);
  const PairList list = small_pairs(c, args, small);
  // Whether anything small was left in the round before.
  const bool wanted = c.counters[ROUNDS + round - 1] != 0;
  const uint2 pair = list.pairs == small ? asked : ask(list.pairs, FIRST, 2 * pixels(args));
  wait_for_last_kernel();
  if (!wanted) return;
  const bool any = pick(c, picks, args.min_region, round, list, pair, FIRST, ALL);
  if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[ROUNDS + round] = 1;
}

// Puts what a warp's pairs did into the lists, of which no more is written than there are places: both are asked for room at once.
__device__ __forceinline__ void list_late(const Late &late, u32 *counters, uint2 pair, const Picked &picked) {
  static_assert(LATE_PICKERS == LATE_PAIRS + 1, "a lane each");
  const u32 lane = lane_id();
  const u32 pairs = __ballot_sync(FULL_WARP, picked.any);
  if (!pairs) return;
  const u32 firsts_a = __ballot_sync(FULL_WARP, picked.first_a), firsts_b = __ballot_sync(FULL_WARP, picked.first_b);
  u32 place = 0;
  if (lane < 2) place = atomicAdd(&counters[LATE_PAIRS + lane], lane == 0 ? __popc(pairs) : __popc(firsts_a) + __popc(firsts_b));
  const u32 at = __shfl_sync(FULL_WARP, place, 0) + rank_among(pairs);
  const u32 at_a = __shfl_sync(FULL_WARP, place, 1) + rank_among(firsts_a);
  const u32 at_b = __shfl_sync(FULL_WARP, place, 1) + __popc(firsts_a) + rank_among(firsts_b);
  if (picked.any && at < LATE_PLACES) late.pairs[at] = pair;
  if (picked.first_a && at_a < LATE_PICKER_PLACES) late.pickers[at_a] = make_uint2(pair.x, picked.key_a);
  if (picked.first_b && at_b < LATE_PICKER_PLACES) late.pickers[at_b] = make_uint2(pair.y, picked.key_b);
}

// Marks what is left, and begins the round after those with launches of their own. From it on little is small: lists that and
// its pairs. Clears the picks of the round before, as `hook` does.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick_late(Components c, Picks picks, uint2 *small, Late late, Marks marks, u32 round, ConnectArgs args) {
  beside_last_kernel(c, args);
  const uint2 asked = ask(small, FIRST, args.small_places);
  const u32 components = c.counters[COMPONENTS];
  const PairList list = small_pairs(c, args, small);
  const bool wanted = round != 0 && c.counters[ROUNDS + round - 1] != 0;
  wait_for_last_kernel();
  const uint2 asked_head = load_head(c, min(FIRST, pixels(args) - 1));
  const u32 listed = wanted && list.count <= MOST_LISTED ? list.count : 0;
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < listed; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    Picked picked = {false, false, false, 0, 0};
    if (i < list.count) {
      if (i != FIRST || list.pairs != small) pair = __ldcg(&list.pairs[i]);
      picked = pick_pair<true>(c, picks, args.min_region, round, pair, &list.pairs[i]);
    }
    list_late(late, c.counters, pair, picked);
  }
  // Of very many, as in noise, more are left than the lists have places for: that is all there is to know then.
  if (wanted && list.count > MOST_LISTED) {
    const uint2 pair = ask(list.pairs, FIRST, list.count);
    const bool any = pick(c, picks, args.min_region, round, list, pair, FIRST, ALL);
    if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[LATE_PAIRS] = c.counters[LATE_PICKERS] = ~0u;
  }
  // Last, since nothing waits for it.
  for (u32 i = FIRST; i < components; i += ALL) {
    const uint2 head = i == FIRST ? asked_head : load_head(c, i);
    if (!args.connectivity || head.x != 0) mark(args, marks, mark_at(c, args, i, head.y), true);
    if (args.connectivity && head.x != 0) *picks.of(head.y, round + 1) = ~0ull;
  }
}

// Left alone, the compiler takes 32 registers and spills.
KERNEL __launch_bounds__(CONNECT_THREADS, 6) connect_hook(Components c, Picks picks, u32 round, ConnectArgs args) {
  beside_last_kernel(c, args);
  // The first half of a round changes nothing of it.
  const u32 components = c.counters[COMPONENTS];
  ComponentSums asked;
  if (FIRST < components) asked = load_sums(c, FIRST);
  wait_for_last_kernel();
  hook<false>(c, args, picks, Marks{nullptr}, round, components, asked, FIRST, ALL);
}

#define NO_PICKER 0xffffffffu

// The rest of a round and those after it, by one block. What picks is listed by whoever sees it first.
__device__ __forceinline__ void absorb_late(NumberShared &shared, const Components &c, const ConnectArgs &args, const Picks &picks,
                                            const Marks &marks, const Late &late, u32 pairs, u32 picking, uint2 asked_picker,
                                            u32 round) {
  uint2 *pickers = shared.pickers[0], *next_pickers = shared.pickers[1];
  for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) {
    pickers[i] = i == threadIdx.x ? asked_picker : __ldcg(&late.pickers[i]);
  }
  for (;; round++) {
    // What joins its like may still be small afterwards, nothing else.
    const bool always_like = cost(0, true, args.min_region, round) == 0;
    bool like = false;
    for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) {
      const u32 component = pickers[i].x;
      const u64 own = __ldcg(picks.of(pickers[i].y, round));
      const u32 root = join_picked<true>(c, args, picks, marks, round, component, load_sums(c, component), own);
      pickers[i].x = always_like || own >> 63 != 0 ? root : NO_PICKER;
      like |= pickers[i].x != NO_PICKER;
    }
    if (threadIdx.x == 0) shared.picking = 0;
    if (!__syncthreads_or(like)) return;
    bool again = false;
    for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) {
      if (pickers[i].x != NO_PICKER) again |= load_head(c, pickers[i].x).x < args.min_region;
      *picks.of(pickers[i].y, round) = ~0ull;
    }
    if (!__syncthreads_or(again)) return;
    for (u32 i = threadIdx.x; i < pairs; i += NUMBER_THREADS) {
      uint2 pair = __ldcg(&late.pairs[i]);
      const Picked picked = pick_pair<true>(c, picks, args.min_region, round + 1, pair, &late.pairs[i]);
      if (picked.first_a) next_pickers[atomicAdd(&shared.picking, 1)] = make_uint2(pair.x, picked.key_a);
      if (picked.first_b) next_pickers[atomicAdd(&shared.picking, 1)] = make_uint2(pair.y, picked.key_b);
    }
    __syncthreads();
    picking = shared.picking;
    if (picking == 0) return;
    uint2 *swap = pickers;
    pickers = next_pickers;
    next_pickers = swap;
    __syncthreads();
  }
}

// Rounds until nothing small is left, of one grid with barriers between their halves. `begun`: the first half of the first is
// done. `flags` are three words, clear.
__device__ __forceinline__ void absorb(const Components &c, const ConnectArgs &args, const Picks &picks, const Marks &marks,
                                       const PairList &list, u32 min_region, u32 round, bool begun, volatile u32 *flags) {
  for (;; round++, begun = false) {
    if (!begun) {
      const uint2 asked = FIRST < list.count ? __ldcg(&list.pairs[FIRST]) : make_uint2(0, 0);
      const bool any = pick(c, picks, min_region, round, list, asked, FIRST, ALL);
      if (__syncthreads_or(any) && threadIdx.x == 0) flags[round % 3] = 1;
      grid_barrier(c.counters);
      const bool again = flags[round % 3];
      // The flag of the round after; those of this one and the last may still be being read.
      if (FIRST == 0) flags[(round + 1) % 3] = 0;
      if (!again) break;
    }
    const u32 components = c.counters[COMPONENTS];
    ComponentSums asked;
    if (FIRST < components) asked = load_sums(c, FIRST);
    hook<true>(c, args, picks, marks, round, components, asked, FIRST, ALL);
    grid_barrier(c.counters);
  }
}

// What is left of absorption after the first half of `round`, by one block where it is little; then numbers. Grid: cooperative.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_number(Components c, Picks picks, uint2 *small, Late late, Marks marks, u16 *labels, RegionSums *regions, u32 round,
                   ConnectArgs args) {
  beside_last_kernel(c, args);
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
  const uint2 asked_picker = __ldcg(&late.pickers[threadIdx.x]);
  const u32 pairs = load_relaxed(c.counters + LATE_PAIRS), pickers = load_relaxed(c.counters + LATE_PICKERS);
  if (pickers != 0) {
    if (pairs > LATE_PLACES || pickers > LATE_PICKER_PLACES) {
      absorb(c, args, picks, marks, small_pairs(c, args, small), args.min_region, round, true, c.counters + REST);
    } else {
      u32 *done = c.counters + LATE_DONE;
      if (blockIdx.x == 0) {
        absorb_late(shared, c, args, picks, marks, late, pairs, pickers, asked_picker, round);
        __syncthreads();
        if (threadIdx.x == 0) store_release(done, 1);
      } else {
        if (threadIdx.x == 0) {
          while (load_acquire(done) == 0) {
          }
        }
        __syncthreads();
      }
    }
  }
  number(shared, c, args, marks, labels, regions, components, root);
}

// For frames that may be left with more regions than labels can name: doubles the smallest region and absorbs until
// they fit. Returns at once if they do. Grid: cooperative.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_fit(Components c, Picks picks, Marks marks, u16 *labels, RegionSums *regions, ConnectArgs args) {
  after_last_kernel(c, args);
  __shared__ NumberShared shared;
  if (c.counters[REGIONS] <= args.max_regions) return;
  volatile u32 *flags = c.counters + REST;
  u32 total, min_region = args.min_region;
  do {
    min_region *= 2;
    grid_barrier(c.counters);
    const u32 components = c.counters[COMPONENTS];
    for (u32 i = FIRST; i < components; i += ALL) {
      const uint2 head = load_head(c, i);
      if (head.x != 0) picks.clear(head.y);
    }
    if (FIRST < 3) flags[FIRST] = 0;
    grid_barrier(c.counters);
    absorb(c, args, picks, marks, PairList{c.edges, c.counters[EDGES]}, min_region, 0, false, flags);
    u32 groups[GROUPS_A_THREAD];
    load_groups(marks, groups);
    total = sum_groups(shared, groups);
  } while (total > args.max_regions);
  number(shared, c, args, marks, labels, regions, c.counters[COMPONENTS], FIRST);
}
