// SPDX-License-Identifier: BSD-3-Clause
// Operating system services that are identical on Linux and macOS.
#include "platform/platform.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace openreg::driver::platform {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

void* map_anonymous(size_t size, int protection) {
  void* address = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

void prefer_huge_pages([[maybe_unused]] void* address, [[maybe_unused]] size_t size) {
#if defined(MADV_HUGEPAGE)
  madvise(address, size, MADV_HUGEPAGE);
#endif
}

}  // namespace

size_t page_size() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void* reserve_inaccessible(size_t size) {
  return map_anonymous(size, PROT_NONE);
}

void* reserve_accessible(size_t size) {
  // Map one huge page too many and unmap both ends, so that the rest starts at a huge page.
  auto* raw = static_cast<char*>(map_anonymous(size + kHugePage, PROT_READ | PROT_WRITE));
  if (raw == nullptr) {
    return nullptr;
  }
  const auto misalignment = reinterpret_cast<uintptr_t>(raw) % kHugePage;
  const size_t head = misalignment == 0 ? 0 : kHugePage - misalignment;
  if (head != 0) {
    munmap(raw, head);
  }
  if (head != kHugePage) {
    munmap(raw + head + size, kHugePage - head);
  }
  prefer_huge_pages(raw + head, size);
  return raw + head;
}

bool commit(void* /*address*/, size_t /*size*/) noexcept {
  return true;  // the system adds pages on first touch
}

void make_inaccessible(void* address, size_t size) noexcept {
  mprotect(address, size, PROT_NONE);
}

void unreserve(void* address, size_t size) noexcept {
  munmap(address, size);
}

void* allocate_pages(size_t size) {
  return map_anonymous(size, PROT_READ | PROT_WRITE);
}

void free_pages(void* address, size_t size) noexcept {
  munmap(address, size);
}

void* map_shared(const SharedMemory& memory, size_t offset, size_t size) {
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(memory.object),
                       static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

void unmap_shared(void* address, size_t size) noexcept {
  munmap(address, size);
}

bool map_shared_at(const SharedMemory& memory, size_t offset, void* address, size_t size) noexcept {
  const bool mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           static_cast<int>(memory.object), static_cast<off_t>(offset)) != MAP_FAILED;
  if (!mapped) {
    unmap_shared_at(address, size);  // mmap() may have removed the previous mapping before it failed
  }
  return mapped;
}

void unmap_shared_at(void* address, size_t size) noexcept {
  mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  prefer_huge_pages(address, size);
}

uint64_t process_id() {
  return static_cast<uint64_t>(getpid());
}

void around_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  pthread_atfork(before, in_parent, in_child);
}

bool threads_run_during_exit() {
  return true;
}

void relax() {
  for (int i = 0; i < 4; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace openreg::driver::platform
