// SPDX-License-Identifier: MPL-2.0
// The threads of a block as fibers of one thread of the host, and how they meet. Compiled into the kernels: they meet so often that calls
// would count, and around a switch in the middle of a kernel the compiler saves only what that kernel needs later.
//
// A warp runs until all its lanes wait for the block or have ended, then the next warp does: the stacks of one warp fit in the nearest
// cache, those of a block do not. At a warp operation the last lane to come goes on itself. Threads have their turn from the first to the
// last or the other way round, which changes from block to block and behind every barrier, so that a forgotten one shows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

struct dim3 { unsigned x, y, z; };

namespace emulator {

[[noreturn]] void die(const char *why, const char *what = "");

// Calls a kernel with its arguments.
using Entry = void (*)(void **);
struct Fiber;

// What the lanes brought to a meeting: the values, and a bit for each that was not zero.
struct Brought {
  unsigned votes;
  uint64_t value[32];
};

// A warp, in masks of lanes: those that have not ended, of these those that do not wait, and those that wait for the block. What they
// brought to this meeting and to the last one, which some may still be reading.
struct Warp {
  unsigned lanes, ready, blocked, generation;
  Fiber *fibers;
  Brought brought[2];
};

// A thread of a block. While it has not waited its stack pointer is `start`, where its stack has the address of its entry.
struct Fiber {
  void *stack_pointer;
  void *start;
  Warp *warp;
  unsigned lane;
  dim3 thread;
};

// The threads of one block on one thread of the host, kept for the next one.
struct Block {
  // With one more at both ends, so that each has neighbors.
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  void *scheduler = nullptr;
  dim3 size = {0, 0, 0};
  // Threads have their turn from the last to the first; the way from one to the next.
  bool backwards = false;
  ptrdiff_t step = 1;
  unsigned alive = 0, arrived = 0, any = 0, any_of_last = 0;
  Entry entry = nullptr;
  void **arguments = nullptr;

  ~Block();
};

// Holds back a block that runs before the grid before it has ended.
struct Gate;
void wait_at_gate();

// State of this thread of the host: asked for all the time, so a register and an offset away; see here.cpp.
struct Here {
  Block *block;
  Fiber *current;
  Gate *gate;
  dim3 block_index, block_size, grid_size;
};
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) Here here;

void run_block(dim3 index, dim3 size, dim3 grid, Entry entry, void **arguments);

// Leaves a stack for another, until somebody comes back to it. Below the stack pointer must be nothing, hence -mno-red-zone in build.py. By
// a jump, as returns of several stacks do not match the calls that processors predict them by.
__attribute__((always_inline)) inline void switch_stack(void **save, void *load) {
  asm volatile(
      "pushq %%rbp\n\t"
      "leaq 0f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "0:\n\t"
      "popq %%rbp"
      : "+D"(save), "+S"(load)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}
__attribute__((always_inline)) inline void switch_to(Fiber *next) {
  Fiber *const self = here.current;
  here.current = next;
  // As a rule that thread's turn is after the next one's, and its stack is in no near cache.
  __builtin_prefetch(next[here.block->step].stack_pointer);
  switch_stack(&self->stack_pointer, next->stack_pointer);
}

// The lane whose turn is after this one's, of a warp that has some that do not wait.
__attribute__((always_inline)) inline Fiber *next_lane(const Warp &warp, unsigned lane) {
  if (here.block->backwards) {
    const unsigned rest = warp.ready & ~(~0u << lane);
    return warp.fibers + (31 - __builtin_clz(rest ? rest : warp.ready));
  }
  const unsigned rest = warp.ready & (~1u << lane);
  return warp.fibers + __builtin_ctz(rest ? rest : warp.ready);
}
// The first thread to go on of another warp; ends the program if all wait.
Fiber *next_of_block(const Warp &warp);
// Where no lane of a warp is left that does not wait: closes its meeting, or returns the thread to go on with if some wait for the block.
Fiber *close_warp(Warp &warp);
void open_block();
[[noreturn]] void refuse_mask(unsigned mask, const char *what);

// Returns once all lanes of the warp have come here.
__attribute__((always_inline)) inline const Brought &meet_warp(unsigned mask, uint64_t value, const char *what) {
  Warp &warp = *here.current->warp;
  const unsigned lane = here.current->lane;
  // Lanes that do not exist or have ended must not be waited for.
  if (__builtin_expect(warp.lanes & ~mask, 0)) refuse_mask(mask, what);
  Brought &brought = warp.brought[warp.generation & 1];
  brought.value[lane] = value;
  brought.votes |= (unsigned)(value != 0) << lane;
  warp.ready &= ~(1u << lane);
  Fiber *const next = warp.ready ? next_lane(warp, lane) : close_warp(warp);
  if (next) switch_to(next);
  return brought;
}

// Returns once all threads of the block have come here, with the or of what they brought.
__attribute__((always_inline)) inline unsigned meet_block(unsigned value) {
  Block &b = *here.block;
  Warp &warp = *here.current->warp;
  const unsigned lane = here.current->lane;
  b.any |= value;
  if (++b.arrived == b.alive) {
    open_block();
  } else {
    warp.ready &= ~(1u << lane);
    warp.blocked |= 1u << lane;
    switch_to(warp.ready ? next_lane(warp, lane) : next_of_block(warp));
  }
  return b.any_of_last;
}

}  // namespace emulator
