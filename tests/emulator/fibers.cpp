// SPDX-License-Identifier: MPL-2.0
// Runs a block, one thread of it after the other: see fibers.h.
#include <sys/mman.h>

#include "fibers.h"

namespace emulator {

namespace {

constexpr size_t STACK = 128 << 10;
// Stacks begin in different lines of a page: all in the same one would compete for a few places of the caches.
constexpr size_t STAGGER = 5 * 64, STAGGERED = 4096;

thread_local Block block_of_this_thread;

void turn(Block &b, bool backwards) {
  b.backwards = backwards;
  b.step = backwards ? -1 : 1;
}

// Marks the current thread as ended; returns the one to go on with, null after the last.
Fiber *finish() {
  Block &b = *here.block;
  Fiber &self = *here.current;
  Warp &warp = *self.warp;
  self.stack_pointer = self.start;
  warp.lanes &= ~(1u << self.lane);
  warp.ready &= ~(1u << self.lane);
  if (--b.alive == 0) return nullptr;
  // Threads that have ended are not waited for.
  if (b.arrived == b.alive) open_block();
  return warp.ready ? next_lane(warp, self.lane) : next_of_block(warp);
}

}  // namespace

// Runs threads from the first to the last that has not waited. One that ends without a wait leaves its stack to the next one: in most
// kernels no thread waits.
extern "C" __attribute__((visibility("hidden"), noreturn)) void emulator_run_threads() {
  Block &b = *here.block;
  do {
    b.entry(b.arguments);
    here.current = finish();
  } while (here.current && here.current->stack_pointer == here.current->start);
  void *over;
  switch_stack(&over, here.current ? here.current->stack_pointer : b.scheduler);
  die("a finished thread runs on");
}

// Entry of a stack, on which it leaves its own address for the next block.
extern "C" void emulator_begin();
asm(R"(
.text
.hidden emulator_begin
emulator_begin:
  subq $24, %rsp
  xorl %ebp, %ebp
  call emulator_run_threads
)");

namespace {

void *make_stack(size_t i) {
  void *const stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) die("no memory for a stack");
  void **const start = (void **)((char *)stack + STACK - i * STAGGER % STAGGERED) - 2;
  *start = (void *)emulator_begin;
  return start;
}

// Gives a block threads of other indices than the last one had.
void shape(Block &b, dim3 size) {
  const size_t count = (size_t)size.x * size.y * size.z;
  b.size = size;
  while (b.fibers.size() < count + 2) {
    void *const start = make_stack(b.fibers.size());
    b.fibers.push_back({start, start, nullptr, 0, {0, 0, 0}});
  }
  b.warps.assign((count + 31) / 32, Warp{});
  dim3 thread = {0, 0, 0};
  for (size_t i = 0; i < count; i++) {
    Fiber &fiber = b.fibers[i + 1];
    fiber.thread = thread;
    if (++thread.x == size.x) thread.x = 0, thread.y++;
    if (thread.y == size.y) thread.y = 0, thread.z++;
    fiber.lane = i % 32;
    fiber.warp = &b.warps[i / 32];
    if (fiber.lane == 0) fiber.warp->fibers = &fiber;
  }
}

}  // namespace

Block::~Block() {
  for (size_t i = 0; i < fibers.size(); i++) munmap((char *)((void **)fibers[i].start + 2) + i * STAGGER % STAGGERED - STACK, STACK);
}

Fiber *next_of_block(const Warp &warp) {
  const Block &b = *here.block;
  const size_t all = b.warps.size(), step = b.backwards ? all - 1 : 1;
  size_t i = (size_t)(&warp - b.warps.data());
  for (size_t n = 0; n < all; n++) {
    i = (i + step) % all;
    // From its first lane on, or its last.
    if (b.warps[i].ready) return next_lane(b.warps[i], b.backwards ? 0 : 31);
  }
  die("the threads of a block wait for each other for ever");
}

Fiber *close_warp(Warp &warp) {
  if (warp.blocked) return next_of_block(warp);
  Brought &brought = warp.brought[warp.generation & 1];
  if (warp.lanes != ~0u) {
    for (unsigned lane = 0; lane < 32; lane++) {
      if (!(warp.lanes >> lane & 1)) brought.value[lane] = 0;
    }
  }
  warp.ready = warp.lanes;
  warp.brought[++warp.generation & 1].votes = 0;
  return nullptr;
}

void open_block() {
  Block &b = *here.block;
  for (Warp &warp : b.warps) {
    warp.ready = warp.lanes;
    warp.blocked = 0;
  }
  b.arrived = 0;
  b.any_of_last = b.any;
  b.any = 0;
  // The other way round from here on: of a grid with one block, too, both orders show.
  turn(b, !b.backwards);
}

void refuse_mask(unsigned mask, const char *what) {
  die(mask >> here.current->lane & 1 ? "only full warps are emulated, in" : "a lane outside the mask takes part in", what);
}

void run_block(dim3 index, dim3 size, dim3 grid, Entry entry, void **arguments) {
  Block &b = block_of_this_thread;
  here = {&b, nullptr, here.gate, index, size, grid};
  b.entry = entry;
  b.arguments = arguments;
  if (size.x != b.size.x || size.y != b.size.y || size.z != b.size.z) shape(b, size);
  b.alive = size.x * size.y * size.z;
  unsigned left = b.alive;
  for (Warp &warp : b.warps) {
    warp.lanes = warp.ready = left < 32 ? ~(~0u << left) : ~0u;
    left -= left < 32 ? left : 32;
  }
  // Every other block begins backwards, so that a forgotten barrier shows.
  turn(b, (index.x + index.y) & 1);
  Warp &first = b.backwards ? b.warps.back() : b.warps.front();
  here.current = next_lane(first, b.backwards ? 0 : 31);
  switch_stack(&b.scheduler, here.current->stack_pointer);
}

}  // namespace emulator
