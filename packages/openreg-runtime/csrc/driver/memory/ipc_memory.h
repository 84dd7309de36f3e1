// SPDX-License-Identifier: BSD-3-Clause
// Memory that processes share: what this one exports, and what it imports.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "memory/address_space.h"
#include "openreg.h"
#include "platform/platform.h"

namespace openreg::driver {

struct SharedHeader;

// A live allocation whose bytes lie in a shared object. Not thread-safe.
class SharedAllocation {
 public:
  // Moves the bytes from the range of the kernel view into a new shared object, and maps that in their place. Nothing
  // may use the range meanwhile. Throws Error(orErrorMemoryAllocation) when the system refuses; then the range is as
  // before.
  SharedAllocation(void* kernel_address, size_t size);
  SharedAllocation(const SharedAllocation&) = delete;
  SharedAllocation& operator=(const SharedAllocation&) = delete;
  // Withdraws it and leaves the range as memory without content. Who has opened the object keeps it.
  ~SharedAllocation();

  const orIpcMemHandle_t& handle() const { return handle_; }
  // From now on the handle is refused.
  void withdraw() noexcept;

 private:
  void move_bytes();

  void* const kernel_address_;
  const size_t size_;
  platform::SharedMemory memory_;
  SharedHeader* header_ = nullptr;
  orIpcMemHandle_t handle_{};
};

// The addresses of one device at which memory of other processes appears. Thread-safe; the system maps and unmaps
// without the lock.
class ImportWindow {
 public:
  ImportWindow(const AddressSpace& space, int device) : space_(space), device_(device) {}

  // Maps what the handle describes and returns its device address. The handle is hostile input, of which ipc_handle.h
  // says what is believed. Throws Error(orErrorInvalidValue) when it is none, comes from this process, or what it
  // describes is gone or nothing that this process opens; Error(orErrorMemoryAllocation) when too few addresses are
  // left.
  void* open(const orIpcMemHandle_t& handle);
  // Unmaps. The caller has made sure that no work uses the range any more. Throws Error(orErrorInvalidDevicePointer)
  // unless `address` came from open() and was not closed.
  void close(void* address);
  void check_closable(const void* address) const;
  // Whether the bytes lie inside one import.
  bool contains(const void* address, size_t size) const;
  // Start and size of the import in which a byte lies; null and 0 where there is none.
  std::pair<void*, size_t> range_of(const void* address) const;

 private:
  struct Range {
    size_t size;
    bool is_mapped;  // else the addresses are taken, but nothing is there: some thread is about to map or to unmap
  };
  using Ranges = std::map<size_t, Range>;  // by offset from the base of the device

  Ranges::const_iterator find(const void* address) const;
  Ranges::iterator reserve(size_t size);
  size_t first_fit(size_t size) const;
  size_t offset_of(const void* address) const;

  const AddressSpace& space_;
  const int device_;
  mutable std::mutex mutex_;
  Ranges used_;
};

}  // namespace openreg::driver
