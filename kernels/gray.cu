// SPDX-License-Identifier: MPL-2.0
// Stage `ingest`, before it: the range of codes that a frame of 16-bit gray uses; mirrors src/ingest/mod.rs, which says what that is.
#include "batch.cuh"
#include "block.cuh"
#include "frame.cuh"

#define BIN_SHIFT 4
#define BINS (65536 >> BIN_SHIFT)
#define OUTLIERS 1024
#define LEAST 255

// Grid: any number of blocks of GRAY_THREADS; a block takes rows, by turns.
// In: the frame; mask [height][mask_stride] bytes, not 0 inside, null where all is.
// In and out: counts [BINS], pixels in each group of codes, by atomic additions; zero before.
// Race-free: counts are integers, added by atomics, in shared memory and then to those of all blocks.
KERNEL __launch_bounds__(GRAY_THREADS) gray_count(const u8 *mask, u32 *counts, u32 mask_stride, FrameArgs frame, Batch batch) {
  after_last_kernel(mask, batch);
  select_frame(batch, counts);
  select_planes(batch, frame);
  select_mask(batch, mask);
  if (is_absent(batch)) return;
  __shared__ u32 own[BINS];
  for (u32 i = threadIdx.x; i < BINS; i += GRAY_THREADS) own[i] = 0;
  __syncthreads();
  for (u32 y = blockIdx.x; y < frame.height; y += gridDim.x) {
    const u8 *row = frame.plane[0] + (size_t)y * frame.stride[0];
    for (u32 x = threadIdx.x; x < frame.width; x += GRAY_THREADS) {
      if (mask && !mask[(size_t)y * mask_stride + x]) continue;
      atomicAdd(&own[code_at<2>(frame, row + 2 * (size_t)x, 0) >> BIN_SHIFT], 1);
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < BINS; i += GRAY_THREADS) {
    if (own[i]) atomicAdd(&counts[i], own[i]);
  }
}

// Codes that become black and white.
struct GrayRange {
  i32 low, high;
  __device__ __forceinline__ i32 width() const { return high - low; }
};

__device__ __forceinline__ GrayRange widened(const GrayRange &used) {
  const i32 margin = max(used.width() >> 4, (LEAST - used.width() + 1) >> 1);
  const i32 low = max(used.low - margin, 0), high = min(max(used.high + margin, low + LEAST), 65535);
  return {min(low, high - LEAST), high};
}

// Grid: one block of 1024, a thread BINS / 1024 groups.
// In and out: counts [BINS], zero afterwards; range: code of black, factor to white, code of white; `follows`: that of the frame before is
// there and this is its warm start.
// Race-free: a thread reads and clears its own counts; one thread writes each end in shared memory, and one the range.
KERNEL __launch_bounds__(1024) gray_range(u32 *counts, i32 *range, u32 follows, Batch batch) {
  after_last_kernel(counts, batch);
  select_frame(batch, counts, range);
  if (is_absent(batch)) return;
  const u32 EACH = BINS / 1024;
  __shared__ BlockScan<1024>::Shared scan;
  __shared__ GrayRange used;
  u32 own[EACH], sum = 0;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    own[i] = counts[threadIdx.x * EACH + i];
    counts[threadIdx.x * EACH + i] = 0;
    sum += own[i];
  }
  u32 before = BlockScan<1024>::exclusive_sum<false>(scan, sum);
  const u32 all = scan.total, outliers = all / OUTLIERS;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const i32 code = (i32)(threadIdx.x * EACH + i) << BIN_SHIFT;
    const u32 after = all - before - own[i];
    if (before <= outliers && before + own[i] > outliers) used.low = code;
    if (after <= outliers && after + own[i] > outliers) used.high = code + (1 << BIN_SHIFT) - 1;
    before += own[i];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  GrayRange found = {0, 65535};
  const GrayRange last = {range[0], range[2]};
  if (all != 0) {
    found = widened(used);
    if (follows && last.low <= used.low && used.high <= last.high && last.width() <= 2 * found.width()) found = last;
  } else if (follows) {
    found = last;
  }
  range[0] = found.low;
  range[1] = (i32)(65535ll * 65536 / found.width());
  range[2] = found.high;
}
