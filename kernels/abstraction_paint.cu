// SPDX-License-Identifier: MPL-2.0
// What regions are painted with, for the drawing `abstraction` of stage `overlay`: samples, a palette, paints that ease. Mirrors
// src/post/abstraction/moments.rs, palette.rs, paint.rs and steady.rs; the rule stands in src/post/abstraction/mod.rs.
#include "abstraction.cuh"
#include "block.cuh"
#include "tracks.cuh"

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

// The codes of a pixel in the frame; neutral chroma in gray.
__device__ __forceinline__ void load_codes(const FrameArgs &frame, u32 x, u32 y, u32 (&code)[3]) {
  code[1] = code[2] = (u32)frame.neutral;
  const u32 channels = frame.family == FAMILY_GRAY ? 1 : 3;
  for (u32 c = 0; c < channels; c++) {
    const u32 column = c ? x >> frame.shared[0] : x, row = c ? y >> frame.shared[1] : y;
    code[c] = load_code(frame, frame.plane[c] + (size_t)row * frame.stride[c] + (size_t)column * frame.step[c] + frame.offset[c], c);
  }
}

// Adds a sample a lane, `step` columns apart from column `first` of row y on, to their regions, all of one label at once.
__device__ __forceinline__ void add_samples(Moments *moments, const u32 (&code)[3], u32 label, u32 first, u32 step, u32 y) {
  const u32 lane = lane_id();
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

// Keeps the mean color of each cell of still pixels, and how far it is from the one that it has had. Two lanes have a cell: `sums` are
// the sums of a lane's samples, `samples` their number.
__device__ __forceinline__ void look_at_cells(const SteadyArgs &steady, const FrameArgs &frame, u32 (&sums)[3], u32 samples, u32 x, u32 y) {
  samples += __shfl_xor_sync(FULL_WARP, samples, 1);
#pragma unroll
  for (u32 c = 0; c < 3; c++) sums[c] += __shfl_xor_sync(FULL_WARP, sums[c], 1);
  if (x % STILL_CELL || !samples) return;
  const u32 at = y / STILL_CELL * steady.still_columns + x / STILL_CELL;
  const u64 before = steady.calm[at];
  u64 now = 0;
  u32 change = 0;
#pragma unroll
  for (u32 c = 0; c < 3; c++) {
    const u32 color = (sums[c] << steady.fraction) / samples, was = (u32)(before >> 16 * c) & 0xffffu;
    change = max(change, max(color, was) - min(color, was));
    now |= (u64)color << 16 * c;
  }
  steady.seen[at] = now | (u64)change << 48;
}

// The samples and boundaries of all regions, and their tracks in the last frame.
// Grid: tiles of 64 x 32 px; block: TILE_THREADS, a lane two columns, four rows a warp.
// In: labels [height][label_stride], the frame, the number of regions, tracks [regions], null without temporal mode.
// Out: moments [regions], added to; what `look_back` and `look_at_cells` write.
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
  u32 here[2] = {label_at(x, top), label_at(x + 1, top)}, sums[3] = {0, 0, 0}, samples = 0;
  for (u32 y = top; y < min(top + 4, frame.height); y++) {
    const u32 below[2] = {label_at(x, y + 1), label_at(x + 1, y + 1)};
    u32 next = __shfl_down_sync(FULL_WARP, here[0], 1);
    if (lane == 31) next = label_at(x + 2, y);
    add_side(moments, here[0], here[1]);
    add_side(moments, here[1], next);
    add_side(moments, here[0], below[0]);
    add_side(moments, here[1], below[1]);
    if ((args.shading || steady.share < PX) && y % args.sample_step == 0) {
#pragma unroll
      for (u32 i = 0; i < 2; i++) {
        if (i && args.sample_step == 2) break;
        u32 code[3] = {0, 0, 0};
        if (x + i < frame.width) {
          load_codes(frame, x + i, y, code);
          samples++;
        }
#pragma unroll
        for (u32 c = 0; c < 3; c++) sums[c] += code[c];
        if (args.shading) add_samples(moments, code, here[i], left + i, 2, y);
      }
    }
    here[0] = below[0];
    here[1] = below[1];
  }
  if (steady.share < PX) look_at_cells(steady, frame, sums, samples, x, top);
}

// The weight of a region at a scale of `deviation` / 256 px: `Rule::boost` of src/post/abstraction/rule.rs.
__device__ __forceinline__ u16 boost_of(const u16 *tables, u32 area, u32 sides, u32 deviation) {
  const u64 width = 2ull * 64 * PX * area / max((u64)sides * deviation, 1ull);
  return tables[BOOST_TABLE + (u32)min(width, (u64)BOOST_WIDTHS)];
}

__device__ __forceinline__ double limited(double value, double most) { return fmin(fmax(value, -most), most); }

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

// Whether a frame continues the last one, and is no cut.
__device__ __forceinline__ bool is_continued(const SteadyArgs &steady, u32 count) {
  return steady.share < PX && steady.follows && CUT_SHARE * *steady.matched >= count;
}

// A palette; see src/post/abstraction/palette.rs.
#define MOST_COLORS 64
#define PALETTE_ROUNDS 8
#define KEPT_QUARTERS 3u
#define NO_COLOR 0xffffffffu

// The colors of a palette while a block works on them.
struct Colors {
  u32 code[MOST_COLORS][3];
  u32 feature[MOST_COLORS];
  u64 sum[MOST_COLORS][3];   // of the codes of their regions' pixels
  u64 pixels[MOST_COLORS];
  u32 used;
  u64 most;                  // for `region_of_most`
  u32 label;
};

// The region that weighs most, the first of equal ones; NO_REGION where all weigh nothing. All threads of the block call it.
template <class Weight>
__device__ __forceinline__ u32 region_of_most(Colors &colors, u32 count, Weight weight) {
  if (threadIdx.x == 0) {
    colors.most = 0;
    colors.label = NO_REGION;
  }
  __syncthreads();
  u64 most = 0;
  u32 label = NO_REGION;
  for (u32 i = threadIdx.x; i < count; i += PALETTE_THREADS) {
    const u64 own = weight(i);
    if (own <= most) continue;
    most = own;
    label = i;
  }
  if (most) atomicMax(&colors.most, most);
  __syncthreads();
  if (most && most == colors.most) atomicMin(&colors.label, label);
  __syncthreads();
  const u32 found = colors.label;
  // Everyone has read it before the next call.
  __syncthreads();
  return found;
}

// Gives each region the nearest color, the first of equal ones, or where it `keeps` that the one that it has had. A thread looks at its
// own regions.
__device__ __forceinline__ void choose_colors(const Colors &colors, const PaletteArgs &palette, u32 count, bool keeps) {
  for (u32 i = threadIdx.x; i < count; i += PALETTE_THREADS) {
    const u32 feature = palette.region_features[i], last = palette.chosen[i];
    u32 nearest = 0, far = 0xffffffffu;
    for (u32 j = 0; j < colors.used; j++) {
      const u32 to = difference_of(colors.feature[j], feature);
      if (to >= far) continue;
      nearest = j;
      far = to;
    }
    if (keeps && last < colors.used && 4 * far >= KEPT_QUARTERS * difference_of(colors.feature[last], feature)) continue;
    palette.chosen[i] = nearest;
  }
}

// Moves each color to the mean of its regions' pixels, by at most a `step` in each channel. All threads of the block call it.
__device__ __forceinline__ void move_colors(Colors &colors, const PaletteArgs &palette, const RegionSums *regions, const u64 *means,
                                            const FrameArgs &frame, const SpaceArgs &lab, const u32 *lab_tables, u32 count, u32 step) {
  __syncthreads();
  const u32 j = threadIdx.x;
  if (j < MOST_COLORS) colors.sum[j][0] = colors.sum[j][1] = colors.sum[j][2] = colors.pixels[j] = 0;
  __syncthreads();
  for (u32 i = threadIdx.x; i < count; i += PALETTE_THREADS) {
    const u32 number = palette.chosen[i], area = regions[i].area;
    atomicAdd(&colors.pixels[number], (u64)area);
#pragma unroll
    for (u32 c = 0; c < 3; c++) atomicAdd(&colors.sum[number][c], (means[i] >> 16 * c & 0xffffu) * area);
  }
  __syncthreads();
  if (j < colors.used && colors.pixels[j]) {
    const u64 pixels = colors.pixels[j];
#pragma unroll
    for (u32 c = 0; c < 3; c++) {
      const u32 code = colors.code[j][c], mean = (u32)((2 * colors.sum[j][c] + pixels) / (2 * pixels));
      colors.code[j][c] = min(max(mean, code > step ? code - step : 0), code + step);
    }
    colors.feature[j] = feature_of_codes(frame, lab, lab_tables, colors.code[j]);
  }
  __syncthreads();
}

// The palette of a frame, and the color of each region: `Palette` of src/post/abstraction/palette.rs.
// Grid: one block; block: PALETTE_THREADS.
// In: regions, means, their number; `lab`; what `look_back` has written; the last frame's palette and choice.
// Out: the palette, the color of each region.
// Race-free: regions belong to a thread each, sums are integers, added by atomics; barriers separate the steps.
KERNEL __launch_bounds__(PALETTE_THREADS)
    abstraction_palette(const u32 *__restrict__ counters, const RegionSums *__restrict__ regions, const u64 *__restrict__ means,
                        const u32 *__restrict__ lab_tables, FrameArgs frame, SpaceArgs lab, SteadyArgs steady, PaletteArgs palette) {
  after_last_kernel(counters, steady);
  __shared__ Colors colors;
  const u32 count = counters[REGIONS];
  if (count == 0) return;
  const bool continues = is_continued(steady, count), follows = continues && palette.follows;
  for (u32 i = threadIdx.x; i < count; i += PALETTE_THREADS) {
    const u64 packed = means[i];
    const u32 mean[3] = {(u32)packed & 0xffffu, (u32)(packed >> 16) & 0xffffu, (u32)(packed >> 32) & 0xffffu};
    const u32 earlier = continues ? steady.earlier[i] : NO_REGION;
    palette.region_features[i] = feature_of_codes(frame, lab, lab_tables, mean);
    palette.chosen[i] = earlier == NO_REGION ? NO_COLOR : palette.last[earlier];
  }
  if (follows) {
    const u32 j = threadIdx.x;
    if (j == 0) colors.used = *palette.count;
    if (j < MOST_COLORS) {
      const u64 packed = palette.colors[j];
#pragma unroll
      for (u32 c = 0; c < 3; c++) colors.code[j][c] = (u32)(packed >> 16 * c) & 0xffffu;
      colors.feature[j] = palette.features[j];
    }
    __syncthreads();
    choose_colors(colors, palette, count, true);
    move_colors(colors, palette, regions, means, frame, lab, lab_tables, count, palette.step);
  } else {
    // The largest region's color, then always that of the region which most area and difference speak for.
    u32 region = region_of_most(colors, count, [&](u32 i) { return (u64)regions[i].area; });
    for (u32 used = 1;; used++) {
      const u64 packed = means[region];
      const u32 feature = palette.region_features[region];
      if (threadIdx.x == 0) {
#pragma unroll
        for (u32 c = 0; c < 3; c++) colors.code[used - 1][c] = (u32)(packed >> 16 * c) & 0xffffu;
        colors.feature[used - 1] = feature;
        colors.used = used;
      }
      if (used == palette.size) break;
      region = region_of_most(colors, count, [&](u32 i) {
        const u32 to = difference_of(palette.region_features[i], feature), least = used == 1 ? to : min(to, palette.differences[i]);
        palette.differences[i] = least;
        return (u64)regions[i].area * least;
      });
      if (region == NO_REGION) break;
    }
    __syncthreads();
    for (u32 round = 0; round < PALETTE_ROUNDS; round++) {
      choose_colors(colors, palette, count, false);
      move_colors(colors, palette, regions, means, frame, lab, lab_tables, count, 0xffffu);
    }
    choose_colors(colors, palette, count, false);
  }
  const u32 j = threadIdx.x;
  if (j < colors.used) {
    palette.colors[j] = (u64)colors.code[j][0] | (u64)colors.code[j][1] << 16 | (u64)colors.code[j][2] << 32;
    palette.features[j] = colors.feature[j];
  }
  if (j == 0) *palette.count = colors.used;
}

// The paint of every region; moments are zero afterwards, for the next frame.
// Grid: a thread a region; block: TABLE_THREADS.
// In: moments, regions, means, tracks [regions], their number; `lab`; what `look_back` has written; a palette, if there is one.
// Out: paints [regions]; moments; the next table of tracks.
// Race-free: a thread writes its own region's. Slots are taken by compare-and-swap; whoever took one writes its value, which nobody
// reads here.
KERNEL __launch_bounds__(TABLE_THREADS)
    abstraction_paint(const u32 *__restrict__ counters, Moments *__restrict__ moments, const RegionSums *__restrict__ regions,
                      const u64 *__restrict__ means, const Track *__restrict__ tracks, Paint *__restrict__ paints,
                      const u16 *__restrict__ tables, const u32 *__restrict__ lab_tables, FrameArgs frame, SpaceArgs lab,
                      AbstractionArgs args, SteadyArgs steady, PaletteArgs palette) {
  after_last_kernel(counters, steady);
  const u32 label = blockIdx.x * TABLE_THREADS + threadIdx.x, count = counters[REGIONS];
  if (label >= count) return;
  const Moments sums = moments[label];
  moments[label] = Moments{};
  const u64 packed = palette.size ? palette.colors[palette.chosen[label]] : means[label];
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
  paint.feature = palette.size ? palette.features[palette.chosen[label]] : feature_of_codes(frame, lab, lab_tables, mean);
  if (steady.share < PX) {
    paint.age = tracks[label].age;
    const bool continues = is_continued(steady, count);
    if (label == 0) *steady.continues = continues;
    if (continues) {
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
