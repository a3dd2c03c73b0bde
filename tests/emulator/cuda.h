// SPDX-License-Identifier: MPL-2.0
// CUDA C as far as kernels/ uses it, for a C++ compiler: a block's threads are fibers, which meet at barriers and warp operations
// (fibers.h). Included before every kernel file; see driver.cpp.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fibers.h"

#define EMULATED_DEVICE 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// All threads of a block run on one thread of the host, one block after the other.
#define __shared__ static thread_local

struct uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct int2 { int x, y; };
struct __attribute__((aligned(16))) int4 { int x, y, z, w; };
struct float2 { float x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct ushort2 { unsigned short x, y; };
struct ushort4 { unsigned short x, y, z, w; };
struct uchar4 { unsigned char x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace emulator {

template <class T> uint64_t bits(T value) {
  static_assert(sizeof(T) <= 8, "a warp operation takes up to 64 bits");
  uint64_t out = 0;
  std::memcpy(&out, &value, sizeof(T));
  return out;
}
template <class T> T from_bits(uint64_t bits) {
  T out;
  std::memcpy(&out, &bits, sizeof(T));
  return out;
}

// Makes a kernel known by its name, and if it waits for the grid before in its first statement.
struct Registration {
  Registration(const char *name, Entry entry, bool waits_first);
};

template <class... A, size_t... I>
void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
  kernel(*(std::remove_reference_t<A> *)arguments[I]...);
}
template <class... A> void call(void (*kernel)(A...), void **arguments) {
  call(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emulator

#define threadIdx (emulator::here.current->thread)
#define blockIdx (emulator::here.block_index)
#define blockDim (emulator::here.block_size)
#define gridDim (emulator::here.grid_size)

__forceinline__ void __syncthreads() { emulator::meet_block(0); }
__forceinline__ int __syncthreads_or(int value) { return emulator::meet_block(value != 0); }
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) { emulator::meet_warp(mask, 0, "__syncwarp"); }

__forceinline__ unsigned __ballot_sync(unsigned mask, int value) { return emulator::meet_warp(mask, value != 0, "__ballot_sync").votes; }
__forceinline__ int __any_sync(unsigned mask, int value) { return __ballot_sync(mask, value) != 0; }
template <class T> __forceinline__ T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__shfl_sync").value;
  const unsigned own = emulator::here.current->lane, base = own & ~(unsigned)(width - 1);
  return emulator::from_bits<T>(all[base + ((unsigned)lane & (unsigned)(width - 1))]);
}
template <class T> __forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__shfl_up_sync").value;
  const unsigned own = emulator::here.current->lane, base = own & ~(unsigned)(width - 1);
  return own - base >= delta ? emulator::from_bits<T>(all[own - delta]) : value;
}
template <class T> __forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__shfl_down_sync").value;
  const unsigned own = emulator::here.current->lane, base = own & ~(unsigned)(width - 1);
  return own - base + delta < (unsigned)width ? emulator::from_bits<T>(all[own + delta]) : value;
}
template <class T> __forceinline__ T __shfl_xor_sync(unsigned mask, T value, int other, int = 32) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__shfl_xor_sync").value;
  return emulator::from_bits<T>(all[(emulator::here.current->lane ^ (unsigned)other) & 31]);
}
template <class T> __forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__match_any_sync").value;
  unsigned out = 0;
  for (unsigned i = 0; i < 32; i++) out |= (mask >> i & 1) && all[i] == emulator::bits(value) ? 1u << i : 0;
  return out;
}
template <class T> __forceinline__ unsigned __match_all_sync(unsigned mask, T value, int *same) {
  const unsigned out = __match_any_sync(mask, value);
  *same = out == mask;
  return *same ? mask : 0;
}
template <class T> __forceinline__ T __reduce_add_sync(unsigned mask, T value) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__reduce_add_sync").value;
  T out = 0;
  for (unsigned i = 0; i < 32; i++) out += (mask >> i & 1) ? emulator::from_bits<T>(all[i]) : 0;
  return out;
}
template <class T> __forceinline__ T __reduce_max_sync(unsigned mask, T value) {
  const uint64_t *all = emulator::meet_warp(mask, emulator::bits(value), "__reduce_max_sync").value;
  T out = 0;
  for (unsigned i = 0; i < 32; i++) {
    if ((mask >> i & 1) && emulator::from_bits<T>(all[i]) > out) out = emulator::from_bits<T>(all[i]);
  }
  return out;
}

inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (unsigned shift = 0; shift < 32; shift += 8) sum += (a >> shift & 0xff) * (b >> shift & 0xff);
  return sum;
}
inline float __fsqrt_rn(float value) { return __builtin_sqrtf(value); }

template <class T> T __ldcg(const T *at) { return *(const volatile T *)at; }
inline uint4 __ldcg(const uint4 *at) { return *at; }
inline uint2 __ldcg(const uint2 *at) { return *at; }
template <class T> T __ldg(const T *at) { return *at; }
template <class T> void __stcg(T *at, T value) { *(volatile T *)at = value; }

template <class T, class V> T atomicAdd(T *at, V value) { return __atomic_fetch_add(at, (T)value, __ATOMIC_RELAXED); }
template <class T, class V> T atomicSub(T *at, V value) { return __atomic_fetch_sub(at, (T)value, __ATOMIC_RELAXED); }
template <class T, class V> T atomicOr(T *at, V value) { return __atomic_fetch_or(at, (T)value, __ATOMIC_RELAXED); }
template <class T, class V> T atomicAnd(T *at, V value) { return __atomic_fetch_and(at, (T)value, __ATOMIC_RELAXED); }
template <class T, class V> T atomicExch(T *at, V value) { return __atomic_exchange_n(at, (T)value, __ATOMIC_RELAXED); }
template <class T, class A, class B> T atomicCAS(T *at, A expected, B value) {
  T seen = (T)expected;
  __atomic_compare_exchange_n(at, &seen, (T)value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return seen;
}
template <class T, class V> T atomicMin(T *at, V value) {
  T seen = __atomic_load_n(at, __ATOMIC_RELAXED);
  while ((T)value < seen && !__atomic_compare_exchange_n(at, &seen, (T)value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}
template <class T, class V> T atomicMax(T *at, V value) {
  T seen = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (seen < (T)value && !__atomic_compare_exchange_n(at, &seen, (T)value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}

inline unsigned load_relaxed(const unsigned *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
// A block that runs before the grid before it stops here until that has ended.
inline void wait_for_grid_before() {
  if (emulator::here.gate) emulator::wait_at_gate();
}
// What a store_release of another thread of the host puts in the place of `old`.
unsigned wait_for_change(const unsigned *at, unsigned old);
void store_release(unsigned *at, unsigned value);
inline void store_relaxed(unsigned *at, unsigned value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
inline unsigned add_acq_rel(unsigned *at, unsigned value) { return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL); }

inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a > b ? a - b : b - a); }
inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline unsigned __brev(unsigned value) {
  unsigned out = 0;
  for (int i = 0; i < 32; i++) out |= (value >> i & 1) << (31 - i);
  return out;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __saturatef(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }
inline int __float_as_int(float value) { return emulator::from_bits<int>(emulator::bits(value)); }
inline float __int_as_float(int value) { return emulator::from_bits<float>(emulator::bits(value)); }
// To the nearest, ties to even: the host's rounding mode.
using std::ceil;
using std::fabs;
using std::floor;
using std::fmax;
using std::fmin;
using std::rint;
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t both = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) out |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return out;
}

template <class A, class B> std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return (T)a < (T)b ? (T)b : (T)a;
}
