// SPDX-License-Identifier: MPL-2.0
// The key of a rank among many keys, found by one block: radix selection from the highest bits down.
#pragma once
#include "block.cuh"

// THREADS: threads of the block, as in `BlockScan`. All of them call `select`.
// Shared memory: one `Shared` of the block, which any number of calls may use in turn.
template <u32 THREADS>
struct BlockSelect {
  // A digit has 11 bits, the last one 10.
  static const u32 BINS = 1 << 11, EACH = BINS / THREADS, AHEAD = 8;
  static_assert(BINS % THREADS == 0, "equal shares of the bins");
  struct Shared {
    typename BlockScan<THREADS>::Shared scan;
    u32 bins[BINS];
    u32 digit, before, equal;
  };
  // The key, its rank among those that equal it, and how many these are.
  struct Found {
    u32 key, rank, equal;
  };

  // `key_of(i, key)` says whether the item `i` of `count`, of which there is one at least, takes part, and its key. `rank`, from 0, is below the number of those that
  // do. Barriers: seven a digit, the first before anything is written and the last behind all.
  template <class KeyOf>
  static __device__ __forceinline__ Found select(Shared &shared, u32 count, u32 rank, KeyOf key_of) {
    Found found = {0, rank, 0};
    u32 known = 0;
#pragma unroll 1
    for (u32 shift = 21;; shift = shift == 21 ? 10 : 0) {
      const u32 digits = shift ? BINS - 1 : BINS / 2 - 1;
      __syncthreads();
#pragma unroll
      for (u32 j = 0; j < EACH; j++) shared.bins[EACH * threadIdx.x + j] = 0;
      __syncthreads();
      // Keys of several items are on their way at once.
      for (u32 i = threadIdx.x; i < count; i += AHEAD * THREADS) {
        u32 keys[AHEAD];
        bool takes[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          const u32 item = i + j * THREADS;
          takes[j] = key_of(min(item, count - 1), keys[j]) && item < count;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          if (takes[j] && (keys[j] & known) == found.key) atomicAdd(&shared.bins[keys[j] >> shift & digits], 1);
        }
      }
      __syncthreads();
      u32 here[EACH], sum = 0;
#pragma unroll
      for (u32 j = 0; j < EACH; j++) sum += here[j] = shared.bins[EACH * threadIdx.x + j];
      u32 before = BlockScan<THREADS>::template exclusive_sum<true>(shared.scan, sum);
      // Differences wrap: one thread has the rank in its share.
      if (found.rank - before < sum) {
        for (u32 j = 0; j < EACH; j++) {
          if (found.rank - before < here[j]) {
            shared.digit = EACH * threadIdx.x + j;
            shared.before = before;
            shared.equal = here[j];
            break;
          }
          before += here[j];
        }
      }
      __syncthreads();
      found = {found.key | shared.digit << shift, found.rank - shared.before, shared.equal};
      known |= digits << shift;
      if (shift == 0) return found;
    }
  }
};
