// SPDX-License-Identifier: MPL-2.0
// Cuts a label map to a coarser level with the field `hierarchy` of its metadata: C99, no library.
#ifndef CUT_LABELS_H
#define CUT_LABELS_H

#include <stdint.h>
#include <stdlib.h>

// Label outside of a mask.
#define CUT_NO_LABEL 65535u

// Layouts, written by tests/texts/records.rs.
// Two regions that become one in the next coarser level: offsets in a record, little endian.
enum {
  CUT_A = 0,  // u32, A label of one; its region is by then part of the first of both
  CUT_B = 4,  // u32, A label of the other
  CUT_HEIGHT = 8,  // f32, How unlike both are, comparable in one frame only; never falls from record to record
  CUT_AREA = 12,  // u32, Area of the region that the two are in, with all that has joined it at the same time [px]
  CUT_BYTES = 16
};
// End of the layouts.

static uint32_t cut_read_u32(const unsigned char *from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

// Rewrites `pixels` labels to those of `regions` regions, or of as few as there can be. `merges` are the bytes of the field
// `hierarchy`, in their order. Returns how many regions are left; -1, with nothing changed, where a record names a label that the map
// does not have or there is no memory.
static int32_t cut_labels(uint16_t *labels, size_t pixels, const unsigned char *merges, size_t bytes, uint32_t regions) {
  uint32_t count = 0, next = 0;
  for (size_t i = 0; i < pixels; i++)
    if (labels[i] != CUT_NO_LABEL && labels[i] >= count) count = labels[i] + 1u;
  size_t steps = count > regions ? count - regions : 0;
  if (steps > bytes / CUT_BYTES) steps = bytes / CUT_BYTES;
  // From each label to a lower one of its region, as far as it goes.
  uint32_t *lower = malloc((count + 1) * sizeof *lower);
  if (!lower) return -1;
  for (uint32_t i = 0; i < count; i++) lower[i] = i;
  for (size_t i = 0; i < steps; i++) {
    const unsigned char *step = merges + CUT_BYTES * i;
    uint32_t ends[2] = {cut_read_u32(step + CUT_A), cut_read_u32(step + CUT_B)};
    for (int end = 0; end < 2; end++) {
      if (ends[end] >= count) {
        free(lower);
        return -1;
      }
      while (lower[ends[end]] != ends[end]) ends[end] = lower[ends[end]] = lower[lower[ends[end]]];
    }
    if (ends[0] < ends[1])
      lower[ends[1]] = ends[0];
    else
      lower[ends[0]] = ends[1];
  }
  // The root is lower and has its number already.
  for (uint32_t i = 0; i < count; i++) lower[i] = lower[i] == i ? next++ : lower[lower[i]];
  for (size_t i = 0; i < pixels; i++)
    if (labels[i] != CUT_NO_LABEL) labels[i] = (uint16_t)lower[labels[i]];
  free(lower);
  return (int32_t)next;
}

#endif
