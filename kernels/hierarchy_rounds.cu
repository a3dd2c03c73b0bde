// SPDX-License-Identifier: MPL-2.0
// The rounds of stage `hierarchy`, in which regions that touch join by mutual choices; mirrors `Graph` of src/post/hierarchy. As long as
// there are many regions, all blocks of a grid share them; the last rounds are of one block, which has what is left in shared memory.
// The result does not depend on the order in which threads run: sums are integers, selections are minima.
#include "batch.cuh"
#include "hierarchy.cuh"
#include "select.cuh"

// A stage leaves one of so many regions; a round that joins fewer than one of so many is followed by an open one. Those of
// src/post/hierarchy/mod.rs.
#define HIERARCHY_STAGE 8
#define HIERARCHY_FEW 16

// Where the rounds are; `Hierarchy::counts` has it between launches.
struct Progress {
  u32 left, stage, round, floor;
  u32 within;  // as WITHIN of the counts
  bool open, joins;

  // Goes on behind a round that has joined so many regions.
  __device__ __forceinline__ void count(u32 joined) {
    joins = joined > 0;
    open = HIERARCHY_FEW * joined < left;
    left -= joined;
    round++;
  }
  // Whether nothing is left to join within the areas of a prior, and merges across them follow.
  __device__ __forceinline__ bool is_at_areas(const Hierarchy &h, const HierarchyArgs &args) const {
    return h.prior && args.joins_areas && !joins && within == NO_JOIN;
  }
};
__device__ __forceinline__ Progress load_progress(const Hierarchy &h) {
  const u32 *const counts = h.counts;
  return {counts[LEFT], counts[STAGE], counts[ROUND], counts[FLOOR], counts[WITHIN], counts[OPEN] != 0, counts[JOINS] != 0};
}
__device__ __forceinline__ void store_progress(const Hierarchy &h, const Progress &progress) {
  h.counts[LEFT] = progress.left;
  h.counts[STAGE] = progress.stage;
  h.counts[ROUND] = progress.round;
  h.counts[FLOOR] = progress.floor;
  h.counts[WITHIN] = progress.within;
  h.counts[OPEN] = progress.open;
  h.counts[JOINS] = progress.joins;
}

// Whether there is another round; begins the stage that it is in. `floor_of(rank)` gives the height of the merge of a rank, from 0, below
// which no merge of the next stage is to be.
template <class FloorOf>
__device__ __forceinline__ bool has_round(Progress &progress, u32 count, u32 until, FloorOf floor_of) {
  if (!progress.joins) return false;
  u32 ended = 0;
  while (progress.left <= max(progress.stage, 1)) {
    if (2 * progress.stage <= until) return false;
    ended = progress.stage;
    progress.stage /= HIERARCHY_STAGE;
  }
  // Of several stages that end at once, the last has the highest floor. Threads that took one after the other could take the second twice.
  if (ended > 0 && progress.round > 0) progress.floor = floor_of(count - 2 * ended - 1);
  return true;
}

// Goes on with merges across areas, none of which is to be lower than any within; `floor_of` as above.
template <class FloorOf>
__device__ __forceinline__ void begin_across(Progress &progress, u32 count, FloorOf floor_of) {
  progress.within = count - progress.left;
  if (progress.within > 0) progress.floor = max(progress.floor, floor_of(progress.within - 1));
  progress.joins = true;
}

// Root of region `i`, which has selected `own`, after a round: the lower of the two at the end of its path that select each other;
// itself if it stays. Selections must not change meanwhile; `selection_of(i)` gives that of a region.
template <class SelectionOf>
__device__ __forceinline__ u32 root_of(SelectionOf selection_of, bool open, u32 i, u64 own) {
  while (own != NO_SELECTION) {
    const u32 to = (u32)own;
    const u64 onward = selection_of(to);
    if ((u32)onward == i) return min(i, to);
    if (!open) break;
    i = to;
    own = onward;
  }
  return i;
}

// Items of a warp that wait until there is one for each lane, as few slots of a table have a pair and the cost of joining is a long chain
// of arithmetic.
#define WAITING 64

// Calls `work(item)` for what `take(i, item)` takes of the items from `first`, the warp's next 32, on, every `step`-th 32 below `total`. All
// lanes call it; `waiting` is the warp's own memory.
template <class Item, class Take, class Work>
__device__ __forceinline__ void for_taken(Item (&waiting)[WAITING], u32 first, u32 step, u32 total, Take take, Work work) {
  Item item;
  bool taken = first < total && take(first + lane_id(), item), more;
  u32 count = 0;
  do {
    const u32 lanes = __ballot_sync(FULL_WARP, taken);
    if (taken) waiting[count + rank_among(lanes)] = item;
    count += __popc(lanes);
    first += step;
    more = first < total;
    // Comes while others are worked on.
    if (more) taken = take(first + lane_id(), item);
    __syncwarp();
    while (count >= (more ? 32u : 1u)) {
      const u32 now = min(count, 32u);
      count -= now;
      if (lane_id() < now) work(waiting[count + lane_id()]);
      __syncwarp();
    }
  } while (more);
}

// What a region holds goes to the root that it has joined.
__device__ __forceinline__ void add_region(HierarchySums *to, const HierarchySums &sums) {
  atomicAdd(&to->count, sums.count);
#pragma unroll
  for (int j = 0; j < 3; j++) atomicAdd(&to->color[j], sums.color[j]);
#pragma unroll
  for (int j = 0; j < 2; j++) atomicAdd(&to->position[j], sums.position[j]);
}

// A thread's place among slots, from the front, and among regions, from the back: warps of all blocks take turns, so that what is
// little is shared by all multiprocessors, and no warp has much of both.
__device__ __forceinline__ u32 slot_turn() { return (threadIdx.x / 32 * gridDim.x + blockIdx.x) * 32 + lane_id(); }
__device__ __forceinline__ u32 region_turn() { return ALL - 1 - slot_turn(); }

// Gives the heights of what has joined in the round before to their roots, and notes, where merges are listed, how many pixels each has
// become part of. While sums are only read.
__device__ __forceinline__ void take_heights(const Hierarchy &h, u32 count, u32 round) {
  for (u32 i = region_turn(); round > 0 && i < count; i += ALL) {
    // The thread's own.
    const HierarchyJoin join = h.joins[i];
    if (join.into == NO_JOIN || join.round != round - 1) continue;
    atomicMax(&h.heights[join.root], join.height);
    if (h.areas) h.areas[i] = __ldcg(&h.sums[join.root].count);
  }
}

// A slot that has a pair.
struct FilledSlot {
  u32 slot, key;
};
// Of each warp of a block.
template <u32 THREADS>
using WaitingSlots = FilledSlot[THREADS / 32][WAITING];

// Calls `work(filled)` for the slots of a table that have a pair, those of this warp's turns.
template <u32 THREADS, class Work>
__device__ __forceinline__ void for_pairs(WaitingSlots<THREADS> &waiting, const PairTable &table, u32 slots, Work work) {
  const auto take = [&](u32 slot, FilledSlot &filled) {
    filled = {slot, __ldcg(&table.keys[slot])};
    return filled.key != NO_PAIR;
  };
  for_taken(waiting[threadIdx.x / 32], slot_turn() - lane_id(), ALL, slots, take, work);
}

// First half of a round: every region selects the neighbor of least cost. The next round's table is cleared.
template <u32 THREADS>
__device__ __forceinline__ void select_neighbors(WaitingSlots<THREADS> &waiting, const Hierarchy &h, const HierarchyArgs &args, u32 round,
                                                 u32 slots, u32 next_slots) {
  const PairTable table = pairs_of(h, round), next = pairs_of(h, round + 1);
  u64 *const selected = of_turn(h.selected, round);
  for_pairs<THREADS>(waiting, table, slots, [&](const FilledSlot &filled) {
    const u32 a = filled.key >> 16, b = filled.key & 0xffffu;
    const Boundary boundary = load_boundary(h, table, round, filled.slot, a, b);
    const u64 cost = join_cost(args, load_region(h, a), load_region(h, b), boundary);
    atomicMin(&selected[a], cost << 32 | b);
    atomicMin(&selected[b], cost << 32 | a);
  });
  for (u32 slot = region_turn(); slot < next_slots; slot += ALL) clear_pair(next, slot);
}

// Second half: regions join, and give what they hold to the root of their way; pairs are named anew, in the next round's table.
// Returns how many of this thread's regions have joined. Clears the selections of the next round.
template <u32 THREADS>
__device__ __forceinline__ u32 join_neighbors(WaitingSlots<THREADS> &waiting, const Hierarchy &h, u32 count, const Progress &progress, u32 slots, u32 next_slots) {
  const u32 round = progress.round;
  const PairTable table = pairs_of(h, round), next = pairs_of(h, round + 1);
  const u64 *const selected = of_turn(h.selected, round);
  const auto selection_of = [&](u32 i) { return __ldcg(&selected[i]); };
  u64 *const next_selected = of_turn(h.selected, round + 1);
  u32 joined = 0;
  for (u32 i = region_turn(); i < count; i += ALL) {
    next_selected[i] = NO_SELECTION;
    // All at once: each takes its time to come.
    const u32 joined_before = h.joins[i].into, within = __ldcg(&h.heights[i]);
    const u64 own = selection_of(i);
    const HierarchySums sums = load_region(h, i);
    if (joined_before != NO_JOIN) continue;
    const u32 root = root_of(selection_of, progress.open, i, own), into = (u32)own;
    if (root == i) continue;
    const u32 height = max(max((u32)(own >> 32), max(within, __ldcg(&h.heights[into]))), progress.floor);
    h.joins[i] = {into, height, round, root};
    add_region(h.sums + root, sums);
    joined++;
  }
  for_pairs<THREADS>(waiting, table, slots, [&](const FilledSlot &filled) {
    const u32 a = filled.key >> 16, b = filled.key & 0xffffu;
    const u64 own_a = selection_of(a), own_b = selection_of(b);
    const Boundary boundary = load_boundary(h, table, round, filled.slot, a, b);
    const u32 root_a = root_of(selection_of, progress.open, a, own_a), root_b = root_of(selection_of, progress.open, b, own_b);
    if (root_a != root_b) add_pair(next, next_slots - 1, pair_key(root_a, root_b), boundary);
  });
  return joined;
}

// The height of the merge of a rank, from 0. The block's threads call it behind a barrier.
template <u32 THREADS>
__device__ __forceinline__ u32 height_of_rank(typename BlockSelect<THREADS>::Shared &shared, const Hierarchy &h, u32 count, u32 rank) {
  const auto height_of = [&](u32 i, u32 &height) {
    const HierarchyJoin join = load_join(h, i);
    height = join.height;
    return join.into != NO_JOIN;
  };
  return BlockSelect<THREADS>::select(shared, count, rank, height_of).key;
}

template <u32 THREADS>
__device__ __forceinline__ void do_rounds(const Hierarchy &h, u32 *counters, const HierarchyArgs &args) {
  __shared__ typename BlockSelect<THREADS>::Shared shared;
  __shared__ WaitingSlots<THREADS> waiting;
  const u32 count = h.counts[SUPERPIXELS];
  Progress progress = load_progress(h);
  u32 slots = slots_for(args, count);
  // The first block finds it, all get it. Behind a barrier of the grid.
  const auto floor_of = [&](u32 rank) {
    if (blockIdx.x == 0) {
      const u32 height = height_of_rank<THREADS>(shared, h, count, rank);
      if (threadIdx.x == 0) h.counts[FLOOR] = height;
    }
    grid_barrier(counters + ARRIVED);
    return __ldcg(&h.counts[FLOOR]);
  };
  while (has_round(progress, count, args.until, floor_of)) {
    if (args.planar && progress.left <= LAST_REGIONS) break;
    const u32 round = progress.round;
    // For those of the regions before the round, which is enough for those after it.
    const u32 next_slots = slots_for(args, progress.left);
    u32 *const joined_in = h.counts + JOINED + round % 3;
    if (FIRST == 0) h.counts[JOINED + (round + 1) % 3] = 0;
    select_neighbors<THREADS>(waiting, h, args, round, slots, next_slots);
    take_heights(h, count, round);
    grid_barrier(counters + ARRIVED);
    const u32 own = join_neighbors<THREADS>(waiting, h, count, progress, slots, next_slots);
    if (own) atomicAdd(joined_in, own);
    grid_barrier(counters + ARRIVED);
    progress.count(__ldcg(joined_in));
    slots = next_slots;
    if (!progress.is_at_areas(h, args)) continue;
    begin_across(progress, count, floor_of);
    // Nothing has joined, so that the next table is as it was cleared.
    const PairTable next = pairs_of(h, progress.round);
    for_pairs_across(h, args, count, slot_turn(), ALL, [&](u32 key, const Boundary &boundary) { add_pair(next, slots - 1, key, boundary); });
    grid_barrier(counters + ARRIVED);
  }
  if (progress.round == 0) return;
  take_heights(h, count, progress.round);
  for (u32 base = FIRST - lane_id(); base < count; base += ALL) {
    const u32 i = base + lane_id();
    const u32 heads = __ballot_sync(FULL_WARP, i < count && load_join(h, min(i, count - 1)).into == NO_JOIN);
    if (lane_id() == 0) h.heads[base / 32] = heads;
  }
  if (FIRST == 0) {
    h.counts[SLOTS] = slots;
    store_progress(h, progress);
  }
}

// The rounds that have more regions than `hierarchy_last_rounds` takes, all where labels are not connected: their pairs have no bound
// that would fit shared memory.
// Grid: cooperative, blocks of HIERARCHY_THREADS, all resident; a pair and a region a thread by turns.
// In: of `h` what the kernels before have left.
// Out: of `h` joins, heights, sums of what is left [regions], the table of the next round [slots], a bit for each region that is left, the
// progress; areas [regions], unless that is null.
// Race-free: halves of rounds are between barriers of the grid. In the first, selections and heights
// change by atomic minima and maxima, and a slot of the next table has one thread that clears it, as an area has that writes it; sums are
// only read. In the second, selections and heights
// are only read, but for those of the next round; a region that joins is read and written by its own thread, its root, which does not
// join, by atomic additions of integers; pairs take slots of the next table by compare-and-swap. All blocks see the same numbers
// behind a barrier, so that they go the same way; a number is cleared when all have read it, two rounds later.
KERNEL __launch_bounds__(HIERARCHY_THREADS) hierarchy_rounds(Hierarchy h, u32 *counters, HierarchyArgs args, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, counters);
  if (is_absent(batch)) return;
  do_rounds<HIERARCHY_THREADS>(h, counters, args);
}

// The kernel above where frames are more than multiprocessors; blocks of HIERARCHY_THREADS_NARROW.
KERNEL __launch_bounds__(HIERARCHY_THREADS_NARROW, 2)
    hierarchy_rounds_narrow(Hierarchy h, u32 *counters, HierarchyArgs args, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, counters);
  if (is_absent(batch)) return;
  do_rounds<HIERARCHY_THREADS_NARROW>(h, counters, args);
}

#define LAST_PAIRS (3 * LAST_REGIONS)
#define LAST_SLOTS (4 * LAST_REGIONS)

// What the last rounds work on: the regions that are left, in the order of their labels and named by their places, and the pairs that
// touch. A pair whose regions have become one, or that has been added to another, is NO_PAIR.
struct LastShared {
  HierarchySums sums[LAST_REGIONS];
  u64 selected[2][LAST_REGIONS], contrasts[LAST_PAIRS];
  u32 heights[LAST_REGIONS], labels[LAST_REGIONS];
  u32 keys[LAST_PAIRS], lengths[LAST_PAIRS], held[LAST_PAIRS];
  // Hash table by keys: a pair each, NO_PAIR where there is none.
  u32 slots[LAST_SLOTS];
  u32 pairs, joined[3];
};

// Between rounds the waiting pairs give way to what selects.
template <u32 THREADS>
union LastScratch {
  u32 waiting[THREADS / 32][WAITING];
  typename BlockSelect<THREADS>::Shared select;
};

// Gives the regions that are left their places, and loads them and the pairs of the next round. `place_of` [regions] is written.
template <u32 THREADS>
__device__ __forceinline__ void load_last(LastShared &shared, typename BlockScan<THREADS>::Shared &scan, const Hierarchy &h, u32 count,
                                          const Progress &progress, u32 slots, u32 *place_of) {
  const u32 thread = threadIdx.x, words = (count + 31) / 32, each = (words + THREADS - 1) / THREADS;
  u32 own = 0;
  for (u32 word = each * thread; word < min(each * (thread + 1), words); word++) own += __popc(h.heads[word]);
  u32 place = BlockScan<THREADS>::template exclusive_sum<false>(scan, own);
  for (u32 word = each * thread; word < min(each * (thread + 1), words); word++) {
    for (u32 bits = h.heads[word]; bits; bits &= bits - 1, place++) {
      const u32 label = 32 * word + (u32)__ffs((i32)bits) - 1;
      shared.labels[place] = label;
      place_of[label] = place;
    }
  }
  if (thread == 0) shared.pairs = 0;
  if (thread < 3) shared.joined[thread] = 0;
  __syncthreads();
  if (thread < LAST_REGIONS) shared.selected[progress.round & 1][thread] = NO_SELECTION;
  if (thread < progress.left) {
    const u32 label = shared.labels[thread];
    shared.sums[thread] = load_region(h, label);
    shared.heights[thread] = h.heights[label];
  }
  const PairTable table = pairs_of(h, progress.round);
  for (u32 base = thread - lane_id(); base < slots; base += THREADS) {
    const u32 slot = base + lane_id(), key = slot < slots ? table.keys[slot] : NO_PAIR;
    const u32 lanes = __ballot_sync(FULL_WARP, key != NO_PAIR);
    u32 at = 0;
    if (lane_id() == 0 && lanes) at = atomicAdd(&shared.pairs, __popc(lanes));
    at = __shfl_sync(FULL_WARP, at, 0) + rank_among(lanes);
    if (key == NO_PAIR) continue;
    const u32 a = key >> 16, b = key & 0xffffu;
    const Boundary boundary = load_boundary(h, table, progress.round, slot, a, b);
    shared.keys[at] = place_of[a] << 16 | place_of[b];
    shared.lengths[at] = boundary.length;
    shared.held[at] = boundary.held;
    shared.contrasts[at] = boundary.contrast;
  }
  __syncthreads();
}

// A pair joins the one of the same key that has come before; the first one stays.
__device__ __forceinline__ void insert_last(LastShared &shared, u32 pair) {
  const u32 key = shared.keys[pair];
  for (u32 slot = key * 0x9e3779b1u >> 7 & (LAST_SLOTS - 1);; slot = (slot + 1) & (LAST_SLOTS - 1)) {
    const u32 first = atomicCAS(&shared.slots[slot], NO_PAIR, pair);
    if (first == NO_PAIR) return;
    if (shared.keys[first] != key) continue;
    atomicAdd(&shared.lengths[first], shared.lengths[pair]);
    atomicAdd(&shared.held[first], shared.held[pair]);
    atomicAdd(&shared.contrasts[first], shared.contrasts[pair]);
    shared.keys[pair] = NO_PAIR;
    return;
  }
}

// The cut that leaves `regions` of `count`, `joined` of which have joined, or as many as there can be; at most `most` merges. The block's
// threads call it.
template <u32 THREADS>
__device__ __forceinline__ Cut find_cut(typename BlockSelect<THREADS>::Shared &shared, const Hierarchy &h, u32 count, u32 joined, u32 regions,
                                        u32 most) {
  const u32 wanted = min(count > regions ? count - regions : 0, most);
  if (min(wanted, joined) == 0) return {0, 0, 0};
  if (wanted >= joined) return {1, 0xffffffffu, 0xffffffffu};
  const typename BlockSelect<THREADS>::Found height = BlockSelect<THREADS>::select(shared, count, wanted - 1, [&](u32 i, u32 &key) {
    const HierarchyJoin join = load_join(h, i);
    key = join.height;
    return join.into != NO_JOIN;
  });
  if (height.rank + 1 == height.equal) return {1, height.key, 0xffffffffu};
  const typename BlockSelect<THREADS>::Found last = BlockSelect<THREADS>::select(shared, count, height.rank, [&](u32 i, u32 &key) {
    const HierarchyJoin join = load_join(h, i);
    key = order_of(join, i);
    return join.into != NO_JOIN && join.height == height.key;
  });
  return {1, height.key, last.key};
}

// Takes up the pairs across areas where no pair is left, by the places of their regions, and clears what selects. The pairs that areas have
// are many, those of so few regions are not: each gets its place first, in words that selections leave free meanwhile, then all add up.
template <u32 THREADS>
__device__ __forceinline__ void load_across(LastShared &shared, const Hierarchy &h, const HierarchyArgs &args, u32 count, const u32 *place_of) {
  static_assert(sizeof shared.selected >= sizeof shared.slots, "a word for each slot");
  u32 *const pair_of = (u32 *)shared.selected;
  const u32 thread = threadIdx.x;
  for (u32 slot = thread; slot < LAST_SLOTS; slot += THREADS) shared.slots[slot] = NO_PAIR;
  if (thread == 0) shared.pairs = 0;
  __syncthreads();
  const auto slot_of = [&](u32 key) {
    const u32 places = pair_key(place_of[key >> 16], place_of[key & 0xffffu]);
    return insert_key<NO_PAIR>(places, LAST_SLOTS - 1, [&](u32 slot) { return shared.slots + slot; });
  };
  for_pairs_across(h, args, count, thread, THREADS, [&](u32 key, const Boundary &) {
    const Inserted inserted = slot_of(key);
    if (!inserted.fresh) return;
    const u32 pair = atomicAdd(&shared.pairs, 1);
    pair_of[inserted.slot] = pair;
    shared.keys[pair] = shared.slots[inserted.slot];
    shared.lengths[pair] = shared.held[pair] = 0;
    shared.contrasts[pair] = 0;
  });
  __syncthreads();
  for_pairs_across(h, args, count, thread, THREADS, [&](u32 key, const Boundary &boundary) {
    const u32 pair = pair_of[slot_of(key).slot];
    atomicAdd(&shared.lengths[pair], boundary.length);
    atomicAdd(&shared.held[pair], boundary.held);
    atomicAdd(&shared.contrasts[pair], boundary.contrast);
  });
  __syncthreads();
  for (u32 i = thread; i < LAST_REGIONS; i += THREADS) shared.selected[0][i] = shared.selected[1][i] = NO_SELECTION;
  __syncthreads();
}

template <u32 THREADS>
__device__ __forceinline__ void do_last_rounds(const Hierarchy &h, const HierarchyArgs &args) {
  static_assert(LAST_REGIONS <= THREADS, "a thread for each region");
  __shared__ LastShared shared;
  __shared__ LastScratch<THREADS> scratch;
  const u32 count = h.counts[SUPERPIXELS], thread = threadIdx.x;
  Progress progress = load_progress(h);
  const auto floor_of = [&](u32 rank) { return height_of_rank<THREADS>(scratch.select, h, count, rank); };
  if (has_round(progress, count, args.until, floor_of)) {
    const u32 slots = progress.round ? h.counts[SLOTS] : slots_for(args, count);
    load_last<THREADS>(shared, scratch.select.scan, h, count, progress, slots, h.numbers);
    u32 (&waiting)[WAITING] = scratch.waiting[thread / 32];
    u32 pairs = shared.pairs;
    const u32 label = thread < progress.left ? shared.labels[thread] : NO_JOIN;
    const auto take = [&](u32 i, u32 &pair) {
      pair = i;
      return i < pairs && shared.keys[i] != NO_PAIR;
    };
    bool joined = label == NO_JOIN;
    do {
      const u32 round = progress.round;
      u64 *const selected = shared.selected[round & 1];
      const auto selection_of = [&](u32 i) { return selected[i]; };
      for_taken(waiting, thread - lane_id(), THREADS, pairs, take, [&](u32 pair) {
        const u32 a = shared.keys[pair] >> 16, b = shared.keys[pair] & 0xffffu;
        const Boundary boundary = {shared.lengths[pair], shared.held[pair], shared.contrasts[pair]};
        const u64 cost = join_cost(args, shared.sums[a], shared.sums[b], boundary);
        atomicMin(&selected[a], cost << 32 | b);
        atomicMin(&selected[b], cost << 32 | a);
      });
      for (u32 slot = thread; slot < LAST_SLOTS; slot += THREADS) shared.slots[slot] = NO_PAIR;
      __syncthreads();
      if (thread == 0) shared.joined[(round + 1) % 3] = 0;
      if (thread < LAST_REGIONS) shared.selected[(round + 1) & 1][thread] = NO_SELECTION;
      u32 root = thread, height = 0;
      if (!joined) {
        const u64 own = selected[thread];
        root = root_of(selection_of, progress.open, thread, own);
        if (root != thread) {
          const u32 into = (u32)own;
          height = max(max((u32)(own >> 32), max(shared.heights[thread], shared.heights[into])), progress.floor);
          h.joins[label] = {shared.labels[into], height, round, shared.labels[root]};
          add_region(shared.sums + root, shared.sums[thread]);
          joined = true;
        }
      }
      const u32 lanes = __ballot_sync(FULL_WARP, root != thread);
      if (lane_id() == 0 && lanes) atomicAdd(&shared.joined[round % 3], __popc(lanes));
      for (u32 pair = thread; pair < pairs; pair += THREADS) {
        const u32 key = shared.keys[pair];
        if (key == NO_PAIR) continue;
        const u32 a = key >> 16, b = key & 0xffffu;
        const u32 root_a = root_of(selection_of, progress.open, a, selected[a]);
        const u32 root_b = root_of(selection_of, progress.open, b, selected[b]);
        shared.keys[pair] = root_a == root_b ? NO_PAIR : pair_key(root_a, root_b);
      }
      __syncthreads();
      if (root != thread) {
        atomicMax(&shared.heights[root], height);
        if (h.areas) h.areas[label] = shared.sums[root].count;
      }
      for (u32 pair = thread; pair < pairs; pair += THREADS) {
        if (shared.keys[pair] != NO_PAIR) insert_last(shared, pair);
      }
      __syncthreads();
      progress.count(shared.joined[round % 3]);
      if (progress.is_at_areas(h, args)) {
        begin_across(progress, count, floor_of);
        load_across<THREADS>(shared, h, args, count, h.numbers);
        pairs = shared.pairs;
      }
    } while (has_round(progress, count, args.until, floor_of));
  }
  const Cut cut = find_cut<THREADS>(scratch.select, h, count, count - progress.left, args.regions,
                                    args.crosses ? NO_JOIN : progress.within);
  if (thread == 0) {
    h.counts[CUT] = cut.any;
    h.counts[CUT + 1] = cut.height;
    h.counts[CUT + 2] = cut.last;
  }
}

// The last rounds, until few enough regions are left to undo what is too much, and what that is.
// Grid: a block of LAST_THREADS, a region and a pair a thread.
// In: of `h` what `hierarchy_rounds` has left, or `hierarchy_start` where so few regions are possible.
// Out: joins [regions], of the counts those of a `Cut`; areas [regions], unless that is null; numbers [regions], of no use.
// Race-free: parts of rounds are between barriers. In the first, selections and heights change by atomic minima and maxima, and sums and
// boundaries are only read. In the second, selections and heights are only read, but for those of the next round; a region that joins is read
// by its own thread, its root, which does not join, changed by atomic additions of integers; a pair has one thread, which names it anew. In
// the third, keys are only read, but for those that no slot has, and what a pair in a slot holds changes by atomic additions.
KERNEL __launch_bounds__(LAST_THREADS) hierarchy_last_rounds(Hierarchy h, HierarchyArgs args, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h);
  if (is_absent(batch)) return;
  do_last_rounds<LAST_THREADS>(h, args);
}

// The kernel above where a multiprocessor has several frames; block: LAST_THREADS_NARROW.
KERNEL __launch_bounds__(LAST_THREADS_NARROW) hierarchy_last_rounds_narrow(Hierarchy h, HierarchyArgs args, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h);
  if (is_absent(batch)) return;
  do_last_rounds<LAST_THREADS_NARROW>(h, args);
}
