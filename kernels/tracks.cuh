// SPDX-License-Identifier: MPL-2.0
// Track of a region: its identity over time and its motion; mirrors `Track` in src/temporal/mod.rs.
#pragma once
#include "abi.cuh"

// Name of a region over time; its label where nothing lasts.
__device__ __forceinline__ u32 identity_of(const Track *tracks, u32 label) { return tracks ? tracks[label].id : label; }
