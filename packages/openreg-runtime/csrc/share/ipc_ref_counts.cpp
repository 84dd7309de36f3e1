// SPDX-License-Identifier: BSD-3-Clause
// The sender's side of IPC reference counts: pages of device memory, in which each receiver sets one byte.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "share/shared_memory.h"

namespace openreg::runtime {

namespace {

constexpr size_t kPageSize = 4096;  // in bytes, and in reference counts, because a count is one byte

// A page of reference counts. It exists until the process ends, because receivers may set a count at any time.
struct Page {
  c10::DeviceIndex device = 0;
  char* address = nullptr;
  orStream_t stream = nullptr;  // its own stream, so that a read waits for no other tasks
  orIpcMemHandle_t handle{};
  std::array<bool, kPageSize> taken{};
  std::array<bool, kPageSize> released{};  // whether the receiver has set the byte; a taken slot that is not free yet
  size_t taken_count = 0;
};

std::unique_ptr<Page> make_page(c10::DeviceIndex index) {
  const CurrentDeviceGuard current(index);
  auto page = std::make_unique<Page>();
  page->device = index;
  void* address = nullptr;
  OPENREG_CHECK(orMalloc(&address, kPageSize));
  std::unique_ptr<void, orError_t (*)(void*)> memory(address, &orFree);  // until all calls have succeeded
  OPENREG_CHECK(orMemset(address, 0, kPageSize));
  OPENREG_CHECK(orIpcGetMemHandle(&page->handle, address));
  OPENREG_CHECK(orStreamCreate(&page->stream));
  page->address = static_cast<char*>(memory.release());
  return page;
}

// The reference counts of all storages that this process has sent, for all devices. Thread-safe.
class IpcRefCounts {
 public:
  IpcRefCount take(c10::DeviceIndex index) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Page& page = page_with_a_free_slot(index);
    const auto free = std::find(page.taken.begin(), page.taken.end(), false);
    *free = true;
    ++page.taken_count;
    return {page.handle, static_cast<size_t>(free - page.taken.begin())};
  }

  std::vector<IpcRefCount> collect() {
    std::vector<IpcRefCount> result;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& page : pages_) {
      if (page->taken_count > 0) {
        collect_page(*page, result);
      }
    }
    return result;
  }

  void cancel(const IpcRefCount& count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& page : pages_) {
      if (std::memcmp(&page->handle, &count.page, sizeof(count.page)) == 0 && count.slot < kPageSize &&
          page->taken[count.slot]) {
        page->taken[count.slot] = false;
        page->released[count.slot] = false;
        --page->taken_count;
      }
    }
  }

 private:
  Page& page_with_a_free_slot(c10::DeviceIndex index) {
    for (const auto& page : pages_) {
      if (page->device == index && page->taken_count < kPageSize) {
        return *page;
      }
    }
    pages_.push_back(make_page(index));
    return *pages_.back();
  }

  static void collect_page(Page& page, std::vector<IpcRefCount>& result) {
    const CurrentDeviceGuard current(page.device);
    std::array<char, kPageSize> bytes{};
    // A failed device cannot be read. Its counts are collected after its reset.
    if (orMemcpyAsync(bytes.data(), page.address, kPageSize, orMemcpyDeviceToHost, page.stream) != orSuccess) {
      orGetLastError();
      return;
    }
    orError_t status = orSuccess;
    for (size_t slot = 0; slot < kPageSize; ++slot) {
      page.released[slot] = page.released[slot] || (page.taken[slot] && bytes[slot] != 0);
      if (page.released[slot] && status == orSuccess) {
        status = orMemsetAsync(page.address + slot, 0, 1, page.stream);
      }
    }
    if (status == orSuccess) {
      status = orStreamSynchronize(page.stream);
    }
    if (status != orSuccess) {
      orGetLastError();
      return;
    }
    // A slot has to be 0 before it is used again, so it is free only now.
    for (size_t slot = 0; slot < kPageSize; ++slot) {
      if (page.released[slot]) {
        page.released[slot] = false;
        page.taken[slot] = false;
        --page.taken_count;
        result.push_back({page.handle, slot});
      }
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Page>> pages_;
};

IpcRefCounts& ref_counts() {
  static auto* const instance = new IpcRefCounts();
  return *instance;
}

}  // namespace

IpcRefCount new_ipc_ref_count(c10::DeviceIndex index) {
  ensure_initialized();
  check_device_index(index);
  const GilRelease release;
  return ref_counts().take(index);
}

void cancel_ipc_ref_count(const IpcRefCount& count) {
  const GilRelease release;
  ref_counts().cancel(count);
}

std::vector<IpcRefCount> collect_ipc_ref_counts() {
  if (!is_initialized()) {
    return {};
  }
  const GilRelease release;
  return ref_counts().collect();
}

}  // namespace openreg::runtime
