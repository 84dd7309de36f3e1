// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: pages are locked and entered into the device's page tables. Here the table only distinguishes pinned from
// pageable memory. A copy must not access pageable memory after the call returns, because the host may then free it.
#include "memory/pinned_memory.h"

#include "base/error.h"
#include "platform/platform.h"

namespace openreg::driver {

void* PinnedMemory::allocate(size_t size) {
  const size_t page = platform::page_size();
  const size_t rounded = (size + page - 1) / page * page;
  void* address = rounded < size ? nullptr : platform::allocate_pages(rounded);
  OPENREG_DRIVER_CHECK(address != nullptr, orErrorMemoryAllocation, "the system has no ", size,
                       " bytes of host memory left to pin; free pinned memory or end other programs");
  std::lock_guard<std::mutex> lock(mutex_);
  used_.emplace(static_cast<const char*>(address), rounded);
  return address;
}

void PinnedMemory::release(void* address) {
  size_t size = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = find(address);
    size = it->second;
    used_.erase(it);
  }
  platform::free_pages(address, size);
}

void PinnedMemory::check_releasable(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  find(address);
}

size_t PinnedMemory::size_of(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return find(address)->second;
}

bool PinnedMemory::contains(const void* address, size_t size) const {
  const auto* start = static_cast<const char*>(address);
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = used_.upper_bound(start);
  if (it == used_.begin()) {
    return false;
  }
  --it;
  const auto offset = static_cast<size_t>(start - it->first);
  return offset < it->second && size <= it->second - offset;
}

std::map<const char*, size_t>::const_iterator PinnedMemory::find(const void* address) const {
  const auto it = used_.find(static_cast<const char*>(address));
  OPENREG_DRIVER_CHECK(
      it != used_.end(), orErrorInvalidValue, "address ", address,
      " was not returned by orMallocHost(), or was freed before; free each allocation once, by its start");
  return it;
}

}  // namespace openreg::driver
