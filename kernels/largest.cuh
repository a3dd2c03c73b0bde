// SPDX-License-Identifier: MPL-2.0
// Keys that keep the larger of what several threads offer, and with them the largest components of clusters; mirrors what
// src/post/connectivity/cpu.rs does.
#pragma once
#include "components.cuh"

// No slot, region or cell.
#define NONE 0xffffffffu

// The index in a key, whose lower half holds it so that the lower one wins.
__device__ __forceinline__ u32 index_of(u64 key) { return NONE - (u32)key; }
__device__ __forceinline__ u64 key_of(u32 size, u32 index) { return (u64)size << 32 | (NONE - index); }

// The largest component of every cluster; ties: the first in raster order. Between the joining of components and
// their absorption.
__device__ __forceinline__ void find_largest(const Components &c, u64 *largest, u32 connectivity, u32 first, u32 all) {
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = first; i < components; i += all) {
    const uint2 head = *(const uint2 *)(c.sums + i);
    const u32 size = connectivity ? head.x : 1;
    // A component that joined another has size 0; one outside of a mask has no cluster.
    if (size != 0 && !(head.x & OUTSIDE_COUNT)) atomicMax(&largest[c.cluster[i]], key_of(size, head.y));
  }
}
