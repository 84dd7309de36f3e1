// SPDX-License-Identifier: BSD-3-Clause
// The one driver of this process, and the frames of the C functions that use it.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/faults.h"
#include "base/settings.h"
#include "memory/address_space.h"
#include "memory/pinned_memory.h"
#include "objects/device.h"
#include "openreg.h"
#include "schedule/scheduler.h"

namespace openreg::driver {

// The devices, memory and scheduler of this process.
class Driver {
 public:
  // Returns the one instance, which is created on first use and never destroyed. Throws Error if the settings are
  // invalid, in a forked child of a process that used the device, and while the process exits. Also throws in a
  // callback. Thread-safe.
  static Driver& get();
  // Returns true if the instance can never be used again (forked child, process exit), so that releases have nothing to
  // do. Thread-safe.
  static bool is_unusable();
  // Returns true if a subscriber's callback may be called, as set by orSubscribe() and orUnsubscribe(). Thread-safe.
  static bool is_observed();
  static void set_observed(bool observed);
  // Returns true if a subscriber or a capture uses the operands of launches. Creates no instance. Thread-safe.
  static bool operands_wanted();
  // Calls the function of orSetEnqueueHook(), if there is one. The caller holds no lock.
  static void call_enqueue_hook() noexcept;
  static void set_enqueue_hook(orEnqueueHook_t hook) noexcept;

  // Throws Error(orErrorInvalidDevice) if the index is out of range.
  Device& device(int index);
  Device& current();

  // Reports to subscribers after an allocation and before a release, so that no address is allocated twice for them.
  // `device` is -1 for pinned memory of the host. The caller does not hold the scheduler's mutex.
  void report_memory(orMemoryAction action, int device, void* address) {
    if (is_observed()) {
      notify_memory(action, device, address);
    }
  }

  AddressSpace space;
  PinnedMemory pinned;
  Faults faults;
  std::vector<std::unique_ptr<Device>> devices;
  Scheduler scheduler;

 private:
  explicit Driver(const Settings& settings);
  static Driver* create();
  void notify_memory(orMemoryAction action, int device, void* address);
};

// Throws Error(orErrorInvalidDevice) unless `index` is below the device count.
void check_device_index(int index);

// Calls `body`, and converts what it throws to an error code and the thread's last message. Every C function that
// returns a code uses it.
template <class Body>
orError_t guarded(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return record_failure(error.code(), function, error.what());
  } catch (const std::bad_alloc&) {
    return record_failure(orErrorMemoryAllocation, function, "the host is out of memory; end other programs");
  } catch (const std::exception& error) {
    return record_failure(orErrorUnknown, function, error.what());
  }
}

// Same as guarded(), except for releases, which succeed and do nothing once the driver is unusable.
template <class Body>
orError_t guarded_release(const char* function, Body&& body) noexcept {
  if (Driver::is_unusable()) {
    return orSuccess;
  }
  const orError_t result = guarded(function, std::forward<Body>(body));
  return result == orErrorDeinitialized ? orSuccess : result;  // the process began to exit meanwhile
}

}  // namespace openreg::driver
