// SPDX-License-Identifier: MPL-2.0
// From marks to labels: the last part of stage `connectivity`; mirrors `number` in src/post/connectivity/cpu.rs.
#pragma once
#include "connect.cuh"
#include "regions.cuh"

struct NumberShared {
  BlockScan<NUMBER_THREADS>::Shared scan;
  // Marks before each group of words; before that, what selects in the rounds of one block.
  union {
    __align__(16) u32 before[MARK_GROUPS];
    uint2 selectors[2][LATE_SELECTOR_CAPACITY];
  };
  u32 selecting;
};

// Marks of each group of words: a thread's part, asked for alone.
#define GROUPS_A_THREAD (MARK_GROUPS / NUMBER_THREADS)
__device__ __forceinline__ void load_groups(const Marks &marks, u32 (&here)[GROUPS_A_THREAD]) {
  const uint4 *at = (const uint4 *)(marks.groups + GROUPS_A_THREAD * threadIdx.x);
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD / 4; i++) {
    const uint4 four = __ldcg(at + i);
    here[4 * i] = four.x;
    here[4 * i + 1] = four.y;
    here[4 * i + 2] = four.z;
    here[4 * i + 3] = four.w;
  }
}

// They are summed up in shared memory; returns the number of all.
__device__ __forceinline__ u32 sum_groups(NumberShared &shared, const u32 (&here)[GROUPS_A_THREAD]) {
  u32 sum = 0;
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD; i++) sum += here[i];
  u32 before = BlockScan<NUMBER_THREADS>::exclusive_sum<true>(shared.scan, sum);
  uint4 *at = (uint4 *)(shared.before + GROUPS_A_THREAD * threadIdx.x);
#pragma unroll
  for (u32 i = 0; i < GROUPS_A_THREAD; i += 4) {
    const u32 second = before + here[i], third = second + here[i + 1], fourth = third + here[i + 2];
    at[i / 4] = make_uint4(before, second, third, fourth);
    before = fourth + here[i + 3];
  }
  __syncthreads();
  return shared.scan.total;
}

// A component's root, and where its mark is: the group, and the marks before it from the group's first on.
struct MarkPosition {
  u32 root, group, before;
};

// Goes from a component to its root; `head` is what it begins with.
__device__ __forceinline__ u32 root_of(const Components &c, const ConnectArgs &args, u32 i, uint2 &head) {
  while (args.connectivity && head.x == 0) {
    i = head.y;
    head = load_head(c, i);
  }
  return i;
}

// Position of a component's mark, given the first words `head` of its root.
__device__ __forceinline__ MarkPosition mark_position(const Components &c, const ConnectArgs &args, const Marks &marks, u32 root, uint2 head) {
  const u32 at = mark_at(c, args, root, head.y), word = at / 32, group = word >> args.group_bits;
  MarkPosition position = {root, group, 0};
  // Two quads at once. Groups begin and end with whole quads.
  for (u32 eight = group << args.group_bits; eight <= word; eight += 8) {
    const uint4 *quads = (const uint4 *)(bitmap(marks) + eight);
    const uint4 low = __ldcg(quads), high = eight + 4 <= word ? __ldcg(quads + 1) : make_uint4(0, 0, 0, 0);
    const u32 bits[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
      const u32 lower = eight + i < word ? ~0u : eight + i == word ? (1u << at % 32) - 1 : 0;
      position.before += __popc(bits[i] & lower);
    }
  }
  return position;
}

// Writes the label of every component, the number of regions, and the regions' accumulators: with what their roots hold of
// pixels and features, or without connectivity empty.
// In temporal mode also the cluster that each region would be a part of: that of its root, if that has the bit `large`, else that of
// its first pixel; `part_clusters` is null elsewhere.
// `on_the_way` lies between the first component of this thread and its root. `components`: how many there are.
__device__ __forceinline__ void number(NumberShared &shared, const Components &c, const ConnectArgs &args, const Marks &marks,
                                       u16 *labels, RegionSums *regions, u32 *part_clusters, u32 large, u32 components,
                                       u32 on_the_way) {
  const u32 first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  // Loads that do not need the sum over the groups are in flight while that is computed.
  u32 groups[GROUPS_A_THREAD];
  load_groups(marks, groups);
  MarkPosition position = {0, 0, 0};
  ComponentSums sums;
  const auto find_mark = [&](u32 from) {
    sums = load_sums(c, from);
    // A component outside of a mask has no mark, and is its own root.
    if (sums.count & OUTSIDE_COUNT) return MarkPosition{from, 0, 0};
    uint2 head = make_uint2(sums.count, sums.key);
    const u32 root = root_of(c, args, from, head);
    return mark_position(c, args, marks, root, head);
  };
  if (first < components) position = find_mark(on_the_way);
  const u32 total = sum_groups(shared, groups);
  for (u32 i = first; i < components; i += all) {
    if (i != first) position = find_mark(i);
    const bool inside = !(sums.count & OUTSIDE_COUNT);
    const u32 label = inside ? shared.before[position.group] + position.before : NO_LABEL;
    // Without connectivity clusters beyond the most share the last label; with it `connect_fit` is still to come, or they have none.
    labels[i] = (u16)min(label, inside && !args.connectivity ? args.max_regions - 1 : NO_LABEL);
    // A root's sums are its own: nothing lies between.
    if (args.connectivity && label < args.max_regions && position.root == i) {
      store_region(regions + label, region_of(pixels_of(sums.count), sums.color));
      if (part_clusters) {
        const u32 own = c.cluster[i];
        part_clusters[label] = (own & large ? own : c.cluster[component_at(c, args, sums.key).index()]) & ~(1u << 31);
      }
    }
  }
  if (!args.connectivity) {
    const u64 none[3] = {0, 0, 0};
    for (u32 i = first; i < min(total, args.max_regions); i += all) regions[i] = region_of(0, none);
  }
  if (first == 0) c.counters[REGIONS] = args.fits_later ? total : min(total, args.max_regions);
}
