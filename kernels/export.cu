// SPDX-License-Identifier: MPL-2.0
// Results of a frame in the forms that other libraries compute with; see src/buffers/export.rs.
#include "abi.cuh"

// Labels as 32-bit numbers from `first` on, and `outside` for NO_LABEL.
// Grid: blocks for a row, rows; block: EXPORT_THREADS, a pixel a thread.
// In: labels [height][width].
// Out: out [height][stride].
// Race-free: every item has one thread that writes it.
KERNEL __launch_bounds__(EXPORT_THREADS)
    widen_labels(const u16 *__restrict__ labels, u32 *__restrict__ out, u32 width, u32 stride, u32 first,
                 u32 outside) {
  after_last_kernel(labels, outside);
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
