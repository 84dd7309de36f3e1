// SPDX-License-Identifier: BSD-3-Clause
// C functions that enqueue work.
#include "driver.h"

using namespace openreg::driver;

namespace {

orError_t enqueue(const Task& task, orStream_t handle) {
  Driver& driver = Driver::get();
  Lock lock = driver.scheduler.lock();
  driver.scheduler.submit(driver.scheduler.stream(handle, lock), task, lock);
  return orSuccess;
}

}  // namespace

orError_t orLaunchKernel(orStream_t stream, const orKernel* kernel) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(kernel != nullptr && kernel->function != nullptr && kernel->name != nullptr,
                         orErrorInvalidValue, "argument `kernel`, its function or its name is null");
    Task task;
    task.kind = Task::Kind::kKernel;
    task.kernel = *kernel;
    Driver& driver = Driver::get();
    {
      Lock lock = driver.scheduler.lock();
      Stream& target = driver.scheduler.stream(stream, lock);
      if (!driver.scheduler.is_blocking(target, lock)) {
        driver.scheduler.submit(target, task, lock);
        return orSuccess;
      }
      // The caller keeps the state when this call fails, also when it is the kernel that failed: so the engine must not
      // release it.
      task.kernel.release = nullptr;
      driver.scheduler.submit_and_wait(target, task, lock);
    }
    if (kernel->release != nullptr) {
      kernel->release(kernel->state);
    }
    return orSuccess;
  });
}

orError_t orLaunchHostFunc(orStream_t stream, orHostFunction_t function, void* user_data) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(function != nullptr, orErrorInvalidValue, "argument `function` is null");
    Task task;
    task.kind = Task::Kind::kHostFunction;
    task.host = {function, user_data};
    return enqueue(task, stream);
  });
}

orError_t orStreamDelay(orStream_t stream, uint64_t nanoseconds) {
  return guarded(__func__, [&] {
    Task task;
    task.kind = Task::Kind::kDelay;
    task.delay = nanoseconds;
    return enqueue(task, stream);
  });
}
