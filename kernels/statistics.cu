// SPDX-License-Identifier: MPL-2.0
// Stage `statistics`: final labels of all pixels, sums of all regions, records of the region table; mirrors
// src/post/statistics/cpu.rs.
#include "batch.cuh"
#include "components.cuh"
#include "features.cuh"
#include "frame.cuh"
#include "regions.cuh"
#include "tracks.cuh"

// A lane has two pixels side by side in each of two rows, a warp four rows: the first half of its lanes the first and the third.
// Two values of such pixels are in one word, 16 bits each: components, labels, and samples, which are codes or linear RGB.
#define PAIRS 2
#define LANES_A_ROW (TILE / 2)

__device__ __forceinline__ u32 firsts_of(u32 a, u32 b) { return __byte_perm(a, b, 0x5410); }
__device__ __forceinline__ u32 seconds_of(u32 a, u32 b) { return __byte_perm(a, b, 0x7632); }

// The samples of a pair, by channel: with `linear`, the linear value of each code, those of R, G, B.
struct PairSamples {
  u32 channel[3];
};

template <u32 LAYOUT, u32 BYTES>
__device__ __forceinline__ void load_pairs(const FrameArgs &frame, const u16 *linear, u32 x, u32 y0, PairSamples (&own)[PAIRS]) {
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
    own[i] = {0, 0, 0};
#pragma unroll
    for (u32 j = 0; j < 2; j++) {
      const u32 y = y0 + 2 * i;
      if (x + j >= frame.width || y >= frame.height) continue;
      u32 samples[3];
      load_samples<LAYOUT, BYTES>(frame, x + j, y, samples);
      if (linear) {
        u32 rgb[3];
        to_rgb<is_wide(LAYOUT, BYTES)>(frame, LAYOUT, samples, rgb);
#pragma unroll
        for (u32 k = 0; k < 3; k++) samples[k] = linear[rgb[k]];
      }
#pragma unroll
      for (u32 k = 0; k < 3; k++) own[i].channel[k] |= samples[k] << (16 * j);
    }
  }
}

// Loads pairs as codes of pixels of four bytes, the most common format. `whole`: pairs lie in one aligned word.
__device__ __forceinline__ void load_packed_pairs(const FrameArgs &frame, bool whole, u32 x, u32 y0, PairSamples (&own)[PAIRS]) {
  const u8 *at = frame.plane[0] + (size_t)y0 * frame.stride[0] + 4 * (size_t)x;
  uint2 pixels[PAIRS];
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
    pixels[i] = make_uint2(0, 0);
    if (y0 + 2 * i < frame.height) {
      if (whole) {
        if (x < frame.width) pixels[i] = *(const uint2 *)at;
      } else {
        if (x < frame.width) pixels[i].x = *(const u32 *)at;
        if (x + 1 < frame.width) pixels[i].y = *(const u32 *)(at + 4);
      }
    }
    at += 2 * frame.stride[0];
  }
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
#pragma unroll
    for (u32 k = 0; k < 3; k++) {
      own[i].channel[k] = __byte_perm(pixels[i].x, pixels[i].y, 0x4400u + 0x101u * frame.offset[k]) & 0xff00ffu;
    }
  }
}

// Sums over a component of a tile: sums of x and of y from the tile's corner, 16 bits each; pixels above the first
// sample, which 21 bits hold; the other samples; columns and rows that it has pixels in, as bits, which hold both ends of its
// box. Linear RGB and codes of 16 bits are larger, so that pixels have a word of their own.
enum TileSums { SUM_POSITIONS, SUM_FIRST, SUM_SECOND, SUM_THIRD, SUM_COLUMNS, SUM_ROWS, SUM_PIXELS };
static_assert(TILE * TILE * (TILE - 1) / 2 < 1 << 16, "positions in a tile");

// Components whose sums are held at once, one a thread; those of tiles with more take turns. With room for all, six blocks fit a
// multiprocessor instead of eight.
#define MEASURE_AT_ONCE TILE_THREADS

// Sums of samples over a run in a row: of codes the first two channels in 16 bits each.
template <bool LINEAR>
struct RunSums {
  static const u32 WORDS = LINEAR ? 3 : 2;
  u32 sum[WORDS];

  __device__ __forceinline__ RunSums(u32 first_two, u32 third) {
    sum[0] = LINEAR ? first_two & 0xffffu : first_two;
    if (LINEAR) sum[1] = first_two >> 16;
    sum[WORDS - 1] = third;
  }
  __device__ __forceinline__ void add(u32 first_two, u32 third) {
    const RunSums other(first_two, third);
#pragma unroll
    for (u32 k = 0; k < WORDS; k++) sum[k] += other.sum[k];
  }
};

template <bool LINEAR>
struct MeasureShared {
  static const u32 WORDS = LINEAR ? SUM_PIXELS + 1 : SUM_PIXELS;
  u16 label[TILE * TILE];  // of each component of the tile
  u32 sums[WORDS][MEASURE_AT_ONCE];
};

// Position of a lane's pairs.
struct PairPosition {
  u32 side, row;  // in the tile: pairs before them in the row, and the first of their rows
  u32 left, top;  // of the tile
  u32 x, y;       // of the first pixel
};
__device__ __forceinline__ PairPosition pair_position() {
  const u32 side = lane_id() % LANES_A_ROW, row = threadIdx.x / 32 * 2 * PAIRS + lane_id() / LANES_A_ROW;
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  return {side, row, left, top, left + 2 * side, top + row};
}

// The components of a lane's pairs, both in one word. `even`: pairs of a plane lie in one aligned word.
__device__ __forceinline__ void load_components(const Components &c, const FrameArgs &frame, const PairPosition &at, bool even,
                                                u32 (&index)[PAIRS]) {
  const u16 *local = c.local + (size_t)at.y * frame.width + at.x;
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
    index[i] = NO_COMPONENT * 0x10001u;
    if (at.y + 2 * i < frame.height && at.x < frame.width) {
      if (even) {
        index[i] = *(const u32 *)local;
      } else {
        index[i] = local[0] | (at.x + 1 < frame.width ? local[1] : NO_COMPONENT) << 16;
      }
    }
    local += 2 * frame.width;
  }
}

// Adds the end of a run, from column `from` to `last` of a row of the tile, to the sums of the component at `at`. What is outside
// the frame is not counted.
template <bool LINEAR>
__device__ __forceinline__ void add_run(MeasureShared<LINEAR> &shared, const RunSums<LINEAR> &run, u32 at, u32 row, u32 from,
                                        u32 last) {
  const u32 n = last + 1 - from, step = MEASURE_AT_ONCE;
  u32 *const to = &shared.sums[0][at];
  atomicAdd(&to[SUM_POSITIONS * step], (n * (from + last) >> 1) + (n * row << 16));
  if (LINEAR) {
    atomicAdd(&to[SUM_FIRST * step], run.sum[0]);
    atomicAdd(&to[SUM_SECOND * step], run.sum[1]);
    atomicAdd(&to[SUM_PIXELS * step], n);
  } else {
    atomicAdd(&to[SUM_FIRST * step], (n << COUNT_SHIFT) + (run.sum[0] & 0xffffu));
    atomicAdd(&to[SUM_SECOND * step], run.sum[0] >> 16);
  }
  atomicAdd(&to[SUM_THIRD * step], run.sum[RunSums<LINEAR>::WORDS - 1]);
  atomicOr(&to[SUM_COLUMNS * step], 1u << from | 1u << last);
  atomicOr(&to[SUM_ROWS * step], 1u << row);
}

// Adds up the tile's pixels of MEASURE_AT_ONCE components from `base` on, each run in a row at once. A lane gives its pairs. The
// block's threads call it; one barrier, after the sums have been cleared.
template <bool LINEAR>
__device__ __forceinline__ void add_up(MeasureShared<LINEAR> &shared, const PairPosition &at, const u32 (&index)[PAIRS],
                                       const PairSamples (&own)[PAIRS], u32 base) {
  const u32 lane = lane_id(), after = lanes_after(), side = at.side;
#pragma unroll
  for (int j = 0; j < MeasureShared<LINEAR>::WORDS; j++) shared.sums[j][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
    const u32 row = at.row + 2 * i, component[2] = {index[i] & 0xffffu, index[i] >> 16};
    const u32 *channel = own[i].channel;
    // The pixel before the lane's first: its component and samples.
    const u32 near = __shfl_up_sync(FULL_WARP, seconds_of(index[i], channel[2]), 1);
    const u32 near_2 = __shfl_up_sync(FULL_WARP, seconds_of(channel[0], channel[1]), 1);
    const bool begins = side == 0 || (near & 0xffffu) != component[0], splits = component[0] != component[1];
    const u32 begin = __ballot_sync(FULL_WARP, begins), split = __ballot_sync(FULL_WARP, splits);
    // Sums of a run up to the lane's first pixel: it began there or in the lane before, or goes on from before that.
    const i32 lane0 = highest_lane((begin | split << 1) & ~after);
    RunSums<LINEAR> run(firsts_of(channel[0], channel[1]), channel[2] & 0xffffu);
    if (!begins) run.add(near_2, near >> 16);
#pragma unroll
    for (int k = 0; k < RunSums<LINEAR>::WORDS; k++) run.sum[k] = run_sum<LANES_A_ROW>(run.sum[k], lane0);
    // A run ends at the lane's first pixel, and at its second one where the next lane begins another.
    u32 from = 2 * ((u32)lane0 % LANES_A_ROW) - (begin >> lane0 & 1 ? 0 : 1);
    if (splits) {
      if (component[0] - base < MEASURE_AT_ONCE) add_run(shared, run, component[0] - base, row, from, 2 * side);
      run = RunSums<LINEAR>(0, 0);
      from = 2 * side + 1;
    }
    if (component[1] - base < MEASURE_AT_ONCE && (side == LANES_A_ROW - 1 || begin >> lane & 2)) {
      run.add(seconds_of(channel[0], channel[1]), channel[2] >> 16);
      add_run(shared, run, component[1] - base, row, from, 2 * side + 1);
    }
  }
}

// Adds the sums of the tile's components from `base` on to their regions, a thread each; the first of the tile is `first` in the
// lists. `hold`: pixels and features are still with the components. After a barrier since `add_up`; none inside.
template <bool LINEAR>
__device__ __forceinline__ void add_to_regions(const MeasureShared<LINEAR> &shared, const PairPosition &at, const Components &c,
                                               RegionSums *regions, u32 first, u32 base, u32 total, bool hold) {
  const u32 i = threadIdx.x;
  if (base + i >= total || shared.label[base + i] == NO_LABEL) return;
  RegionSums *region = &regions[shared.label[base + i]];
  const u32 positions = shared.sums[SUM_POSITIONS][i], sum_first = shared.sums[SUM_FIRST][i];
  const u32 columns = shared.sums[SUM_COLUMNS][i], in_rows = shared.sums[SUM_ROWS][i];
  const u32 n = LINEAR ? shared.sums[MeasureShared<LINEAR>::WORDS - 1][i] : sum_first >> COUNT_SHIFT;
  atomicAdd(&region->x, (u64)(n * at.left + (positions & 0xffffu)));
  atomicAdd(&region->y, (u64)(n * at.top + (positions >> 16)));
  atomicAdd(&region->samples[0], (u64)(LINEAR ? sum_first : below_count(sum_first)));
  atomicAdd(&region->samples[1], (u64)shared.sums[SUM_SECOND][i]);
  atomicAdd(&region->samples[2], (u64)shared.sums[SUM_THIRD][i]);
  atomicMin(&region->x0, at.left + __ffs(columns) - 1);
  atomicMax(&region->x1, at.left + 32 - __clz(columns));
  atomicMin(&region->y0, at.top + __ffs(in_rows) - 1);
  atomicMax(&region->y1, at.top + 32 - __clz(in_rows));
  if (hold) {
    const ComponentSums held = c.sums[first + base + i];
    atomicAdd(&region->area, held.count);
#pragma unroll
    for (int j = 0; j < 3; j++) atomicAdd(&region->color[j], held.color[j]);
  }
}

// Writes the labels of a lane's pairs. After a barrier since `shared.label` was written.
template <bool LINEAR>
__device__ __forceinline__ void write_labels(const MeasureShared<LINEAR> &shared, const FrameArgs &frame, const PairPosition &at,
                                             bool even, u32 label_stride, const u32 (&index)[PAIRS], u16 *labels) {
  u16 *to_label = labels + (size_t)at.y * label_stride + at.x;
  const bool pairs = even && label_stride % 2 == 0;
#pragma unroll
  for (u32 i = 0; i < PAIRS; i++) {
    if (at.y + 2 * i < frame.height && at.x < frame.width) {
      const u32 one = shared.label[index[i] & 0xffffu];
      if (pairs) {
        *(u32 *)to_label = one | shared.label[index[i] >> 16] << 16;
      } else {
        to_label[0] = (u16)one;
        if (at.x + 1 < frame.width) to_label[1] = shared.label[index[i] >> 16];
      }
    }
    to_label += 2 * label_stride;
  }
}

template <bool LINEAR, bool ANY>
__device__ __forceinline__ void measure_tile(const Components &c, const u16 *component_label, u16 *labels,
                                             RegionSums *regions, const FrameArgs &frame, const u16 *linear,
                                             const MeasureArgs &args) {
  __shared__ MeasureShared<LINEAR> shared;
  const PairPosition at = pair_position();
  if (args.refined) wait_for_last_kernel();
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x, first = c.tile_first[tile], total = c.tile_count[tile];
  // True if two pixels of a plane lie in one aligned word, and both inside or both outside of the frame.
  const bool even = frame.width % 2 == 0;
  u32 index[PAIRS];  // of both pixels, 16 bits each
  PairSamples own[PAIRS];
  load_components(c, frame, at, even, index);
  if (args.measure) {
    if (ANY) {
      if (LINEAR && is_wide(frame)) {
        WITH_ANY_WIDE_LAYOUT(frame, load_pairs, frame, linear, at.x, at.y, own);
      } else {
        WITH_ANY_LAYOUT(frame, load_pairs, frame, LINEAR ? linear : 0, at.x, at.y, own);
      }
    } else if (!LINEAR && frame.layout == LAYOUT_RGB && frame.bytes == 4) {
      load_packed_pairs(frame, even && ((u32)(size_t)frame.plane[0] | frame.stride[0]) % 8 == 0, at.x, at.y, own);
    } else {
      if (LINEAR && is_wide(frame)) {
        WITH_WIDE_LAYOUT(frame, load_pairs, frame, linear, at.x, at.y, own);
      } else {
        WITH_LAYOUT(frame, load_pairs, frame, LINEAR ? linear : 0, at.x, at.y, own);
      }
    }
  }
  // Beside the kernel that makes the labels of components, unless components are new, too.
  if (args.measure) add_up(shared, at, index, own, 0);
  wait_for_last_kernel();
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) shared.label[i] = component_label[first + i];
  __syncthreads();
  write_labels(shared, frame, at, even, args.label_stride, index, labels);
  if (!args.measure) return;
  add_to_regions(shared, at, c, regions, first, 0, total, args.components_hold);
#pragma unroll 1
  for (u32 base = MEASURE_AT_ONCE; base < total; base += MEASURE_AT_ONCE) {
    // New to the compiler: else it keeps all that the first turn has made of them, and spills it.
    asm volatile("" : "+r"(index[0]), "+r"(index[1]));
    add_up(shared, at, index, own, base);
    __syncthreads();
    add_to_regions(shared, at, c, regions, first, base, total, args.components_hold);
  }
}

// Stage `statistics/measure`: the label of every pixel, and the sums of its region.
// Grid: tiles of 32 x 32 px as in `tile_components`; block: TILE_THREADS, a lane two pairs of pixels.
// In: components, labels [components], the frame.
// Out: labels [height][label_stride]; regions [regions].
// Race-free: a pixel has one thread that writes its label; sums are integers, added by atomics, in shared memory and then to the
// regions, and boxes are minima and maxima.
KERNEL __launch_bounds__(TILE_THREADS, 8)
    measure(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
            RegionSums *__restrict__ regions, FrameArgs frame, MeasureArgs args, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, component_label, labels, regions);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  measure_tile<false, false>(c, component_label, labels, regions, frame, 0, args);
}

// `measure` for formats without code of its own.
KERNEL __launch_bounds__(TILE_THREADS, 8)
    measure_any(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
                RegionSums *__restrict__ regions, FrameArgs frame, MeasureArgs args, Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, component_label, labels, regions);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  measure_tile<false, true>(c, component_label, labels, regions, frame, 0, args);
}

// `measure` with samples as linear RGB; `linear` has a value for each code. If it is null, samples are codes of more than 10 bits.
KERNEL __launch_bounds__(TILE_THREADS)
    measure_linear(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
                  RegionSums *__restrict__ regions, FrameArgs frame, const u16 *__restrict__ linear, MeasureArgs args,
                   Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, component_label, labels, regions);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  measure_tile<true, false>(c, component_label, labels, regions, frame, linear, args);
}

KERNEL __launch_bounds__(TILE_THREADS)
    measure_linear_any(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
                       RegionSums *__restrict__ regions, FrameArgs frame, const u16 *__restrict__ linear, MeasureArgs args,
                       Batch batch) {
  beside_last_kernel(c, batch);
  select_frame(batch, c, component_label, labels, regions);
  select_planes(batch, frame);
  if (is_absent(batch)) return;
  measure_tile<true, true>(c, component_label, labels, regions, frame, linear, args);
}

// The first code, but for the last one, whose linear value is not below this.
__device__ __forceinline__ u32 first_code(const u16 *linear, u32 codes, u32 value) {
  u32 first = 0, last = codes - 1;
  while (first < last) {
    const u32 middle = (first + last) / 2;
    if (linear[middle] < value) first = middle + 1;
    else last = middle;
  }
  return first;
}

// The code of nearest linear value, of several the lowest; mirrors `LinearLight::code` in src/color.rs.
__device__ __forceinline__ u32 code_of(const u16 *linear, u32 codes, u32 value) {
  const u32 at = first_code(linear, codes, value), above = linear[at], below = linear[at ? at - 1 : 0];
  const u32 up = above > value ? above - value : value - above, down = below > value ? below - value : value - below;
  return first_code(linear, codes, up < down ? above : below);
}

// Stage `statistics/table`: the records of regions.
// Grid: a thread a region; block: TABLE_THREADS.
// In: regions, tracks or null [regions]; `linear_codes`, if not 0, says that samples are linear RGB, and how many codes there are.
// Out: means [regions], samples packed in 16 bits each from the lowest; records [regions].
// Race-free: a thread writes its own region's.
KERNEL __launch_bounds__(TABLE_THREADS)
    region_table(const u32 *__restrict__ counters, const RegionSums *__restrict__ regions,
                 const Track *__restrict__ tracks, const u32 *__restrict__ tables, const u16 *__restrict__ linear,
                 u64 *__restrict__ means, Region *__restrict__ records, FrameArgs frame, SpaceArgs lab, u32 lab_features,
                 u32 linear_codes, Batch batch) {
  beside_last_kernel(counters, batch);
  select_frame(batch, counters, regions, means, records);
  select_some(batch, tracks);
  if (is_absent(batch)) return;
  const u32 label = blockIdx.x * TABLE_THREADS + threadIdx.x, count = counters[REGIONS];
  wait_for_last_kernel();
  if (label >= count) return;
  const RegionSums sums = regions[label];
  u32 mean[3], rgb[3];
  // Codes have 10 bits, so that the sums of nearly all regions have 32; or up to 16.
  if (!linear_codes && sums.area <= 1u << (is_wide(frame) ? 14 : 21)) {
    const Divisor twice_area = divisor_of(2 * sums.area);
#pragma unroll
    for (int i = 0; i < 3; i++) mean[i] = quotient(2 * (u32)sums.samples[i] + sums.area, twice_area);
  } else {
#pragma unroll
    for (int i = 0; i < 3; i++) mean[i] = rounded_mean(sums.samples[i], sums.area);
  }
  if (linear_codes) {
#pragma unroll
    for (int i = 0; i < 3; i++) rgb[i] = code_of(linear, linear_codes, mean[i]);
    from_codes(frame, rgb, mean);
  } else {
    if (is_wide(frame)) to_rgb<true>(frame, frame.layout, mean, rgb);
    else to_rgb<false>(frame, frame.layout, mean, rgb);
  }
  means[label] = mean[0] | (u64)mean[1] << 16 | (u64)mean[2] << 32;
  const u32 white = 2 * frame.neutral - 1;
#pragma unroll
  for (int i = 0; i < 3; i++) rgb[i] = (510 * rgb[i] + white) / (2 * white);
  u64 color[3] = {sums.color[0], sums.color[1], sums.color[2]};
  const double area = sums.area, inverse = 1.0 / area;
  double n = area, inverse_n = inverse;
  if (!lab_features) {
    const u32 feature = feature_of(lab, (const u16 *)tables, (const u16 *)tables + 2 * CURVE_WORDS, rgb);
    color[0] = feature_0(feature);
    color[1] = feature_1(feature);
    color[2] = feature_2(feature);
    n = inverse_n = 1.0;
  }
  Region record;
  record.track_id = identity_of(tracks, label);
  record.area = sums.area;
  record.centroid[0] = (float)ratio((double)sums.x, area, inverse);
  record.centroid[1] = (float)ratio((double)sums.y, area, inverse);
#pragma unroll
  for (int i = 0; i < 3; i++) record.mean_rgb[i] = (u8)rgb[i];
  record.mean_rgb[3] = 255;
  record.mean_lab[0] = (float)(ratio((double)color[0], n, inverse_n) / 8.0);
  record.mean_lab[1] = (float)((ratio((double)color[1], n, inverse_n) - 1024.0) / 8.0);
  record.mean_lab[2] = (float)((ratio((double)color[2], n, inverse_n) - 1024.0) / 8.0);
  record.bounds[0] = (u16)sums.x0;
  record.bounds[1] = (u16)sums.y0;
  record.bounds[2] = (u16)sums.x1;
  record.bounds[3] = (u16)sums.y1;
  records[label] = record;
}

// The region adjacency list: pairs are counted in a hash table, sorted into a bucket for each lower label, and ranked
// by the higher one inside the bucket.

// The key of a free slot.
#define NO_PAIR 0xffffffffu

// Stage `statistics/neighbors`, first: an empty table.
// Grid: any number of blocks; block: NEIGHBOR_THREADS.
// Out: keys and lengths [slots], degree [2][labels + 1].
// Race-free: every word has one thread that writes it.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_clear(u32 *__restrict__ keys, u32 *__restrict__ lengths, u32 *__restrict__ degree, u32 labels,
                    NeighborArgs args, Batch batch) {
  after_last_kernel(keys, batch);
  select_frame(batch, keys, lengths, degree);
  if (is_absent(batch)) return;
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    keys[i] = NO_PAIR;
    lengths[i] = 0;
  }
  for (u32 i = first; i < 2 * (labels + 1); i += all) degree[i] = 0;
}

__device__ __forceinline__ void count_pair(u32 *keys, u32 *lengths, u32 slots, u32 a, u32 b, u32 length) {
  if (max(a, b) == NO_LABEL) return;
  const u32 key = min(a, b) << 16 | max(a, b);
  const Inserted pair = insert_key<NO_PAIR>(key, slots - 1, [&](u32 slot) { return keys + slot; });
  atomicAdd(&lengths[pair.slot], length);
}

// Counts pixel pairs of two labels. A stretch of one pair along a row or down a column is counted at once.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, lane = column, four rows a warp.
// In: labels [height][label_stride].
// Out: keys and lengths [slots].
// Race-free: slots are taken by compare-and-swap, lengths added by atomics.
KERNEL __launch_bounds__(TILE_THREADS)
    neighbors_count(const u16 *__restrict__ labels, u32 *__restrict__ keys, u32 *__restrict__ lengths,
                    NeighborArgs args, Batch batch) {
  after_last_kernel(labels, batch);
  select_frame(batch, labels, keys, lengths);
  if (is_absent(batch)) return;
  const u32 lane = lane_id(), x = blockIdx.x * TILE + lane, top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  u32 right_a = 0, right_b = 0, right_length = 0;
  for (u32 i = 0; i < 4; i++) {
    const u32 y = top + i;
    const bool inside = x < args.width && y < args.height;
    const u16 *at = labels + (size_t)y * args.label_stride + x;
    const u32 here = inside ? at[0] : 0;
    const u32 beside = inside && x + 1 < args.width ? at[1] : here;
    const u32 below = inside && y + 1 < args.height ? at[args.label_stride] : here;
    if (beside != here) {
      if (right_length && (right_a != here || right_b != beside)) {
        count_pair(keys, lengths, args.slots, right_a, right_b, right_length);
        right_length = 0;
      }
      right_a = here;
      right_b = beside;
      right_length++;
    }
    const u32 pair = here << 16 | below, before = __shfl_up_sync(FULL_WARP, pair, 1);
    const u32 starts = __ballot_sync(FULL_WARP, lane == 0 || before != pair);
    const bool ends = lane == 31 || starts >> (lane + 1) & 1;
    if (ends && below != here) {
      count_pair(keys, lengths, args.slots, here, below, lane + 1 - run_start(starts, lane));
    }
  }
  if (right_length) count_pair(keys, lengths, args.slots, right_a, right_b, right_length);
}

// How many pairs each lower label has.
// Grid: any number of blocks; block: NEIGHBOR_THREADS.
// In: keys [slots].
// Out: degree [labels], by atomic additions.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_degree(const u32 *__restrict__ keys, u32 *__restrict__ degree, NeighborArgs args, Batch batch) {
  after_last_kernel(keys, batch);
  select_frame(batch, keys, degree);
  if (is_absent(batch)) return;
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    if (keys[i] != NO_PAIR) atomicAdd(&degree[keys[i] >> 16], 1);
  }
}

// Turns degrees into the indices where buckets start; the last is the number of pairs.
// Grid: one block of 1024.
// In and out: degree [labels + 1], in place.
// Race-free: a thread reads and writes its own entries; sums pass through `BlockScan`.
KERNEL __launch_bounds__(1024) neighbors_scan(u32 *__restrict__ degree, u32 labels, Batch batch) {
  after_last_kernel(degree, batch);
  select_frame(batch, degree);
  if (is_absent(batch)) return;
  __shared__ BlockScan<1024>::Shared scan;
  u32 carry = 0;
  for (u32 base = 0; base < labels + 1; base += 1024) {
    const u32 i = base + threadIdx.x, value = i < labels ? degree[i] : 0;
    const u32 before = carry + BlockScan<1024>::exclusive_sum<true>(scan, value);
    if (i < labels + 1) degree[i] = before;
    carry += scan.total;
  }
}

// Writes (higher label, length) into the buckets, in no order. `degree` is followed by as many cursors.
// Grid: any number of blocks; block: NEIGHBOR_THREADS.
// In: keys and lengths [slots], degree [labels + 1].
// Out: bucketed [2][pairs].
// Race-free: an atomic addition to a bucket's cursor gives every pair an index of its own.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_bucket(const u32 *__restrict__ keys, const u32 *__restrict__ lengths, u32 *__restrict__ degree,
                    uint2 *__restrict__ bucketed, u32 labels, NeighborArgs args, Batch batch) {
  after_last_kernel(keys, batch);
  select_frame(batch, keys, lengths, degree, bucketed);
  if (is_absent(batch)) return;
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    if (keys[i] == NO_PAIR) continue;
    const u32 a = keys[i] >> 16;
    const u32 at = degree[a] + atomicAdd(&degree[labels + 1 + a], 1);
    bucketed[2 * (size_t)at] = make_uint2(a, keys[i] & 0xffffu);
    bucketed[2 * (size_t)at + 1] = make_uint2(lengths[i], 0);
  }
}

// Sorts the pairs: the rank of one inside its bucket is the number of pairs there with a lower second label.
// Grid: any number of blocks; block: NEIGHBOR_THREADS.
// In: degree [labels + 1], bucketed [2][pairs].
// Out: pairs [pairs].
// Race-free: ranks in a bucket differ, since its pairs do.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_rank(const u32 *__restrict__ degree, const uint2 *__restrict__ bucketed, Neighbor *__restrict__ pairs,
                   u32 labels, Batch batch) {
  after_last_kernel(degree, batch);
  select_frame(batch, degree, bucketed, pairs);
  if (is_absent(batch)) return;
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  const u32 count = degree[labels];
  for (u32 i = first; i < count; i += all) {
    const uint2 pair = bucketed[2 * (size_t)i];
    u32 rank = 0;
    for (u32 j = degree[pair.x]; j < degree[pair.x + 1]; j++) rank += bucketed[2 * (size_t)j].y < pair.y;
    const Neighbor record = {pair.x, pair.y, bucketed[2 * (size_t)i + 1].x};
    pairs[degree[pair.x] + rank] = record;
  }
}
