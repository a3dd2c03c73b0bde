// SPDX-License-Identifier: MPL-2.0
// Stage `temporal/identify`; mirrors identify.rs, matching.rs and merged.rs of src/temporal. It knows regions by the
// final label of each component, however that came about. All choices are maxima of keys, so the order of threads does not
// matter.
#include "batch.cuh"
#include "connect.cuh"
#include "regions.cuh"
#include "temporal.cuh"

// The largest component of every cluster where nothing is absorbed: else the first round of that finds them.
// Grid: any number of blocks of TEMPORAL_THREADS, a component a thread by turns.
// In: clusters and sums [components].
// Out: largest [cells], by atomic maxima.
KERNEL __launch_bounds__(TEMPORAL_THREADS) temporal_largest(Components c, Temporal t, TemporalArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, t);
  if (is_absent(batch)) return;
  find_largest(c, t.largest, args.cells, args.connectivity, FIRST, ALL, [](u32, u32, u32) {});
}

// Final label of a pixel.
__device__ __forceinline__ u32 label_at(const Components &c, const u16 *component_label, const GridArgs &grid,
                                        const TemporalArgs &args, u32 x, u32 y) {
  const u32 component = c.tile_first[y / TILE * args.tiles_x + x / TILE] + c.local[(size_t)y * grid.width + x];
  return component_label[component];
}

// Sets this frame's slots, and finds the owner of each region.
// Grid: a thread a slot; block: TEMPORAL_THREADS.
// In: largest, positions, sources [cells], slots of the last frame.
// Out: owners [regions], by atomic maxima; largest_label, reseed_claims, slots [cells]; part_claims [cells][parts], zero.
// Race-free: a thread writes the entries of its own slot.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_own(Components c, const u16 *component_label, Temporal t, GridArgs grid, TemporalArgs args, u32 warm,
                 Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, t);
  if (is_absent(batch)) return;
  const u32 k = FIRST;
  if (k >= grid.nx * grid.ny) return;
  const u64 largest = t.largest[k];
  u32 label = NONE;
  if (largest != 0) {
    const u32 pixel = index_of(largest);
    label = label_at(c, component_label, grid, args, pixel % grid.width, pixel / grid.width);
    // Of more regions than can be named the last have no label.
    if (label == NO_LABEL) {
      label = NONE;
      t.largest[k] = 0;
    }
    if (label != NONE) atomicMax(&t.owners[label], key_of((u32)(largest >> 32), k));
  }
  t.largest_label[k] = label;
  t.reseed_claims[k] = 0;
  for (u32 i = 0; i < args.parts; i++) t.part_claims[k * args.parts + i] = 0;
  const int2 position = t.positions[k];
  Slot slot = {{position.x, position.y}, {0, 0}, 0, 0, NONE, 0, {0, 0, 0}, 0};
  if (warm && !is_cut(*t.state, args) && t.sources[k].slot != NONE) {
    slot = t.slots_last[t.sources[k].slot];
    slot.position[0] = position.x;
    slot.position[1] = position.y;
    slot.reseeded = 0;
  }
  t.slots[k] = slot;
}

__device__ __forceinline__ bool owns(const Temporal &t, u32 k) {
  const u32 label = t.largest_label[k];
  return label != NONE && index_of(t.owners[label]) == k;
}

// The slot that owns a region, or NONE.
__device__ __forceinline__ u32 owner_of(const Temporal &t, const TemporalArgs &args, u32 label) {
  const u64 owner = args.in_slots ? t.owners[label] : 0;
  return owner == 0 ? NONE : index_of(owner);
}

// Counts an overlap of a region with an earlier one in the table of pairs.
__device__ __forceinline__ void count_overlap(const Temporal &t, const TemporalArgs &args, u32 label, u32 earlier, u32 n) {
  const u32 key = (label << 16 | earlier) + 1;
  const Inserted pair = insert_key<0>(key, args.pair_mask, [&](u32 slot) { return &t.pairs[slot].x; });
  if (pair.fresh) t.pair_list[atomicAdd(&t.state->pairs, 1)] = pair.slot;
  atomicAdd(&t.pairs[pair.slot].y, n);
}

// A pair of the table.
struct Overlap {
  u32 at, label, earlier, size;
};
__device__ __forceinline__ Overlap load_overlap(const Temporal &t, u32 i) {
  const u32 at = __ldcg(&t.pair_list[i]);
  const uint2 pair = __ldcg(&t.pairs[at]);
  return {at, (pair.x - 1) >> 16, (pair.x - 1) & 0xffffu, pair.y};
}

// The threads that match: a block, or a cooperative grid. After `meet` all threads see all writes before it. In a block it returns
// true if `any` was true in one of them; a grid does not need that.
struct BlockTeam {
  __device__ __forceinline__ u32 rank() const { return threadIdx.x; }
  __device__ __forceinline__ u32 size() const { return IDENTIFY_THREADS; }
  __device__ __forceinline__ bool meet(bool any) const { return __syncthreads_or(any); }
};
struct GridTeam {
  u32 *barrier;
  __device__ __forceinline__ u32 rank() const { return FIRST; }
  __device__ __forceinline__ u32 size() const { return ALL; }
  __device__ __forceinline__ bool meet(bool) const {
    grid_barrier(barrier);
    return true;
  }
};

// Up to so many pairs are left to one block; 4096 was the only other number tried, and the two were not compared.
#define FEW_PAIRS 2048
// A thread holds so many of its pairs.
#define HELD 2
// Keys begin with the round, so that none has to forget what an earlier one has left; an overlap is at most 2^28.
#define ROUND_BIT 61

template <class Team>
__device__ __forceinline__ void match(const Temporal &t, const TemporalArgs &args, Team team, u32 pairs) {
  const u32 rank = team.rank(), size = team.size();
  u32 *taken = t.taken, *free_no_more = t.taken + args.max_regions;
  u64 *best_earlier = t.best, *best_label = t.best + args.max_regions;
  Overlap held[HELD];
  u32 left = 0;
#pragma unroll
  for (u32 j = 0; j < HELD; j++) {
    const u32 i = rank + j * size;
    held[j] = i < pairs ? load_overlap(t, i) : Overlap{0, 0, 0, 0};
    left |= (u32)(i < pairs) << j;
  }
  for (u64 round = 1; round <= MATCH_ROUNDS; round++) {
    bool any = false;
    const auto is_free = [&](const Overlap &pair) {
      // At first nothing is taken.
      return round == 1 || (__ldcg(&taken[pair.label]) | __ldcg(&free_no_more[pair.earlier])) == 0;
    };
    const auto choose = [&](const Overlap &pair) {
      atomicMax(&best_earlier[pair.label], round << ROUND_BIT | key_of(pair.size, pair.earlier));
      atomicMax(&best_label[pair.earlier], round << ROUND_BIT | key_of(pair.size, pair.label));
      any = true;
    };
#pragma unroll
    for (u32 j = 0; j < HELD; j++) {
      if (left >> j & 1 && !is_free(held[j])) left &= ~(1u << j);
    }
#pragma unroll
    for (u32 j = 0; j < HELD; j++) {
      if (left >> j & 1) choose(held[j]);
    }
    for (u32 i = rank + HELD * size; i < pairs; i += size) {
      const Overlap pair = load_overlap(t, i);
      if (is_free(pair)) choose(pair);
    }
    if (!team.meet(any)) break;
    any = false;
    const auto unite = [&](const Overlap &pair) {
      const u64 there = __ldcg(&best_earlier[pair.label]), back = __ldcg(&best_label[pair.earlier]);
      if (there >> ROUND_BIT != round || index_of(there) != pair.earlier || index_of(back) != pair.label) return;
      taken[pair.label] = pair.earlier + 1;
      free_no_more[pair.earlier] = 1;
      any = true;
    };
#pragma unroll
    for (u32 j = 0; j < HELD; j++) {
      if (left >> j & 1) unite(held[j]);
    }
    for (u32 i = rank + HELD * size; i < pairs; i += size) unite(load_overlap(t, i));
    if (!team.meet(any)) break;
  }
  const auto forget = [&](const Overlap &pair) {
    best_earlier[pair.label] = best_label[pair.earlier] = 0;
    free_no_more[pair.earlier] = 0;
    t.pairs[pair.at] = make_uint2(0, 0);
  };
#pragma unroll
  for (u32 j = 0; j < HELD; j++) {
    if (rank + j * size < pairs) forget(held[j]);
  }
  for (u32 i = rank + HELD * size; i < pairs; i += size) forget(load_overlap(t, i));
  if (rank == 0) t.state->pairs = 0;
}

// Regions without an identity and free identities choose each other: those pairs unite that are each other's best. Leaves the
// table and what belongs to its pairs as the next frame wants to find it; who reads `taken` clears that.
// Grid: cooperative, blocks of IDENTIFY_THREADS, all resident; a pair a thread by turns. Few pairs the first block has for itself, since
// a barrier of the grid takes longer than what they ask for.
// In: the table of pairs.
// Out: taken [2][regions]; the table, empty.
// Race-free: choices are atomic maxima, between barriers; of the pairs of a region or of an earlier one only one unites.
KERNEL __launch_bounds__(IDENTIFY_THREADS) temporal_match(Temporal t, TemporalArgs args, Batch batch) {
  after_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  const u32 pairs = __ldcg(&t.state->pairs);
  // In a batch a frame has one block, since all of a grid that meets have to be on the device at once.
  if (pairs > FEW_PAIRS && gridDim.x > 1) {
    match(t, args, GridTeam{t.state->barrier}, pairs);
  } else if (blockIdx.x == 0 && pairs > 0) {
    match(t, args, BlockTeam(), pairs);
  }
}

// The identity that comes `rank` after `next`; 0 is no identity.
__device__ __forceinline__ u32 id_after(u32 next, u32 rank) {
  const u32 id = next + rank;
  return id < next ? id + 1 : id;
}

// The number of this block in the order in which those of its grid begin. The ticket is zero at the start of the grid. One barrier.
__device__ __forceinline__ u32 order_of_block(u32 *ticket) {
  __shared__ u32 order;
  if (threadIdx.x == 0) order = atomicAdd(ticket, 1);
  __syncthreads();
  return order;
}

// How many tracks begin in threads before this one, in that order of blocks, and how many until the end of its block.
struct NewTracks {
  u32 before, until;
};

// Blocks tell each other how many tracks begin in them: none waits for one that has not begun. Five barriers.
__device__ __forceinline__ NewTracks count_new(u32 *new_tracks, u32 order, bool is_new) {
  typedef BlockScan<TEMPORAL_THREADS> Scan;
  __shared__ Scan::Shared scan;
  const u32 rank = Scan::exclusive_sum<false>(scan, is_new), own = scan.total;
  if (threadIdx.x == 0) store_release(new_tracks + order, own + 1);
  u32 others = 0;
  for (u32 i = threadIdx.x; i < order; i += TEMPORAL_THREADS) others += wait_for_change(new_tracks + i, 0) - 1;
  Scan::exclusive_sum<true>(scan, others);
  return {scan.total + rank, scan.total + own};
}

// Overlaps of regions without an identity with the last frame's, and what regions without a cluster hold.
// Grid: any number of blocks of IDENTIFY_THREADS over the sample lattice.
// In: labels of both frames, owners, slots, cells.
// Out: the table of pairs; sums [regions][6], by atomic additions; new_tracks [blocks], zero.
// Race-free: slots of the table are taken by compare-and-swap, overlaps added by atomics.
KERNEL __launch_bounds__(IDENTIFY_THREADS)
    temporal_identify(Components c, const u16 *component_label, Temporal t, GridArgs grid, TemporalArgs args, u32 follows,
                      Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, component_label, t);
  if (is_absent(batch)) return;
  const bool warm = follows && !is_cut(*t.state, args);
  const u32 samples = grid.sample_width * grid.sample_height, step = grid.sample_step;
  const auto label_of = [&](u32 i) {
    return label_at(c, component_label, grid, args, i % grid.sample_width * step, i / grid.sample_width * step);
  };
  // Labels are older than owners, where those are wanted at all.
  if (!args.in_slots) wait_for_last_kernel();
  const u32 asked = FIRST < samples ? label_of(FIRST) : 0;
  if (args.in_slots) wait_for_last_kernel();
  for (u32 i = FIRST; i < args.name_blocks; i += ALL) t.new_tracks[i] = 0;
  for (u32 base = FIRST / 32 * 32; base < samples; base += ALL) {
    const u32 i = base + lane_id(), sy = i / grid.sample_width, x = (i - sy * grid.sample_width) * step, y = sy * step;
    u32 label = NO_LABEL, earlier = NONE;
    if (i < samples) label = i == FIRST ? asked : label_of(i);
    if (label != NO_LABEL) {
      const u32 k = owner_of(t, args, label);
      if (args.in_slots && k == NONE) {
        const u32 feature = t.features[(size_t)y * grid.width + x];
        u64 *sums = t.sums + 6 * (size_t)label;
        const u32 values[6] = {1, x, y, feature_0(feature), feature_1(feature), feature_2(feature)};
        for (int j = 0; j < 6; j++) atomicAdd(&sums[j], (u64)values[j]);
      }
      if (warm && (k == NONE || t.slots[k].id == 0)) {
        const u32 gx = min(x / grid.step, grid.nx - 1), gy = min(y / grid.step, grid.ny - 1);
        const int2 move = args.in_slots ? t.moves[gy * grid.nx + gx]
                                        : int2{whole_px(t.state->shift[0]), whole_px(t.state->shift[1])};
        earlier = t.labels[(size_t)clamp_position((i32)y - move.y, grid.height) * grid.width +
                           clamp_position((i32)x - move.x, grid.width)];
        // A region whose cluster owns one keeps its identity.
        if (earlier == NO_LABEL) earlier = NONE;
        const u32 cell = earlier == NONE ? NONE : t.cells[earlier];
        if (cell >> PART_BIT == 0 && owns(t, (cell >> 16) * grid.nx + (cell & 0xffffu))) earlier = NONE;
      }
    }
    if (__ballot_sync(FULL_WARP, earlier != NONE) == 0) continue;
    const u64 pair = earlier == NONE ? ~0ull : (u64)label << 32 | earlier;
    const u32 same = __match_any_sync(FULL_WARP, pair);
    if (earlier != NONE && (u32)__ffs(same) - 1 == lane_id()) count_overlap(t, args, label, earlier, __popc(same));
  }
}

// Centroid of the `n` samples of a region without a cluster, in 1/16 px.
__device__ __forceinline__ int2 centroid(const Temporal &t, u32 label, u64 n) {
  const u64 *sums = t.sums + 6 * (size_t)label;
  return {(i32)((2 * POSITION_UNIT * sums[1] + n) / (2 * n)), (i32)((2 * POSITION_UNIT * sums[2] + n) / (2 * n))};
}

// The last frame's region at a place: where it is if the pixel is similar, else where its cell comes from; or NONE.
__device__ __forceinline__ u32 origin(const Temporal &t, const GridArgs &grid, int2 center) {
  const i32 x = clamp_position(center.x / POSITION_UNIT, grid.width), y = clamp_position(center.y / POSITION_UNIT, grid.height);
  const u32 gx = min((u32)x / grid.step, grid.nx - 1), gy = min((u32)y / grid.step, grid.ny - 1);
  const int2 move = t.moves[gy * grid.nx + gx];
  const size_t here = (size_t)y * grid.width + x;
  const size_t from = (size_t)clamp_position(y - move.y, grid.height) * grid.width + clamp_position(x - move.x, grid.width);
  const u32 still = t.labels[here], moved = t.labels[from];
  const u32 earlier = feature_difference(t.features[here], t.features_last[here]) < STILL ? still : moved;
  return earlier == NO_LABEL ? NONE : earlier;
}

// Names a region as far as it has been there before; whether it is new. `k` is the slot that owns it, or NONE, `earlier` the
// region of the last frame that it has taken, plus one, or 0; without a slot it has `n` samples.
__device__ __forceinline__ bool name(const Temporal &t, const GridArgs &grid, const TemporalArgs &args, bool warm, u32 label,
                                     u32 k, u32 earlier, u64 n) {
  u32 from = NONE;
  Track track = {0, 0, {warm ? t.state->shift[0] : 0, warm ? t.state->shift[1] : 0}};
  if (k != NONE) {
    Slot &slot = t.slots[k];
    if (warm) {
      track.velocity[0] += slot.velocity[0];
      track.velocity[1] += slot.velocity[1];
    }
    if (slot.id != 0) from = slot.region;
    slot.region = label;
  }
  if (earlier != 0) {
    from = earlier - 1;
    t.taken[label] = 0;
  }
  if (from != NONE) {
    track.id = t.tracks_last[from].id;
    track.age = t.tracks_last[from].age + 1;
  } else if (warm && args.in_regions && (k != NONE || n != 0)) {
    from = origin(t, grid, k != NONE ? t.positions[k] : centroid(t, label, n));
  }
  if (k != NONE) t.slots[k].id = track.id;
  t.tracks[label] = track;
  t.from[label] = from;
  t.motion[label] = {{(float)track.velocity[0] / POSITION_UNIT, (float)track.velocity[1] / POSITION_UNIT}, track.age};
  return track.id == 0;
}

// Which of the free slots a region without a cluster wants, which has `n` samples.
__device__ __forceinline__ void want_slot(const Temporal &t, const GridArgs &grid, u32 label, u64 n) {
  const int2 center = centroid(t, label, n);
  const i32 at[2] = {center.x, center.y};
  const i32 gx = min(at[0] / POSITION_UNIT / (i32)grid.step, (i32)grid.nx - 1);
  const i32 gy = min(at[1] / POSITION_UNIT / (i32)grid.step, (i32)grid.ny - 1);
  // All nine are asked for at once.
  u32 largest[9];
  bool taken[9];
#pragma unroll
  for (i32 i = 0; i < 9; i++) {
    const i32 x = gx + i % 3 - 1, y = gy + i / 3 - 1;
    taken[i] = x < 0 || y < 0 || x >= (i32)grid.nx || y >= (i32)grid.ny;
    largest[i] = taken[i] ? NONE : t.largest_label[y * grid.nx + x];
  }
#pragma unroll
  for (i32 i = 0; i < 9; i++) {
    const u32 k = (gy + i / 3 - 1) * grid.nx + gx + i % 3 - 1;
    taken[i] = taken[i] || (largest[i] != NONE && index_of(t.owners[largest[i]]) == k);
  }
  u32 nearest = NONE;
  u64 least = ~0ull;
#pragma unroll
  for (i32 i = 0; i < 9; i++) {
    const i32 x = gx + i % 3 - 1, y = gy + i / 3 - 1;
    i32 center[2];
    center_of(grid, x, y, center);
    const u64 d = square_of(at[0] - center[0]) + square_of(at[1] - center[1]);
    if (d < least && !taken[i]) {
      least = d;
      nearest = y * grid.nx + x;
    }
  }
  t.reseed_wanted[label] = nearest;
  if (nearest != NONE) atomicMax(&t.reseed_claims[nearest], key_of((u32)n, label));
}

// Sets the identities of regions and the state of slots; new identities are given in label order.
// Grid: a thread for each slot and region; block: TEMPORAL_THREADS.
// In: owners, largest_label, taken, positions, moves, sums, the last frame's tracks, labels and both frames' features.
// Out: tracks, motion, from [regions]; slots [cells]; reseed_wanted [regions] and reseed_claims [cells], by atomic maxima; of the
// state what the next frame reads, of it the offsets of slots by atomic additions.
// Race-free: a region's track and its owner's id and region are written by the region's thread; a slot that owns nothing is
// terminated by its own thread, and its size is written by that alone; counts of new tracks are released by their block and acquired
// by later ones; the last block writes the state after all blocks, which have read it, have released their counts.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_name(Components c, Temporal t, GridArgs grid, TemporalArgs args, u32 follows, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, t);
  if (is_absent(batch)) return;
  // Independent loads are all in flight at once, and then those that depend on them: one after the other takes longer than all else.
  // Only `taken` and the sums of regions are new.
  const u32 order = order_of_block(&t.state->tickets[1]), i = order * TEMPORAL_THREADS + threadIdx.x;
  const u32 regions = c.counters[REGIONS], cells = grid.nx * grid.ny, label = min(i, args.max_regions - 1), next = t.state->next_id;
  const bool warm = follows && !is_cut(*t.state, args);
  u32 k = NONE, size = 0;
  bool owning = false;
  if (args.in_slots) {
    const u32 cell = min(i, cells - 1), largest = t.largest_label[cell];
    const u64 owner = t.owners[label];
    size = (u32)(t.largest[cell] >> 32);
    owning = largest != NONE && index_of(t.owners[largest]) == i;
    if (owner != 0) k = index_of(owner);
  }
  wait_for_last_kernel();
  const u32 earlier = t.taken[label];
  const u64 n = args.in_slots ? t.sums[6 * (size_t)label] : 0;
  bool is_new = false;
  if (i < regions) {
    is_new = name(t, grid, args, warm, i, k, warm ? earlier : 0, n);
    if (n != 0) want_slot(t, grid, i, n);
  }
  if (args.in_slots) {
    owning = owning && i < cells;
    i32 offset[2] = {0, 0};
    if (owning) {
      const int2 position = t.positions[i];
      center_of(grid, i % grid.nx, i / grid.nx, offset);
      offset[0] = position.x - offset[0];
      offset[1] = position.y - offset[1];
    }
    // Offsets of a warp's clusters fit a word; negative ones wrap around, and add up none the less.
    const u32 owners = __popc(__ballot_sync(FULL_WARP, owning));
    const i32 sum_x = (i32)total_of_warp((u32)offset[0]), sum_y = (i32)total_of_warp((u32)offset[1]);
    if (owners != 0 && lane_id() == 0) {
      atomicAdd(&t.state->offset[0], (u64)(i64)sum_x);
      atomicAdd(&t.state->offset[1], (u64)(i64)sum_y);
      atomicAdd(&t.state->owners, owners);
    }
    if (i < cells) {
      t.slots[i].size = size;
      if (!owning) {
        t.slots[i].id = 0;
        t.slots[i].region = NONE;
      }
    }
  }
  const NewTracks tracks = count_new(t.new_tracks, order, is_new);
  if (is_new) {
    const u32 id = id_after(next, tracks.before);
    t.tracks[i].id = id;
    if (k != NONE) t.slots[k].id = id;
  }
  if (threadIdx.x == 0 && order == gridDim.x - 1) {
    t.state->next_id = id_after(next, tracks.until);
    t.state->regions = regions;
  }
}

// Label of a superpixel after merging.
__device__ __forceinline__ u32 merged_label(const Forest &forest, u32 i) {
  return forest.number[find_root(FixedSets<false>{forest.parent}, i)];
}

// Rounds half up, negative ones too.
__device__ __forceinline__ i32 mean_velocity(i64 sum, i64 n) {
  const i64 top = 2 * sum + n, quotient = top / (2 * n);
  return (i32)(top % (2 * n) < 0 ? quotient - 1 : quotient);
}

// Superpixels vote for the earlier merged region that they come from.
// Grid: any number of blocks of TEMPORAL_THREADS, a superpixel a thread by turns.
// In: area of superpixels [regions], the forest, tracks.
// Out: of `merged` numbers and totals [regions], by atomic additions; the table of pairs; new_tracks [blocks], zero.
// Race-free: slots of the table are taken by compare-and-swap; votes and totals are integers, added by atomics.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_vote(const RegionSums *regions, Forest forest, Temporal t, TemporalArgs args, Merged merged,
                  Batch batch) {
  after_last_kernel(regions, batch);
  select_frame(batch, regions, forest, t, merged);
  if (is_absent(batch)) return;
  const u32 superpixels = *forest.count;
  for (u32 i = FIRST; i < args.name_blocks; i += ALL) t.new_tracks[i] = 0;
  for (u32 i = FIRST; i < superpixels; i += ALL) {
    const u32 label = merged_label(forest, i), n = regions[i].area, from = t.from[i];
    const Track track = t.tracks[i];
    merged.numbers[i] = label;
    if (from != NONE) count_overlap(t, args, label, merged.numbers_last[from], n);
    atomicAdd(&merged.totals[3 * label], (u64)n);
#pragma unroll
    for (int j = 0; j < 2; j++) atomicAdd(&merged.totals[3 * label + 1 + j], (u64)((i64)n * track.velocity[j]));
  }
}

// Merged regions take the identities that they have chosen, the others new ones in label order.
// Grid: a thread a region; block: TEMPORAL_THREADS.
// In: taken, totals, the last frame's tracks.
// Out: of `merged` tracks [regions] and the next identity; motion [regions]; taken and totals, zero.
// Race-free: a thread has its own region; the last block writes the next identity when all have told how many are new, for which they
// have read it.
KERNEL __launch_bounds__(TEMPORAL_THREADS) temporal_name_merged(const u32 *counters, Temporal t, Merged merged,
                                                                        Batch batch) {
  beside_last_kernel(counters, batch);
  select_frame(batch, counters, t, merged);
  if (is_absent(batch)) return;
  const u32 order = order_of_block(&t.state->tickets[2]), label = order * TEMPORAL_THREADS + threadIdx.x;
  const u32 next = *merged.next_id, count = counters[REGIONS];
  wait_for_last_kernel();
  const bool is_region = label < count;
  Track track = {0, 0, {0, 0}};
  if (is_region) {
    const u32 earlier = t.taken[label];
    u64 *totals = merged.totals + 3 * label;
    const i64 n = (i64)totals[0];
#pragma unroll
    for (int j = 0; j < 2; j++) track.velocity[j] = mean_velocity((i64)totals[1 + j], n);
    if (earlier != 0) {
      track.id = merged.tracks_last[earlier - 1].id;
      track.age = merged.tracks_last[earlier - 1].age + 1;
    }
    t.taken[label] = 0;
    totals[0] = totals[1] = totals[2] = 0;
    t.motion[label] = {{(float)track.velocity[0] / POSITION_UNIT, (float)track.velocity[1] / POSITION_UNIT}, track.age};
  }
  const NewTracks tracks = count_new(t.new_tracks, order, is_region && track.id == 0);
  if (track.id == 0) track.id = id_after(next, tracks.before);
  if (is_region) merged.tracks[label] = track;
  if (threadIdx.x == 0 && order == gridDim.x - 1) *merged.next_id = id_after(next, tracks.until);
}
