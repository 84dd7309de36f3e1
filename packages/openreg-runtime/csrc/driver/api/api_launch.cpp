// SPDX-License-Identifier: BSD-3-Clause
// C functions that enqueue kernels, host functions and delays.
#include "api/driver.h"

using namespace openreg::driver;

namespace {

// The address of an empty list of operands. Null would mean that the operands are unknown, not that there are none.
constexpr orOperand kNoOperand{};

orError_t enqueue(const Task& task, orStream_t handle) {
  Driver& driver = Driver::get();
  Lock lock = driver.scheduler.lock();
  driver.scheduler.submit(driver.scheduler.stream(handle, lock), task, lock);
  return orSuccess;
}

void check_operands(const orOperand* operands, size_t count) {
  OPENREG_DRIVER_CHECK(operands != nullptr || count == 0, orErrorInvalidValue,
                       "argument `operands` is null, and count is ", count, "; pass the operands, or a count of 0");
  for (size_t i = 0; i < count; ++i) {
    OPENREG_DRIVER_CHECK(operands[i].access >= orAccessRead && operands[i].access <= orAccessReadWrite,
                         orErrorInvalidValue, "operand ", i, " has access ", static_cast<int>(operands[i].access),
                         "; pass one of orAccess");
    OPENREG_DRIVER_CHECK(operands[i].address != nullptr || operands[i].size == 0, orErrorInvalidValue, "operand ", i,
                         " has ", operands[i].size, " bytes at a null address; pass their address, or a size of 0");
  }
}

Task task_of(const orKernel* kernel) {
  OPENREG_DRIVER_CHECK(kernel != nullptr && kernel->function != nullptr && kernel->name != nullptr, orErrorInvalidValue,
                       "argument `kernel`, its function or its name is null; pass a kernel that has both");
  Task task;
  task.kind = Task::Kind::kKernel;
  task.kernel = *kernel;
  return task;
}

void launch(orStream_t stream, const orKernel* kernel, const OperandSpan& operands) {
  Task task = task_of(kernel);
  Driver& driver = Driver::get();
  {
    Lock lock = driver.scheduler.lock();
    Stream& target = driver.scheduler.stream(stream, lock);
    if (!driver.scheduler.is_blocking(target, lock)) {
      driver.scheduler.submit(target, task, lock, operands);
      return;
    }
    // The caller keeps the state if this call fails, even if the kernel failed, so the engine must not release it.
    task.kernel.release = nullptr;
    driver.scheduler.submit_and_wait(target, task, lock, operands);
  }
  if (kernel->release != nullptr) {
    kernel->release(kernel->state);
  }
}

orError_t try_launch(orStream_t stream, const orKernel* kernel, const OperandSpan& operands) {
  const Task task = task_of(kernel);
  Driver& driver = Driver::get();
  Lock lock = driver.scheduler.lock();
  return driver.scheduler.try_submit(driver.scheduler.stream(stream, lock), task, lock, operands) ? orSuccess
                                                                                                  : orErrorNotReady;
}

}  // namespace

orError_t orLaunchKernel(orStream_t stream, const orKernel* kernel) {
  return guarded(__func__, [&] {
    launch(stream, kernel, {});
    return orSuccess;
  });
}

orError_t orLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel, const orOperand* operands,
                                     size_t count) {
  return guarded(__func__, [&] {
    check_operands(operands, count);
    launch(stream, kernel, {count == 0 ? &kNoOperand : operands, count});
    return orSuccess;
  });
}

orError_t orTryLaunchKernel(orStream_t stream, const orKernel* kernel) {
  return guarded(__func__, [&] { return try_launch(stream, kernel, {}); });
}

orError_t orTryLaunchKernelWithOperands(orStream_t stream, const orKernel* kernel, const orOperand* operands,
                                        size_t count) {
  return guarded(__func__, [&] {
    check_operands(operands, count);
    return try_launch(stream, kernel, {count == 0 ? &kNoOperand : operands, count});
  });
}

orError_t orLaunchHostFunc(orStream_t stream, orHostFunction_t function, void* user_data) {
  return guarded(__func__, [&] {
    OPENREG_DRIVER_CHECK(function != nullptr, orErrorInvalidValue,
                         "argument `function` is null; pass the function to call");
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
