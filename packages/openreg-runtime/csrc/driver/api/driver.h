// SPDX-License-Identifier: BSD-3-Clause
// The whole simulated board of this process, and how a C function gets at it.
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

class Driver {
 public:
  // The one instance, made on first use and never destroyed. Throws Error when the settings are refused, in a forked
  // child of a process that used the device, and while the process exits.
  static Driver& get();
  // Whether the instance is gone for good (forked child, process exit), so that releases have nothing to do.
  static bool is_unusable();
  // Whether somebody is subscribed, as set by the functions that change it. Needs no lock.
  static bool is_observed();
  static void set_observed(bool observed);
  // Whether it pays to say what a launch reads and writes. Needs no lock, and makes no instance.
  static bool operands_wanted();

  Device& device(int index);
  Device& current();

  // Tells observers of memory: after an allocation, before a release, so that no address is allocated twice for them.
  // `device` is -1 for pinned memory of the host.
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

// Checks an index against the device count; throws Error(orErrorInvalidDevice).
void check_device_index(int index);

// Runs `body`, turning what it throws into a code and the thread's last message. The frame of every C function.
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

// The same for releases, which succeed and do nothing once the driver is gone.
template <class Body>
orError_t guarded_release(const char* function, Body&& body) noexcept {
  if (Driver::is_unusable()) {
    return orSuccess;
  }
  const orError_t result = guarded(function, std::forward<Body>(body));
  return result == orErrorDeinitialized ? orSuccess : result;  // the process began to exit meanwhile
}

}  // namespace openreg::driver
