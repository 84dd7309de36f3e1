// SPDX-License-Identifier: BSD-3-Clause
// AddressSpace reserves the two address ranges at which this process sees the memory of all devices: one for the host,
// where every access faults, and one for kernels.
#pragma once

#include <cstddef>

namespace openreg::driver {

// Two views of the memory of all devices. Addresses from orMalloc() lie in the device view, where every access faults,
// as it does on a host that dereferences the address of a real device. Kernels dereference the kernel view, where each
// byte lies a constant distance from its address in the device view.
//
// In both views a device has one window of addresses: its own memory, as large as its capacity, then a gap, then a
// range for imports (memory of other processes), which is at least as large as the capacity. In the kernel view, the
// gap and the unused part of the range for imports fault, too, so that a kernel that leaves the memory of its device
// faults. Thread-safe, because it is immutable.
class AddressSpace {
 public:
  // `capacity` is the capacity of each device, in bytes. Throws Error(orErrorMemoryAllocation) if the system has too
  // few addresses.
  AddressSpace(int device_count, size_t capacity);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  // Returns the first address of a device in the device view.
  char* device_base(int device) const { return device_view_ + static_cast<size_t>(device) * window_; }
  // Return the limits of the range for imports, in bytes from the base of a device.
  size_t import_begin() const { return window_ - import_size_; }
  size_t import_end() const { return window_; }
  // Returns the index of the device that owns `address` of the device view, or -1 if none does.
  int owner(const void* address) const;
  // Returns the distance from the device view to the kernel view, in bytes.
  ptrdiff_t kernel_offset() const { return kernel_view_ - device_view_; }
  // Returns the address in the kernel view of the byte at `device_address`.
  template <class T>
  T* kernel_view(T* device_address) const {
    return reinterpret_cast<T*>(reinterpret_cast<ptrdiff_t>(device_address) + kernel_offset());
  }
  // Returns the address in the device view of the byte at `address` of the kernel view. Returns any other address
  // unchanged.
  const void* device_view(const void* address) const;

 private:
  size_t import_size_;
  size_t window_;
  size_t total_;
  char* device_view_;
  char* kernel_view_;
};

}  // namespace openreg::driver
