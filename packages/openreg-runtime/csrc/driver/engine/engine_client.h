// SPDX-License-Identifier: BSD-3-Clause
// EngineClient is the interface through which the threads of the engines, and the timer thread that ends delays, get,
// execute and complete tasks. TaskRunner implements it.
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"

namespace openreg::driver {

// The interface of EngineThreads to the scheduler. The head of a stream is its oldest task that is not complete. The
// caller of each function holds the scheduler's mutex.
class EngineClient {
 public:
  // Selects the engine's next task. Returns the stream whose head it is, or null if there is no task for the engine.
  virtual Stream* next(Engine& engine) = 0;
  // Executes and completes the stream's head on the calling thread, which is the engine's, or a host thread in its
  // place. Releases the mutex while the task is executed.
  virtual void run(Engine& engine, Stream& stream, Lock& lock) = 0;
  // Returns the longest time for which the thread of an idle engine may sleep before it calls next() again, in
  // nanoseconds. 0 means until it is woken. Only a seeded schedule limits the sleep: before it executes tasks without
  // them, it waits at most OPENREG_SCHEDULE_TIMEOUT for a semaphore's signal, or for the threads that are not progress
  // threads (threads that drive communication, orThreadSetProgress()).
  virtual uint64_t longest_sleep() = 0;
  // Completes the stream's head, which is a delay that has ended. The timer thread calls it.
  virtual void end_delay(Stream& stream) = 0;

 protected:
  ~EngineClient() = default;
};

}  // namespace openreg::driver
