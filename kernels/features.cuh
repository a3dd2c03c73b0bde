// SPDX-License-Identifier: MPL-2.0
// From R'G'B' codes to a packed feature; mirrors `ColorTables::feature` in src/color.rs.
#pragma once
#include "abi.cuh"

enum Space { SPACE_LAB = 0, SPACE_XYZ = 1, SPACE_RGB = 2 };

// 16385 entries of the Lab curve, padded to whole words, then those of the codes: 256, or as many as codes of 10 or 16 bits have; all
// padded to whole quads of words.
#define CURVE_WORDS 8193
#define CURVE_QUADS ((CURVE_WORDS + 3) / 4)
#define TABLE_QUADS ((CURVE_WORDS + 128 + 3) / 4)
#define WIDE_TABLE_QUADS ((CURVE_WORDS + 512 + 3) / 4)

__device__ __forceinline__ u32 pack_clamped(i32 a, i32 b, i32 c) {
  return (u32)min(max(a, 0), 1023) | (u32)min(max(b, 0), 2047) << 10 | (u32)min(max(c, 0), 2047) << 21;
}

// Lab needs no clamping: the rows of its matrix sum to one, and no color is outside of a channel's range (a test of src/color.rs
// tries all).
__device__ __forceinline__ u32 lab_of(const SpaceArgs &args, const u16 *curve, const u16 *codes, const u32 (&rgb)[3]) {
  const i32 r = codes[rgb[0]], g = codes[rgb[1]], b = codes[rgb[2]];
  const i32 *m = args.matrix;
  const i32 fx = curve[(m[0] * r + m[1] * g + m[2] * b + (1 << 15)) >> 16];
  const i32 fy = curve[(m[3] * r + m[4] * g + m[5] * b + (1 << 15)) >> 16];
  const i32 fz = curve[(m[6] * r + m[7] * g + m[8] * b + (1 << 15)) >> 16];
  const i32 l = (928 * fy - 128 * 32768 + (1 << 14)) >> 15;
  const i32 from_red = ((4000 * (fx - fy) + (1 << 14)) >> 15) + 1024;
  const i32 from_blue = ((1600 * (fy - fz) + (1 << 14)) >> 15) + 1024;
  return (u32)l + ((u32)from_red << 10) + ((u32)from_blue << 21);
}

__device__ __forceinline__ u32 feature_of(const SpaceArgs &args, const u16 *curve, const u16 *codes, const u32 (&rgb)[3]) {
  if (args.space == SPACE_LAB) return lab_of(args, curve, codes, rgb);
  const i32 r = codes[rgb[0]], g = codes[rgb[1]], b = codes[rgb[2]];
  if (args.space == SPACE_RGB) return pack_clamped(r, g, b);
  const i32 *m = args.matrix;
  const i32 x = (m[0] * r + m[1] * g + m[2] * b + (1 << 15)) >> 16;
  const i32 y = (m[3] * r + m[4] * g + m[5] * b + (1 << 15)) >> 16;
  const i32 z = (m[6] * r + m[7] * g + m[8] * b + (1 << 15)) >> 16;
  return pack_clamped((1020 * x + 8192) / 16384, (1020 * y + 8192) / 16384, (1020 * z + 8192) / 16384);
}
