// SPDX-License-Identifier: MPL-2.0
// Memory that one allocation of a process does not get; preloaded by test_memory.py.
#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static long left = -1, least, failed;

// From now on the allocation after so many others fails, of those of so many bytes and more.
void fail_after(long others, long bytes) {
  least = bytes;
  failed = 0;
  left = others;
}

// Ends that; whether one has failed.
long has_failed(void) {
  left = -1;
  return failed;
}

static int fails(size_t bytes) {
  if (left < 0 || bytes < (size_t)least || __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) != 0) return 0;
  failed = 1;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails(bytes) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails(count * bytes) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *at, size_t bytes) { return fails(bytes) ? NULL : __libc_realloc(at, bytes); }
int posix_memalign(void **at, size_t alignment, size_t bytes) {
  if (fails(bytes)) return ENOMEM;
  *at = __libc_memalign(alignment, bytes);
  return *at ? 0 : ENOMEM;
}
