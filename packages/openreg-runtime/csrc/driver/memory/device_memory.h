// SPDX-License-Identifier: BSD-3-Clause
// DeviceMemory allocates the memory of one device. It also exports allocations to other processes and holds the memory
// that the device imports from them (IPC).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "memory/address_space.h"
#include "memory/ipc_memory.h"

namespace openreg::driver {

// The poison byte. New memory is filled with it if OPENREG_POISON is set, and happens to be zero otherwise. Poisoned
// memory holds NaN as floating-point numbers, and -1 or the greatest value as integers.
inline constexpr int kPoison = 0xFF;

// A best-fit allocator over the addresses of one device, which merges adjacent free ranges. Sizes are in bytes.
// Thread-safe: locks its own mutex, and releases it during steps whose time grows with the size, such as returning
// pages to the system.
class DeviceMemory {
 public:
  DeviceMemory(const AddressSpace& space, int device, size_t capacity);

  // Allocates `size` > 0 bytes, rounded up to pages, and returns the device address. Throws
  // Error(orErrorMemoryAllocation) with the sizes if device or system have too little memory.
  void* allocate(size_t size);
  // Frees an allocation and returns its pages to the system. The caller guarantees that no task uses it. Blocks until a
  // concurrent share() of it has finished. Throws Error(orErrorInvalidDevicePointer) unless `address` starts an
  // allocation of allocate().
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
  // Makes the handles of all shared allocations invalid for processes that have not opened them yet. Called at process
  // exit. Does nothing if another thread holds the mutex, because that thread may not run any more.
  void withdraw_shared() noexcept;
  // Returns the memory of other processes that this device has imported.
  ImportWindow& imports() { return imports_; }
  const ImportWindow& imports() const { return imports_; }
  // Returns true if all bytes of the range lie in one allocation or one import. `address` belongs to this device.
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
  // All offsets are in bytes from the base of the device.
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
  std::atomic<uint64_t> releases_{0};        // changes whenever an allocation ends
  std::map<size_t, size_t> free_by_offset_;  // offset -> size
  FreeBySize free_by_size_;
  std::map<size_t, std::unique_ptr<SharedAllocation>> shared_;  // offset -> export; null while share() moves the bytes
  std::condition_variable settled_;                             // notified when share() has moved bytes or has failed
  size_t allocated_ = 0;
  size_t peak_ = 0;
};

}  // namespace openreg::driver
