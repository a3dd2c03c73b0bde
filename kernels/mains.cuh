// SPDX-License-Identifier: MPL-2.0
// What connectivity notes for stage `temporal/identify` while components are joined and none is absorbed; mirrors
// `find_mains` in src/post/connectivity/cpu.rs.
#pragma once
#include "common.cuh"

// The main component of a cluster is its largest; ties: the first in raster order. `mains` may be none.
__device__ __forceinline__ void note_main(u64 *mains, u32 cluster, u32 size, u32 key) {
  if (mains && size) atomicMax(&mains[cluster], (u64)size << 32 | (0xffffffffu - key));
}
