// SPDX-License-Identifier: MPL-2.0
// Keys by which `atomicMax` finds the largest of many, and by them the largest component of every cluster; mirrors
// `find_largest` of src/post/connectivity/cpu.rs.
#pragma once
#include "components.cuh"

// No slot, region or cell.
#define NONE 0xffffffffu

// Key of a size and an index: the larger size is the larger key and, of equal sizes, the lower index. No key is 0: that means
// that nothing was offered.
__device__ __forceinline__ u32 index_of(u64 key) { return NONE - (u32)key; }
__device__ __forceinline__ u64 key_of(u32 size, u32 index) { return (u64)size << 32 | (NONE - index); }

// Raises `largest` [clusters], zero before, to the key of each cluster's largest component: its pixels, and the index of its
// first pixel. Runs when components of one cluster are joined across tiles and no small one is absorbed yet. Without
// connectivity nothing is joined, and all components of a cluster have one label: any would do, and equal sizes select the
// first in raster order.
__device__ __forceinline__ void find_largest(const Components &c, u64 *largest, u32 connectivity, u32 first, u32 all) {
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = first; i < components; i += all) {
    const uint2 head = *(const uint2 *)(c.sums + i);
    const u32 size = connectivity ? head.x : 1;
    // A component that joined another has size 0; one outside of a mask has no cluster.
    if (size != 0 && !(head.x & OUTSIDE_COUNT)) atomicMax(&largest[c.cluster[i]], key_of(size, head.y));
  }
}
