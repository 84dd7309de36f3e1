// SPDX-License-Identifier: BSD-3-Clause
// Driver is the state behind the C API: the devices, memory and scheduler of this process. C functions pass their body
// to guarded(), which converts exceptions to error codes.
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
  // Returns the only instance, which is created on first use and never destroyed. Throws Error if the settings are
  // invalid, in a forked child of a process that used the device, while the process exits, and in a subscriber's
  // callback. Thread-safe.
  static Driver& get();
  // Returns true if the instance can never be used again, in a forked child or while the process exits. Functions that
  // release something then do nothing. Thread-safe.
  static bool is_unusable();
  // Return and set a flag that is true while a subscriber's callback may be called. orSubscribe() and orUnsubscribe()
  // set it. Thread-safe.
  static bool is_observed();
  static void set_observed(bool observed);
  // Returns true if a subscriber or a capture uses the operands of launches (the memory that kernels read and write).
  // Creates no instance. Thread-safe.
  static bool operands_wanted();
  // Calls the enqueue hook, the function by which a tool captures the stack of the thread that enqueues a task
  // (orSetEnqueueHook()), if one is set. The caller holds no lock. Thread-safe.
  static void call_enqueue_hook() noexcept;
  static void set_enqueue_hook(orEnqueueHook_t hook) noexcept;
  // Calls call_enqueue_hook() if operands_wanted(). Functions that enqueue a copy, a fill or a graph call it before
  // they take a lock. For a kernel, orOperandsWanted() calls the hook.
  void before_enqueue() const noexcept {
    if (scheduler.operands_wanted()) [[unlikely]] {
      call_enqueue_hook();
    }
  }

  // Returns a device. Throws Error(orErrorInvalidDevice) if the index is out of range.
  Device& device(int index);
  // Returns the current device of the calling thread.
  Device& current();

  // Reports an allocation or release to subscribers. Must be called after an allocation and before a release, so that
  // subscribers never see an address allocated twice. `device` is -1 for pinned memory. The caller does not hold the
  // scheduler's mutex.
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
// Throws Error(orErrorInvalidValue) unless `flags`, of a function that knows none, is 0.
void check_flags(unsigned int flags);

// Calls `body` and returns its code. Converts an exception to an error code and to the calling thread's last message.
// `function` is the name of the C function for that message. C functions that return a code and can throw use it.
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

// Same as guarded(), except that it returns orSuccess and does not call `body` if the driver is unusable. Functions
// that release something use it.
template <class Body>
orError_t guarded_release(const char* function, Body&& body) noexcept {
  if (Driver::is_unusable()) {
    return orSuccess;
  }
  const orError_t result = guarded(function, std::forward<Body>(body));
  return result == orErrorDeinitialized ? orSuccess : result;  // the process began to exit meanwhile
}

}  // namespace openreg::driver
