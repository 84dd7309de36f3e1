// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the device polls words in memory, and an interrupt wakes host threads that sleep until a word changes.
#include "schedule/semaphores.h"

#include <utility>

#include "base/error.h"
#include "base/steady_time.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

// Returns a first generation of handles that differs between processes with high probability. Semaphores serve
// communication, so a program may pass the handle of another process by mistake, which must be rejected.
uint32_t generation_of_this_process() {
  constexpr uint64_t kOddConstant = 0x9e3779b97f4a7c15;  // from Fibonacci hashing; spreads neighboring numbers
  return static_cast<uint32_t>(((platform::process_id() ^ now()) * kOddConstant) >> 32) | 1U;
}

}  // namespace

Semaphores::Semaphores(bool deferred, ObjectTable& objects, TaskTracer& tracer, Completions& completions)
    : deferred_(deferred),
      objects_(objects),
      tracer_(tracer),
      completions_(completions),
      table_(generation_of_this_process()) {}

TimelineSemaphore& Semaphores::find(orSemaphore_t handle) {
  TimelineSemaphore* semaphore = table_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(
      semaphore != nullptr, orErrorInvalidResourceHandle, "semaphore ", handle,
      " does not exist in this process or was destroyed; use a handle from orSemaphoreCreate() of this process");
  return *semaphore;
}

TimelineSemaphore& Semaphores::create(uint64_t value) {
  TimelineSemaphore& semaphore = table_.create();
  semaphore.signaled = value;
  semaphore.reached = value;
  semaphore.failure.clear();
  return semaphore;
}

void Semaphores::destroy(TimelineSemaphore& semaphore) {
  OPENREG_DRIVER_CHECK(semaphore.waits == 0, orErrorIllegalState, "streams still hold ", semaphore.waits,
                       " waits for this semaphore, whose value is ", semaphore.signaled,
                       "; end them with orSemaphoreSignal() or orSemaphoreFail(), wait for the streams with "
                       "orStreamSynchronize(), then destroy it");
  HandleTable<TimelineSemaphore>::invalidate(semaphore);
  table_.recycle(semaphore);
}

void Semaphores::check_not_failed(const TimelineSemaphore& semaphore) {
  OPENREG_DRIVER_CHECK(semaphore.failure.empty(), orErrorIllegalState, "the semaphore has failed with ",
                       semaphore.failure, "; destroy it and create another one");
}

void Semaphores::signal(TimelineSemaphore& semaphore, uint64_t value) {
  check_not_failed(semaphore);
  OPENREG_DRIVER_CHECK(value >= semaphore.signaled, orErrorInvalidValue, "value ", value, " is below ",
                       semaphore.signaled, ", which was signaled before; a value only grows, signal a greater one");
  semaphore.signaled = value;
  tracer_.semaphore(orSyncSemaphoreSignal, semaphore, value, nullptr);
  if (!deferred_) {
    reach(semaphore, value);
  }
}

void Semaphores::fail(TimelineSemaphore& semaphore, std::string reason) {
  check_not_failed(semaphore);
  semaphore.failure = std::move(reason);
  while (!deferred_ && !semaphore.waiters.empty()) {
    fail_wait(*semaphore.waiters.front().stream, semaphore);
  }
}

Task Semaphores::make_wait(TimelineSemaphore& semaphore, uint64_t value) {
  Task task;
  task.kind = Task::Kind::kSemaphoreWait;
  task.semaphore = {&semaphore, value, ++newest_wait_};
  ++semaphore.waits;
  return task;
}

bool Semaphores::pass(Stream& stream, const Task::SemaphoreWait& wait) {
  TimelineSemaphore& semaphore = *wait.semaphore;
  if (stream.device->failed || semaphore.reached >= wait.value) {
    return true;
  }
  if (!deferred_ && !semaphore.failure.empty()) {
    fail_wait(stream, semaphore);
    return true;
  }
  semaphore.waiters.push_back({&stream, wait.value});
  return false;
}

void Semaphores::reach(TimelineSemaphore& semaphore, uint64_t value) {
  semaphore.reached = value;
  end_waits(semaphore.waiters, completions_, [&](const Waiter& waiter) { return waiter.value <= value; });
}

void Semaphores::fail_wait(Stream& stream, const TimelineSemaphore& semaphore) {
  tracer_.failed(stream.queue.front());
  fail_device(*stream.device,
              join("a stream waited for semaphore ", handle_of(semaphore), ", which failed with ", semaphore.failure));
}

void Semaphores::fail_device(Device& device, std::string reason) {
  device.failed = true;
  device.failure = std::move(reason);
  objects_.note_skipped_events(device);
  for (TimelineSemaphore& semaphore : table_.objects()) {
    end_waits(semaphore.waiters, completions_, [&](const Waiter& waiter) { return waiter.stream->device == &device; });
  }
}

}  // namespace openreg::driver
