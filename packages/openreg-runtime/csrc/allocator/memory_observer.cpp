// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/memory_observer.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "allocator/device_allocators.h"
#include "base/observer_callback.h"
#include "openreg.h"
#include "openreg/runtime/device.h"

namespace openreg::runtime {

uint64_t observe_memory(MemoryObserver observer) {
  refuse_inside_callback("observe_memory");
  TORCH_CHECK_VALUE(observer.callback != nullptr,
                    "observe_memory: the observer has no callback; set MemoryObserver::callback");
  TORCH_CHECK_VALUE(observer.kinds != 0 && (observer.kinds & ~kAllMemoryEvents) == 0, "observe_memory: the kinds ",
                    observer.kinds, " are not accepted; combine one or more values of memory_event_bit(), at most to ",
                    kAllMemoryEvents, " (kAllMemoryEvents)");
  if (observer.device != -1) {
    check_device_index(observer.device);
  }
  static std::atomic<uint64_t> last{0};
  const uint64_t id = ++last;
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    if (observer.device == -1 || observer.device == index) {
      allocator_state(index).cache.add_observer(id, observer.kinds, observer.callback);
    }
  }
  return id;
}

void stop_observing_memory(uint64_t subscription) {
  if (orDriverIsUsable() == 0) {
    return;  // a forked child may have inherited the mutex locked
  }
  refuse_inside_callback("stop_observing_memory");
  bool known = false;
  std::string failure;
  for (c10::DeviceIndex index = 0; subscription != 0 && index < device_count(); ++index) {
    const std::optional<std::string> removed = allocator_state(index).cache.remove_observer(subscription);
    known = known || removed.has_value();
    if (removed && failure.empty()) {
      failure = c10::str(*removed);
    }
  }
  TORCH_CHECK(known, "stop_observing_memory: ", subscription,
              " is not the number of a subscription, or was ended before; pass each number that observe_memory() "
              "returned once");
  TORCH_CHECK(failure.empty(), "stop_observing_memory: the callback of subscription ", subscription,
              " threw and was not called again: ", failure, "; catch exceptions inside of the callback");
}

}  // namespace openreg::runtime
