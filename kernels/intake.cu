// SPDX-License-Identifier: MPL-2.0
// Pixels of another library's arrays, however they lie, become packed samples; see src/cuda/strided.rs.
#include "abi.cuh"

template <class Code>
__device__ __forceinline__ void pack(const u8 *from, u8 *to, i64 rows_apart, i64 pixels_apart, i64 channels_apart,
                                     u32 width, u32 stride, u32 channels) {
  const u32 x = blockIdx.x * EXPORT_THREADS + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  const u8 *pixel = from + (i64)y * rows_apart + (i64)x * pixels_apart;
  Code *out = (Code *)(to + (size_t)y * stride) + (size_t)x * channels;
  for (u32 i = 0; i < channels; i++) out[i] = *(const Code *)(pixel + (i64)i * channels_apart);
}

// Bytes.
// Grid: blocks for a row, rows; block: EXPORT_THREADS, a pixel a thread.
// In: samples [height][width][channels], each that many bytes from the next.
// Out: to [height][stride] bytes, pixels together.
// Race-free: every sample has one thread that writes it.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_bytes(const u8 *__restrict__ from, u8 *__restrict__ to, i64 rows_apart, i64 pixels_apart, i64 channels_apart,
               u32 width, u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  pack<u8>(from, to, rows_apart, pixels_apart, channels_apart, width, stride, channels);
}

// Packs samples of 16 bits.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_words(const u8 *__restrict__ from, u8 *__restrict__ to, i64 rows_apart, i64 pixels_apart, i64 channels_apart,
               u32 width, u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  pack<u16>(from, to, rows_apart, pixels_apart, channels_apart, width, stride, channels);
}

// The double nearest to a sample.
__device__ __forceinline__ double value_of(const u8 *sample, u32 type) {
  switch (type) {
    case SAMPLE_U8: return *sample;
    case SAMPLE_U16: return *(const u16 *)sample;
    case SAMPLE_I16: return *(const short *)sample;
    case SAMPLE_I32: return *(const int *)sample;
    case SAMPLE_I64: return (double)*(const i64 *)sample;
    default: return *(const float *)sample;
  }
}

// A float in [0, 1] as code of 16 bits: round(65535 value), halves up. The sum has no room for a fraction, which it rounds off once;
// the one value halfway between two codes is 0.5, and of those the even one, to which sums round, is the upper.
__device__ __forceinline__ u16 code_of_unit(float value, bool &is_bad) {
  const bool is_good = value >= 0.0f && value <= 1.0f;
  is_bad |= !is_good;
  // NaN is black.
  const float cut = is_good ? value : value > 1.0f ? 1.0f : 0.0f;
  return (u16)(u32)(__fmaf_rn(cut, 65535.0f, LIFT) - LIFT);
}

// A value as code of 16 bits: floor(65535 (value - low) / span + 1/2), cut off below and above.
__device__ __forceinline__ u16 code_of(double value, double low, double span, bool &is_bad) {
  const double above = value - low;
  const bool is_number = above == above;
  is_bad |= !is_number;
  const double cut = !is_number || above < 0.0 ? 0.0 : above > span ? span : above;
  return (u16)(u32)(65535.0 * cut / span + 0.5);
}

// Packs values, which become codes of 16 bits as in python/src/values.rs: those from `low` to `low` + `span`, and with a span of 0
// floats in [0, 1]: these in single precision, since devices may have few units for doubles. What is outside is cut off, and what is
// no number or outside of the mask becomes 0.
// In: mask [height][mask_stride] bytes, nonzero inside, or null.
// Out: bad, 1 if a value inside was no number, or with a span of 0 was cut off; else unchanged.
// Race-free: all threads that write to `bad` write the same number.
KERNEL __launch_bounds__(EXPORT_THREADS)
    pack_values(const u8 *__restrict__ from, u8 *__restrict__ to, u32 *bad, const u8 *__restrict__ mask, i64 rows_apart,
                i64 pixels_apart, i64 channels_apart, double low, double span, u32 sample_type, u32 mask_stride, u32 width,
                u32 stride, u32 channels) {
  after_last_kernel(from, channels);
  const u32 x = blockIdx.x * EXPORT_THREADS + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  const u8 *pixel = from + (i64)y * rows_apart + (i64)x * pixels_apart;
  u16 *out = (u16 *)(to + (size_t)y * stride) + (size_t)x * channels;
  const bool is_inside = !mask || mask[(size_t)y * mask_stride + x];
  bool is_bad = false;
  for (u32 i = 0; i < channels; i++) {
    const u8 *sample = pixel + (i64)i * channels_apart;
    u16 code = 0;
    if (is_inside && span == 0.0) code = code_of_unit(*(const float *)sample, is_bad);
    if (is_inside && span != 0.0) code = code_of(value_of(sample, sample_type), low, span, is_bad);
    out[i] = code;
  }
  if (is_bad) *bad = 1;
}

// Lists where the frames of a batch are, whose addresses come with the launch.
// Grid: one block of LISTED_FRAMES, a frame a thread.
// In: the addresses of `count` frames.
// Out: list, from the frame `first` on.
// Race-free: a thread writes its own entry.
KERNEL __launch_bounds__(LISTED_FRAMES)
    list_planes(FramePlanes *__restrict__ list, PlaneList given, u32 first, u32 count) {
  after_last_kernel(list, count);
  if (threadIdx.x < count) list[first + threadIdx.x] = given.frames[threadIdx.x];
}
