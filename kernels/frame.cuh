// SPDX-License-Identifier: MPL-2.0
// A frame in device memory and its own channels: R, G, B or Y, Cb, Cr; mirrors src/image/format.rs and `Yuv` in src/color.rs.
#pragma once
#include "abi.cuh"

// Which code reads a frame: `FrameArgs::layout`; of LAYOUT_RGB with pixels of six or eight bytes, and gray ones of two, samples have
// 16 bits. What has no code of its own is read as the description says: in words of `FrameArgs::word`, with at most 10 bits that
// count, or more. The order is that of `kernel_layout` in src/cuda/frame.rs.
enum Layout {
  LAYOUT_RGB = 0,
  LAYOUT_GRAY = 1,
  LAYOUT_NV12 = 2,
  LAYOUT_I420 = 3,
  LAYOUT_P010 = 4,
  LAYOUT_ANY = 5,
  LAYOUT_ANY_WIDE = 6
};

// The order is that of `Family` in src/image/format.rs.
enum Family { FAMILY_RGB = 0, FAMILY_YUV = 1, FAMILY_GRAY = 2 };

// Returns true if samples have more than 10 significant bits.
__device__ constexpr bool is_wide(u32 layout, u32 bytes) {
  return (layout == LAYOUT_RGB && bytes >= 6) || (layout == LAYOUT_GRAY && bytes == 2) || layout == LAYOUT_ANY_WIDE;
}
__device__ __forceinline__ bool is_wide(const FrameArgs &frame) { return frame.neutral > 512; }

// The code of a channel's sample in a word of WORD bytes.
template <u32 WORD>
__device__ __forceinline__ u32 code_at(const FrameArgs &frame, const u8 *at, u32 channel) {
  if (WORD == 1) return *at;
  u32 word = WORD == 2 ? *(const u16 *)at : *(const u32 *)at;
  if (WORD == 2 && frame.big_endian) word = __byte_perm(word, 0, 0x4401);
  return word >> frame.shift[channel] & (2u * frame.neutral - 1);
}

__device__ __forceinline__ i32 clamp(i32 v, i32 low, i32 high) { return min(max(v, low), high); }

// The frame's own channels from a pixel of a row on; gray has neutral chroma. Layout and size of a pixel are constants here, so
// that loops over pixels do not ask again: see WITH_LAYOUT. Of LAYOUT_ANY BYTES are those of a word.
template <u32 LAYOUT, u32 BYTES>
struct Row {
  const u8 *first, *second, *third;

  __device__ __forceinline__ Row(const FrameArgs &frame, u32 x, u32 y) {
    first = frame.plane[0] + (size_t)y * frame.stride[0] + BYTES * (size_t)x;
    second = third = 0;
    if (LAYOUT == LAYOUT_NV12 || LAYOUT == LAYOUT_P010) {
      second = frame.plane[1] + (size_t)(y / 2) * frame.stride[1] + BYTES * (size_t)(x / 2 * 2);
    } else if (LAYOUT == LAYOUT_I420) {
      second = frame.plane[1] + (size_t)(y / 2) * frame.stride[1] + x / 2;
      third = frame.plane[2] + (size_t)(y / 2) * frame.stride[2] + x / 2;
    } else if (LAYOUT >= LAYOUT_ANY) {
      const u32 column = x >> frame.shared[0], row = y >> frame.shared[1];
      first = frame.plane[0] + (size_t)y * frame.stride[0] + frame.offset[0] + (size_t)x * frame.step[0];
      second = frame.plane[1] + (size_t)row * frame.stride[1] + frame.offset[1] + (size_t)column * frame.step[1];
      third = frame.plane[2] + (size_t)row * frame.stride[2] + frame.offset[2] + (size_t)column * frame.step[2];
    }
  }
  // Loads the samples of the pixel BESIDE columns to the right, an even number.
  template <u32 BESIDE>
  __device__ __forceinline__ void load(const FrameArgs &frame, u32 (&out)[3]) const {
    static_assert(BESIDE % 2 == 0, "two pixels of a row share their chroma");
    if (LAYOUT >= LAYOUT_ANY) {
      const u32 beside = BESIDE >> frame.shared[0];
      out[0] = code_at<BYTES>(frame, first + BESIDE * frame.step[0], 0);
      out[1] = out[2] = frame.neutral;
      if (frame.family == FAMILY_GRAY) return;
      out[1] = code_at<BYTES>(frame, second + beside * frame.step[1], 1);
      out[2] = code_at<BYTES>(frame, third + beside * frame.step[2], 2);
      return;
    }
    if (LAYOUT == LAYOUT_P010) {
      const u16 *chroma = (const u16 *)second + BESIDE;
      out[0] = ((const u16 *)first)[BESIDE] >> 6;
      out[1] = chroma[0] >> 6;
      out[2] = chroma[1] >> 6;
      return;
    }
    if (LAYOUT == LAYOUT_RGB) {
      if (BYTES == 8) {
        const u64 pixel = ((const u64 *)first)[BESIDE];
#pragma unroll
        for (int i = 0; i < 3; i++) out[i] = (u32)(pixel >> 8 * frame.offset[i]) & 0xffffu;
      } else if (BYTES == 6) {
#pragma unroll
        for (int i = 0; i < 3; i++) out[i] = *(const u16 *)(first + 6 * BESIDE + frame.offset[i]);
      } else if (BYTES == 4) {
        const u32 pixel = ((const u32 *)first)[BESIDE];
#pragma unroll
        for (int i = 0; i < 3; i++) out[i] = __byte_perm(pixel, 0, 0x4440u | frame.offset[i]);
      } else {
#pragma unroll
        for (int i = 0; i < 3; i++) out[i] = first[3 * BESIDE + frame.offset[i]];
      }
      return;
    }
    if (is_wide(LAYOUT, BYTES)) {
      out[0] = ((const u16 *)first)[BESIDE];
      out[1] = out[2] = 1u << 15;
      return;
    }
    out[0] = first[BESIDE];
    out[1] = out[2] = 128;
    if (LAYOUT == LAYOUT_NV12) {
      out[1] = second[BESIDE];
      out[2] = second[BESIDE + 1];
    } else if (LAYOUT == LAYOUT_I420) {
      out[1] = second[BESIDE / 2];
      out[2] = third[BESIDE / 2];
    }
  }
};

template <u32 LAYOUT, u32 BYTES>
__device__ __forceinline__ void load_samples(const FrameArgs &frame, u32 x, u32 y, u32 (&out)[3]) {
  Row<LAYOUT, BYTES>(frame, x, y).template load<0>(frame, out);
}

// Calls `function<layout, bytes>(...)` for the layout of a frame of at most 10 bits.
#define WITH_LAYOUT(frame, function, ...)                                   \
  do {                                                                      \
    if ((frame).layout == LAYOUT_NV12) function<LAYOUT_NV12, 1>(__VA_ARGS__); \
    else if ((frame).layout == LAYOUT_I420) function<LAYOUT_I420, 1>(__VA_ARGS__); \
    else if ((frame).layout == LAYOUT_GRAY) function<LAYOUT_GRAY, 1>(__VA_ARGS__); \
    else if ((frame).layout == LAYOUT_P010) function<LAYOUT_P010, 2>(__VA_ARGS__); \
    else if ((frame).bytes == 4) function<LAYOUT_RGB, 4>(__VA_ARGS__);      \
    else function<LAYOUT_RGB, 3>(__VA_ARGS__);                              \
  } while (0)

// `WITH_LAYOUT` for a frame of 16 bits.
#define WITH_WIDE_LAYOUT(frame, function, ...)                              \
  do {                                                                      \
    if ((frame).layout == LAYOUT_GRAY) function<LAYOUT_GRAY, 2>(__VA_ARGS__); \
    else if ((frame).bytes == 8) function<LAYOUT_RGB, 8>(__VA_ARGS__);      \
    else function<LAYOUT_RGB, 6>(__VA_ARGS__);                              \
  } while (0)

// `WITH_LAYOUT` for a format without code of its own, of at most 10 bits or of more.
#define WITH_ANY_LAYOUT(frame, function, ...)                               \
  do {                                                                      \
    if ((frame).word == 1) function<LAYOUT_ANY, 1>(__VA_ARGS__);            \
    else if ((frame).word == 2) function<LAYOUT_ANY, 2>(__VA_ARGS__);       \
    else function<LAYOUT_ANY, 4>(__VA_ARGS__);                              \
  } while (0)
#define WITH_ANY_WIDE_LAYOUT(frame, function, ...) function<LAYOUT_ANY_WIDE, 2>(__VA_ARGS__)

// WIDE: codes of more than 10 bits, of whose products some have more than 32.
template <bool WIDE>
__device__ __forceinline__ void to_rgb(const FrameArgs &frame, u32 layout, const u32 (&in)[3], u32 (&out)[3]) {
  if (layout == LAYOUT_RGB || (layout >= LAYOUT_ANY && frame.family == FAMILY_RGB)) {
#pragma unroll
    for (int i = 0; i < 3; i++) out[i] = in[i];
    return;
  }
  if (WIDE) {
    const i64 y = (i64)((i32)in[0] - frame.luma_offset) * frame.to_rgb[0] + (1 << 15);
    const i32 white = 2 * frame.neutral - 1;
    if (layout == LAYOUT_GRAY) {
      out[0] = out[1] = out[2] = clamp((i32)(y >> 16), 0, white);
      return;
    }
    const i64 u = (i32)in[1] - frame.neutral, v = (i32)in[2] - frame.neutral;
    out[0] = clamp((i32)((y + frame.to_rgb[1] * v) >> 16), 0, white);
    out[1] = clamp((i32)((y + frame.to_rgb[2] * u + frame.to_rgb[3] * v) >> 16), 0, white);
    out[2] = clamp((i32)((y + frame.to_rgb[4] * u) >> 16), 0, white);
    return;
  }
  const i32 y = ((i32)in[0] - frame.luma_offset) * frame.to_rgb[0] + (1 << 15), most = 2 * frame.neutral - 1;
  if (layout == LAYOUT_GRAY) {
    out[0] = out[1] = out[2] = clamp(y >> 16, 0, most);
    return;
  }
  const i32 u = (i32)in[1] - frame.neutral, v = (i32)in[2] - frame.neutral;
  out[0] = clamp((y + frame.to_rgb[1] * v) >> 16, 0, most);
  out[1] = clamp((y + frame.to_rgb[2] * u + frame.to_rgb[3] * v) >> 16, 0, most);
  out[2] = clamp((y + frame.to_rgb[4] * u) >> 16, 0, most);
}

// From R'G'B' to the frame's own channels, all in its bits.
__device__ __forceinline__ void from_codes(const FrameArgs &frame, const u32 (&in)[3], u32 (&out)[3]) {
#pragma unroll
  for (int i = 0; i < 3; i++) {
    if (frame.family == FAMILY_RGB) {
      out[i] = in[i];
    } else {
      const i32 *row = frame.to_yuv + 3 * i;
      const i64 sum = (i64)row[0] * (i32)in[0] + (i64)row[1] * (i32)in[1] + (i64)row[2] * (i32)in[2] + (1 << 15);
      out[i] = clamp((i32)(sum >> 16) + (i == 0 ? frame.luma_offset : frame.neutral), 0, 2 * frame.neutral - 1);
    }
  }
}

// From R'G'B' of 8 bits to the frame's own channels in their bits.
__device__ __forceinline__ void from_rgb(const FrameArgs &frame, const u32 (&rgb)[3], u32 (&out)[3]) {
  u32 in[3];
#pragma unroll
  for (int i = 0; i < 3; i++) in[i] = (2 * (2 * frame.neutral - 1) * rgb[i] + 255) / 510;
  from_codes(frame, in, out);
}

// A channel's sample as it is drawn on.
__device__ __forceinline__ u32 load_code(const FrameArgs &frame, const u8 *at, u32 channel) {
  if (frame.word == 1) return code_at<1>(frame, at, channel);
  return frame.word == 2 ? code_at<2>(frame, at, channel) : code_at<4>(frame, at, channel);
}
__device__ __forceinline__ void store_code(const FrameArgs &frame, u8 *at, u32 channel, u32 code) {
  const u32 word = code << frame.shift[channel];
  if (frame.word == 1) {
    *at = (u8)word;
  } else if (frame.word == 2) {
    *(u16 *)at = (u16)(frame.big_endian ? __byte_perm(word, 0, 0x4401) : word);
  } else {
    // Other channels are in the same word.
    const u32 mask = (2u * frame.neutral - 1) << frame.shift[channel];
    *(u32 *)at = (*(const u32 *)at & ~mask) | word;
  }
}
