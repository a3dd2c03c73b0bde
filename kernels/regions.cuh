// SPDX-License-Identifier: MPL-2.0
// What is added up for every region; mirrors `Sums` in src/post/statistics/cpu.rs.
#pragma once
#include "common.cuh"

struct __align__(16) RegionSums {
  u64 x, y;
  u64 color[3];
  u64 samples[3];
  u32 area;
  u32 x0, y0, x1, y1;
  u32 unused[3];
};
static_assert(sizeof(RegionSums) == 96, "mirrored in src/buffers/cuda.rs");

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
