// SPDX-License-Identifier: MPL-2.0
// Abstraction, a drawing of stage `overlay`: patches with smooth outlines; mirrors src/post/abstraction/cpu.rs, and the rule stands in
// src/post/abstraction/mod.rs.
#include "abstraction.cuh"
#include "draw.cuh"

// Pixels on either side that the widest Gaussian reaches, and the window of a tile with them: a row is two words of a warp.
#define MOST_RADIUS 15
#define WINDOW (TILE + 2 * MOST_RADIUS)
static_assert(WINDOW <= 64, "a row of the window has a bit for each pixel");
// A weight of 1 of a region, and what such a region weighs where it is alone, at the wide and at the narrow scale.
#define BOOST_ONE 4096u
#define WIDE_WHOLE 2048u
#define NARROW_WHOLE 4096u
// Distance between the outlines of both scales, see `APART` of src/post/abstraction/rule.rs.
#define APART_FROM 96u
#define APART_FULL 192u
// Weights of thin regions, see `THIN` there.
#define THIN_FROM 4500u
#define THIN_FULL 6500u
// Contrasts in 1/8 Delta E from which on there is ink, see `INKED` there.
#define INKED_FROM 64u
#define INKED_FULL 320u

// Still pixels; see src/post/abstraction/still.rs. A thread of `abstraction_draw` has the rows of a cell, and four of them its columns.
#define TILE_CELLS (TILE / STILL_CELL)
#define LITTLE (1 << 9)
#define LONGEST 255u

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

// Lets the cell of a thread's pixels follow what was seen of it; returns the part of PX that they go to their new colors. All lanes of a
// warp, which has one row of cells, call it.
__device__ __forceinline__ u32 settle_cell(const SteadyArgs &steady) {
  const u32 lane = lane_id(), row = blockIdx.y * TILE_CELLS + threadIdx.x / 32;
  // A lane looks at a column of three cells, from the one before the tile on.
  const i32 beside = (i32)(blockIdx.x * TILE_CELLS + lane) - 1;
  bool moves = false;
  if (lane < TILE_CELLS + 2 && beside >= 0 && beside < (i32)steady.still_columns) {
    for (u32 y = row ? row - 1 : 0; y < min(row + 2, steady.still_rows); y++) {
      moves |= (u32)(steady.seen[y * steady.still_columns + beside] >> 48) >= MOVED;
    }
  }
  const u32 moving = __ballot_sync(FULL_WARP, moves), column = blockIdx.x * TILE_CELLS + lane / STILL_CELL;
  const bool is_in = column < steady.still_columns && row < steady.still_rows;
  const bool is_still = steady.is_same && *steady.continues && (moving >> lane / STILL_CELL & 7) == 0;
  const u32 at = row * steady.still_columns + column;
  const u64 now = is_in ? steady.seen[at] : 0, before = is_in ? steady.calm[at] : 0;
  const u32 calm = is_still ? min((u32)(before >> 48) + 1, LONGEST) : 0, change = min((u32)(now >> 48), MOVED - 1) >> 4;
  const u32 share = max(max(4 * PX / ((calm + 2) * (calm + 2)), steady.least_share), change * change * change * change >> 24);
  __syncwarp();
  if (is_in && lane % STILL_CELL == 0) {
    u64 next = (u64)calm << 48;
#pragma unroll
    for (u32 c = 0; c < 3; c++) {
      const i32 from = (i32)(before >> 16 * c & 0xffffu), to = (i32)(now >> 16 * c & 0xffffu);
      next |= (u64)(u32)eased(from, to, share) << 16 * c;
    }
    steady.calm[at] = next;
  }
  return share;
}

// The patches of a tile; a thread has four pixels below each other.
struct Patches {
  const OutlineTile &tile;
  const FrameArgs &frame;
  const AbstractionArgs &args;
  const SteadyArgs &steady;
  const Paint *paints;
  const u16 *tables;
  const Top (&top)[4];
  u32 share;  // part of PX that pixels go to their new colors; see `settle_cell`

  __device__ __forceinline__ bool is_on(i32) const { return false; }

  __device__ __forceinline__ bool fill(i32 row, i32 x, i32 y, u32 (&color)[3]) const {
    const u32 channels = frame.family == FAMILY_GRAY ? 1 : 3;
    const bool filled = paint(row, x, y, channels, color);
    if (steady.share < PX) {
      u64 *const drawn = steady.drawn + (size_t)y * frame.width + x;
      if (filled) settle(drawn, channels, color);
      else *drawn = 0;
    }
    return filled;
  }

  // Lets a pixel follow the last picture: `settle_body` of src/post/abstraction/still.rs.
  __device__ __forceinline__ void settle(u64 *drawn, u32 channels, u32 (&color)[3]) const {
    const u64 before = share < PX ? *drawn : 0;
    const u32 fraction = steady.fraction;
    u64 next = 0;
    for (u32 c = 0; c < channels; c++) {
      const i32 to = (i32)(color[c] << fraction), from = (i32)(before >> 16 * c & 0xffffu);
      i32 now = max(to, 1);
      if (from) {
        now = abs(to - from) <= LITTLE ? from : eased(from, to, share);
        color[c] = (u32)(now + (1 << fraction >> 1)) >> fraction;
      }
      next |= (u64)(u32)now << 16 * c;
    }
    *drawn = next;
  }

  // The color of a pixel in this frame.
  __device__ __forceinline__ bool paint(i32 row, i32 x, i32 y, u32 channels, u32 (&color)[3]) const {
    const u32 own = tile.label[row + args.radius][lane_id() + args.radius];
    if (own == NO_LABEL) return false;
    const Top both = top[row % 4];
    if (!both.first) return false;
    const Paint *mine = &paints[label_of(both.first)];
    if (!both.second) {
      for (u32 c = 0; c < channels; c++) color[c] = code_of(*mine, args, c, x, y);
      return true;
    }
    const Paint *beside = &paints[label_of(both.second)];
    const u32 contrast = contrast_of(mine->feature, beside->feature);
    const u32 strength = part(contrast, INKED_FROM, INKED_FULL), ink_width = args.ink * strength >> 8;
    i32 distance = distance_of(tables, weight_of(both.first), weight_of(both.second), mine->boost[0], beside->boost[0], WIDE_WHOLE);
    const i32 contrasts = args.keeps_corners ? (i32)part(contrast, SHARP_FROM, SHARP_FULL) : 0;
    // Farther away a pixel is its region's alone, if the narrow Gaussian says nothing else.
    const bool is_plain = (mine->boost[0] | beside->boost[0] | mine->boost[1] | beside->boost[1]) == BOOST_ONE;
    if (is_plain && distance >= PX / 2 + (i32)ink_width / 2 && (!contrasts || (own == label_of(both.first) && is_even(row)))) {
      for (u32 c = 0; c < channels; c++) color[c] = code_of(*mine, args, c, x, y);
      return true;
    }
    if (contrasts) {
      u32 a, b;
      narrow_weights(row, label_of(both.first), label_of(both.second), a, b);
      a = a * mine->boost[1] >> 8;
      b = b * beside->boost[1] >> 8;
      if (a + b) {
        i32 near = distance_of(tables + NEAR_TABLE, a, b, mine->boost[1], beside->boost[1], NARROW_WHOLE);
        if (b == 0 && near > 0) near = max(near, distance);
        const u32 thin = max(mine->boost[1], beside->boost[1]);
        const u32 apart = max(part((u32)abs(near - distance), APART_FROM, APART_FULL), part(thin, THIN_FROM, THIN_FULL));
        const i32 sharp = contrasts * (i32)apart >> 8;
        distance = (distance * (PX - sharp) + near * sharp) >> 8;
      }
    }
    if (distance < 0) {
      const Paint *other = mine;
      mine = beside;
      beside = other;
      distance = -distance;
    }
    const u32 coverage = (u32)min(PX / 2 + distance, PX), ink = ink_at(strength, ink_width, distance);
    for (u32 c = 0; c < channels; c++) {
      const u32 here = code_of(*mine, args, c, x, y), there = code_of(*beside, args, c, x, y);
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
// In: labels [height][label_stride], paints [regions], tables as `AbstractionArgs` has them, what `look_at_cells` has written.
// Out: the frame, in place; `matched`, zero; the state of still pixels.
// Race-free: tiles begin at even rows and columns, so that a chroma sample has all its pixels in one tile and one thread that writes
// it; no thread reads a sample of the frame but those it writes, and the same holds for the last picture. A cell over time belongs to
// four lanes of a warp. Barriers separate the turns of regions.
KERNEL __launch_bounds__(TILE_THREADS, 4)
    abstraction_draw(const u16 *__restrict__ labels, const Paint *__restrict__ paints, const u16 *__restrict__ tables,
                     FrameArgs frame, AbstractionArgs args, SteadyArgs steady) {
  after_last_kernel(labels, args);
  // For the next frame.
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *steady.matched = 0;
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
  const u32 share = steady.share < PX ? settle_cell(steady) : PX;
  draw_rows_of_any(Patches{tile, frame, args, steady, paints, tables, top, share}, frame, unlined, left + (i32)lane, top_row, 4 * warp);
}
