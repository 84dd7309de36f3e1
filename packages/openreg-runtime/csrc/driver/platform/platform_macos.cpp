// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of macOS.
#include "platform/platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdio>

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
  // A new mapping returns the memory to the system at once. MADV_FREE returns it later, and until then the statistics
  // of the process include it.
  mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

namespace {

// The name of a shared object; macOS accepts at most 31 characters.
using SharedName = std::array<char, 32>;

// Writes the name of an object to `name`. Returns false if no process can have created an object with these numbers.
bool make_shared_name(uint64_t process, uint64_t number, SharedName& name) {
  if (process == 0 || process > INT_MAX || number > UINT_MAX) {
    return false;
  }
  std::snprintf(name.data(), name.size(), "/openreg.%d.%u", static_cast<int>(process), static_cast<unsigned>(number));
  return true;
}

}  // namespace

bool create_shared(size_t size, SharedMemory& memory) {
  static std::atomic<unsigned> count{0};
  const unsigned number = count++;
  SharedName name;
  if (!make_shared_name(process_id(), number, name)) {
    return false;
  }
  shm_unlink(name.data());  // the name may remain from a process with this number that crashed
  const int descriptor = shm_open(name.data(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) {
    return false;
  }
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) {  // succeeds only once per object, so the length stays
    close(descriptor);
    shm_unlink(name.data());
    return false;
  }
  memory.object = descriptor;
  memory.size = size;
  memory.number = number;
  memory.is_creator = true;
  return true;
}

bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory) {
  SharedName name;
  if (!make_shared_name(process, number, name)) {
    return false;
  }
  const int descriptor = shm_open(name.data(), O_RDWR, 0);
  if (descriptor < 0) {
    return false;
  }
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || status.st_uid != geteuid() || status.st_size < 0) {
    close(descriptor);
    return false;
  }
  memory.object = descriptor;
  memory.size = static_cast<size_t>(status.st_size);
  return true;
}

void close_shared(SharedMemory& memory) noexcept {
  if (memory.object < 0) {
    return;
  }
  close(static_cast<int>(memory.object));
  memory.object = -1;
  SharedName name;
  if (memory.is_creator && make_shared_name(process_id(), memory.number, name)) {
    shm_unlink(name.data());
  }
}

void name_thread(const char* name) {
  pthread_setname_np(name);
}

}  // namespace openreg::driver::platform
