// SPDX-License-Identifier: BSD-3-Clause
// The two views of the memory of all devices, a constant distance apart.
#pragma once

#include <cstddef>

namespace openreg::driver {

// Device d owns [d * capacity, (d + 1) * capacity) of both views. Immutable, so free of locks.
class AddressSpace {
 public:
  // Throws Error(orErrorMemoryAllocation) when the system has not enough addresses.
  AddressSpace(int device_count, size_t capacity);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  char* device_base(int device) const { return device_view_ + static_cast<size_t>(device) * capacity_; }
  // Whose address it is: a device index, or -1.
  int owner(const void* address) const;
  ptrdiff_t kernel_offset() const { return kernel_view_ - device_view_; }
  // The address of the same byte in the kernel view.
  template <class T>
  T* kernel_view(T* device_address) const {
    return reinterpret_cast<T*>(reinterpret_cast<ptrdiff_t>(device_address) + kernel_offset());
  }

 private:
  size_t capacity_;
  size_t total_;
  char* device_view_;
  char* kernel_view_;
};

}  // namespace openreg::driver
