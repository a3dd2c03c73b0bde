// SPDX-License-Identifier: MPL-2.0
// State from frame to frame, and its use in rounds; mirrors src/temporal.
#pragma once
#include "grid.cuh"
#include "largest.cuh"
#include "tracks.cuh"

// Constants of src/temporal/mod.rs.
#define POSITION_UNIT 16
#define SAME 128u
#define MOVED_DISCOUNT 6u
#define STILL_DISCOUNT 45u
#define STILL 45u
#define TRACK_MARGIN 8
#define TRACK_NOISE 3
#define TRACK_FLAT 30u
#define FLAT_ONE 256u
#define TRACK_HOP 2
// Lowest bit of a part's number in `Temporal::cells`: rows of cells, at most 8192, are below.
#define PART_BIT 29
// Most shifts of the picture that are looked at.
#define SHIFTS 289
#define CLAIM_ROUNDS 2
#define MATCH_ROUNDS 4
// That of src/post/connectivity.
#define MAX_REGIONS 65535u

// Sum over a whole warp, in every lane.
__device__ __forceinline__ u32 total_of_warp(u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(FULL_WARP, value);
#else
  for (u32 step = 16; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step);
  return value;
#endif
}

// Center of a cell in 1/16 px.
__device__ __forceinline__ void center_of(const GridArgs &grid, u32 x, u32 y, i32 (&out)[2]) {
  const u32 right = x + 1 == grid.nx ? grid.width : (x + 1) * grid.step;
  const u32 bottom = y + 1 == grid.ny ? grid.height : (y + 1) * grid.step;
  out[0] = POSITION_UNIT / 2 * (i32)(x * grid.step + right - 1);
  out[1] = POSITION_UNIT / 2 * (i32)(y * grid.step + bottom - 1);
}

__device__ __forceinline__ u64 square_of(i64 v) { return (u64)(v * v); }

// 1/16 px in whole px, rounded half up.
__device__ __forceinline__ i32 whole_px(i32 position) { return (position + POSITION_UNIT / 2) >> 4; }

// How a round of a frame that follows another begins: from where the clusters are now; after a cut, from seeds, and else
// not at all; from the sums of the round before.
enum Begin { BEGIN_CARRY = 0, BEGIN_AGAIN = 1, BEGIN_SUMS = 2 };

// Returns true if the first warm round's residual tells of a cut; known to every launch after that round. Without clusters
// the thumbnails alone decide.
__device__ __forceinline__ bool is_cut(const TemporalState &state, const TemporalArgs &args) {
  if (!args.in_slots) return state.unlike;
  return is_cut(state);
}

__device__ __forceinline__ i32 clamp_position(i32 at, u32 side) { return min(max(at, 0), (i32)side - 1); }

// Similarity of a pixel that differs so much from where it comes from, in eighths.
__device__ __forceinline__ u32 similarity_of(u32 difference) {
  return (u32)max((i32)(SAME + SAME / 8 - 1) - (i32)difference, 0) / (SAME / 8);
}

// Which slot of a tile's reach a pixel is predicted to belong to, from the previous frame, or NO_SLOT, as which part, and what bounds
// the discount for its similarity to where it comes from.
struct Predicted {
  u32 slot, part, bound;
};

// A pixel prefers the cluster that it is predicted to belong to. Adds up the least distances over the sample lattice.
// Works on N pixels of a column at once, whose loads then wait for each other once instead of N times.
struct Inertia {
  const Temporal &t;
  const TemporalArgs &args;
  const GridArgs &grid;
  bool warm;
  u64 *total;  // in shared memory; none if nothing is to be added up
  u64 residual;

  // Loads, ahead of use, the last frame's colors at the positions of the pixels.
  template <class Pixel, int N>
  __device__ __forceinline__ void load_previous(const Pixel (&pixel)[N], u32 (&last)[N]) const {
    if (!warm) return;
#pragma unroll
    for (int i = 0; i < N; i++) last[i] = __ldg(&t.features_last[pixel[i].y * grid.width + pixel[i].x]);
  }

  template <class Pixel, int N>
  __device__ __forceinline__ void predict(const Slots &slots, const Pixel (&pixel)[N], const u32 (&last)[N],
                                          Predicted (&own)[N]) const {
    u32 difference[N], at[N], label[N], cell[N], most = 0;
    const u32 still = t.state->still;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const Pixel &here = pixel[i];
      at[i] = here.y * grid.width + here.x;
      difference[i] = feature_difference(here.feature, last[i]);
      most = max(most, difference[i]);
      own[i].bound = still;
    }
    if (most < STILL) {
#pragma unroll
      for (int i = 0; i < N; i++) label[i] = __ldg(&t.labels[at[i]]);
    } else {
      // One branch for all, so that what they ask for they wait for once: who stands still asks for the same again.
      u32 there[N], left = 0;
      i32 down = 0;
#pragma unroll
      for (int i = 0; i < N; i++) {
        const Pixel &here = pixel[i];
        // Pixels of a column lie in one cell nearly always.
        if (i == 0 || here.gy != pixel[i > 0 ? i - 1 : 0].gy) {
          const int2 move = t.moves[here.gy * grid.nx + here.gx];
          left = (u32)clamp_position((i32)here.x - move.x, grid.width);
          down = move.y;
        }
        const u32 from = (u32)clamp_position((i32)here.y - down, grid.height) * grid.width + left;
        at[i] = difference[i] < STILL ? at[i] : from;
      }
#pragma unroll
      for (int i = 0; i < N; i++) there[i] = __ldg(&t.features_last[at[i]]);
#pragma unroll
      for (int i = 0; i < N; i++) label[i] = __ldg(&t.labels[at[i]]);
      const u32 eighth = t.state->eighth;
#pragma unroll
      for (int i = 0; i < N; i++) {
        const u32 moved = eighth * similarity_of(feature_difference(pixel[i].feature, there[i]));
        own[i].bound = difference[i] < STILL ? still : moved;
      }
    }
    bool released = false;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const Pixel &here = pixel[i];
      if (i == 0 || here.gy != pixel[i > 0 ? i - 1 : 0].gy) released = __ldg(&t.sources[here.gy * grid.nx + here.gx].released) != 0;
      cell[i] = __ldg(&t.cells[label[i]]);
      if (released) cell[i] = NONE;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      const u32 cx = cell[i] & 0xffffu, cy = cell[i] >> 16 & ((1u << (PART_BIT - 16)) - 1);
      const bool near = cx - pixel[i].gx + 1 <= 2 && cy - pixel[i].gy + 1 <= 2;
      own[i].slot = near ? slots.of(cx, cy) : NO_SLOT;
      own[i].part = cell[i] >> PART_BIT;
    }
  }

  // `best` are the nearest slots; `least` is a pixel's distance to that, `distance` to any slot, and `residual_bits` of it are
  // not added up. `part` is that of the pixels that go to the slot that they are predicted to belong to, else 0.
  template <class Pixel, int N, class Least, class Distance>
  __device__ __forceinline__ void prefer(const Slots &slots, const Pixel (&pixel)[N], const u32 (&last)[N],
                                         u32 (&best)[N], u32 (&part)[N], u32 residual_bits, Least least, Distance distance) {
    Predicted own[N];
    bool any = false;
    if (warm) {
      predict(slots, pixel, last, own);
#pragma unroll
      for (int i = 0; i < N; i++) any = any || (own[i].slot != NO_SLOT && own[i].slot != best[i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      const bool sampled = ((pixel[i].x | pixel[i].y) & (grid.sample_step - 1)) == 0;
      if (sampled && pixel[i].inside) residual += least(i) >> residual_bits;
    }
#pragma unroll
    for (int i = 0; i < N; i++) part[i] = warm && own[i].slot == best[i] ? own[i].part : 0;
    if (!any) return;
    // No branch for each: of a warp some pixel nearly always asks. What is nearest stays so with a discount.
#pragma unroll
    for (int i = 0; i < N; i++) {
      const bool is_near = own[i].slot != NO_SLOT;
      const u32 slot = is_near ? own[i].slot : best[i];
      const auto nearest = least(i), whole = distance(slot, i);
      const auto most = whole * args.sure >> 8;
      const auto left = whole - min(most, (decltype(most))own[i].bound << residual_bits);
      if (is_near && (left < nearest || (left == nearest && slot < best[i]))) {
        best[i] = slot;
        part[i] = own[i].part;
      }
    }
  }

  __device__ void end() {
    if (!total) return;
    for (u32 step = 16; step > 0; step /= 2) residual += __shfl_down_sync(FULL_WARP, residual, step);
    if (lane_id() == 0) atomicAdd(total, residual);
  }
};
