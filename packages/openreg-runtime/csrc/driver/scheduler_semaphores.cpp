// SPDX-License-Identifier: BSD-3-Clause
// Waits that somebody outside of the device ends. What a seed makes of them is in scheduler_seeded.cpp.
#include <algorithm>
#include <utility>

#include "error.h"
#include "scheduler.h"

namespace openreg::driver {

TimelineSemaphore& Scheduler::semaphore(orSemaphore_t handle, const Lock& /*lock*/) {
  TimelineSemaphore* semaphore = semaphores_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(
      semaphore != nullptr, orErrorInvalidResourceHandle, "semaphore ", handle,
      " does not exist in this process or was destroyed; use a handle that orSemaphoreCreate() gave to "
      "this process");
  return *semaphore;
}

orSemaphore_t Scheduler::handle(const TimelineSemaphore& semaphore) {
  return reinterpret_cast<orSemaphore_t>(HandleTable<TimelineSemaphore>::handle(semaphore));
}

TimelineSemaphore& Scheduler::create_semaphore(uint64_t value, const Lock& /*lock*/) {
  TimelineSemaphore& semaphore = semaphores_.create();
  semaphore.signalled = value;
  semaphore.reached = value;
  semaphore.failure.clear();
  return semaphore;
}

void Scheduler::destroy_semaphore(TimelineSemaphore& semaphore, const Lock& /*lock*/) {
  OPENREG_DRIVER_CHECK(semaphore.waits == 0, orErrorIllegalState, "streams still hold ", semaphore.waits,
                       " waits for this semaphore, whose value is ", semaphore.signalled,
                       "; end them with orSemaphoreSignal() or orSemaphoreFail(), wait for the streams with "
                       "orStreamSynchronize(), then destroy it");
  HandleTable<TimelineSemaphore>::invalidate(semaphore);
  semaphores_.recycle(semaphore);
}

void Scheduler::check_sound(const TimelineSemaphore& semaphore, const Lock& /*lock*/) {
  OPENREG_DRIVER_CHECK(semaphore.failure.empty(), orErrorIllegalState, "the semaphore has failed with ",
                       semaphore.failure, "; destroy it and create another one");
}

void Scheduler::signal(TimelineSemaphore& semaphore, uint64_t value, const Lock& lock) {
  check_sound(semaphore, lock);
  OPENREG_DRIVER_CHECK(value >= semaphore.signalled, orErrorInvalidValue, "value ", value, " is below ",
                       semaphore.signalled, ", which was signalled before; a value only grows, signal a greater one");
  semaphore.signalled = value;
  if (observers_.any()) {
    observe_semaphore(orSyncSemaphoreSignal, semaphore, value, nullptr);
  }
  if (seeded_.has_value()) {
    wake(engines_[kCompute]);  // which takes it when its turn has come
    return;
  }
  reach(semaphore, value);
  settle();
}

void Scheduler::fail(TimelineSemaphore& semaphore, std::string reason, const Lock& lock) {
  check_sound(semaphore, lock);
  semaphore.failure = std::move(reason);
  if (seeded_.has_value()) {
    wake(engines_[kCompute]);
    return;
  }
  while (!semaphore.waiters.empty()) {
    fail_wait(*semaphore.waiters.front().stream, semaphore);
  }
  settle();
}

void Scheduler::wait_for_value(Stream& stream, TimelineSemaphore& semaphore, uint64_t value, Lock& lock) {
  check_may_wait_outside(stream, lock);
  if (observers_.any()) {
    observe_semaphore(orSyncSemaphoreWait, semaphore, value, &stream);
  }
  if (semaphore.reached >= value) {
    return;
  }
  start(lock);
  Task task;
  task.kind = Task::Kind::kSemaphoreWait;
  task.semaphore = {&semaphore, value, ++newest_semaphore_wait_};
  ++semaphore.waits;
  try {
    append(stream, task, lock);
  } catch (...) {
    --semaphore.waits;  // the host has no memory for the entry
    throw;
  }
  relieve_backlog(lock);
}

// True when the wait at the stream's head is over.
bool Scheduler::pass_semaphore_wait(Stream& stream, const Task::SemaphoreWait& wait) {
  TimelineSemaphore& semaphore = *wait.semaphore;
  if (stream.device->failed || semaphore.reached >= wait.value) {
    return true;
  }
  if (!seeded_.has_value() && !semaphore.failure.empty()) {
    fail_wait(stream, semaphore);
    return true;
  }
  semaphore.waiters.push_back({&stream, wait.value});
  return false;
}

// Lets the streams see a value; settle() moves them on.
void Scheduler::reach(TimelineSemaphore& semaphore, uint64_t value) {
  semaphore.reached = value;
  std::erase_if(semaphore.waiters, [&](const SemaphoreWaiter& waiter) {
    if (waiter.value <= value) {
      unblocked_.push_back(waiter.stream);
    }
    return waiter.value <= value;
  });
}

void Scheduler::fail_wait(Stream& stream, const TimelineSemaphore& semaphore) {
  if (const uint32_t observation = stream.queue.front().observation; observation != 0) {
    observers_.outcome(observation).status = orErrorLaunchFailure;
  }
  fail_device(*stream.device,
              join("a stream waited for semaphore ", handle(semaphore), ", which failed with ", semaphore.failure));
}

// What the device still holds is skipped, so its waits order nothing any more; settle() moves its streams on.
void Scheduler::fail_device(Device& device, std::string reason) {
  device.failed = true;
  device.failure = std::move(reason);
  for (TimelineSemaphore& semaphore : semaphores_.objects()) {
    std::erase_if(semaphore.waiters, [&](const SemaphoreWaiter& waiter) {
      const bool ends = waiter.stream->device == &device;
      if (ends) {
        unblocked_.push_back(waiter.stream);
      }
      return ends;
    });
  }
}

}  // namespace openreg::driver
