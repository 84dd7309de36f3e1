// SPDX-License-Identifier: BSD-3-Clause
// Semaphores holds the timeline semaphores of this process (64-bit counters that only grow), and ends the waits of
// streams for their values.
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

// The handle table of timeline semaphores. When the wait at the head of a stream (its oldest task) ends, adds the
// stream to the Completions; the caller then calls CommandProcessor::settle(), which removes the wait. Guarded by the
// scheduler's mutex.
class Semaphores {
 public:
  // If `deferred` is true, signal() and fail() only store the value or failure, and streams see it after reach() or
  // fail_wait(), as a seeded schedule (OPENREG_SCHEDULE_SEED) requires.
  Semaphores(bool deferred, ObjectTable& objects, TaskTracer& tracer, Completions& completions);
  Semaphores(const Semaphores&) = delete;
  Semaphores& operator=(const Semaphores&) = delete;

  // Returns the semaphore of a handle. Throws Error(orErrorInvalidResourceHandle) if it does not exist.
  TimelineSemaphore& find(orSemaphore_t handle);
  TimelineSemaphore& create(uint64_t value);
  // Destroys the semaphore. Throws Error(orErrorIllegalState) while a stream holds a wait for it.
  void destroy(TimelineSemaphore& semaphore);

  // Throws Error(orErrorIllegalState) if the semaphore has failed.
  static void check_not_failed(const TimelineSemaphore& semaphore);
  // Sets the value of the semaphore. Throws as check_not_failed() does, and Error(orErrorInvalidValue) if `value` is
  // below the current one.
  void signal(TimelineSemaphore& semaphore, uint64_t value);
  // Declares that no greater value follows: the devices of the streams that wait for one fail with `reason`. Throws as
  // check_not_failed() does.
  void fail(TimelineSemaphore& semaphore, std::string reason);

  // Returns a task that waits for `value`, for the caller to enqueue. The semaphore cannot be destroyed before
  // drop_wait() is called for it.
  Task make_wait(TimelineSemaphore& semaphore, uint64_t value);
  static void drop_wait(const Task::SemaphoreWait& wait) { --wait.semaphore->waits; }
  // Returns true if the wait at the stream's head ends at once, because the value was reached or the stream's device
  // has failed. Unless signals are deferred, a failed semaphore also ends it, and fails the device. Otherwise adds the
  // stream to the semaphore's waiters and returns false.
  bool pass(Stream& stream, const Task::SemaphoreWait& wait);

  // Makes a value visible to streams: ends the waits for it and for lower values.
  void reach(TimelineSemaphore& semaphore, uint64_t value);
  // Makes the failure of a semaphore visible to a stream whose head waits for it: fails the stream's device.
  void fail_wait(Stream& stream, const TimelineSemaphore& semaphore);
  // Puts the device into the sticky error state. Its queued tasks will be skipped, and events recorded after them
  // report that. The waits of its streams for semaphores end now, because tasks that are skipped need not wait.
  void fail_device(Device& device, std::string reason);

 private:
  const bool deferred_;
  ObjectTable& objects_;
  TaskTracer& tracer_;
  Completions& completions_;
  HandleTable<TimelineSemaphore> table_;
  uint64_t newest_wait_ = 0;  // number of the newest wait
};

}  // namespace openreg::driver
