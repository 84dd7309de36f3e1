// SPDX-License-Identifier: BSD-3-Clause
// The memory bus: what the host sees at a device address (nothing: it faults) and what a kernel sees (the bytes).
//
// REAL HW: the driver maps the card's memory into its own page tables; a host address range is reserved only so that
// device addresses can never be confused with host addresses.
#include "address_space.h"

#include <cstdint>

#include "error.h"
#include "platform.h"

namespace openreg::driver {

AddressSpace::AddressSpace(int device_count, size_t capacity)
    : capacity_(capacity), total_(capacity * static_cast<size_t>(device_count)) {
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
}

AddressSpace::~AddressSpace() {
  platform::unreserve(device_view_, total_);
  platform::unreserve(kernel_view_, total_);
}

int AddressSpace::owner(const void* address) const {
  // Unsigned distance: addresses below the base become huge and fail the comparison too.
  const auto distance = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(device_view_);
  return distance < total_ ? static_cast<int>(distance / capacity_) : -1;
}

}  // namespace openreg::driver
