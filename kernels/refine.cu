// SPDX-License-Identifier: MPL-2.0
// Stage `refine`: pixels at boundaries move to the neighboring region that fits them best; mirrors src/post/refine/cpu.rs, and the
// rule stands in src/post/refine/mod.rs. A launch a sweep: a tile goes through its four phases by itself, with as many pixels
// around it as they depend on. Moves of those pixels are computed again by the tile that they are in, with the same result.
#include "batch.cuh"
#include "block.cuh"
#include "components.cuh"
#include "regions.cuh"

// A phase depends on the pixels next to those that it may move. The first two move pixels of one row by way of each other, the
// last two so again: four columns and two rows in all.
#define HALO_X 4
#define HALO_Y 2
#define REFINE_W (TILE + 2 * HALO_X)
#define REFINE_H (TILE + 2 * HALO_Y)
static_assert((TILE / 2 + 3) * (TILE / 2 + 1) <= REFINE_THREADS, "pixels of the first phase, the largest");

// Ring pixels, from the one above clockwise, as bits.
#define STRAIGHT 0x55u
#define DIAGONAL 0xaau

// The labels of a tile and around it, NO_LABEL outside of the frame.
struct RefineTile {
  u16 label[REFINE_H][REFINE_W];

  __device__ __forceinline__ u16 &at(i32 x, i32 y) { return label[y + HALO_Y][x + HALO_X]; }
};

__device__ __forceinline__ u32 ring_of(const u32 (&ring)[8], u32 label) {
  u32 bits = 0;
#pragma unroll
  for (u32 i = 0; i < 8; i++) bits |= (u32)(ring[i] == label) << i;
  return bits;
}

// Returns true if the 4-neighbors in a pixel's own region stay connected without it; `is_free` of src/post/refine/mod.rs.
__device__ __forceinline__ bool is_free(u32 kept) {
  const u32 one = kept << 1 | kept >> 7, two = kept << 2 | kept >> 6;
  return __popc(kept & STRAIGHT & ~(one & two)) == 1;
}

__device__ __forceinline__ u32 energy(u64 color, u64 mean, u32 ring, const RefineArgs &args) {
  return distance(color, mean) + __popc(~ring & STRAIGHT) * args.straight + __popc(~ring & DIAGONAL) * args.diagonal;
}

// The region that a pixel is in afterwards. Its feature is asked for only where it may move. `area` is that of the pixel in a prior, in a
// plane as wide as the frame; null without.
__device__ __forceinline__ u32 best_region(RefineTile &tile, i32 x, i32 y, const u32 *feature, const u32 *area,
                                           const u64 *__restrict__ mean, const RefineArgs &args) {
  const u32 own = tile.at(x, y);
  const u32 ring[8] = {tile.at(x, y - 1),     tile.at(x + 1, y - 1), tile.at(x + 1, y),     tile.at(x + 1, y + 1),
                       tile.at(x, y + 1),     tile.at(x - 1, y + 1), tile.at(x - 1, y),     tile.at(x - 1, y - 1)};
  const u32 kept = ring_of(ring, own);
  if (own == NO_LABEL || !is_free(kept)) return own;
  const u64 color = 16 * ((u64)feature_0(*feature) | (u64)feature_1(*feature) << 16 | (u64)feature_2(*feature) << 32);
  u32 best = own, least = energy(color, mean[own], kept, args);
#pragma unroll
  for (u32 i = 0; i < 8; i += 2) {
    const u32 label = ring[i];
    if (label == own || label == NO_LABEL) continue;
    const i32 way = (i & 2 ? 1 : (i32)args.width) * (i == 2 || i == 4 ? 1 : -1);
    if (area && area[way] != *area) continue;
    const u32 other = energy(color, mean[label], ring_of(ring, label), args);
    if (other < least || (other == least && best != own && label < best)) {
      least = other;
      best = label;
    }
  }
  return best;
}

// Labels of pixels from those of components, for this stage and for the next frame's temporal mode, and the means of the first
// sweep.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, a pixel in each of four rows a thread, and a region by turns.
// In: labels [components], regions [regions] with their number.
// Out: labels and `kept`, which may be null [height][width]; means [regions].
// Race-free: a thread writes its own pixels and regions.
KERNEL __launch_bounds__(TILE_THREADS)
    refine_begin(Components c, const u16 *__restrict__ component_label, const RegionSums *__restrict__ regions,
                 u16 *__restrict__ labels, u16 *__restrict__ kept, u64 *__restrict__ mean, RefineArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, regions, labels, mean);
  select_some(batch, kept);
  if (is_absent(batch)) return;
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x, first = c.tile_first[tile];
  const u32 x = blockIdx.x * TILE + lane_id(), top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  for (u32 y = top; y < min(top + 4, args.height); y++) {
    if (x >= args.width) continue;
    const size_t at = (size_t)y * args.width + x;
    const u16 label = component_label[first + c.local[at]];
    labels[at] = label;
    if (kept) kept[at] = label;
  }
  const u32 count = c.counters[REGIONS], all = gridDim.x * gridDim.y * TILE_THREADS;
  for (u32 i = tile * TILE_THREADS + threadIdx.x; i < count; i += all) mean[i] = mean_of(regions[i].area, regions[i].color);
}

// Means of a further sweep.
// Grid: any number of blocks of TABLE_THREADS, a region a thread by turns.
// In: regions [regions] with their number.
// Out: means [regions].
// Race-free: a thread writes its own region's.
KERNEL __launch_bounds__(TABLE_THREADS)
    refine_means(const u32 *__restrict__ counters, const RegionSums *__restrict__ regions, u64 *__restrict__ mean,
                 Batch batch) {
  after_last_kernel(counters, batch);
  select_frame(batch, counters, regions, mean);
  if (is_absent(batch)) return;
  const u32 count = counters[REGIONS];
  for (u32 i = FIRST; i < count; i += ALL) mean[i] = mean_of(regions[i].area, regions[i].color);
}

// A sweep.
// Grid: tiles of 32 x 32 px; block: REFINE_THREADS, a pixel of a phase a thread.
// In: labels and features [height][width], means [regions]; `prior` [height][width], areas that no pixel leaves, null without.
// Out: refined [height][width], another plane; area and color of regions, to those of the refined labels.
// Race-free: in a phase a thread writes its own pixel's label, and no thread reads a pixel of its parity but its own; barriers
// separate the phases. Sums are integers, changed by atomics, and nobody reads them here.
KERNEL __launch_bounds__(REFINE_THREADS)
    refine_sweep(const u16 *__restrict__ labels, u16 *__restrict__ refined, const u32 *__restrict__ features,
                 const u32 *__restrict__ prior, const u64 *__restrict__ mean, RegionSums *__restrict__ regions, RefineArgs args,
                 Batch batch) {
  after_last_kernel(labels, batch);
  select_frame(batch, labels, refined, features, mean, regions);
  select_some(batch, prior);
  if (is_absent(batch)) return;
  __shared__ RefineTile tile;
  const i32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  for (u32 i = threadIdx.x; i < REFINE_W * REFINE_H; i += REFINE_THREADS) {
    const i32 x = (i32)(i % REFINE_W) - HALO_X, y = (i32)(i / REFINE_W) - HALO_Y;
    const bool inside = (u32)(left + x) < args.width && (u32)(top + y) < args.height;
    tile.at(x, y) = inside ? labels[(size_t)(top + y) * args.width + left + x] : NO_LABEL;
  }
  __syncthreads();
#pragma unroll
  for (i32 phase = 0; phase < 4; phase++) {
    // Each phase has a column less than the one before, and only those of even rows the row below the tile.
    const i32 columns = TILE / 2 + 3 - phase, rows = TILE / 2 + 1 - phase / 2;
    const i32 i = threadIdx.x, x = phase - 2 + 2 * (i % columns), y = phase / 2 + 2 * (i / columns);
    if (i < columns * rows) {
      const u32 own = tile.at(x, y);
      const size_t at = (size_t)(top + y) * args.width + left + x;
      const u32 best = best_region(tile, x, y, features + at, prior ? prior + at : nullptr, mean, args);
      if (best != own) {
        tile.at(x, y) = (u16)best;
        if ((u32)x < TILE && (u32)y < TILE) {
          const u32 feature = features[at], color[3] = {feature_0(feature), feature_1(feature), feature_2(feature)};
          atomicAdd(&regions[best].area, 1u);
          atomicAdd(&regions[own].area, 0u - 1u);
#pragma unroll
          for (int j = 0; j < 3; j++) {
            atomicAdd(&regions[best].color[j], (u64)color[j]);
            atomicAdd(&regions[own].color[j], 0ull - color[j]);
          }
        }
      }
    }
    __syncthreads();
  }
  for (u32 i = threadIdx.x; i < TILE * TILE; i += REFINE_THREADS) {
    const u32 x = i % TILE, y = i / TILE;
    if (left + x >= args.width || top + y >= args.height) continue;
    refined[(size_t)(top + y) * args.width + left + x] = tile.at(x, y);
  }
}

// Room for as many labels as a tile may have, half of it free.
#define LABEL_SLOTS (2 * TILE * TILE)
#define NO_SLOT 0xffffffffu

// Makes the labels of each tile its components, which is where `statistics` finds what belongs to a region.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, a pixel in each of four rows a thread.
// In: labels [height][width].
// Out: first component, their number [tiles]; component of each pixel [height][width]; labels [components], of which a tile has
// room for one a pixel.
// Race-free: slots are taken by compare-and-swap, numbers by atomics; whoever took a slot writes its number and label. Their
// order shows in no result.
KERNEL __launch_bounds__(TILE_THREADS)
    refine_end(Components c, const u16 *__restrict__ labels, u16 *__restrict__ component_label, RefineArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, labels, component_label);
  if (is_absent(batch)) return;
  __shared__ u32 keys[LABEL_SLOTS], count;
  __shared__ u16 number[LABEL_SLOTS];
  for (u32 i = threadIdx.x; i < LABEL_SLOTS; i += TILE_THREADS) keys[i] = NO_SLOT;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE, lane = lane_id();
  const u32 x = left + lane, row = top + threadIdx.x / 32 * 4;
  const u32 first = top * args.width + left * min((u32)TILE, args.height - top);
  u32 slot[4];
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const bool inside = x < args.width && row + i < args.height;
    const u32 label = inside ? labels[(size_t)(row + i) * args.width + x] : NO_SLOT;
    const u32 before = __shfl_up_sync(FULL_WARP, label, 1);
    const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != label);
    slot[i] = 0;
    if (inside && starts >> lane & 1) {
      const Inserted taken = insert_key<NO_SLOT>(label, LABEL_SLOTS - 1, [&](u32 at) { return keys + at; });
      slot[i] = taken.slot;
      if (taken.fresh) {
        const u32 at = atomicAdd(&count, 1u);
        number[taken.slot] = (u16)at;
        component_label[first + at] = (u16)label;
      }
    }
    slot[i] = __shfl_sync(FULL_WARP, slot[i], run_start(starts, lane));
  }
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    if (x < args.width && row + i < args.height) c.local[(size_t)(row + i) * args.width + x] = number[slot[i]];
  }
  if (threadIdx.x == 0) {
    c.tile_first[blockIdx.y * gridDim.x + blockIdx.x] = first;
    c.tile_count[blockIdx.y * gridDim.x + blockIdx.x] = count;
  }
}
