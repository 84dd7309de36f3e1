// SPDX-License-Identifier: BSD-3-Clause
#include "allocator/memory_pool.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <string>
#include <utility>

#include "allocator/device_allocators.h"
#include "openreg.h"
#include "openreg/runtime/device.h"

namespace openreg::runtime {

namespace {

c10::CaptureId_t next_number() {
  static std::atomic<c10::CaptureId_t> number{0};
  return ++number;
}

// Returns the cache of a device. Throws c10::ValueError if `id` is that of the default pool, which is not private.
DeviceCachingAllocator& cache_for(c10::DeviceIndex index, c10::MempoolId_t id, const char* function) {
  ensure_initialized();
  DeviceCachingAllocator& cache = checked_device(index, function).cache;
  TORCH_CHECK_VALUE(id != kDefaultPool, function,
                    ": memory pool (0, 0) is the default pool of openreg:", static_cast<int>(index),
                    "; pass the id of a private pool, which make_pool_id() returns");
  return cache;
}

std::string describe(c10::MempoolId_t id, c10::DeviceIndex index) {
  return c10::str("memory pool (", id.first, ", ", id.second, ") of openreg:", static_cast<int>(index));
}

}  // namespace

c10::MempoolId_t make_pool_id(bool for_capture) {
  return for_capture ? c10::MempoolId_t{next_number(), 0} : c10::MempoolId_t{0, next_number()};
}

void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id, std::function<bool(c10::Stream)> filter,
                            bool for_capture) {
  const auto accepts = [index, filter = std::move(filter)](int64_t stream) {
    return filter(c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), stream));
  };
  cache_for(index, id, "begin_allocate_to_pool").begin_pool_filter({id, accepts, for_capture});
}

void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  TORCH_CHECK(cache_for(index, id, "end_allocate_to_pool").end_pool_filter(id),
              "end_allocate_to_pool: no allocations are routed to the ", describe(id, index),
              "; call it once for each begin_allocate_to_pool()");
}

void retain_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  cache_for(index, id, "retain_pool").retain_pool(id);
}

void release_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  if (orDriverIsUsable() == 0) {
    return;  // a forked child may have inherited the mutex locked
  }
  TORCH_CHECK(checked_device(index, "release_pool").cache.release_pool(id), "release_pool: the ", describe(id, index),
              " has no user to release; call it once for each retain_pool() or begin_allocate_to_pool()");
}

}  // namespace openreg::runtime
