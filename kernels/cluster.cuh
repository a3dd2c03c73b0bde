// SPDX-License-Identifier: MPL-2.0
// Clusters of blocks, from compute capability 9.0 on: their barrier, and shared memory that all of them reach.
#pragma once
#include "common.cuh"

#ifdef EMULATED_DEVICE
#define HAS_CLUSTERS 1
#define DYNAMIC_SHARED(type, name) type &name = *(type *)emulator::dynamic_shared()
#elif __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS 1
// What a launch gives a block of shared memory, as one structure.
#define DYNAMIC_SHARED(type, name)                     \
  extern __shared__ __align__(16) u8 name##_bytes[];   \
  type &name = *(type *)name##_bytes

__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// What any thread of the cluster wrote before is seen by all of them afterwards. Called by all threads.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

// The same place in another block's shared memory.
template <class T> __device__ __forceinline__ T *of_rank(T *shared, u32 rank) {
  u64 out;
  asm("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(shared), "r"(rank));
  return (T *)out;
}
#else
#define HAS_CLUSTERS 0
#endif
