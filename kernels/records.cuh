// SPDX-License-Identifier: MPL-2.0
// Records of the metadata for kernels; written by tests/texts/records.rs from the list in src/regions.rs. abi.cuh includes it.
#pragma once

// One region; record i belongs to label i; `table` of the metadata.
struct Region {
  u32 track_id;
  u32 area;
  float centroid[2];
  u8 mean_rgb[4];
  float mean_lab[3];
  u16 bounds[4];
};
ABI(Region, track_id, 0);
ABI(Region, area, 4);
ABI(Region, centroid, 8);
ABI(Region, mean_rgb, 16);
ABI(Region, mean_lab, 20);
ABI(Region, bounds, 32);
ABI_SIZE(Region, 40);

// How a region has come to its place; record i belongs to label i; `motion` of the metadata.
struct Motion {
  float velocity[2];
  u32 age;
};
ABI(Motion, velocity, 0);
ABI(Motion, age, 8);
ABI_SIZE(Motion, 12);

// Two regions that touch; records are sorted by (a, b); `neighbors` of the metadata.
struct Neighbor {
  u32 a;
  u32 b;
  u32 length;
};
ABI(Neighbor, a, 0);
ABI(Neighbor, b, 4);
ABI(Neighbor, length, 8);
ABI_SIZE(Neighbor, 12);

// Two regions that become one in the next coarser level; `hierarchy` of the metadata.
struct MergeStep {
  u32 a;
  u32 b;
  float height;
  u32 area;
};
ABI(MergeStep, a, 0);
ABI(MergeStep, b, 4);
ABI(MergeStep, height, 8);
ABI(MergeStep, area, 12);
ABI_SIZE(MergeStep, 16);

// What became of a region since the last frame, or a cut; `events` of the metadata.
struct Event {
  u32 kind;
  u32 track_id;
  u32 other;
  u32 area;
};
ABI(Event, kind, 0);
ABI(Event, track_id, 4);
ABI(Event, other, 8);
ABI(Event, area, 12);
ABI_SIZE(Event, 16);
