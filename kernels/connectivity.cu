// SPDX-License-Identifier: MPL-2.0
// Stage `connectivity`: joins the tiles' components, absorbs small ones, numbers what is left; mirrors
// src/post/connectivity/cpu.rs. The result does not depend on the order in which threads run: unions keep the lowest
// key, sums are integers, picks are minima.
#include "components.cuh"
#include "mains.cuh"
#include "regions.cuh"

struct ConnectArgs {
  u32 width, height;
  u32 tiles_x;
  u32 min_region;
  u32 max_regions;
  // Off: nothing is joined, labels are numbered by cluster.
  u32 connectivity;
  // Pixel pairs across the borders of tiles; none where nobody asks for them.
  u32 border_pairs;
  // Words of the marks' bitmap, and how many of them form a group: a power of two, at least four.
  u32 words, group_bits;
  // Places in the list of pairs that a small component is in.
  u32 small_places;
};
static_assert(sizeof(ConnectArgs) == 4 * 10, "mirrored in src/post/connectivity/cuda.rs");

// Counters: components, edges, regions, whether a round found anything small, the end of the last rounds and what they go over, pairs
// that something small is in, rounds inside a grid, and the two of the grid's barrier, which alone are not cleared with each
// frame.
enum Counter {
  COMPONENTS = 0,
  EDGES = 1,
  REGIONS = 2,
  ROUNDS = 3,
  LATE_DONE = 29,
  LATE_PAIRS = 30,
  LATE_PICKERS = 31,
  SMALL = 32,
  REST = 33,
  ARRIVED = 40,
  GENERATION = 41
};

// What few components are left for after the rounds with launches of their own: pairs that something small is in, and what
// picked in the last of these rounds.
struct Late {
  uint2 *pairs;
  u32 *pickers;
};

// A mark for every region, where its label is found: at its first pixel, or at its cluster. First how many there are in each
// group of words, then the bitmap.
struct Marks {
  u32 *groups;
  __device__ __forceinline__ u32 *bitmap() const { return groups + MARK_GROUPS; }
};

// The root of a set while others are joined.
__device__ __forceinline__ u32 find(const u32 *parent, u32 i) {
  for (;;) {
    const u32 up = load_relaxed(parent + i);
    if (up == i) return i;
    i = up;
  }
}

// The root of a set while nothing is joined.
__device__ __forceinline__ u32 find_settled(const u32 *parent, u32 i) {
  for (u32 up = __ldcg(parent + i); up != i; up = __ldcg(parent + i)) i = up;
  return i;
}

// A component as it was asked for to be joined.
struct Joined {
  u32 at, up, key;
};
__device__ __forceinline__ Joined load_joined(const Components &c, u32 i) {
  return {i, load_relaxed(c.parent + i), c.sums[i].key};
}

// Joins the sets of two components; the root of the lower key stays.
__device__ __forceinline__ void unite(const Components &c, Joined a, Joined b) {
  for (;;) {
    if (a.up != a.at || b.up != b.at) {
      a.at = find(c.parent, a.up);
      b.at = find(c.parent, b.up);
      if (a.at == b.at) return;
      a.key = c.sums[a.at].key;
      b.key = c.sums[b.at].key;
    }
    if (a.key < b.key) {
      const Joined swap = a;
      a = b;
      b = swap;
    }
    if (atomicCAS(&c.parent[a.at], a.at, b.at) == a.at) return;
    a.up = load_relaxed(c.parent + a.at);
    b.up = load_relaxed(c.parent + b.at);
  }
}

__device__ __forceinline__ u32 component_at(const Components &c, const ConnectArgs &args, u32 pixel) {
  const u32 x = pixel % args.width, y = pixel / args.width;
  return c.tile_first[y / TILE * args.tiles_x + x / TILE] + c.local[pixel];
}

// Pixel pairs across the borders of tiles: equal clusters are joined, others touch. Grid: one thread a pair, first the
// pairs across vertical borders, then those across horizontal ones.
// Clears the marks, too.
KERNEL __launch_bounds__(BORDER_THREADS) connect_borders(Components c, Marks marks, ConnectArgs args) {
  beside_last_kernel(c, args);
  const u32 vertical = (args.width - 1) / TILE * args.height, all = args.border_pairs;
  const u32 i = blockIdx.x * BORDER_THREADS + threadIdx.x, lane = lane_id();
  for (u32 word = i; word < MARK_GROUPS + args.words; word += gridDim.x * BORDER_THREADS) marks.groups[word] = 0;
  wait_for_last_kernel();
  u32 a = 0, b = 0;
  bool along = false;
  if (i < all) {
    u32 pixel, step;
    if (i < vertical) {
      pixel = i % args.height * args.width + (i / args.height + 1) * TILE - 1;
      step = 1;
      along = i % args.height != 0;
    } else {
      const u32 j = i - vertical;
      pixel = ((j / args.width + 1) * TILE - 1) * args.width + j % args.width;
      step = args.width;
      along = j % args.width != 0;
    }
    a = component_at(c, args, pixel);
    b = component_at(c, args, pixel + step);
  }
  const u32 a_before = __shfl_up_sync(FULL_WARP, a, 1), b_before = __shfl_up_sync(FULL_WARP, b, 1);
  const bool seen = lane > 0 && along && i != vertical && a_before == a && b_before == b;
  bool edge = false, join = false;
  Joined join_a, join_b;
  if (i < all && !seen) {
    // Most pairs are of one cluster, and most of those roots: all is asked for at once.
    const u32 cluster_a = c.cluster[a], cluster_b = c.cluster[b];
    join_a = load_joined(c, a);
    join_b = load_joined(c, b);
    edge = cluster_a != cluster_b;
    join = !edge && args.connectivity;
  }

  __shared__ u32 warp_total[BORDER_THREADS / 32];
  __shared__ u32 first;
  const u32 edges = __ballot_sync(FULL_WARP, edge);
  if (lane == 0) warp_total[threadIdx.x / 32] = __popc(edges);
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 sum = 0;
    for (u32 w = 0; w < BORDER_THREADS / 32; w++) {
      const u32 here = warp_total[w];
      warp_total[w] = sum;
      sum += here;
    }
    first = sum ? atomicAdd(&c.counters[EDGES], sum) : 0;
  }
  // Beside the place for the block's edges.
  if (join) unite(c, join_a, join_b);
  __syncthreads();
  if (edge) {
    c.edges[first + warp_total[threadIdx.x / 32] + __popc(edges & (lanes_up_to(lane) >> 1))] = make_uint2(a, b);
  }
}

// All blocks of a cooperative launch wait for each other; what any thread wrote before is seen by all afterwards.
__device__ __forceinline__ void grid_barrier(u32 *counters) {
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 *generation = counters + GENERATION;
    const u32 before = load_relaxed(generation);
    if (add_acq_rel(counters + ARRIVED, 1) == gridDim.x - 1) {
      counters[ARRIVED] = 0;
      store_release(generation, before + 1);
    } else {
      while (load_acquire(generation) == before) {
      }
    }
  }
  __syncthreads();
}

// What a component holds, as other blocks left it.
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

// Mean feature in 1/16 quantum, rounded half up.
__device__ __forceinline__ void mean(const ComponentSums &sums, i32 (&out)[3]) {
#pragma unroll
  for (int j = 0; j < 3; j++) {
    const u64 top = 32 * sums.color[j] + sums.count;
    out[j] = top >> 32 ? (i32)(top / (2 * (u64)sums.count)) : (i32)((u32)top / (2 * sums.count));
  }
}

// What stands at `i` or, once that has been joined to another, at its root, which `i` becomes. While nothing is joined.
__device__ __forceinline__ ComponentSums root_sums(const Components &c, u32 &i) {
  ComponentSums sums = load_sums(c, i);
  while (sums.count == 0) {
    i = sums.key;
    sums = load_sums(c, i);
  }
  return sums;
}

// Adds what a component holds to its root.
__device__ __forceinline__ void move_sums(const Components &c, const ComponentSums &sums, u32 i, u32 root) {
  *(uint2 *)(c.sums + i) = make_uint2(0, root);
  atomicAdd(&c.sums[root].count, sums.count);
#pragma unroll
  for (int j = 0; j < 3; j++) atomicAdd(&c.sums[root].color[j], sums.color[j]);
}

// Which of the two sets of picks a round writes and reads.
__device__ __forceinline__ u64 *picks_of(const ConnectArgs &args, u64 *picks, u32 round) {
  return picks + (size_t)(round & 1) * args.width * args.height;
}

// Places in the lists of components; that of edges has twice as many.
__device__ __forceinline__ u32 pixels(const ConnectArgs &args) { return args.width * args.height; }

// What stands in a list at a thread's first place, asked for together with how many places there are: memory that no component
// has yet is read, too, and not used.
template <class T>
__device__ __forceinline__ T ask(const T *list, u32 first, u32 places) {
  return __ldcg(list + min(first, places - 1));
}

// Where a root's label is found: its first pixel, or its cluster.
__device__ __forceinline__ u32 mark_at(const Components &c, const ConnectArgs &args, u32 root, u32 key) {
  if (!args.connectivity) return c.cluster[root];
  const u32 row_words = (args.width + 31) / 32;
  return key / args.width * row_words * 32 + key % args.width;
}

// Adds or takes away a mark.
__device__ __forceinline__ void mark(const ConnectArgs &args, const Marks &marks, u32 at, bool there) {
  const u32 word = at / 32, bit = 1u << at % 32;
  u32 *group = marks.groups + (word >> args.group_bits), *bits = marks.bitmap() + word;
  // Several components may be of one cluster.
  if (!args.connectivity && (atomicOr(bits, bit) & bit)) return;
  if (there) {
    atomicOr(bits, bit);
  } else {
    atomicAnd(bits, ~bit);
  }
  atomicAdd(group, there ? 1u : ~0u);
}

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
  mean(sums_a, mean_a);
  mean(sums_b, mean_b);
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

// Pixels and key of a component, asked for alone.
__device__ __forceinline__ uint2 load_head(const Components &c, u32 i) { return __ldcg((const uint2 *)(c.sums + i)); }

struct NumberShared {
  u32 warp_total[NUMBER_THREADS / 32];
  u32 total;
  // Marks before each group of words; before that, what picks in the rounds of one block.
  union {
    u32 before[MARK_GROUPS];
    u32 pickers[2][LATE_PICKER_PLACES];
  };
  u32 picking;
};

// Exclusive sum over the block; `shared.total` afterwards holds the sum of all.
__device__ __forceinline__ u32 block_sum(NumberShared &shared, u32 value) {
  const u32 sum = inclusive_sum(value), warp = threadIdx.x / 32;
  __syncthreads();
  if (lane_id() == 31) shared.warp_total[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    const u32 here = shared.warp_total[lane_id()], up = inclusive_sum(here);
    shared.warp_total[lane_id()] = up - here;
    if (lane_id() == 31) shared.total = up;
  }
  __syncthreads();
  return shared.warp_total[warp] + sum - value;
}

// Marks of each group of words, summed up in shared memory; returns the number of all.
#define GROUPS_A_THREAD (MARK_GROUPS / NUMBER_THREADS)
__device__ __forceinline__ u32 sum_groups(NumberShared &shared, const Marks &marks) {
  const uint4 *at = (const uint4 *)(marks.groups + GROUPS_A_THREAD * threadIdx.x);
  u32 here[GROUPS_A_THREAD], sum = 0;
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD / 4; i++) {
    const uint4 four = __ldcg(at + i);
    here[4 * i] = four.x;
    here[4 * i + 1] = four.y;
    here[4 * i + 2] = four.z;
    here[4 * i + 3] = four.w;
  }
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD; i++) sum += here[i];
  u32 before = block_sum(shared, sum);
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD; i++) {
    shared.before[GROUPS_A_THREAD * threadIdx.x + i] = before;
    before += here[i];
  }
  __syncthreads();
  return shared.total;
}

// A component's root, and where its mark is: the group, and the marks before it from the group's first on.
struct Place {
  u32 root, group, before;
};

// Goes from a component to its root; `head` is what it begins with.
__device__ __forceinline__ u32 root_of(const Components &c, const ConnectArgs &args, u32 i, uint2 &head) {
  while (args.connectivity && head.x == 0) {
    i = head.y;
    head = load_head(c, i);
  }
  return i;
}

// The place of a component with a root that begins with `head`.
__device__ __forceinline__ Place place_of(const Components &c, const ConnectArgs &args, const Marks &marks, u32 root, uint2 head) {
  const u32 at = mark_at(c, args, root, head.y), word = at / 32, group = word >> args.group_bits;
  Place place = {root, group, 0};
  for (u32 four = group << args.group_bits; four <= word; four += 4) {
    const uint4 words = __ldcg((const uint4 *)(marks.bitmap() + four));
    const u32 bits[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 lower = four + i < word ? ~0u : four + i == word ? (1u << at % 32) - 1 : 0;
      place.before += __popc(bits[i] & lower);
    }
  }
  return place;
}

// Writes the label of every component, the number of regions, and the regions' accumulators: with what their roots hold of
// pixels and features, or without connectivity empty.
// `on_the_way` lies between the first component of this thread and its root.
__device__ __forceinline__ void number(NumberShared &shared, const Components &c, const ConnectArgs &args, const Marks &marks,
                                       u16 *labels, RegionSums *regions, u32 on_the_way) {
  const u32 first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  const u32 components = c.counters[COMPONENTS];
  // All that does not take the sum over the groups is under way while they are added up.
  Place place = {0, 0, 0};
  const auto find_place = [&](u32 from) {
    uint2 head = load_head(c, from);
    const u32 root = root_of(c, args, from, head);
    return place_of(c, args, marks, root, head);
  };
  if (first < components) place = find_place(on_the_way);
  const u32 total = sum_groups(shared, marks);
  for (u32 i = first; i < components; i += all) {
    if (i != first) place = find_place(i);
    const u32 label = shared.before[place.group] + place.before;
    // Without connectivity clusters beyond the most share the last label; with it `connect_fit` is still to come.
    labels[i] = (u16)min(label, args.max_regions - 1);
    if (args.connectivity && label < args.max_regions && place.root == i) {
      const ComponentSums sums = load_sums(c, i);
      store_region(regions + label, region_of(sums.count, sums.color));
    }
  }
  if (!args.connectivity) {
    const u64 none[3] = {0, 0, 0};
    for (u32 i = first; i < min(total, args.max_regions); i += all) regions[i] = region_of(0, none);
  }
  if (first == 0) c.counters[REGIONS] = args.connectivity ? total : min(total, args.max_regions);
}

// The kernels below are one phase each, but for the last two; the launch between two of them is the barrier, which costs less
// than one inside a grid. Grid of each: any number of blocks.
#define FIRST (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL (gridDim.x * blockDim.x)

// Clears what the rounds start with, then moves the sums of components that borders have joined.
KERNEL __launch_bounds__(CONNECT_THREADS) connect_settle(Components c, u64 *picks, ConnectArgs args) {
  beside_last_kernel(c, args);
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = FIRST; i < components; i += ALL) picks_of(args, picks, 0)[i] = picks_of(args, picks, 1)[i] = ~0ull;
  wait_for_last_kernel();
  if (!args.connectivity) return;
  for (u32 i = FIRST; i < components; i += ALL) {
    const u32 up = __ldcg(&c.parent[i]);
    if (up != i) move_sums(c, load_sums(c, i), i, find_settled(c.parent, up));
  }
}

// The first round, which also lists the pairs for the others, and finds the main components if somebody wants them.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick_first(Components c, u64 *picks, uint2 *small, u64 *mains, ConnectArgs args) {
  beside_last_kernel(c, args);
  __shared__ uint2 kept[CONNECT_THREADS];
  __shared__ u32 waiting, place;
  const uint2 asked = ask(c.edges, FIRST, 2 * pixels(args));
  const u32 edges = c.counters[EDGES];
  wait_for_last_kernel();
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < edges; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    bool keep = false;
    if (threadIdx.x == 0) waiting = 0;
    __syncthreads();
    if (i < edges) {
      if (i != FIRST) pair = __ldcg(&c.edges[i]);
      keep = pick_pair<false>(c, picks_of(args, picks, 0), args.min_region, 0, pair, &c.edges[i]).any;
    }
    const u32 lanes = __ballot_sync(FULL_WARP, keep);
    u32 before = 0;
    if (lanes && lane_id() == 0) before = atomicAdd(&waiting, __popc(lanes));
    before = __shfl_sync(FULL_WARP, before, 0) + __popc(lanes & (lanes_up_to(lane_id()) >> 1));
    if (keep) kept[before] = pair;
    __syncthreads();
    if (threadIdx.x == 0 && waiting) {
      place = atomicAdd(&c.counters[SMALL], waiting);
      c.counters[ROUNDS] = 1;
    }
    __syncthreads();
    if (threadIdx.x < waiting && place + threadIdx.x < args.small_places) small[place + threadIdx.x] = kept[threadIdx.x];
    __syncthreads();
  }
  if (mains) find_mains(c, mains, args.connectivity, FIRST, ALL);
}

KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick(Components c, u64 *picks, uint2 *small, u32 round, ConnectArgs args) {
  beside_last_kernel(c, args);
  const uint2 asked = ask(small, FIRST, args.small_places);
  const PairList list = small_pairs(c, args, small);
  // Whether anything small was left in the round before.
  const bool wanted = c.counters[ROUNDS + round - 1] != 0;
  const uint2 pair = list.pairs == small ? asked : ask(list.pairs, FIRST, 2 * pixels(args));
  wait_for_last_kernel();
  if (!wanted) return;
  const bool any = pick(c, picks_of(args, picks, round), args.min_region, round, list, pair, FIRST, ALL);
  if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[ROUNDS + round] = 1;
}

// Puts what some lanes have into a list, of which no more is written than there are places. All lanes of the warp come here.
template <class T>
__device__ __forceinline__ void append(T *list, u32 *count, u32 places, bool keep, const T &what) {
  const u32 lanes = __ballot_sync(FULL_WARP, keep);
  if (!lanes) return;
  u32 place = 0;
  if (lane_id() == 0) place = atomicAdd(count, __popc(lanes));
  place = __shfl_sync(FULL_WARP, place, 0) + __popc(lanes & (lanes_up_to(lane_id()) >> 1));
  if (keep && place < places) list[place] = what;
}

// Marks what is left, and begins the round after those with launches of their own. From it on little is small: lists that and
// its pairs, and clears the picks of the round before, as `connect_hook` does elsewhere.
KERNEL __launch_bounds__(CONNECT_THREADS)
    connect_pick_late(Components c, u64 *picks, uint2 *small, Late late, Marks marks, u32 round, ConnectArgs args) {
  beside_last_kernel(c, args);
  u64 *old = picks_of(args, picks, round + 1);
  const uint2 asked = ask(small, FIRST, args.small_places);
  const u64 asked_old = ask((const u64 *)old, FIRST, pixels(args));
  const u32 components = c.counters[COMPONENTS];
  const PairList list = small_pairs(c, args, small);
  const bool wanted = round != 0 && c.counters[ROUNDS + round - 1] != 0;
  wait_for_last_kernel();
  const uint2 asked_head = load_head(c, min(FIRST, pixels(args) - 1));
  for (u32 i = FIRST; i < components; i += ALL) {
    const uint2 head = i == FIRST ? asked_head : load_head(c, i);
    if ((i == FIRST ? asked_old : __ldcg(&old[i])) != ~0ull) old[i] = ~0ull;
    if (!args.connectivity || head.x != 0) mark(args, marks, mark_at(c, args, i, head.y), true);
  }
  if (!wanted) return;
  // Of very many, as in noise, more are left than the lists have places for: that is all there is to know then.
  if (list.count > MOST_LISTED) {
    const uint2 pair = ask(list.pairs, FIRST, list.count);
    const bool any = pick(c, picks_of(args, picks, round), args.min_region, round, list, pair, FIRST, ALL);
    if (__syncthreads_or(any) && threadIdx.x == 0) c.counters[LATE_PAIRS] = c.counters[LATE_PICKERS] = ~0u;
    return;
  }
  for (u32 base = blockIdx.x * CONNECT_THREADS; base < list.count; base += ALL) {
    const u32 i = base + threadIdx.x;
    uint2 pair = asked;
    Picked picked = {false, false, false};
    if (i < list.count) {
      if (i != FIRST || list.pairs != small) pair = __ldcg(&list.pairs[i]);
      picked = pick_pair<true>(c, picks_of(args, picks, round), args.min_region, round, pair, &list.pairs[i]);
    }
    append(late.pairs, &c.counters[LATE_PAIRS], LATE_PLACES, picked.any, pair);
    append(late.pickers, &c.counters[LATE_PICKERS], LATE_PICKER_PLACES, picked.first_a, pair.x);
    append(late.pickers, &c.counters[LATE_PICKERS], LATE_PICKER_PLACES, picked.first_b, pair.y);
  }
}

KERNEL __launch_bounds__(CONNECT_THREADS) connect_hook(Components c, u64 *picks, u32 round, ConnectArgs args) {
  after_last_kernel(c, args);
  hook<false>(c, args, picks_of(args, picks, round), picks_of(args, picks, round + 1), Marks{nullptr}, FIRST, ALL,
              c.counters + ROUNDS + round);
}

// The rest of a round and those after it, by one block. What picks is listed by whoever sees it first.
__device__ __forceinline__ void absorb_late(NumberShared &shared, const Components &c, const ConnectArgs &args, u64 *picks,
                                            const Marks &marks, const Late &late, u32 asked_picker, u32 round) {
  const u32 pairs = c.counters[LATE_PAIRS];
  u32 picking = c.counters[LATE_PICKERS];
  u32 *pickers = shared.pickers[0], *next_pickers = shared.pickers[1];
  for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) {
    pickers[i] = i == threadIdx.x ? asked_picker : __ldcg(&late.pickers[i]);
  }
  for (;; round++) {
    u64 *now = picks_of(args, picks, round), *next = picks_of(args, picks, round + 1);
    // Where all join something large, nothing small is left.
    bool again = cost(0, true, args.min_region, round) == 0;
    for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) {
      const u64 own = __ldcg(&now[pickers[i]]);
      again |= own >> 63 != 0;
      join_picked<true>(c, args, now, marks, pickers[i], own);
    }
    if (threadIdx.x == 0) shared.picking = 0;
    if (!__syncthreads_or(again)) return;
    for (u32 i = threadIdx.x; i < picking; i += NUMBER_THREADS) now[pickers[i]] = ~0ull;
    for (u32 i = threadIdx.x; i < pairs; i += NUMBER_THREADS) {
      uint2 pair = __ldcg(&late.pairs[i]);
      const Picked picked = pick_pair<true>(c, next, args.min_region, round + 1, pair, &late.pairs[i]);
      if (picked.first_a) next_pickers[atomicAdd(&shared.picking, 1)] = pair.x;
      if (picked.first_b) next_pickers[atomicAdd(&shared.picking, 1)] = pair.y;
    }
    __syncthreads();
    picking = shared.picking;
    if (picking == 0) return;
    u32 *swap = pickers;
    pickers = next_pickers;
    next_pickers = swap;
    __syncthreads();
  }
}

// Rounds until nothing small is left, of one grid with barriers between their halves. `begun`: the first half of the first is
// done. `flags` are three words, clear.
__device__ __forceinline__ void absorb(const Components &c, const ConnectArgs &args, u64 *picks, const Marks &marks,
                                       const PairList &list, u32 min_region, u32 round, bool begun, volatile u32 *flags) {
  for (;; round++, begun = false) {
    if (!begun) {
      const uint2 asked = FIRST < list.count ? __ldcg(&list.pairs[FIRST]) : make_uint2(0, 0);
      const bool any = pick(c, picks_of(args, picks, round), min_region, round, list, asked, FIRST, ALL);
      if (__syncthreads_or(any) && threadIdx.x == 0) flags[round % 3] = 1;
      grid_barrier(c.counters);
      const bool again = flags[round % 3];
      // The flag of the round after; those of this one and the last may still be being read.
      if (FIRST == 0) flags[(round + 1) % 3] = 0;
      if (!again) break;
    }
    hook<true>(c, args, picks_of(args, picks, round), picks_of(args, picks, round + 1), marks, FIRST, ALL, nullptr);
    grid_barrier(c.counters);
  }
}

// What is left of absorption after the first half of `round`, by one block where it is little; then numbers. Grid: cooperative.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_number(Components c, u64 *picks, uint2 *small, Late late, Marks marks, u16 *labels, RegionSums *regions, u32 round,
                   ConnectArgs args) {
  beside_last_kernel(c, args);
  __shared__ NumberShared shared;
  // Roots as the rounds before left them: few are joined to others in what follows.
  u32 root = FIRST;
  if (root < c.counters[COMPONENTS]) {
    uint2 head = load_head(c, root);
    root = root_of(c, args, root, head);
  }
  wait_for_last_kernel();
  const u32 asked_picker = __ldcg(&late.pickers[threadIdx.x]);
  const u32 pickers = c.counters[LATE_PICKERS], pairs = c.counters[LATE_PAIRS];
  if (pickers != 0) {
    if (pairs > LATE_PLACES || pickers > LATE_PICKER_PLACES) {
      absorb(c, args, picks, marks, small_pairs(c, args, small), args.min_region, round, true, c.counters + REST);
    } else {
      u32 *done = c.counters + LATE_DONE;
      if (blockIdx.x == 0) {
        absorb_late(shared, c, args, picks, marks, late, asked_picker, round);
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
  number(shared, c, args, marks, labels, regions, root);
}

// For frames that may be left with more regions than labels can name: doubles the smallest region and absorbs until
// they fit. Returns at once if they do. Grid: cooperative.
KERNEL __launch_bounds__(NUMBER_THREADS)
    connect_fit(Components c, u64 *picks, Marks marks, u16 *labels, RegionSums *regions, ConnectArgs args) {
  after_last_kernel(c, args);
  __shared__ NumberShared shared;
  if (c.counters[REGIONS] <= args.max_regions) return;
  volatile u32 *flags = c.counters + REST;
  u32 total, min_region = args.min_region;
  do {
    min_region *= 2;
    grid_barrier(c.counters);
    const u32 components = c.counters[COMPONENTS];
    for (u32 i = FIRST; i < components; i += ALL) picks_of(args, picks, 0)[i] = picks_of(args, picks, 1)[i] = ~0ull;
    if (FIRST < 3) flags[FIRST] = 0;
    grid_barrier(c.counters);
    absorb(c, args, picks, marks, PairList{c.edges, c.counters[EDGES]}, min_region, 0, false, flags);
    total = sum_groups(shared, marks);
  } while (total > args.max_regions);
  number(shared, c, args, marks, labels, regions, FIRST);
}
