// SPDX-License-Identifier: MPL-2.0
// Stage `ingest`, second part, of frames that may have a mask: takes the colors of what is outside, and finds seeds inside; mirrors
// src/ingest/cpu.rs and `seed_inside` of src/grid.rs. Masks of alpha are made here, too; they mirror `set_alpha` of src/mask.rs.
#include "batch.cuh"
#include "grid.cuh"

// Grid: any number of blocks of MASK_THREADS, a pixel a thread by turns.
// In: mask [height][stride] bytes, not 0 inside; null where all is.
// Out: of features [height][width] and samples [sample_height][sample_width] those outside; the counter of samples inside, zero
// before, by one atomic addition a warp.
// Race-free: a pixel and its sample have one thread that writes them, and none is read here.
KERNEL __launch_bounds__(MASK_THREADS)
    mask_outside(const u8 *mask, u32 *features, u32 *samples, u32 *counters, u32 stride, GridArgs grid, Batch batch) {
  after_last_kernel(mask, batch);
  select_frame(batch, features, samples, counters);
  select_mask(batch, mask);
  if (is_absent(batch)) return;
  u32 inside = 0;
  for (u32 i = FIRST; i < grid.width * grid.height; i += ALL) {
    const u32 y = i / grid.width, x = i - y * grid.width;
    const bool sampled = ((x | y) & (grid.sample_step - 1)) == 0;
    if (!mask || mask[(size_t)y * stride + x]) {
      inside += sampled;
      continue;
    }
    features[i] = OUTSIDE;
    if (sampled) samples[(size_t)(y / grid.sample_step) * grid.sample_width + x / grid.sample_step] = OUTSIDE;
  }
  inside = warp_sum(FULL_WARP, inside);
  if (lane_id() == 0 && inside != 0) atomicAdd(&counters[INSIDE], inside);
}

// Finds the seed of each cell: its center or, if that is outside of the mask, the nearest pixel of the cell inside.
// Grid: a warp a cell; block: MASK_THREADS.
// In: features [height][width].
// Out: seeds [cells], column, and row in the upper half.
// Race-free: a warp writes the seed of its own cell.
KERNEL __launch_bounds__(MASK_THREADS) mask_seeds(const u32 *features, u32 *seeds, GridArgs grid, Batch batch) {
  after_last_kernel(features, batch);
  select_frame(batch, features, seeds);
  if (is_absent(batch)) return;
  const u32 k = FIRST / 32;
  if (k >= grid.nx * grid.ny) return;
  const u32 gy = k / grid.nx, gx = k - gy * grid.nx;
  const u32 x = seed_position(gx, grid.nx, grid.step, grid.width), y = seed_position(gy, grid.ny, grid.step, grid.height);
  u32 seed = y << 16 | x;
  if (features[(size_t)y * grid.width + x] == OUTSIDE) {
    const u32 right = gx + 1 == grid.nx ? grid.width : (gx + 1) * grid.step, bottom = gy + 1 == grid.ny ? grid.height : (gy + 1) * grid.step;
    u64 nearest = ~0ull;
    for (u32 v = gy * grid.step; v < bottom; v++) {
      for (u32 u = gx * grid.step + lane_id(); u < right; u += 32) {
        if (features[(size_t)v * grid.width + u] == OUTSIDE) continue;
        const i32 dx = (i32)u - (i32)x, dy = (i32)v - (i32)y;
        nearest = min(nearest, (u64)(u32)(dx * dx + dy * dy) << 32 | v << 16 | u);
      }
    }
    nearest = least_of_warp(nearest);
    if (nearest != ~0ull) seed = (u32)nearest;
  }
  if (lane_id() == 0) seeds[k] = seed;
}

// Makes a mask of a frame's alpha: `least` or more is inside.
// Grid: any number of blocks of MASK_THREADS, a pixel a thread by turns.
// In: plane [height][stride] bytes, words of `word` bytes, `step` bytes apart, with alpha above `shift` other bits.
// Out: mask [height][width] bytes, 1 inside, else 0.
// Race-free: a byte of the mask has one thread that writes it.
KERNEL __launch_bounds__(MASK_THREADS)
    mask_alpha(const u8 *__restrict__ plane, u8 *__restrict__ mask, u32 stride, u32 step, u32 word, u32 shift, u32 least, u32 width,
               u32 height) {
  after_last_kernel(plane, height);
  for (u32 i = FIRST; i < width * height; i += ALL) {
    const u32 y = i / width, x = i - y * width;
    const u8 *alpha = plane + (size_t)y * stride + (size_t)x * step;
    const u32 code = word == 1 ? *alpha : word == 2 ? *(const u16 *)alpha : *(const u32 *)alpha;
    mask[i] = code >> shift >= least;
  }
}
