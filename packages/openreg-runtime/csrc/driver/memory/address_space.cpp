// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver maps the device's memory into the page tables of the device. It reserves a host address range
// only so that device addresses differ from all host addresses.
#include "memory/address_space.h"

#include <cstdint>

#include "base/error.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

// The size of a huge page. The window of a device starts at a multiple of it, so that its memory can consist of huge
// pages. It is also the smallest gap between the memory of a device and the addresses in use after it.
constexpr size_t kGap = size_t{2} << 20;

constexpr size_t round_to_gaps(size_t size) {
  return (size + kGap - 1) / kGap * kGap;
}

}  // namespace

AddressSpace::AddressSpace(int device_count, size_t capacity)
    : import_size_(round_to_gaps(capacity) + kGap),
      window_(round_to_gaps(capacity) + kGap + import_size_),
      total_(window_ * static_cast<size_t>(device_count)) {
  device_view_ = static_cast<char*>(platform::reserve_inaccessible(total_));
  kernel_view_ = device_view_ == nullptr ? nullptr : static_cast<char*>(platform::reserve_accessible(total_));
  if (kernel_view_ == nullptr) {
    if (device_view_ != nullptr) {
      platform::unreserve(device_view_, total_);
    }
    throw Error(orErrorMemoryAllocation,
                join("the system refused 2 x ", total_, " bytes of address space for ", device_count,
                     " devices; lower OPENREG_DEVICE_MEMORY or OPENREG_DEVICE_COUNT"));
  }
  for (int device = 0; device < device_count; ++device) {
    platform::make_inaccessible(kernel_view(device_base(device)) + capacity, window_ - capacity);
  }
}

AddressSpace::~AddressSpace() {
  platform::unreserve(device_view_, total_);
  platform::unreserve(kernel_view_, total_);
}

int AddressSpace::owner(const void* address) const {
  // The distance is unsigned, so addresses below the base become huge and fail the comparison, too.
  const auto distance = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(device_view_);
  return distance < total_ ? static_cast<int>(distance / window_) : -1;
}

const void* AddressSpace::device_view(const void* address) const {
  const auto distance = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(kernel_view_);
  return distance < total_ ? device_view_ + distance : address;
}

}  // namespace openreg::driver
