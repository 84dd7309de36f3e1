// SPDX-License-Identifier: BSD-3-Clause
// C functions on devices.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "api/driver.h"

using namespace openreg::driver;

orError_t orGetDeviceCount(int* count) {
  return guarded(__func__, [&] {
    check_pointer(count, "count");
    *count = settings().device_count;
    return orSuccess;
  });
}

orError_t orGetDevice(int* device) {
  return guarded(__func__, [&] {
    check_pointer(device, "device");
    *device = current_device();
    return orSuccess;
  });
}

orError_t orSetDevice(int device) {
  return guarded(__func__, [&] {
    check_device_index(device);
    current_device() = device;
    return orSuccess;
  });
}

orError_t orGetDeviceProperties(orDeviceProp* properties, int device) {
  return guarded(__func__, [&] {
    check_pointer(properties, "properties");
    check_device_index(device);
    *properties = {};
    std::strncpy(properties->name, "OpenReg simulated accelerator", sizeof(properties->name) - 1);
    properties->totalGlobalMem = settings().device_memory;
    properties->multiProcessorCount = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    properties->major = OPENREG_API_VERSION / 1000;
    properties->minor = OPENREG_API_VERSION % 1000;
    return orSuccess;
  });
}

orError_t orDeviceGetStats(orDeviceStats* stats, int device) {
  return guarded(__func__, [&] {
    check_pointer(stats, "stats");
    Driver& driver = Driver::get();
    Device& target = driver.device(device);
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.engines(lock).counters(target).write_to(*stats);
    stats->allocated_bytes = target.memory.allocated();
    stats->peak_allocated_bytes = target.memory.peak_allocated();
    return orSuccess;
  });
}

orError_t orDeviceGetUtilization(int* percent, int device) {
  return guarded(__func__, [&] {
    check_pointer(percent, "percent");
    Driver& driver = Driver::get();
    const Device& target = driver.device(device);
    const Lock lock = driver.scheduler.lock();
    *percent = driver.scheduler.engines(lock).utilization(target);
    return orSuccess;
  });
}

orError_t orGetEngineCount(int* count) {
  return guarded(__func__, [&] {
    check_pointer(count, "count");
    *count = kEngineCount;
    return orSuccess;
  });
}

orError_t orEngineGetStats(orEngineStats* stats, int engine) {
  return guarded(__func__, [&] {
    check_pointer(stats, "stats");
    OPENREG_DRIVER_CHECK(engine >= 0 && engine < kEngineCount, orErrorInvalidValue, "engine ", engine,
                         " does not exist; pass a number below what orGetEngineCount() returns");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *stats = driver.scheduler.engines(lock)[static_cast<EngineIndex>(engine)].stats();
    return orSuccess;
  });
}

orError_t orSetFaults(const char* specification) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    std::vector<Fault> faults;
    const std::string text = specification == nullptr ? "" : specification;
    OPENREG_DRIVER_CHECK(parse_faults(text, settings().device_count, faults), orErrorInvalidValue, "faults '", text,
                         "' are not accepted; give ", fault_form());
    driver.faults.arm(std::move(faults));
    return orSuccess;
  });
}

orError_t orRegisterFaultKind(int* kind, const char* name) {
  return guarded(__func__, [&] {
    check_pointer(kind, "kind");
    check_pointer(name, "name");
    *kind = register_fault_kind(name);
    return orSuccess;
  });
}

orError_t orCountForFault(int kind, int device, int* mustFail) {
  return guarded(__func__, [&] {
    check_pointer(mustFail, "mustFail");
    Driver& driver = Driver::get();
    check_device_index(device);
    OPENREG_DRIVER_CHECK(kind >= kFirstRegisteredFault && kind < fault_kind_count(), orErrorInvalidValue, "kind ", kind,
                         " of faults was not registered; pass a kind that orRegisterFaultKind() returned");
    *mustFail = driver.faults.should_fail(kind, device) ? 1 : 0;
    return orSuccess;
  });
}

orError_t orDeviceSynchronize(void) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Device& device = driver.current();
    Lock lock = driver.scheduler.lock();
    const uint64_t resets = device.resets;
    driver.scheduler.drain(device, lock);
    device.check_healthy_since(resets);
    return orSuccess;
  });
}

orError_t orDeviceReset(void) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Device& device = driver.current();
    Lock lock = driver.scheduler.lock();
    driver.scheduler.drain(device, lock);
    if (device.lost) {
      device.check_healthy();
    }
    device.resets += device.failed ? 1 : 0;
    device.failed = false;
    device.failure.clear();
    device.counters = {};
    device.memory.reset_peak();
    return orSuccess;
  });
}

orError_t orDeviceGetError(int device) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    const Device& target = driver.device(device);
    const Lock lock = driver.scheduler.lock();
    target.check_healthy();
    return orSuccess;
  });
}

orError_t orDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return guarded(__func__, [&] {
    check_pointer(leastPriority, "leastPriority");
    check_pointer(greatestPriority, "greatestPriority");
    *leastPriority = kLeastPriority;
    *greatestPriority = kGreatestPriority;
    return orSuccess;
  });
}

orError_t orDeviceCanAccessPeer(int* canAccess, int device, int peer) {
  return guarded(__func__, [&] {
    check_pointer(canAccess, "canAccess");
    check_device_index(device);
    check_device_index(peer);
    *canAccess = device != peer ? 1 : 0;
    return orSuccess;
  });
}

int orDriverIsUsable(void) {
  return Driver::is_unusable() ? 0 : 1;
}

orError_t orDriverGetVersion(int* version) {
  return guarded(__func__, [&] {
    check_pointer(version, "version");
    *version = OPENREG_API_VERSION;
    return orSuccess;
  });
}
