// SPDX-License-Identifier: MPL-2.0
// Parts of a round of clustering on the grid that do not depend on the distance: where a thread's samples are, and the sums of clusters. SLIC and
// LSC take it.
#pragma once
#include "grid.cuh"

// Samples of a column that a thread has.
#define ROUND_SAMPLES (ROUND_TILE_W * ROUND_TILE_H / ROUND_THREADS)

// The tile of a round's block, in samples. A warp has ROUND_SAMPLES rows of it, a lane a column of these. Samples
// outside the frame repeat those of its last column and row.
struct RoundTile {
  u32 left, top, right, bottom;  // right and bottom inside the frame
  u32 sx, sy;                    // of the thread's first sample, which may be outside
  u32 step;                      // px from one sample to the next

  __device__ __forceinline__ u32 column() const { return min(sx, right); }
  __device__ __forceinline__ u32 row(u32 i) const { return min(sy + i, bottom); }
  __device__ __forceinline__ bool inside(u32 i) const { return sx <= right && sy + i <= bottom; }
  __device__ __forceinline__ Slots slots(const GridArgs &args) const {
    return slots_of(args, left * step, top * step, right * step, bottom * step);
  }
};
__device__ __forceinline__ RoundTile round_tile(const GridArgs &args) {
  const u32 left = blockIdx.x * ROUND_TILE_W, top = blockIdx.y * ROUND_TILE_H;
  return {left, top, min(left + ROUND_TILE_W, args.sample_width) - 1, min(top + ROUND_TILE_H, args.sample_height) - 1,
          left + lane_id(), top + threadIdx.x / 32 * ROUND_SAMPLES, args.sample_step};
}

// Clears the sums of a tile's slots in shared memory. No barrier.
template <u32 WORDS, u32 ROW>
__device__ __forceinline__ void clear_slot_sums(u32 (&shared)[WORDS][ROW], u32 slots) {
  for (u32 i = threadIdx.x; i < slots; i += ROUND_THREADS) {
#pragma unroll
    for (int j = 0; j < WORDS; j++) shared[j][i] = 0;
  }
}

// Sums of a thread for one slot after the other, kept in registers until it adds them to the sums of the block in shared memory.
// WORDS of each slot; ROW: distance of one word's sums from the next word's. Integers, so that their order does not matter. No
// barriers: call one before the first and after `end`.
template <u32 WORDS, u32 ROW>
struct SlotSums {
  u32 (*const shared)[ROW];
  u32 target, sum[WORDS];  // the slot, at first none

  __device__ __forceinline__ explicit SlotSums(u32 (*shared)[ROW]) : shared(shared), target(NO_SLOT) {
#pragma unroll
    for (int j = 0; j < WORDS; j++) sum[j] = 0;
  }
  // Adds what there is, and goes on with another slot.
  __device__ __forceinline__ void go_to(u32 slot) {
    if (target != NO_SLOT) add();
    target = slot;
#pragma unroll
    for (int j = 0; j < WORDS; j++) sum[j] = 0;
  }
  __device__ __forceinline__ void add() const {
#pragma unroll
    for (int j = 0; j < WORDS; j++) atomicAdd(&shared[j][target], sum[j]);
  }
  // Adds what is left. Whole warps: in large cells all lanes end on one cluster, and are added up before they queue for it.
  __device__ __forceinline__ void end() const {
    int same;
    __match_all_sync(FULL_WARP, target, &same);
    if (same && target != NO_SLOT) {
#pragma unroll
      for (int j = 0; j < WORDS; j++) {
        const u32 total = warp_sum(FULL_WARP, sum[j]);
        if (lane_id() == 0) atomicAdd(&shared[j][target], total);
      }
    } else if (target != NO_SLOT) {
      add();
    }
  }
};
