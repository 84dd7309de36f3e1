// SPDX-License-Identifier: BSD-3-Clause
// SharedAllocation exports an allocation of device memory to other processes, and ImportWindow maps exports of other
// processes (IPC).
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "memory/address_space.h"
#include "openreg.h"
#include "platform/platform.h"

namespace openreg::driver {

struct SharedHeader;  // at the start of each shared object; see ipc_memory.cpp

// An exported allocation, whose bytes lie in a shared memory object of the operating system. Not thread-safe.
class SharedAllocation {
 public:
  // Moves the bytes of a range of the kernel view into a new shared object, and maps that object in place of the range.
  // `size` is in bytes. The caller guarantees that nothing uses the range meanwhile. Throws
  // Error(orErrorMemoryAllocation) if the system refuses; the range is then unchanged.
  SharedAllocation(void* kernel_address, size_t size);
  SharedAllocation(const SharedAllocation&) = delete;
  SharedAllocation& operator=(const SharedAllocation&) = delete;
  // Calls withdraw() and leaves the range without memory, as platform::decommit() does. Processes that have opened the
  // object keep it.
  ~SharedAllocation();

  const orIpcMemHandle_t& handle() const { return handle_; }
  // Makes the handle invalid for processes that have not opened it yet.
  void withdraw() noexcept;

 private:
  void move_bytes();

  void* const kernel_address_;
  const size_t size_;
  platform::SharedMemory memory_;
  SharedHeader* header_ = nullptr;
  orIpcMemHandle_t handle_{};
};

// The addresses of one device at which memory of other processes is mapped. Sizes are in bytes. Thread-safe: locks its
// own mutex, and releases it while the system maps and unmaps.
class ImportWindow {
 public:
  ImportWindow(const AddressSpace& space, int device) : space_(space), device_(device) {}

  // Maps the memory of the handle and returns its device address. The handle is hostile input; ipc_handle.h describes
  // the checks. Throws Error(orErrorInvalidValue) if the handle is invalid or comes from this process, or if its memory
  // was freed or cannot be accessed. Throws Error(orErrorMemoryAllocation) if too few addresses are left or the system
  // refuses.
  void* open(const orIpcMemHandle_t& handle);
  // Unmaps an import. The caller guarantees that no task uses the range. Throws Error(orErrorInvalidDevicePointer)
  // unless `address` starts an import of open().
  void close(void* address);
  // Throws Error(orErrorInvalidDevicePointer) unless close() accepts `address`.
  void check_closable(const void* address) const;
  // Returns true if all bytes of the range lie in one import.
  bool contains(const void* address, size_t size) const;
  // Returns start and size of the import that contains the byte at `address`, or null and 0 if there is none.
  std::pair<void*, size_t> range_of(const void* address) const;

 private:
  struct ImportedRange {
    size_t size;
    bool is_mapped;  // false while a thread maps or unmaps: the addresses are reserved, but hold no import
  };
  using ImportedRanges = std::map<size_t, ImportedRange>;  // key: offset from the base of the device

  ImportedRanges::const_iterator find(const void* address) const;
  ImportedRanges::iterator reserve(size_t size);
  size_t first_fit(size_t size) const;
  size_t offset_of(const void* address) const;

  const AddressSpace& space_;
  const int device_;
  mutable std::mutex mutex_;
  ImportedRanges used_;
};

}  // namespace openreg::driver
