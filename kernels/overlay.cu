// SPDX-License-Identifier: MPL-2.0
// Stage `overlay`: fills regions and draws their boundaries; mirrors src/post/overlay/cpu.rs.
#include "frame.cuh"
#include "tracks.cuh"

enum Fill { FILL_NONE = 0, FILL_MEAN = 1, FILL_LABELS = 2 };

// Which code draws on a frame: packed R'G'B' of 8 bits; gray of 8 bits; 8 bits whose samples of chroma are of two columns and two
// rows; all others, by their description.
enum Drawn { DRAWN_RGB, DRAWN_GRAY, DRAWN_SHARED, DRAWN_ANY };

__device__ __forceinline__ u32 blend(u32 sample, u32 color, u32 alpha) {
  return (alpha * color + (255 - alpha) * sample + 127) / 255;
}

// A stable false color of an identity; mirrors `false_color` in src/post/overlay/mod.rs.
__device__ __forceinline__ void false_color(u32 identity, u32 (&rgb)[3]) {
  u32 h = (identity + 1) * 0x9e3779b1u;
  h = (h ^ h >> 15) * 0x85ebca77u;
  h = (h ^ h >> 13) * 0xc2b2ae3du;
  h ^= h >> 16;
#pragma unroll
  for (int i = 0; i < 3; i++) rgb[i] = 48 + (h >> 8 * i & 255u) * 207 / 255;
}

__device__ __forceinline__ void fill_color(const FrameArgs &frame, const DrawArgs &args, const u64 *means,
                                           const Track *tracks, u32 label, u32 (&out)[3]) {
  if (args.fill == FILL_MEAN) {
    const u64 mean = means[label];
#pragma unroll
    for (int i = 0; i < 3; i++) out[i] = (u32)(mean >> 16 * i) & 0xffffu;
  } else {
    u32 rgb[3];
    false_color(identity_of(tracks, label), rgb);
    from_rgb(frame, rgb, out);
  }
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

// Draws four rows of a tile, from row `first` of it on; bit b of `line`'s rows: a line is on the pixel of lane b.
template <u32 DRAWN>
__device__ __forceinline__ void draw_rows(const u16 *labels, const u64 *means, const Track *tracks, const FrameArgs &frame,
                                          const DrawArgs &args, const u32 *line, i32 x, i32 top, u32 first) {
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
      const bool on = inside && line[row] >> lane_id() & 1;
      u32 color[3] = {0, 0, 0};
      // Pixels outside of a mask are not drawn on.
      const u32 label = inside && args.fill != FILL_NONE ? labels[(size_t)y * args.label_stride + x] : NO_LABEL;
      const bool filled = label != NO_LABEL;
      if (filled) {
        fill_color(frame, args, means, tracks, label, color);
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

// Rows of marks that a tile needs above and below itself for the widest line.
#define REACH 4

// Stage `overlay`: fills regions and draws their boundaries.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, lane = column, four rows a warp.
// In: labels [height][label_stride], means [regions] or tracks [regions], as `fill` asks.
// Out: the frame, in place.
// Race-free: tiles begin at even rows and columns, so that a chroma sample has all its pixels in one tile and one thread that writes
// it; no thread reads a sample of the frame but those it writes.
KERNEL __launch_bounds__(TILE_THREADS, 8)
    draw(const u16 *__restrict__ labels, const u64 *__restrict__ means, const Track *__restrict__ tracks, FrameArgs frame,
         DrawArgs args) {
  after_last_kernel(labels, args);
  // Bit b: the thin boundary passes the pixel in column left + b - REACH; the second array: the line covers it.
  __shared__ u64 thin[TILE + 2 * REACH];
  __shared__ u32 line[TILE];
  const u32 lane = lane_id(), warp = threadIdx.x / 32;
  const i32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  const i32 width = frame.width, height = frame.height;
  if (args.width) {
    for (i32 row = warp; row < TILE + 2 * REACH; row += TILE_THREADS / 32) {
      const i32 y = top + row - REACH;
      u64 marks = 0;
      if (y >= 0 && y < height) {
        const u16 *here = labels + (size_t)y * args.label_stride;
        for (u32 half = 0; half < 2; half++) {
          const i32 x = left - REACH + (i32)(32 * half + lane);
          bool mark = false;
          if (x >= 0 && x < width && 32 * half + lane < TILE + 2 * REACH) {
            mark = (x + 1 < width && here[x + 1] != here[x]) ||
                   (y + 1 < height && here[x + args.label_stride] != here[x]);
          }
          marks |= (u64)__ballot_sync(FULL_WARP, mark) << 32 * half;
        }
      }
      // A mark reaches ceil(w/2) - 1 columns left and floor(w/2) right.
      u64 wide = marks;
      for (u32 i = 1; i <= args.width / 2; i++) wide |= marks << i;
      for (u32 i = 1; i < (args.width + 1) / 2; i++) wide |= marks >> i;
      if (lane == 0) thin[row] = wide;
    }
  }
  __syncthreads();
  if (threadIdx.x < TILE) {
    u64 covered = 0;
    if (args.width) {
      const i32 row = threadIdx.x + REACH;
      for (i32 i = row - (i32)(args.width / 2); i < row + (i32)((args.width + 1) / 2); i++) covered |= thin[i];
    }
    line[threadIdx.x] = (u32)(covered >> REACH);
  }
  __syncthreads();

  const i32 x = left + lane;
  if (frame.layout == LAYOUT_RGB && frame.word == 1) {
    draw_rows<DRAWN_RGB>(labels, means, tracks, frame, args, line, x, top, 4 * warp);
  } else if (frame.layout == LAYOUT_GRAY && frame.word == 1) {
    draw_rows<DRAWN_GRAY>(labels, means, tracks, frame, args, line, x, top, 4 * warp);
  } else if (frame.layout == LAYOUT_NV12 || frame.layout == LAYOUT_I420) {
    draw_rows<DRAWN_SHARED>(labels, means, tracks, frame, args, line, x, top, 4 * warp);
  } else {
    draw_rows<DRAWN_ANY>(labels, means, tracks, frame, args, line, x, top, 4 * warp);
  }
}
