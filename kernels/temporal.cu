// SPDX-License-Identifier: MPL-2.0
// Stages `temporal/motion`, `temporal/track` and `temporal/reassign`; mirrors src/temporal/motion.rs and reassign.rs.
// All sums are integers and all choices maxima of keys, so the order of threads does not matter.
// From `__CUDA_ARCH__` 800 on `total_of_warp` is one instruction.
#include "batch.cuh"
#include "temporal.cuh"

// Samples that a lane asks for at once while a region's are looked for: a cell of 16 px has 24 x 24 around it.
#define TRACK_AT_ONCE 6
// Cells a side that a slot without one similarity for another in.
#define CLAIM_SIDE 5
static_assert(CLAIM_ROUNDS == 2, "a claim finds cells that nobody claimed in one round or two");
static_assert(TRACK_POINTS * 37 < 1 << 16, "an index divided by columns, at most 37");

// A square of a thumbnail without a pixel inside of the mask, and the difference of thumbnails of which less than half the squares can
// be compared: above that of any others. Those of src/temporal/motion.rs.
#define NO_MEAN 0xffffu
#define INCOMPARABLE (1ull << 40)

// The last frame's residual as if of it `samples` had been inside of its mask instead of `last`; mirrors `residual_of` in
// src/temporal/mod.rs.
__device__ __forceinline__ u64 residual_of(const TemporalArgs &args, u64 residual, u64 last, u64 samples) {
  const u64 unknown = (u64)args.samples << 32;
  if (last == 0 || residual >= unknown) return unknown;
  return residual / last * samples + residual % last * samples / last;
}

// Start values of a frame's residual and inertia; `inside`: its samples inside of the mask.
__device__ __forceinline__ void begin_residual(TemporalState &state, const TemporalArgs &args, u32 inside) {
  state.inside = inside;
  const u64 mean = state.residual_last / max(inside, 1u);
  state.eighth = (u32)min(mean * (MOVED_DISCOUNT * args.inertia) >> 8, (u64)NONE) / 8;
  state.still = (u32)min(mean * (STILL_DISCOUNT * args.inertia) >> 8, (u64)NONE);
}

template <bool MASKED>
__device__ __forceinline__ void begin_frame(const Temporal &t, const u32 *counters, const GridArgs &grid, const TemporalArgs &args,
                                            u32 warm) {
  const u32 cells = grid.nx * grid.ny, regions = t.state->regions;
  if (FIRST == 0) {
    TemporalState &state = *t.state;
    state.residual_last = state.residual;
    state.residual_first = state.residual = 0;
    if (!MASKED) begin_residual(state, args, args.samples);
    state.tickets[0] = state.tickets[1] = state.tickets[2] = 0;
    if (!warm) {
      state.offset[0] = state.offset[1] = 0;
      state.owners = 0;
      state.shift[0] = state.shift[1] = 0;
      state.unlike = 0;
    }
  }
  for (u32 i = FIRST; i < (1 + CLAIM_ROUNDS) * cells; i += ALL) t.claims[i] = 0;
  for (u32 i = FIRST; i < cells; i += ALL) t.largest[i] = 0;
  for (u32 label = FIRST; label < regions; label += ALL) {
    t.cells[label] = NONE;
    t.owners[label] = 0;
    // A region without a cluster that was given a slot has it from here on.
    u64 *sums = t.sums + 6 * (size_t)label;
    const u64 n = sums[0];
    if (n == 0) continue;
    const u32 k = t.reseed_wanted[label];
    if (k != NONE && t.reseed_claims[k] == key_of((u32)n, label)) {
      Slot &slot = t.slots_last[k];
#pragma unroll
      for (int i = 0; i < 2; i++) slot.position[i] = (i32)((2 * POSITION_UNIT * sums[1 + i] + n) / (2 * n));
#pragma unroll
      for (int i = 0; i < 3; i++) slot.color[i] = (u32)((2 * sums[3 + i] + n) / (2 * n));
      slot.id = t.tracks_last[label].id;
      slot.size = (u32)n * grid.sample_step * grid.sample_step;
      slot.region = label;
      slot.reseeded = 1;
    } else if (args.parts != 0) {
      const u32 of = t.part_clusters[label] % args.cells, number = t.tracks_last[label].id % args.parts;
      atomicMax(&t.part_claims[of * args.parts + number], key_of((u32)n, label));
    }
#pragma unroll
    for (int i = 0; i < 6; i++) sums[i] = 0;
  }
  wait_for_last_kernel();
  if (MASKED && FIRST == 0) {
    const u32 inside = counters[INSIDE];
    t.state->residual_last = residual_of(args, t.state->residual_last, t.state->inside, inside);
    begin_residual(*t.state, args, inside);
  }
  const u32 columns = args.thumbnail[0], squares = columns * args.thumbnail[1], pixels = 1u << 2 * args.square_log;
  for (u32 square = FIRST / 32; square < squares; square += ALL / 32) {
    const u32 v = square / columns, u = square - v * columns;
    const u32 *from = t.features + ((size_t)v * grid.width + u << args.square_log);
    u32 sum = 0, inside = 0;
    for (u32 i = lane_id(); i < pixels; i += 32) {
      const u32 feature = from[(size_t)(i >> args.square_log) * grid.width + (i & ((1u << args.square_log) - 1))];
      // Pixels outside of the mask do not count.
      sum += feature_0(feature);
      if (MASKED) inside += feature != OUTSIDE;
    }
    sum = total_of_warp(sum);
    if (MASKED) {
      inside = total_of_warp(inside);
      if (lane_id() == 0) t.thumbnail[square] = (u16)(inside == 0 ? NO_MEAN : sum / inside);
    } else if (lane_id() == 0) {
      t.thumbnail[square] = (u16)(sum >> 2 * args.square_log);
    }
  }
}

// Initializes the state of a frame, and computes means of channel 0 over squares.
// Grid: any number of blocks of TEMPORAL_THREADS; a warp takes a square.
// In: the state and slots of the last frame, features [height][width].
// Out: the state's counters; claims, largest [cells]; cells, owners [regions]; slots that a region has taken, and part_claims
// [cells][parts] of the others, by atomic maxima; thumbnail [squares].
// Race-free: every entry has one thread that writes it: a slot is re-seeded by the region that its claim names alone; the state is
// written by one thread, and read before by all only where that thread does not write.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_begin(Temporal t, const u32 *counters, GridArgs grid, TemporalArgs args, u32 warm, Batch batch) {
  beside_last_kernel(t, batch);
  select_frame(batch, t, counters);
  if (is_absent(batch)) return;
  begin_frame<false>(t, counters, grid, args, warm);
}

// The kernel above for frames that may have a mask; `counters` have the number of samples inside.
KERNEL __launch_bounds__(TEMPORAL_THREADS)
    temporal_begin_masked(Temporal t, const u32 *counters, GridArgs grid, TemporalArgs args, u32 warm, Batch batch) {
  beside_last_kernel(t, batch);
  select_frame(batch, t, counters);
  if (is_absent(batch)) return;
  begin_frame<true>(t, counters, grid, args, warm);
}

// Rounds down.
__device__ __forceinline__ i64 floor_quotient(i64 a, u32 b) { return a >= 0 ? a / (i64)b : -(((i64)b - 1 - a) / (i64)b); }

// How far the least of three differences in a row lies from the middle one, in 1/16 px.
__device__ __forceinline__ i32 vertex(const u64 *differences, u32 best, u32 step, bool at_end, i32 half, u64 least) {
  if (at_end) return 0;
  const i64 before = (i64)differences[best - step], after = (i64)differences[best + step];
  const i64 bend = before + after - 2 * (i64)least;
  const u64 slope = (u64)(before > after ? before - after : after - before);
  // Mirrors `explains_too_much` in src/temporal/mod.rs.
  if (bend <= 0 || slope * (256 * slope / (u64)bend) > 256 * 16 * least) return 0;
  return (i32)(half * (before - after) / bend);
}

template <bool MASKED>
__device__ __forceinline__ void find_shift(const Temporal &t, const GridArgs &grid, const TemporalArgs &args) {
  // With masks sums of pairs of squares that both have a mean; then of pairs, and of squares of this frame that have one.
  __shared__ u64 total[MASKED ? 4 : 2], least_of[SHIFT_THREADS / 32], differences[SHIFTS + 2];
  const u32 lane = lane_id(), warp = threadIdx.x / 32;
  const i32 columns = args.thumbnail[0], rows = args.thumbnail[1], rx = args.reach[0], ry = args.reach[1];
  const i32 across = 2 * rx + 1, w = max(columns - 2 * rx, 0), h = max(rows - 2 * ry, 0);
  const u32 shifts = across * (2 * ry + 1);
  const i32 dx = (i32)blockIdx.x % across - rx, dy = (i32)blockIdx.x / across - ry;
  if (threadIdx.x < sizeof total / sizeof *total) total[threadIdx.x] = 0;
  __syncthreads();
  // 4096 squared differences, more than a warp has, fit a word.
  u32 sum = 0, squares = 0, compared = 0, own_means = 0;
  for (i32 v = ry + (i32)warp; v < ry + h; v += SHIFT_THREADS / 32) {
    for (i32 from = rx + (i32)lane; from < rx + w; from += 4 * 32) {
      i32 own[4], last[4];
#pragma unroll
      for (i32 j = 0; j < 4; j++) {
        const i32 u = from + 32 * j;
        const bool inside = u < rx + w;
        own[j] = inside ? t.thumbnail[v * columns + u] : 0;
        last[j] = inside && blockIdx.x != shifts ? t.thumbnail_last[(v - dy) * columns + u - dx] : 0;
      }
#pragma unroll
      for (i32 j = 0; j < 4; j++) {
        if (MASKED) {
          const bool has_own = from + 32 * j < rx + w && own[j] != NO_MEAN, both = has_own && last[j] != NO_MEAN;
          own_means += has_own;
          compared += both;
          if (!both) own[j] = last[j] = 0;
        }
        sum += (u32)own[j];
        squares += (u32)((own[j] - last[j]) * (own[j] - last[j]));
      }
    }
  }
  sum = total_of_warp(sum);
  squares = total_of_warp(squares);
  if (lane == 0) {
    atomicAdd(&total[0], (u64)squares);
    atomicAdd(&total[1], (u64)sum);
  }
  if (MASKED) {
    compared = total_of_warp(compared);
    own_means = total_of_warp(own_means);
    if (lane == 0) {
      atomicAdd(&total[2], (u64)compared);
      atomicAdd(&total[3], (u64)own_means);
    }
  }
  __syncthreads();
  // As if all squares could be compared that have something inside now.
  const u64 count = MASKED ? total[3] : (u64)w * h;
  if (threadIdx.x == 0) {
    u64 difference = total[0];
    if (MASKED && blockIdx.x != shifts) {
      difference = total[2] == 0 || 2 * total[2] < count ? INCOMPARABLE : difference * count / total[2];
    }
    t.differences[blockIdx.x] = difference;
    if (blockIdx.x == shifts) t.differences[shifts + 1] = total[1];
  }
  if (!is_last_block(&t.state->tickets[0])) return;
  // Least difference; ties: the shorter shift, then the first. 17 bits hold both.
  u64 chosen = ~0ull;
  for (u32 i = threadIdx.x; i < shifts + 2; i += SHIFT_THREADS) {
    const i32 x = (i32)i % across - rx, y = (i32)i / across - ry;
    differences[i] = __ldcg(&t.differences[i]);
    if (i < shifts) chosen = min(chosen, differences[i] << 17 | (u64)(x * x + y * y) << 9 | i);
  }
  chosen = least_of_warp(chosen);
  if (lane == 0) least_of[warp] = chosen;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (u32 i = 1; i < SHIFT_THREADS / 32; i++) chosen = min(chosen, least_of[i]);
  TemporalState &state = *t.state;
  const u64 least = chosen >> 17, still = differences[shifts / 2];
  const u32 best = (u32)chosen & 511u;
  const i32 x = (i32)best % across - rx, y = (i32)best / across - ry;
  i32 shift[2] = {0, 0};
  if ((x == 0 && y == 0) || 8 * least <= 7 * still) {
    const i32 whole = POSITION_UNIT << args.square_log;
    shift[0] = whole * x + vertex(differences, best, 1, x == rx || x == -rx, whole / 2, least);
    shift[1] = whole * y + vertex(differences, best, across, y == ry || y == -ry, whole / 2, least);
  }
  const u64 own = differences[shifts], mean = differences[shifts + 1];
  state.unlike = 8 * least * count > args.unlike[0] * (count * own - mean * mean) + 8 * args.unlike[1] * count * count;
  const i32 cell = POSITION_UNIT * (i32)grid.step;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    state.shift[i] = shift[i];
    const i32 offset = (i32)floor_quotient((i64)state.offset[i], max(state.owners, 1u)) + shift[i];
    state.along[i] = (i32)floor_quotient(2 * (i64)offset + cell, 2 * (u32)cell);
    state.offset[i] = 0;
  }
  state.owners = 0;
}

// The motion of the picture.
// Grid: a block of SHIFT_THREADS for each shift, and one for the thumbnail's own measures; the last to end chooses.
// In: both thumbnails.
// Out: differences [shifts + 2]; of the state motion and what follows from it, and offsets, zero.
// Race-free: a block writes its own difference; the last block, which the ticket tells, reads them past its L1 cache, and its first
// thread alone writes the state.
KERNEL __launch_bounds__(SHIFT_THREADS) temporal_shift(Temporal t, GridArgs grid, TemporalArgs args, Batch batch) {
  after_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  find_shift<false>(t, grid, args);
}

// The kernel above for frames that may have a mask: squares without a pixel inside are not compared.
KERNEL __launch_bounds__(SHIFT_THREADS) temporal_shift_masked(Temporal t, GridArgs grid, TemporalArgs args, Batch batch) {
  after_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  find_shift<true>(t, grid, args);
}

// Position of a slot's cluster in this frame.
__device__ __forceinline__ void position_now(const Slot &slot, const TemporalState &state, i32 (&at)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) at[i] = slot.position[i] + state.shift[i] + slot.velocity[i];
}

// First round of stage `temporal/reassign`: the cell that a slot stays in or is over.
__device__ __forceinline__ void claim_first(const Temporal &t, const GridArgs &grid, const Slot &slot, u32 k) {
  const TemporalState &state = *t.state;
  i32 at[2], own[2];
  position_now(slot, state, at);
  t.wanted[k] = NONE;
  if (slot.size == 0 || slot.region == NONE || at[0] < 0 || at[1] < 0 || at[0] > POSITION_UNIT * (i32)(grid.width - 1) ||
      at[1] > POSITION_UNIT * (i32)(grid.height - 1)) {
    return;
  }
  const i32 nx = grid.nx, ny = grid.ny, step = grid.step, stays = 9 * POSITION_UNIT * step / 10;
  const i32 x = (i32)k % nx + state.along[0], y = (i32)k / nx + state.along[1];
  bool stay = x >= 0 && y >= 0 && x < nx && y < ny;
  if (stay) {
    center_of(grid, x, y, own);
    stay = max(at[0] - own[0], own[0] - at[0]) <= stays && max(at[1] - own[1], own[1] - at[1]) <= stays;
  }
  const u32 cell = stay ? y * nx + x : min(at[1] / POSITION_UNIT / step, ny - 1) * nx + min(at[0] / POSITION_UNIT / step, nx - 1);
  t.wanted[k] = cell;
  atomicMax(&t.claims[cell], key_of(slot.size, k));
}

// Difference of a region's samples under `N` shifts at once.
template <int N>
__device__ __forceinline__ void compare(const Temporal &t, const GridArgs &grid, const uint2 *points, u32 count,
                                        const int2 (&shifts)[N], u32 (&sums)[N]) {
#pragma unroll
  for (int j = 0; j < N; j++) sums[j] = 0;
  for (u32 i = lane_id(); i < count; i += 32) {
    const uint2 point = points[i];
    const i32 x = (i32)(point.x & 0xffffu), y = (i32)(point.x >> 16);
#pragma unroll
    for (int j = 0; j < N; j++) {
      const i32 to_x = clamp_position(x + shifts[j].x, grid.width), to_y = clamp_position(y + shifts[j].y, grid.height);
      sums[j] += feature_difference(t.features[(size_t)to_y * grid.width + to_x], point.y);
    }
  }
#pragma unroll
  for (int j = 0; j < N; j++) sums[j] = total_of_warp(sums[j]);
}

// The best shift so far with its difference, and what a better one has to be below.
struct Best {
  int2 shift;
  u32 difference;
  template <int N>
  __device__ void offer(const int2 (&shifts)[N], const u32 (&sums)[N], u32 noise) {
    const u32 margin = difference - difference / TRACK_MARGIN;
    u32 below = margin > noise ? margin - noise : 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
      if (sums[j] < below) {
        shift = shifts[j];
        difference = below = sums[j];
      }
    }
  }
};

// Stage `temporal/track`: where the pixels of every slot's region went, and the slot's first claim. The pixels are found before the
// motion of the picture is known.
// Grid: a warp for each slot; block: TRACK_THREADS; dynamic shared memory: as many samples as a slot's surroundings have at most,
// for each warp.
// In: labels and features of the last frame, features of this, slots of the last frame.
// Out: velocity of slots; wanted [cells]; the first round of claims [cells].
// Race-free: a warp writes its own slot's; claims are atomic maxima.
KERNEL __launch_bounds__(TRACK_THREADS, 8) temporal_track(Temporal t, GridArgs grid, TemporalArgs args, Batch batch) {
  beside_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  DYNAMIC_SHARED(uint2, shared);
  const u32 k = FIRST / 32, lane = lane_id();
  if (k >= grid.nx * grid.ny) return;
  uint2 *points = shared + threadIdx.x / 32 * args.track_points;
  Slot slot = t.slots_last[k];
  u32 count = 0;
  if (slot.region != NONE) {
    const u32 gx = k % grid.nx, gy = k / grid.nx, step = args.track_step;
    const u32 left = (gx == 0 ? 0 : gx - 1) * grid.step, top = (gy == 0 ? 0 : gy - 1) * grid.step;
    const u32 right = gx + 2 >= grid.nx ? grid.width : (gx + 2) * grid.step;
    const u32 bottom = gy + 2 >= grid.ny ? grid.height : (gy + 2) * grid.step;
    const u32 x0 = (left + step - 1) / step, y0 = (top + step - 1) / step;
    const u32 columns = (right + step - 1) / step - x0, rows = (bottom + step - 1) / step - y0;
    // Exact below TRACK_POINTS for as many columns as that allows.
    const u32 inverse = 65536 / columns + 1, all = columns * rows;
    for (u32 base = 0; base < all; base += 32 * TRACK_AT_ONCE) {
      u32 point[TRACK_AT_ONCE], label[TRACK_AT_ONCE];
#pragma unroll
      for (u32 j = 0; j < TRACK_AT_ONCE; j++) {
        const u32 i = base + 32 * j + lane, row = i * inverse >> 16;
        point[j] = (x0 + i - row * columns) * step | (y0 + row) * step << 16;
        label[j] = i < all ? t.labels[(size_t)(point[j] >> 16) * grid.width + (point[j] & 0xffffu)] : NONE;
      }
#pragma unroll
      for (u32 j = 0; j < TRACK_AT_ONCE; j++) {
        const bool member = label[j] == slot.region;
        const u32 members = __ballot_sync(FULL_WARP, member);
        if (member) points[count + rank_among(members)].x = point[j];
        count += __popc(members);
      }
    }
    __syncwarp();
    for (u32 i = lane; i < count; i += 32) {
      const u32 point = points[i].x;
      points[i].y = t.features_last[(size_t)(point >> 16) * grid.width + (point & 0xffffu)];
    }
    __syncwarp();
  }
  wait_for_last_kernel();
  if (slot.region != NONE) {
    const i32 *shift = t.state->shift;
    const int2 own = {whole_px(shift[0] + slot.velocity[0]), whole_px(shift[1] + slot.velocity[1])};
    const u32 noise = TRACK_NOISE * count;
    u32 sums[3];
    const int2 first[3] = {{0, 0}, own, {whole_px(shift[0]), whole_px(shift[1])}};
    compare<3>(t, grid, points, count, first, sums);
    Best best = {{0, 0}, sums[0]};
    if (sums[0] >= TRACK_FLAT * count) {
      const int2 moved[2] = {first[1], first[2]};
      const u32 moved_sums[2] = {sums[1], sums[2]};
      best.offer<2>(moved, moved_sums, noise);
      for (i32 hop = TRACK_HOP; hop > 0; hop /= 2) {
        int2 around[9];
        u32 around_sums[9];
#pragma unroll
        for (i32 i = 0; i < 9; i++) around[i] = {best.shift.x + hop * (i % 3 - 1), best.shift.y + hop * (i / 3 - 1)};
        compare<9>(t, grid, points, count, around, around_sums);
        best.offer<9>(around, around_sums, noise);
      }
      const u32 length = max(abs(best.shift.x), abs(best.shift.y));
      if (sums[0] < min(args.flat_px * length / FLAT_ONE, args.flat_most) * count) best.shift = {0, 0};
    }
    if (best.shift.x != own.x || best.shift.y != own.y) {
      slot.velocity[0] = POSITION_UNIT * best.shift.x - shift[0];
      slot.velocity[1] = POSITION_UNIT * best.shift.y - shift[1];
      if (lane == 0) {
        t.slots_last[k].velocity[0] = slot.velocity[0];
        t.slots_last[k].velocity[1] = slot.velocity[1];
      }
    }
  }
  if (lane == 0) claim_first(t, grid, slot, k);
}

// The nearest free cell around one, within reach; of two as near, the first. All cells are asked for at once.
__device__ __forceinline__ u32 nearest_free(const Temporal &t, const GridArgs &grid, u32 round, u32 reach, u32 cell,
                                            const i32 (&at)[2]) {
  const i32 nx = grid.nx, ny = grid.ny, left = (i32)cell % nx - CLAIM_SIDE / 2, top = (i32)cell / nx - CLAIM_SIDE / 2;
  // Positions within 2^14 px, in sixteenths: 37 bits hold the square of the distance.
  constexpr u64 TOO_FAR = 1ull << 62;
  u64 across[CLAIM_SIDE], down[CLAIM_SIDE];
#pragma unroll
  for (i32 i = 0; i < CLAIM_SIDE; i++) {
    i32 center[2];
    center_of(grid, left + i, top + i, center);
    across[i] = (u32)abs(at[0] - center[0]) <= reach ? square_of(at[0] - center[0]) : TOO_FAR;
    down[i] = (u32)abs(at[1] - center[1]) <= reach ? square_of(at[1] - center[1]) : TOO_FAR;
  }
  // Of a claim the size says that there is one.
  u32 taken[CLAIM_SIDE * CLAIM_SIDE];
#pragma unroll
  for (i32 i = 0; i < CLAIM_SIDE * CLAIM_SIDE; i++) {
    const i32 x = left + i % CLAIM_SIDE, y = top + i / CLAIM_SIDE;
    const bool inside = x >= 0 && y >= 0 && x < nx && y < ny;
    const u64 *claim = t.claims + (inside ? y * nx + x : 0);
    taken[i] = !inside | ((const uint2 *)claim)->y;
    // Without a second round the first is asked twice.
    taken[i] |= ((const uint2 *)(claim + (round - 1) * (u32)(nx * ny)))->y;
  }
  u64 least = TOO_FAR;
  u32 nearest = NONE;
#pragma unroll
  for (i32 i = 0; i < CLAIM_SIDE * CLAIM_SIDE; i++) {
    const u64 distance = across[i % CLAIM_SIDE] + down[i / CLAIM_SIDE];
    if (taken[i] == 0 && distance < least) {
      least = distance;
      nearest = (u32)((top + i / CLAIM_SIDE) * nx + left + i % CLAIM_SIDE);
    }
  }
  return nearest;
}

// Slots that did not get the cell that they claimed last want the nearest free one around it.
// Grid: a thread a slot; block: CLAIM_THREADS.
// In: claims of the rounds before, which nobody changes.
// Out: wanted [cells]; claims of this round [cells].
// Race-free: a thread writes its own slot's wish; claims are atomic maxima.
KERNEL __launch_bounds__(CLAIM_THREADS) temporal_claim(Temporal t, GridArgs grid, u32 round, u32 reach, Batch batch) {
  after_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  const u32 k = FIRST, cells = grid.nx * grid.ny, cell = k < cells ? t.wanted[k] : NONE;
  if (cell == NONE) return;
  const Slot slot = t.slots_last[k];
  const u64 own = key_of(slot.size, k);
  for (u32 r = 0; r < round; r++) {
    if (t.claims[r * cells + cell] == own) return;
  }
  i32 at[2];
  position_now(slot, *t.state, at);
  const u32 nearest = nearest_free(t, grid, round, reach, cell, at);
  t.wanted[k] = nearest;
  if (nearest != NONE) atomicMax(&t.claims[round * cells + nearest], own);
}

// Hands every cell to whom it went.
// Grid: a thread a cell; block: TEMPORAL_THREADS.
// In: claims of all rounds, slots of the last frame, part_claims.
// Out: sources, moves and least_kept [cells]; cells [regions]. A cell that nobody had before either is released.
// Race-free: a thread writes its own cell's; a region has one slot, or is a part with one number of one, and a slot gets one cell.
KERNEL __launch_bounds__(TEMPORAL_THREADS) temporal_reassign(Temporal t, GridArgs grid, TemporalArgs args, Batch batch) {
  after_last_kernel(t, batch);
  select_frame(batch, t);
  if (is_absent(batch)) return;
  const u32 c = FIRST, cells = grid.nx * grid.ny;
  if (c >= cells) return;
  u64 claim = 0;
  for (u32 r = 0; r <= CLAIM_ROUNDS && claim == 0; r++) claim = t.claims[r * cells + c];
  const TemporalState &state = *t.state;
  Source source = {NONE, {state.shift[0], state.shift[1]}, 0};
  u32 least = args.min_region;
  if (claim != 0) {
    source.slot = index_of(claim);
    const Slot &slot = t.slots_last[source.slot];
    source.shift[0] += slot.velocity[0];
    source.shift[1] += slot.velocity[1];
    const u32 at = c / grid.nx << 16 | c % grid.nx;
    t.cells[slot.region] = at;
    for (u32 i = 0; i < args.parts; i++) {
      const u64 part = t.part_claims[source.slot * args.parts + i];
      if (part != 0) t.cells[index_of(part)] = (i + 1) << PART_BIT | at;
    }
    least = min(max(kept_share(slot.size), kept_share(args.min_region)), args.min_region);
  } else {
    // The slot that the cell would have if all only moved along.
    const u32 x = c % grid.nx - (u32)state.along[0], y = c / grid.nx - (u32)state.along[1];
    source.released = x >= grid.nx || y >= grid.ny || t.slots_last[y * grid.nx + x].region == NONE;
  }
  t.least_kept[c] = least;
  t.sources[c] = source;
  t.moves[c] = {whole_px(source.shift[0]), whole_px(source.shift[1])};
}
