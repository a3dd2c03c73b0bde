// SPDX-License-Identifier: MPL-2.0
// Stages `slic/assign` with `slic/update`, and `slic/label`; mirrors src/algo/slic/cpu.rs. Seeding and updating are done
// by every block for the clusters that it needs, so a round is one launch.
// From `__CUDA_ARCH__` 800 on `warp_sum` of common.cuh is one instruction.
#include "batch.cuh"
#include "clusters.cuh"
#include "components.cuh"
#include "rounds.cuh"

// The middle of a tile, from which positions count.
struct Origin {
  i32 x, y;
};

// Brings the clusters in reach of a tile into shared memory, one thread a cluster: `turn_of(cell)` gives what there is of one,
// `keep(k, center)` takes those of the tile's own cells after stage `slic/update`. `own` is the cell of the thread's first slot;
// `MORE`: a thread may have another.
template <bool ADAPTIVE, bool MORE, class TurnOf, class Keep>
__device__ __forceinline__ void load_clusters(Reach *reach, const SlicArgs &args, const Positions &positions, const Slots &slots,
                                              const Origin &origin, const Cell &own, TurnOf turn_of, Keep keep) {
  const auto store = [&](u32 slot, const Cell &cell, const Turn &turn) {
    if (!cell.exists) {
      reach[slot] = {make_int4(0, 0, 0, 0), 0, FAR, NO_SLOT, 0};
      return;
    }
    const Center center = update(cell, turn);
    const i32 *v = center.value;
    const u32 k = cell.y * args.nx + cell.x;
    const i32 cx = v[3] - origin.x, cy = v[4] - origin.y;
    if (ADAPTIVE) {
      reach[slot] = {make_int4(v[0], v[1], v[2], cx), cy, v[5], k, 0};
    } else {
      reach[slot] = {make_int4(4 * v[0], 4 * v[1], 4 * v[2], -32 * cx), -32 * cy, 16 * (cx * cx + cy * cy), k, 0};
    }
    if (cell.x - slots.gx < slots.columns && cell.y - slots.gy < slots.rows) keep(k, center);
  };
  // Apart from what is made of it: in one block, the compiler has the second half asked for when the first has been used.
  Turn turn;
  if (threadIdx.x < slots.count() && own.exists) turn = turn_of(own);
  if (threadIdx.x < slots.count()) store(threadIdx.x, own, turn);
#pragma unroll 1
  for (u32 slot = threadIdx.x + blockDim.x; MORE && slot < slots.count(); slot += blockDim.x) {
    const Cell cell = cell_of(args, positions, slots, slot);
    if (cell.exists) turn = turn_of(cell);
    store(slot, cell, turn);
  }
}

__device__ __forceinline__ void clear_sums(Sums *sums) {
  const Sums zero = {{0, 0, 0, 0, 0, 0, 0, 0}};
  *sums = zero;
}

// Score of the nearest cluster: 16 (d - |p|²) with four unused bits below, with SLICO the weighted distance.
template <bool ADAPTIVE>
struct ScoreOf {
  typedef i32 type;
};
template <>
struct ScoreOf<true> {
  typedef u64 type;
};

// Sum of the absolute differences of a pixel's channels and a cluster's, all times 4.
__device__ __forceinline__ u32 color_difference(u32 l4, u32 a4, u32 b4, const int4 &c) {
  return __usad(b4, (u32)c.z, __usad(a4, (u32)c.y, __usad(l4, (u32)c.x, 0)));
}

// The nearest of the nine clusters around a cell for N pixels of that cell in one column: in raster order, equal distances
// keep the lowest index. The number of the cluster stands in the four bits that scores leave free.
template <int N>
__device__ __forceinline__ void nearest(const Reach *reach, u32 stride, u32 slot, const i32 (&l)[N], const i32 (&a)[N],
                                        const i32 (&b)[N], i32 x, const i32 (&y)[N], u32 (&best)[N], i32 (&least)[N]) {
  const u32 first = slot - stride - 1;
  u32 l4[N], a4[N], b4[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    l4[i] = 4 * (u32)l[i];
    a4[i] = 4 * (u32)a[i];
    b4[i] = 4 * (u32)b[i];
  }
#pragma unroll
  for (u32 k = 0; k < 9; k++) {
    const Reach &cluster = reach[first + k / 3 * stride + k % 3];
    const int4 c = cluster.color_x;
    const u32 cy = (u32)cluster.y, column = (u32)x * (u32)c.w + (u32)cluster.rest + k;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const u32 color = color_difference(l4[i], a4[i], b4[i], c);
      const i32 score = (i32)(color * color + ((u32)y[i] * cy + column));
      least[i] = k == 0 ? score : min(least[i], score);
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    const u32 k = (u32)least[i] & 15, down = k * 11 >> 5;
    best[i] = first + k + down * (stride - 3);
  }
}

// The function above with SLICO's weights.
template <int N>
__device__ __forceinline__ void nearest_weighed(const Reach *reach, const SlicArgs &args, u32 stride, u32 slot,
                                                const i32 (&l)[N], const i32 (&a)[N], const i32 (&b)[N], i32 x,
                                                const i32 (&y)[N], u32 (&best)[N], u64 (&least)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    least[i] = ~0ull;
    best[i] = slot;
  }
#pragma unroll
  for (u32 k = 0; k < 9; k++) {
    const u32 candidate = slot - stride - 1 + k / 3 * stride + k % 3;
    const Reach &cluster = reach[candidate];
    if (cluster.label == NO_SLOT) continue;
    const int4 c = cluster.color_x;
    const i32 dx = x - c.w;
    const u32 weight = (1u << 30) / max((u32)cluster.rest, 1u);
#pragma unroll
    for (int i = 0; i < N; i++) {
      const i32 dl = l[i] - c.x, da = a[i] - c.y, db = b[i] - c.z, dy = y[i] - cluster.y;
      const u32 color = (u32)(dl * dl + da * da + db * db), spatial = (u32)(dx * dx + dy * dy);
      const u64 score = (u64)color * weight + (u64)spatial * args.position_weight;
      if (score < least[i]) {
        least[i] = score;
        best[i] = candidate;
      }
    }
  }
}

template <int N>
__device__ __forceinline__ void nearest_in_cell(const Reach *reach, const SlicArgs &, u32 stride, u32 slot,
                                                const i32 (&l)[N], const i32 (&a)[N], const i32 (&b)[N], i32 x,
                                                const i32 (&y)[N], u32 (&best)[N], i32 (&least)[N]) {
  nearest(reach, stride, slot, l, a, b, x, y, best, least);
}
template <int N>
__device__ __forceinline__ void nearest_in_cell(const Reach *reach, const SlicArgs &args, u32 stride, u32 slot,
                                                const i32 (&l)[N], const i32 (&a)[N], const i32 (&b)[N], i32 x,
                                                const i32 (&y)[N], u32 (&best)[N], u64 (&least)[N]) {
  nearest_weighed(reach, args, stride, slot, l, a, b, x, y, best, least);
}

template <class Score>
struct Found {
  Score least;
  u32 slot;
};

// One pixel, out of line: it is called where a column of four crosses from one cell to the next.
template <class Score>
__device__ __noinline__ Found<Score> nearest_1(const Reach *reach, const SlicArgs &args, u32 stride, u32 slot, i32 l, i32 a,
                                               i32 b, i32 x, i32 y) {
  const i32 l1[1] = {l}, a1[1] = {a}, b1[1] = {b}, y1[1] = {y};
  u32 best[1];
  Score least[1];
  nearest_in_cell(reach, args, stride, slot, l1, a1, b1, x, y1, best, least);
  return {least[0], best[0]};
}

// Nearest clusters of N pixels of a column, which lie in one cell nearly always.
template <int N, class Score>
__device__ __forceinline__ void nearest_column(const Reach *reach, const SlicArgs &args, u32 stride,
                                               const u32 (&slot)[N], const i32 (&l)[N], const i32 (&a)[N],
                                               const i32 (&b)[N], i32 x, const i32 (&y)[N], u32 (&best)[N],
                                               Score (&least)[N]) {
  if (slot[0] == slot[N - 1]) {
    nearest_in_cell(reach, args, stride, slot[0], l, a, b, x, y, best, least);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    const Found<Score> found = nearest_1<Score>(reach, args, stride, slot[i], l[i], a[i], b[i], x, y[i]);
    best[i] = found.slot;
    least[i] = found.least;
  }
}

struct RoundShared {
  Reach reach[ROUND_SLOTS];
  // Eight words of four slots are in different banks.
  u32 sums[7][ROUND_SLOTS + 4];
  int2 origin[ROUND_SLOTS];  // of the positions in a cluster's sums
};

// A pixel and what is known of it; positions count from the middle of the tile.
struct Pixel {
  u32 gx, gy, x, y, feature;
  i32 l, a, b, position_x, position_y;
  bool inside;  // the frame, and its mask
};

// A pixel belongs to the nearest cluster.
struct Nearest {
  template <int N>
  __device__ void load_previous(const Pixel (&)[N], u32 (&)[N]) {}
  template <int N, class Score>
  __device__ void choose(const Reach *, const Slots &, const Pixel (&)[N], const u32 (&)[N], const Score (&)[N], u32 (&)[N],
                         u32 (&part)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) part[i] = 0;
  }
  __device__ void end() {}
};

// Assigns the thread's samples to slots: `best`. Reads `shared.reach`, after a barrier.
template <bool ADAPTIVE, class Choice>
__device__ __forceinline__ void assign_samples(const RoundShared &shared, const Slots &slots, const SlicArgs &args,
                                               const Pixel (&pixel)[ROUND_SAMPLES], Choice &choice,
                                               u32 (&best)[ROUND_SAMPLES]) {
  i32 l[ROUND_SAMPLES], a[ROUND_SAMPLES], b[ROUND_SAMPLES], below[ROUND_SAMPLES];
  u32 slot[ROUND_SAMPLES], last[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    l[i] = pixel[i].l;
    a[i] = pixel[i].a;
    b[i] = pixel[i].b;
    below[i] = pixel[i].position_y;
    slot[i] = slots.of(pixel[i].gx, pixel[i].gy);
  }
  choice.load_previous(pixel, last);
  typename ScoreOf<ADAPTIVE>::type least[ROUND_SAMPLES];
  nearest_column<ROUND_SAMPLES>(shared.reach, args, slots.stride(), slot, l, a, b, pixel[0].position_x, below, best, least);
  u32 part[ROUND_SAMPLES];
  choice.choose(shared.reach, slots, pixel, last, least, best, part);
  choice.end();
}

// Adds the thread's samples to the sums of the block, in which positions count from `shared.origin`. Whole warps; no barrier.
template <bool ADAPTIVE>
__device__ __forceinline__ void add_samples(RoundShared &shared, const Pixel (&pixel)[ROUND_SAMPLES],
                                            i32 position_x, const i32 (&position_y)[ROUND_SAMPLES], const u32 (&best)[ROUND_SAMPLES]) {
  SlotSums<6, ROUND_SLOTS + 4> own(shared.sums);
  u32 spread = 0;
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    if (!pixel[i].inside) continue;
    if (best[i] != own.target) {
      if (ADAPTIVE && own.target != NO_SLOT) atomicMax(&shared.sums[6][own.target], spread);
      own.go_to(best[i]);
      spread = 0;
    }
    const int2 from = shared.origin[own.target];
    const i32 l = pixel[i].l, a = pixel[i].a, b = pixel[i].b;
    own.sum[0] += 1;
    own.sum[1] += (u32)l;
    own.sum[2] += (u32)a;
    own.sum[3] += (u32)b;
    own.sum[4] += (u32)(position_x - from.x);
    own.sum[5] += (u32)(position_y[i] - from.y);
    if (ADAPTIVE) {
      const int4 c = shared.reach[own.target].color_x;
      const i32 dl = l - c.x, da = a - c.y, db = b - c.z;
      spread = max(spread, (u32)(dl * dl + da * da + db * db));
    }
  }
  own.end();
  if (ADAPTIVE && own.target != NO_SLOT) atomicMax(&shared.sums[6][own.target], spread);
}

// Adds the sums of the block to those of the clusters; neighboring threads to neighboring words. After a barrier.
template <bool ADAPTIVE>
__device__ __forceinline__ void add_to_clusters(const RoundShared &shared, u32 count, Sums *sums_out) {
  for (u32 i = threadIdx.x; i < 8 * count; i += ROUND_THREADS) {
    const u32 to = i / 8, j = i % 8;
    if (j >= (ADAPTIVE ? 7 : 6)) continue;
    const u32 sum_here = shared.sums[j][to];
    if (sum_here == 0) continue;
    u32 *word = sums_out[shared.reach[to].label].value + j;
    if (j == 6) {
      atomicMax(word, sum_here);
    } else {
      atomicAdd(word, sum_here);
    }
  }
}

// One assignment of the sampled pixels, which are asked for beside the kernel before unless that one made them: `fresh`. Grid:
// tiles of 32 x 8 samples; a thread has two samples of a column. Deterministic: all sums are integers.
template <bool ADAPTIVE, class TurnOf, class Keep, class Choice>
__device__ __forceinline__ void assign(const u32 *samples, bool fresh, const i32 *px, const i32 *py, Sums *sums_out,
                                       const SlicArgs &args, TurnOf turn_of, Keep keep, Choice choice) {
  __shared__ RoundShared shared;
  const RoundTile tile = round_tile(args);
  const u32 st = tile.step, x = tile.column() * st;
  i32 position_y[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) position_y[i] = py[tile.row(i) * st];
  const i32 position_x = px[x];
  const Origin origin = {px[min(tile.left + ROUND_TILE_W / 2, tile.right) * st],
                         py[min(tile.top + ROUND_TILE_H / 2, tile.bottom) * st]};
  const Slots slots = tile.slots(args);
  const u32 count = slots.count();
  const Positions positions = {px, py};
  const Cell cell = cell_of(args, positions, slots, threadIdx.x);
  clear_slot_sums(shared.sums, count);
  if (threadIdx.x < count) shared.origin[threadIdx.x] = make_int2(cell.origin_x, cell.origin_y);
  if (fresh) wait_for_last_kernel();
  u32 feature[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) feature[i] = samples[(size_t)tile.row(i) * args.sample_width + tile.column()];
  wait_for_last_kernel();
  static_assert(ROUND_SLOTS <= ROUND_THREADS, "a thread has one slot");
  load_clusters<ADAPTIVE, false>(shared.reach, args, positions, slots, origin, cell, turn_of, keep);
  __syncthreads();

  const u32 gx = home(args, x, args.nx);
  Pixel pixel[ROUND_SAMPLES];
  u32 best[ROUND_SAMPLES];
#pragma unroll
  for (int i = 0; i < ROUND_SAMPLES; i++) {
    const u32 y = tile.row(i) * st;
    const i32 l = (i32)(feature_0(feature[i]) >> args.color_shift), a = (i32)(feature_1(feature[i]) >> args.color_shift);
    const i32 b = (i32)(feature_2(feature[i]) >> args.color_shift);
    pixel[i] = {gx, home(args, y, args.ny), x, y, feature[i], l, a, b, position_x - origin.x, position_y[i] - origin.y,
                tile.inside(i) && feature[i] != OUTSIDE};
  }
  assign_samples<ADAPTIVE>(shared, slots, args, pixel, choice, best);
  add_samples<ADAPTIVE>(shared, pixel, position_x, position_y, best);
  __syncthreads();
  add_to_clusters<ADAPTIVE>(shared, count, sums_out);
}

// Every round but those that follow another frame's.
template <bool ADAPTIVE>
__device__ __forceinline__ void assign_round(const u32 *features, const u32 *samples, const i32 *px, const i32 *py,
                                             const Sums *sums, Sums *sums_out, Sums *sums_clear, const Center *old,
                                             Center *out, u32 seeds, const SlicArgs &args) {
  const Positions positions = {px, py};
  assign<ADAPTIVE>(
      samples, seeds, px, py, sums_out, args,
      [&](const Cell &cell) {
        const u32 k = cell.y * args.nx + cell.x;
        return seeds ? begin_with(seed(args, positions, features, cell.x, cell.y)) : load_turn(sums + k, old + k);
      },
      [&](u32 k, const Center &center) {
        out[k] = center;
        clear_sums(sums_clear + k);
      },
      Nearest());
}

// Stages `slic/seed` (in the first round, `seeds`) or `slic/update`, and `slic/assign`: one round.
// Grid: tiles of ROUND_TILE_W x ROUND_TILE_H samples; block: ROUND_THREADS, a thread ROUND_SAMPLES samples of a column.
// In: features [height][width], samples [sample_height][sample_width], px [width] and py [height], `sums` and `old` [cells] of the
// last round.
// Out: `out` [cells], centers before this round; `sums_out` [cells], of its members; `sums_clear` [cells], zero.
// Race-free: a block makes the centers that it needs anew, from what is only read, and writes those of the cells that its tile lies
// in: blocks that share a cell write the same values; members are added by integer atomics, so that their order does not matter; the
// three sets of sums are different memory.
// No pointer is restricted, here and in the labels of a frame by itself: see `beside_last_kernel`.
KERNEL __launch_bounds__(ROUND_THREADS)
    slic_assign(const u32 *features, const u32 *samples, const i32 *px, const i32 *py, const Sums *sums, Sums *sums_out,
                Sums *sums_clear, const Center *old, Center *out, u32 seeds, SlicArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, samples, sums, sums_out, sums_clear, old, out, args);
  if (is_absent(batch)) return;
  assign_round<false>(features, samples, px, py, sums, sums_out, sums_clear, old, out, seeds, args);
}

// The kernel above for SLICO, which also keeps the largest squared color distance of each cluster's members, by an atomic maximum.
KERNEL __launch_bounds__(ROUND_THREADS)
    slic_assign_adaptive(const u32 *features, const u32 *samples, const i32 *px, const i32 *py, const Sums *sums,
                         Sums *sums_out, Sums *sums_clear, const Center *old, Center *out, u32 seeds, SlicArgs args,
                         Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, samples, sums, sums_out, sums_clear, old, out, args);
  if (is_absent(batch)) return;
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
  const Prepare &prepare;
  const Origin &origin;
  // Of the lane's column, and of the row that is as far down as the lane is right.
  u32 gx, row_slot;
  i32 position_x, row_position;

  __device__ void ready() {
    prepare();
    position_x -= origin.x;
    row_position -= origin.y;
  }
  __device__ void assign(u32 y, const u32 (&value)[4], u32 (&tag)[4]) {
    if (args.identity) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) tag[i] = (y + i) * TILE + lane_id();
      return;
    }
    i32 l[4], a[4], b[4], yy[4];
    u32 slot[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      l[i] = (i32)(feature_0(value[i]) >> args.color_shift);
      a[i] = (i32)(feature_1(value[i]) >> args.color_shift);
      b[i] = (i32)(feature_2(value[i]) >> args.color_shift);
      yy[i] = __shfl_sync(FULL_WARP, row_position, y + i);
      slot[i] = __shfl_sync(FULL_WARP, row_slot, y + i) + gx - slots.gx + 1;
    }
    Pixel pixel[4];
    u32 last[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 at = row(y + i);
      pixel[i] = {gx, home(args, at, args.ny), column(), at, value[i], l[i], a[i], b[i], position_x, yy[i],
                  inside(y + i) && value[i] != OUTSIDE};
    }
    choice.load_previous(pixel, last);
    typename ScoreOf<ADAPTIVE>::type least[4];
    nearest_column<4>(reach, args, slots.stride(), slot, l, a, b, position_x, yy, tag, least);
    u32 part[4];
    choice.choose(reach, slots, pixel, last, least, tag, part);
#pragma unroll
    for (u32 i = 0; i < 4; i++) tag[i] |= part[i] << PART_TAG_BIT;
  }
  __device__ u32 cluster(u32 tag, u32 x, u32 y) const {
    if (tag == OUTSIDE_TAG) return NO_CLUSTER;
    return args.identity ? y * args.width + x : reach[slot_of_tag(tag)].label + (tag >> PART_TAG_BIT) * args.nx * args.ny;
  }
};

// The labels of all pixels, and the components inside each tile. Grid: tiles of 32 x 32 px, blocks of `WARPS`.
template <bool ADAPTIVE, u32 WARPS, class TurnOf, class Keep, class Choice>
__device__ __forceinline__ void label(const u32 *features, const i32 *px, const i32 *py, const Components &components,
                                      const SlicArgs &args, TurnOf turn_of, Keep keep, Choice choice) {
  DYNAMIC_SHARED(Reach, reach);
  const TilePlane tile = tile_plane(features, args.width, args.height);
  const Slots slots = slots_of(args, tile.left, tile.top, tile.right, tile.bottom);
  const u32 column = tile.column(), row = tile.row(lane_id());
  const Origin origin = {px[min(tile.left + TILE / 2, tile.right)], py[tile.row(TILE / 2)]};
  const Positions positions = {px, py};
  const Cell cell = cell_of(args, positions, slots, threadIdx.x);
  const auto prepare = [&] {
    wait_for_last_kernel();
    if (!args.identity) load_clusters<ADAPTIVE, true>(reach, args, positions, slots, origin, cell, turn_of, keep);
    __syncthreads();
  };
  Labels<ADAPTIVE, Choice, decltype(prepare)> labels = {
      tile, args, reach, slots, choice, prepare, origin, home(args, column, args.nx),
      (home(args, row, args.ny) - slots.gy + 1) * slots.stride(), px[column], py[row]};
  tile_components<WARPS>(components, args.width, args.height, features, labels);
  choice.end();
}

// The labels of a frame by itself.
template <bool ADAPTIVE, u32 WARPS>
__device__ __forceinline__ void label_alone(const u32 *features, const i32 *px, const i32 *py, const Sums *sums,
                                            const Center *old, const Components &components, const SlicArgs &args) {
  // Without rounds the colors are new.
  if (args.identity) wait_for_last_kernel();
  label<ADAPTIVE, WARPS>(
      features, px, py, components, args,
      [&](const Cell &cell) {
        const u32 k = cell.y * args.nx + cell.x;
        return load_turn(sums + k, old + k);
      },
      [](u32, const Center &) {}, Nearest());
}

// Stage `slic/label` with the last `slic/update`: labels of all pixels of a frame by itself, as components inside each tile.
// Grid: tiles of 32 x 32 px; block: LABEL_THREADS; dynamic shared memory: a `Reach` for each cluster in reach of a tile.
// In: features [height][width], px [width], py [height], `sums` and `old` [cells] of the last round.
// Out: of `components`, the tile's component of every pixel [height][width], and its components and pairs in the lists: see
// `tile_components`.
// Race-free: a pixel and a tile have one thread and one block that write them; indices in the lists are taken by atomic additions.
KERNEL __launch_bounds__(LABEL_THREADS, 8)
    slic_label(const u32 *features, const i32 *px, const i32 *py, const Sums *sums, const Center *old,
               Components components, SlicArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, sums, old, components);
  if (is_absent(batch)) return;
  label_alone<false, LABEL_THREADS / 32>(features, px, py, sums, old, components, args);
}

// The kernel above for frames of few tiles; block: LABEL_THREADS_SMALL.
KERNEL __launch_bounds__(LABEL_THREADS_SMALL)
    slic_label_small(const u32 *features, const i32 *px, const i32 *py, const Sums *sums, const Center *old,
                     Components components, SlicArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, sums, old, components);
  if (is_absent(batch)) return;
  label_alone<false, LABEL_THREADS_SMALL / 32>(features, px, py, sums, old, components, args);
}

// As `slic_label`, for SLICO.
KERNEL __launch_bounds__(LABEL_THREADS)
    slic_label_adaptive(const u32 *features, const i32 *px, const i32 *py, const Sums *sums, const Center *old,
                        Components components, SlicArgs args, Batch batch) {
  beside_last_kernel(features, batch);
  select_frame(batch, features, sums, old, components);
  if (is_absent(batch)) return;
  label_alone<true, LABEL_THREADS / 32>(features, px, py, sums, old, components, args);
}

#include "slic_follow.cuh"
