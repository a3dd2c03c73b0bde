// SPDX-License-Identifier: MPL-2.0
// Stages `slic/assign` with `slic/update`, and `slic/label`; mirrors src/algo/slic/cpu.rs. Seeding and updating are done
// by every block for the clusters that it needs, so a round is one launch.
// Built a second time for `__CUDA_ARCH__ >= 800`, where `warp_sum` of common.cuh is one instruction.
#include "clusters.cuh"
#include "components.cuh"

#define INFINITE __int_as_float(0x7f800000)

// Brings the clusters in reach of a tile into shared memory, one thread a cluster: `center_of(x, y)` gives that of a cell,
// `keep(k, center)` takes those of the tile's own cells.
template <class CenterOf, class Keep>
__device__ __forceinline__ void load_clusters(Reach *reach, const SlicArgs &args, const Slots &slots,
                                              CenterOf center_of, Keep keep) {
  for (u32 slot = threadIdx.x; slot < slots.count(); slot += blockDim.x) {
    const u32 row = slot / slots.stride(), x = slots.gx + slot - row * slots.stride() - 1, y = slots.gy + row - 1;
    if (x >= args.nx || y >= args.ny) {
      // Never the nearest: whatever is added, the distance stays infinite.
      reach[slot] = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), INFINITE, 1, NO_SLOT, 0};
      continue;
    }
    const Center center = center_of(x, y);
    const i32 *v = center.value;
    const u32 k = y * args.nx + x;
    reach[slot] = {make_float4(lifted((u32)v[0]), lifted((u32)v[1]), lifted((u32)v[2]), (float)v[3]), (float)v[4],
                   (u32)v[5], k, 0};
    if (x - slots.gx < slots.columns && y - slots.gy < slots.rows) keep(k, center);
  }
}

__device__ __forceinline__ void clear_sums(Sums *sums) {
  const Sums zero = {{0, 0, 0, 0, 0, 0, 0, 0}};
  *sums = zero;
}

// The nearest of the nine clusters around a cell for N pixels of that cell in one column. Raster order and a strict
// comparison: equal distances keep the lowest index. All values are exact integers below 2^24.
template <bool ADAPTIVE, int N>
__device__ __forceinline__ void nearest(const Reach *reach, const SlicArgs &args, u32 stride, u32 slot,
                                        const float (&l)[N], const float (&a)[N], const float (&b)[N], float x,
                                        const float (&y)[N], u32 (&best)[N]) {
  float low[N];
  u64 low_adaptive[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    low[i] = INFINITE;
    low_adaptive[i] = ~0ull;
    best[i] = slot;
  }
#pragma unroll
  for (u32 dy = 0; dy < 3; dy++) {
#pragma unroll
    for (u32 dx = 0; dx < 3; dx++) {
      const u32 candidate = slot + (dy - 1) * stride + (dx - 1);
      const float4 c = reach[candidate].color_x;
      const float cy = reach[candidate].y;
      const float x2 = (x - c.w) * (x - c.w);
      const u32 weight = ADAPTIVE && cy < INFINITE ? (1u << 30) / max(reach[candidate].spread, 1u) : 0;
#pragma unroll
      for (int i = 0; i < N; i++) {
        const float dl = l[i] - c.x, da = a[i] - c.y, db = b[i] - c.z, dyy = y[i] - cy;
        if (ADAPTIVE) {
          const float color = __fmaf_rn(dl, dl, __fmaf_rn(da, da, db * db));
          const float place = __fmaf_rn(dyy, dyy, x2);
          if (place < INFINITE) {
            const u64 score = (u64)(u32)color * weight + (u64)(u32)place * args.place_weight;
            if (score < low_adaptive[i]) {
              low_adaptive[i] = score;
              best[i] = candidate;
            }
          }
        } else {
          const float d = __fmaf_rn(dl, dl, __fmaf_rn(da, da, __fmaf_rn(db, db, __fmaf_rn(dyy, dyy, x2))));
          if (d < low[i]) {
            low[i] = d;
            best[i] = candidate;
          }
        }
      }
    }
  }
}

// One pixel, out of line: it is called where a column of four crosses from one cell to the next.
template <bool ADAPTIVE>
__device__ __noinline__ u32 nearest_1(const Reach *reach, const SlicArgs &args, u32 stride, u32 slot, float l,
                                      float a, float b, float x, float y) {
  const float l1[1] = {l}, a1[1] = {a}, b1[1] = {b}, y1[1] = {y};
  u32 best[1];
  nearest<ADAPTIVE, 1>(reach, args, stride, slot, l1, a1, b1, x, y1, best);
  return best[0];
}

// Nearest clusters of N pixels of a column, which lie in one cell nearly always.
template <bool ADAPTIVE, int N>
__device__ __forceinline__ void nearest_column(const Reach *reach, const SlicArgs &args, u32 stride,
                                               const u32 (&slot)[N], const float (&l)[N], const float (&a)[N],
                                               const float (&b)[N], float x, const float (&y)[N], u32 (&best)[N]) {
  if (slot[0] == slot[N - 1]) {
    nearest<ADAPTIVE, N>(reach, args, stride, slot[0], l, a, b, x, y, best);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    best[i] = nearest_1<ADAPTIVE>(reach, args, stride, slot[i], l[i], a[i], b[i], x, y[i]);
  }
}

struct RoundShared {
  Reach reach[ROUND_SLOTS];
  u32 sums[7][ROUND_SLOTS];
  i32 origin_x[ROUND_TILE_W + 4], origin_y[ROUND_TILE_H + 4];
};

// Samples of a column that a thread has.
#define ROUND_SAMPLES (ROUND_TILE_W * ROUND_TILE_H / ROUND_THREADS)

// A pixel and what is known of it.
struct Pixel {
  u32 gx, gy, x, y, feature;
  float l, a, b, place_x, place_y;
  bool inside;  // the frame
};

// A pixel belongs to the nearest cluster.
struct Nearest {
  template <int N>
  __device__ void look_back(const Pixel (&)[N], u32 (&)[N]) {}
  template <int N>
  __device__ void choose(const Reach *, const Slots &, const Pixel (&)[N], const u32 (&)[N], u32 (&)[N]) {}
  __device__ void end() {}
};

// One assignment of the sampled pixels. Grid: tiles of 32 x 8 samples; a thread has two samples of a column.
// Deterministic: all sums are integers.
template <bool ADAPTIVE, class CenterOf, class Keep, class Choice>
__device__ __forceinline__ void assign(const u32 *samples, const i32 *px, const i32 *py, Sums *sums_out,
                                       const SlicArgs &args, CenterOf center_of, Keep keep, Choice choice) {
  __shared__ RoundShared shared;
  const u32 left = blockIdx.x * ROUND_TILE_W, top = blockIdx.y * ROUND_TILE_H;
  const u32 right = min(left + ROUND_TILE_W, args.sample_width) - 1;
  const u32 bottom = min(top + ROUND_TILE_H, args.sample_height) - 1;
  const u32 st = args.sample_step, lane = lane_id();
  const u32 sx = left + lane, sy = top + threadIdx.x / 32 * ROUND_SAMPLES, x = min(sx, right) * st;

  u32 feature[ROUND_SAMPLES];
  i32 place_y[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    const u32 row = min(sy + i, bottom);
    feature[i] = samples[(size_t)row * args.sample_width + min(sx, right)];
    place_y[i] = py[row * st];
  }
  const i32 place_x = px[x];
  const Slots slots = slots_of(args, left * st, top * st, right * st, bottom * st);
  const u32 count = slots.count();
  for (u32 i = threadIdx.x; i < count; i += ROUND_THREADS) {
#pragma unroll
    for (int j = 0; j < 7; j++) shared.sums[j][i] = 0;
  }
  if (threadIdx.x < slots.stride()) {
    const u32 cell = slots.gx + threadIdx.x - 1;
    shared.origin_x[threadIdx.x] = cell < args.nx ? sums_origin(px, cell, args.step) : 0;
  }
  if (threadIdx.x < slots.rows + 2) {
    const u32 cell = slots.gy + threadIdx.x - 1;
    shared.origin_y[threadIdx.x] = cell < args.ny ? sums_origin(py, cell, args.step) : 0;
  }
  load_clusters(shared.reach, args, slots, center_of, keep);
  __syncthreads();

  const u32 gx = home(args, x, args.nx);
  float l[ROUND_SAMPLES], a[ROUND_SAMPLES], b[ROUND_SAMPLES], yy[ROUND_SAMPLES];
  u32 slot[ROUND_SAMPLES], best[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    l[i] = lifted(feature_0(feature[i]) >> args.color_shift);
    a[i] = lifted(feature_1(feature[i]) >> args.color_shift);
    b[i] = lifted(feature_2(feature[i]) >> args.color_shift);
    yy[i] = (float)place_y[i];
    slot[i] = slots.of(gx, home(args, min(sy + i, bottom) * st, args.ny));
  }
  Pixel pixel[ROUND_SAMPLES];
  u32 last[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    const u32 y = min(sy + i, bottom) * st;
    const bool inside = sx <= right && sy + i <= bottom;
    pixel[i] = {gx, home(args, y, args.ny), x, y, feature[i], l[i], a[i], b[i], (float)place_x, yy[i], inside};
  }
  choice.look_back(pixel, last);
  nearest_column<ADAPTIVE, ROUND_SAMPLES>(shared.reach, args, slots.stride(), slot, l, a, b, (float)place_x, yy,
                                          best);
  choice.choose(shared.reach, slots, pixel, last, best);
  choice.end();

  u32 target = NO_SLOT, sum[6] = {0, 0, 0, 0, 0, 0}, spread = 0;
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    if (sx > right || sy + i > bottom) continue;
    if (best[i] != target) {
      if (target != NO_SLOT) {
#pragma unroll
        for (int j = 0; j < 6; j++) atomicAdd(&shared.sums[j][target], sum[j]);
        if (ADAPTIVE) atomicMax(&shared.sums[6][target], spread);
      }
      target = best[i];
      spread = 0;
#pragma unroll
      for (int j = 0; j < 6; j++) sum[j] = 0;
    }
    const u32 row = target / slots.stride();
    sum[0] += 1;
    sum[1] += lowered(l[i]);
    sum[2] += lowered(a[i]);
    sum[3] += lowered(b[i]);
    sum[4] += (u32)(place_x - shared.origin_x[target - row * slots.stride()]);
    sum[5] += (u32)(place_y[i] - shared.origin_y[row]);
    if (ADAPTIVE) {
      const float4 c = shared.reach[target].color_x;
      const float dl = l[i] - c.x, da = a[i] - c.y, db = b[i] - c.z;
      spread = max(spread, (u32)__fmaf_rn(dl, dl, __fmaf_rn(da, da, db * db)));
    }
  }
  // In large cells all lanes end on one cluster: add them up before they queue for it.
  int same;
  __match_all_sync(FULL_WARP, target, &same);
  if (same && target != NO_SLOT) {
#pragma unroll
    for (int j = 0; j < 6; j++) {
      const u32 total = warp_sum(FULL_WARP, sum[j]);
      if (lane == 0) atomicAdd(&shared.sums[j][target], total);
    }
  } else if (target != NO_SLOT) {
#pragma unroll
    for (int j = 0; j < 6; j++) atomicAdd(&shared.sums[j][target], sum[j]);
  }
  if (ADAPTIVE && target != NO_SLOT) atomicMax(&shared.sums[6][target], spread);
  __syncthreads();

  for (u32 i = threadIdx.x; i < count; i += ROUND_THREADS) {
    if (shared.sums[0][i] == 0) continue;
    u32 *to = sums_out[shared.reach[i].label].value;
#pragma unroll
    for (int j = 0; j < 6; j++) atomicAdd(to + j, shared.sums[j][i]);
    if (ADAPTIVE) atomicMax(to + 6, shared.sums[6][i]);
  }
}

// Every round but those that follow another frame's.
template <bool ADAPTIVE>
__device__ __forceinline__ void assign_round(const u32 *features, const u32 *samples, const i32 *px, const i32 *py,
                                             const Sums *sums, Sums *sums_out, Sums *sums_clear, const Center *old,
                                             Center *out, u32 seeds, const SlicArgs &args) {
  const Places places = {px, py};
  assign<ADAPTIVE>(
      samples, px, py, sums_out, args,
      [&](u32 x, u32 y) {
        return seeds ? seed(args, places, features, x, y) : update(args, places, sums, old, x, y);
      },
      [&](u32 k, const Center &center) {
        out[k] = center;
        clear_sums(sums_clear + k);
      },
      Nearest());
}

KERNEL __launch_bounds__(ROUND_THREADS)
    slic_assign(const u32 *__restrict__ features, const u32 *__restrict__ samples, const i32 *__restrict__ px,
                const i32 *__restrict__ py, const Sums *__restrict__ sums, Sums *__restrict__ sums_out,
                Sums *__restrict__ sums_clear, const Center *__restrict__ old, Center *__restrict__ out, u32 seeds,
                SlicArgs args) {
  after_last_kernel(features, args);
  assign_round<false>(features, samples, px, py, sums, sums_out, sums_clear, old, out, seeds, args);
}

KERNEL __launch_bounds__(ROUND_THREADS)
    slic_assign_adaptive(const u32 *__restrict__ features, const u32 *__restrict__ samples,
                         const i32 *__restrict__ px, const i32 *__restrict__ py, const Sums *__restrict__ sums,
                         Sums *__restrict__ sums_out, Sums *__restrict__ sums_clear, const Center *__restrict__ old,
                         Center *__restrict__ out, u32 seeds, SlicArgs args) {
  after_last_kernel(features, args);
  assign_round<true>(features, samples, px, py, sums, sums_out, sums_clear, old, out, seeds, args);
}

// The final assignment of every pixel of a tile: a warp has 32 columns, its lanes four pixels of each at a time. Tags are
// slots; where nothing is clustered, pixels.
template <bool ADAPTIVE, class Choice, class Prepare>
struct Labels : TilePlane {
  const SlicArgs &args;
  const Reach *reach;
  const Slots &slots;
  Choice &choice;
  const Prepare &ready;
  // Of the lane's column, and of the row that is as far down as the lane is right.
  u32 gx, row_slot;
  float place_x, row_place;

  __device__ void assign(u32 y, const u32 (&value)[4], u32 (&tag)[4]) {
    if (args.identity) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) tag[i] = (y + i) * TILE + lane_id();
      return;
    }
    float l[4], a[4], b[4], yy[4];
    u32 slot[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      l[i] = lifted(feature_0(value[i]) >> args.color_shift);
      a[i] = lifted(feature_1(value[i]) >> args.color_shift);
      b[i] = lifted(feature_2(value[i]) >> args.color_shift);
      yy[i] = __shfl_sync(FULL_WARP, row_place, y + i);
      slot[i] = __shfl_sync(FULL_WARP, row_slot, y + i) + gx - slots.gx + 1;
    }
    Pixel pixel[4];
    u32 last[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 at = row(y + i);
      pixel[i] = {gx, home(args, at, args.ny), column(), at, value[i], l[i], a[i], b[i], place_x, yy[i], inside(y + i)};
    }
    choice.look_back(pixel, last);
    nearest_column<ADAPTIVE, 4>(reach, args, slots.stride(), slot, l, a, b, place_x, yy, tag);
    choice.choose(reach, slots, pixel, last, tag);
  }
  __device__ u32 cluster(u32 tag, u32 x, u32 y) const { return args.identity ? y * args.width + x : reach[tag].label; }
};

// The labels of all pixels, and the components inside each tile. Grid: tiles of 32 x 32 px.
template <bool ADAPTIVE, class CenterOf, class Keep, class Choice>
__device__ __forceinline__ void label(const u32 *features, const i32 *px, const i32 *py, const Components &components,
                                      const SlicArgs &args, CenterOf center_of, Keep keep, Choice choice) {
  DYNAMIC_SHARED(Reach, reach);
  const TilePlane tile = tile_plane(features, args.width, args.height);
  const Slots slots = slots_of(args, tile.left, tile.top, tile.right, tile.bottom);
  const u32 column = tile.column(), row = tile.row(lane_id());
  const auto ready = [&] {
    if (!args.identity) load_clusters(reach, args, slots, center_of, keep);
    __syncthreads();
  };
  Labels<ADAPTIVE, Choice, decltype(ready)> labels = {tile, args, reach, slots, choice, ready, home(args, column, args.nx),
                                                      (home(args, row, args.ny) - slots.gy + 1) * slots.stride(),
                                                      (float)px[column], (float)py[row]};
  tile_components(components, args.width, args.height, features, labels);
  choice.end();
}

// The labels of a frame by itself.
template <bool ADAPTIVE>
__device__ __forceinline__ void label_alone(const u32 *features, const i32 *px, const i32 *py, const Sums *sums,
                                            const Center *old, const Components &components, const SlicArgs &args) {
  const Places places = {px, py};
  label<ADAPTIVE>(
      features, px, py, components, args,
      [&](u32 x, u32 y) { return update(args, places, sums, old, x, y); }, [](u32, const Center &) {}, Nearest());
}

KERNEL __launch_bounds__(LABEL_THREADS)
    slic_label(const u32 *__restrict__ features, const i32 *__restrict__ px, const i32 *__restrict__ py,
               const Sums *__restrict__ sums, const Center *__restrict__ old, Components components, SlicArgs args) {
  after_last_kernel(features, args);
  label_alone<false>(features, px, py, sums, old, components, args);
}

KERNEL __launch_bounds__(LABEL_THREADS)
    slic_label_adaptive(const u32 *__restrict__ features, const i32 *__restrict__ px, const i32 *__restrict__ py,
                        const Sums *__restrict__ sums, const Center *__restrict__ old, Components components,
                        SlicArgs args) {
  after_last_kernel(features, args);
  label_alone<true>(features, px, py, sums, old, components, args);
}

#include "slic_follow.cuh"
