// SPDX-License-Identifier: BSD-3-Clause
// The implementation of MemoryProvider, the interface through which the caching allocator of a device uses everything
// outside of it. It uses the driver, PYTORCH_ALLOC_CONF and PyTorch's profiler.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/memory_provider.h"

namespace openreg::runtime {

// A memory provider on top of the driver; cache/memory_provider.h describes its functions. Thread-safe.
class DriverMemoryProvider final : public MemoryProvider {
 public:
  explicit DriverMemoryProvider(c10::DeviceIndex index) : index_(index) {}

  // Returns null if the device has no room for `size` bytes. Throws the driver's other errors.
  char* allocate(size_t size) override;
  void release(char* address) noexcept override;
  MemoryInfo memory_info() override;
  // Releases the GIL while it blocks. Ignores the device's sticky error.
  void synchronize() override;
  std::unique_ptr<StreamFence> record_fence(StreamKey stream) noexcept override;
  SegmentSettings settings() override;
  bool poisons() const override;
  void poison_allocated(char* address, size_t size, int64_t stream) override;
  void poison_freed(char* address, size_t size, int64_t stream) noexcept override;
  void report(void* address, int64_t change, size_t allocated, size_t reserved) override;

  // Returns the part of the capacity, from 0 to 1, that the allocator may reserve. It is that of the last
  // set_memory_fraction(), or that of PYTORCH_ALLOC_CONF before the first.
  double memory_fraction() const;
  void set_memory_fraction(double fraction) { fraction_ = fraction; }

 private:
  const c10::DeviceIndex index_;
  std::atomic<double> fraction_{-1};  // negative before set_memory_fraction()
};

}  // namespace openreg::runtime
