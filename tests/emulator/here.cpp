// SPDX-License-Identifier: MPL-2.0
// State of this thread of the host, in a library of its own: the loader has room for so much, of a library that comes late, at a
// fixed distance from the thread's register. It has none for `__shared__` memory, which the same library would need there, too.
#include "fibers.h"

namespace emulator {

__thread Here here;

}  // namespace emulator
