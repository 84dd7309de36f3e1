// SPDX-License-Identifier: BSD-3-Clause
// Streams: queues of tasks, each on a stream of the driver.
#pragma once

#include <c10/core/Stream.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "device.h"
#include "driver.h"

namespace pocket {

// Runs tasks one after the other. No task may need the GIL, because a thread that holds the GIL may wait for it.
class Queue {
 public:
  explicit Queue(c10::DeviceIndex device);

  // Appends a task and returns its ticket. Tickets count up. With POCKET_LAUNCH_BLOCKING=1 it waits for the task.
  uint64_t push(std::function<void()> task);
  // Same as push(), except that it never waits, because threads that run tasks themselves call it, too.
  uint64_t append(std::function<void()> task);
  // Returns true if the task of this ticket is done.
  bool is_done(uint64_t ticket);
  // Returns the ticket of the last task so far.
  uint64_t last();
  // Tasks of other queues wait for the task of this ticket. Throws the exception of the first task up to it that
  // failed. The queue keeps the exception, because all that wait for the task have to get it.
  void wait(uint64_t ticket);
  // The host waits, for the task of this ticket or for all tasks so far. Throws like wait(). The host is told once: the
  // queue then forgets the exception.
  void synchronize(uint64_t ticket);
  void synchronize() { synchronize(last()); }

 private:
  struct Task;

  void run(Task& task) noexcept;

  pocketStream* stream_;
  std::mutex mutex_;
  uint64_t begun_ = 0;        // the ticket of the task that runs
  uint64_t failed_ = 0;       // the ticket of the first task that failed
  std::exception_ptr error_;  // its exception
};

// Returns the queue of a stream.
Queue& queue_of(const c10::Stream& stream);

// Returns a stream other than the default one. After a few per device, streams share queues.
c10::Stream new_stream(c10::DeviceIndex index);

// Returns the calling thread's current stream of a device. exchange_stream() also sets it.
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(const c10::Stream& stream);

// Waits for all tasks of a device, or of all devices. Then throws the exception of one that failed.
void synchronize_device(c10::DeviceIndex index);
void synchronize_all();

// Destroys an object when all tasks that were enqueued so far, on any stream, are done.
void release_later(std::shared_ptr<void> object) noexcept;

// A child of fork() has no threads that run tasks. There every use of a queue throws, and no memory is allocated or
// released.
void mark_forked();
bool is_forked();
void check_not_forked();

}  // namespace pocket
