// SPDX-License-Identifier: BSD-3-Clause
// Pinned memory: memory of the host that the device may read and write while the host goes on.
#include <ATen/core/CachingHostAllocator.h>

#include <iterator>
#include <map>

#include "driver.h"
#include "queue.h"

namespace pocket {

namespace {

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    check_not_forked();
    if (nbytes == 0) {
      return {nullptr, c10::kCPU};
    }
    void* data = pocketMallocHost(nbytes);
    TORCH_CHECK_WITH(OutOfMemoryError, data != nullptr, "the host has no ", nbytes,
                     " bytes that can be pinned; free tensors or make smaller ones");
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_[static_cast<char*>(data)] = nbytes;
    return {data, data, raw_deleter(), c10::kCPU};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* data) {
      if (data != nullptr && !is_forked()) {
        release_later({data, [](void* unused) { static_cast<PinnedAllocator&>(pinned_allocator()).release(unused); }});
      }
    };
  }

  void copy_data(void* destination, const void* source, size_t nbytes) const override {
    default_copy_data(destination, source, nbytes);
  }

  // The functions behind torch.accelerator. Nothing is cached, and nothing is counted.
  void empty_cache() override {}
  bool record_event(void* /*data*/, void* /*context*/, c10::Stream /*stream*/) override { return true; }
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  bool contains(const void* address) {
    const auto* byte = static_cast<const char*>(address);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto after = blocks_.upper_bound(const_cast<char*>(byte));
    return after != blocks_.begin() && byte < std::prev(after)->first + std::prev(after)->second;
  }

 private:
  void release(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase(static_cast<char*>(data));
    pocketFreeHost(data);
  }

  std::mutex mutex_;
  std::map<char*, size_t> blocks_;
};

// torch.accelerator finds it there.
[[maybe_unused]] const bool registered = [] {
  at::setHostAllocator(kType, static_cast<PinnedAllocator*>(&pinned_allocator()));
  return true;
}();

}  // namespace

c10::Allocator& pinned_allocator() {
  static auto* const instance = new PinnedAllocator();
  return *instance;
}

bool is_pinned(const void* address) {
  return static_cast<PinnedAllocator&>(pinned_allocator()).contains(address);
}

}  // namespace pocket
