// SPDX-License-Identifier: MPL-2.0
// Stage `statistics`: final labels of all pixels, sums of all regions, records of the region table; mirrors
// src/post/statistics/cpu.rs.
#include "components.cuh"
#include "features.cuh"
#include "frame.cuh"
#include "regions.cuh"
#include "tracks.cuh"

struct MeasureArgs {
  u32 label_stride;
  u32 measure;
  // Whether area and features are still with the components: connectivity brings them to the regions.
  u32 components_hold;
};

// The samples of a pixel, as codes the first two in 16 bits each, or as light: `light` is that of each code, samples are the
// light of R, G, B.
struct Samples {
  u32 first, second, third;
};

template <u32 LAYOUT, u32 BYTES>
__device__ __forceinline__ void load_rows(const FrameArgs &frame, const u16 *light, u32 x, u32 y0, u32 rows,
                                          Samples (&own)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    own[i] = {0, 0, 0};
    if (i >= rows) continue;
    u32 codes[3], rgb[3];
    load_samples<LAYOUT, BYTES>(frame, x, y0 + i, codes);
    if (light) {
      to_rgb(frame, LAYOUT, codes, rgb);
      own[i] = {light[rgb[0]], light[rgb[1]], light[rgb[2]]};
    } else {
      own[i].first = codes[0] | codes[1] << 16;
      own[i].third = codes[2];
    }
  }
}

// The same as codes of pixels of four bytes, which most frames have.
__device__ __forceinline__ void load_packed_rows(const FrameArgs &frame, u32 x, u32 y0, u32 rows, Samples (&own)[4]) {
  const u8 *at = frame.plane[0] + (size_t)y0 * frame.stride[0] + 4 * (size_t)x;
  u32 pixel[4] = {0, 0, 0, 0};
  // One test where all rows are there: else registers are spilled.
  if (rows == 4) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) pixel[i] = *(const u32 *)(at + i * frame.stride[0]);
  } else {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (i < rows) pixel[i] = *(const u32 *)(at + i * frame.stride[0]);
    }
  }
  const u32 first = 0x4040u | frame.offset[0] | frame.offset[1] << 8, third = 0x4440u | frame.offset[2];
#pragma unroll
  for (int i = 0; i < 4; i++) own[i] = {__byte_perm(pixel[i], 0, first), 0, __byte_perm(pixel[i], 0, third)};
}

// What is added up for a component of a tile: sums of x and of y from the tile's corner, 16 bits each; pixels above the first
// sample, which 21 bits hold; the other samples; columns and rows that it has pixels in, as bits, which hold both ends of its
// box. Light is larger, so that pixels have a word of their own.
enum TileSums { SUM_PLACES, SUM_FIRST, SUM_SECOND, SUM_THIRD, SUM_COLUMNS, SUM_ROWS, SUM_PIXELS };
static_assert(TILE * TILE * (TILE - 1) / 2 < 1 << 16, "places of a tile");

// Components whose sums are held at once, one a thread; those of tiles with more take turns. With room for all, six blocks fit a
// multiprocessor instead of eight.
#define MEASURE_AT_ONCE TILE_THREADS

template <bool LIGHT>
__device__ __forceinline__ void measure_tile(const Components &c, const u16 *component_label, u16 *labels,
                                             RegionSums *regions, const FrameArgs &frame, const u16 *light,
                                             const MeasureArgs &args) {
  const u32 words = LIGHT ? SUM_PIXELS + 1 : SUM_PIXELS;
  __shared__ u16 label[TILE * TILE];
  __shared__ u32 sums[words][MEASURE_AT_ONCE];
  const u32 lane = lane_id(), own_bit = 1u << lane, after = lanes_after(), row0 = threadIdx.x / 32 * 4;
  const u32 left = blockIdx.x * TILE, top = blockIdx.y * TILE, x = left + lane, y0 = top + row0;
  const u32 rows = x < frame.width && y0 < frame.height ? min(frame.height - y0, 4) : 0;
  const u32 tile = blockIdx.y * gridDim.x + blockIdx.x, first = c.tile_first[tile], total = c.tile_count[tile];
  u32 index[4];
  Samples own[4];
  const u16 *local = c.local + (size_t)y0 * frame.width + x;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    index[i] = i < rows ? *local : NO_COMPONENT;
    local += frame.width;
  }
  if (args.measure) {
    if (!LIGHT && frame.layout == LAYOUT_RGB && frame.bytes == 4) {
      load_packed_rows(frame, x, y0, rows, own);
    } else {
      WITH_LAYOUT(frame, load_rows, frame, LIGHT ? light : 0, x, y0, rows, own);
    }
  }
  const auto clear = [&] {
#pragma unroll
    for (int j = 0; j < words; j++) sums[j][threadIdx.x] = 0;
    __syncthreads();
  };
  const auto add_up = [&](u32 base) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const u32 row = row0 + i, before = __shfl_up_sync(FULL_WARP, index[i], 1);
      const u32 starts = __ballot_sync(FULL_WARP, before != index[i]) | 1u;
      const u32 start = (u32)highest_lane(starts & ~after);
      const u32 run_first = run_sum(own[i].first, start), run_third = run_sum(own[i].third, start);
      const u32 run_second = LIGHT ? run_sum(own[i].second, start) : 0;
      // The last lane of a run: the next begins another. What is outside the frame has no place.
      const u32 at = index[i] - base;
      if (at < MEASURE_AT_ONCE && i < rows && (lane == 31 || starts & own_bit << 1)) {
        const u32 n = lane + 1 - start;
        u32 *const to = &sums[0][at];
        const u32 step = MEASURE_AT_ONCE;
        atomicAdd(&to[SUM_PLACES * step], (n * (start + lane) >> 1) + (n * row << 16));
        if (LIGHT) {
          atomicAdd(&to[SUM_FIRST * step], run_first);
          atomicAdd(&to[SUM_SECOND * step], run_second);
          atomicAdd(&to[SUM_PIXELS * step], n);
        } else {
          atomicAdd(&to[SUM_FIRST * step], (n << COUNT_SHIFT) + (run_first & 0xffffu));
          atomicAdd(&to[SUM_SECOND * step], run_first >> 16);
        }
        atomicAdd(&to[SUM_THIRD * step], run_third);
        atomicOr(&to[SUM_COLUMNS * step], 1u << start | own_bit);
        atomicOr(&to[SUM_ROWS * step], 1u << row);
      }
    }
  };
  // Beside the kernel that makes the labels of components.
  if (args.measure) {
    clear();
    add_up(0);
  }
  wait_for_last_kernel();
  for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) label[i] = component_label[first + i];
  __syncthreads();
  u16 *to_label = labels + (size_t)y0 * args.label_stride + x;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (i < rows) *to_label = label[index[i]];
    to_label += args.label_stride;
  }
  if (!args.measure) return;
#pragma unroll 1
  for (u32 base = 0;;) {
    const u32 i = threadIdx.x;
    if (base + i < total) {
      RegionSums *region = &regions[label[base + i]];
      const u32 places = sums[SUM_PLACES][i], sum_first = sums[SUM_FIRST][i];
      const u32 columns = sums[SUM_COLUMNS][i], in_rows = sums[SUM_ROWS][i];
      const u32 n = LIGHT ? sums[words - 1][i] : sum_first >> COUNT_SHIFT;
      atomicAdd(&region->x, (u64)(n * left + (places & 0xffffu)));
      atomicAdd(&region->y, (u64)(n * top + (places >> 16)));
      atomicAdd(&region->samples[0], (u64)(LIGHT ? sum_first : below_count(sum_first)));
      atomicAdd(&region->samples[1], (u64)sums[SUM_SECOND][i]);
      atomicAdd(&region->samples[2], (u64)sums[SUM_THIRD][i]);
      atomicMin(&region->x0, left + __ffs(columns) - 1);
      atomicMax(&region->x1, left + 32 - __clz(columns));
      atomicMin(&region->y0, top + __ffs(in_rows) - 1);
      atomicMax(&region->y1, top + 32 - __clz(in_rows));
      if (args.components_hold) {
        const ComponentSums held = c.sums[first + base + i];
        atomicAdd(&region->area, held.count);
#pragma unroll
        for (int j = 0; j < 3; j++) atomicAdd(&region->color[j], held.color[j]);
      }
    }
    base += MEASURE_AT_ONCE;
    if (base >= total) return;
    clear();
    add_up(base);
    __syncthreads();
  }
}

// Grid: tiles of 32 x 32 px as in `tile_components`. Writes every label; adds every component to its region.
KERNEL __launch_bounds__(TILE_THREADS, 8)
    measure(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
            RegionSums *__restrict__ regions, FrameArgs frame, MeasureArgs args) {
  beside_last_kernel(c, args);
  measure_tile<false>(c, component_label, labels, regions, frame, 0, args);
}

// The same, with samples as light.
KERNEL __launch_bounds__(TILE_THREADS)
    measure_light(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ labels,
                  RegionSums *__restrict__ regions, FrameArgs frame, const u16 *__restrict__ light, MeasureArgs args) {
  beside_last_kernel(c, args);
  measure_tile<true>(c, component_label, labels, regions, frame, light, args);
}

// The code of nearest light, of two the lower; mirrors `Light::code` in src/color.rs.
__device__ __forceinline__ u32 code_of(const u16 *light, u32 codes, u32 value) {
  u32 below = 0, above = codes - 1;
  while (above - below > 1) {
    const u32 middle = (below + above) / 2;
    if (light[middle] <= value) below = middle;
    else above = middle;
  }
  return light[above] <= value || light[above] - value < value - light[below] ? above : below;
}

// One record of the region table; mirrors `Region` in src/regions.rs.
struct Record {
  u32 track_id, area;
  float centroid[2];
  u8 rgb[4];
  float lab[3];
  u16 bounds[4];
};
static_assert(sizeof(Record) == 40, "the wire format");

// Grid: one thread a region. Writes the mean samples, packed in 10 bits each from the lowest, and the record. `light_codes`,
// if not 0, says that samples are light, and how many codes there are.
KERNEL __launch_bounds__(TABLE_THREADS)
    region_table(const u32 *__restrict__ counters, const RegionSums *__restrict__ regions,
                 const Track *__restrict__ tracks, const u32 *__restrict__ tables, const u16 *__restrict__ light,
                 u32 *__restrict__ means, Record *__restrict__ records, FrameArgs frame, SpaceArgs lab, u32 lab_features,
                 u32 light_codes) {
  beside_last_kernel(counters, light_codes);
  const u32 label = blockIdx.x * TABLE_THREADS + threadIdx.x, count = counters[2];
  wait_for_last_kernel();
  if (label >= count) return;
  const RegionSums sums = regions[label];
  u32 mean[3], rgb[3];
#pragma unroll
  for (int i = 0; i < 3; i++) mean[i] = rounded_mean(sums.samples[i], sums.area);
  if (light_codes) {
#pragma unroll
    for (int i = 0; i < 3; i++) rgb[i] = code_of(light, light_codes, mean[i]);
    from_codes(frame, rgb, mean);
  } else {
    to_rgb(frame, frame.layout, mean, rgb);
  }
  means[label] = mean[0] | mean[1] << 10 | mean[2] << 20;
  if (frame.layout == LAYOUT_P010) {
#pragma unroll
    for (int i = 0; i < 3; i++) rgb[i] = (510 * rgb[i] + 1023) / 2046;
  }
  u64 color[3] = {sums.color[0], sums.color[1], sums.color[2]};
  double n = sums.area;
  if (!lab_features) {
    const u32 feature = feature_of(lab, (const u16 *)tables, rgb);
    color[0] = feature_0(feature);
    color[1] = feature_1(feature);
    color[2] = feature_2(feature);
    n = 1.0;
  }
  Record record;
  record.track_id = identity_of(tracks, label);
  record.area = sums.area;
  record.centroid[0] = (float)((double)sums.x / (double)sums.area);
  record.centroid[1] = (float)((double)sums.y / (double)sums.area);
#pragma unroll
  for (int i = 0; i < 3; i++) record.rgb[i] = (u8)rgb[i];
  record.rgb[3] = 255;
  record.lab[0] = (float)((double)color[0] / n / 8.0);
  record.lab[1] = (float)(((double)color[1] / n - 1024.0) / 8.0);
  record.lab[2] = (float)(((double)color[2] / n - 1024.0) / 8.0);
  record.bounds[0] = (u16)sums.x0;
  record.bounds[1] = (u16)sums.y0;
  record.bounds[2] = (u16)sums.x1;
  record.bounds[3] = (u16)sums.y1;
  records[label] = record;
}

// The region adjacency list: pairs are counted in a hash table, sorted into a bucket for each lower label, and ranked
// by the higher one inside the bucket.
struct NeighborArgs {
  u32 width, height;
  u32 label_stride;
  u32 slots;  // a power of two
};

// Grid: any number of blocks. `keys` and `lengths` of `slots`, `degree` of one more than the most labels.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_clear(u32 *__restrict__ keys, u32 *__restrict__ lengths, u32 *__restrict__ degree, u32 labels,
                    NeighborArgs args) {
  after_last_kernel(keys, args);
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    keys[i] = 0xffffffffu;
    lengths[i] = 0;
  }
  for (u32 i = first; i < 2 * (labels + 1); i += all) degree[i] = 0;
}

__device__ __forceinline__ void count_pair(u32 *keys, u32 *lengths, u32 slots, u32 a, u32 b, u32 length) {
  const u32 key = min(a, b) << 16 | max(a, b);
  u32 slot = key * 0x9e3779b1u >> 7 & (slots - 1);
  for (;;) {
    const u32 old = atomicCAS(&keys[slot], 0xffffffffu, key);
    if (old == 0xffffffffu || old == key) {
      atomicAdd(&lengths[slot], length);
      return;
    }
    slot = (slot + 1) & (slots - 1);
  }
}

// Grid: 32 x 32 px a block, lane = column. A stretch of one pair along a row or down a column is counted at once.
KERNEL __launch_bounds__(TILE_THREADS)
    neighbors_count(const u16 *__restrict__ labels, u32 *__restrict__ keys, u32 *__restrict__ lengths,
                    NeighborArgs args) {
  after_last_kernel(labels, args);
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

KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_degree(const u32 *__restrict__ keys, u32 *__restrict__ degree, NeighborArgs args) {
  after_last_kernel(keys, args);
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    if (keys[i] != 0xffffffffu) atomicAdd(&degree[keys[i] >> 16], 1);
  }
}

// Grid: one block of 1024. Turns degrees into the places where buckets start; the last is the number of pairs.
KERNEL __launch_bounds__(1024) neighbors_scan(u32 *__restrict__ degree, u32 labels) {
  after_last_kernel(degree, labels);
  __shared__ u32 warp_total[32];
  __shared__ u32 carry;
  if (threadIdx.x == 0) carry = 0;
  __syncthreads();
  for (u32 base = 0; base < labels + 1; base += 1024) {
    const u32 i = base + threadIdx.x, value = i < labels ? degree[i] : 0, sum = inclusive_sum(value);
    if (lane_id() == 31) warp_total[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
      const u32 here = warp_total[threadIdx.x];
      warp_total[threadIdx.x] = inclusive_sum(here) - here;
    }
    __syncthreads();
    const u32 before = carry + warp_total[threadIdx.x / 32] + sum - value;
    if (i < labels + 1) degree[i] = before;
    __syncthreads();
    if (threadIdx.x == 1023) carry = before + value;
    __syncthreads();
  }
}

// `degree` is followed by as many cursors. Writes (higher label, length) into the buckets, in no order.
KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_place(const u32 *__restrict__ keys, const u32 *__restrict__ lengths, u32 *__restrict__ degree,
                    uint2 *__restrict__ placed, u32 labels, NeighborArgs args) {
  after_last_kernel(keys, args);
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  for (u32 i = first; i < args.slots; i += all) {
    if (keys[i] == 0xffffffffu) continue;
    const u32 a = keys[i] >> 16;
    const u32 at = degree[a] + atomicAdd(&degree[labels + 1 + a], 1);
    placed[2 * (size_t)at] = make_uint2(a, keys[i] & 0xffffu);
    placed[2 * (size_t)at + 1] = make_uint2(lengths[i], 0);
  }
}

struct Pair {
  u32 a, b, length;
};

KERNEL __launch_bounds__(NEIGHBOR_THREADS)
    neighbors_rank(const u32 *__restrict__ degree, const uint2 *__restrict__ placed, Pair *__restrict__ pairs,
                   u32 labels) {
  after_last_kernel(degree, labels);
  const u32 first = blockIdx.x * NEIGHBOR_THREADS + threadIdx.x, all = gridDim.x * NEIGHBOR_THREADS;
  const u32 count = degree[labels];
  for (u32 i = first; i < count; i += all) {
    const uint2 pair = placed[2 * (size_t)i];
    u32 rank = 0;
    for (u32 j = degree[pair.x]; j < degree[pair.x + 1]; j++) rank += placed[2 * (size_t)j].y < pair.y;
    const Pair record = {pair.x, pair.y, placed[2 * (size_t)i + 1].x};
    pairs[degree[pair.x] + rank] = record;
  }
}
