// SPDX-License-Identifier: BSD-3-Clause
// C functions on semaphores.
#include "api/driver.h"

using namespace openreg::driver;

orError_t orSemaphoreCreate(orSemaphore_t* semaphore, uint64_t value) {
  return guarded(__func__, [&] {
    check_pointer(semaphore, "semaphore");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    *semaphore = handle_of(driver.scheduler.semaphores(lock).create(value));
    return orSuccess;
  });
}

orError_t orSemaphoreDestroy(orSemaphore_t semaphore) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    Semaphores& semaphores = driver.scheduler.semaphores(lock);
    semaphores.destroy(semaphores.find(semaphore));
    return orSuccess;
  });
}

orError_t orSemaphoreSignal(orSemaphore_t semaphore, uint64_t value) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.signal(driver.scheduler.semaphores(lock).find(semaphore), value, lock);
    return orSuccess;
  });
}

orError_t orSemaphoreFail(orSemaphore_t semaphore, orError_t status, const char* message) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(status > orSuccess && status <= orErrorIllegalState && status != orErrorNotReady,
                         orErrorInvalidValue, "status ", static_cast<int>(status),
                         " is no failure; pass a code of orError_t other than orSuccess and orErrorNotReady");
    Driver& driver = Driver::get();
    std::string reason =
        join(orGetErrorName(status), ": ", message == nullptr || *message == 0 ? orGetErrorString(status) : message);
    const Lock lock = driver.scheduler.lock();
    driver.scheduler.fail(driver.scheduler.semaphores(lock).find(semaphore), std::move(reason), lock);
    return orSuccess;
  });
}

orError_t orSemaphoreGetValue(orSemaphore_t semaphore, uint64_t* value) {
  return guarded(__func__, [&] {
    check_pointer(value, "value");
    Driver& driver = Driver::get();
    const Lock lock = driver.scheduler.lock();
    const TimelineSemaphore& target = driver.scheduler.semaphores(lock).find(semaphore);
    *value = target.signaled;
    Semaphores::check_not_failed(target);
    return orSuccess;
  });
}

orError_t orStreamWaitSemaphore(orStream_t stream, orSemaphore_t semaphore, uint64_t value) {
  return guarded(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    driver.scheduler.semaphores(lock).find(semaphore);
    Stream& target = driver.scheduler.stream(stream, lock);
    driver.scheduler.wait_for_capacity(target, lock);  // so that wait_for_value() does not block before it enqueues
    driver.scheduler.wait_for_value(target, driver.scheduler.semaphores(lock).find(semaphore), value, lock);
    return orSuccess;
  });
}

orError_t orThreadSetProgress(int progress) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(progress == 0 || progress == 1, orErrorInvalidValue, "argument `progress` is ", progress,
                         "; pass 1 for a thread that moves communication along, 0 for any other");
    is_progress_thread() = progress == 1;
    return orSuccess;
  });
}
