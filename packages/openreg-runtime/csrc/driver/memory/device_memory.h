// SPDX-License-Identifier: BSD-3-Clause
// The allocator of the memory of one device.
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

// The poison byte, with which new memory is filled if OPENREG_POISON is set; otherwise new memory happens to be zero.
// Memory full of it contains NaN as floating-point numbers and -1 or the greatest number as integers.
inline constexpr int kPoison = 0xFF;

// A best-fit allocator over one address range, which merges adjacent free ranges. The sizes of allocated and free
// ranges always add up to the capacity. Thread-safe. Takes its own mutex, and releases it during steps whose time grows
// with the number of bytes. Sizes are in bytes.
class DeviceMemory {
 public:
  DeviceMemory(const AddressSpace& space, int device, size_t capacity);

  // Allocates `size` > 0 bytes, rounded up to pages, and returns the device address. Throws
  // Error(orErrorMemoryAllocation) with the sizes if device or system have too little memory.
  void* allocate(size_t size);
  // Returns the range to the system. The caller guarantees that no task uses it. Blocks until a concurrent share() of
  // the range has finished. Throws Error(orErrorInvalidDevicePointer) unless `address` starts an allocation of
  // allocate().
  void release(void* address);
  // Throws Error(orErrorInvalidDevicePointer) unless release() accepts `address`.
  void check_releasable(const void* address) const;
  // Returns the handle that share() has made for the allocation that starts at `address`, or nullopt if there is none
  // yet. Throws Error(orErrorInvalidDevicePointer) if no allocation starts there.
  std::optional<orIpcMemHandle_t> handle_of(const void* address) const;
  // Moves the allocation that starts at `address` into a shared object, unless it lies in one. Returns its handle for
  // other processes. The caller guarantees that nothing uses the allocation meanwhile. Throws
  // Error(orErrorInvalidDevicePointer) if no allocation starts there, and what SharedAllocation's constructor throws.
  orIpcMemHandle_t share(void* address);
  // Withdraws all shared allocations, so that processes that have not opened them yet cannot. For process exit; does
  // nothing if another thread holds the mutex, because that thread may not run any more.
  void withdraw_shared() noexcept;
  // Returns the memory of other processes that this device has imported.
  ImportWindow& imports() { return imports_; }
  const ImportWindow& imports() const { return imports_; }
  // Returns true if all the bytes lie inside one allocation or one import. `address` belongs to this device.
  bool contains(const void* address, size_t size) const;
  // Returns start and size of the allocation or import that contains the byte at `address`. Throws
  // Error(orErrorInvalidDevicePointer) if there is none.
  std::pair<void*, size_t> range_of(const void* address) const;
  // Throws Error(orErrorInvalidDevicePointer) unless contains() returns true.
  void check_range(const void* address, size_t size) const;

  size_t capacity() const { return capacity_; }
  size_t allocated() const;
  size_t peak_allocated() const;
  // Sets the peak to the current allocated().
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
  std::map<size_t, std::unique_ptr<SharedAllocation>> shared_;  // by offset; null while share() moves the bytes
  std::condition_variable settled_;                             // notified when share() sets or erases a null pointer
  size_t allocated_ = 0;
  size_t peak_ = 0;
};

}  // namespace openreg::driver
