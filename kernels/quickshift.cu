// SPDX-License-Identifier: MPL-2.0
// Stages `quickshift/density`, `quickshift/link`, `quickshift/flatten`, `quickshift/label`; mirrors
// src/algo/quickshift/cpu.rs, whose chains of operations stand here with the same rounding at every step.
#include "batch.cuh"
#include "components.cuh"

// 2^f for -0.5 to 0.5; `EXP2` of src/algo/quickshift/mod.rs.
#define EXP2_1 0.6931242f
#define EXP2_2 0.24024099f
#define EXP2_3 0.055906426f
#define EXP2_4 0.009582844f

#define MOST_RADIUS 60
// Rows of pixels that a thread works on.
#define DENSITY_PIXELS (DENSITY_TILE_H / (DENSITY_THREADS / 32))
// The square of a color that is none, outside of the frame or a mask: no weight is left, whatever the color scale.
#define NOWHERE 1e30f

// A pixel's color relative to mid gamut and the sum of its squares: integers below 2^23, so that sums of their products
// are exact.
__device__ __forceinline__ float4 load_color(const QuickShiftArgs &args, const u32 *features, i32 x, i32 y) {
  const bool in_frame = x >= 0 && y >= 0 && x < (i32)args.width && y < (i32)args.height;
  const u32 feature = in_frame ? features[(size_t)y * args.width + x] : OUTSIDE;
  if (feature == OUTSIDE) return make_float4(0.0f, 0.0f, 0.0f, NOWHERE);
  const float a = (float)((i32)feature_0(feature) - 512), b = (float)((i32)feature_1(feature) - 1024);
  const float c = (float)((i32)feature_2(feature) - 1024);
  return make_float4(a, b, c, a * a + b * b + c * c);
}

// The weight of a pair, in the low bits of a sum with `unit`. `p` is -2 times a color, with its square.
__device__ __forceinline__ u32 weight_bits(const QuickShiftArgs &args, const float4 &p, const float4 &q, float base) {
  const float distance = __fmaf_rn(p.x, q.x, __fmaf_rn(p.y, q.y, __fmaf_rn(p.z, q.z, q.w))) + p.w;
  // Never above 1: saturation only cuts off what is below 0.
  const float u = __saturatef(__fmaf_rn(-args.color, distance, base));
  const float z = __fmaf_rn(u, args.span, args.bias);
  const float f = __fmaf_rn(u, args.span, -(z - args.bias));
  float power = __fmaf_rn(EXP2_4, f, EXP2_3);
  power = __fmaf_rn(power, f, EXP2_2);
  power = __fmaf_rn(power, f, EXP2_1);
  power = __fmaf_rn(power, f, 1.0f);
  const float scale = __int_as_float((i32)((u32)__float_as_int(z) << 23));
  return (u32)__float_as_int(__fmaf_rn(power, scale, args.unit));
}

template <int CELLS>
struct DensityShared {
  float4 color[CELLS];
  u32 sum[CELLS];
  float column[2 * MOST_RADIUS + 1];
  float row[MOST_RADIUS + 1];
};

// Position of a warp's pixels: a thread has DENSITY_PIXELS of a column, a warp as many rows, from row `own` of the tile on.
struct DensityTile {
  i32 radius, stride;  // cells of a row of the piece in shared memory
  i32 lane, warp, left, top, own;

  // Calls `function(cell, x, y)` for the thread's share of the cells in rows `begin` to `end` of the tile's neighborhood.
  template <class Function>
  __device__ __forceinline__ void each_cell(i32 begin, i32 end, Function function) const {
    for (i32 y = begin + warp; y < end; y += DENSITY_THREADS / 32) {
      for (i32 x = lane; x < stride; x += 32) function((y - begin) * stride + x, left - radius + x, top + y);
    }
  }
};
__device__ __forceinline__ DensityTile density_tile(const QuickShiftArgs &args) {
  const i32 warp = (i32)threadIdx.x / 32;
  return {args.radius, 32 + 2 * args.radius, (i32)lane_id(), warp, (i32)blockIdx.x * 32, (i32)blockIdx.y * DENSITY_TILE_H,
          warp * DENSITY_PIXELS};
}

// Weighs the thread's pixels `p` with a row, `down` rows below the first of them, that is in reach of all: cells from `start` on.
template <int CELLS>
__device__ __forceinline__ void weigh_with_all(DensityShared<CELLS> &shared, const QuickShiftArgs &args, i32 down, i32 start,
                                               const float4 (&p)[DENSITY_PIXELS], u32 (&sum)[DENSITY_PIXELS]) {
  const i32 radius = args.radius;
  const u32 unit_bits = (u32)__float_as_int(args.unit);
  float share[DENSITY_PIXELS];
#pragma unroll
  for (i32 i = 0; i < DENSITY_PIXELS; i++) share[i] = shared.row[down - i];
#pragma unroll 2
  for (i32 d = 0; d <= 2 * radius; d++) {
    const float4 q = shared.color[start + d];
    const float base = shared.column[d];
    u32 q_sum = 0;
#pragma unroll
    for (i32 i = 0; i < DENSITY_PIXELS; i++) {
      const u32 bits = weight_bits(args, p[i], q, base - share[i]);
      sum[i] += bits;
      q_sum += bits;
    }
    atomicAdd(&shared.sum[start + d], q_sum - DENSITY_PIXELS * unit_bits);
  }
#pragma unroll
  for (i32 i = 0; i < DENSITY_PIXELS; i++) sum[i] -= (u32)(2 * radius + 1) * unit_bits;
}

// Adds a row that is not in reach of all of them, or is one of theirs.
template <int CELLS>
__device__ __forceinline__ void weigh_with_some(DensityShared<CELLS> &shared, const QuickShiftArgs &args, i32 down, i32 start,
                                                const float4 (&p)[DENSITY_PIXELS], u32 (&sum)[DENSITY_PIXELS]) {
  const i32 radius = args.radius;
  const u32 unit_bits = (u32)__float_as_int(args.unit);
#pragma unroll
  for (i32 i = 0; i < DENSITY_PIXELS; i++) {
    if (down < i || down - i > radius) continue;
    const float share = shared.row[down - i];
#pragma unroll 4
    for (i32 d = down == i ? radius + 1 : 0; d <= 2 * radius; d++) {
      const u32 weight = weight_bits(args, p[i], shared.color[start + d], shared.column[d] - share) - unit_bits;
      sum[i] += weight;
      atomicAdd(&shared.sum[start + d], weight);
    }
  }
}

// Every pair once, for both of its pixels: a pixel takes the pairs with those to its right in its row and with all in
// reach in the rows below. Grid: tiles of 32 x DENSITY_TILE_H px. The neighborhood passes through shared memory in pieces of
// `args.rows` rows. `density` starts as zero. Deterministic: all sums are integers.
template <int CELLS>
__device__ __forceinline__ void density_of(const u32 *features, const float *column, const float *row, u32 *density,
                                           const QuickShiftArgs &args) {
  __shared__ DensityShared<CELLS> shared;
  const DensityTile t = density_tile(args);
  const i32 radius = t.radius;
  for (i32 i = (i32)threadIdx.x; i <= 2 * radius; i += DENSITY_THREADS) {
    shared.column[i] = column[i < radius ? radius - i : i - radius];
  }
  for (i32 i = (i32)threadIdx.x; i <= radius; i += DENSITY_THREADS) shared.row[i] = row[i];
  float4 p[DENSITY_PIXELS];
  u32 sum[DENSITY_PIXELS];
#pragma unroll
  for (i32 i = 0; i < DENSITY_PIXELS; i++) {
    p[i] = load_color(args, features, t.left + t.lane, t.top + t.own + i);
    p[i].x *= -2.0f;
    p[i].y *= -2.0f;
    p[i].z *= -2.0f;
    // A pixel's own weight is a whole: the bits behind the point of 2^23 / unit.
    sum[i] = (u32)(8388608.0f / args.unit);
  }

  const i32 all = DENSITY_TILE_H + radius;
  for (i32 begin = 0; begin < all; begin += args.rows) {
    const i32 end = min(begin + args.rows, all);
    t.each_cell(begin, end, [&](i32 cell, i32 x, i32 y) {
      shared.color[cell] = load_color(args, features, x, y);
      shared.sum[cell] = 0;
    });
    __syncthreads();
    for (i32 y = max(begin, t.own); y < min(end, t.own + DENSITY_PIXELS + radius); y++) {
      // Rows below the first of the warp's pixels.
      const i32 down = y - t.own, start = (y - begin) * t.stride + t.lane;
      if (down >= DENSITY_PIXELS && down <= radius) {
        weigh_with_all(shared, args, down, start, p, sum);
      } else {
        weigh_with_some(shared, args, down, start, p, sum);
      }
    }
    __syncthreads();
    t.each_cell(begin, min(end, (i32)args.height - t.top), [&](i32 cell, i32 x, i32 y) {
      const u32 weights = shared.sum[cell];
      if (weights != 0 && x >= 0 && x < (i32)args.width) atomicAdd(&density[(size_t)y * args.width + x], weights);
    });
    // The next piece overwrites this one.
    __syncthreads();
  }
#pragma unroll
  for (i32 i = 0; i < DENSITY_PIXELS; i++) {
    const i32 x = t.left + t.lane, y = t.top + t.own + i;
    // Of no density, what is outside of a mask is higher than nothing inside.
    if (x < (i32)args.width && y < (i32)args.height && p[i].w != NOWHERE) atomicAdd(&density[(size_t)y * args.width + x], sum[i]);
  }
}

// Stage `quickshift/density`: the density of every pixel, in units of the weight.
// Grid: tiles of 32 x DENSITY_TILE_H px; block: DENSITY_THREADS, a thread DENSITY_PIXELS of a column.
// In: features [height][width], column and row [radius + 1], weights of a distance.
// Out: density [height][width], zero before.
// Race-free: integers, added by atomics, so that the order of tiles does not matter.
KERNEL __launch_bounds__(DENSITY_THREADS)
    quickshift_density(const u32 *__restrict__ features, const float *__restrict__ column,
                       const float *__restrict__ row, u32 *__restrict__ density, QuickShiftArgs args, Batch batch) {
  after_last_kernel(features, batch);
  select_frame(batch, features, density);
  if (is_absent(batch)) return;
  density_of<DENSITY_CELLS>(features, column, row, density, args);
}

// The kernel above for neighborhoods that need less shared memory, so that more blocks fit.
KERNEL __launch_bounds__(DENSITY_THREADS)
    quickshift_density_small(const u32 *__restrict__ features, const float *__restrict__ column,
                             const float *__restrict__ row, u32 *__restrict__ density, QuickShiftArgs args, Batch batch) {
  after_last_kernel(features, batch);
  select_frame(batch, features, density);
  if (is_absent(batch)) return;
  density_of<DENSITY_CELLS_SMALL>(features, column, row, density, args);
}

// A channel of a feature as 2^23 and the channel: the difference of two such is exact.
__device__ __forceinline__ float channel(u32 value) { return __int_as_float((i32)(value | 0x4b000000u)); }

// Stage `quickshift/link`: the nearest pixel of higher density, or the pixel itself.
// Grid: tiles of 32 x LINK_THREADS / 32 px; block: LINK_THREADS, a thread a pixel.
// In: features and density [height][width], offsets [offsets] in the order of their length.
// Out: parents [height * width + 1], of which the last is its own.
// Race-free: a thread writes its own pixel's, and nobody reads them here.
KERNEL __launch_bounds__(LINK_THREADS)
    quickshift_link(const u32 *__restrict__ features, const u32 *__restrict__ density,
                    const QuickShiftOffset *__restrict__ offsets, u32 *__restrict__ parents, QuickShiftArgs args, Batch batch) {
  after_last_kernel(features, batch);
  select_frame(batch, features, density, parents);
  if (is_absent(batch)) return;
  __shared__ QuickShiftOffset near[LINK_OFFSETS];
  for (u32 i = threadIdx.x; i < min(args.offsets, (u32)LINK_OFFSETS); i += LINK_THREADS) near[i] = offsets[i];
  __syncthreads();
  const i32 width = (i32)args.width, height = (i32)args.height;
  const i32 left = (i32)blockIdx.x * 32, top = (i32)blockIdx.y * (LINK_THREADS / 32);
  const i32 x = left + (i32)lane_id(), y = top + (i32)threadIdx.x / 32;
  if (x >= width || y >= height) return;
  // No offset leads out of the frame from anywhere in the tile.
  const bool inner = left >= args.reach && top >= args.reach && left + 32 + args.reach <= width &&
                     top + LINK_THREADS / 32 + args.reach <= height;
  const i32 pixel = y * width + x;
  const u32 feature = features[pixel], own = density[pixel];
  // All pixels outside of a mask share one root, behind all pixels.
  const u32 pixels = args.width * args.height;
  if (pixel == 0) parents[pixels] = pixels;
  if (feature == OUTSIDE) {
    parents[pixel] = pixels;
    return;
  }
  const float a = channel(feature_0(feature)), b = channel(feature_1(feature)), c = channel(feature_2(feature));
  float best = args.tau_sq;
  i32 parent = 0x7fffffff;
  for (u32 i = 0; i < args.offsets; i++) {
    const QuickShiftOffset offset = i < LINK_OFFSETS ? near[i] : offsets[i];
    // Further ones are longer still, and no distance is below the length.
    if (offset.length_sq > best) break;
    if (!inner && ((u32)(x + offset.dx) >= (u32)width || (u32)(y + offset.dy) >= (u32)height)) continue;
    const i32 step = offset.step;
    const u32 other = density[pixel + step];
    if (other < own || (other == own && step > 0)) continue;
    const u32 there = features[pixel + step];
    const float da = channel(feature_0(there)) - a, db = channel(feature_1(there)) - b;
    const float dc = channel(feature_2(there)) - c;
    const float distance = __fmaf_rn(dc, dc, __fmaf_rn(db, db, da * da));
    const float d = __fmaf_rn(args.color_sq, distance, offset.length_sq);
    if (d < best || (d == best && step < parent)) {
      best = d;
      parent = step;
    }
  }
  parents[pixel] = (u32)(parent == 0x7fffffff ? pixel : pixel + parent);
}

// Stage `quickshift/flatten`: brings every pixel FLATTEN_HOPS links or more nearer to its root.
// Grid: a thread a pixel; block: FLATTEN_THREADS.
// In and out: parents [pixels], in place; counters: that of this pass is set if a root is further away, and a pass returns if the
// last one's is not.
// Race-free in effect: a thread writes its own pixel's parent, in one word; what it reads of others is their parent before or after,
// both ancestors, and roots stay.
KERNEL __launch_bounds__(FLATTEN_THREADS)
    quickshift_flatten(volatile u32 *parents, u32 *counters, u32 pass, u32 pixels, Batch batch) {
  after_last_kernel(parents, batch);
  select_frame(batch, parents, counters);
  if (is_absent(batch)) return;
  if (pass > 0 && counters[FLATTEN_COUNTER + pass - 1] == 0) return;
  const u32 pixel = blockIdx.x * FLATTEN_THREADS + threadIdx.x;
  bool far = false;
  if (pixel < pixels) {
    const u32 first = parents[pixel];
    u32 at = first;
    far = true;
    for (u32 hop = 0; hop < FLATTEN_HOPS; hop++) {
      const u32 up = parents[at];
      if (up == at) {
        far = false;
        break;
      }
      at = up;
    }
    if (at != first) parents[pixel] = at;
  }
  if (__syncthreads_or(far) && threadIdx.x == 0) counters[FLATTEN_COUNTER + pass] = 1;
}

// The root of every pixel as its cluster: the tags.
struct Roots : TilePlane {
  u32 pixels;  // of the frame

  // Passes have come so far in all but the longest of trees.
  __device__ u32 root_of(u32 at) const { return find_root(FixedSets<false>{plane}, at); }
  __device__ void ready() const {}
  __device__ void assign(u32, const u32 (&value)[4], u32 (&tag)[4]) const {
#pragma unroll
    for (u32 i = 0; i < 4; i++) tag[i] = root_of(value[i]);
  }
  __device__ u32 cluster(u32, u32 x, u32 y) const {
    const u32 root = root_of(y * width + x);
    return root == pixels ? NO_CLUSTER : root;
  }
};

// Stage `quickshift/label`: the components of equal root inside each tile.
// Grid: tiles of 32 x 32 px; block: LABEL_THREADS.
// In: features and parents [height][width], which nobody writes meanwhile.
// Out: of `components`, the tile's component of every pixel [height][width], and its components and pairs in the lists: see
// `tile_components`.
// Race-free: a pixel and a tile have one thread and one block that write them; indices in the lists are taken by atomic additions.
KERNEL __launch_bounds__(LABEL_THREADS)
    quickshift_label(const u32 *__restrict__ features, const u32 *__restrict__ parents, Components components,
                     QuickShiftArgs args, Batch batch) {
  after_last_kernel(features, batch);
  select_frame(batch, features, parents, components);
  if (is_absent(batch)) return;
  Roots roots = {tile_plane(parents, args.width, args.height), args.width * args.height};
  tile_components<LABEL_THREADS / 32>(components, args.width, args.height, features, roots);
}
