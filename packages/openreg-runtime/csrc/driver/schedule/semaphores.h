// SPDX-License-Identifier: BSD-3-Clause
// The semaphores of this process, behind their handles, and the streams that wait for them.
#pragma once

#include <cstdint>
#include <string>

#include "base/handle_table.h"
#include "objects/device.h"
#include "objects/object_table.h"
#include "objects/stream.h"
#include "objects/timeline_semaphore.h"
#include "observe/task_tracer.h"
#include "openreg.h"
#include "schedule/completions.h"

namespace openreg::driver {

// Guarded by the scheduler's mutex. What ends the wait at a stream's head adds the stream to the completions.
class Semaphores {
 public:
  // `deferred`: streams see a value or a failure only when reach() or fail_wait() says so, as a seed needs it.
  Semaphores(bool deferred, ObjectTable& objects, TaskTracer& tracer, Completions& completions);
  Semaphores(const Semaphores&) = delete;
  Semaphores& operator=(const Semaphores&) = delete;

  // Throws Error(orErrorInvalidResourceHandle).
  TimelineSemaphore& find(orSemaphore_t handle);
  TimelineSemaphore& create(uint64_t value);
  // Throws Error(orErrorIllegalState) while a stream holds a wait for it.
  void destroy(TimelineSemaphore& semaphore);

  // Throws Error(orErrorIllegalState) when the semaphore has failed.
  static void check_not_failed(const TimelineSemaphore& semaphore);
  // Throw the same; Error(orErrorInvalidValue) for a value below the one before.
  void signal(TimelineSemaphore& semaphore, uint64_t value);
  void fail(TimelineSemaphore& semaphore, std::string reason);

  // The entry of a queue that waits for a value. Counts as a wait until drop_wait().
  Task make_wait(TimelineSemaphore& semaphore, uint64_t value);
  static void drop_wait(const Task::SemaphoreWait& wait) { --wait.semaphore->waits; }
  // True when the wait at the stream's head is over; else the stream is noted as a waiter.
  bool pass(Stream& stream, const Task::SemaphoreWait& wait);

  // Lets streams see a value.
  void reach(TimelineSemaphore& semaphore, uint64_t value);
  // Lets a stream see the failure of the semaphore that its head waits for: its device fails.
  void fail_wait(Stream& stream, const TimelineSemaphore& semaphore);
  // Fails the device. What it still holds is skipped: its events say so, and its waits order nothing any more and end.
  void fail_device(Device& device, std::string reason);

 private:
  const bool deferred_;
  ObjectTable& objects_;
  TaskTracer& tracer_;
  Completions& completions_;
  HandleTable<TimelineSemaphore> table_;
  uint64_t newest_wait_ = 0;
};

}  // namespace openreg::driver
