// SPDX-License-Identifier: BSD-3-Clause
// What the caching allocator of one device asks for, answered by the driver, PYTORCH_ALLOC_CONF and the profiler.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/memory_provider.h"

namespace openreg::runtime {

class DriverMemoryProvider final : public MemoryProvider {
 public:
  explicit DriverMemoryProvider(c10::DeviceIndex index) : index_(index) {}

  // Throws what the driver says, but for a lack of memory.
  char* allocate(size_t size) override;
  void release(char* address) noexcept override;
  MemoryInfo memory_info() override;
  // Releases the GIL meanwhile.
  void synchronize() override;
  std::unique_ptr<StreamFence> mark(StreamKey stream) noexcept override;
  SegmentSettings settings() override;
  bool poisons() const override;
  void poison(char* address, size_t size, int64_t stream) noexcept override;
  void report(void* address, int64_t change, size_t allocated, size_t reserved) override;

  // The part of the capacity that the cache may hold: what was set, else what PYTORCH_ALLOC_CONF says.
  double memory_fraction() const;
  void set_memory_fraction(double fraction) { fraction_ = fraction; }

 private:
  const c10::DeviceIndex index_;
  std::atomic<double> fraction_{-1};  // negative: nothing was set
};

}  // namespace openreg::runtime
