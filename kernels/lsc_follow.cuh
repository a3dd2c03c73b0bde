// SPDX-License-Identifier: MPL-2.0
// LSC of a frame that follows another: the end of lsc.cu, whose rounds and labels it takes; mirrors `follow` in
// src/algo/lsc/cpu.rs.
#pragma once
#include "temporal.cuh"

#define TURN_BITS 14

// One of three, without an array that would be in local memory.
__device__ __forceinline__ Sums *sums_of(const LscTemporal &own, u32 round) {
  const u32 turn = round % 3;
  return turn == 0 ? own.sums[0] : turn == 1 ? own.sums[1] : own.sums[2];
}
__device__ __forceinline__ Sums *state_of(const LscTemporal &own, u32 round) {
  return round % 2 ? own.state[1] : own.state[0];
}

// Weight of a pixel, in the order of `nearest`.
__device__ __forceinline__ float weight_of(const Mean &mean, const Pixel &pixel) {
  float weight = pixel.f[0] * mean.weights[0];
#pragma unroll
  for (int j = 1; j < 6; j++) weight = __fmaf_rn(pixel.f[j], mean.weights[j], weight);
  return weight;
}

// Distance in whole quanta: a score, and what all candidates share.
__device__ __forceinline__ u64 distance_of(const Mean &mean, float square, float weight, float score) {
  const float whole = square / weight - (float)norm_of(mean) * weight + score;
  return whole > 0.0f ? (u32)whole : 0;
}

// Score of a pixel and a cluster, in the order of `nearest`.
__device__ __forceinline__ float score_of(const Cluster *reach, float weight, u32 slot, const Pixel &pixel) {
  const float(&f)[6] = pixel.f;
  const float4 a = reach[slot].part[0], b = reach[slot].part[1], c = reach[slot].part[2];
  float score = __fmaf_rn((float)high(pixel.position_x), c.x, (float)low(pixel.position_x) * b.w);
  score = __fmaf_rn((float)high(pixel.position_y), c.z, __fmaf_rn((float)low(pixel.position_y), c.y, score));
  score = __fmaf_rn(weight, b.z, score);
  score = __fmaf_rn(f[0], a.x, score);
  score = __fmaf_rn(f[1], a.y, score);
  score = __fmaf_rn(f[2], a.z, score);
  score = __fmaf_rn(f[3], a.w, score);
  score = __fmaf_rn(f[4], b.x, score);
  return __fmaf_rn(f[5], b.y, score);
}

struct LscInertia : Inertia {
  // Four keep more than registers hold.
  static const u32 AT_ONCE = 2;
  float square;

  template <int N>
  __device__ void choose(const Cluster *reach, const Mean &mean, const Slots &slots, const Pixel (&pixel)[N],
                         const u32 (&last)[N], const float (&lowest)[N], u32 (&best)[N], u32 (&part)[N]) {
    prefer(
        slots, pixel, last, best, part, 0,
        [&](int i) { return distance_of(mean, square, weight_of(mean, pixel[i]), lowest[i]); },
        [&](u32 slot, int i) {
          const float weight = weight_of(mean, pixel[i]);
          return distance_of(mean, square, weight, score_of(reach, weight, slot, pixel[i]));
        });
  }
};

// A sum of pairs of position after a move by whole px.
__device__ __forceinline__ void move_pair(const LscTemporal &own, const LscArgs &args, i32 by, u32 &cosine, u32 &sine) {
  const i32 turn = 4 * (i32)args.step, at = by % turn;
  const u32 pair = own.turn[at < 0 ? at + turn : at];
  const i64 c = low(pair), s = high(pair), x = (i32)cosine, y = (i32)sine, half = 1 << (TURN_BITS - 1);
  cosine = (u32)(i32)((x * c - y * s + half) >> TURN_BITS);
  sine = (u32)(i32)((x * s + y * c + half) >> TURN_BITS);
}

// The sums of a cell's cluster where the last frame's clusters are now; cells that none came to are seeded.
__device__ __forceinline__ Sums carry(const LscArgs &args, const Pairs &pairs, const LscTemporal &own, const Temporal &t,
                                      u32 x, u32 y) {
  const Source source = t.sources[y * args.nx + x];
  if (source.slot == NONE) return seed(args, pairs, t.features, x, y);
  Sums sums = load(own.carried_last + source.slot);
  const Slot &slot = t.slots_last[source.slot];
  if (slot.reseeded) {
    const u32 list[5] = {pairs.color[slot.color[0]], pairs.color[1024 + slot.color[1]], pairs.color[1024 + slot.color[2]],
                         pairs.px[clamp_position(whole_px(slot.position[0]), args.width)],
                         pairs.py[clamp_position(whole_px(slot.position[1]), args.height)]};
#pragma unroll
    for (int i = 0; i < 5; i++) {
      sums.value[2 * i] = (u32)low(list[i]);
      sums.value[2 * i + 1] = (u32)high(list[i]);
    }
  }
  move_pair(own, args, whole_px(source.shift[0]), sums.value[6], sums.value[7]);
  move_pair(own, args, whole_px(source.shift[1]), sums.value[8], sums.value[9]);
  return sums;
}

// The position in 1/16 px that a sum of pairs points to, of those a turn apart the nearest to `near` px.
__device__ __forceinline__ i32 position_of(const LscTemporal &own, const LscArgs &args, u32 cosine, u32 sine, i32 near) {
  const i64 x = (i32)cosine, y = (i32)sine;
  const i32 step = args.step, turn = 4 * step;
  i64 c = x, s = y;
  i32 quarter = 0;
  if (x == 0 && y == 0) return near * POSITION_UNIT;
  if (x <= 0 && y > 0) {
    quarter = 1;
    c = y;
    s = -x;
  } else if (x < 0) {
    quarter = 2;
    c = -x;
    s = -y;
  } else if (y < 0) {
    quarter = 3;
    c = -y;
    s = x;
  }
  // The last px of the quarter that is not past the pair.
  i32 first = 0, end = step;
  while (end - first > 1) {
    const i32 middle = (first + end) / 2;
    const u32 pair = own.turn[middle];
    if (low(pair) * s >= high(pair) * c) {
      first = middle;
    } else {
      end = middle;
    }
  }
  const i32 at = quarter * step + first, top = 2 * (near - at) + turn;
  const i32 turns = top >= 0 ? top / (2 * turn) : -((2 * turn - 1 - top) / (2 * turn));
  return POSITION_UNIT * (at + turns * turn) + POSITION_UNIT / 2;
}

// As `lsc_assign`, for a frame that follows another; `begin` is a `Begin`, `round` the number of the round. The round after a cut is
// one more, so all that follow count one further.
// Grid and block: the same.
// In: samples, color, px, py, mean; of `t` sources [cells], slots, labels and features of the last frame, which nobody writes
// meanwhile; of `own` sums and state by turns.
// Out: sums and state of this round's turn; in the first round the residual, one atomic addition a block.
// Race-free: as there; three sets of sums and two of state take turns.
KERNEL __launch_bounds__(ROUND_THREADS, 6)
    lsc_follow(const u32 *__restrict__ samples, const u32 *__restrict__ color, const u32 *__restrict__ px,
               const u32 *__restrict__ py, const Mean *__restrict__ mean, LscTemporal own, Temporal t,
               TemporalArgs temporal, u32 begin, u32 round, LscArgs args, Batch batch) {
  beside_last_kernel(samples, batch);
  select_frame(batch, samples, mean, own, t, args);
  if (is_absent(batch)) return;
  __shared__ u64 total;
  if (begin == BEGIN_AGAIN) wait_for_last_kernel();
  const bool cut = begin != BEGIN_CARRY && is_cut(*t.state, temporal);
  if (begin == BEGIN_AGAIN && !cut) return;
  round += cut && begin == BEGIN_SUMS;
  const Pairs pairs = {color, px, py};
  Sums *clear = sums_of(own, round + 1), *out = state_of(own, round);
  if (threadIdx.x == 0) total = 0;
  const LscInertia inertia = {{t, temporal, args, !cut, begin == BEGIN_CARRY ? &total : nullptr, 0}, own.square};
  assign(
      samples, color, px, py, mean, sums_of(own, round), args,
      [&](u32 x, u32 y) {
        if (begin == BEGIN_CARRY) return begin_with(carry(args, pairs, own, t, x, y));
        if (begin == BEGIN_AGAIN) return begin_with(seed(args, pairs, t.features, x, y));
        return update(sums_of(own, round + 2), state_of(own, round + 1), y * args.nx + x);
      },
      [&](u32 k, const Sums &sums) {
        store(out + k, sums);
        clear_sums(clear + k);
      },
      inertia);
  // `assign` has passed a barrier since the last warp added.
  if (begin == BEGIN_CARRY && threadIdx.x == 0) atomicAdd(&t.state->residual_first, total);
}

// The labels of a frame that leaves what the next one needs. `round` is the last one's number.
template <u32 WARPS>
__device__ __forceinline__ void label_follow(const float2 *color, const u32 *px, const u32 *py, const Mean *mean,
                                             const LscTemporal &own, const Temporal &t, const TemporalArgs &temporal,
                                             const Components &components, u32 round, u32 follows, const LscArgs &args) {
  __shared__ u64 total;
  // Without rounds the colors are new.
  if (args.identity) wait_for_last_kernel();
  const bool cut = follows && is_cut(*t.state, temporal);
  round += cut;
  const Sums *sums = sums_of(own, round), *old = state_of(own, round);
  if (threadIdx.x == 0) total = 0;
  const LscInertia inertia = {{t, temporal, args, follows && !cut, &total, 0}, own.square};
  label<WARPS>(
      t.features, FloatTable{color}, px, py, mean, components, args,
      [&](u32 x, u32 y) { return update(sums, old, y * args.nx + x); },
      [&](u32 k, const Sums &last) {
        store(own.carried + k, last);
        const u32 x = k % args.nx, y = k / args.nx;
        const i32 column = seed_position(x, args.nx, args.step, args.width);
        const i32 row = seed_position(y, args.ny, args.step, args.height);
        t.positions[k] = {position_of(own, args, last.value[6], last.value[7], column),
                       position_of(own, args, last.value[8], last.value[9], row)};
      },
      inertia);
  __syncthreads();
  if (threadIdx.x == 0 && total != 0) atomicAdd(&t.state->residual, total);
}

// As `lsc_label`, for a frame that leaves what the next one needs; `round` is the last one's number, `follows` whether it goes on
// from a frame. `color` are the pairs as floats.
// Grid and block: the same.
// Out, beside what `lsc_label` writes: `carried` [cells] and positions [cells], by the blocks of all tiles that a cell lies in,
// which write the same values; the residual, one atomic addition a block.
KERNEL __launch_bounds__(LABEL_THREADS, 6)
    lsc_label_follow(const float2 *__restrict__ color, const u32 *__restrict__ px, const u32 *__restrict__ py,
                     const Mean *__restrict__ mean, LscTemporal own, Temporal t, TemporalArgs temporal,
                     Components components, u32 round, u32 follows, LscArgs args, Batch batch) {
  beside_last_kernel(color, batch);
  select_frame(batch, mean, own, t, components, args);
  if (is_absent(batch)) return;
  label_follow<LABEL_THREADS / 32>(color, px, py, mean, own, t, temporal, components, round, follows, args);
}

// The kernel above for frames of few tiles; block: LABEL_THREADS_SMALL.
KERNEL __launch_bounds__(LABEL_THREADS_SMALL, 3)
    lsc_label_follow_small(const float2 *__restrict__ color, const u32 *__restrict__ px, const u32 *__restrict__ py,
                           const Mean *__restrict__ mean, LscTemporal own, Temporal t, TemporalArgs temporal,
                           Components components, u32 round, u32 follows, LscArgs args, Batch batch) {
  beside_last_kernel(color, batch);
  select_frame(batch, mean, own, t, components, args);
  if (is_absent(batch)) return;
  label_follow<LABEL_THREADS_SMALL / 32>(color, px, py, mean, own, t, temporal, components, round, follows, args);
}
