// SPDX-License-Identifier: BSD-3-Clause
#include "allocator/driver_memory_provider.h"

#include <c10/core/Allocator.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include "allocator/poison.h"
#include "base/allocator_settings.h"
#include "cache/size_policy.h"
#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/tool_hooks.h"

namespace openreg::runtime {

namespace {

static_assert(kMinBlock == c10::CachingAllocator::kMinBlockSize);
static_assert(kSmallRequest == c10::CachingAllocator::kSmallSize);
static_assert(kSmallSegment == c10::CachingAllocator::kSmallBuffer);
static_assert(kOwnSegment == c10::CachingAllocator::kMinLargeAlloc);
static_assert(kSegmentRounding == c10::CachingAllocator::kRoundLarge);

c10::Stream to_stream(StreamKey key) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(key.device)), key.id);
}

// A fence that is an event of the driver.
class EventFence final : public StreamFence {
 public:
  explicit EventFence(c10::Stream stream) noexcept { event_.record_for_release(stream); }
  bool is_signaled() const noexcept override { return event_.query_for_release(); }

 private:
  Event event_;
};

}  // namespace

char* DriverMemoryProvider::allocate(size_t size) {
  const CurrentDeviceGuard current(index_);
  void* address = nullptr;
  const orError_t status = orMalloc(&address, size);
  if (status == orErrorMemoryAllocation) {
    orGetLastError();  // clears the expected error, because the allocator retries
    return nullptr;
  }
  OPENREG_CHECK(status);
  return static_cast<char*>(address);
}

void DriverMemoryProvider::release(char* address) noexcept {
  const CallReasonGuard reason(CallReason::kAllocator);
  OPENREG_WARN(orFree(address));
}

MemoryInfo DriverMemoryProvider::memory_info() {
  const CurrentDeviceGuard current(index_);
  MemoryInfo info;
  OPENREG_CHECK(orMemGetInfo(&info.free, &info.total));
  return info;
}

void DriverMemoryProvider::synchronize() {
  const GilRelease release;
  const CallReasonGuard reason(CallReason::kAllocator);
  const CurrentDeviceGuard current(index_);
  orDeviceSynchronize();
  orGetLastError();
}

std::unique_ptr<StreamFence> DriverMemoryProvider::record_fence(StreamKey stream) noexcept {
  return std::make_unique<EventFence>(to_stream(stream));
}

SegmentSettings DriverMemoryProvider::settings() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  SegmentSettings settings;
  settings.large_segment = Config::large_segment_size();
  settings.max_non_split_rounding = Config::max_non_split_rounding_size();
  settings.garbage_collection_threshold = Config::garbage_collection_threshold();
  settings.memory_fraction = memory_fraction();
  return settings;
}

bool DriverMemoryProvider::poisons() const {
  return poison_is_on();
}

void DriverMemoryProvider::poison_allocated(char* address, size_t size, int64_t stream) {
  const GilRelease release;
  poison(address, size, to_stream({index_, stream}));
}

void DriverMemoryProvider::poison_freed(char* address, size_t size, int64_t stream) noexcept {
  poison(address, size, to_stream({index_, stream}));
}

void DriverMemoryProvider::report(void* address, int64_t change, size_t allocated, size_t reserved) {
  c10::reportMemoryUsageToProfiler(address, change, allocated, reserved, c10::Device(kDeviceType, index_));
}

double DriverMemoryProvider::memory_fraction() const {
  const double fraction = fraction_.load(std::memory_order_relaxed);
  return fraction < 0 ? memory_fraction_setting() : fraction;
}

}  // namespace openreg::runtime
