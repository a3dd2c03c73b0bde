// SPDX-License-Identifier: MPL-2.0
// Sums over every region, and their mean; mirrors `Sums` in src/post/statistics/cpu.rs.
#pragma once
#include "abi.cuh"

// A region of which pixels and features are known, and nothing else yet.
__device__ __forceinline__ RegionSums region_of(u32 area, const u64 (&color)[3]) {
  RegionSums sums = {0, 0, {color[0], color[1], color[2]}, {0, 0, 0}, area, 0xffffffffu, 0xffffffffu, 0, 0, {0, 0, 0}};
  return sums;
}

// Writes one in as few pieces as memory takes.
__device__ __forceinline__ void store_region(RegionSums *to, const RegionSums &sums) {
  const uint4 *from = (const uint4 *)&sums;
#pragma unroll
  for (u32 i = 0; i < sizeof(RegionSums) / sizeof(uint4); i++) ((uint4 *)to)[i] = from[i];
}

// The mean feature of pixels, 16 bits a channel, in 1/16 quantum; rounded half up as in connectivity.
__device__ __forceinline__ u64 mean_of(u32 count, const u64 (&color)[3]) {
  u64 mean = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) mean |= (u64)rounded_mean(16 * color[i], count) << 16 * i;
  return mean;
}

// Squared distance of two such.
__device__ __forceinline__ u32 distance(u64 a, u64 b) {
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const i32 d = (i32)(a >> 16 * i & 0xffffu) - (i32)(b >> 16 * i & 0xffffu);
    sum += (u32)(d * d);
  }
  return sum;
}
