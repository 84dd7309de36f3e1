// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/memory_pool.h"

#include <atomic>
#include <utility>

#include "device_caches.h"
#include "openreg.h"
#include "openreg/runtime/device.h"

namespace openreg::runtime {

namespace {

c10::CaptureId_t next_number() {
  static std::atomic<c10::CaptureId_t> number{0};
  return ++number;
}

DeviceCache& checked_cache(c10::DeviceIndex index) {
  ensure_initialized();
  check_device_index(index);
  return device_cache(index);
}

}  // namespace

c10::MempoolId_t make_pool_id(bool for_capture) {
  return for_capture ? c10::MempoolId_t{next_number(), 0} : c10::MempoolId_t{0, next_number()};
}

void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id, std::function<bool(c10::Stream)> filter,
                            bool for_capture) {
  checked_cache(index).begin_route({id, std::move(filter), for_capture});
}

void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  checked_cache(index).end_route(id);
}

void retain_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  checked_cache(index).retain_pool(id);
}

void release_pool(c10::DeviceIndex index, c10::MempoolId_t id) {
  if (orDriverIsUsable() == 0) {
    return;  // a forked child may have inherited the mutex locked
  }
  check_device_index(index);
  device_cache(index).release_pool(id);
}

}  // namespace openreg::runtime
