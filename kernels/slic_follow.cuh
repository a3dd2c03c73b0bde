// SPDX-License-Identifier: MPL-2.0
// SLIC of a frame that follows another: the end of slic.cu, whose rounds and labels it takes; mirrors `follow` in
// src/algo/slic/cpu.rs.
#pragma once
#include "temporal.cuh"

__device__ __forceinline__ i32 rescale(i64 scale, i32 position) { return (i32)((position * scale + (1 << 15)) >> 16); }

// One of three, without an array that would be in local memory.
__device__ __forceinline__ Sums *sums_of(const SlicTemporal &own, u32 round) {
  const u32 turn = round % 3;
  return turn == 0 ? own.sums[0] : turn == 1 ? own.sums[1] : own.sums[2];
}
__device__ __forceinline__ Center *centers_of(const SlicTemporal &own, u32 round) {
  return round % 2 ? own.centers[1] : own.centers[0];
}

// Distances, with SLICO in the fixed point of their scores: that of the nearest cluster by what it scores, and of a pixel and any
// cluster. Without SLICO they are below 2^24.
__device__ __forceinline__ u32 distance_of(i32 score, const Pixel &pixel) {
  const i32 x = pixel.position_x, y = pixel.position_y;
  return (u32)((score >> 4) + (x * x + y * y));
}
__device__ __forceinline__ u64 distance_of(u64 score, const Pixel &) { return score; }

__device__ __forceinline__ u32 distance(const Reach *reach, const SlicArgs &, u32 slot, const Pixel &pixel, u32) {
  const Reach &cluster = reach[slot];
  const int4 c = cluster.color_x;
  const u32 color = color_difference(4 * (u32)pixel.l, 4 * (u32)pixel.a, 4 * (u32)pixel.b, c);
  const u32 spatial = (u32)pixel.position_x * (u32)c.w + (u32)pixel.position_y * (u32)cluster.y + (u32)cluster.rest;
  return distance_of((i32)(color * color + spatial), pixel);
}
__device__ __forceinline__ u64 distance(const Reach *reach, const SlicArgs &args, u32 slot, const Pixel &pixel, u64) {
  const Reach &cluster = reach[slot];
  const int4 c = cluster.color_x;
  const i32 dl = pixel.l - c.x, da = pixel.a - c.y, db = pixel.b - c.z, dx = pixel.position_x - c.w, dy = pixel.position_y - cluster.y;
  const u32 color = (u32)(dl * dl + da * da + db * db), spatial = (u32)(dx * dx + dy * dy);
  return (u64)color * ((1u << 30) / max((u32)cluster.rest, 1u)) + (u64)spatial * args.position_weight;
}

template <bool ADAPTIVE>
struct SlicInertia : Inertia {
  const SlicArgs &own;

  template <int N, class Score>
  __device__ void choose(const Reach *reach, const Slots &slots, const Pixel (&pixel)[N], const u32 (&last)[N],
                         const Score (&least)[N], u32 (&best)[N], u32 (&part)[N]) {
    prefer(
        slots, pixel, last, best, part, ADAPTIVE ? 20 : 0, [&](int i) { return distance_of(least[i], pixel[i]); },
        [&](u32 slot, int i) { return distance(reach, own, slot, pixel[i], distance_of(least[i], pixel[i])); });
  }
};

// The center of a cell where the last frame's clusters are now; cells that none came to are seeded.
__device__ __forceinline__ Center carry(const SlicArgs &args, const Positions &positions, const SlicTemporal &own,
                                        const Temporal &t, u32 x, u32 y) {
  const Source source = t.sources[y * args.nx + x];
  if (source.slot == NONE) return seed(args, positions, t.features, x, y);
  Center center = own.carried_last[source.slot];
  const Slot &slot = t.slots_last[source.slot];
  if (slot.reseeded) {
#pragma unroll
    for (int i = 0; i < 3; i++) center.value[i] = (i32)(slot.color[i] >> args.color_shift);
#pragma unroll
    for (int i = 0; i < 2; i++) center.value[3 + i] = rescale(own.scale[1], slot.position[i]);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) center.value[3 + i] += rescale(own.scale[1], source.shift[i]);
  center.value[5] = (i32)args.initial;
  return center;
}

// As `assign_round`. The round after a cut is one more, so all that follow count one further. Whether there was one is known since
// the first round, to whose follower alone that is new.
template <bool ADAPTIVE>
__device__ __forceinline__ void follow(const u32 *samples, const i32 *px, const i32 *py, const SlicTemporal &own,
                                       const Temporal &t, const TemporalArgs &temporal, u32 begin, u32 round,
                                       const SlicArgs &args) {
  __shared__ u64 total;
  if (begin == BEGIN_AGAIN) wait_for_last_kernel();
  const bool cut = begin != BEGIN_CARRY && is_cut(*t.state, temporal);
  if (begin == BEGIN_AGAIN && !cut) return;
  round += cut && begin == BEGIN_SUMS;
  const Positions positions = {px, py};
  Sums *clear = sums_of(own, round + 1);
  Center *out = centers_of(own, round);
  if (threadIdx.x == 0) total = 0;
  const SlicInertia<ADAPTIVE> inertia = {{t, temporal, args, !cut, begin == BEGIN_CARRY ? &total : nullptr, 0}, args};
  assign<ADAPTIVE>(
      samples, false, px, py, sums_of(own, round), args,
      [&](const Cell &cell) {
        const u32 k = cell.y * args.nx + cell.x;
        if (begin == BEGIN_CARRY) return begin_with(carry(args, positions, own, t, cell.x, cell.y));
        if (begin == BEGIN_AGAIN) return begin_with(seed(args, positions, t.features, cell.x, cell.y));
        return load_turn(sums_of(own, round + 2) + k, centers_of(own, round + 1) + k);
      },
      [&](u32 k, const Center &center) {
        out[k] = center;
        clear_sums(clear + k);
      },
      inertia);
  // `assign` has ended in a barrier since the last warp added.
  if (begin == BEGIN_CARRY && threadIdx.x == 0) atomicAdd(&t.state->residual_first, total);
}

// As `slic_assign`, for a frame that follows another; `begin` is a `Begin`, `round` the number of the round. The round after a cut
// is one more, so all that follow count one further.
// Grid and block: the same.
// In: samples, px, py; of `t` sources [cells], slots, labels and features of the last frame, which nobody writes meanwhile; of `own`
// sums and centers by turns.
// Out: sums and centers of this round's turn; in the first round the residual, one atomic addition a block.
// Race-free: as there; three sets of sums and two of centers take turns.
KERNEL __launch_bounds__(ROUND_THREADS)
    slic_follow(const u32 *__restrict__ samples, const i32 *__restrict__ px, const i32 *__restrict__ py,
                SlicTemporal own, Temporal t, TemporalArgs temporal, u32 begin, u32 round, SlicArgs args, Batch batch) {
  beside_last_kernel(samples, batch);
  select_frame(batch, samples, own, t, args);
  if (is_absent(batch)) return;
  follow<false>(samples, px, py, own, t, temporal, begin, round, args);
}

// The kernel above for SLICO.
KERNEL __launch_bounds__(ROUND_THREADS)
    slic_follow_adaptive(const u32 *__restrict__ samples, const i32 *__restrict__ px, const i32 *__restrict__ py,
                         SlicTemporal own, Temporal t, TemporalArgs temporal, u32 begin, u32 round, SlicArgs args, Batch batch) {
  beside_last_kernel(samples, batch);
  select_frame(batch, samples, own, t, args);
  if (is_absent(batch)) return;
  follow<true>(samples, px, py, own, t, temporal, begin, round, args);
}

// As `label_alone`, and leaves what the next frame needs. `round` is the last one's number.
template <bool ADAPTIVE, u32 WARPS>
__device__ __forceinline__ void label_and_leave(const i32 *px, const i32 *py, const SlicTemporal &own,
                                                const Temporal &t, const TemporalArgs &temporal,
                                                const Components &components, u32 round, u32 follows,
                                                const SlicArgs &args) {
  __shared__ u64 total;
  // Without rounds the colors are new.
  if (args.identity) wait_for_last_kernel();
  const bool cut = follows && is_cut(*t.state, temporal);
  round += cut;
  const Sums *sums = sums_of(own, round);
  const Center *old = centers_of(own, round);
  if (threadIdx.x == 0) total = 0;
  const SlicInertia<ADAPTIVE> inertia = {{t, temporal, args, follows && !cut, &total, 0}, args};
  label<ADAPTIVE, WARPS>(
      t.features, px, py, components, args,
      [&](const Cell &cell) {
        const u32 k = cell.y * args.nx + cell.x;
        return load_turn(sums + k, old + k);
      },
      [&](u32 k, const Center &center) {
        own.carried[k] = center;
        t.positions[k] = {rescale(own.scale[0], center.value[3]), rescale(own.scale[0], center.value[4])};
      },
      inertia);
  __syncthreads();
  if (threadIdx.x == 0 && total != 0) atomicAdd(&t.state->residual, total);
}

// As `slic_label`, for a frame that leaves what the next one needs; `round` is the last one's number, `follows` whether it goes on
// from a frame.
// Grid and block: the same.
// Out, beside what `slic_label` writes: `carried` [cells] and positions [cells], by the blocks of all tiles that a cell lies in,
// which write the same values; the residual, one atomic addition a block. The last frame's labels are read, this frame's are written
// by a later kernel and to another plane.
KERNEL __launch_bounds__(LABEL_THREADS, 6)
    slic_label_follow(const i32 *__restrict__ px, const i32 *__restrict__ py, SlicTemporal own, Temporal t,
                      TemporalArgs temporal, Components components, u32 round, u32 follows, SlicArgs args, Batch batch) {
  beside_last_kernel(px, batch);
  select_frame(batch, own, t, components, args);
  if (is_absent(batch)) return;
  label_and_leave<false, LABEL_THREADS / 32>(px, py, own, t, temporal, components, round, follows, args);
}

// The kernel above for frames of few tiles; block: LABEL_THREADS_SMALL.
KERNEL __launch_bounds__(LABEL_THREADS_SMALL, 3)
    slic_label_follow_small(const i32 *__restrict__ px, const i32 *__restrict__ py, SlicTemporal own, Temporal t,
                            TemporalArgs temporal, Components components, u32 round, u32 follows, SlicArgs args, Batch batch) {
  beside_last_kernel(px, batch);
  select_frame(batch, own, t, components, args);
  if (is_absent(batch)) return;
  label_and_leave<false, LABEL_THREADS_SMALL / 32>(px, py, own, t, temporal, components, round, follows, args);
}

// As `slic_label_follow`, for SLICO.
KERNEL __launch_bounds__(LABEL_THREADS, 6)
    slic_label_follow_adaptive(const i32 *__restrict__ px, const i32 *__restrict__ py, SlicTemporal own, Temporal t,
                               TemporalArgs temporal, Components components, u32 round, u32 follows, SlicArgs args, Batch batch) {
  beside_last_kernel(px, batch);
  select_frame(batch, own, t, components, args);
  if (is_absent(batch)) return;
  label_and_leave<true, LABEL_THREADS / 32>(px, py, own, t, temporal, components, round, follows, args);
}
