// SPDX-License-Identifier: MPL-2.0
// Types, packed features and warp helpers that all kernels share. No system header, so that any compiler of CUDA text
// builds it alone.
#pragma once
#include "tuning.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define FULL_WARP 0xffffffffu
#define KERNEL extern "C" __global__ void

// Channels of a packed feature, of 10, 11 and 11 bits; `pack` of src/color.rs.
__device__ __forceinline__ u32 feature_0(u32 feature) { return feature & 0x3ffu; }
__device__ __forceinline__ u32 feature_1(u32 feature) { return feature >> 10 & 0x7ffu; }
__device__ __forceinline__ u32 feature_2(u32 feature) { return feature >> 21; }

// Sum of the channels' absolute differences. The second channel is compared where it stands, so that its difference is shifted
// once instead of both values.
__device__ __forceinline__ u32 feature_difference(u32 a, u32 b) {
  const u32 low = __usad(feature_0(a), feature_0(b), 0), middle = __usad(a & 0x7ffu << 10, b & 0x7ffu << 10, 0);
  return __usad(feature_2(a), feature_2(b), low + (middle >> 10));
}

// Feature and label of pixels outside of a mask. No color has this feature: `OUTSIDE` of src/color.rs, which says why.
#define OUTSIDE (1400u << 10 | 400u << 21)
#define NO_LABEL 0xffffu

// Accesses to memory that other threads of the grid use at the same time, ordered as PTX's memory model has it. The emulated
// device of tests/emulator has its own.
#ifndef EMULATED_DEVICE
__device__ __forceinline__ u32 load_relaxed(const u32 *at) {
  u32 value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
__device__ __forceinline__ u32 load_acquire(const u32 *at) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
// Waits for a store_release of another block, one that runs: what it puts in the place of `old`.
__device__ __forceinline__ u32 wait_for_change(const u32 *at, u32 old) {
  u32 value;
  while ((value = load_acquire(at)) == old) {
  }
  return value;
}
__device__ __forceinline__ void store_relaxed(u32 *at, u32 value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
__device__ __forceinline__ void store_release(u32 *at, u32 value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
__device__ __forceinline__ u32 add_acq_rel(u32 *at, u32 value) {
  u32 before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
  return before;
}
#endif

// Programmatic dependent launch: from compute capability 9.0 on a grid is set up while the one before it still runs, and has to
// wait for that one's end. Devices before 9.0 have none of it; without the launch attribute (src/cuda/launch.rs) or the edge of
// a graph (src/cuda/graph.rs) that asks for it the wait is over at once.
//
// The first statement of a kernel is `after_last_kernel` or `beside_last_kernel`. What stands between the latter and
// `wait_for_last_kernel` runs beside the kernel before. It reads only what kernels before that one, or the host, have written:
// they are complete, since every kernel lets its follower be set up only behind its own wait. It writes only what nobody reads
// until then.
//
// Both are given the kernel's first and last parameter, and the empty assembly makes the compiler load them before the wait
// instead of behind it: a frame of 3840x2160 takes 1 % less.
//
// Loads that the source has before the wait may not stay there: through restricted pointers to constants they count as
// read-only, and the compiler moves them behind the wait, down to their use. Machine code shows it.
template <class First, class Last>
__device__ __forceinline__ void beside_last_kernel(const First &first, const Last &last) {
#if __CUDA_ARCH__ >= 900
  asm volatile("" : : "r"(*(const u32 *)&first), "r"(((const u32 *)&last)[sizeof(Last) / 4 - 1]));
#endif
}
__device__ __forceinline__ void wait_for_last_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#elif defined(EMULATED_DEVICE)
  wait_for_grid_before();
#endif
}
template <class First, class Last>
__device__ __forceinline__ void after_last_kernel(const First &first, const Last &last) {
  beside_last_kernel(first, last);
  wait_for_last_kernel();
}
template <class Only>
__device__ __forceinline__ void after_last_kernel(const Only &only) {
  after_last_kernel(only, only);
}

// Index of this thread in a grid of one dimension, and how many threads it has: a thread takes every ALL-th item from FIRST on.
#define FIRST (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL (gridDim.x * blockDim.x)

// Returns true in the last block to come here, which then sees all that the others wrote before. All threads of a grid of one
// dimension call it once; the ticket is zero when the grid starts.
__device__ __forceinline__ bool is_last_block(u32 *ticket) {
  __shared__ u32 last;
  __syncthreads();
  if (threadIdx.x == 0) last = add_acq_rel(ticket, 1) == gridDim.x - 1;
  __syncthreads();
  return last;
}

// Shared memory whose size the launch gives: `DYNAMIC_SHARED(type, name)` declares a pointer to it.
#ifdef EMULATED_DEVICE
#define DYNAMIC_SHARED(type, name)                                       \
  static thread_local __attribute__((aligned(16))) u8 name##_bytes[48 << 10]; \
  type *const name = (type *)name##_bytes
#else
#define DYNAMIC_SHARED(type, name)               \
  extern __shared__ uint4 dynamic_shared_bytes[]; \
  type *const name = (type *)dynamic_shared_bytes
#endif

// A whole number below 2^23 as a float that is LIFT = 2^23 more: its bits are those of LIFT with the number as mantissa, so
// that no conversion, which would be slow, is needed. Differences of two such, and of one and LIFT, are exact.
#define LIFT 8388608.0f
__device__ __forceinline__ float lifted(u32 value) { return __int_as_float((i32)(0x4b000000u | value)); }

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31u; }
__device__ __forceinline__ u32 lanes_up_to(u32 lane) { return 0xffffffffu >> (31u - lane); }
// The highest of some lanes, -1 of none.
__device__ __forceinline__ i32 highest_lane(u32 lanes) { return 31 - (i32)__clz((i32)lanes); }
// First lane of a lane's run, where `starts` has a bit for the first lane of every run, lane 0 among them.
__device__ __forceinline__ u32 run_start(u32 starts, u32 lane) { return (u32)highest_lane(starts & lanes_up_to(lane)); }
// All lanes above this one, read into a register once: compilers compute `lanes_up_to` anew at each use, in three instructions.
__device__ __forceinline__ u32 lanes_after() {
#ifdef EMULATED_DEVICE
  return ~lanes_up_to(lane_id());
#else
  u32 lanes;
  asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(lanes));
  return lanes;
#endif
}

// Divides by one number several times, exactly, where quotients are below 2^18. The reciprocal is too small by one to three
// parts in 2^21: a product with it is below the quotient by less than one, and `quotient` adds one where the remainder says so.
struct Divisor {
  u32 number;
  float inverse;
};
__device__ __forceinline__ Divisor divisor_of(u32 number) {
#ifdef EMULATED_DEVICE
  const float inverse = 1.0f / (float)number;
#else
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"((float)number));
#endif
  return {number, inverse * (1.0f - 1.0f / (1u << RECIPROCAL_BITS))};
}
__device__ __forceinline__ u32 quotient(u32 top, const Divisor &divisor) {
  const u32 below = (u32)((float)top * divisor.inverse);
  return below + (top - below * divisor.number >= divisor.number);
}

// top / bottom as a division rounds it, from `inverse` = 1 / bottom as a division rounds that: one division for several
// quotients. The remainder, which the fused operation has exactly, corrects the product (Markstein 1990).
__device__ __forceinline__ double ratio(double top, double bottom, double inverse) {
  const double near = top * inverse;
  return __fma_rn(__fma_rn(-near, bottom, top), inverse, near);
}

// Rounds half up; the 64-bit division, which is slow, only where the sum needs it.
__device__ __forceinline__ u32 rounded_mean(u64 sum, u32 n) {
  const u64 top = 2 * sum + n;
  return top >> 32 ? (u32)(top / (2 * (u64)n)) : (u32)top / (2 * n);
}

// Sum of the lanes from `start` to this one, where all lanes of a run name the same start and no run is longer than `LONGEST`.
// `start` is the shuffle's lower bound: its predicate is false where a value would come from before it, so that a step is two
// instructions.
template <u32 LONGEST>
__device__ __forceinline__ u32 run_sum(u32 value, u32 start) {
#pragma unroll
  for (u32 step = 1; step < LONGEST; step *= 2) {
#ifdef EMULATED_DEVICE
    const u32 before = __shfl_up_sync(FULL_WARP, value, step);
    if (lane_id() >= start + step) value += before;
#else
    asm volatile(
        "{\n"
        ".reg .pred near;\n"
        ".reg .u32 before;\n"
        "shfl.sync.up.b32 before|near, %0, %1, %2, 0xffffffff;\n"
        "@near add.u32 %0, %0, before;\n"
        "}"
        : "+r"(value)
        : "r"(step), "r"(start));
#endif
  }
  return value;
}
__device__ __forceinline__ u32 inclusive_sum(u32 value) { return run_sum<32>(value, 0); }

// Least over a whole warp, in every lane.
__device__ __forceinline__ u64 least_of_warp(u64 value) {
  for (u32 step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
}

__device__ __forceinline__ u32 warp_sum(u32 mask, u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(mask, value);
#else
  // Devices before 8.0 have no such instruction. Every lane of the mask reads every other, also in masks with holes.
  u32 sum = 0;
  for (u32 left = mask; left; left &= left - 1) sum += __shfl_sync(mask, value, __ffs(left) - 1);
  return sum;
#endif
}
