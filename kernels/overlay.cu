// SPDX-License-Identifier: MPL-2.0
// Stage `overlay`: fills regions and draws their boundaries; mirrors src/post/overlay/cpu.rs.
#include "draw.cuh"
#include "tracks.cuh"

enum Fill { FILL_NONE = 0, FILL_MEAN = 1, FILL_LABELS = 2 };

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

// What is drawn; bit b of `line`'s rows: a line is on the pixel of lane b.
struct Overlaid {
  const u16 *labels;
  const u64 *means;
  const Track *tracks;
  const FrameArgs &frame;
  const DrawArgs &args;
  const u32 *line;

  __device__ __forceinline__ bool is_on(i32 row) const { return line[row] >> lane_id() & 1; }
  __device__ __forceinline__ bool fill(i32, i32 x, i32 y, u32 (&color)[3]) const {
    // Pixels outside of a mask are not drawn on.
    const u32 label = args.fill != FILL_NONE ? labels[(size_t)y * args.label_stride + x] : NO_LABEL;
    if (label == NO_LABEL) return false;
    fill_color(frame, args, means, tracks, label, color);
    return true;
  }
};

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

  draw_rows_of_any(Overlaid{labels, means, tracks, frame, args, line}, frame, args, left + lane, top, 4 * warp);
}
