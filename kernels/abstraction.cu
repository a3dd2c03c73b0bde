// SPDX-License-Identifier: MPL-2.0
// Abstraction, a drawing of stage `overlay`: patches with smooth outlines; mirrors src/post/abstraction/cpu.rs, and the rule stands in
// src/post/abstraction/mod.rs.
#include "block.cuh"
#include "draw.cuh"
#include "features.cuh"
#include "tracks.cuh"

// Pixels on either side that the widest Gaussian reaches, and the window of a tile with them: a row is two words of a warp.
#define MOST_RADIUS 15
#define WINDOW (TILE + 2 * MOST_RADIUS)
static_assert(WINDOW <= 64, "a row of the window has a bit for each pixel");
// One px, where distances from an outline are meant; also the whole of a share.
#define PX 256
// Steps of a relative difference, and where the tables of `AbstractionArgs` begin: distances at the wide and at the narrow scale, weights.
#define DIFFERENCES 1024
#define NEAR_TABLE (DIFFERENCES + 1)
#define BOOST_TABLE (2 * (DIFFERENCES + 1))
#define BOOST_WIDTHS 256
// A weight of 1 of a region, and what such a region weighs where it is alone, at the wide and at the narrow scale.
#define BOOST_ONE 4096u
#define WIDE_WHOLE 2048u
#define NARROW_WHOLE 4096u
// Contrasts in 1/8 Delta E, see `SHARP` and `INKED` of src/post/abstraction/rule.rs.
#define SHARP_FROM 160u
#define SHARP_FULL 320u
// Distance between the outlines of both scales, see `APART` there.
#define APART_FROM 96u
#define APART_FULL 192u
// Weights of thin regions, see `THIN` there.
#define THIN_FROM 4500u
#define THIN_FULL 6500u
#define INKED_FROM 64u
#define INKED_FULL 320u

#define LEAST_SAMPLES 8
#define RIDGE 4.0

// Side of the cells of which one pixel's label is kept, and the share of regions with an earlier paint below which a frame is a cut; see
// src/post/abstraction/steady.rs.
#define CELL 8
#define CUT_SHARE 4
#define NO_REGION 0xffffffffu
#define NO_KEY 0u

// Sums of `Moments` before those of codes.
#define CODE_SUMS 5
static_assert(OFFSET_OF(Moments, code) == CODE_SUMS * sizeof(u64) && OFFSET_OF(Moments, high) == OFFSET_OF(Moments, low_gap) + 3 * sizeof(u32),
              "lanes add up what stands there");

// Columns of a warp in `abstraction_measure`: two a lane.
#define MEASURED_WIDTH 64

// Greatest of a whole warp, in every lane.
__device__ __forceinline__ u32 warp_max(u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(FULL_WARP, value);
#else
#pragma unroll
  for (u32 step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
#endif
}

// Counts a side of two pixels.
__device__ __forceinline__ void add_side(Moments *moments, u32 a, u32 b) {
  if (a == b || a == NO_LABEL || b == NO_LABEL) return;
  atomicAdd(&moments[a].sides, 1u);
  atomicAdd(&moments[b].sides, 1u);
}

// Adds a sample a lane, `step` columns apart from column `first` of row y on, to their regions, all of one label at once.
__device__ __forceinline__ void add_samples(Moments *moments, const FrameArgs &frame, u32 label, u32 first, u32 step, u32 y) {
  const u32 lane = lane_id(), x = first + step * lane;
  u32 code[3] = {0, (u32)frame.neutral, (u32)frame.neutral};
  if (label != NO_LABEL) {
    const u32 channels = frame.family == FAMILY_GRAY ? 1 : 3;
    for (u32 c = 0; c < channels; c++) {
      const u32 column = c ? x >> frame.shared[0] : x, row = c ? y >> frame.shared[1] : y;
      code[c] = load_code(frame, frame.plane[c] + (size_t)row * frame.stride[c] + (size_t)column * frame.step[c] + frame.offset[c], c);
    }
  }
  for (u32 open = __ballot_sync(FULL_WARP, label != NO_LABEL); open;) {
    const u32 of = __shfl_sync(FULL_WARP, label, __ffs(open) - 1);
    const bool is_in = label == of;
    const u32 in = __ballot_sync(FULL_WARP, is_in), n = __popc(in);
    open &= ~in;
    const u32 lanes = warp_sum(FULL_WARP, is_in ? lane : 0), squares = warp_sum(FULL_WARP, is_in ? lane * lane : 0);
    const u64 sum_x = (u64)n * first + step * lanes;
    // The sums of `Moments` in their order, each by a lane of its own.
    u64 sum = 0;
    if (lane == 0) sum = sum_x;
    if (lane == 1) sum = (u64)n * y;
    if (lane == 2) sum = (u64)n * first * first + 2ull * first * step * lanes + step * step * squares;
    if (lane == 3) sum = sum_x * y;
    if (lane == 4) sum = (u64)n * y * y;
    u32 most = 0;
#pragma unroll
    for (u32 c = 0; c < 3; c++) {
      const u32 codes = warp_sum(FULL_WARP, is_in ? code[c] : 0), at_codes = warp_sum(FULL_WARP, is_in ? code[c] * lane : 0);
      const u32 gap = warp_max(is_in ? 0xffffu - code[c] : 0), high = warp_max(is_in ? code[c] : 0);
      if (lane == CODE_SUMS + c) sum = codes;
      if (lane == CODE_SUMS + 3 + c) sum = (u64)first * codes + step * at_codes;
      if (lane == CODE_SUMS + 6 + c) sum = (u64)y * codes;
      if (lane == c) most = gap;
      if (lane == 3 + c) most = high;
    }
    Moments *to = &moments[of];
    if (lane < CODE_SUMS + 9) atomicAdd((u64 *)to + lane, sum);
    if (lane < 6) atomicMax(&to->low_gap[0] + lane, most);
    if (lane == 0) atomicAdd(&to->samples, n);
  }
}

// Where `insert_key` begins.
__device__ __forceinline__ u32 first_slot(u32 key, u32 mask) { return key * 0x9e3779b1u >> 7 & mask; }

// Finds the region of the last frame that each track has, and keeps a label of each cell; the next table is emptied. The threads of
// the grid share the work.
__device__ __forceinline__ void look_back(const SteadyArgs &steady, const Track *tracks, const u16 *labels, const FrameArgs &frame,
                                          u32 label_stride, u32 count) {
  const u32 first = (blockIdx.y * gridDim.x + blockIdx.x) * TILE_THREADS + threadIdx.x;
  const u32 all = gridDim.x * gridDim.y * TILE_THREADS;
  for (u32 i = first; i <= steady.mask; i += all) steady.next_keys[i] = NO_KEY;
  for (u32 i = first; i < steady.columns * steady.rows; i += all) {
    const u32 x = min(i % steady.columns * CELL + CELL / 2, frame.width - 1);
    const u32 y = min(i / steady.columns * CELL + CELL / 2, frame.height - 1);
    steady.next_cells[i] = labels[(size_t)y * label_stride + x];
  }
  for (u32 i = first; i < count; i += all) {
    const u32 id = tracks[i].id;
    u32 earlier = NO_REGION;
    if (steady.follows && id != NO_KEY) {
      for (u32 slot = first_slot(id, steady.mask);; slot = (slot + 1) & steady.mask) {
        const u32 key = steady.keys[slot];
        if (key == NO_KEY) break;
        if (key != id) continue;
        const u32 label = steady.values[slot];
        // A gap in its ages: other frames came between.
        if (tracks[i].age == steady.last[label].age + 1) earlier = label;
        break;
      }
    }
    steady.earlier[i] = earlier;
    if (earlier != NO_REGION) atomicAdd(steady.matched, 1u);
  }
}

// The samples and boundaries of all regions, and their tracks in the last frame.
// Grid: tiles of 64 x 32 px; block: TILE_THREADS, a lane two columns, four rows a warp.
// In: labels [height][label_stride], the frame, the number of regions, tracks [regions], null without temporal mode.
// Out: moments [regions], added to; what `look_back` writes.
// Race-free: sums are integers, added by atomics, and ranges are maxima. In `look_back` a thread writes its own items.
KERNEL __launch_bounds__(TILE_THREADS)
    abstraction_measure(const u32 *__restrict__ counters, const u16 *__restrict__ labels, const Track *__restrict__ tracks,
                        Moments *__restrict__ moments, FrameArgs frame, AbstractionArgs args, SteadyArgs steady) {
  after_last_kernel(counters, steady);
  if (steady.share < PX) look_back(steady, tracks, labels, frame, args.label_stride, counters[REGIONS]);
  const u32 lane = lane_id(), left = blockIdx.x * MEASURED_WIDTH, x = left + 2 * lane;
  const u32 top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  const auto label_at = [&](u32 x, u32 y) {
    return x < frame.width && y < frame.height ? (u32)labels[(size_t)y * args.label_stride + x] : NO_LABEL;
  };
  u32 here[2] = {label_at(x, top), label_at(x + 1, top)};
  for (u32 y = top; y < min(top + 4, frame.height); y++) {
    const u32 below[2] = {label_at(x, y + 1), label_at(x + 1, y + 1)};
    u32 next = __shfl_down_sync(FULL_WARP, here[0], 1);
    if (lane == 31) next = label_at(x + 2, y);
    add_side(moments, here[0], here[1]);
    add_side(moments, here[1], next);
    add_side(moments, here[0], below[0]);
    add_side(moments, here[1], below[1]);
    if (args.shading && y % args.sample_step == 0) {
      add_samples(moments, frame, here[0], left, 2, y);
      if (args.sample_step == 1) add_samples(moments, frame, here[1], left + 1, 2, y);
    }
    here[0] = below[0];
    here[1] = below[1];
  }
}

// The weight of a region at a scale of `deviation` / 256 px: `Rule::boost` of src/post/abstraction/rule.rs.
__device__ __forceinline__ u16 boost_of(const u16 *tables, u32 area, u32 sides, u32 deviation) {
  const u64 width = 2ull * 64 * PX * area / max((u64)sides * deviation, 1ull);
  return tables[BOOST_TABLE + (u32)min(width, (u64)BOOST_WIDTHS)];
}

__device__ __forceinline__ double limited(double value, double most) { return fmin(fmax(value, -most), most); }

__device__ __forceinline__ i32 value_of(const Paint &paint, u32 c, i32 x, i32 y) {
  return paint.base[c] + paint.slope_x[c] * (x - paint.middle[0]) + paint.slope_y[c] * (y - paint.middle[1]);
}

__device__ __forceinline__ u32 code_of(const Paint &paint, const AbstractionArgs &args, u32 c, i32 x, i32 y) {
  return (u32)clamp(value_of(paint, c, x, y) >> args.fraction, paint.low[c], paint.high[c]);
}

// Part of PX that a value has gone from `from` to `to`.
__device__ __forceinline__ u32 part(u32 value, u32 from, u32 to) {
  return value <= from ? 0 : min(PX * (value - from) / (to - from), (u32)PX);
}

// How unlike the colors of two regions are, in 1/8 Delta E. The square is below 2^24.
__device__ __forceinline__ u32 contrast_of(u32 a, u32 b) {
  const i32 d0 = feature_0(a) - feature_0(b), d1 = feature_1(a) - feature_1(b), d2 = feature_2(a) - feature_2(b);
  return (u32)__fsqrt_rn((float)(d0 * d0 + d1 * d1 + d2 * d2));
}

__device__ __forceinline__ i32 eased(i32 from, i32 to, u32 share) {
  return from + (i32)((((i64)to - from) * (i64)share + 128) >> 8);
}
__device__ __forceinline__ u16 stepped(u16 from, u16 to, u32 share) {
  const u32 far = to > from ? to - from : from - to, way = max(far * share >> 8, (u32)(from != to));
  return (u16)(to > from ? from + way : from - way);
}

// `Paint::eased` of src/post/abstraction/steady.rs.
__device__ __forceinline__ void ease(Paint &paint, const Paint &last, u32 share, u32 fraction) {
  share = max(share, part(contrast_of(paint.feature, last.feature), SHARP_FROM, SHARP_FULL));
#pragma unroll
  for (u32 c = 0; c < 3; c++) {
    const i32 low = last.low[c] << fraction, high = (last.high[c] << fraction) + (1 << fraction) - 1;
    paint.base[c] = eased(clamp(value_of(last, c, paint.middle[0], paint.middle[1]), low, high), paint.base[c], share);
    paint.slope_x[c] = eased(last.slope_x[c], paint.slope_x[c], share);
    paint.slope_y[c] = eased(last.slope_y[c], paint.slope_y[c], share);
    paint.low[c] = stepped(last.low[c], paint.low[c], share);
    paint.high[c] = stepped(last.high[c], paint.high[c], share);
    const u16 code = (u16)(paint.base[c] >> fraction);
    paint.low[c] = min(paint.low[c], code);
    paint.high[c] = max(paint.high[c], code);
  }
#pragma unroll
  for (u32 i = 0; i < 2; i++) paint.boost[i] = stepped(last.boost[i], paint.boost[i], share);
}

// A color in the frame's own channels as a feature of `lab`.
__device__ __forceinline__ u32 feature_of_codes(const FrameArgs &frame, const SpaceArgs &lab, const u32 *tables, const u32 (&color)[3]) {
  u32 rgb[3];
  if (is_wide(frame)) to_rgb<true>(frame, frame.layout, color, rgb);
  else to_rgb<false>(frame, frame.layout, color, rgb);
  const u32 white = 2 * frame.neutral - 1;
#pragma unroll
  for (u32 c = 0; c < 3; c++) rgb[c] = (510 * rgb[c] + white) / (2 * white);
  return feature_of(lab, (const u16 *)tables, (const u16 *)tables + 2 * CURVE_WORDS, rgb);
}

// The paint of every region; moments are zero afterwards, for the next frame.
// Grid: a thread a region; block: TABLE_THREADS.
// In: moments, regions, means, tracks [regions], their number; `lab`; what `look_back` has written.
// Out: paints [regions]; moments; the next table of tracks.
// Race-free: a thread writes its own region's. Slots are taken by compare-and-swap; whoever took one writes its value, which nobody
// reads here.
KERNEL __launch_bounds__(TABLE_THREADS)
    abstraction_paint(const u32 *__restrict__ counters, Moments *__restrict__ moments, const RegionSums *__restrict__ regions,
                      const u64 *__restrict__ means, const Track *__restrict__ tracks, Paint *__restrict__ paints,
                      const u16 *__restrict__ tables, const u32 *__restrict__ lab_tables, FrameArgs frame, SpaceArgs lab,
                      AbstractionArgs args, SteadyArgs steady) {
  after_last_kernel(counters, steady);
  const u32 label = blockIdx.x * TABLE_THREADS + threadIdx.x, count = counters[REGIONS];
  if (label >= count) return;
  const Moments sums = moments[label];
  moments[label] = Moments{};
  const u64 packed = means[label];
  u32 mean[3];
  Paint paint = {};
#pragma unroll
  for (u32 c = 0; c < 3; c++) {
    mean[c] = (u32)(packed >> 16 * c) & 0xffffu;
    paint.base[c] = (i32)(mean[c] << args.fraction) + (1 << (args.fraction - 1));
    paint.low[c] = paint.high[c] = (u16)mean[c];
  }
  const RegionSums region = regions[label];
  const u64 twice = 2ull * max(region.area, 1u);
  paint.middle[0] = (u16)((2 * region.x + twice / 2) / twice);
  paint.middle[1] = (u16)((2 * region.y + twice / 2) / twice);
  if (args.shading && sums.samples >= LEAST_SAMPLES) {
    const double n = sums.samples, x = sums.x, y = sums.y, ridge = n * n * RIDGE;
    const double xx = n * (double)sums.xx - x * x + ridge, yy = n * (double)sums.yy - y * y + ridge;
    const double xy = n * (double)sums.xy - x * y, determinant = xx * yy - xy * xy;
    const double one = 1u << args.fraction, steepest = args.steepest;
    const double column = paint.middle[0], row = paint.middle[1];
#pragma unroll
    for (u32 c = 0; c < 3; c++) {
      const double code = sums.code[c];
      const double x_code = n * (double)sums.x_code[c] - x * code, y_code = n * (double)sums.y_code[c] - y * code;
      const double slope_x = limited(floor((yy * x_code - xy * y_code) / determinant * one + 0.5), steepest);
      const double slope_y = limited(floor((xx * y_code - xy * x_code) / determinant * one + 0.5), steepest);
      const double moved = slope_x * (column - x / n) + slope_y * (row - y / n);
      paint.base[c] += (i32)floor(moved + 0.5);
      paint.slope_x[c] = (i32)slope_x;
      paint.slope_y[c] = (i32)slope_y;
      paint.low[c] = (u16)min(0xffffu - sums.low_gap[c], mean[c]);
      paint.high[c] = (u16)max(sums.high[c], mean[c]);
    }
  }
  paint.boost[0] = boost_of(tables, region.area, sums.sides, args.deviation);
  paint.boost[1] = boost_of(tables, region.area, sums.sides, PX);
  paint.feature = feature_of_codes(frame, lab, lab_tables, mean);
  if (steady.share < PX) {
    paint.age = tracks[label].age;
    if (steady.follows && CUT_SHARE * *steady.matched >= count) {
      u32 earlier = steady.earlier[label];
      if (earlier == NO_REGION) {
        const u32 there = steady.cells[paint.middle[1] / CELL * steady.columns + paint.middle[0] / CELL];
        if (there != NO_LABEL) earlier = there;
      }
      if (earlier != NO_REGION) ease(paint, steady.last[earlier], steady.share, args.fraction);
    }
#pragma unroll
    for (u32 c = 0; c < 3; c++) mean[c] = code_of(paint, args, c, paint.middle[0], paint.middle[1]);
    paint.feature = feature_of_codes(frame, lab, lab_tables, mean);
    const u32 id = tracks[label].id;
    if (id != NO_KEY) {
      u32 *const keys = steady.next_keys;
      const Inserted taken = insert_key<NO_KEY>(id, steady.mask, [=](u32 slot) { return keys + slot; });
      if (taken.fresh) steady.next_values[taken.slot] = label;
    }
  }
  paints[label] = paint;
}

// Bytes of a row of `inside`: the four rows that a warp reads at once lie in different banks.
#define INSIDE_STRIDE 96
// What all labels of a window weigh together.
#define WHOLE (1u << 14)
// Rows and columns of a tile with those that the narrow Gaussian reaches.
#define NARROW_WINDOW (TILE + 4)

// The labels of a tile and those around it, and what one region weighs there.
struct OutlineTile {
  alignas(8) u16 label[WINDOW][WINDOW + 2];
  alignas(8) u8 inside[WINDOW][INSIDE_STRIDE];  // 1 for each pixel that is in the region
  u8 along[TILE][WINDOW + 6];                   // by columns: sums along rows, in which 128 is all
  u64 changes[NARROW_WINDOW];  // one bit for each pixel that differs from the one to the right or below, from two before the tile on
  u32 least[TILE_THREADS / 32];
};

// Largest and second largest weight at a pixel, each as the weight above the complement of its label: the lower label of equal ones first.
struct Top {
  u32 first, second;
};
__device__ __forceinline__ u32 key_of(u32 weight, u32 label) { return weight ? weight << 16 | (0xffffu - label) : 0; }
__device__ __forceinline__ u32 weight_of(u32 key) { return key >> 16; }
__device__ __forceinline__ u32 label_of(u32 key) { return 0xffffu - (key & 0xffffu); }
__device__ __forceinline__ void offer(Top &top, u32 key) {
  top.second = max(top.second, min(top.first, key));
  top.first = max(top.first, key);
}

// Keeps the least of the labels that the threads of a block have; `least_label` gives it after a barrier.
__device__ __forceinline__ void keep_least(OutlineTile &tile, u32 least) {
#pragma unroll
  for (u32 step = 16; step > 0; step /= 2) least = min(least, __shfl_xor_sync(FULL_WARP, least, step));
  if (lane_id() == 0) tile.least[threadIdx.x / 32] = least;
}
__device__ __forceinline__ u32 least_label(const OutlineTile &tile) {
  u32 least = NO_LABEL;
#pragma unroll
  for (u32 i = 0; i < TILE_THREADS / 32; i++) least = min(least, tile.least[i]);
  return least;
}

// Copies the labels of a tile and those around it. Returns the least of them; `is_whole` says that all are labels. All threads of the
// block call it.
__device__ __forceinline__ u32 load_labels(OutlineTile &tile, const u16 *labels, const FrameArgs &frame, const AbstractionArgs &args,
                                           bool &is_whole) {
  const u32 lane = lane_id(), warp = threadIdx.x / 32, rows = TILE + 2 * args.radius;
  const i32 left = blockIdx.x * TILE - args.radius, top = blockIdx.y * TILE - args.radius;
  const i32 width = frame.width, height = frame.height;
  u32 least = NO_LABEL, most = 0;
  for (u32 y = warp; y < rows; y += TILE_THREADS / 32) {
    const u16 *row = labels + (size_t)clamp(top + (i32)y, 0, height - 1) * args.label_stride;
#pragma unroll
    for (u32 x = lane; x < 64; x += 32) {
      const u32 label = row[clamp(left + (i32)min(x, rows - 1), 0, width - 1)];
      tile.label[y][x] = (u16)label;
      least = min(least, label);
      most = max(most, label);
    }
  }
  keep_least(tile, least);
  is_whole = !__syncthreads_or(most == NO_LABEL);
  return least_label(tile);
}

// Finds the pixels whose labels differ from others beside them, as far as the narrow Gaussian reaches.
__device__ __forceinline__ void find_changes(OutlineTile &tile, const AbstractionArgs &args) {
  const u32 lane = lane_id(), first = args.radius - 2;
  for (u32 y = threadIdx.x / 32; y < NARROW_WINDOW; y += TILE_THREADS / 32) {
    // The last row has none below it that counts.
    const u16 *row = tile.label[first + y], *below = tile.label[first + min(y + 1, NARROW_WINDOW - 1u)];
    u32 bits[2];
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
      const u32 x = first + min(lane + 32 * i, NARROW_WINDOW - 1u), beside = min(x + 1, first + NARROW_WINDOW - 1);
      bits[i] = __ballot_sync(FULL_WARP, row[x] != row[beside] || row[x] != below[x]);
    }
    if (lane == 0) tile.changes[y] = bits[0] | (u64)bits[1] << 32;
  }
}

// Marks the pixels of a region, and keeps the least label above it. All threads of the block call it, with a barrier behind.
__device__ __forceinline__ void mark_region(OutlineTile &tile, u32 rows, u32 label) {
  u32 least = NO_LABEL;
  const u32 word = threadIdx.x % 16;
  for (u32 y = threadIdx.x / 16; y < rows; y += TILE_THREADS / 16) {
    const uint2 four = *(const uint2 *)&tile.label[y][4 * word];
    const u32 labels[4] = {four.x & 0xffffu, four.x >> 16, four.y & 0xffffu, four.y >> 16};
    u32 inside = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      inside |= labels[i] == label ? 1u << 8 * i : 0;
      if (labels[i] > label) least = min(least, labels[i]);
    }
    *(u32 *)&tile.inside[y][4 * word] = inside;
  }
  keep_least(tile, least);
}

// Weighs a marked region along rows. All threads of the block call it, with a barrier behind.
__device__ __forceinline__ void weigh_along(OutlineTile &tile, const AbstractionArgs &args, u32 rows) {
  // A thread has four pixels beside each other, whose weights are the same words a byte further on each.
  const u32 group = threadIdx.x % 8;
  for (u32 y = threadIdx.x / 8; y < rows; y += TILE_THREADS / 8) {
    const u32 *inside = (const u32 *)&tile.inside[y][4 * group];
    u32 sum[4] = {0, 0, 0, 0};
    for (u32 i = 0; i < args.words; i++) {
      const u32 word = inside[i];
#pragma unroll
      for (u32 j = 0; j < 4; j++) sum[j] = __dp4a(word, args.weights[j][i], sum[j]);
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) tile.along[4 * group + j][y] = (u8)sum[j];
  }
}

// Sums of the weights along rows for the four pixels below each other of a thread.
__device__ __forceinline__ void weigh_down(const OutlineTile &tile, const AbstractionArgs &args, u32 (&down)[4]) {
  const u32 *along = (const u32 *)&tile.along[lane_id()][4 * (threadIdx.x / 32)];
  for (u32 i = 0; i < args.words; i++) {
    const u32 word = along[i];
#pragma unroll
    for (u32 j = 0; j < 4; j++) down[j] = __dp4a(word, args.weights[j][i], down[j]);
  }
}

// The two regions of largest weight at the four pixels of a thread. All threads of the block call it.
__device__ __forceinline__ void find_outlines(OutlineTile &tile, const AbstractionArgs &args, const Paint *paints, u32 label,
                                              bool is_whole, Top (&top)[4]) {
  const u32 rows = TILE + 2 * args.radius;
  u32 rest[4] = {WHOLE, WHOLE, WHOLE, WHOLE};
  // The least label has been read from where the next is kept.
  __syncthreads();
  for (bool is_first = true; label != NO_LABEL; is_first = false) {
    const u32 boost = paints[label].boost[0];
    mark_region(tile, rows, label);
    __syncthreads();
    const u32 next = least_label(tile);
    u32 sums[4] = {0, 0, 0, 0};
    if (next == NO_LABEL && (is_whole || is_first)) {
      // The last region has what the others leave. One alone has all, pixels outside of a mask or not, since only it weighs anything.
#pragma unroll
      for (u32 j = 0; j < 4; j++) sums[j] = rest[j];
    } else {
      // Where regions meet, the narrow Gaussian may count. Behind the last label there is a barrier.
      if (is_first && args.keeps_corners) find_changes(tile, args);
      weigh_along(tile, args, rows);
      __syncthreads();
      weigh_down(tile, args, sums);
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      rest[j] -= sums[j];
      offer(top[j], key_of(2 * sums[j] * boost >> 16, label));
    }
    label = next;
  }
}

__device__ __forceinline__ u32 relative_difference(u32 a, u32 b) { return DIFFERENCES * (max(a, b) - min(a, b)) / (a + b); }

// Distance in 1/256 px from the outline between two regions by their weights; negative on the second's side. `distance_of` of
// src/post/abstraction/cpu.rs.
__device__ __forceinline__ i32 signed_distance(const u16 *table, u32 a, u32 b) {
  const i32 distance = table[relative_difference(a, b)];
  return a < b ? -distance : distance;
}
__device__ __forceinline__ i32 distance_of(const u16 *table, u32 a, u32 b, u32 boost_a, u32 boost_b, u32 whole) {
  const bool is_first = boost_a >= boost_b;
  const u32 thin = is_first ? a : b, boost = is_first ? boost_a : boost_b;
  if (boost == BOOST_ONE) return signed_distance(table, a, b);
  const i32 distance = signed_distance(table, thin, whole - min(thin * BOOST_ONE / boost, whole));
  return is_first ? distance : -distance;
}

// The patches of a tile; a thread has four pixels below each other.
struct Patches {
  const OutlineTile &tile;
  const FrameArgs &frame;
  const AbstractionArgs &args;
  const Paint *paints;
  const u16 *tables;
  const Top (&top)[4];

  __device__ __forceinline__ bool is_on(i32) const { return false; }

  __device__ __forceinline__ bool fill(i32 row, i32 x, i32 y, u32 (&color)[3]) const {
    const u32 own = tile.label[row + args.radius][lane_id() + args.radius];
    if (own == NO_LABEL) return false;
    const u32 channels = frame.family == FAMILY_GRAY ? 1 : 3;
    const Top both = top[row % 4];
    if (!both.first) return false;
    const Paint *paint = &paints[label_of(both.first)];
    if (!both.second) {
      for (u32 c = 0; c < channels; c++) color[c] = code_of(*paint, args, c, x, y);
      return true;
    }
    const Paint *beside = &paints[label_of(both.second)];
    const u32 contrast = contrast_of(paint->feature, beside->feature);
    const u32 strength = part(contrast, INKED_FROM, INKED_FULL), ink_width = args.ink * strength >> 8;
    i32 distance = distance_of(tables, weight_of(both.first), weight_of(both.second), paint->boost[0], beside->boost[0], WIDE_WHOLE);
    const i32 contrasts = args.keeps_corners ? (i32)part(contrast, SHARP_FROM, SHARP_FULL) : 0;
    // Farther away a pixel is its region's alone, if the narrow Gaussian says nothing else.
    const bool is_plain = (paint->boost[0] | beside->boost[0] | paint->boost[1] | beside->boost[1]) == BOOST_ONE;
    if (is_plain && distance >= PX / 2 + (i32)ink_width / 2 && (!contrasts || (own == label_of(both.first) && is_even(row)))) {
      for (u32 c = 0; c < channels; c++) color[c] = code_of(*paint, args, c, x, y);
      return true;
    }
    if (contrasts) {
      u32 a, b;
      narrow_weights(row, label_of(both.first), label_of(both.second), a, b);
      a = a * paint->boost[1] >> 8;
      b = b * beside->boost[1] >> 8;
      if (a + b) {
        i32 near = distance_of(tables + NEAR_TABLE, a, b, paint->boost[1], beside->boost[1], NARROW_WHOLE);
        if (b == 0 && near > 0) near = max(near, distance);
        const u32 thin = max(paint->boost[1], beside->boost[1]);
        const u32 apart = max(part((u32)abs(near - distance), APART_FROM, APART_FULL), part(thin, THIN_FROM, THIN_FULL));
        const i32 sharp = contrasts * (i32)apart >> 8;
        distance = (distance * (PX - sharp) + near * sharp) >> 8;
      }
    }
    if (distance < 0) {
      const Paint *other = paint;
      paint = beside;
      beside = other;
      distance = -distance;
    }
    const u32 coverage = (u32)min(PX / 2 + distance, PX), ink = ink_at(strength, ink_width, distance);
    for (u32 c = 0; c < channels; c++) {
      const u32 here = code_of(*paint, args, c, x, y), there = code_of(*beside, args, c, x, y);
      const u32 mixed = (here * coverage + there * (PX - coverage) + 128) >> 8;
      color[c] = (mixed * (PX - ink) + args.ink_color[c] * ink + 128) >> 8;
    }
    return true;
  }

  // True if all pixels around this one are of one label, as far as the narrow Gaussian reaches.
  __device__ __forceinline__ bool is_even(i32 row) const {
    u64 changes = 0;
#pragma unroll
    for (u32 i = 0; i < 5; i++) changes |= tile.changes[row + i];
    return (changes >> lane_id() & 15) == 0;
  }

  // Weights of two regions at the narrow scale.
  __device__ __forceinline__ void narrow_weights(i32 row, u32 first, u32 second, u32 &a, u32 &b) const {
    // Binomial weights 1 4 6 4 1, four bits each.
    const u32 narrow = 0x14641;
    a = b = 0;
#pragma unroll
    for (u32 i = 0; i < 5; i++) {
      const u16 *labels = &tile.label[row + args.radius - 2 + i][lane_id() + args.radius - 2];
#pragma unroll
      for (u32 j = 0; j < 5; j++) {
        const u32 weight = (narrow >> 4 * i & 15) * (narrow >> 4 * j & 15), label = labels[j];
        a += label == first ? weight : 0;
        b += label == second ? weight : 0;
      }
    }
  }

  // Opacity of a line at a distance from its middle, of 256.
  __device__ __forceinline__ u32 ink_at(u32 strength, u32 width, i32 distance) const {
    const u32 covered = (u32)clamp((i32)width / 2 + PX / 2 - distance, 0, PX) * min(width, (u32)PX) >> 8;
    const u32 opaque = covered * (96 + (160 * strength >> 8)) >> 8;
    return (opaque * args.ink_alpha + 127) / 255;
  }
};

// Draws the patches.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, lane = column, four rows a warp.
// In: labels [height][label_stride], paints [regions], tables as `AbstractionArgs` has them.
// Out: the frame, in place; `matched`, zero.
// Race-free: tiles begin at even rows and columns, so that a chroma sample has all its pixels in one tile and one thread that writes
// it; no thread reads a sample of the frame but those it writes. Barriers separate the turns of regions.
KERNEL __launch_bounds__(TILE_THREADS, 4)
    abstraction_draw(const u16 *__restrict__ labels, const Paint *__restrict__ paints, const u16 *__restrict__ tables,
                     u32 *__restrict__ matched, FrameArgs frame, AbstractionArgs args) {
  after_last_kernel(labels, args);
  // For the next frame.
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *matched = 0;
  __shared__ OutlineTile tile;
  const u32 lane = lane_id(), warp = threadIdx.x / 32;
  // Words of columns are read past the last row.
  if (warp == 0) {
    for (u32 y = TILE + 2 * args.radius; y < WINDOW + 6; y++) tile.along[lane][y] = 0;
  }
  bool is_whole;
  const u32 least = load_labels(tile, labels, frame, args, is_whole);
  Top top[4] = {};
  find_outlines(tile, args, paints, least, is_whole, top);
  const i32 left = blockIdx.x * TILE, top_row = blockIdx.y * TILE;
  const DrawArgs unlined = {};
  draw_rows_of_any(Patches{tile, frame, args, paints, tables, top}, frame, unlined, left + (i32)lane, top_row, 4 * warp);
}
