// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of Linux.
#include "platform/platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace openreg::driver::platform {

namespace {

// Reads a memory limit of a control group, in bytes. Returns the greatest number if there is no limit.
size_t read_limit(const char* path) {
  std::ifstream file(path);
  unsigned long long limit = 0;
  if (file >> limit) {
    return static_cast<size_t>(limit);
  }
  return std::numeric_limits<size_t>::max();
}

// Seals of every shared object. A process that maps one relies on its length, so nothing may change that length.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Seals against writing. create_shared() adds none of them, so an object with one is not from create_shared().
constexpr int kRefusedSeals = F_SEAL_WRITE | 0x10;  // F_SEAL_FUTURE_WRITE, which not every C library defines
constexpr long kMemoryFileSystem = 0x01021994;      // TMPFS_MAGIC, the file system of every memfd

// A descriptor that is closed at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Returns true if `path`, an O_PATH descriptor, refers to a regular file of this user in a memory file system.
bool may_be_shared_memory(int path) {
  struct stat status{};
  struct statfs system{};
  return fstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         fstatfs(path, &system) == 0 && static_cast<long>(system.f_type) == kMemoryFileSystem;
}

// Returns true if `descriptor` has all of `kSeals` and none of `kRefusedSeals`.
bool has_seals_of_shared_memory(int descriptor) {
  const int seals = fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && (seals & kRefusedSeals) == 0;
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

// Other processes open a memfd through its creator's descriptor. A name in /dev/shm is the alternative, but /dev/shm is
// limited in size and keeps the names of processes that crashed.
bool create_shared(size_t size, SharedMemory& memory) {
  Descriptor descriptor(memfd_create("openreg", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (descriptor.get() < 0 || fchmod(descriptor.get(), S_IRUSR | S_IWUSR) != 0 ||
      ftruncate(descriptor.get(), static_cast<off_t>(size)) != 0 || fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
    return false;
  }
  memory.object = descriptor.release();
  memory.size = size;
  memory.number = static_cast<uint64_t>(memory.object);
  memory.is_creator = true;
  return true;
}

// The numbers may refer to anything that a process has open, and opening a device, a pipe or a network file can have
// side effects. Therefore the file is first opened with O_PATH, which has none. It is opened again for reading and
// writing only if it can be shared memory of this user.
bool open_shared(uint64_t process, uint64_t number, SharedMemory& memory) {
  if (process == 0 || process > INT_MAX || number > INT_MAX) {
    return false;
  }
  char name[64];
  std::snprintf(name, sizeof(name), "/proc/%d/fd/%d", static_cast<int>(process), static_cast<int>(number));
  const Descriptor place(open(name, O_PATH | O_CLOEXEC));
  if (place.get() < 0 || !may_be_shared_memory(place.get())) {
    return false;
  }
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", place.get());
  Descriptor descriptor(open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (descriptor.get() < 0 || !has_seals_of_shared_memory(descriptor.get()) || fstat(descriptor.get(), &status) != 0 ||
      status.st_size < 0) {
    return false;
  }
  memory.object = descriptor.release();
  memory.size = static_cast<size_t>(status.st_size);
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
