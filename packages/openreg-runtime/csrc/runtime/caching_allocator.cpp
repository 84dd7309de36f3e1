// SPDX-License-Identifier: BSD-3-Clause
// Implements c10::DeviceAllocator on top of one cache per device.
#include <array>
#include <memory>

#include "device_caches.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

c10::DeviceIndex owner_of(const void* address) {
  orPointerAttributes attributes{};
  OPENREG_CHECK(orPointerGetAttributes(&attributes, address));
  return static_cast<c10::DeviceIndex>(attributes.device);
}

using Caches = std::array<std::unique_ptr<DeviceCache>, OPENREG_MAX_DEVICES>;

Caches* make_caches() {
  auto* caches = new Caches();
  for (size_t i = 0; i < caches->size(); ++i) {
    (*caches)[i] = std::make_unique<DeviceCache>(static_cast<c10::DeviceIndex>(i));
  }
  return caches;
}

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    ensure_initialized();
    const c10::DeviceIndex index = current_device();
    void* address = size == 0 ? nullptr : device_cache(index).allocate(size, current_stream(index).id());
    return {address, address, &release, c10::Device(kDeviceType, index)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  // Ordered on the current stream, like any other work on the two ranges.
  void copy_data(void* destination, const void* source, size_t count) const override {
    OPENREG_CHECK(orMemcpyAsync(destination, source, count, orMemcpyDeviceToDevice, native_handle(current_stream())));
  }

  bool initialized() override { return is_initialized(); }

  void emptyCache(c10::MempoolId_t id) override {
    for (c10::DeviceIndex index = 0; is_initialized() && index < device_count(); ++index) {
      device_cache(index).empty(id);
    }
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    // Only what this allocator handed out; memory made by from_blob() has another deleter and its own owner.
    if (data.get() != nullptr && data.get_deleter() == &release) {
      device_cache(owner_of(data.get())).record_stream(data.get(), stream);
    }
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    check_device_index(index);
    return device_cache(index).stats();
  }

  void resetAccumulatedStats(c10::DeviceIndex index) override {
    check_device_index(index);
    device_cache(index).reset_accumulated_stats();
  }

  void resetPeakStats(c10::DeviceIndex index) override {
    check_device_index(index);
    device_cache(index).reset_peak_stats();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    check_device_index(index);
    const CurrentDevice current(index);
    size_t free = 0;
    size_t total = 0;
    OPENREG_CHECK(orMemGetInfo(&free, &total));
    return {free, total};
  }

  static CachingAllocator& instance() {
    static auto* const allocator = new CachingAllocator();  // outlives every tensor
    return *allocator;
  }

 private:
  // A deleter must not throw, and must not touch a mutex that a forked child may have inherited locked.
  static void release(void* address) {
    if (address == nullptr || orDriverIsUsable() == 0) {
      return;
    }
    try {
      // Mostly of the current device; finding the owner takes a lock of the driver.
      if (!device_cache(current_device()).release(address)) {
        const c10::DeviceIndex owner = owner_of(address);
        if (owner >= 0) {
          device_cache(owner).release(address);
        }
      }
    } catch (const std::exception& error) {
      TORCH_WARN("releasing openreg memory failed: ", error.what());
    }
  }
};

REGISTER_ALLOCATOR(kDeviceType, &CachingAllocator::instance())

}  // namespace

DeviceCache& device_cache(c10::DeviceIndex index) {
  static auto* const caches = make_caches();
  return *(*caches)[static_cast<size_t>(index)];
}

c10::DeviceAllocator& device_allocator() {
  return CachingAllocator::instance();
}

double memory_fraction(c10::DeviceIndex index) {
  check_device_index(index);
  return device_cache(index).memory_fraction();
}

void set_memory_fraction(c10::DeviceIndex index, double fraction) {
  check_device_index(index);
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "the memory fraction of openreg:", static_cast<int>(index),
                    " must be a number from 0 to 1, got ", fraction);
  device_cache(index).set_memory_fraction(fraction);
}

size_t allocated_size(void* address) {
  const c10::DeviceIndex owner = owner_of(address);
  return owner < 0 ? 0 : device_cache(owner).allocated_size(address);
}

}  // namespace openreg::runtime
