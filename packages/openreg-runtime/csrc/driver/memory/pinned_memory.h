// SPDX-License-Identifier: BSD-3-Clause
// Host memory that the device may read and write at any time.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace openreg::driver {

// Thread-safe.
class PinnedMemory {
 public:
  // Page-aligned; `size` > 0. Throws Error(orErrorMemoryAllocation).
  void* allocate(size_t size);
  // Throws Error(orErrorInvalidValue) unless `address` came from allocate() and was not released.
  void release(void* address);
  void check_releasable(const void* address) const;
  // In whole pages. Throws as release() does.
  size_t size_of(const void* address) const;
  // Whether all the bytes lie inside one allocation.
  bool contains(const void* address, size_t size) const;

 private:
  std::map<const char*, size_t>::const_iterator find(const void* address) const;

  mutable std::mutex mutex_;
  std::map<const char*, size_t> used_;  // start -> size in whole pages
};

}  // namespace openreg::driver
