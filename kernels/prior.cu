// SPDX-License-Identifier: MPL-2.0
// Priors of frames: areas that no region leaves. Mirrors `write_row` of src/image/prior.rs, what src/post/connectivity does with areas, and
// `relabel_areas` of src/buffers/cpu.rs. The result does not depend on the order in which threads run: sums are integers, the largest
// is a maximum.
#include "batch.cuh"
#include "components.cuh"

#define NO_COMPONENT_OF_FRAME (~0u)

// Label and area of no pixel.
#define NO_VOTE (~0ull)

// The index of the sample, of `samples`, in which the center of pixel `at` of `pixels` lies. Sides are at most 2^14.
__device__ __forceinline__ u32 sample_of(u32 at, u32 pixels, u32 samples) { return (2 * at + 1) * samples / (2 * pixels); }

// Brings a prior to the size of the frame, and clears the votes.
// Grid: any number of blocks of MASK_THREADS, a pixel and a vote a thread by turns.
// In: samples [prior_height][stride], of `bytes` bytes, of which the lowest four count, with `prior_width` of a row in use; null where
// all is one area.
// Out: areas [height][width]; keys, none, and counts, zero [votes], of which there may be none.
// Race-free: a thread writes its own.
KERNEL __launch_bounds__(MASK_THREADS)
    prior_areas(const u8 *samples, u32 *__restrict__ areas, u64 *__restrict__ keys, u32 *__restrict__ counts, u32 votes, u32 bytes,
                u32 prior_width, u32 prior_height, u32 stride, u32 width, u32 height, Batch batch) {
  after_last_kernel(samples, batch);
  select_frame(batch, areas);
  select_some(batch, keys, counts);
  select_prior(batch, samples);
  if (is_absent(batch)) return;
  for (u32 i = FIRST; i < width * height; i += ALL) {
    const u32 y = i / width, x = i - y * width;
    u32 area = 0;
    if (samples) {
      const size_t at = (size_t)sample_of(y, height, prior_height) * stride + sample_of(x, width, prior_width);
      area = bytes == 1 ? samples[at] : bytes == 2 ? ((const u16 *)samples)[at] : ((const u32 *)samples)[bytes / 4 * at];
    }
    areas[i] = area;
  }
  for (u32 i = FIRST; i < votes; i += ALL) {
    keys[i] = NO_VOTE;
    counts[i] = 0;
  }
}

// What pixels of a tile have in common: component and area. Areas of the tile get numbers, for a tag has 32 bits.
struct Parts {
  const u16 *local;  // component of each pixel, which the tile's own block writes after all are read
  const u32 *areas, *clusters;
  u32 *slots;  // in shared memory: the areas of the tile, a slot each
  u32 width, left, top, right, bottom;
  static const u32 SLOTS = 2 * TILE * TILE;
  // Key of a free slot, so that the area of this number has none: its tag has SLOTS in place of one.
  static const u32 FREE = 0xffffffffu;

  __device__ __forceinline__ size_t at(u32 y) const { return (size_t)min(top + y, bottom) * width + min(left + lane_id(), right); }
  __device__ __forceinline__ void load(u32 y, u32 (&value)[4]) const {
#pragma unroll
    for (u32 i = 0; i < 4; i++) value[i] = local[at(y + i)];
  }
  __device__ __forceinline__ void ready() const {}
  __device__ __forceinline__ void assign(u32 y, const u32 (&value)[4], u32 (&tag)[4]) const {
    u32 area[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) area[i] = areas[at(y + i)];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 before = __shfl_up_sync(FULL_WARP, area[i], 1);
      const u32 starts = __ballot_sync(FULL_WARP, lane_id() == 0 || before != area[i]);
      u32 slot = SLOTS;
      if (starts >> lane_id() & 1 && area[i] != FREE) {
        slot = insert_key<FREE>(area[i], SLOTS - 1, [&](u32 slot) { return slots + slot; }).slot;
      }
      slot = __shfl_sync(FULL_WARP, slot, run_start(starts, lane_id()));
      tag[i] = slot << NODE_BITS | value[i];
    }
  }
  __device__ __forceinline__ u32 cluster(u32 tag, u32, u32) const { return clusters[tag & NODE_MASK]; }
};
static_assert(2 * NODE_BITS + 2 <= 32, "a slot, or none, above a component");

// Cuts the components of tiles where areas end, for `connect_borders` and all that follows.
// Grid: tiles of 32 x 32 px; block: LABEL_THREADS.
// In: of `c` components of pixels and tiles as the label kernel has left them, `clusters` of its components; areas, `c.prior`, and features
// [height][width].
// Out: of `c`, the tile's component of every pixel [height][width], in place, and its components and pairs in the lists: see
// `tile_components`.
// Race-free: a pixel and a tile have one thread and one block that write them, behind a barrier since that block has read them; indices in
// the lists are taken by atomic additions, and `clusters` is another list than that of `c`.
KERNEL __launch_bounds__(LABEL_THREADS)
    prior_cut(Components c, const u32 *__restrict__ clusters, const u32 *__restrict__ features, u32 width, u32 height, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, clusters, features);
  if (is_absent(batch)) return;
  __shared__ u32 slots[Parts::SLOTS];
  for (u32 i = threadIdx.x; i < Parts::SLOTS; i += LABEL_THREADS) slots[i] = Parts::FREE;
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE, first = c.tile_first[blockIdx.y * gridDim.x + blockIdx.x];
  __syncthreads();
  const Parts parts = {c.local, c.prior, clusters + first, slots, width, left, top, min(left + TILE, width) - 1, min(top + TILE, height) - 1};
  tile_components<LABEL_THREADS / 32>(c, width, height, features, parts);
}

// Takes away the pairs of two areas: nothing joins there, and `connect_borders` lists none. Both ends of one become equal.
// Grid: any number of blocks of MASK_THREADS, a pair a thread by turns.
// In: of `c` sums and areas.
// Out: pairs, in place.
// Race-free: a pair has one thread; sums are only read.
KERNEL __launch_bounds__(MASK_THREADS) prior_pairs(Components c, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c);
  if (is_absent(batch)) return;
  const u32 edges = c.counters[EDGES];
  for (u32 i = FIRST; i < edges; i += ALL) {
    const uint2 pair = c.edges[i];
    if (c.prior[c.sums[pair.x].key] != c.prior[c.sums[pair.y].key]) c.edges[i] = make_uint2(pair.x, pair.x);
  }
}

// Empties the list of pairs, for `prior_touching`.
// Grid: one block of MASK_THREADS, of which one works.
// Out: the number of pairs.
// Race-free: one thread.
KERNEL __launch_bounds__(MASK_THREADS) prior_unlist(Components c, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c);
  if (is_absent(batch)) return;
  if (threadIdx.x == 0) c.counters[EDGES] = 0;
}

// Appends the pairs of a warp's lanes that have one.
__device__ __forceinline__ void append_pairs(const Components &c, bool has_one, u32 a, u32 b) {
  const u32 some = __ballot_sync(FULL_WARP, has_one);
  if (!some) return;
  u32 first = 0;
  if (lane_id() == 0) first = atomicAdd(&c.counters[EDGES], __popc(some));
  first = __shfl_sync(FULL_WARP, first, 0);
  if (has_one) c.edges[first + rank_among(some)] = make_uint2(a, b);
}

// Lists the pairs of components that touch, also across areas: merging may cross their borders at a price. Of a row, or a column in four
// rows, a pair is listed once in succession.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, a pixel in each of four rows a thread.
// In: components of pixels and tiles; an empty list.
// Out: pairs, at indices that a warp takes by one atomic addition: at most two a pixel.
// Race-free: an index has one thread.
KERNEL __launch_bounds__(TILE_THREADS) prior_touching(Components c, u32 width, u32 height, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c);
  if (is_absent(batch)) return;
  const u32 x = blockIdx.x * TILE + lane_id(), top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  const auto component = [&](u32 x, u32 y) {
    if (x >= width || y >= height) return NO_COMPONENT_OF_FRAME;
    return c.tile_first[y / TILE * gridDim.x + x / TILE] + c.local[(size_t)y * width + x];
  };
  u32 here = component(x, top), last = NO_COMPONENT_OF_FRAME, last_beside = NO_COMPONENT_OF_FRAME;
#pragma unroll 1
  for (u32 y = top; y < min(top + 4, height); y++) {
    const u32 beside = component(x + 1, y), below = component(x, y + 1);
    const u32 here_before = __shfl_up_sync(FULL_WARP, here, 1), below_before = __shfl_up_sync(FULL_WARP, below, 1);
    const bool inside = here != NO_COMPONENT_OF_FRAME;
    const bool across = inside && beside != NO_COMPONENT_OF_FRAME && beside != here && (last != here || last_beside != beside);
    const bool down = inside && below != NO_COMPONENT_OF_FRAME && below != here &&
                      (lane_id() == 0 || here_before != here || below_before != below);
    append_pairs(c, across, here, beside);
    append_pairs(c, down, here, below);
    last = here;
    last_beside = beside;
    here = below;
  }
}

// The area of each region where areas cut components: that of any of its pixels.
// Grid: any number of blocks of MASK_THREADS, a component a thread by turns.
// In: sums, labels [components]; areas, `c.prior`.
// Out: region_areas [regions].
// Race-free: a component that has joined no other writes its own label's, of which there is one.
KERNEL __launch_bounds__(MASK_THREADS)
    prior_regions(Components c, const u16 *__restrict__ component_label, u32 *__restrict__ region_areas, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, region_areas);
  if (is_absent(batch)) return;
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = FIRST; i < components; i += ALL) {
    const ComponentSums sums = c.sums[i];
    const u32 label = component_label[i];
    if (sums.count != 0 && label != NO_LABEL) region_areas[label] = c.prior[sums.key];
  }
}

// Counts the pixels of each label in each area, where areas cut nothing.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, a pixel in each of four rows a thread.
// In: labels [components], areas [height][width].
// Out: keys, label above area, and counts [votes].
// Race-free: slots are taken by compare-and-swap, and integers added by atomics; regions' `best` has one thread that clears it.
KERNEL __launch_bounds__(TILE_THREADS)
    prior_count(Components c, const u16 *__restrict__ component_label, const u32 *__restrict__ areas, u64 *__restrict__ keys,
                u32 *__restrict__ counts, u64 *__restrict__ best, u32 votes, u32 width, u32 height, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, areas, keys, counts, best);
  if (is_absent(batch)) return;
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x, first = c.tile_first[tile], lane = lane_id();
  const u32 x = blockIdx.x * TILE + lane, top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  const u32 regions = c.counters[REGIONS], all = gridDim.x * gridDim.y * TILE_THREADS;
  for (u32 i = tile * TILE_THREADS + threadIdx.x; i < regions; i += all) best[i] = 0;
  for (u32 y = top; y < min(top + 4, height); y++) {
    u64 key = NO_VOTE;
    if (x < width) {
      const size_t at = (size_t)y * width + x;
      const u32 label = component_label[first + c.local[at]];
      if (label != NO_LABEL) key = (u64)label << 32 | areas[at];
    }
    const u64 before = __shfl_up_sync(FULL_WARP, key, 1);
    const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != key);
    const bool ends = lane == 31 || starts >> (lane + 1) & 1;
    if (!ends || key == NO_VOTE) continue;
    u32 slot = ((u32)(key >> 32) * 0x85ebca6bu ^ (u32)key * 0x9e3779b1u) >> 3;
    for (;; slot++) {
      slot &= votes - 1;
      const u64 seen = atomicCAS(&keys[slot], NO_VOTE, key);
      if (seen == NO_VOTE || seen == key) break;
    }
    atomicAdd(&counts[slot], lane + 1 - run_start(starts, lane));
  }
}

// Finds what most pixels of a label are in, of equally many the lowest.
// Grid: any number of blocks of MASK_THREADS, a vote a thread by turns.
// In: keys, counts [votes].
// Out: best [regions], pixels above the complement of the area.
// Race-free: by atomic maxima.
KERNEL __launch_bounds__(MASK_THREADS)
    prior_choose(const u64 *__restrict__ keys, const u32 *__restrict__ counts, u64 *__restrict__ best, u32 votes, Batch batch) {
  after_last_kernel(keys, batch);
  select_frame(batch, keys, counts, best);
  if (is_absent(batch)) return;
  for (u32 i = FIRST; i < votes; i += ALL) {
    if (keys[i] != NO_VOTE) atomicMax(&best[keys[i] >> 32], (u64)counts[i] << 32 | ~(u32)keys[i]);
  }
}

// Names the areas that `prior_choose` has found.
// Grid: any number of blocks of MASK_THREADS, a region a thread by turns.
// In: best [regions] with their number.
// Out: region_areas [regions].
// Race-free: a thread writes its own region's.
KERNEL __launch_bounds__(MASK_THREADS)
    prior_name(const u64 *__restrict__ best, const u32 *__restrict__ counters, u32 *__restrict__ region_areas, Batch batch) {
  after_last_kernel(best, batch);
  select_frame(batch, best, counters, region_areas);
  if (is_absent(batch)) return;
  const u32 regions = counters[REGIONS];
  for (u32 i = FIRST; i < regions; i += ALL) region_areas[i] = ~(u32)best[i];
}

// Gives regions that earlier ones became a part of the area of the first of these.
// Grid: any number of blocks of MASK_THREADS, an earlier region a thread by turns.
// In: parents, numbers of roots, which are the lowest of their sets, how many regions there were; `from` [regions].
// Out: `to` [regions].
// Race-free: a root's thread writes its number's area, and numbers differ.
KERNEL __launch_bounds__(MASK_THREADS)
    prior_relabel(Forest forest, const u32 *__restrict__ from, u32 *__restrict__ to, Batch batch) {
  after_last_kernel(forest, batch);
  select_frame(batch, forest, from, to);
  if (is_absent(batch)) return;
  const u32 count = *forest.count;
  for (u32 i = FIRST; i < count; i += ALL) {
    if (forest.parent[i] == i) to[forest.number[i]] = from[i];
  }
}
