// SPDX-License-Identifier: BSD-3-Clause
// The two views of the memory of all devices, a constant distance apart.
#pragma once

#include <cstddef>

namespace openreg::driver {

// Each device has one window of addresses in both views: its own memory, as large as its capacity, then a
// range of at least the same size for memory imported from other processes, then addresses that are never used. In the
// kernel view whatever holds neither is inaccessible, so that a kernel that leaves the memory of its device faults.
// Immutable, so free of locks.
class AddressSpace {
 public:
  // Throws Error(orErrorMemoryAllocation) when the system has not enough addresses.
  AddressSpace(int device_count, size_t capacity);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  char* device_base(int device) const { return device_view_ + static_cast<size_t>(device) * window_; }
  // Where imports go, as distances from the base of a device.
  size_t import_begin() const { return window_ - import_size_; }
  size_t import_end() const { return window_; }
  // Whose address it is: a device index, or -1.
  int owner(const void* address) const;
  ptrdiff_t kernel_offset() const { return kernel_view_ - device_view_; }
  // The address of the same byte in the kernel view.
  template <class T>
  T* kernel_view(T* device_address) const {
    return reinterpret_cast<T*>(reinterpret_cast<ptrdiff_t>(device_address) + kernel_offset());
  }
  // The address of the same byte in the device view; one that is not in the kernel view is given back.
  const void* device_view(const void* address) const;

 private:
  size_t import_size_;
  size_t window_;
  size_t total_;
  char* device_view_;
  char* kernel_view_;
};

}  // namespace openreg::driver
