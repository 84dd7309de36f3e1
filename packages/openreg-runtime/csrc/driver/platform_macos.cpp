// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of macOS.
#include "platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace openreg::driver::platform {

size_t usable_memory() {
  uint64_t bytes = 0;
  size_t length = sizeof(bytes);
  if (sysctlbyname("hw.memsize", &bytes, &length, nullptr, 0) != 0) {
    return size_t{4} << 30;  // the smallest machine that PyTorch supports
  }
  return static_cast<size_t>(bytes);
}

void decommit(void* address, size_t size) noexcept {
  // Unlike MADV_FREE, mapping afresh gives the memory back at once, so that statistics of the process are true.
  mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

bool create_shared(size_t size, SharedMemory& memory) {
  static std::atomic<unsigned> count{0};
  char name[32];  // the system takes no more than 31 characters
  std::snprintf(name, sizeof(name), "/openreg.%ld.%u", static_cast<long>(getpid()), count++);
  shm_unlink(name);  // of a process with this number that crashed
  const int descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) {
    return false;
  }
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
    close(descriptor);
    shm_unlink(name);
    return false;
  }
  memory.object = descriptor;
  memory.size = size;
  std::strcpy(memory.name, name);
  return true;
}

bool open_shared(const char* name, SharedMemory& memory) {
  const int descriptor = shm_open(name, O_RDWR, 0);
  if (descriptor < 0) {
    return false;
  }
  struct stat status{};
  if (fstat(descriptor, &status) != 0) {
    close(descriptor);
    return false;
  }
  memory.object = descriptor;
  memory.size = static_cast<size_t>(status.st_size);
  memory.name[0] = 0;
  return true;
}

void close_shared(SharedMemory& memory) noexcept {
  if (memory.object < 0) {
    return;
  }
  close(static_cast<int>(memory.object));
  memory.object = -1;
  if (memory.name[0] != 0) {
    shm_unlink(memory.name);
  }
}

void name_thread(const char* name) {
  pthread_setname_np(name);
}

}  // namespace openreg::driver::platform
