// SPDX-License-Identifier: BSD-3-Clause
// The memory of one device: which ranges of its addresses are allocated.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "memory/address_space.h"
#include "memory/ipc_memory.h"

namespace openreg::driver {

// The byte that new memory is filled with under OPENREG_POISON; without it, new memory happens to be zero.
// As a floating-point number NaN, as an integer -1 or the greatest number.
inline constexpr int kPoison = 0xFF;

// Best fit over one address range with coalescing; exact: what is allocated and what is free always add up to the
// capacity. Thread-safe; what takes as long as there are bytes is done without the lock.
class DeviceMemory {
 public:
  DeviceMemory(const AddressSpace& space, int device, size_t capacity);

  // A range of at least `size` > 0 bytes, rounded up to pages. Throws Error(orErrorMemoryAllocation) with the numbers.
  void* allocate(size_t size);
  // Gives the range back to the system, after a share() of it that another thread has begun. The caller has made sure
  // that no work uses it any more. Throws Error(orErrorInvalidDevicePointer) unless `address` came from allocate() and
  // was not released.
  void release(void* address);
  // Throws the same unless release() would accept the address.
  void check_releasable(const void* address) const;
  // What share() has returned for the allocation that starts at `address`; nothing where it has not. Throws
  // Error(orErrorInvalidDevicePointer).
  std::optional<orIpcMemHandle_t> handle_of(const void* address) const;
  // Puts a shared object under the allocation that starts at `address`, and describes it for other processes. The
  // caller has made sure that nothing uses the allocation meanwhile. Throws Error(orErrorInvalidDevicePointer), and as
  // SharedAllocation does.
  orIpcMemHandle_t share(void* address);
  // Makes every allocation that was shared unknown to processes that have not opened it yet; for process exit.
  void withdraw_shared() noexcept;
  // Memory of other processes.
  ImportWindow& imports() { return imports_; }
  const ImportWindow& imports() const { return imports_; }
  // Whether the bytes lie inside one allocation or one import. `address` belongs to this device.
  bool contains(const void* address, size_t size) const;
  // Start and size of the allocation or import in which a byte lies. Throws Error(orErrorInvalidDevicePointer).
  std::pair<void*, size_t> range_of(const void* address) const;
  // Throws Error(orErrorInvalidDevicePointer) unless they do.
  void check_range(const void* address, size_t size) const;

  size_t capacity() const { return capacity_; }
  size_t allocated() const;
  size_t peak_allocated() const;
  void reset_peak();

 private:
  using FreeBySize = std::set<std::pair<size_t, size_t>>;  // (size, offset)

  void insert_free(size_t offset, size_t size);
  void erase_free(size_t offset, size_t size);
  size_t largest_free() const;
  size_t offset_of(const void* address) const;
  std::map<size_t, size_t>::const_iterator find_around(const void* address) const;
  std::map<size_t, size_t>::const_iterator find_allocated(const void* address) const;
  std::map<size_t, size_t>::const_iterator find_settled(const void* address, std::unique_lock<std::mutex>& lock);

  const AddressSpace& space_;
  const int device_;
  const size_t capacity_;
  ImportWindow imports_;
  mutable std::mutex mutex_;
  std::map<size_t, size_t> used_;            // offset -> size
  std::map<size_t, size_t> free_by_offset_;  // offset -> size
  FreeBySize free_by_size_;
  std::map<size_t, std::unique_ptr<SharedAllocation>> shared_;  // by offset; null while the bytes are moved
  std::condition_variable settled_;                             // notified when one is not null any more, or gone
  size_t allocated_ = 0;
  size_t peak_ = 0;
};

}  // namespace openreg::driver
