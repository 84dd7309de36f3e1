// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of Linux.
#include "platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

// A memfd is found through its maker's descriptor, so that neither the size of /dev/shm nor a name left behind matters.
bool create_shared(size_t size, SharedMemory& memory) {
  const int descriptor = memfd_create("openreg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    return false;
  }
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
    close(descriptor);
    return false;
  }
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);  // who maps it may rely on its size
  memory.object = descriptor;
  memory.size = size;
  std::snprintf(memory.name, sizeof(memory.name), "/proc/%ld/fd/%d", static_cast<long>(getpid()), descriptor);
  return true;
}

bool open_shared(const char* name, SharedMemory& memory) {
  const int descriptor = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // the name may be anything by now
  if (descriptor < 0) {
    return false;
  }
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return false;
  }
  memory.object = descriptor;
  memory.size = static_cast<size_t>(status.st_size);
  memory.name[0] = 0;
  return true;
}

void close_shared(SharedMemory& memory) noexcept {
  if (memory.object >= 0) {
    close(static_cast<int>(memory.object));
    memory.object = -1;
  }
}

void name_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
}

}  // namespace openreg::driver::platform
