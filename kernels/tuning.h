// SPDX-License-Identifier: MPL-2.0
// Block and tile sizes, each with its reason; read by the kernels and, as text, by src/cuda/tuning.rs.
#pragma once

// Ingest keeps 35 KB of tables in shared memory; three such blocks fit a multiprocessor without spilling registers.
#define INGEST_THREADS 512
// A round's tile in samples: one row of a warp wide, two samples a thread high. At S = 16 it holds 8x2 cells. Twice the
// height halves the blocks, and a round is too short to fill the device with those of a small frame.
#define ROUND_TILE_W 32
#define ROUND_TILE_H 8
#define ROUND_THREADS 128
// A component tile in px: a row is one warp, so runs are found by ballots; 8 warps of 4 rows.
#define TILE 32
#define TILE_THREADS 256
// Most cells in reach of a tile of either kind: cells of 1 px are not clustered, those of 2 px give 16 + 2 a side.
#define MAX_SLOTS 384
#define BORDER_THREADS 256
// Phases over components and edges wait for memory most of the time: small blocks, many of them.
#define CONNECT_THREADS 256
#define NUMBER_THREADS 1024
#define TABLE_THREADS 128
#define OVERLAY_THREADS 256
#define NEIGHBOR_THREADS 256
