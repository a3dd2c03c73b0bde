// SPDX-License-Identifier: MPL-2.0
// See races.h. The compiler's thread sanitizer puts a call before each access of a kernel to memory; here is what is called.
#include "races.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace emulator {

thread_local const Moment *moment;

namespace {

// A step's name in a word: its line and which of that it is, from 1 on.
constexpr unsigned TIME_BITS = 20;
constexpr uint32_t MOST_STEPS = (1u << TIME_BITS) - 1, MOST_LINES = 1u << (32 - TIME_BITS);

// The last steps that touched a word of four bytes, by kind. Two readers are kept, as there are two branches.
struct Word {
  uint32_t write, atomic, read[2];
};
// The device's memory, no address twice, and the words that stand for it: where neither programs nor libraries are loaded.
constexpr uint64_t DEVICE = 1ull << 44, SIZE = 1ull << 42, WORDS = 1ull << 45;
constexpr size_t SCALE = sizeof(Word) / 4;

std::mutex lock;
Clock host;
std::vector<unsigned> free_lines;
unsigned lines_made;
std::unordered_map<uint32_t, const char *> names;
uint64_t taken = DEVICE;

[[noreturn]] void give_up(const char *why) {
  std::fprintf(stderr, "emulated device: %s\n", why);
  std::abort();
}

uint32_t name_step(unsigned line, uint32_t time, const char *name) {
  if (time > MOST_STEPS) give_up("too many steps to tell apart");
  const uint32_t id = line << TIME_BITS | time;
  names[id] = name;
  return id;
}

bool is_before(uint32_t id, const Moment &now) {
  const uint32_t line = id >> TIME_BITS;
  return line < now.clock.size() && now.clock[line] >= (id & MOST_STEPS);
}

void check(uint32_t &last, const Moment &now, uint64_t address, const char *did, const char *does) {
  const uint32_t id = __atomic_load_n(&last, __ATOMIC_RELAXED);
  if (id == 0 || id == now.id || is_before(id, now)) return;
  std::lock_guard<std::mutex> guard(lock);
  std::fprintf(stderr, "emulated device: nothing orders %s, which %s the word at %#llx, and %s, which %s it\n", names[id], did,
               (unsigned long long)address, names[now.id], does);
  std::abort();
}

void note(uint32_t &last, const Moment &now) { __atomic_store_n(&last, now.id, __ATOMIC_RELAXED); }

}  // namespace

void join(Clock &clock, const Clock &other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

void Order::need(size_t branches) {
  join(clock, host);
  while (lines.size() < branches) {
    if (free_lines.empty()) free_lines.push_back(lines_made++);
    if (lines_made > MOST_LINES) give_up("too many streams to tell apart");
    lines.push_back(free_lines.back());
    free_lines.pop_back();
  }
  if (clock.size() < lines_made) clock.resize(lines_made);
}

Order::~Order() {
  host_follows(clock);
  std::lock_guard<std::mutex> guard(lock);
  free_lines.insert(free_lines.end(), lines.begin(), lines.end());
}

std::shared_ptr<const Moment> Order::next(const char *name) {
  if (!RACES) return nullptr;
  std::lock_guard<std::mutex> guard(lock);
  need(1);
  const uint32_t id = name_step(lines[0], ++clock[lines[0]], name);
  return std::make_shared<Moment>(Moment{id, clock});
}

Moments Order::next(const std::vector<Place> &graph) {
  Moments made(graph.size());
  if (!RACES) return made;
  std::lock_guard<std::mutex> guard(lock);
  need(1);
  for (const Place &place : graph) need(place.branch + 1);
  const Clock start = clock;
  for (size_t i = 0; i < graph.size(); i++) {
    const Place &place = graph[i];
    Clock own = start;
    for (size_t branch = 0; branch < place.clock.size(); branch++) {
      if (place.clock[branch]) own[lines[branch]] += place.clock[branch];
    }
    const unsigned line = lines[place.branch];
    const uint32_t id = name_step(line, own[line], place.name);
    // Steps behind the graph follow all of it.
    join(clock, own);
    made[i] = std::make_shared<Moment>(Moment{id, std::move(own)});
  }
  return made;
}

Clock Order::until_now() const {
  std::lock_guard<std::mutex> guard(lock);
  return clock;
}

void Order::follow(const Clock &other) {
  std::lock_guard<std::mutex> guard(lock);
  join(clock, other);
}

void host_follows(const Clock &clock) {
  if (!RACES) return;
  std::lock_guard<std::mutex> guard(lock);
  join(host, clock);
}

void *room(size_t bytes) {
  if (!RACES) return nullptr;
  std::lock_guard<std::mutex> guard(lock);
  void *const start = (void *)taken, *const words = (void *)(WORDS + (taken - DEVICE) * SCALE);
  if (taken + bytes > DEVICE + SIZE) give_up("no addresses are left");
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (mmap(words, bytes * SCALE, PROT_READ | PROT_WRITE, flags, -1, 0) != words) give_up("no room for what touches memory");
  taken += bytes;
  return start;
}

void leave_room(void *start, size_t bytes) {
  if (RACES) munmap((void *)(WORDS + ((uint64_t)start - DEVICE) * SCALE), bytes * SCALE);
}

void touch(uint64_t address, size_t bytes, Touch how) {
  // First, as most accesses are to memory that a thread or a block has for itself.
  if (!RACES || address - DEVICE >= SIZE || bytes == 0) return;
  const Moment *const now = moment;
  if (!now) return;
  Word *word = (Word *)(WORDS + (address - DEVICE) / 4 * sizeof(Word));
  Word *const last = (Word *)(WORDS + (address + bytes - 1 - DEVICE) / 4 * sizeof(Word));
  for (; word <= last; word++, address += 4) {
    const char *const does = how == Touch::READ ? "reads" : how == Touch::WRITE ? "writes" : "changes";
    check(word->write, *now, address, "writes", does);
    if (how != Touch::ATOMIC) check(word->atomic, *now, address, "changes", does);
    if (how == Touch::READ) {
      const uint32_t first = __atomic_load_n(&word->read[0], __ATOMIC_RELAXED);
      note(word->read[first != 0 && first != now->id && !is_before(first, *now)], *now);
      continue;
    }
    for (uint32_t &read : word->read) check(read, *now, address, "reads", does);
    note(how == Touch::WRITE ? word->write : word->atomic, *now);
  }
}

}  // namespace emulator

using emulator::Touch;
using emulator::touch;

#define CALLED extern "C" void
#define ACCESS(bytes)                                                                       \
  CALLED __tsan_read##bytes(void *at) { touch((uint64_t)at, bytes, Touch::READ); }          \
  CALLED __tsan_write##bytes(void *at) { touch((uint64_t)at, bytes, Touch::WRITE); }        \
  CALLED __tsan_unaligned_read##bytes(void *at) { touch((uint64_t)at, bytes, Touch::READ); } \
  CALLED __tsan_unaligned_write##bytes(void *at) { touch((uint64_t)at, bytes, Touch::WRITE); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
CALLED __tsan_read_range(void *at, size_t bytes) { touch((uint64_t)at, bytes, Touch::READ); }
CALLED __tsan_write_range(void *at, size_t bytes) { touch((uint64_t)at, bytes, Touch::WRITE); }
CALLED __tsan_init() {}
CALLED __tsan_func_entry(void *) {}
CALLED __tsan_func_exit() {}

// Blocks of a grid wait for each other by operations that are not relaxed: such a word is that grid's alone.
static void touch_atomically(const volatile void *at, size_t bytes, int order) {
  touch((uint64_t)at, bytes, order == __ATOMIC_RELAXED ? Touch::ATOMIC : Touch::WRITE);
}
#define CHANGE(bits, name)                                                                                               \
  extern "C" uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t value, int order) { \
    touch_atomically(at, bits / 8, order);                                                                               \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                                                 \
  }
#define ATOMIC(bits)                                                                                                     \
  CHANGE(bits, fetch_add)                                                                                                \
  CHANGE(bits, fetch_sub)                                                                                                \
  CHANGE(bits, fetch_and)                                                                                                \
  CHANGE(bits, fetch_or)                                                                                                 \
  extern "C" uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t *at, uint##bits##_t value, int order) { \
    touch_atomically(at, bits / 8, order);                                                                               \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                                      \
  extern "C" uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order) {                   \
    touch_atomically(at, bits / 8, order);                                                                               \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                        \
  }                                                                                                                      \
  CALLED __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order) {                     \
    touch_atomically(at, bits / 8, order);                                                                               \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                      \
  extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *at, uint##bits##_t *seen,        \
                                                               uint##bits##_t value, int order, int) {                   \
    touch_atomically(at, bits / 8, order);                                                                               \
    return __atomic_compare_exchange_n(at, seen, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
  }
ATOMIC(32)
ATOMIC(64)
