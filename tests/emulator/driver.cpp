// SPDX-License-Identifier: MPL-2.0
// A libcuda.so.1 whose device is this machine's processor: the driver calls that the CUDA backend and GStreamer's CUDA
// library (1.22 to 1.26) make, for kernels compiled by the host's compiler, which fibers.cpp runs. It lets the CUDA backend be
// tested without a GPU, and fail on demand. It says nothing about speed, nor about the memory model of a real device.
//
// Grids run one after the other, those of branches of a graph and of several streams, too. What may run at the same time is looked at
// instead: a graph in which nothing orders two grids whose blocks wait for each other ends the program, and with `build.py --races` so
// do all launches and copies that nothing orders and that touch the same memory; see races.h.
// A stream is worked off at once, in the call, or as late as may be: see EMULATOR_LAZY. Graphs are made of nodes; nothing captures a
// stream.
// Every allocation ends before a page that nothing may touch, and starts filled with a pattern. Memory and streams belong to the context that was current when they
// were made, and are refused in another; so that a test finds what a real device would not survive. Environment, read at each use:
//   EMULATOR_LAZY=1            what is on a stream is done when somebody waits for it: a missing wait shows
//   EMULATOR_THREADS=N         threads of the host that run the blocks of a large grid (default: all)
//   EMULATOR_BACKWARDS=1       the blocks of a grid run from the last to the first; of the nodes of a graph that could be next the
//                              one that was added last is, so that what branches share shows
//   EMULATOR_EARLY=1           of a grid that may be set up early, by the edge to its node, three blocks go up to their wait before
//                              the grid before has begun, so that what they read too early is wrong (with EMULATOR_CAPABILITY=90)
//   EMULATOR_MEMORY=BYTES      size of the device's memory (default: 4 GiB)
//   EMULATOR_CAPABILITY=90     compute capability, times ten (default: 75)
//   EMULATOR_MULTIPROCESSORS=N multiprocessors (default: 2); blocks that wait for each other are as many threads of the host
//   EMULATOR_INTEGRATED=1      the device has no memory of its own, and reads the host's
//   EMULATOR_NO_CODE=1         machine code does not load, only PTX
//   EMULATOR_REJECT=NAME       a module with a kernel of this name does not load
//   EMULATOR_FAIL_AFTER=N      the device breaks at the Nth launch of the process: every later call reports it, until the
//                              context has been given back by all who hold it
#include <elf.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

// Last: its words are CUDA's, and some of them the library's own.
#include "cuda.h"
#include "races.h"

namespace emulator {

void die(const char *why, const char *what) {
  std::fprintf(stderr, "emulated device: %s %s\n", why, what);
  std::abort();
}

namespace {

// A kernel; true if it waits for the grid before in its first statement.
struct Kernel {
  Entry entry;
  bool waits_first;
};
std::map<std::string, Kernel> &kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

}  // namespace

}  // namespace emulator

unsigned wait_for_change(const unsigned *at, unsigned old) {
  emulator::touch((uint64_t)at, sizeof *at, emulator::Touch::WRITE);
  unsigned value;
  // Sleeps: spinning would take the core from the thread that is waited for.
  while ((value = __atomic_load_n(at, __ATOMIC_ACQUIRE)) == old) syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
  return value;
}

void store_release(unsigned *at, unsigned value) {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

namespace emulator {

// Stops blocks that are set up while the grid before still runs, until that has ended.
struct Gate {
  std::mutex lock;
  std::condition_variable changed;
  bool open = false;
  // True where no thread does anything before it waits: then the first one waits for all.
  bool at_first = false;
  unsigned ahead = 0, running = 0;

  void stop_here() {
    std::unique_lock<std::mutex> guard(lock);
    ahead--;
    changed.notify_all();
    changed.wait(guard, [this] { return open; });
  }
};

void wait_at_gate() {
  // All threads of the block have done what they do early.
  if (!here.gate->at_first) meet_block(0);
  if (!here.gate) return;
  Gate *const at = here.gate;
  here.gate = nullptr;
  at->stop_here();
}

Registration::Registration(const char *name, Entry entry, bool waits_first) { kernels()[name] = {entry, waits_first}; }

}  // namespace emulator

namespace {

using namespace emulator;
using Result = int;
enum : Result {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_BINARY_FOR_GPU = 209,
  INVALID_PTX = 218,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  CONTEXT_DESTROYED = 709,
  NOT_SUPPORTED = 801,
};

struct Function {
  std::string name;
  Kernel kernel;
};
struct Module {
  std::map<std::string, Function> functions;
};
// A grid with its arguments.
struct Grid {
  const char *name;
  Kernel kernel;
  dim3 blocks, size;
  std::vector<std::vector<char>> arguments;
  // True if its blocks wait for each other.
  bool together = false;
};
struct Node {
  Grid grid;
  // Nodes before it; true with one while which it may be set up.
  std::vector<std::pair<Node *, bool>> after;
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
// A node as it is launched.
struct Step {
  std::shared_ptr<const Grid> grid;
  Place place;
  // True if it may be set up while the step before it runs.
  bool early = false;
};
using Steps = std::vector<Step>;
struct Context {
  bool alive = true;
};
struct Stream {
  Order order;
  // Neither waits for the default stream nor is waited for by it.
  bool independent = false;
  Context *context = nullptr;
  std::deque<std::function<Result()>> waiting;
};
// State of a recorded event: if its stream has passed it, and when.
struct Mark {
  bool passed = false;
  Stream *stream = nullptr;
  // Steps of all streams before it.
  Clock clock;
  std::chrono::steady_clock::time_point time;
};
struct Event {
  std::shared_ptr<Mark> mark;
};

std::mutex lock;
struct Allocation {
  void *pages;
  size_t length, bytes;
  Context *context;
  bool mapped;  // of the host's memory: the device reaches it
};
std::map<uint64_t, Allocation> memory, pinned;
size_t memory_used;
std::atomic<int> holders{0};
std::atomic<long> launches{0};
std::atomic<bool> broken{false};
// Contexts are never freed, so that one that is used after its end is noticed.
thread_local std::vector<Context *> stack;
Context primary;
// Never destroyed: others may still use it at the end of the process.
Stream &default_stream = *new Stream;
// Held while work that waited is done: an operation of one stream may do those of another.
std::recursive_mutex at_work;
std::set<Stream *> streams;
Context *bound() { return stack.empty() ? nullptr : stack.back(); }

long setting(const char *name, long otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::atol(text) : otherwise;
}

size_t memory_size() { return (size_t)setting("EMULATOR_MEMORY", 4l << 30); }

void *take(std::map<uint64_t, Allocation> &from, size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
  char *start = (char *)mmap(room(pages + page), pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  mprotect(start + pages, page, PROT_NONE);
  char *out = start + (pages - bytes) / 256 * 256;
  from[(uint64_t)out] = {start, pages + page, bytes, bound(), false};
  return out;
}

Result give(std::map<uint64_t, Allocation> &to, uint64_t address) {
  const auto found = to.find(address);
  if (found == to.end()) return INVALID_VALUE;
  munmap(found->second.pages, found->second.length);
  leave_room(found->second.pages, found->second.length);
  to.erase(found);
  return SUCCESS;
}

// Returns true if a context's memory holds these bytes.
bool holds(uint64_t address, size_t bytes, const Context *context) {
  if (bytes == 0) return true;
  std::lock_guard<std::mutex> guard(lock);
  for (const auto *all : {&memory, &pinned}) {
    auto after = all->upper_bound(address);
    if (after == all->begin()) continue;
    --after;
    const Allocation &own = after->second;
    if (address + bytes <= after->first + own.bytes) return own.context == context && (all == &memory || own.mapped);
  }
  return false;
}

// 1 and 2 name default streams, too, of which there is one here.
bool is_default(const void *handle) { return (uintptr_t)handle <= 2; }
Stream &stream_of(void *handle) { return is_default(handle) ? default_stream : *(Stream *)handle; }

Result usable() {
  if (broken) return ILLEGAL_ADDRESS;
  if (!bound()) return INVALID_CONTEXT;
  return bound()->alive ? SUCCESS : CONTEXT_DESTROYED;
}

// The default stream follows what is on the others by now, and they follow it.
void follow_default(Stream &stream) {
  if (!RACES || stream.independent) return;
  if (&stream != &default_stream) return stream.order.follow(default_stream.order.until_now());
  std::lock_guard<std::recursive_mutex> guard(at_work);
  for (const Stream *other : streams) {
    if (!other->independent) stream.order.follow(other->order.until_now());
  }
}

Result submit(void *handle, const char *name, std::function<Result()> call) {
  if (const Result refused = usable()) return refused;
  Stream &stream = stream_of(handle);
  if (!is_default(handle) && stream.context != bound()) return INVALID_CONTEXT;
  follow_default(stream);
  auto step = [moment = stream.order.next(name), call = std::move(call)] {
    const At here(moment.get());
    return call();
  };
  if (!setting("EMULATOR_LAZY", 0)) return step();
  std::lock_guard<std::recursive_mutex> guard(at_work);
  stream.waiting.push_back(std::move(step));
  return SUCCESS;
}

// Does what waits on a stream, up to a mark if there is one.
Result work_off(Stream &stream, const Mark *until = nullptr) {
  std::lock_guard<std::recursive_mutex> guard(at_work);
  while (!stream.waiting.empty() && !(until && until->passed)) {
    const std::function<Result()> call = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    if (const Result result = call()) return result;
  }
  return broken ? ILLEGAL_ADDRESS : SUCCESS;
}

// Does all that waits on a stream, for the host, which goes on behind it.
Result wait_for(Stream &stream) {
  host_follows(stream.order.until_now());
  return work_off(stream);
}

// Does all that waits; as calls do that the driver cannot let overtake a stream.
Result work_off_all() {
  std::lock_guard<std::recursive_mutex> guard(at_work);
  Result first = wait_for(default_stream);
  for (Stream *stream : std::set<Stream *>(streams)) {
    if (const Result result = wait_for(*stream)) first = first ? first : result;
  }
  return first;
}

// Returns true if memory of the host is pinned: the driver reads and writes other memory before a call returns.
bool is_pinned(uint64_t address, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  auto after = pinned.upper_bound(address);
  if (after == pinned.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second.bytes;
}

Result copy(void *stream, uint64_t to, uint64_t from, size_t bytes, bool to_device, bool from_device) {
  Context *context = bound();
  std::shared_ptr<std::vector<char>> staged;
  if (!from_device && !is_pinned(from, bytes)) {
    staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
  }
  const Result result = submit(stream, "a copy", [=] {
    if ((to_device && !holds(to, bytes, context)) || (from_device && !holds(from, bytes, context))) return (Result)INVALID_VALUE;
    touch(from, bytes, Touch::READ);
    touch(to, bytes, Touch::WRITE);
    std::memcpy((void *)to, staged ? (const void *)staged->data() : (const void *)from, bytes);
    return (Result)SUCCESS;
  });
  const bool waits = !stream || (!to_device && !is_pinned(to, bytes));
  return result || !waits ? result : wait_for(stream_of(stream));
}

Result set(void *stream, uint64_t to, unsigned char value, size_t bytes) {
  Context *context = bound();
  const Result result = submit(stream, "a fill", [=] {
    if (!holds(to, bytes, context)) return (Result)INVALID_VALUE;
    touch(to, bytes, Touch::WRITE);
    std::memset((void *)to, value, bytes);
    return (Result)SUCCESS;
  });
  return result || stream ? result : wait_for(default_stream);
}

// Threads of the host, kept with their fibers' stacks. Never too few: whoever starts something needs it to run at once.
class Workers {
  std::mutex lock;
  std::condition_variable more;
  std::vector<std::function<void()>> waiting;
  size_t idle = 0;

  void serve() {
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
      while (waiting.empty()) more.wait(guard);
      const std::function<void()> job = std::move(waiting.back());
      waiting.pop_back();
      guard.unlock();
      job();
      guard.lock();
      idle++;
    }
  }

 public:
  void start(std::function<void()> job) {
    std::lock_guard<std::mutex> guard(lock);
    waiting.push_back(std::move(job));
    if (idle == 0) {
      std::thread([this] { serve(); }).detach();
    } else {
      idle--;
    }
    more.notify_one();
  }
};

Workers &workers() {
  // Never destroyed: its threads may outlive everything.
  static Workers *all = new Workers;
  return *all;
}

// Blocks of a grid that are set up before the grid before runs: the first, one in the middle, the last.
struct Ahead {
  Gate gate;
  std::set<size_t> blocks;
};
std::vector<void *> pointers_of(const Grid &grid) {
  std::vector<void *> pointers;
  for (const auto &argument : grid.arguments) pointers.push_back((void *)argument.data());
  return pointers;
}
void run_one(const Grid &grid, size_t i, std::vector<void *> &pointers) {
  const size_t row = i / grid.blocks.x;
  const dim3 index = {(unsigned)(i % grid.blocks.x), (unsigned)(row % grid.blocks.y), (unsigned)(row / grid.blocks.y)};
  run_block(index, grid.size, grid.blocks, grid.kernel.entry, pointers.data());
}
void run_ahead(Ahead &ahead, const Grid &grid) {
  const size_t blocks = (size_t)grid.blocks.x * grid.blocks.y * grid.blocks.z;
  ahead.blocks = {0, blocks / 2, blocks - 1};
  Gate &gate = ahead.gate;
  gate.open = false;
  gate.at_first = grid.kernel.waits_first;
  gate.ahead = gate.running = (unsigned)ahead.blocks.size();
  for (const size_t i : ahead.blocks) {
    workers().start([&, i] {
      here.gate = &gate;
      std::vector<void *> pointers = pointers_of(grid);
      run_one(grid, i, pointers);
      std::lock_guard<std::mutex> guard(gate.lock);
      // One that ended without a wait.
      if (here.gate) gate.ahead--;
      here.gate = nullptr;
      gate.running--;
      gate.changed.notify_all();
    });
  }
  std::unique_lock<std::mutex> guard(gate.lock);
  gate.changed.wait(guard, [&] { return gate.ahead == 0; });
}
void let_on(Ahead &ahead) {
  std::lock_guard<std::mutex> guard(ahead.gate.lock);
  ahead.gate.open = true;
  ahead.gate.changed.notify_all();
}
void await(Ahead &ahead) {
  std::unique_lock<std::mutex> guard(ahead.gate.lock);
  ahead.gate.changed.wait(guard, [&] { return ahead.gate.running == 0; });
  ahead.blocks.clear();
}

Result run(const Grid &grid, Ahead *ahead = nullptr) {
  if (ahead) let_on(*ahead);
  if (!broken && ++launches == setting("EMULATOR_FAIL_AFTER", 0)) broken = true;
  if (broken) {
    if (ahead) await(*ahead);
    return ILLEGAL_ADDRESS;
  }
  const size_t blocks = (size_t)grid.blocks.x * grid.blocks.y * grid.blocks.z;
  size_t threads = (size_t)setting("EMULATOR_THREADS", (long)std::thread::hardware_concurrency());
  threads = grid.together ? blocks : std::max<size_t>(1, std::min(threads, blocks / 64));
  const bool backwards = setting("EMULATOR_BACKWARDS", 0);
  std::atomic<size_t> next{0};
  auto work = [&, now = moment] {
    const At here(now);
    std::vector<void *> pointers = pointers_of(grid);
    for (size_t n; (n = next++) < blocks;) {
      const size_t i = backwards ? blocks - 1 - n : n;
      if (!ahead || !ahead->blocks.count(i)) run_one(grid, i, pointers);
    }
  };
  size_t left = threads - 1;
  std::mutex lock;
  std::condition_variable ended;
  for (size_t i = 1; i < threads; i++) {
    workers().start([&] {
      work();
      // The last one's last use of what lies on this stack is under the lock.
      std::lock_guard<std::mutex> guard(lock);
      if (--left == 0) ended.notify_one();
    });
  }
  work();
  {
    std::unique_lock<std::mutex> guard(lock);
    ended.wait(guard, [&] { return left == 0; });
  }
  if (ahead) await(*ahead);
  return SUCCESS;
}

// Written by build.py: the sizes of each kernel's parameters.
#include "kernels.inc"

// A block has 48 KiB of shared memory, and the kernels that ask for some with the launch declare 20 of them.
constexpr unsigned MOST_SHARED = 28 << 10;

// Makes a grid of what a program gives.
Result make_grid(Grid &made, void *function, dim3 blocks, dim3 size, unsigned shared, void **arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.y > 65535 || blocks.z > 65535 || size.x == 0 || size.x > 1024 || shared > MOST_SHARED) return INVALID_VALUE;
  const Function &f = *(const Function *)function;
  const auto sizes = parameter_sizes().find(f.name);
  if (sizes == parameter_sizes().end()) return NOT_FOUND;
  made = {sizes->first.c_str(), f.kernel, blocks, size, {}};
  for (size_t i = 0; i < sizes->second.size(); i++) {
    made.arguments.emplace_back((char *)arguments[i], (char *)arguments[i] + sizes->second[i]);
  }
  return SUCCESS;
}

Result launch(void *function, dim3 blocks, dim3 size, unsigned shared, void *stream, void **arguments, bool together) {
  const auto grid = std::make_shared<Grid>();
  if (const Result refused = make_grid(*grid, function, blocks, size, shared, arguments)) return refused;
  grid->together = together;
  return submit(stream, grid->name, [grid] { return run(*grid); });
}

// The nodes of a graph in an order that its edges allow, with their places.
Steps steps_of(const Graph &graph) {
  const bool backwards = setting("EMULATOR_BACKWARDS", 0);
  std::vector<const Node *> waiting, order;
  for (const auto &node : graph.nodes) waiting.push_back(node.get());
  if (backwards) std::reverse(waiting.begin(), waiting.end());
  std::map<const Node *, Place> places;
  const auto is_ready = [&](const Node *node) {
    return std::all_of(node->after.begin(), node->after.end(), [&](const auto &edge) { return places.count(edge.first); });
  };
  // The last node of each branch.
  std::vector<const Node *> ends;
  Steps steps;
  while (!waiting.empty()) {
    const auto found = std::find_if(waiting.begin(), waiting.end(), is_ready);
    if (found == waiting.end()) die("the nodes of a graph wait for each other");
    const Node *node = *found;
    waiting.erase(found);
    Place place = {node->grid.name, ends.size(), {}, node->grid.together};
    for (const auto &edge : node->after) {
      const Place &before = places.at(edge.first);
      join(place.clock, before.clock);
      if (ends[before.branch] == edge.first) place.branch = std::min(place.branch, before.branch);
    }
    if (place.branch == ends.size()) ends.push_back(nullptr);
    place.clock.resize(std::max(place.clock.size(), ends.size()));
    place.clock[place.branch]++;
    const bool early = node->after.size() == 1 && node->after[0].second && !order.empty() && order.back() == node->after[0].first;
    ends[place.branch] = node;
    order.push_back(node);
    steps.push_back({std::make_shared<Grid>(node->grid), place, early});
    places[node] = std::move(place);
  }
  return steps;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) Result
#define UNLESS_BROKEN \
  do {                \
    if (broken) return ILLEGAL_ADDRESS; \
  } while (0)
#define UNLESS_UNUSABLE \
  do {                  \
    if (const Result refused = usable()) return refused; \
  } while (0)

API cuInit(unsigned) { return SUCCESS; }
API cuDriverGetVersion(int *version) {
  *version = 13000;
  return SUCCESS;
}
API cuGetErrorName(Result error, const char **out) {
  *out = error == SUCCESS           ? "CUDA_SUCCESS"
         : error == OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
         : error == NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
         : error == INVALID_PTX     ? "CUDA_ERROR_INVALID_PTX"
         : error == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
         : error == CONTEXT_DESTROYED ? "CUDA_ERROR_CONTEXT_IS_DESTROYED"
         : error == NOT_FOUND       ? "CUDA_ERROR_NOT_FOUND"
         : error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                    : "CUDA_ERROR_INVALID_VALUE";
  return SUCCESS;
}
API cuGetErrorString(Result error, const char **out) {
  *out = error == SUCCESS           ? "no error"
         : error == OUT_OF_MEMORY   ? "out of memory"
         : error == NO_BINARY_FOR_GPU ? "no kernel image is available for execution on the device"
         : error == INVALID_PTX     ? "a PTX JIT compilation failed"
         : error == INVALID_CONTEXT ? "invalid device context"
         : error == CONTEXT_DESTROYED ? "context is destroyed"
         : error == NOT_FOUND       ? "named symbol not found"
         : error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                    : "invalid argument";
  return SUCCESS;
}
API cuDeviceGetCount(int *count) {
  *count = 1;
  return SUCCESS;
}
API cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? SUCCESS : 101;
}
API cuDeviceGetName(char *name, int length, int) {
  std::snprintf(name, (size_t)length, "emulated device");
  return SUCCESS;
}
API cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = memory_size();
  return SUCCESS;
}
API cuDeviceGetAttribute(int *value, int attribute, int) {
  switch (attribute) {
    case 14: *value = 512; break;  // alignment of textures
    case 16: *value = (int)setting("EMULATOR_MULTIPROCESSORS", 2); break;
    case 75: *value = (int)setting("EMULATOR_CAPABILITY", 75) / 10; break;  // major
    case 76: *value = (int)setting("EMULATOR_CAPABILITY", 75) % 10; break;  // minor
    case 1: *value = 1024; break;  // threads a block
    case 8: *value = 48 << 10; break;
    case 10: *value = 32; break;
    case 18: case 19: *value = (int)setting("EMULATOR_INTEGRATED", 0); break;  // no memory of its own; maps the host's
    case 39: *value = 1024; break;  // threads a multiprocessor
    case 95: *value = 1; break;     // cooperative launches
    default: *value = 0;            // no memory pools among them
  }
  return SUCCESS;
}
API cuDevicePrimaryCtxRetain(void **context, int) {
  // A context that broke stays broken for those who hold it.
  UNLESS_BROKEN;
  holders++;
  *context = &primary;
  return SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(int) {
  if (--holders == 0) broken = false;
  return SUCCESS;
}
API cuDevicePrimaryCtxReset_v2(int) {
  broken = false;
  return SUCCESS;
}
API cuCtxGetCurrent(void **context) {
  *context = bound();
  return SUCCESS;
}
API cuCtxGetDevice(int *device) {
  // As a real driver has it, also of a context that has ended.
  if (!bound()) return INVALID_CONTEXT;
  *device = 0;
  return SUCCESS;
}
API cuCtxGetApiVersion(void *context, unsigned *version) {
  const Context *asked = context ? (Context *)context : bound();
  if (!asked) return INVALID_CONTEXT;
  if (!asked->alive) return context ? INVALID_CONTEXT : CONTEXT_DESTROYED;
  *version = 3020;
  return SUCCESS;
}
API cuCtxSetCurrent(void *context) {
  // A real driver reads what is no longer there.
  if (context && !((Context *)context)->alive) die("an ended context is made current");
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back((Context *)context);
  return SUCCESS;
}
API cuCtxPushCurrent_v2(void *context) {
  if (!context) return INVALID_CONTEXT;
  stack.push_back((Context *)context);
  return SUCCESS;
}
API cuCtxPopCurrent_v2(void **context) {
  if (stack.empty()) return INVALID_CONTEXT;
  if (context) *context = stack.back();
  stack.pop_back();
  return SUCCESS;
}
API cuCtxCreate_v2(void **context, unsigned, int device) {
  UNLESS_BROKEN;
  if (device != 0) return 101;
  holders++;
  *context = new Context;
  stack.push_back((Context *)*context);
  return SUCCESS;
}
API cuCtxDestroy_v2(void *context) {
  Context *gone = (Context *)context;
  if (!gone || gone == &primary || !gone->alive) return INVALID_CONTEXT;
  work_off_all();
  gone->alive = false;
  if (bound() == gone) stack.pop_back();
  if (--holders == 0) broken = false;
  // Memory of a context ends with it.
  std::lock_guard<std::mutex> guard(lock);
  for (auto *kind : {&memory, &pinned}) {
    for (auto at = kind->begin(); at != kind->end();) {
      const auto next = std::next(at);
      if (at->second.context == gone) {
        if (kind == &memory) memory_used -= at->second.bytes;
        give(*kind, at->first);
      }
      at = next;
    }
  }
  return SUCCESS;
}
API cuCtxEnablePeerAccess(void *, unsigned) { return NOT_SUPPORTED; }
API cuCtxDisablePeerAccess(void *) { return NOT_SUPPORTED; }
API cuDeviceCanAccessPeer(int *can, int, int) {
  *can = 0;
  return SUCCESS;
}
API cuCtxSynchronize() {
  UNLESS_UNUSABLE;
  return work_off_all();
}
API cuStreamCreate(void **stream, unsigned flags) {
  UNLESS_UNUSABLE;
  Stream *made = new Stream;
  made->context = bound();
  made->independent = flags & 1;
  std::lock_guard<std::recursive_mutex> guard(at_work);
  streams.insert(made);
  *stream = made;
  return SUCCESS;
}
API cuStreamCreateWithPriority(void **stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
API cuStreamDestroy_v2(void *stream) {
  std::lock_guard<std::recursive_mutex> guard(at_work);
  work_off_all();
  streams.erase((Stream *)stream);
  delete (Stream *)stream;
  return SUCCESS;
}
API cuStreamDestroy(void *stream) { return cuStreamDestroy_v2(stream); }
API cuStreamSynchronize(void *stream) {
  UNLESS_BROKEN;
  return wait_for(stream_of(stream));
}
API cuStreamWaitEvent(void *stream, void *event, unsigned) {
  const std::shared_ptr<Mark> mark = ((Event *)event)->mark;
  if (mark) stream_of(stream).order.follow(mark->clock);
  return submit(stream, "a wait", [mark] { return !mark || mark->passed ? (Result)SUCCESS : work_off(*mark->stream, mark.get()); });
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  UNLESS_UNUSABLE;
  *least = 0;
  *greatest = -5;
  return SUCCESS;
}
API cuGraphCreate(void **graph, unsigned) {
  UNLESS_BROKEN;
  *graph = new Graph;
  return SUCCESS;
}
// CUDA_KERNEL_NODE_PARAMS of 12.0.
struct KernelNode {
  void *function;
  unsigned gx, gy, gz, bx, by, bz, shared;
  void **arguments, **extra;
  void *kernel, *context;
};
API cuGraphAddKernelNode_v2(void **node, void *graph, void *const *before, size_t count, const KernelNode *given) {
  UNLESS_UNUSABLE;
  const KernelNode &g = *given;
  auto made = std::make_unique<Node>();
  const Result refused = make_grid(made->grid, g.function, {g.gx, g.gy, g.gz}, {g.bx, g.by, g.bz}, g.shared, g.arguments);
  if (refused) return refused;
  for (size_t i = 0; i < count; i++) made->after.emplace_back((Node *)before[i], false);
  *node = made.get();
  ((Graph *)graph)->nodes.push_back(std::move(made));
  return SUCCESS;
}
// CUgraphEdgeData.
struct Edge {
  uint8_t from_port, to_port, type, reserved[5];
};
API cuGraphAddDependencies_v2(void *, void *const *from, void *const *to, const Edge *edges, size_t count) {
  UNLESS_BROKEN;
  for (size_t i = 0; i < count; i++) {
    const Edge edge = edges ? edges[i] : Edge{};
    // Of kernels only: a programmatic edge begins at the port of that name.
    if (edge.type > 1 || edge.from_port != edge.type || edge.to_port) return INVALID_VALUE;
    ((Node *)to[i])->after.emplace_back((Node *)from[i], edge.type == 1);
  }
  return SUCCESS;
}
// 2: its blocks wait for each other, 8: its priority.
API cuGraphKernelNodeSetAttribute(void *node, int attribute, const int *value) {
  UNLESS_BROKEN;
  if (attribute == 2) ((Node *)node)->grid.together = *value != 0;
  return attribute == 2 || attribute == 8 ? SUCCESS : INVALID_VALUE;
}
API cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
  UNLESS_BROKEN;
  Steps steps = steps_of(*(const Graph *)graph);
  // Each could have some of the multiprocessors that the other waits for.
  for (const Step &step : steps) {
    for (const Step &other : steps) {
      if (&step == &other || !step.place.together || !other.place.together) continue;
      if (is_before(step.place, other.place) || is_before(other.place, step.place)) continue;
      const std::string both = std::string(step.place.name) + " and " + other.place.name;
      die("blocks wait for each other in two grids that nothing orders:", both.c_str());
    }
  }
  *exec = new Steps(std::move(steps));
  return SUCCESS;
}
API cuGraphLaunch(void *exec, void *stream) {
  const Steps steps = *(const Steps *)exec;
  std::vector<Place> places;
  for (const Step &step : steps) places.push_back(step.place);
  follow_default(stream_of(stream));
  const Moments moments = stream_of(stream).order.next(places);
  return submit(stream, "a graph", [steps, moments] {
    const bool early = setting("EMULATOR_EARLY", 0);
    std::unique_ptr<Ahead> ahead, next;
    for (size_t i = 0; i < steps.size(); i++) {
      const At here(moments[i].get());
      if (!broken && early && i + 1 < steps.size() && steps[i + 1].early) {
        next = std::make_unique<Ahead>();
        run_ahead(*next, *steps[i + 1].grid);
      }
      const Result result = run(*steps[i].grid, ahead.get());
      ahead = std::move(next);
      if (result) {
        if (ahead) let_on(*ahead), await(*ahead);
        return result;
      }
    }
    return (Result)SUCCESS;
  });
}
API cuGraphUpload(void *, void *) { return SUCCESS; }
API cuGraphDestroy(void *graph) {
  delete (Graph *)graph;
  return SUCCESS;
}
API cuGraphExecDestroy(void *exec) {
  delete (Steps *)exec;
  return SUCCESS;
}
API cuEventCreate(void **event, unsigned) {
  UNLESS_BROKEN;
  *event = new Event;
  return SUCCESS;
}
API cuEventDestroy_v2(void *event) {
  delete (Event *)event;
  return SUCCESS;
}
API cuEventRecord(void *event, void *stream) {
  const auto mark = std::make_shared<Mark>();
  mark->stream = &stream_of(stream);
  ((Event *)event)->mark = mark;
  mark->clock = mark->stream->order.until_now();
  return submit(stream, "a record", [mark] {
    mark->time = std::chrono::steady_clock::now();
    mark->passed = true;
    return (Result)SUCCESS;
  });
}
API cuEventSynchronize(void *event) {
  UNLESS_BROKEN;
  const std::shared_ptr<Mark> mark = ((Event *)event)->mark;
  std::lock_guard<std::recursive_mutex> guard(at_work);
  if (mark) host_follows(mark->clock);
  return !mark || mark->passed ? SUCCESS : work_off(*mark->stream, mark.get());
}
API cuEventQuery(void *event) { return cuEventSynchronize(event); }
API cuEventElapsedTime(float *ms, void *from, void *to) {
  if (const Result result = cuEventSynchronize(from)) return result;
  if (const Result result = cuEventSynchronize(to)) return result;
  *ms = std::chrono::duration<float, std::milli>(((Event *)to)->mark->time - ((Event *)from)->mark->time).count();
  return SUCCESS;
}
API cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  UNLESS_UNUSABLE;
  std::lock_guard<std::mutex> guard(lock);
  if (bytes == 0) return INVALID_VALUE;
  if (memory_used + bytes > memory_size()) return OUT_OF_MEMORY;
  void *start = take(memory, bytes);
  if (!start) return OUT_OF_MEMORY;
  std::memset(start, 0xa5, std::min<size_t>(bytes, 1 << 20));
  memory_used += bytes;
  *address = (uint64_t)start;
  return SUCCESS;
}
API cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned) {
  // Wider than what any format asks for, so that who takes a pitch for a width is noticed.
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc_v2(address, *pitch * height);
}
API cuMemFree_v2(uint64_t address) {
  work_off_all();
  std::lock_guard<std::mutex> guard(lock);
  const auto found = memory.find(address);
  if (found != memory.end()) memory_used -= found->second.bytes;
  return give(memory, address);
}
API cuMemGetInfo_v2(size_t *free, size_t *total) {
  UNLESS_BROKEN;
  std::lock_guard<std::mutex> guard(lock);
  *total = memory_size();
  *free = *total > memory_used ? *total - memory_used : 0;
  return SUCCESS;
}
// The device and the context of memory.
API cuPointerGetAttribute(void *out, int attribute, uint64_t address) {
  std::lock_guard<std::mutex> guard(lock);
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return INVALID_VALUE;
  --after;
  if (address >= after->first + after->second.bytes) return INVALID_VALUE;
  switch (attribute) {
    case 1: *(Context **)out = after->second.context; return SUCCESS;
    case 9: *(int *)out = 0; return SUCCESS;
    default: return INVALID_VALUE;
  }
}
API cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
  UNLESS_UNUSABLE;
  std::lock_guard<std::mutex> guard(lock);
  *start = take(pinned, bytes);
  if (*start) pinned[(uint64_t)*start].mapped = flags & 2;
  return *start ? SUCCESS : OUT_OF_MEMORY;
}
API cuMemHostGetDevicePointer_v2(uint64_t *address, void *start, unsigned) {
  UNLESS_UNUSABLE;
  std::lock_guard<std::mutex> guard(lock);
  const auto found = pinned.find((uint64_t)start);
  if (found == pinned.end() || !found->second.mapped || found->second.context != bound()) return INVALID_VALUE;
  *address = found->first;
  return SUCCESS;
}
API cuMemAllocHost_v2(void **start, size_t bytes) { return cuMemHostAlloc(start, bytes, 0); }
API cuMemFreeHost(void *start) {
  work_off_all();
  std::lock_guard<std::mutex> guard(lock);
  return give(pinned, (uint64_t)start);
}
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  return copy(stream, to, (uint64_t)from, bytes, true, false);
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  return copy(stream, (uint64_t)to, from, bytes, false, true);
}
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return copy(stream, to, from, bytes, true, true);
}
API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return copy(nullptr, to, (uint64_t)from, bytes, true, false);
}
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return copy(nullptr, (uint64_t)to, from, bytes, false, true);
}
// CUDA_MEMCPY2D.
struct Copy2D {
  struct End {
    size_t x, y;
    int type;  // 1: host, 2: device, 4: whatever the address is
    const void *host;
    uint64_t device;
    void *array;
    size_t pitch;
  } from, to;
  size_t width, height;
};
static_assert(sizeof(Copy2D) == 128, "as in cuda.h");
API cuMemcpy2DAsync_v2(const Copy2D *given, void *stream) {
  const Copy2D c = *given;
  Context *context = bound();
  const Result result = submit(stream, "a copy", [c, context] {
    const auto start = [](const Copy2D::End &end, size_t y) {
      const uint64_t base = end.type == 1 ? (uint64_t)end.host : end.device;
      return base + (end.y + y) * end.pitch + end.x;
    };
    for (const auto *end : {&c.from, &c.to}) {
      if (end->type != 1 && end->type != 2) return (Result)NOT_SUPPORTED;
      if (end->pitch < c.width) return (Result)INVALID_VALUE;
      if (end->type == 2 && !holds(start(*end, 0), (c.height - 1) * end->pitch + c.width, context)) return (Result)INVALID_VALUE;
    }
    for (size_t y = 0; y < c.height; y++) {
      touch(start(c.from, y), c.width, Touch::READ);
      touch(start(c.to, y), c.width, Touch::WRITE);
      std::memcpy((void *)start(c.to, y), (const void *)start(c.from, y), c.width);
    }
    return (Result)SUCCESS;
  });
  const auto pageable = [&](const Copy2D::End &end) {
    const uint64_t first = (uint64_t)end.host + end.y * end.pitch + end.x;
    return end.type == 1 && !is_pinned(first, (c.height - 1) * end.pitch + c.width);
  };
  const bool waits = !stream || pageable(c.from) || pageable(c.to);
  return result || !waits ? result : wait_for(stream_of(stream));
}
API cuMemcpy2D_v2(const Copy2D *copy) { return cuMemcpy2DAsync_v2(copy, nullptr); }

// Asked for by GStreamer's library when it is loaded; nothing here shares with a window system.
#define NOT_HERE(name) API name() { return NOT_SUPPORTED; }
NOT_HERE(cuGraphicsMapResources)
NOT_HERE(cuGraphicsUnmapResources)
NOT_HERE(cuGraphicsUnregisterResource)
NOT_HERE(cuGraphicsGLRegisterImage)
NOT_HERE(cuGraphicsGLRegisterBuffer)
NOT_HERE(cuGLGetDevices_v2)
NOT_HERE(cuGraphicsResourceSetMapFlags_v2)
NOT_HERE(cuGraphicsSubResourceGetMappedArray)
NOT_HERE(cuGraphicsResourceGetMappedPointer_v2)
NOT_HERE(cuTexObjectCreate)
NOT_HERE(cuTexObjectDestroy)
// Functions that the library of GStreamer 1.26 looks up in addition.
NOT_HERE(cuCtxGetLimit)
NOT_HERE(cuCtxSetLimit)
NOT_HERE(cuDestroyExternalMemory)
NOT_HERE(cuDestroyExternalSemaphore)
NOT_HERE(cuExternalMemoryGetMappedBuffer)
NOT_HERE(cuExternalMemoryGetMappedMipmappedArray)
NOT_HERE(cuImportExternalMemory)
NOT_HERE(cuImportExternalSemaphore)
NOT_HERE(cuIpcCloseMemHandle)
NOT_HERE(cuIpcGetEventHandle)
NOT_HERE(cuIpcGetMemHandle)
NOT_HERE(cuIpcOpenEventHandle)
NOT_HERE(cuIpcOpenMemHandle)
NOT_HERE(cuMemAddressFree)
NOT_HERE(cuMemAddressReserve)
NOT_HERE(cuMemAllocAsync)
NOT_HERE(cuMemAllocFromPoolAsync)
NOT_HERE(cuMemCreate)
NOT_HERE(cuMemExportToShareableHandle)
NOT_HERE(cuMemFreeAsync)
NOT_HERE(cuMemGetAccess)
NOT_HERE(cuMemGetAllocationGranularity)
NOT_HERE(cuMemGetAllocationPropertiesFromHandle)
NOT_HERE(cuMemImportFromShareableHandle)
NOT_HERE(cuMemMap)
NOT_HERE(cuMemPoolCreate)
NOT_HERE(cuMemPoolDestroy)
NOT_HERE(cuMemPoolGetAttribute)
NOT_HERE(cuMemPoolSetAttribute)
NOT_HERE(cuMemRelease)
NOT_HERE(cuMemRetainAllocationHandle)
NOT_HERE(cuMemSetAccess)
NOT_HERE(cuMemUnmap)
NOT_HERE(cuSignalExternalSemaphoresAsync)
NOT_HERE(cuWaitExternalSemaphoresAsync)
API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) { return copy(nullptr, to, from, bytes, true, true); }
// Rows of equal items.
template <class T>
static Result set_rows(void *stream, uint64_t to, size_t pitch, T value, size_t width, size_t height) {
  UNLESS_UNUSABLE;
  const Context *context = bound();
  const Result result = submit(stream, "a fill", [=] {
    if (height == 0 || width == 0) return (Result)SUCCESS;
    if (!holds(to, (height - 1) * pitch + width * sizeof(T), context)) return (Result)INVALID_VALUE;
    for (size_t y = 0; y < height; y++) {
      touch(to + y * pitch, width * sizeof(T), Touch::WRITE);
      for (size_t x = 0; x < width; x++) std::memcpy((void *)(to + y * pitch + x * sizeof(T)), &value, sizeof(T));
    }
    return (Result)SUCCESS;
  });
  return result || stream ? result : wait_for(stream_of(stream));
}
API cuMemsetD2D8_v2(uint64_t to, size_t pitch, uint8_t value, size_t width, size_t height) {
  return set_rows(nullptr, to, pitch, value, width, height);
}
API cuMemsetD2D8Async(uint64_t to, size_t pitch, uint8_t value, size_t width, size_t height, void *stream) {
  return set_rows(stream, to, pitch, value, width, height);
}
API cuMemsetD2D16_v2(uint64_t to, size_t pitch, uint16_t value, size_t width, size_t height) {
  return set_rows(nullptr, to, pitch, value, width, height);
}
API cuMemsetD2D16Async(uint64_t to, size_t pitch, uint16_t value, size_t width, size_t height, void *stream) {
  return set_rows(stream, to, pitch, value, width, height);
}
API cuMemsetD2D32_v2(uint64_t to, size_t pitch, uint32_t value, size_t width, size_t height) {
  return set_rows(nullptr, to, pitch, value, width, height);
}
API cuMemsetD2D32Async(uint64_t to, size_t pitch, uint32_t value, size_t width, size_t height, void *stream) {
  return set_rows(stream, to, pitch, value, width, height);
}
API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) { return set(stream, to, value, bytes); }
API cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) { return set(nullptr, to, value, bytes); }
// The names of the kernels in PTX.
static std::vector<std::string> kernels_of_text(const std::string &text) {
  std::vector<std::string> names;
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;) {
    at += 7;
    names.push_back(text.substr(at, text.find('(', at) - at));
  }
  return names;
}
// The names of the kernels in machine code: each has a section of its own.
static std::vector<std::string> kernels_of_code(const Elf64_Ehdr &header) {
  std::vector<std::string> names;
  const char *start = (const char *)&header;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(start + header.e_shoff);
  const std::string kind = ".text.";
  for (int i = 0; i < header.e_shnum; i++) {
    const std::string name = start + sections[header.e_shstrndx].sh_offset + sections[i].sh_name;
    if (name.compare(0, kind.size(), kind) == 0) names.push_back(name.substr(kind.size()));
  }
  return names;
}
// Returns true if machine code is for this device's generation.
static bool takes_code(const Elf64_Ehdr &header) {
  const int capability = (int)setting("EMULATOR_CAPABILITY", 75), made_for = header.e_flags & 255;
  return !std::getenv("EMULATOR_NO_CODE") && made_for / 10 == capability / 10 && made_for <= capability;
}
API cuModuleLoadData(void **module, const void *image) {
  UNLESS_UNUSABLE;
  const bool code = std::memcmp(image, "\177ELF", 4) == 0;
  if (code && std::getenv("CUDA_FORCE_PTX_JIT")) die("machine code is loaded in spite of CUDA_FORCE_PTX_JIT");
  if (code && !takes_code(*(const Elf64_Ehdr *)image)) return NO_BINARY_FOR_GPU;
  Module *made = new Module;
  const char *reject = std::getenv("EMULATOR_REJECT");
  for (const std::string &name : code ? kernels_of_code(*(const Elf64_Ehdr *)image) : kernels_of_text((const char *)image)) {
    const auto found = kernels().find(name);
    if (found == kernels().end() || (reject && name == reject)) {
      delete made;
      return INVALID_PTX;
    }
    made->functions[name] = {name, found->second};
  }
  *module = made;
  return SUCCESS;
}
// Of the options only two count: 5 is the buffer of the compiler's log, 6 its bytes.
API cuModuleLoadDataEx(void **module, const void *image, unsigned options, const int *names, void **values) {
  const Result result = cuModuleLoadData(module, image);
  void *log = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < options; i++) {
    if (names[i] == 5) log = values[i];
    if (names[i] == 6) size = (size_t)values[i];
  }
  if (result == INVALID_PTX && log) std::snprintf((char *)log, size, "ptxas error: rejected by EMULATOR_REJECT");
  return result;
}
API cuModuleUnload(void *module) {
  work_off_all();
  delete (Module *)module;
  return SUCCESS;
}
API cuModuleGetFunction(void **function, void *module, const char *name) {
  UNLESS_BROKEN;
  auto &functions = ((Module *)module)->functions;
  const auto found = functions.find(name);
  if (found == functions.end()) return NOT_FOUND;
  *function = &found->second;
  return SUCCESS;
}
API cuFuncSetAttribute(void *, int, int) { return SUCCESS; }
API cuFuncGetAttribute(int *value, int, void *) {
  *value = 0;
  return SUCCESS;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int, size_t) {
  *blocks = 1;
  return SUCCESS;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *, int, size_t, unsigned) {
  *blocks = 1;
  return SUCCESS;
}
API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **) {
  return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, false);
}
struct LaunchAttribute {
  int id;
  char pad[4];
  int value[16];
};
struct LaunchConfig {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void *stream;
  const LaunchAttribute *attributes;
  unsigned attribute_count;
};
// Grids of a stream do not overlap here, whatever the attributes allow (6); blocks that wait for each other they do have to name (2).
API cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **) {
  const LaunchConfig &c = *config;
  bool together = false;
  for (unsigned i = 0; i < c.attribute_count; i++) together |= c.attributes[i].id == 2 && c.attributes[i].value[0] != 0;
  return launch(function, {c.gx, c.gy, c.gz}, {c.bx, c.by, c.bz}, c.shared, c.stream, arguments, together);
}
API cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void *stream, void **arguments) {
  return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, true);
}
