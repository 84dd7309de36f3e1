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

// Runs tasks one after the other. A task never needs the GIL, so that a thread may wait for it while holding the GIL.
class Queue {
 public:
  explicit Queue(c10::DeviceIndex device);

  // Adds a task and returns its ticket. Tickets count up.
  uint64_t push(std::function<void()> task);
  // Whether the task of this ticket is done.
  bool is_done(uint64_t ticket);
  // Waits for the task of this ticket.
  void wait(uint64_t ticket);
  // The ticket of the last task so far.
  uint64_t last();
  // Waits for all tasks so far; throws what the first failed one threw.
  void synchronize();

 private:
  struct Task;

  void run(Task& task) noexcept;

  pocketStream* stream_;
  std::mutex mutex_;
  std::exception_ptr error_;  // of the first task that failed
};

// The queue of a stream.
Queue& queue_of(const c10::Stream& stream);

// A stream besides the default one. After a few per device, streams share queues.
c10::Stream new_stream(c10::DeviceIndex index);

// The calling thread's current stream of a device.
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(const c10::Stream& stream);

// Waits for everything that was launched on a device, or on all of them; throws what failed.
void synchronize_device(c10::DeviceIndex index);
void synchronize_all();

// Destroys an object after everything that was launched so far, on any stream, is done. Throws nothing.
void release_later(std::shared_ptr<void> object) noexcept;

// A child of fork() has no threads that would run tasks: there every use is refused, and memory is left alone.
void mark_forked();
bool is_forked();

}  // namespace pocket
