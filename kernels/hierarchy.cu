// SPDX-License-Identifier: MPL-2.0
// Stage `hierarchy`: regions that touch are joined pair by pair until exactly as many are left as were asked for; mirrors
// src/post/hierarchy. One pass over pixels finds what regions hold and where they touch; what follows goes over regions and pairs.
// The result does not depend on the order in which threads run: sums are integers, selections are minima.
#include "batch.cuh"
#include "hierarchy.cuh"
#include "regions.cuh"

// Begins a frame: pixels and features of regions, no positions yet, no pair, no selection.
// Grid: any number of blocks of MERGE_THREADS, a region and a slot a thread by turns.
// In: regions [regions], their number; `from` [regions], the last frame's superpixel that each goes on from, or NONE, and `merged`, what
// region that was in, both null where nothing lasts.
// Out: of `h` sums, joins, heights, earlier regions, lowest labels, the first selections [regions], a bit for each region, the first
// table [slots], counts.
// Race-free: a thread writes its own entries, and the first of 32 regions' threads their word of bits.
KERNEL __launch_bounds__(MERGE_THREADS)
    hierarchy_start(Hierarchy h, const RegionSums *__restrict__ regions, const u32 *__restrict__ counters,
                    const u32 *__restrict__ from, const u32 *__restrict__ merged, HierarchyArgs args, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, regions, counters);
  select_some(batch, from, merged);
  if (is_absent(batch)) return;
  const u32 count = counters[REGIONS], slots = slots_for(args, count);
  if (FIRST < HIERARCHY_COUNTS) h.counts[FIRST] = first_count(FIRST, count, args.until);
  for (u32 i = FIRST; i < count; i += ALL) {
    if (i % 32 == 0) h.heads[i / 32] = lanes_up_to(min(count - i, 32u) - 1);
    const RegionSums &region = regions[i];
    h.sums[i] = {region.area, 0, {region.color[0], region.color[1], region.color[2]}, {0, 0}};
    h.joins[i] = {NO_JOIN, 0, 0, 0};
    h.heights[i] = 0;
    h.lowest[i] = NO_JOIN;
    h.earlier[i] = from && from[i] != NO_JOIN ? merged[from[i]] : NO_JOIN;
    h.selected[0][i] = NO_SELECTION;
  }
  const PairTable table = pairs_of(h, 0);
  for (u32 slot = FIRST; slot < slots; slot += ALL) clear_pair(table, slot);
  if (!h.prior) return;
  const PairTable across = pairs_across(h);
  for (u32 slot = FIRST; slot < slots; slot += ALL) {
    across.keys[slot] = NO_PAIR;
    across.lengths[slot] = 0;
    across.contrasts[slot] = 0;
  }
}

// Where pairs of a frame go.
struct FirstTable {
  u32 mask, price;
};

// Adds a pair to the first table or, if it lies across areas whose borders have no price, to that of such pairs.
template <bool HAS_AREAS>
__device__ __forceinline__ void add_first(const Hierarchy &h, FirstTable first, u32 key, u32 length, u32 contrast) {
  const bool across = HAS_AREAS && h.prior[key >> 16] != h.prior[key & 0xffffu];
  const u64 more = across ? (u64)first.price * length : 0;
  add_pair(across && !first.price ? pairs_across(h) : pairs_of(h, 0), first.mask, key, {length, 0, contrast + more});
}

// Pairs of a tile are added up in shared memory. A pair that finds no slot after so many goes to the table of the frame at once.
#define TILE_SLOTS 512
#define TILE_PROBES 16

struct TouchingShared {
  u32 keys[TILE_SLOTS], lengths[TILE_SLOTS], contrasts[TILE_SLOTS];
  // Of each component of the tile: sums of x and of y from its corner, 16 bits each; pixels.
  u32 positions[TILE * TILE], pixels[TILE * TILE];
};
static_assert(TILE * TILE * (TILE - 1) < 1 << 16, "sums of positions in a tile");

// Adds a piece of boundary between two labels that differ.
template <bool HAS_AREAS>
__device__ __forceinline__ void touch(TouchingShared &shared, const Hierarchy &h, FirstTable first, u32 a, u32 b, u32 length, u32 contrast) {
  const u32 key = pair_key(a, b);
  u32 slot = key * 0x9e3779b1u >> 7 & (TILE_SLOTS - 1);
  for (u32 probe = 0; probe < TILE_PROBES; probe++, slot = (slot + 1) & (TILE_SLOTS - 1)) {
    const u32 seen = atomicCAS(&shared.keys[slot], NO_PAIR, key);
    if (seen != NO_PAIR && seen != key) continue;
    atomicAdd(&shared.lengths[slot], length);
    atomicAdd(&shared.contrasts[slot], contrast);
    return;
  }
  add_first<HAS_AREAS>(h, first, key, length, contrast);
}

// A piece of boundary that a lane follows down a column.
struct Piece {
  u32 a, b, length, contrast;
};

// Pixels of four rows of a warp, a lane a column, and the row below. What is outside of the frame has no label.
struct TouchingPixels {
  u32 label[5], feature[5], component[4];
  // Right of the tile, of the row that the lane's number says.
  u32 label_right, feature_right;
};

__device__ __forceinline__ void load_pixel(const Components &c, const u16 *component_label, const u32 *features,
                                           const HierarchyArgs &args, u32 tile, u32 x, u32 y, u32 &component, u32 &label, u32 &feature) {
  component = label = NO_LABEL;
  feature = 0;
  if (x >= args.width || y >= args.height) return;
  const size_t at = (size_t)y * args.width + x;
  component = c.local[at];
  feature = features[at];
  label = component_label[c.tile_first[tile] + component];
}

__device__ __forceinline__ TouchingPixels load_touching(const Components &c, const u16 *component_label, const u32 *features,
                                                        const HierarchyArgs &args, u32 x, u32 top) {
  TouchingPixels own;
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x;
  u32 unused;
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    load_pixel(c, component_label, features, args, tile, x, top + i, own.component[i], own.label[i], own.feature[i]);
  }
  const u32 below = (top + 4) / TILE * gridDim.x + blockIdx.x;
  load_pixel(c, component_label, features, args, below, x, top + 4, unused, own.label[4], own.feature[4]);
  own.label_right = NO_LABEL;
  own.feature_right = 0;
  if (lane_id() < 4) {
    const u32 right = (blockIdx.x + 1) * TILE;
    load_pixel(c, component_label, features, args, tile + 1, right, top + lane_id(), unused, own.label_right, own.feature_right);
  }
  return own;
}

// Sums of positions: each run of a component in a row at once.
__device__ __forceinline__ void add_positions(TouchingShared &shared, const TouchingPixels &own, u32 row) {
  const u32 lane = lane_id();
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const u32 here = own.component[i], before = __shfl_up_sync(FULL_WARP, here, 1);
    const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != here);
    const bool ends = lane == 31 || starts >> (lane + 1) & 1;
    if (!ends || here == NO_COMPONENT) continue;
    const u32 start = run_start(starts, lane), n = lane + 1 - start;
    atomicAdd(&shared.positions[here], (n * (start + lane) >> 1) + (n * (row + i) << 16));
    atomicAdd(&shared.pixels[here], n);
  }
}

// Pairs of 4-neighbors whose labels differ: to the right down the columns, then below along the rows, a piece at once.
template <bool HAS_AREAS>
__device__ __forceinline__ void add_touching(TouchingShared &shared, const Hierarchy &h, FirstTable first, const TouchingPixels &own) {
  const u32 lane = lane_id();
  Piece piece = {0, 0, 0, 0};
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const u32 here = own.label[i];
    u32 beside = __shfl_down_sync(FULL_WARP, here, 1), feature = __shfl_down_sync(FULL_WARP, own.feature[i], 1);
    const u32 label_right = __shfl_sync(FULL_WARP, own.label_right, i), right = __shfl_sync(FULL_WARP, own.feature_right, i);
    if (lane == 31) {
      beside = label_right;
      feature = right;
    }
    if (beside == here || max(beside, here) == NO_LABEL) continue;
    if (piece.length && (piece.a != here || piece.b != beside)) {
      touch<HAS_AREAS>(shared, h, first, piece.a, piece.b, piece.length, piece.contrast);
      piece.length = piece.contrast = 0;
    }
    piece = {here, beside, piece.length + 1, piece.contrast + feature_difference(own.feature[i], feature)};
  }
  if (piece.length) touch<HAS_AREAS>(shared, h, first, piece.a, piece.b, piece.length, piece.contrast);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const u32 here = own.label[i], below = own.label[i + 1];
    const bool touches = below != here && max(below, here) != NO_LABEL;
    if (!__any_sync(FULL_WARP, touches)) continue;
    const u32 pair = here << 16 | below, before = __shfl_up_sync(FULL_WARP, pair, 1);
    const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != pair), start = run_start(starts, lane);
    const u32 contrast = run_sum<32>(feature_difference(own.feature[i], own.feature[i + 1]), start);
    const bool ends = lane == 31 || starts >> (lane + 1) & 1;
    if (ends && touches) touch<HAS_AREAS>(shared, h, first, here, below, lane + 1 - start, contrast);
  }
}

template <bool HAS_AREAS>
__device__ __forceinline__ void measure(const Components &c, const u16 *component_label, const u32 *features, const Hierarchy &h,
                                        const HierarchyArgs &args) {
  __shared__ TouchingShared shared;
  // Nothing is merged, so that nobody asks for pairs.
  if (h.counts[SUPERPIXELS] <= args.until) return;
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x, first = c.tile_first[tile], total = c.tile_count[tile];
  const u32 row = threadIdx.x / 32 * 4;
  const TouchingPixels own =
      load_touching(c, component_label, features, args, blockIdx.x * TILE + lane_id(), blockIdx.y * TILE + row);
  for (u32 i = threadIdx.x; i < TILE_SLOTS; i += TILE_THREADS) {
    shared.keys[i] = NO_PAIR;
    shared.lengths[i] = shared.contrasts[i] = 0;
  }
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) shared.positions[i] = shared.pixels[i] = 0;
  const FirstTable table = {slots_for(args, h.counts[SUPERPIXELS]) - 1, args.price};
  __syncthreads();
  add_positions(shared, own, row);
  add_touching<HAS_AREAS>(shared, h, table, own);
  __syncthreads();
  for (u32 i = threadIdx.x; i < TILE_SLOTS; i += TILE_THREADS) {
    if (shared.keys[i] != NO_PAIR) add_first<HAS_AREAS>(h, table, shared.keys[i], shared.lengths[i], shared.contrasts[i]);
  }
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) {
    const u32 label = component_label[first + i];
    if (label == NO_LABEL) continue;
    const u32 positions = shared.positions[i], n = shared.pixels[i];
    atomicAdd(&h.sums[label].position[0], (u64)(n * blockIdx.x * TILE + (positions & 0xffffu)));
    atomicAdd(&h.sums[label].position[1], (u64)(n * blockIdx.y * TILE + (positions >> 16)));
  }
}

// Positions of regions, and all pairs of regions that touch with the length and the contrast of their boundary.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, lane = column, four rows a warp.
// In: components, labels [components], features [height][width].
// Out: of `h` positions in sums [regions], the first table.
// Race-free: slots are taken by compare-and-swap, and integers are added by atomics, in shared memory between barriers and then to
// regions and the table.
KERNEL __launch_bounds__(TILE_THREADS)
    hierarchy_measure(Components c, const u16 *__restrict__ component_label, const u32 *__restrict__ features, Hierarchy h,
                      HierarchyArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, features, h);
  if (is_absent(batch)) return;
  measure<false>(c, component_label, features, h, args);
}

// The kernel above where frames have priors: pairs of two areas go to a table of their own, or cost more.
KERNEL __launch_bounds__(TILE_THREADS)
    hierarchy_measure_areas(Components c, const u16 *__restrict__ component_label, const u32 *__restrict__ features, Hierarchy h,
                            HierarchyArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, features, h);
  if (is_absent(batch)) return;
  measure<true>(c, component_label, features, h, args);
}

// Undoes what is too much: the root of every label, and the lowest label of every root.
// Grid: any number of blocks of MERGE_THREADS, a label a thread by turns.
// In: joins [regions], the cut.
// Out: of `h` roots and lowest labels [regions].
// Race-free: joins are only read; a thread writes its own label's root; the lowest of a root's labels is an atomic minimum.
KERNEL __launch_bounds__(MERGE_THREADS) hierarchy_roots(Hierarchy h, Batch batch) {
  after_last_kernel(h);
  select_frame(batch, h);
  if (is_absent(batch)) return;
  const u32 count = h.counts[SUPERPIXELS];
  const Cut cut = load_cut(h);
  for (u32 i = FIRST; i < count; i += ALL) {
    u32 root = i;
    for (;;) {
      const HierarchyJoin join = load_join(h, root);
      if (!keeps(cut, join, root)) break;
      root = join.into;
    }
    h.roots[i] = root;
    atomicMin(&h.lowest[root], i);
  }
}

// Words of a bitmap of all labels.
#define LABEL_WORDS 2048
#define WORDS_EACH (LABEL_WORDS / NUMBER_THREADS)
typedef BlockScan<NUMBER_THREADS> ScanWords;

// Numbers what is left in the order of the lowest labels, which become the roots.
// Grid: any number of blocks of NUMBER_THREADS, a label a thread by turns; the last to come counts.
// In: of `h` roots and lowest labels [regions].
// Out: of `h` roots, numbers of roots [regions], sums, zero [regions]; the number of regions.
// Race-free: a thread reads and writes its own label's entries, and a warp its own word of the bitmap, which the last block reads.
KERNEL __launch_bounds__(NUMBER_THREADS) hierarchy_number(Hierarchy h, u32 *__restrict__ counters, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, counters);
  if (is_absent(batch)) return;
  const u32 count = h.counts[SUPERPIXELS], thread = threadIdx.x;
  for (u32 base = blockIdx.x * NUMBER_THREADS; base < count; base += ALL) {
    const u32 i = base + thread, lowest = i < count ? h.lowest[h.roots[i]] : NO_JOIN;
    const u32 heads = __ballot_sync(FULL_WARP, lowest == i);
    if (i >= count) continue;
    h.roots[i] = lowest;
    h.sums[i] = {0, 0, {0, 0, 0}, {0, 0}};
    if (lane_id() == 0) h.heads[i / 32] = heads;
  }
  if (!is_last_block(&h.counts[TICKET])) return;
  __shared__ ScanWords::Shared scan;
  __shared__ u32 words[LABEL_WORDS], before[LABEL_WORDS];
  const u32 filled = (count + 31) / 32;
  u32 own[WORDS_EACH], sum = 0;
#pragma unroll
  for (u32 j = 0; j < WORDS_EACH; j++) {
    const u32 word = WORDS_EACH * thread + j;
    own[j] = word < filled ? __ldcg(&h.heads[word]) : 0;
    sum += __popc(own[j]);
  }
  u32 next = ScanWords::exclusive_sum<false>(scan, sum);
#pragma unroll
  for (u32 j = 0; j < WORDS_EACH; j++) {
    words[WORDS_EACH * thread + j] = own[j];
    before[WORDS_EACH * thread + j] = next;
    next += __popc(own[j]);
  }
  if (thread == 0) counters[REGIONS] = scan.total;
  __syncthreads();
  for (u32 word = thread / 32; word < filled; word += NUMBER_THREADS / 32) {
    if (words[word] >> lane_id() & 1) h.numbers[32 * word + lane_id()] = before[word] + rank_among(words[word]);
  }
}

// Components take the label of what their region has become, and what regions hold is added up.
// Grid: any number of blocks of MERGE_THREADS, a component and a region a thread by turns.
// In: roots, numbers, regions before the stage [regions].
// Out: labels [components], in place; of `h` sums of the regions to be.
// Race-free: a thread writes its own component's label; integers, added by atomics.
KERNEL __launch_bounds__(MERGE_THREADS)
    hierarchy_label(Components c, Hierarchy h, u16 *__restrict__ component_label, const RegionSums *__restrict__ regions,
                    Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, h, component_label, regions);
  if (is_absent(batch)) return;
  const u32 components = c.counters[COMPONENTS], count = h.counts[SUPERPIXELS];
  for (u32 i = FIRST; i < components; i += ALL) {
    if (component_label[i] != NO_LABEL) component_label[i] = (u16)h.numbers[h.roots[component_label[i]]];
  }
  for (u32 i = FIRST; i < count; i += ALL) {
    HierarchySums *const to = h.sums + h.numbers[h.roots[i]];
    atomicAdd(&to->count, regions[i].area);
#pragma unroll
    for (int j = 0; j < 3; j++) atomicAdd(&to->color[j], regions[i].color[j]);
  }
}

// Regions begin with what they hold.
// Grid: any number of blocks of MERGE_THREADS, a region a thread by turns.
// In: of `h` sums of the regions.
// Out: regions [regions].
// Race-free: a thread writes its own region.
KERNEL __launch_bounds__(MERGE_THREADS)
    hierarchy_regions(Hierarchy h, RegionSums *__restrict__ regions, const u32 *__restrict__ counters, Batch batch) {
  after_last_kernel(h, batch);
  select_frame(batch, h, regions, counters);
  if (is_absent(batch)) return;
  const u32 count = counters[REGIONS];
  for (u32 i = FIRST; i < count; i += ALL) store_region(regions + i, region_of(h.sums[i].count, h.sums[i].color));
}
