// SPDX-License-Identifier: BSD-3-Clause
// PinnedMemory allocates pinned memory: host memory that is registered for asynchronous copies. A copy from or to other
// host memory may block the host.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace openreg::driver {

// The allocator of pinned memory, and the table of its allocations. Thread-safe. Sizes are in bytes.
class PinnedMemory {
 public:
  // Allocates `size` > 0 bytes, page-aligned. Throws Error(orErrorMemoryAllocation) if the system refuses.
  void* allocate(size_t size);
  // Frees an allocation. Throws Error(orErrorInvalidValue) unless `address` starts an allocation of allocate().
  void release(void* address);
  // Throws Error(orErrorInvalidValue) unless release() accepts `address`.
  void check_releasable(const void* address) const;
  // Returns the size of an allocation, rounded up to pages. Throws Error(orErrorInvalidValue) unless release() accepts
  // `address`.
  size_t size_of(const void* address) const;
  // Returns true if all bytes of the range lie in one allocation.
  bool contains(const void* address, size_t size) const;

 private:
  std::map<const char*, size_t>::const_iterator find(const void* address) const;

  mutable std::mutex mutex_;
  std::map<const char*, size_t> used_;  // start -> size in whole pages
};

}  // namespace openreg::driver
