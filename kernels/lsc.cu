// SPDX-License-Identifier: MPL-2.0
// Stages `lsc/mean`, `lsc/assign` with `lsc/update`, and `lsc/label`; mirrors src/algo/lsc/cpu.rs and score.rs, whose order of floating
// operations is part of the definition: single operations, never contracted, and explicit fused ones. Seeding and updating
// are done by every block for the clusters that it needs, so a round is one launch.
// From `__CUDA_ARCH__` 800 on `warp_sum` of common.cuh is one instruction.
#include "batch.cuh"
#include "components.cuh"
#include "rounds.cuh"

#define INFINITE __int_as_float(0x7f800000)

typedef LscSums Sums;
typedef LscMean Mean;
typedef LscMeans Means;

// Pairs of a plan: a cosine in the low and a sine in the high 16 bits, both signed.
struct Pairs {
  const u32 *color;  // 1024 of L, then 2048 of a and b
  const u32 *px, *py;
};

__device__ __forceinline__ i32 low(u32 pair) { return (i32)(short)(pair & 0xffffu); }
__device__ __forceinline__ i32 high(u32 pair) { return (i32)pair >> 16; }

template <class Numbers>
__device__ __forceinline__ void color_pairs(const Numbers *color, u32 feature, Numbers (&out)[3]) {
  out[0] = color[feature_0(feature)];
  out[1] = color[1024 + feature_1(feature)];
  out[2] = color[1024 + feature_2(feature)];
}

__device__ __forceinline__ i32 norm_of(const MeanColor &mean) {
  i32 norm = 0;
#pragma unroll
  for (int j = 0; j < 6; j++) norm += mean.color[j] * mean.color[j];
  return norm;
}

// The mean of all samples, or `MASKED` of the `inside` that are not outside of a mask.
template <bool MASKED>
__device__ __forceinline__ void find_mean(const u32 *__restrict__ samples, const u32 *__restrict__ color, Means *__restrict__ means,
                                          u32 count, u32 inside) {
  __shared__ u32 shared[6];
  if (threadIdx.x < 6) shared[threadIdx.x] = 0;
  __syncthreads();
  u32 sum[6] = {0, 0, 0, 0, 0, 0};
  const u32 all = gridDim.x * MEAN_THREADS;
  for (u32 first = blockIdx.x * MEAN_THREADS + threadIdx.x; first < count; first += 4 * all) {
    // All samples are asked for at once, then all their pairs.
    u32 sample[4], pair[4][3];
#pragma unroll
    for (u32 i = 0; i < 4; i++) sample[i] = samples[min(first + i * all, count - 1)];
#pragma unroll
    for (u32 i = 0; i < 4; i++) color_pairs(color, sample[i], pair[i]);
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (first + i * all >= count) break;
      if (MASKED && sample[i] == OUTSIDE) continue;
#pragma unroll
      for (int j = 0; j < 3; j++) {
        sum[2 * j] += pair[i][j] & 0xffffu;
        sum[2 * j + 1] += pair[i][j] >> 16;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < 6; j++) {
    const u32 all = warp_sum(FULL_WARP, sum[j]);
    if (lane_id() == 0) atomicAdd(&shared[j], all);
  }
  __syncthreads();
  if (threadIdx.x < 6) atomicAdd(&means->total[threadIdx.x], (u64)shared[threadIdx.x]);
  if (!is_last_block(&means->ticket)) return;
  __shared__ Mean mean;
  if (MASKED && inside == 0) {
    u32 pair[3];
    color_pairs(color, OUTSIDE, pair);
    if (threadIdx.x < 6) mean.color[threadIdx.x] = (i32)(threadIdx.x % 2 ? pair[threadIdx.x / 2] >> 16 : pair[threadIdx.x / 2] & 0xffffu);
  } else if (threadIdx.x < 6) {
    mean.color[threadIdx.x] = (i32)rounded_mean(__ldcg(&means->total[threadIdx.x]), inside);
  }
  __syncthreads();
  if (threadIdx.x < 6) {
    const float scale = 1.0f / (float)norm_of(mean);
    means->mean.color[threadIdx.x] = mean.color[threadIdx.x];
    means->mean.weights[threadIdx.x] = (float)mean.color[threadIdx.x] * scale;
  }
}

// Stage `lsc/mean`: adds up the color of all samples; the last block makes the mean of it.
// Grid: any number of blocks of MEAN_THREADS, each with at most 2^20 samples.
// In: samples [count], color [1024 + 2048] pairs.
// Out: `means`, whose sum and ticket are zero before.
// Race-free: sums are integers, added by atomics; the last block, which the ticket tells, reads them past its L1 cache when all
// others have added theirs, and alone writes the mean.
KERNEL __launch_bounds__(MEAN_THREADS)
    lsc_mean(const u32 *__restrict__ samples, const u32 *__restrict__ color, Means *__restrict__ means, u32 count,
             Batch batch) {
  after_last_kernel(samples, batch);
  select_frame(batch, samples, means);
  if (is_absent(batch)) return;
  find_mean<false>(samples, color, means, count, count);
}

// `lsc_mean` for a frame with a mask; `counters` are the frame's.
KERNEL __launch_bounds__(MEAN_THREADS)
    lsc_mean_masked(const u32 *__restrict__ samples, const u32 *__restrict__ color, Means *__restrict__ means,
                    const u32 *__restrict__ counters, u32 count, Batch batch) {
  after_last_kernel(samples, batch);
  select_frame(batch, samples, means, counters);
  if (is_absent(batch)) return;
  find_mean<true>(samples, color, means, count, counters[INSIDE]);
}

__device__ __forceinline__ MeanColor load_color(const Mean *from) {
  const int4 low = *(const int4 *)from;
  const int2 high = *(const int2 *)(from->color + 4);
  return {{low.x, low.y, low.z, low.w, high.x, high.y}};
}

__device__ __forceinline__ i64 dot(const Sums &sums, const MeanColor &mean) {
  i64 sum = 0;
#pragma unroll
  for (int j = 0; j < 6; j++) sum += (i64)sums.value[j] * mean.color[j];
  return sum;
}

// A cluster as scores need it: -2 T in ten components, color before position, its squared length behind the sixth, and the
// label's bits at the end.
struct Cluster {
  float4 part[3];
};

__device__ __forceinline__ Cluster cluster_of(const Sums &sums, const MeanColor &mean, float position_weight, u32 label) {
  const i64 members = dot(sums, mean), norm = norm_of(mean);
  const float scale = 1.0f / (float)members;
  float along[10], square = 0.0f;
#pragma unroll
  for (int j = 0; j < 6; j++) {
    const i64 exact = norm * (i64)sums.value[j] - members * mean.color[j];
    const float across = (float)exact * scale;
    square = __fmaf_rn(across, across, square);
    along[j] = -2.0f * across;
  }
#pragma unroll
  for (int j = 6; j < 10; j++) {
    const i64 exact = norm * (i64)(i32)sums.value[j];
    const float across = (float)exact * scale, weighted = across * position_weight;
    square = __fmaf_rn(weighted, across, square);
    along[j] = -2.0f * weighted;
  }
  const Cluster cluster = {{make_float4(along[0], along[1], along[2], along[3]),
                            make_float4(along[4], along[5], square, along[6]),
                            make_float4(along[7], along[8], along[9], __int_as_float((i32)label))}};
  return cluster;
}

static_assert(sizeof(Cluster) == LSC_REACH_BYTES, "src/algo/lsc/cuda.rs asks for as much");

__device__ __forceinline__ u32 label_of(const Cluster &cluster) { return (u32)__float_as_int(cluster.part[2].w); }

__device__ __forceinline__ Sums load(const Sums *from) {
  const uint4 a = ((const uint4 *)from)[0], b = ((const uint4 *)from)[1], c = ((const uint4 *)from)[2];
  const Sums sums = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w}};
  return sums;
}

__device__ __forceinline__ void store(Sums *to, const Sums &sums) {
  const u32 *v = sums.value;
  ((uint4 *)to)[0] = make_uint4(v[0], v[1], v[2], v[3]);
  ((uint4 *)to)[1] = make_uint4(v[4], v[5], v[6], v[7]);
  ((uint4 *)to)[2] = make_uint4(v[8], v[9], v[10], v[11]);
}

// Stage `lsc/seed`: a cluster before the first round has one member, the pixel at its cell's center.
__device__ __forceinline__ Sums seed(const LscArgs &args, const Pairs &pairs, const u32 *features, u32 x, u32 y) {
  const uint2 at = seed_of(args, x, y);
  const u32 column = at.x, row = at.y;
  u32 color[3];
  color_pairs(pairs.color, features[(size_t)row * args.width + column], color);
  const u32 px = pairs.px[column], py = pairs.py[row];
  const Sums sums = {{color[0] & 0xffffu, color[0] >> 16, color[1] & 0xffffu, color[1] >> 16, color[2] & 0xffffu,
                      color[2] >> 16, (u32)low(px), (u32)high(px), (u32)low(py), (u32)high(py), 0, 0}};
  return sums;
}

// Start of a round: the sums of the last round's members, and the address of those before, which stay if there were none.
struct Turn {
  Sums own;
  const Sums *before;
};

// The cell of a slot, known before the cluster's sums are.
struct Cell {
  u32 x, y;
  bool exists;
};
__device__ __forceinline__ Cell cell_of(const LscArgs &args, const Slots &slots, u32 slot) {
  const u32 row = slot / slots.stride(), x = slots.gx + slot - row * slots.stride() - 1, y = slots.gy + row - 1;
  return {x, y, x < args.nx && y < args.ny};
}

// Brings the mean and the clusters in reach of a tile into shared memory, one thread a cluster: `turn_of(x, y)` gives what there
// is of that of a cell, and `keep(k, sums)` takes the sums of the tile's own cells after stage `lsc/update`. `ONE`: a thread has
// one slot, of cell `own`, and what is asked for stands apart from what is made of it: in one block, the compiler has the last part
// asked for when the first has been used, but registers are fewer.
template <bool ONE, class TurnOf, class Keep>
__device__ __forceinline__ void load_clusters(Cluster *reach, Mean &mean, const Mean *mean_from, const LscArgs &args,
                                              const Slots &slots, const Cell &own, TurnOf turn_of, Keep keep) {
  if (threadIdx.x < sizeof(Mean) / 4) ((u32 *)&mean)[threadIdx.x] = ((const u32 *)mean_from)[threadIdx.x];
  const auto store = [&](u32 slot, const Cell &cell, const Turn &turn, const MeanColor &mean_color) {
    if (!cell.exists) {
      // Never the nearest: weights are positive, so the score is infinite.
      reach[slot] = {{make_float4(0.0f, 0.0f, 0.0f, 0.0f), make_float4(0.0f, 0.0f, INFINITE, 0.0f),
                      make_float4(0.0f, 0.0f, 0.0f, __int_as_float((i32)NO_SLOT))}};
      return;
    }
    const u32 k = cell.y * args.nx + cell.x;
    const Sums sums = turn.before && dot(turn.own, mean_color) == 0 ? load(turn.before) : turn.own;
    reach[slot] = cluster_of(sums, mean_color, args.position_weight, k);
    if (cell.x - slots.gx < slots.columns && cell.y - slots.gy < slots.rows) keep(k, sums);
  };
  // The mean is asked for with the sums, past the shared memory that it is on its way to.
  Turn turn;
  MeanColor mean_color;
  if (ONE && threadIdx.x < slots.count() && own.exists) {
    turn = turn_of(own.x, own.y);
    mean_color = load_color(mean_from);
  }
  if (ONE && threadIdx.x < slots.count()) store(threadIdx.x, own, turn, mean_color);
#pragma unroll 1
  for (u32 slot = threadIdx.x; !ONE && slot < slots.count(); slot += blockDim.x) {
    const Cell cell = cell_of(args, slots, slot);
    if (cell.exists) {
      turn = turn_of(cell.x, cell.y);
      mean_color = load_color(mean_from);
    }
    store(slot, cell, turn, mean_color);
  }
}

// Sums of the last round's members, and the cluster before.
__device__ __forceinline__ Turn update(const Sums *sums, const Sums *old, u32 k) { return {load(sums + k), old + k}; }
__device__ __forceinline__ Turn begin_with(const Sums &sums) { return {sums, nullptr}; }

__device__ __forceinline__ void clear_sums(Sums *sums) {
  const Sums zero = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  store(sums, zero);
}

// The nearest of the nine clusters around a cell for N pixels of that cell in one column. Raster order and a strict
// comparison: equal scores keep the lowest index.
template <int N>
__device__ __forceinline__ void nearest(const Cluster *reach, const Mean &mean, u32 stride, u32 slot,
                                        const float (&f)[N][6], u32 x, const u32 (&y)[N], u32 (&best)[N],
                                        float (&lowest)[N]) {
  float weight[N], yc[N], ys[N];
  const float xc = (float)low(x), xs = (float)high(x);
#pragma unroll
  for (int i = 0; i < N; i++) {
    weight[i] = f[i][0] * mean.weights[0];
#pragma unroll
    for (int j = 1; j < 6; j++) weight[i] = __fmaf_rn(f[i][j], mean.weights[j], weight[i]);
    yc[i] = (float)low(y[i]);
    ys[i] = (float)high(y[i]);
    lowest[i] = INFINITE;
    best[i] = slot;
  }
#pragma unroll
  for (u32 dy = 0; dy < 3; dy++) {
#pragma unroll
    for (u32 dx = 0; dx < 3; dx++) {
      const u32 candidate = slot + (dy - 1) * stride + (dx - 1);
      const float4 a = reach[candidate].part[0], b = reach[candidate].part[1], c = reach[candidate].part[2];
      const float across = __fmaf_rn(xs, c.x, xc * b.w);
#pragma unroll
      for (int i = 0; i < N; i++) {
        float score = __fmaf_rn(ys[i], c.z, __fmaf_rn(yc[i], c.y, across));
        score = __fmaf_rn(weight[i], b.z, score);
        score = __fmaf_rn(f[i][0], a.x, score);
        score = __fmaf_rn(f[i][1], a.y, score);
        score = __fmaf_rn(f[i][2], a.z, score);
        score = __fmaf_rn(f[i][3], a.w, score);
        score = __fmaf_rn(f[i][4], b.x, score);
        score = __fmaf_rn(f[i][5], b.y, score);
        if (score < lowest[i]) {
          lowest[i] = score;
          best[i] = candidate;
        }
      }
    }
  }
}

struct Found {
  u32 slot;
  float score;
};

// One pixel, out of line: it is called where a column of pixels crosses from one cell to the next.
__device__ __noinline__ Found nearest_1(const Cluster *reach, const Mean &mean, u32 stride, u32 slot, float f0, float f1,
                                        float f2, float f3, float f4, float f5, u32 x, u32 y) {
  const float f[1][6] = {{f0, f1, f2, f3, f4, f5}};
  const u32 y1[1] = {y};
  u32 best[1];
  float lowest[1];
  nearest<1>(reach, mean, stride, slot, f, x, y1, best, lowest);
  return {best[0], lowest[0]};
}

// Nearest clusters of N pixels of a column, which lie in one cell nearly always.
template <int N>
__device__ __forceinline__ void nearest_column(const Cluster *reach, const Mean &mean, u32 stride,
                                               const u32 (&slot)[N], const float (&f)[N][6], u32 x,
                                               const u32 (&y)[N], u32 (&best)[N], float (&lowest)[N]) {
  if (slot[0] == slot[N - 1]) {
    nearest<N>(reach, mean, stride, slot[0], f, x, y, best, lowest);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    const Found found = nearest_1(reach, mean, stride, slot[i], f[i][0], f[i][1], f[i][2], f[i][3], f[i][4], f[i][5], x, y[i]);
    best[i] = found.slot;
    lowest[i] = found.score;
  }
}

// A pixel and what is known of it.
struct Pixel {
  u32 gx, gy, x, y, feature;
  float f[6];  // cosines and sines of its color
  u32 position_x, position_y;
  bool inside;  // the frame, and its mask
};

// The numbers of three pairs, which have no sign.
__device__ __forceinline__ void floats_of(const u32 (&pair)[3], float (&f)[6]) {
#pragma unroll
  for (int j = 0; j < 3; j++) {
    f[2 * j] = lifted(pair[j] & 0xffffu) - LIFT;
    f[2 * j + 1] = lifted(pair[j] >> 16) - LIFT;
  }
}

// Source of a color's numbers in stage `lsc/label`: pairs, which take half the bytes, or floats, which need no conversion.
// With floats a frame of 1920x1080 by itself takes 1 to 2 % less, one of 640x480 4 % more.
struct PairTable {
  const u32 *color;
  __device__ void load(u32 feature, float (&f)[6]) const {
    u32 pair[3];
    color_pairs(color, feature, pair);
    floats_of(pair, f);
  }
};
struct FloatTable {
  const float2 *color;
  __device__ void load(u32 feature, float (&f)[6]) const {
    float2 pair[3];
    color_pairs(color, feature, pair);
#pragma unroll
    for (int j = 0; j < 3; j++) {
      f[2 * j] = pair[j].x;
      f[2 * j + 1] = pair[j].y;
    }
  }
};

// A pixel belongs to the nearest cluster.
struct Nearest {
  // Pixels of a column that a thread works on at once in stage `lsc/label`.
  static const u32 AT_ONCE = 4;
  template <int N>
  __device__ void load_previous(const Pixel (&)[N], u32 (&)[N]) {}
  template <int N>
  __device__ void choose(const Cluster *, const Mean &, const Slots &, const Pixel (&)[N], const u32 (&)[N],
                         const float (&)[N], u32 (&)[N], u32 (&part)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) part[i] = 0;
  }
  __device__ void end() {}
};

struct RoundShared {
  Cluster reach[ROUND_SLOTS];
  u32 sums[10][ROUND_SLOTS];
  Mean mean;
};

// Assigns the thread's samples to slots: `best`. Reads `shared.reach` and `shared.mean`, after a barrier.
template <class Choice>
__device__ __forceinline__ void assign_samples(const RoundShared &shared, const Slots &slots,
                                               const Pixel (&pixel)[ROUND_SAMPLES], Choice &choice, u32 (&best)[ROUND_SAMPLES]) {
  u32 slot[ROUND_SAMPLES], position_y[ROUND_SAMPLES], last[ROUND_SAMPLES];
  float f[ROUND_SAMPLES][6], lowest[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    slot[i] = slots.of(pixel[i].gx, pixel[i].gy);
    position_y[i] = pixel[i].position_y;
#pragma unroll
    for (int j = 0; j < 6; j++) f[i][j] = pixel[i].f[j];
  }
  choice.load_previous(pixel, last);
  nearest_column<ROUND_SAMPLES>(shared.reach, shared.mean, slots.stride(), slot, f, pixel[0].position_x, position_y, best, lowest);
  u32 part[ROUND_SAMPLES];
  choice.choose(shared.reach, shared.mean, slots, pixel, last, lowest, best, part);
  choice.end();
}

// Adds the thread's samples, whose pairs of color are given, to the sums of the block. Whole warps; no barrier.
__device__ __forceinline__ void add_samples(RoundShared &shared, const Pixel (&pixel)[ROUND_SAMPLES], const u32 (&pair)[ROUND_SAMPLES][3],
                                            u32 position_x, const u32 (&position_y)[ROUND_SAMPLES], const u32 (&best)[ROUND_SAMPLES]) {
  SlotSums<10, ROUND_SLOTS> own(shared.sums);
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    if (!pixel[i].inside) continue;
    if (best[i] != own.target) own.go_to(best[i]);
#pragma unroll
    for (int j = 0; j < 3; j++) {
      own.sum[2 * j] += pair[i][j] & 0xffffu;
      own.sum[2 * j + 1] += pair[i][j] >> 16;
    }
    own.sum[6] += (u32)low(position_x);
    own.sum[7] += (u32)high(position_x);
    own.sum[8] += (u32)low(position_y[i]);
    own.sum[9] += (u32)high(position_y[i]);
  }
  own.end();
}

// One assignment of the sampled pixels. Grid: tiles of 32 x 8 samples; a thread has two samples of a column. Deterministic: all
// sums are integers.
template <class TurnOf, class Keep, class Choice>
__device__ __forceinline__ void assign(const u32 *samples, const u32 *color, const u32 *px, const u32 *py,
                                       const Mean *mean_from, Sums *sums_out, const LscArgs &args, TurnOf turn_of, Keep keep,
                                       Choice choice) {
  __shared__ RoundShared shared;
  const RoundTile tile = round_tile(args);
  const u32 st = tile.step, x = tile.column() * st;
  // Independent loads first, then the pairs of the samples, which depend on them.
  u32 feature[ROUND_SAMPLES], pair[ROUND_SAMPLES][3], position_y[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    feature[i] = samples[(size_t)tile.row(i) * args.sample_width + tile.column()];
    position_y[i] = py[tile.row(i) * st];
  }
  const u32 position_x = px[x];
  const Slots slots = tile.slots(args);
  const u32 count = slots.count();
  const Cell cell = cell_of(args, slots, threadIdx.x);
  clear_slot_sums(shared.sums, count);
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    color_pairs(color, feature[i], pair[i]);
  }
  wait_for_last_kernel();
  static_assert(ROUND_SLOTS <= ROUND_THREADS, "a thread has one slot");
  load_clusters<true>(shared.reach, shared.mean, mean_from, args, slots, cell, turn_of, keep);
  __syncthreads();

  const u32 gx = home(args, x, args.nx);
  u32 best[ROUND_SAMPLES];
  Pixel pixel[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    const u32 y = tile.row(i) * st;
    pixel[i] = {gx, home(args, y, args.ny), x, y, feature[i], {}, position_x, position_y[i],
                tile.inside(i) && feature[i] != OUTSIDE};
    floats_of(pair[i], pixel[i].f);
  }
  assign_samples(shared, slots, pixel, choice, best);
  add_samples(shared, pixel, pair, position_x, position_y, best);
  __syncthreads();

  // Neighboring threads add to neighboring words.
  for (u32 i = threadIdx.x; i < 10 * count; i += ROUND_THREADS) {
    const u32 to = i / 10, j = i - 10 * to, sum_here = shared.sums[j][to];
    if (sum_here != 0) atomicAdd(&sums_out[label_of(shared.reach[to])].value[j], sum_here);
  }
}

// Stages `lsc/seed` (in the first round, `seeds`) or `lsc/update`, and `lsc/assign`: one round.
// Grid: tiles of ROUND_TILE_W x ROUND_TILE_H samples; block: ROUND_THREADS, a thread ROUND_SAMPLES samples of a column.
// In: features [height][width], samples [sample_height][sample_width], pairs of color [1024 + 2048], px [width], py [height], the
// mean, `sums` and `old` [cells] of the last round.
// Out: `out` [cells], sums that this round compares with; `sums_out` [cells], of its members; `sums_clear` [cells], zero.
// Race-free: as `slic_assign`: several blocks may write a cell's `out`, all the same value; members are added by integer atomics;
// the sets are different memory.
KERNEL __launch_bounds__(ROUND_THREADS)
    lsc_assign(const u32 *__restrict__ features, const u32 *__restrict__ samples, const u32 *__restrict__ color,
               const u32 *__restrict__ px, const u32 *__restrict__ py, const Mean *__restrict__ mean,
               const Sums *__restrict__ sums, Sums *__restrict__ sums_out, Sums *__restrict__ sums_clear,
               const Sums *__restrict__ old, Sums *__restrict__ out, u32 seeds, LscArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, samples, mean, sums, sums_out, sums_clear, old, out, args);
  if (is_absent(batch)) return;
  const Pairs pairs = {color, px, py};
  assign(
      samples, color, px, py, mean, sums_out, args,
      [&](u32 x, u32 y) {
        return seeds ? begin_with(seed(args, pairs, features, x, y)) : update(sums, old, y * args.nx + x);
      },
      [&](u32 k, const Sums &own) {
        store(out + k, own);
        clear_sums(sums_clear + k);
      },
      Nearest());
}

// The final assignment of every pixel of a tile: a warp has 32 columns, its lanes four pixels of each at a time. Tags are
// slots; where nothing is clustered, pixels.
template <class Table, class Choice, class Prepare>
struct Labels : TilePlane {
  const Table &table;
  const LscArgs &args;
  const Cluster *reach;
  const Mean &mean;
  const Slots &slots;
  Choice &choice;
  const Prepare &ready;
  // Of the lane's column, and of the row that is as far down as the lane is right.
  u32 gx, row_slot, position_x, row_position;

  __device__ void assign(u32 y, const u32 (&value)[4], u32 (&tag)[4]) {
    if (args.identity) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) tag[i] = (y + i) * TILE + lane_id();
      return;
    }
#pragma unroll
    for (u32 first = 0; first < 4; first += Choice::AT_ONCE) assign_some<Choice::AT_ONCE>(y + first, value + first, tag + first);
  }
  template <u32 N>
  __device__ __forceinline__ void assign_some(u32 y, const u32 *value, u32 *tag) {
    u32 position_y[N], slot[N], best[N], last[N];
    float f[N][6], lowest[N];
    Pixel pixel[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const u32 at = row(y + i);
      position_y[i] = __shfl_sync(FULL_WARP, row_position, y + i);
      slot[i] = __shfl_sync(FULL_WARP, row_slot, y + i) + gx - slots.gx + 1;
      pixel[i] = {gx, home(args, at, args.ny), column(), at, value[i], {}, position_x, position_y[i],
                  inside(y + i) && value[i] != OUTSIDE};
      table.load(value[i], pixel[i].f);
#pragma unroll
      for (int j = 0; j < 6; j++) f[i][j] = pixel[i].f[j];
    }
    choice.load_previous(pixel, last);
    nearest_column<N>(reach, mean, slots.stride(), slot, f, position_x, position_y, best, lowest);
    u32 part[N];
    choice.choose(reach, mean, slots, pixel, last, lowest, best, part);
#pragma unroll
    for (u32 i = 0; i < N; i++) tag[i] = best[i] | part[i] << PART_TAG_BIT;
  }
  __device__ u32 cluster(u32 tag, u32 x, u32 y) const {
    if (tag == OUTSIDE_TAG) return NO_CLUSTER;
    return args.identity ? y * args.width + x : label_of(reach[slot_of_tag(tag)]) + (tag >> PART_TAG_BIT) * args.nx * args.ny;
  }
};

// The labels of all pixels, and the components inside each tile. Grid: tiles of 32 x 32 px, blocks of `WARPS`.
template <u32 WARPS, class Table, class TurnOf, class Keep, class Choice>
__device__ __forceinline__ void label(const u32 *features, const Table &table, const u32 *px, const u32 *py,
                                      const Mean *mean_from, const Components &components, const LscArgs &args,
                                      TurnOf turn_of, Keep keep, Choice choice) {
  DYNAMIC_SHARED(Cluster, reach);
  __shared__ Mean mean;
  const TilePlane tile = tile_plane(features, args.width, args.height);
  const Slots slots = slots_of(args, tile.left, tile.top, tile.right, tile.bottom);
  const u32 column = tile.column(), row = tile.row(lane_id());
  const auto ready = [&] {
    wait_for_last_kernel();
    if (!args.identity) load_clusters<false>(reach, mean, mean_from, args, slots, Cell{}, turn_of, keep);
    __syncthreads();
  };
  Labels<Table, Choice, decltype(ready)> labels = {tile, table, args, reach, mean, slots, choice, ready,
                                            home(args, column, args.nx),
                                            (home(args, row, args.ny) - slots.gy + 1) * slots.stride(),
                                            px[column], py[row]};
  tile_components<WARPS>(components, args.width, args.height, features, labels);
  choice.end();
}

// The labels of a frame by itself.
template <u32 WARPS>
__device__ __forceinline__ void label_alone(const u32 *features, const u32 *color, const u32 *px, const u32 *py, const Mean *mean,
                                            const Sums *sums, const Sums *old, const Components &components,
                                            const LscArgs &args) {
  // Without rounds the colors are new.
  if (args.identity) wait_for_last_kernel();
  label<WARPS>(
      features, PairTable{color}, px, py, mean, components, args,
      [&](u32 x, u32 y) { return update(sums, old, y * args.nx + x); },
      [](u32, const Sums &) {}, Nearest());
}

// Stage `lsc/label` with the last `lsc/update`: labels of all pixels of a frame by itself, as components inside each tile.
// Grid: tiles of 32 x 32 px; block: LABEL_THREADS; dynamic shared memory: a `Cluster` for each in reach of a tile.
// In: features [height][width], pairs of color [1024 + 2048], px [width], py [height], the mean, `sums` and `old` [cells] of the
// last round.
// Out: of `components`, the tile's component of every pixel [height][width], and its components and pairs in the lists: see
// `tile_components`.
// Race-free: a pixel and a tile have one thread and one block that write them; indices in the lists are taken by atomic additions.
KERNEL __launch_bounds__(LABEL_THREADS, 6)
    lsc_label(const u32 *__restrict__ features, const u32 *__restrict__ color, const u32 *__restrict__ px,
              const u32 *__restrict__ py, const Mean *__restrict__ mean, const Sums *__restrict__ sums,
              const Sums *__restrict__ old, Components components, LscArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, mean, sums, old, components);
  if (is_absent(batch)) return;
  label_alone<LABEL_THREADS / 32>(features, color, px, py, mean, sums, old, components, args);
}

// The kernel above for frames of few tiles; block: LABEL_THREADS_SMALL.
KERNEL __launch_bounds__(LABEL_THREADS_SMALL, 3)
    lsc_label_small(const u32 *__restrict__ features, const u32 *__restrict__ color, const u32 *__restrict__ px,
                    const u32 *__restrict__ py, const Mean *__restrict__ mean, const Sums *__restrict__ sums,
                    const Sums *__restrict__ old, Components components, LscArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, mean, sums, old, components);
  if (is_absent(batch)) return;
  label_alone<LABEL_THREADS_SMALL / 32>(features, color, px, py, mean, sums, old, components, args);
}

#include "lsc_follow.cuh"
