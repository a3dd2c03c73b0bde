// SPDX-License-Identifier: MPL-2.0
// Drawing on the samples of a frame: colors of pixels and lines over them, in any layout.
#pragma once
#include "frame.cuh"

// Which code draws on a frame: packed R'G'B' of 8 bits; gray of 8 bits; 8 bits whose samples of chroma are of two columns and two
// rows; all others, by their description.
enum Drawn { DRAWN_RGB, DRAWN_GRAY, DRAWN_SHARED, DRAWN_ANY };

__device__ __forceinline__ u32 blend(u32 sample, u32 color, u32 alpha) {
  return (alpha * color + (255 - alpha) * sample + 127) / 255;
}

// Draws one sample: of a color `below` it, if it is filled, and of a line, if one is on it.
template <u32 DRAWN>
__device__ __forceinline__ void draw_sample(const FrameArgs &frame, const DrawArgs &args, u8 *sample, u32 channel, bool filled, u32 below,
                                            bool on) {
  if (!filled) below = DRAWN == DRAWN_ANY ? load_code(frame, sample, channel) : *sample;
  const u32 code = on ? blend(below, args.color[channel], args.alpha) : below;
  if (DRAWN == DRAWN_ANY) store_code(frame, sample, channel, code);
  else *sample = (u8)code;
}

// Draws the samples that a pixel has for itself, `channels` of a layout without code of its own.
template <u32 DRAWN>
__device__ __forceinline__ void draw_pixel(const FrameArgs &frame, const DrawArgs &args, i32 x, i32 y, u32 channels, bool filled,
                                           const u32 (&color)[3], bool on) {
  if (DRAWN == DRAWN_SHARED || DRAWN == DRAWN_GRAY) {
    draw_sample<DRAWN>(frame, args, frame.plane[0] + (size_t)y * frame.stride[0] + x, 0, filled, color[0], on);
  } else if (DRAWN == DRAWN_RGB) {
    u8 *pixel = frame.plane[0] + (size_t)y * frame.stride[0] + (size_t)x * frame.bytes;
#pragma unroll
    for (u32 c = 0; c < 3; c++) draw_sample<DRAWN>(frame, args, pixel + frame.offset[c], c, filled, color[c], on);
  } else {
    for (u32 c = 0; c < channels; c++) {
      u8 *sample = frame.plane[c] + (size_t)y * frame.stride[c] + (size_t)x * frame.step[c] + frame.offset[c];
      draw_sample<DRAWN>(frame, args, sample, c, filled, color[c], on);
    }
  }
}

// Draws the samples of chroma of a warp's columns in a row of them, from what the lanes have of their own pixels: sums of `pixels`
// colors, and whether a line is on one. All lanes of the warp call it.
template <u32 DRAWN>
__device__ __forceinline__ void draw_chroma(const FrameArgs &frame, const DrawArgs &args, i32 x, i32 row, u32 (&sums)[2],
                                            u32 pixels, u32 on) {
  const u32 wide = DRAWN == DRAWN_SHARED ? 1 : frame.shared[0];
  // The pixel to the right holds the other half.
  if (wide) {
    sums[0] += __shfl_down_sync(FULL_WARP, sums[0], 1);
    sums[1] += __shfl_down_sync(FULL_WARP, sums[1], 1);
    pixels += __shfl_down_sync(FULL_WARP, pixels, 1);
    on |= __shfl_down_sync(FULL_WARP, on, 1);
    if (x & 1) return;
  }
  // Both are zero outside of the frame.
  if (pixels == 0 && !on) return;
#pragma unroll
  for (u32 c = 1; c < 3; c++) {
    u8 *sample = frame.plane[c] + (size_t)row * frame.stride[c] + (size_t)(x >> wide) * frame.step[c] + frame.offset[c];
    const u32 mean = pixels ? (2 * sums[c - 1] + pixels) / (2 * pixels) : 0;
    draw_sample<DRAWN>(frame, args, sample, c, pixels != 0, mean, on);
  }
}

// Draws four rows of a tile, from row `first` of it on. `drawing` has two members: `fill(row, x, y, color)` gives the color of a pixel,
// or false where it stays, and `is_on(row)` says whether a line is on the pixel of this lane.
template <u32 DRAWN, class Drawing>
__device__ __forceinline__ void draw_rows(const Drawing &drawing, const FrameArgs &frame, const DrawArgs &args, i32 x, i32 top,
                                          u32 first) {
  const i32 width = frame.width, height = frame.height;
  const bool own = DRAWN == DRAWN_RGB || (DRAWN == DRAWN_ANY && (frame.family == FAMILY_RGB || (frame.shared[0] | frame.shared[1]) == 0));
  const bool gray = DRAWN == DRAWN_GRAY || (DRAWN == DRAWN_ANY && frame.family == FAMILY_GRAY);
  const u32 high = DRAWN == DRAWN_SHARED ? 1 : frame.shared[1], channels = own && !gray ? 3 : 1;
  for (i32 i = 0; i < 4; i += 2) {
    u32 chroma[2] = {0, 0}, pixels = 0;
    bool on_chroma = false;
    for (i32 j = 0; j < 2; j++) {
      const i32 row = first + i + j, y = top + row;
      const bool inside = x < width && y < height;
      const bool on = inside && drawing.is_on(row);
      u32 color[3] = {0, 0, 0};
      const bool filled = inside && drawing.fill(row, x, y, color);
      if (filled) {
        chroma[0] += color[1];
        chroma[1] += color[2];
        pixels++;
      }
      on_chroma |= on;
      if (filled || on) draw_pixel<DRAWN>(frame, args, x, y, channels, filled, color, on);
      // The row is the last that shares its samples of chroma.
      if (own || gray || (j == 0 && high)) continue;
      draw_chroma<DRAWN>(frame, args, x, y >> high, chroma, pixels, on_chroma);
      chroma[0] = chroma[1] = pixels = 0;
      on_chroma = false;
    }
  }
}

// Draws the rows of a warp with the code for the frame's layout.
template <class Drawing>
__device__ __forceinline__ void draw_rows_of_any(const Drawing &drawing, const FrameArgs &frame, const DrawArgs &args, i32 x, i32 top,
                                                 u32 first) {
  if (frame.layout == LAYOUT_RGB && frame.word == 1) {
    draw_rows<DRAWN_RGB>(drawing, frame, args, x, top, first);
  } else if (frame.layout == LAYOUT_GRAY && frame.word == 1) {
    draw_rows<DRAWN_GRAY>(drawing, frame, args, x, top, first);
  } else if (frame.layout == LAYOUT_NV12 || frame.layout == LAYOUT_I420) {
    draw_rows<DRAWN_SHARED>(drawing, frame, args, x, top, first);
  } else {
    draw_rows<DRAWN_ANY>(drawing, frame, args, x, top, first);
  }
}
