// SPDX-License-Identifier: MPL-2.0
// Pixels of another library's arrays, however they lie, become packed samples; see src/cuda/strided.rs.
#include "common.cuh"

__device__ __forceinline__ u8 code_of(u8 sample, u32 &) { return sample; }
__device__ __forceinline__ u16 code_of(u16 sample, u32 &) { return sample; }

// round(65535 value), halves up: the sum has no room for a fraction, which it rounds off once; the one value halfway between two codes
// is 0.5, and of those the even one, to which sums round, is the upper.
__device__ __forceinline__ u16 code_of(float value, u32 &bad) {
  const bool is_good = value >= 0.0f && value <= 1.0f;
  bad |= !is_good;
  // NaN is black.
  const float cut = is_good ? value : value > 1.0f ? 1.0f : 0.0f;
  return (u16)(u32)(__fmaf_rn(cut, 65535.0f, LIFT) - LIFT);
}

template <class From, class To>
__device__ __forceinline__ void pack(const u8 *from, u8 *to, u32 *bad, i64 rows_apart, i64 pixels_apart,
                                     i64 channels_apart, u32 width, u32 stride, u32 channels) {
  const u32 x = blockIdx.x * EXPORT_THREADS + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  const u8 *pixel = from + (i64)y * rows_apart + (i64)x * pixels_apart;
  To *out = (To *)(to + (size_t)y * stride) + (size_t)x * channels;
  u32 is_bad = 0;
  for (u32 i = 0; i < channels; i++) out[i] = code_of(*(const From *)(pixel + (i64)i * channels_apart), is_bad);
  if (is_bad) *bad = 1;
}

// Bytes.
// Grid: blocks for a row, rows; block: EXPORT_THREADS, a pixel a thread.
// In: samples [height][width][channels], each that many bytes from the next.
// Out: to [height][stride] bytes, pixels together.
// Race-free: every sample has one thread that writes it.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_bytes(const u8 *__restrict__ from, u8 *__restrict__ to, u32 *bad, i64 rows_apart, i64 pixels_apart,
               i64 channels_apart, u32 width, u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  pack<u8, u8>(from, to, bad, rows_apart, pixels_apart, channels_apart, width, stride, channels);
}

// Packs samples of 16 bits.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_words(const u8 *__restrict__ from, u8 *__restrict__ to, u32 *bad, i64 rows_apart, i64 pixels_apart,
               i64 channels_apart, u32 width, u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  pack<u16, u16>(from, to, bad, rows_apart, pixels_apart, channels_apart, width, stride, channels);
}

// Packs floats in [0, 1], which become 16 bits as in python/src/values.rs; others are clamped.
// Out: bad, 1 if a float was clamped, else unchanged.
// Race-free: all threads that write to `bad` write the same number.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_floats(const u8 *__restrict__ from, u8 *__restrict__ to, u32 *bad, i64 rows_apart, i64 pixels_apart,
                i64 channels_apart, u32 width, u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  pack<float, u16>(from, to, bad, rows_apart, pixels_apart, channels_apart, width, stride, channels);
}
