// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver has a page allocator. Here the pages return to the operating system on release, which fills them
// with zeros when they are used again. openreg.h promises no content, so the next allocation may rely on none.
#include "memory/device_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "base/settings.h"
#include "platform/platform.h"

namespace openreg::driver {

DeviceMemory::DeviceMemory(const AddressSpace& space, int device, size_t capacity)
    : space_(space), device_(device), capacity_(capacity), imports_(space, device) {
  insert_free(0, capacity);
}

void* DeviceMemory::allocate(size_t size) {
  const size_t page = platform::page_size();
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t available = capacity_ - allocated_;
  OPENREG_DRIVER_CHECK(size <= available, orErrorMemoryAllocation, "device ", device_, " is out of memory: ", size,
                       " bytes requested, ", available, " of its ", capacity_,
                       " free; release memory or raise OPENREG_DEVICE_MEMORY");
  const size_t rounded = (size + page - 1) / page * page;  // cannot overflow: size <= capacity_, a multiple of pages
  const auto found = free_by_size_.lower_bound({rounded, 0});
  OPENREG_DRIVER_CHECK(found != free_by_size_.end(), orErrorMemoryAllocation, "device ", device_,
                       " is out of memory: ", size, " bytes requested, ", available,
                       " free but fragmented, the largest range has ", largest_free(),
                       "; release memory or raise OPENREG_DEVICE_MEMORY");
  const auto [range_size, offset] = *found;
  void* address = space_.device_base(device_) + offset;
  OPENREG_DRIVER_CHECK(platform::commit(space_.kernel_view(address), rounded), orErrorMemoryAllocation,
                       "the system has no ", rounded, " bytes left for device ", device_,
                       "; lower OPENREG_DEVICE_MEMORY or end other programs");
  erase_free(offset, range_size);
  if (range_size > rounded) {
    insert_free(offset + rounded, range_size - rounded);
  }
  used_.emplace(offset, rounded);
  allocated_ += rounded;
  peak_ = std::max(peak_, allocated_);
  lock.unlock();
  if (settings().poison) {
    std::memset(space_.kernel_view(address), kPoison, rounded);  // needs no lock: only this call has the address yet
  }
  return address;
}

void DeviceMemory::release(void* address) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto it = find_settled(address, lock);
  size_t offset = it->first;
  size_t size = it->second;
  std::unique_ptr<SharedAllocation> shared;
  if (const auto entry = shared_.find(offset); entry != shared_.end()) {
    shared = std::move(entry->second);
    shared_.erase(entry);
  }
  used_.erase(it);
  releases_.fetch_add(1, std::memory_order_release);
  // The lock is released because the system reclaims pages one by one. Meanwhile the range still counts as allocated,
  // but lookups do not find it.
  lock.unlock();
  if (shared != nullptr) {
    shared.reset();
  } else {
    platform::decommit(space_.kernel_view(address), size);
  }
  lock.lock();
  allocated_ -= size;
  const auto next = free_by_offset_.find(offset + size);
  if (next != free_by_offset_.end()) {
    const size_t next_size = next->second;
    erase_free(offset + size, next_size);
    size += next_size;
  }
  auto previous = free_by_offset_.lower_bound(offset);
  if (previous != free_by_offset_.begin()) {
    --previous;
    const auto [previous_offset, previous_size] = *previous;
    if (previous_offset + previous_size == offset) {
      erase_free(previous_offset, previous_size);
      offset = previous_offset;
      size += previous_size;
    }
  }
  insert_free(offset, size);
}

void DeviceMemory::check_releasable(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  find_allocated(address);
}

std::optional<orIpcMemHandle_t> DeviceMemory::handle_of(const void* address) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = shared_.find(find_allocated(address)->first);
  return found == shared_.end() || found->second == nullptr ? std::nullopt
                                                            : std::make_optional(found->second->handle());
}

orIpcMemHandle_t DeviceMemory::share(void* address) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto [offset, size] = *find_settled(address, lock);
  const auto [entry, is_new] = shared_.try_emplace(offset);  // null while the bytes are moved
  if (is_new) {
    lock.unlock();
    std::unique_ptr<SharedAllocation> shared;
    try {
      shared = std::make_unique<SharedAllocation>(space_.kernel_view(address), size);
    } catch (...) {
      lock.lock();
      shared_.erase(entry);
      settled_.notify_all();
      throw;
    }
    lock.lock();
    entry->second = std::move(shared);
    settled_.notify_all();
  }
  return entry->second->handle();
}

void DeviceMemory::withdraw_shared() noexcept {
  // Process exit must not wait for a thread that holds the mutex, because that thread may not run any more.
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    for (auto& entry : shared_) {
      if (entry.second != nullptr) {  // while its bytes are moved, an allocation has no handle yet
        entry.second->withdraw();
      }
    }
  }
}

bool DeviceMemory::contains(const void* address, size_t size) const {
  // The allocation that the calling thread has found last. Most copies are within it, and take no lock then.
  struct Found {
    const DeviceMemory* memory;
    uint64_t releases;  // while the memory has as many, the allocation exists
    size_t offset;
    size_t size;
  };
  thread_local Found last{};
  const size_t offset = offset_of(address);
  if (offset >= capacity_) {
    return imports_.contains(address, size);
  }
  const uint64_t releases = releases_.load(std::memory_order_acquire);
  if (last.memory != this || last.releases != releases || offset - last.offset >= last.size) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = find_around(address);
    if (found == used_.end()) {
      return false;
    }
    last = {this, releases, found->first, found->second};
  }
  return size <= last.size - (offset - last.offset);
}

std::pair<void*, size_t> DeviceMemory::range_of(const void* address) const {
  const auto import = imports_.range_of(address);
  if (import.first != nullptr) {
    return import;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_around(address);
  OPENREG_DRIVER_CHECK(found != used_.end(), orErrorInvalidDevicePointer, "address ", address, " of device ", device_,
                       " lies in no live allocation; check that it was not freed");
  return {space_.device_base(device_) + found->first, found->second};
}

void DeviceMemory::check_range(const void* address, size_t size) const {
  OPENREG_DRIVER_CHECK(contains(address, size), orErrorInvalidDevicePointer, size, " bytes at ", address, " of device ",
                       device_, " do not lie inside one live allocation; check the size, and that it was not freed");
}

size_t DeviceMemory::allocated() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return allocated_;
}

size_t DeviceMemory::peak_allocated() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return peak_;
}

void DeviceMemory::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  peak_ = allocated_;
}

void DeviceMemory::insert_free(size_t offset, size_t size) {
  free_by_offset_.emplace(offset, size);
  free_by_size_.emplace(size, offset);
}

void DeviceMemory::erase_free(size_t offset, size_t size) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({size, offset});
}

size_t DeviceMemory::largest_free() const {
  return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
}

size_t DeviceMemory::offset_of(const void* address) const {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(space_.device_base(device_));
}

// Returns the allocation that contains the byte at `address`, or used_.end(). The caller holds `mutex_`.
std::map<size_t, size_t>::const_iterator DeviceMemory::find_around(const void* address) const {
  const size_t offset = offset_of(address);
  auto entry = used_.upper_bound(offset);
  if (entry == used_.begin()) {
    return used_.end();
  }
  --entry;
  return offset - entry->first < entry->second ? entry : used_.end();
}

// Returns the allocation that starts at `address`. Throws Error(orErrorInvalidDevicePointer) if there is none. The
// caller holds `mutex_`.
std::map<size_t, size_t>::const_iterator DeviceMemory::find_allocated(const void* address) const {
  OPENREG_DRIVER_CHECK(!imports_.contains(address, 1), orErrorInvalidDevicePointer, "address ", address, " of device ",
                       device_, " is memory of another process; close it with orIpcCloseMemHandle()");
  const auto it = used_.find(offset_of(address));
  OPENREG_DRIVER_CHECK(it != used_.end(), orErrorInvalidDevicePointer, "address ", address, " of device ", device_,
                       " was not returned by orMalloc(), or was freed before; free each allocation once, by its start");
  return it;
}

// Same as `find_allocated()`, except that it blocks while share() moves the bytes. Releases the mutex while it blocks.
std::map<size_t, size_t>::const_iterator DeviceMemory::find_settled(const void* address,
                                                                    std::unique_lock<std::mutex>& lock) {
  for (;;) {
    const auto it = find_allocated(address);  // again after each wait, because another thread may have released it
    const auto entry = shared_.find(it->first);
    if (entry == shared_.end() || entry->second != nullptr) {
      return it;
    }
    settled_.wait(lock);
  }
}

}  // namespace openreg::driver
