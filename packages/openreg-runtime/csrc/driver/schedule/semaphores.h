// SPDX-License-Identifier: BSD-3-Clause
// The timeline semaphores of this process, behind their handles, and the streams that wait for them.
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

// The table of timeline semaphores. Adds a stream to the completions when the wait at its head ends. Guarded by the
// scheduler's mutex.
class Semaphores {
 public:
  // With `deferred`, streams see a value or a failure only after reach() or fail_wait(), as a seeded schedule requires.
  Semaphores(bool deferred, ObjectTable& objects, TaskTracer& tracer, Completions& completions);
  Semaphores(const Semaphores&) = delete;
  Semaphores& operator=(const Semaphores&) = delete;

  // Throws Error(orErrorInvalidResourceHandle) if the semaphore does not exist.
  TimelineSemaphore& find(orSemaphore_t handle);
  TimelineSemaphore& create(uint64_t value);
  // Throws Error(orErrorIllegalState) while a stream holds a wait for the semaphore.
  void destroy(TimelineSemaphore& semaphore);

  // Throws Error(orErrorIllegalState) if the semaphore has failed.
  static void check_not_failed(const TimelineSemaphore& semaphore);
  // Throw as check_not_failed() does; signal() throws Error(orErrorInvalidValue) if `value` is below the previous one.
  void signal(TimelineSemaphore& semaphore, uint64_t value);
  void fail(TimelineSemaphore& semaphore, std::string reason);

  // Returns a task that waits for `value`. It counts as a wait for the semaphore until drop_wait().
  Task make_wait(TimelineSemaphore& semaphore, uint64_t value);
  static void drop_wait(const Task::SemaphoreWait& wait) { --wait.semaphore->waits; }
  // Returns true if the wait at the stream's head is over. Otherwise adds the stream to the semaphore's waiters.
  bool pass(Stream& stream, const Task::SemaphoreWait& wait);

  // Makes a value visible to streams.
  void reach(TimelineSemaphore& semaphore, uint64_t value);
  // Makes a failure visible to a stream whose head waits for the semaphore: the stream's device fails.
  void fail_wait(Stream& stream, const TimelineSemaphore& semaphore);
  // Fails the device. Its queued tasks are skipped, its events report that, and its waits for semaphores end, because
  // they no longer order anything.
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
