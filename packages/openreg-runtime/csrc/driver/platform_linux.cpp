// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of Linux.
#include "platform.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace openreg::driver::platform {

namespace {

// Reads a memory limit of a control group; the largest number if there is none.
size_t read_limit(const char* path) {
  std::ifstream file(path);
  unsigned long long limit = 0;
  if (file >> limit) {
    return static_cast<size_t>(limit);
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace

size_t usable_memory() {
  const auto machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  return std::min(
      {machine, read_limit("/sys/fs/cgroup/memory.max"), read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

void decommit(void* address, size_t size) noexcept {
  madvise(address, size, MADV_DONTNEED);
}

void name_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
}

}  // namespace openreg::driver::platform
