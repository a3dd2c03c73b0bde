// SPDX-License-Identifier: MPL-2.0
// Block and tile sizes, each with its reason, and numbers of cases; read by the kernels and, as text, by src/cuda/tuning.rs.
#pragma once

// Ingest keeps 35 KB of tables in shared memory; three such blocks fit a multiprocessor without spilling registers.
#define INGEST_THREADS 512
// Counting gray keeps 16 KB of counts in shared memory.
#define GRAY_THREADS 512
// A round's tile in samples: one row of a warp wide, two samples a thread high. At S = 16 it holds 8x2 cells. Twice the
// height halves the blocks, and a round is too short to fill the device with those of a small frame.
#define ROUND_TILE_W 32
#define ROUND_TILE_H 8
#define ROUND_THREADS 128
// A component tile in px: a row is one warp, so runs are found by ballots. Where rows are independent, 8 warps have four
// each; where labels are found and joined, a warp goes down eight, since what it joins by itself is cheap.
#define TILE 32
#define TILE_THREADS 256
#define LABEL_THREADS 128
// With at most SMALL_TILES tiles per multiprocessor the rows of a tile are the critical path, so eight warps take four each.
// With 2.3 tiles SLIC's frame takes 6 % less and LSC's 2, with 15 SLIC's 5 % more; values between were not measured.
#define LABEL_THREADS_SMALL 256
#define SMALL_TILES 4
// A reciprocal that quotients come from is too small by one part in two to this power: see `Divisor` in kernels/common.cuh.
#define RECIPROCAL_BITS 20
// Most cells in reach of a round's tile: cells of 1 px are not clustered, those of 2 px give 16 + 2 by 4 + 2.
#define ROUND_SLOTS 128
#define BORDER_THREADS 256
// Quick shift's density: four pixels a thread share the reading of a neighbor. A cell is 20 bytes of shared memory; the
// small set holds the neighborhood of a tile up to R = 9 (sigma 3), the large one up to R = 18 (sigma 6), both at once.
#define DENSITY_TILE_H 16
#define DENSITY_THREADS 128
#define DENSITY_CELLS 2400
#define DENSITY_CELLS_SMALL 1250
// Offsets of a link that are kept in shared memory: nearly all pixels stop before.
#define LINK_THREADS 256
#define LINK_OFFSETS 512
// A pass divides the longest way to a root by the hops and one: four are enough for all but spirals.
#define FLATTEN_THREADS 256
#define FLATTEN_HOPS 15
#define FLATTEN_PASSES 4
// The first of the passes' counters, behind those of connectivity.
#define FLATTEN_COUNTER 36
// Phases over components and edges wait for memory most of the time: small blocks, many of them.
#define CONNECT_THREADS 256
// Largest smallest region for which what is small may join its like in two rounds only: part of the result, as in
// src/post/connectivity/mod.rs.
#define LIKE_REGION 64
#define MERGE_THREADS 256
// The first phase of a sweep has 19 x 17 pixels to look at, the last 16 x 16: a thread for each, and five blocks fit a multiprocessor.
#define REFINE_THREADS 352
// Halves of the rounds of merging: one block a multiprocessor, two slots of the pairs' table a thread at 3840x2160 with S = 16.
#define HIERARCHY_THREADS 1024
// Where frames are more than multiprocessors: two blocks fit one.
#define HIERARCHY_THREADS_NARROW 512
// Last rounds of merging: 48 KB of shared memory hold so many regions and their pairs. A thread for each pair, since the cost of joining
// is a long chain of arithmetic.
#define LAST_REGIONS 256
#define LAST_THREADS 1024
// Where frames are more than multiprocessors: four blocks fit one.
#define LAST_THREADS_NARROW 256
#define NUMBER_THREADS 1024
// Groups of words in which regions' marks are counted: a block adds them all up, and a component goes through one of them.
#define MARK_GROUPS 8192
// Lists for the rounds in which little is small, which one block goes over before many would have met, and the most pairs of the
// rounds before that are looked at for them. Ragged photographs of 640x480 leave up to 15,500 pairs and 700 that select.
#define LATE_CAPACITY 16384
#define LATE_SELECTOR_CAPACITY 2048
#define MOST_LISTED 131072
#define TABLE_THREADS 128
// One block finds a palette, of up to 65,535 regions.
#define PALETTE_THREADS 1024
#define MASK_THREADS 256
#define OVERLAY_THREADS 256
#define MEAN_THREADS 256
#define NEIGHBOR_THREADS 256
#define EXPORT_THREADS 256
// Frames whose addresses come with one launch.
#define LISTED_FRAMES 64
// Types of samples that become codes; others are float.
#define SAMPLE_U8 0
#define SAMPLE_U16 1
#define SAMPLE_I16 2
#define SAMPLE_I32 3
#define SAMPLE_I64 4
#define SAMPLE_F32 5
#define TEMPORAL_THREADS 256
// A slot without a cell asks for fifty words at once: small blocks, which spread over the device. Others were not compared.
#define CLAIM_THREADS 64
// A warp takes every sixteenth row of a thumbnail: with half as many warps the rows take longer than the launch.
#define SHIFT_THREADS 512
// A warp a region; with its samples, at most 37 a side, four fit a block's shared memory.
#define TRACK_THREADS 128
#define TRACK_POINTS 1369
#define IDENTIFY_THREADS 1024
// Blocks that let many regions and free identities choose each other, where one block alone took most of 100 us. Others were not compared.
#define MATCH_BLOCKS 32
