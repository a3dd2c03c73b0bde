// SPDX-License-Identifier: MPL-2.0
// Stage `ingest`: a frame of any format becomes packed features; mirrors src/ingest/cpu.rs.
#include "batch.cuh"
#include "features.cuh"
#include "frame.cuh"

// Pixels of a row that a warp takes at a time, each lane every 32nd.
#define PIECE 128

struct Tables {
  const u16 *curve, *codes;
};

// The piece from a lane's `x` on; inside the frame as a whole or not.
template <u32 LAYOUT, u32 BYTES, bool LAB, bool WHOLE>
__device__ __forceinline__ void ingest_piece(const FrameArgs &frame, const IngestArgs &args, const Tables &tables,
                                             u32 *features, u32 *samples, u32 x, u32 y) {
  u32 own[PIECE / 32][3] = {};
  const Row<LAYOUT, BYTES> row(frame, x, y);
  if (WHOLE || x < frame.width) row.template load<0>(frame, own[0]);
  if (WHOLE || x + 32 < frame.width) row.template load<32>(frame, own[1]);
  if (WHOLE || x + 64 < frame.width) row.template load<64>(frame, own[2]);
  if (WHOLE || x + 96 < frame.width) row.template load<96>(frame, own[3]);
  u32 *out = features + (y * frame.width + x), feature[PIECE / 32];
#pragma unroll
  for (u32 i = 0; i < PIECE / 32; i++) {
    u32 rgb[3];
    to_rgb<is_wide(LAYOUT, BYTES)>(frame, LAYOUT, own[i], rgb);
    feature[i] = LAB ? lab_of(args.space, tables.curve, tables.codes, rgb)
                     : feature_of(args.space, tables.curve, tables.codes, rgb);
    if (WHOLE || x + 32 * i < frame.width) out[32 * i] = feature[i];
  }
  if (((x | y) & ((1u << args.sample_shift) - 1)) != 0) return;
  u32 *sample = samples + ((y >> args.sample_shift) * args.sample_width + (x >> args.sample_shift));
#pragma unroll
  for (u32 i = 0; i < PIECE / 32; i++) {
    if (WHOLE || x + 32 * i < frame.width) sample[32 * i >> args.sample_shift] = feature[i];
  }
}

template <u32 LAYOUT, u32 BYTES, bool LAB>
__device__ __forceinline__ void ingest_pieces(const FrameArgs &frame, const IngestArgs &args, const Tables &tables,
                                              u32 *features, u32 *samples, u32 warp, u32 warps) {
  const u32 pieces = (frame.width + PIECE - 1) / PIECE, rows_on = warps / pieces, pieces_on = warps - rows_on * pieces;
  u32 y = warp / pieces, piece = warp - y * pieces;
#pragma unroll 1
  while (y < frame.height) {
    const u32 x = piece * PIECE + lane_id();
    // The common case has code of its own.
    if (LAB && (piece + 1) * PIECE <= frame.width) {
      ingest_piece<LAYOUT, BYTES, LAB, LAB>(frame, args, tables, features, samples, x, y);
    } else {
      ingest_piece<LAYOUT, BYTES, LAB, false>(frame, args, tables, features, samples, x, y);
    }
    y += rows_on;
    piece += pieces_on;
    if (piece >= pieces) {
      piece -= pieces;
      y++;
    }
  }
}

template <u32 LAYOUT, u32 BYTES>
__device__ __forceinline__ void ingest_frame(const FrameArgs &frame, const IngestArgs &args, const Tables &tables,
                                             u32 *features, u32 *samples, u32 warp, u32 warps) {
  if (args.space.space == SPACE_LAB) {
    ingest_pieces<LAYOUT, BYTES, true>(frame, args, tables, features, samples, warp, warps);
  } else {
    ingest_pieces<LAYOUT, BYTES, false>(frame, args, tables, features, samples, warp, warps);
  }
}

// Copies the first `quads` of the tables, at most MOST, into shared memory; all that a thread copies is asked for at once.
template <u32 MOST>
__device__ __forceinline__ void copy_tables(const uint4 *tables, u32 quads, uint4 (&words)[MOST]) {
  uint4 quad[(MOST + INGEST_THREADS - 1) / INGEST_THREADS];
  const u32 parts = sizeof quad / sizeof *quad;
#pragma unroll
  for (u32 i = 0; i < parts; i++) {
    if (threadIdx.x + i * INGEST_THREADS < quads) quad[i] = tables[threadIdx.x + i * INGEST_THREADS];
  }
#pragma unroll
  for (u32 i = 0; i < parts; i++) {
    if (threadIdx.x + i * INGEST_THREADS < quads) words[threadIdx.x + i * INGEST_THREADS] = quad[i];
  }
}

// Stage `ingest`: a frame of at most 10 bits becomes packed colors.
// Grid: any number of blocks of INGEST_THREADS; a warp takes pieces of PIECE px of a row, by turns.
// In: the frame [height][width], tables of the space [TABLE_QUADS or WIDE_TABLE_QUADS].
// Out: features [height][width]; samples [ceil(height / step)][sample_width]; `clear`, `clear_words` words, zero.
// Race-free: every word of the three has one thread that writes it, and none is read here.
KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest(const uint4 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
           u32 *__restrict__ clear, FrameArgs frame, IngestArgs args, Batch batch) {
  after_last_kernel(tables, batch);
  select_frame(batch, features, samples, clear);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  __shared__ uint4 words[WIDE_TABLE_QUADS];
  const u32 quads = frame.layout == LAYOUT_P010 ? WIDE_TABLE_QUADS : TABLE_QUADS;
  copy_tables(tables, quads, words);
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  const Tables own = {(const u16 *)words, (const u16 *)words + 2 * CURVE_WORDS};
  WITH_LAYOUT(frame, ingest_frame, frame, args, own, features, samples, first / 32, all / 32);
}

// `ingest` for frames of 16 bits, whose table of codes is too large for shared memory.
// In: tables of the space, those of the codes [65536] behind the curve.
KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest_wide(const uint4 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
                u32 *__restrict__ clear, FrameArgs frame, IngestArgs args, Batch batch) {
  after_last_kernel(tables, batch);
  select_frame(batch, features, samples, clear);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  __shared__ uint4 words[CURVE_QUADS];
  copy_tables(tables, CURVE_QUADS, words);
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  const Tables own = {(const u16 *)words, (const u16 *)tables + 2 * CURVE_WORDS};
  WITH_WIDE_LAYOUT(frame, ingest_frame, frame, args, own, features, samples, first / 32, all / 32);
}

// Both for frames that have no code of their own. The first is for those of at most 10 bits.
KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest_any(const uint4 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
               u32 *__restrict__ clear, FrameArgs frame, IngestArgs args, Batch batch) {
  after_last_kernel(tables, batch);
  select_frame(batch, features, samples, clear);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  __shared__ uint4 words[WIDE_TABLE_QUADS];
  copy_tables(tables, frame.neutral > 128 ? WIDE_TABLE_QUADS : TABLE_QUADS, words);
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  const Tables own = {(const u16 *)words, (const u16 *)words + 2 * CURVE_WORDS};
  WITH_ANY_LAYOUT(frame, ingest_frame, frame, args, own, features, samples, first / 32, all / 32);
}

KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest_any_wide(const uint4 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
                    u32 *__restrict__ clear, FrameArgs frame, IngestArgs args, Batch batch) {
  after_last_kernel(tables, batch);
  select_frame(batch, features, samples, clear);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  __shared__ uint4 words[CURVE_QUADS];
  copy_tables(tables, CURVE_QUADS, words);
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  const Tables own = {(const u16 *)words, (const u16 *)tables + 2 * CURVE_WORDS};
  WITH_ANY_WIDE_LAYOUT(frame, ingest_frame, frame, args, own, features, samples, first / 32, all / 32);
}

// Gray of 16 bits, whose black and white are found before.
// In: range, code of black and factor to white.
KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest_stretched(const uint4 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
                     u32 *__restrict__ clear, FrameArgs frame, IngestArgs args, const i32 *__restrict__ range, Batch batch) {
  after_last_kernel(tables, batch);
  select_frame(batch, features, samples, clear, range);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  __shared__ uint4 words[CURVE_QUADS];
  copy_tables(tables, CURVE_QUADS, words);
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  const Tables own = {(const u16 *)words, (const u16 *)tables + 2 * CURVE_WORDS};
  FrameArgs stretched = frame;
  stretched.luma_offset = range[0];
  stretched.to_rgb[0] = range[1];
  WITH_ANY_WIDE_LAYOUT(frame, ingest_frame, stretched, args, own, features, samples, first / 32, all / 32);
}
