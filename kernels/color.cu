// SPDX-License-Identifier: MPL-2.0
// Stage `ingest`: a frame of any format becomes packed features; mirrors src/ingest/cpu.rs.
#include "features.cuh"
#include "frame.cuh"

struct IngestArgs {
  SpaceArgs space;
  // Samples that rounds visit: every 2^sample_shift-th column and row, sample_width a row.
  u32 sample_shift, sample_width;
  // Words that have to be zero before the next stage, cleared on the way.
  u32 clear_words;
};
static_assert(sizeof(IngestArgs) == 4 * 13, "mirrored in src/ingest/cuda.rs");

// A warp takes pieces of 128 px of a row, each lane every 32nd pixel.
template <u32 LAYOUT, u32 BYTES>
__device__ __forceinline__ void ingest_pieces(const FrameArgs &frame, const IngestArgs &args, const u16 *tables,
                                              u32 *features, u32 *samples, u32 warp, u32 warps) {
  const u32 pieces = (frame.width + 127) / 128, lane = lane_id(), mask = (1u << args.sample_shift) - 1;
  for (u32 piece = warp; piece < pieces * frame.height; piece += warps) {
    const u32 y = piece / pieces, left = (piece - y * pieces) * 128 + lane;
    u32 own[4][3];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      own[i][0] = own[i][1] = own[i][2] = 0;
      if (left + 32 * i < frame.width) load_samples<LAYOUT, BYTES>(frame, left + 32 * i, y, own[i]);
    }
    u32 *out = features + (size_t)y * frame.width;
    u32 *sample_row = samples + (size_t)(y >> args.sample_shift) * args.sample_width;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 x = left + 32 * i;
      u32 rgb[3];
      to_rgb(frame, own[i], rgb);
      const u32 feature = feature_of(args.space, tables, rgb);
      if (x < frame.width) {
        out[x] = feature;
        if (((x | y) & mask) == 0) sample_row[x >> args.sample_shift] = feature;
      }
    }
  }
}

// Grid: any number of blocks. Reads the frame, writes features and samples.
KERNEL __launch_bounds__(INGEST_THREADS, 3)
    ingest(const u32 *__restrict__ tables, u32 *__restrict__ features, u32 *__restrict__ samples,
           u32 *__restrict__ clear, FrameArgs frame, IngestArgs args) {
  after_last_kernel(tables, args);
  __shared__ u32 words[WIDE_TABLE_WORDS];
  const u32 table_words = frame.layout == LAYOUT_P010 ? WIDE_TABLE_WORDS : TABLE_WORDS;
  for (u32 i = threadIdx.x; i < table_words; i += INGEST_THREADS) words[i] = tables[i];
  const u32 first = blockIdx.x * INGEST_THREADS + threadIdx.x, all = gridDim.x * INGEST_THREADS;
  for (u32 i = first; i < args.clear_words; i += all) clear[i] = 0;
  __syncthreads();
  WITH_LAYOUT(frame, ingest_pieces, frame, args, (const u16 *)words, features, samples, first / 32, all / 32);
}
