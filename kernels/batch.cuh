// SPDX-License-Identifier: MPL-2.0
// Frames of a batch: the third dimension of a grid. A frame has memory of its own, as far from that of the frame before as `Batch` says, and a
// kernel moves its pointers there before it reads or writes. A batch of one leaves them where they are.
#pragma once
#include "abi.cuh"

// A pointer into a frame's memory; `advance_some`: or null, which stays null.
template <class Pointer>
__device__ __forceinline__ void advance(Pointer &pointer, u64 by) {
  pointer = (Pointer)((const u8 *)pointer + by);
}
template <class Pointer>
__device__ __forceinline__ void advance_some(Pointer &pointer, u64 by) {
  if (pointer) advance(pointer, by);
}

template <class... Pointers>
__device__ __forceinline__ void advance_all(u64 by, Pointers &...pointers) {
  (advance(pointers, by), ...);
}

// All that a struct points to.
__device__ __forceinline__ void advance(SlicArgs &args, u64 by) { advance_some(args.seeds, by); }
__device__ __forceinline__ void advance(LscArgs &args, u64 by) { advance_some(args.seeds, by); }
__device__ __forceinline__ void advance(Components &c, u64 by) {
  advance_all(by, c.local, c.tile_first, c.tile_count, c.parent, c.cluster, c.sums, c.edges, c.counters);
  advance_some(c.prior, by);
}
__device__ __forceinline__ void advance(Selections &selections, u64 by) { advance(selections.at, by); }
__device__ __forceinline__ void advance(Late &late, u64 by) { advance_all(by, late.pairs, late.selectors); }
__device__ __forceinline__ void advance(Marks &marks, u64 by) { advance(marks.groups, by); }
__device__ __forceinline__ void advance(Continued &continued, u64 by) {
  if (continued.largest) advance_all(by, continued.largest, continued.least_kept, continued.state);
}
__device__ __forceinline__ void advance(Merging &m, u64 by) {
  advance_all(by, m.parent, m.sums, m.mean, m.nearest, m.number, m.count);
}
__device__ __forceinline__ void advance(Hierarchy &h, u64 by) {
  advance_all(by, h.sums, h.joins, h.selected[0], h.selected[1], h.heights, h.keys[0], h.keys[1], h.lengths[0], h.lengths[1]);
  advance_all(by, h.held[0], h.held[1], h.contrasts[0], h.contrasts[1], h.earlier, h.roots, h.lowest, h.heads, h.numbers, h.counts);
  advance_some(h.areas, by);
  if (h.prior) advance_all(by, h.prior, h.across_keys, h.across_lengths, h.across_contrasts);
}
__device__ __forceinline__ void advance(SlicTemporal &own, u64 by) {
  advance_all(by, own.sums[0], own.sums[1], own.sums[2], own.centers[0], own.centers[1], own.carried_last, own.carried);
}
__device__ __forceinline__ void advance(LscTemporal &own, u64 by) {
  advance_all(by, own.sums[0], own.sums[1], own.sums[2], own.state[0], own.state[1], own.carried_last, own.carried);
}
__device__ __forceinline__ void advance(Temporal &t, u64 by) {
  advance_all(by, t.state, t.slots_last, t.slots, t.sources, t.moves, t.claims, t.wanted, t.cells, t.labels, t.features_last);
  advance_all(by, t.features, t.thumbnail_last, t.thumbnail, t.differences, t.largest, t.largest_label, t.positions, t.owners);
  advance_all(by, t.tracks_last, t.tracks, t.motion, t.sums, t.reseed_claims, t.reseed_wanted, t.best, t.taken, t.new_tracks);
  advance_all(by, t.from, t.pairs, t.pair_list, t.part_claims, t.part_clusters, t.least_kept);
}
__device__ __forceinline__ void advance(Forest &forest, u64 by) { advance_all(by, forest.parent, forest.number, forest.count); }
__device__ __forceinline__ void advance(Merged &m, u64 by) {
  advance_all(by, m.numbers_last, m.numbers, m.tracks_last, m.tracks, m.totals, m.next_id);
}
__device__ __forceinline__ void advance(MergeList &list, u64 by) { advance_all(by, list.keys, list.steps, list.count); }

// Returns true if the block's stream has no frame: then it has nothing to do. Its memory lies between those of others none the less: a list
// of distances would take registers of every lane for each pointer, where a product takes some of the warp.
__device__ __forceinline__ bool is_absent(const Batch &batch) { return batch.some && batch.planes[blockIdx.z].absent; }

// Moves pointers, and those of structs, to the block's frame; `select_some`: a pointer that may be null.
template <class... Memory>
__device__ __forceinline__ void select_frame(const Batch &batch, Memory &...memory) {
  const u64 by = (u64)blockIdx.z * batch.distance;
  (advance(memory, by), ...);
}
template <class... Pointers>
__device__ __forceinline__ void select_some(const Batch &batch, Pointers &...pointers) {
  const u64 by = (u64)blockIdx.z * batch.distance;
  (advance_some(pointers, by), ...);
}

// Planes, masks and priors are anywhere: a batch has a list of them.
__device__ __forceinline__ void select_planes(const Batch &batch, FrameArgs &frame) {
  if (!batch.planes) return;
  const FramePlanes *own = batch.planes + blockIdx.z;
#pragma unroll
  for (int i = 0; i < 3; i++) frame.plane[i] = own->plane[i];
}
__device__ __forceinline__ void select_mask(const Batch &batch, const u8 *&mask) {
  if (batch.planes) mask = batch.planes[blockIdx.z].mask;
}
__device__ __forceinline__ void select_prior(const Batch &batch, const u8 *&prior) {
  if (batch.planes) prior = batch.planes[blockIdx.z].prior;
}
