// SPDX-License-Identifier: MPL-2.0
// Stage `temporal/identify`; mirrors identify.rs, matching.rs and merged.rs of src/temporal. It knows regions by the
// final label of each component, however that came about. All choices are maxima of keys, so the order of threads does not
// matter.
#include "components.cuh"
#include "regions.cuh"
#include "temporal.cuh"

// The largest component of every cluster where nothing is absorbed: else the first round of that finds them.
// Grid: any number of blocks of TEMPORAL_THREADS, a component a thread by turns.
// In: clusters and sums [components].
// Out: largest [cells], by atomic maxima.
KERNEL __launch_bounds__(TEMPORAL_THREADS) temporal_largest(Components c, Temporal t, TemporalArgs args) {
  after_last_kernel(c, args);
  find_largest(c, t.largest, args.connectivity, FIRST, ALL);
}

// Final label of a pixel.
__device__ __forceinline__ u32 label_at(const Components &c, const u16 *component_label, const GridArgs &grid,
                                        const TemporalArgs &args, u32 x, u32 y) {
  const u32 component = c.tile_first[y / TILE * args.tiles_x + x / TILE] + c.local[(size_t)y * grid.width + x];
  return component_label[component];
}

// Who owns the regions, and this frame's slots before that.
// Grid: a thread a slot; block: TEMPORAL_THREADS.
// In: largest, positions, sources [cells], slots of the last frame.
// Out: owners [regions], by atomic maxima; largest_label, reseed_claims, slots [cells].
// Race-free: a thread writes its own slot's.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_own(Components c, const u16 *component_label, Temporal t, GridArgs grid, TemporalArgs args, u32 warm) {
  after_last_kernel(c, warm);
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

// Regions without an identity and free identities choose each other: those pairs unite that are each other's best. Leaves the
// table and what belongs to its pairs as the next frame wants to find it; who reads `taken` clears that. One block.
__device__ __forceinline__ void match(const Temporal &t, const TemporalArgs &args) {
  const u32 pairs = __ldcg(&t.state->pairs), most = args.max_regions;
  u32 *taken = t.taken, *free_no_more = t.taken + most;
  // Few frames have more pairs than one a thread.
  const Overlap first = threadIdx.x < pairs ? load_overlap(t, threadIdx.x) : Overlap{0, 0, 0, 0};
  const auto pair_at = [&](u32 i) { return i == threadIdx.x ? first : load_overlap(t, i); };
  for (u32 round = 0; round < MATCH_ROUNDS; round++) {
    u64 *best_earlier = t.best + (round & 1) * 2 * (size_t)most, *best_label = best_earlier + most;
    u64 *next_earlier = t.best + (~round & 1) * 2 * (size_t)most, *next_label = next_earlier + most;
    bool any = false;
    for (u32 i = threadIdx.x; i < pairs; i += IDENTIFY_THREADS) {
      const Overlap pair = pair_at(i);
      // At first nothing is taken.
      if (round == 0 || (__ldcg(&taken[pair.label]) == 0 && __ldcg(&free_no_more[pair.earlier]) == 0)) {
        atomicMax(&best_earlier[pair.label], key_of(pair.size, pair.earlier));
        atomicMax(&best_label[pair.earlier], key_of(pair.size, pair.label));
        any = true;
      }
    }
    if (!__syncthreads_or(any)) break;
    any = false;
    for (u32 i = threadIdx.x; i < pairs; i += IDENTIFY_THREADS) {
      const Overlap pair = pair_at(i);
      const u64 there = __ldcg(&best_earlier[pair.label]), back = __ldcg(&best_label[pair.earlier]);
      next_earlier[pair.label] = next_label[pair.earlier] = 0;
      if (there != 0 && back != 0 && index_of(there) == pair.earlier && index_of(back) == pair.label) {
        taken[pair.label] = pair.earlier + 1;
        free_no_more[pair.earlier] = 1;
        any = true;
      }
    }
    if (!__syncthreads_or(any)) break;
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < pairs; i += IDENTIFY_THREADS) {
    const Overlap pair = pair_at(i);
    for (u32 turn = 0; turn < 2; turn++) {
      t.best[2 * turn * (size_t)most + pair.label] = t.best[(2 * turn + 1) * (size_t)most + pair.earlier] = 0;
    }
    free_no_more[pair.earlier] = 0;
    t.pairs[pair.at] = make_uint2(0, 0);
  }
}

// The identity that comes `rank` after `next`; 0 is no identity.
__device__ __forceinline__ u32 id_after(u32 next, u32 rank) {
  const u32 id = next + rank;
  return id < next ? id + 1 : id;
}

// Overlaps of regions without an identity with the last frame's, and what regions without a cluster hold; the last block then lets
// both choose.
// Grid: any number of blocks of IDENTIFY_THREADS over the sample lattice.
// In: labels of both frames, owners, slots, cells.
// Out: the table of pairs; sums [regions][6], by atomic additions; by the last block taken [2][regions].
// Race-free: slots of the table are taken by compare-and-swap, overlaps added by atomics; the last block, which the ticket tells,
// reads them past its L1 cache.
KERNEL __launch_bounds__(IDENTIFY_THREADS)
    temporal_identify(Components c, const u16 *component_label, Temporal t, GridArgs grid, TemporalArgs args, u32 follows) {
  beside_last_kernel(c, follows);
  const bool warm = follows && !is_cut(*t.state, args);
  const u32 samples = grid.sample_width * grid.sample_height, step = grid.sample_step;
  const auto label_of = [&](u32 i) {
    return label_at(c, component_label, grid, args, i % grid.sample_width * step, i / grid.sample_width * step);
  };
  // Labels are older than owners, where those are wanted at all.
  if (!args.in_slots) wait_for_last_kernel();
  const u32 asked = FIRST < samples ? label_of(FIRST) : 0;
  if (args.in_slots) wait_for_last_kernel();
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
        // Whose cluster owns a region has its identity still.
        if (earlier == NO_LABEL) earlier = NONE;
        const u32 cell = earlier == NONE ? NONE : t.cells[earlier];
        if (cell != NONE && owns(t, (cell >> 16) * grid.nx + (cell & 0xffffu))) earlier = NONE;
      }
    }
    if (__ballot_sync(FULL_WARP, earlier != NONE) == 0) continue;
    const u64 pair = earlier == NONE ? ~0ull : (u64)label << 32 | earlier;
    const u32 same = __match_any_sync(FULL_WARP, pair);
    if (earlier != NONE && (u32)__ffs(same) - 1 == lane_id()) count_overlap(t, args, label, earlier, __popc(same));
  }
  if (!warm || !is_last_block(&t.state->tickets[1])) return;
  match(t, args);
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

// What regions are called and slots hold from here on; the last block then gives new identities, in label order.
// Grid: a thread for each slot and region; block: TEMPORAL_THREADS.
// In: owners, largest_label, taken, positions, moves, sums, the last frame's tracks, labels and both frames' features.
// Out: tracks, motion, from [regions]; slots [cells]; reseed_wanted [regions] and reseed_claims [cells], by atomic maxima; of the
// state what the next frame reads.
// Race-free: a region's track and its owner's id and region are written by the region's thread; a slot that owns nothing is
// terminated by its own thread, and its size is written by that alone; new tracks are a ballot of each warp, which the last block
// reads past its L1 cache.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_name(Components c, Temporal t, GridArgs grid, TemporalArgs args, u32 follows) {
  beside_last_kernel(c, follows);
  // What depends on nothing is asked for at once, and what it leads to: waiting for one after the other takes longer than all else.
  // Only what regions have taken and hold is new.
  const u32 i = FIRST, regions = c.counters[REGIONS], cells = grid.nx * grid.ny, label = min(i, args.max_regions - 1);
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
  if (args.in_slots && i < cells) {
    t.slots[i].size = size;
    if (!owning) {
      t.slots[i].id = 0;
      t.slots[i].region = NONE;
    }
  }
  const u32 bits = __ballot_sync(FULL_WARP, is_new);
  if (lane_id() == 0 && i < regions) t.new_tracks[i / 32] = bits;
  if (!is_last_block(&t.state->tickets[2])) return;
  const u32 next = t.state->next_id;
  const u32 words = (regions + 31) / 32, each = (words + TEMPORAL_THREADS - 1) / TEMPORAL_THREADS;
  const u32 begin = min(threadIdx.x * each, words), end = min(begin + each, words);
  __shared__ BlockScan<TEMPORAL_THREADS>::Shared scan;
  u32 count = 0;
  for (u32 word = begin; word < end; word++) count += __popc(__ldcg(&t.new_tracks[word]));
  u32 rank = BlockScan<TEMPORAL_THREADS>::exclusive_sum<false>(scan, count);
  for (u32 word = begin; count != 0 && word < end; word++) {
    for (u32 bits = __ldcg(&t.new_tracks[word]); bits; bits &= bits - 1) {
      const u32 region = 32 * word + __ffs(bits) - 1, slot = owner_of(t, args, region), id = id_after(next, rank++);
      t.tracks[region].id = id;
      if (slot != NONE) t.slots[slot].id = id;
    }
  }
  if (threadIdx.x == 0) {
    t.state->next_id = id_after(next, scan.total);
    t.state->regions = regions;
    if (!warm) t.state->drift[0] = t.state->drift[1] = 0;
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

// Superpixels vote for the earlier merged region that they come from; then all merged regions are named.
// Grid: one block of IDENTIFY_THREADS.
// In: area of superpixels [regions], the forest, tracks.
// Out: of `merged` everything; motion [regions]; the table of pairs, empty afterwards.
// Race-free: votes and totals are integers, added by atomics between barriers; then a thread has its own share of the merged
// regions.
KERNEL __launch_bounds__(IDENTIFY_THREADS)
    temporal_merged(const RegionSums *regions, Forest forest, const u32 *counters, Temporal t, TemporalArgs args,
                    Merged merged) {
  after_last_kernel(regions, merged);
  const u32 superpixels = *forest.count, count = counters[REGIONS], thread = threadIdx.x;
  if (thread == 0) t.state->pairs = 0;
  for (u32 i = thread; i < 3 * count; i += IDENTIFY_THREADS) merged.totals[i] = 0;
  __syncthreads();
  for (u32 i = thread; i < superpixels; i += IDENTIFY_THREADS) {
    const u32 label = merged_label(forest, i), n = regions[i].area, from = t.from[i];
    if (from != NONE) count_overlap(t, args, label, merged.numbers[from], n);
    const Track track = t.tracks[i];
    atomicAdd(&merged.totals[3 * label], (u64)n);
#pragma unroll
    for (int j = 0; j < 2; j++) atomicAdd(&merged.totals[3 * label + 1 + j], (u64)((i64)n * track.velocity[j]));
  }
  __syncthreads();
  match(t, args);
  const u32 each = (count + IDENTIFY_THREADS - 1) / IDENTIFY_THREADS;
  const u32 begin = min(thread * each, count), end = min(begin + each, count);
  __shared__ BlockScan<IDENTIFY_THREADS>::Shared scan;
  u32 new_tracks = 0;
  for (u32 label = begin; label < end; label++) {
    const u32 earlier = __ldcg(&t.taken[label]);
    t.taken[label] = 0;
    const i64 n = (i64)__ldcg(&merged.totals[3 * label]);
    Track track = {0, 0, {0, 0}};
#pragma unroll
    for (int j = 0; j < 2; j++) {
      track.velocity[j] = mean_velocity((i64)__ldcg(&merged.totals[3 * label + 1 + j]), n);
    }
    if (earlier != 0) {
      track.id = merged.tracks_last[earlier - 1].id;
      track.age = merged.tracks_last[earlier - 1].age + 1;
    }
    new_tracks += track.id == 0;
    merged.tracks[label] = track;
    t.motion[label] = {{(float)track.velocity[0] / POSITION_UNIT, (float)track.velocity[1] / POSITION_UNIT}, track.age};
  }
  const u32 next = *merged.next_id;
  u32 rank = BlockScan<IDENTIFY_THREADS>::exclusive_sum<false>(scan, new_tracks);
  for (u32 label = begin; label < end; label++) {
    if (merged.tracks[label].id == 0) merged.tracks[label].id = id_after(next, rank++);
  }
  for (u32 i = thread; i < superpixels; i += IDENTIFY_THREADS) merged.numbers[i] = merged_label(forest, i);
  if (thread == 0) *merged.next_id = id_after(next, scan.total);
}
