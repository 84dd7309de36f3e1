// SPDX-License-Identifier: BSD-3-Clause
// C functions on the memory of other processes.
#include "api/driver.h"

using namespace openreg::driver;

namespace {

// A guard that pauses the engines of all devices. Host threads continue to enqueue and query meanwhile.
class PausedEngines {
 public:
  explicit PausedEngines(Scheduler& scheduler) : scheduler_(scheduler) {
    Lock lock = scheduler_.lock();
    scheduler_.pause(lock);
  }
  PausedEngines(const PausedEngines&) = delete;
  PausedEngines& operator=(const PausedEngines&) = delete;
  ~PausedEngines() {
    const Lock lock = scheduler_.lock();
    scheduler_.resume(lock);
  }

 private:
  Scheduler& scheduler_;
};

// Returns the device that owns the address. Throws Error(orErrorInvalidDevicePointer) if none does.
Device& owning_device(Driver& driver, const void* pointer) {
  const int owner = driver.space.owner(pointer);
  OPENREG_DRIVER_CHECK(owner >= 0, orErrorInvalidDevicePointer, "address ", pointer,
                       " is not device memory; pass what orMalloc() or orIpcOpenMemHandle() returned");
  return driver.device(owner);
}

}  // namespace

orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* devPtr) {
  return guarded(__func__, [&] {
    check_pointer(handle, "handle");
    Driver& driver = Driver::get();
    Device& device = owning_device(driver, devPtr);
    device.memory.check_releasable(devPtr);
    {
      Lock lock = driver.scheduler.lock();
      driver.scheduler.drain(device, lock);
      device.check_healthy();
    }
    if (const auto known = device.memory.handle_of(devPtr)) {
      *handle = *known;
      return orSuccess;
    }
    // Other threads may have enqueued more, and other devices may read or write the allocation. Tasks that have begun
    // must end before the bytes move; tasks that begin afterwards find them in their new place. The scheduler's mutex
    // is not held during the move, which takes time in proportion to the size.
    const PausedEngines paused(driver.scheduler);
    *handle = device.memory.share(devPtr);
    return orSuccess;
  });
}

orError_t orIpcOpenMemHandle(void** devPtr, orIpcMemHandle_t handle, unsigned int flags) {
  return guarded(__func__, [&] {
    check_pointer(devPtr, "devPtr");
    check_flags(flags);
    Driver& driver = Driver::get();
    Device& device = driver.current();
    *devPtr = device.memory.imports().open(handle);
    driver.report_memory(orMemoryImported, device.index, *devPtr);
    return orSuccess;
  });
}

orError_t orIpcCloseMemHandle(void* devPtr) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    Device& device = owning_device(driver, devPtr);
    device.memory.imports().check_closable(devPtr);
    {
      Lock lock = driver.scheduler.lock();
      driver.scheduler.drain(device, lock);
    }
    driver.report_memory(orMemoryClosed, device.index, devPtr);
    device.memory.imports().close(devPtr);
    return orSuccess;
  });
}
