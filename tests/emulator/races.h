// SPDX-License-Identifier: MPL-2.0
// Which steps of the device (launches, copies, fills) have an order between them, and what they touch: two that have none must not
// touch the same word, unless both only read it or use nothing but relaxed atomic operations: blocks of a grid wait for each other by
// other ones. Memory is looked at in a build with --races only.
//
// Steps run one after the other here, so what a race does to them does not show; that there is one does, in any order. Steps of a
// stream follow each other, as do those of a branch of a graph; events and waits of the host add to that. The host counts as one
// thread: what any of its threads has waited for is before all that follows, which misses races but invents none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace emulator {

#ifdef EMULATOR_RACES
constexpr bool RACES = true;
#else
constexpr bool RACES = false;
#endif

// For each line of steps how many of it are done before.
using Clock = std::vector<uint32_t>;
void join(Clock &clock, const Clock &other);

// A step: which one of its line, and what is before it, itself included.
struct Moment {
  uint32_t id;
  Clock clock;
};
using Moments = std::vector<std::shared_ptr<const Moment>>;

// The step that this thread of the host works on.
extern thread_local const Moment *moment;
struct At {
  const Moment *last = moment;
  explicit At(const Moment *now) { moment = now; }
  ~At() { moment = last; }
};

// A step of a graph: its branch, and how many steps of each branch are before it, itself included.
struct Place {
  const char *name;
  size_t branch;
  Clock clock;
  // True if its blocks wait for each other.
  bool together;
};
inline bool is_before(const Place &place, const Place &other) {
  return place.branch < other.clock.size() && place.clock[place.branch] <= other.clock[place.branch];
}

// The steps of a stream: a line for its own and one for each further branch of its graphs.
class Order {
  std::vector<unsigned> lines;
  Clock clock;
  void need(size_t branches);

 public:
  ~Order();
  std::shared_ptr<const Moment> next(const char *name);
  Moments next(const std::vector<Place> &graph);
  // Clock at which all present work of the stream is done.
  Clock until_now() const;
  // Orders later steps of the stream behind a clock.
  void follow(const Clock &other);
};
// The host has waited for all this.
void host_follows(const Clock &clock);

// Room for memory of the device, where all that touches it is noticed; null where any room does.
void *room(size_t bytes);
void leave_room(void *start, size_t bytes);

enum class Touch { READ, WRITE, ATOMIC };
void touch(uint64_t address, size_t bytes, Touch how);

}  // namespace emulator
