// SPDX-License-Identifier: MPL-2.0
// What the kernels of the abstraction share: constants of its rule, and paints at a pixel.
#pragma once
#include "features.cuh"
#include "frame.cuh"

// One px, where distances from an outline are meant; also the whole of a share.
#define PX 256
// Steps of a relative difference, and where the tables of `AbstractionArgs` begin: distances at the wide and at the narrow scale, weights.
#define DIFFERENCES 1024
#define NEAR_TABLE (DIFFERENCES + 1)
#define BOOST_TABLE (2 * (DIFFERENCES + 1))
#define BOOST_WIDTHS 256
// Contrasts in 1/8 Delta E from which on corners count and paints take their new color; see `SHARP` of src/post/abstraction/rule.rs.
#define SHARP_FROM 160u
#define SHARP_FULL 320u
// Side of the cells of still pixels, and the change from which on one moves; see src/post/abstraction/still.rs.
#define STILL_CELL 4
#define MOVED (1u << 12)

__device__ __forceinline__ i32 value_of(const Paint &paint, u32 c, i32 x, i32 y) {
  return paint.base[c] + paint.slope_x[c] * (x - paint.middle[0]) + paint.slope_y[c] * (y - paint.middle[1]);
}

__device__ __forceinline__ u32 code_of(const Paint &paint, const AbstractionArgs &args, u32 c, i32 x, i32 y) {
  return (u32)clamp(value_of(paint, c, x, y) >> args.fraction, paint.low[c], paint.high[c]);
}

// Part of PX that a value has gone from `from` to `to`.
__device__ __forceinline__ u32 part(u32 value, u32 from, u32 to) {
  return value <= from ? 0 : min(PX * (value - from) / (to - from), (u32)PX);
}

// The squared difference of two features, in 1/64 Delta E². Below 2^24.
__device__ __forceinline__ u32 difference_of(u32 a, u32 b) {
  const i32 d0 = feature_0(a) - feature_0(b), d1 = feature_1(a) - feature_1(b), d2 = feature_2(a) - feature_2(b);
  return (u32)(d0 * d0 + d1 * d1 + d2 * d2);
}

// How unlike the colors of two regions are, in 1/8 Delta E.
__device__ __forceinline__ u32 contrast_of(u32 a, u32 b) { return (u32)__fsqrt_rn((float)difference_of(a, b)); }

__device__ __forceinline__ i32 eased(i32 from, i32 to, u32 share) {
  return from + (i32)((((i64)to - from) * (i64)share + 128) >> 8);
}
