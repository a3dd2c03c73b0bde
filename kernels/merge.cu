// SPDX-License-Identifier: MPL-2.0
// Stage `merge`: neighboring regions of similar color become one, by the rule in src/post/merge/mod.rs; mirrors
// src/post/merge/cpu.rs. It works on what connectivity leaves: the label of every component, pixels and features of every
// region, and all pairs of components that touch. Only `merge_keep` goes over pixels. The result does not depend on the order
// in which threads run: sums are integers, the nearest is a minimum, unions keep the lowest label.
#include "batch.cuh"
#include "components.cuh"
#include "regions.cuh"

// Sets of labels, as `unite` of kernels/block.cuh wants them. The root of a set is its lowest label.
struct LabelSets : PlainOrder {
  u32 *up;
  __device__ __forceinline__ explicit LabelSets(const Merging &m) : up(m.parent) {}
  __device__ __forceinline__ u32 parent(u32 i) const { return load_relaxed(up + i); }
  __device__ __forceinline__ bool link(Node a, Node b) const { return atomicCAS(&up[a.at], a.at, b.at) == a.at; }
};

// Bit of a pair's second end: regions of two areas of a prior, which are further apart.
#define HAS_PRICE (1u << 31)

__device__ __forceinline__ u32 distance_of(const Merging &m, const MergeArgs &args, u32 a, u32 b, bool has_price) {
  const u32 d = distance(m.mean[a], m.mean[b]), price = has_price ? args.price : 0;
  return d + min(price, ~d);
}

// Gives a root its mean, and no neighbor yet, for the pass that begins.
__device__ __forceinline__ void begin_pass(const Merging &m, u32 i, const ComponentSums &sums) {
  m.mean[i] = mean_of(sums.count, sums.color);
  m.nearest[i] = 0xffffffffu;
}

// Adds up pixels and features of components for their regions: without connectivity they are with the components only, and
// connectivity has left the regions' sums zero.
// Grid: any number of blocks of MERGE_THREADS, a component a thread by turns.
// In: sums and labels [components].
// Out: area and color of regions [regions].
// Race-free: integers, added by atomics.
KERNEL __launch_bounds__(MERGE_THREADS)
    merge_gather(Components c, const u16 *__restrict__ component_label, RegionSums *__restrict__ regions, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, regions);
  if (is_absent(batch)) return;
  const u32 components = c.counters[COMPONENTS];
  for (u32 i = FIRST; i < components; i += ALL) {
    const ComponentSums held = c.sums[i];
    if (component_label[i] == NO_LABEL) continue;
    RegionSums *region = &regions[component_label[i]];
    atomicAdd(&region->area, held.count);
#pragma unroll
    for (int j = 0; j < 3; j++) atomicAdd(&region->color[j], held.color[j]);
  }
}

// Every region is a set of its own; begins the first pass.
// Grid: any number of blocks of MERGE_THREADS, a region a thread by turns.
// In: regions [regions], their number.
// Out: of `m` everything but numbers [regions].
// Race-free: a thread writes its own region's entries.
KERNEL __launch_bounds__(MERGE_THREADS)
    merge_start(Merging m, const RegionSums *__restrict__ regions, const u32 *__restrict__ counters, Batch batch) {
  after_last_kernel(m, batch);
  select_frame(batch, m, regions, counters);
  if (is_absent(batch)) return;
  const u32 count = counters[REGIONS];
  if (FIRST == 0) *m.count = count;
  for (u32 i = FIRST; i < count; i += ALL) {
    const RegionSums &region = regions[i];
    const ComponentSums sums = {region.area, 0, {region.color[0], region.color[1], region.color[2]}};
    m.parent[i] = i;
    m.sums[i] = sums;
    begin_pass(m, i, sums);
  }
}

// Begins a further pass: means of the roots, which alone have pixels left in their sums.
// Grid: any number of blocks of MERGE_THREADS, a label a thread by turns.
// In: sums.
// Out: means and nearest, of roots.
// Race-free: a thread writes its own label's entries.
KERNEL __launch_bounds__(MERGE_THREADS) merge_again(Merging m, Batch batch) {
  after_last_kernel(m);
  select_frame(batch, m);
  if (is_absent(batch)) return;
  const u32 count = *m.count;
  for (u32 i = FIRST; i < count; i += ALL) {
    const ComponentSums sums = m.sums[i];
    if (sums.count != 0) begin_pass(m, i, sums);
  }
}

// Least distance of every root to the roots that it touches. Renames the ends of pairs in place: from components to labels in
// the first pass, to roots in later ones. A pair whose ends have become equal lies within a region and is skipped from then on.
// Grid: any number of blocks of MERGE_THREADS, a pair a thread by turns.
// In: pairs, parents, means; `prior` [regions], the area of each, null without.
// Out: pairs, by the one thread that has them; nearest, by atomic minima.
// Race-free: nothing is joined here; `nearest` only falls, so that a stale value of it costs an atomic and changes nothing.
KERNEL __launch_bounds__(MERGE_THREADS)
    merge_nearest(Components c, Merging m, const u16 *__restrict__ component_label, const u32 *__restrict__ prior, MergeArgs args, u32 pass,
                  Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, m, component_label);
  select_some(batch, prior);
  if (is_absent(batch)) return;
  const u32 edges = c.counters[EDGES];
  for (u32 i = FIRST; i < edges; i += ALL) {
    const uint2 edge = c.edges[i];
    const u32 second = pass == 0 ? edge.y : edge.y & ~HAS_PRICE;
    if (pass > 0 && edge.x == second) continue;
    const u32 a = pass == 0 ? component_label[edge.x] : find_root(LabelSets(m), edge.x);
    const u32 b = pass == 0 ? component_label[second] : find_root(LabelSets(m), second);
    // Pixels outside of a mask touch no region, and regions of two areas may never join: such a pair gets equal ends.
    bool inside = max(a, b) != NO_LABEL, has_price = pass > 0 && edge.y != second;
    if (pass == 0 && prior && inside && prior[a] != prior[b]) inside = has_price = args.price > 0;
    c.edges[i] = make_uint2(a, inside && a != b ? b | (has_price ? HAS_PRICE : 0) : a);
    if (a == b || !inside) continue;
    const u32 d = distance_of(m, args, a, b, has_price);
    if (d < load_relaxed(&m.nearest[a])) atomicMin(&m.nearest[a], d);
    if (d < load_relaxed(&m.nearest[b])) atomicMin(&m.nearest[b], d);
  }
}

// Unites the ends of every pair that satisfies the rule.
// Grid: any number of blocks of MERGE_THREADS, a pair a thread by turns.
// In: pairs, means, nearest, which nobody changes.
// Out: parents, by `unite`.
// Race-free: pairs, means and nearest, which decide, are only read; sets and their roots do not depend on the order of unions.
KERNEL __launch_bounds__(MERGE_THREADS) merge_join(Components c, Merging m, MergeArgs args, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, m);
  if (is_absent(batch)) return;
  const u32 edges = c.counters[EDGES];
  for (u32 i = FIRST; i < edges; i += ALL) {
    const uint2 edge = c.edges[i];
    const u32 second = edge.y & ~HAS_PRICE;
    if (edge.x == second) continue;
    const u32 d = distance_of(m, args, edge.x, second, edge.y != second);
    const u64 scaled = 256 * (u64)d, ratio = args.ratio;
    // Regions of the two that agree: both have to where `mutual` is 1, else one.
    const u32 sides = (scaled <= ratio * m.nearest[edge.x]) + (scaled <= ratio * m.nearest[second]);
    if (sides > args.mutual && d <= args.limit) unite(LabelSets(m), {edge.x}, {second});
  }
}

// Moves the sums of united labels to their roots.
// Grid: any number of blocks of MERGE_THREADS, a label a thread by turns.
// In: parents, which nobody changes.
// Out: sums.
// Race-free: a label that is no root is emptied by its own thread; roots are added to by integer atomics.
KERNEL __launch_bounds__(MERGE_THREADS) merge_move_sums(Merging m, Batch batch) {
  after_last_kernel(m);
  select_frame(batch, m);
  if (is_absent(batch)) return;
  const u32 count = *m.count;
  for (u32 i = FIRST; i < count; i += ALL) {
    const u32 root = find_root(LabelSets(m), i);
    if (root == i || m.sums[i].count == 0) continue;
    const ComponentSums sums = m.sums[i];
    m.sums[i].count = 0;
    atomicAdd(&m.sums[root].count, sums.count);
#pragma unroll
    for (int j = 0; j < 3; j++) atomicAdd(&m.sums[root].color[j], sums.color[j]);
  }
}

// Numbers the roots in their order.
// Grid: one block of NUMBER_THREADS, which have equal shares of the labels, one after the other.
// In: parents.
// Out: numbers of roots, the number of regions.
// Race-free: a thread writes its own share's.
KERNEL __launch_bounds__(NUMBER_THREADS) merge_number(Merging m, u32 *__restrict__ counters, Batch batch) {
  after_last_kernel(m, batch);
  select_frame(batch, m, counters);
  if (is_absent(batch)) return;
  __shared__ BlockScan<NUMBER_THREADS>::Shared shared;
  const u32 count = *m.count, share = (count + NUMBER_THREADS - 1) / NUMBER_THREADS;
  const u32 begin = min(threadIdx.x * share, count), end = min(begin + share, count);
  u32 roots = 0;
  for (u32 i = begin; i < end; i++) roots += m.parent[i] == i;
  u32 next = BlockScan<NUMBER_THREADS>::exclusive_sum<false>(shared, roots);
  if (threadIdx.x == 0) counters[REGIONS] = shared.total;
  for (u32 i = begin; i < end; i++) {
    if (m.parent[i] == i) m.number[i] = next++;
  }
}

// Keeps the labels before merging, from which the next frame's temporal mode goes on. Runs before components get other labels;
// stage `hierarchy` launches it, too.
// Grid: tiles of 32 x 32 px; block: TILE_THREADS, a pixel in each of four rows a thread.
// In: labels [components].
// Out: kept [height][width].
// Race-free: a thread writes its own pixels.
KERNEL __launch_bounds__(TILE_THREADS)
    merge_keep(Components c, const u16 *__restrict__ component_label, u16 *__restrict__ kept, u32 width, u32 height,
               Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, component_label, kept);
  if (is_absent(batch)) return;
  const u32 x = blockIdx.x * TILE + lane_id(), top = blockIdx.y * TILE + threadIdx.x / 32 * 4;
  const u32 first = c.tile_first[blockIdx.y * gridDim.x + blockIdx.x];
  for (u32 y = top; y < min(top + 4, height); y++) {
    if (x < width) kept[(size_t)y * width + x] = component_label[first + c.local[(size_t)y * width + x]];
  }
}

// Gives every component the number of the root that its label was merged into, and writes the merged regions, of which pixels
// and features are known so far.
// Grid: any number of blocks of MERGE_THREADS, a component and a label a thread by turns.
// In: parents, numbers, sums.
// Out: labels [components], in place; regions [regions].
// Race-free: a thread writes its own component's label, and its own root's region, since numbers differ.
KERNEL __launch_bounds__(MERGE_THREADS)
    merge_label(Components c, Merging m, u16 *__restrict__ component_label, RegionSums *__restrict__ regions, Batch batch) {
  after_last_kernel(c, batch);
  select_frame(batch, c, m, component_label, regions);
  if (is_absent(batch)) return;
  const u32 components = c.counters[COMPONENTS], count = *m.count;
  for (u32 i = FIRST; i < components; i += ALL) {
    if (component_label[i] == NO_LABEL) continue;
    component_label[i] = (u16)m.number[find_root(LabelSets(m), component_label[i])];
  }
  for (u32 i = FIRST; i < count; i += ALL) {
    const ComponentSums sums = m.sums[i];
    if (sums.count != 0) regions[m.number[i]] = region_of(sums.count, sums.color);
  }
}
