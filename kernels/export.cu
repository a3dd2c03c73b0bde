// SPDX-License-Identifier: MPL-2.0
// Results of a frame in the forms that other libraries compute with; see src/buffers/export.rs.
#include "batch.cuh"
#include "block.cuh"

// Labels as 32-bit numbers from `first` on, and `outside` for NO_LABEL.
// Grid: blocks for a row, rows; block: EXPORT_THREADS, a pixel a thread.
// In: labels [height][width].
// Out: out [frames][height][stride], planes `apart` items from each other.
// Race-free: every item has one thread that writes it.
KERNEL __launch_bounds__(EXPORT_THREADS)
    widen_labels(const u16 *__restrict__ labels, u32 *__restrict__ out, u64 apart, u32 width, u32 stride, u32 first,
                 u32 outside, Batch batch) {
  after_last_kernel(labels, batch);
  select_frame(batch, labels);
  out += blockIdx.z * apart;
  const u32 x = blockIdx.x * EXPORT_THREADS + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  const u32 label = labels[(size_t)y * width + x];
  out[(size_t)y * stride + x] = label == NO_LABEL ? outside : label + first;
}

// Pairs in both directions, as graph libraries take them: first all lower labels, then the higher; below them the other ends.
// Grid: any number of blocks; block: EXPORT_THREADS.
// In: pairs [count].
// Out: edges [2][2 count].
// Race-free: every pair has one thread that writes its four numbers.
KERNEL __launch_bounds__(EXPORT_THREADS)
    list_edges(const Neighbor *__restrict__ pairs, i64 *__restrict__ edges, u32 count) {
  after_last_kernel(pairs, count);
  const size_t all = count;
  for (size_t i = FIRST; i < all; i += ALL) {
    const Neighbor pair = pairs[i];
    edges[i] = edges[3 * all + i] = pair.a;
    edges[all + i] = edges[2 * all + i] = pair.b;
  }
}

// Where the results of each frame of a batch begin among those of all.
// Grid: one block of 1024.
// In: the number of regions, and of pairs and merges, which may be null, of each frame, `distance` bytes apart.
// Out: offsets [3][frames + 1]; the last of each row is the number of all.
// Race-free: a thread writes its own entries.
KERNEL __launch_bounds__(1024)
    batch_offsets(const u32 *__restrict__ regions, const u32 *__restrict__ pairs, const u32 *__restrict__ merges,
                  u64 *__restrict__ offsets, u32 frames, u32 distance) {
  after_last_kernel(regions, distance);
  __shared__ BlockScan<1024>::Shared scan;
  for (u32 row = 0; row < 3; row++) {
    const u32 *first = row == 0 ? regions : row == 1 ? pairs : merges;
    u64 carry = 0;
    for (u32 base = 0; base < frames + 1; base += 1024) {
      const u32 i = base + threadIdx.x;
      const u32 count = first && i < frames ? *(const u32 *)((const u8 *)first + (u64)i * distance) : 0;
      const u64 before = carry + BlockScan<1024>::exclusive_sum<true>(scan, count);
      if (i < frames + 1) offsets[(u64)row * (frames + 1) + i] = before;
      carry += scan.total;
    }
  }
}

// Records of all frames of a batch, behind each other, or `capacity` of each and zeros for those that it does not have.
// Grid: any number of blocks; block: EXPORT_THREADS.
// In: from [records] of each frame, of `words` words; offsets [frames + 1].
// Out: to, records of all frames.
// Race-free: every word has one thread that writes it.
KERNEL __launch_bounds__(EXPORT_THREADS)
    gather_records(const u32 *__restrict__ from, u32 *__restrict__ to, const u64 *__restrict__ offsets, u32 words, u32 capacity,
                   Batch batch) {
  after_last_kernel(from, batch);
  select_frame(batch, from);
  const u64 first = offsets[blockIdx.z], count = offsets[blockIdx.z + 1] - first;
  u32 *const out = to + (capacity ? (u64)blockIdx.z * capacity : first) * words;
  const u64 held = count * words, all = capacity ? (u64)capacity * words : held;
  for (u64 i = FIRST; i < all; i += ALL) out[i] = i < held ? from[i] : 0;
}

// Pairs of all frames of a batch in both directions, as graph libraries batch them: columns of one frame behind those of the other,
// and of each as `list_edges` orders them; regions are numbered through all frames.
// Grid: any number of blocks; block: EXPORT_THREADS.
// In: pairs of each frame; offsets of regions and of pairs [frames + 1].
// Out: edges [2][2 pairs of all].
// Race-free: every pair has one thread that writes its four numbers.
KERNEL __launch_bounds__(EXPORT_THREADS)
    list_batch_edges(const Neighbor *__restrict__ pairs, i64 *__restrict__ edges, const u64 *__restrict__ regions_before,
                     const u64 *__restrict__ pairs_before, u32 frames, Batch batch) {
  after_last_kernel(pairs, batch);
  select_frame(batch, pairs);
  const u64 row = 2 * pairs_before[frames], first = pairs_before[blockIdx.z], count = pairs_before[blockIdx.z + 1] - first;
  const i64 before = (i64)regions_before[blockIdx.z];
  for (u64 i = FIRST; i < count; i += ALL) {
    const Neighbor pair = pairs[i];
    const u64 at = 2 * first + i, back = at + count;
    edges[at] = edges[row + back] = before + pair.a;
    edges[back] = edges[row + at] = before + pair.b;
  }
}

// The frame that each region of a batch is of.
// Grid: any number of blocks; block: EXPORT_THREADS; the third dimension: frames.
// In: offsets of regions [frames + 1].
// Out: to [regions of all].
// Race-free: every region has one thread that writes its number.
KERNEL __launch_bounds__(EXPORT_THREADS)
    number_frames(i64 *__restrict__ to, const u64 *__restrict__ regions_before, Batch batch) {
  after_last_kernel(to, batch);
  const u64 end = regions_before[blockIdx.z + 1];
  for (u64 i = regions_before[blockIdx.z] + FIRST; i < end; i += ALL) to[i] = blockIdx.z;
}
