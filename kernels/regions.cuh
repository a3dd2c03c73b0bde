// SPDX-License-Identifier: MPL-2.0
// What is added up for every region; mirrors `Sums` in src/post/statistics/cpu.rs.
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
