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

// Bit beside a component's cluster: it was not small before any was absorbed.
#define LARGE_CLUSTER (1u << 31)

// Returns true if the first warm round's residual tells of a cut, where clusters go on.
__device__ __forceinline__ bool is_cut(const TemporalState &state) {
  return state.residual_first > (state.unlike ? 2u : 4u) * state.residual_last + state.inside;
}

// Nine sixteenths of a size below 2^28: what of the last size, and of the smallest region, a component has to have left to be kept.
// Mirrors KEPT_SIXTEENTHS of src/temporal/mod.rs.
__device__ __forceinline__ u32 kept_share(u32 size) { return size / 16 * 9 + size % 16 * 9 / 16; }

// Whether components are small, as temporal mode sees it.
struct Smallness {
  u32 min_region;
  bool follows;  // a frame before, and no cut is between
  const Continued &continued;

  __device__ __forceinline__ Smallness(const Continued &continued, u32 min_region)
      : min_region(min_region), follows(continued.follows && !is_cut(*continued.state)), continued(continued) {}
  __device__ __forceinline__ u32 least(u32 cluster) const {
    if (!follows) return min_region;
    cluster &= ~LARGE_CLUSTER;
    return cluster < continued.cells ? __ldg(&continued.least_kept[cluster]) : kept_share(min_region);
  }
};

// Raises `largest` [clusters], zero before, to the key of each cluster's largest component: its pixels, and the index of its
// first pixel. Parts, whose clusters are above, have none. Runs when components of one cluster are joined across tiles and no small
// one is absorbed yet. Without connectivity nothing is joined, and all components of a cluster have one label: any would do, and equal
// sizes select the first in raster order. `see(i, size)` is called for every component inside of a mask.
template <class See>
__device__ __forceinline__ void find_largest(const Components &c, u64 *largest, u32 clusters, u32 connectivity, u32 first, u32 all, See see) {
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = first; i < components; i += all) {
    const uint2 head = *(const uint2 *)(c.sums + i);
    const u32 size = connectivity ? pixels_of(head.x) : 1;
    // A component that joined another has size 0; one outside of a mask has no cluster.
    if (size == 0 || head.x & OUTSIDE_COUNT) continue;
    const u32 cluster = c.cluster[i];
    if (cluster < clusters) atomicMax(&largest[cluster], key_of(size, head.y));
    see(i, size, cluster);
  }
}
