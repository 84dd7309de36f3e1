// SPDX-License-Identifier: BSD-3-Clause
// The interface between the threads of the engines and the scheduler.
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"

namespace openreg::driver {

// An interface that EngineThreads calls to select, execute and complete tasks. The caller holds the scheduler's mutex.
class EngineClient {
 public:
  // Returns the stream whose head the engine executes now. Null if there is none.
  virtual Stream* next(Engine& engine) = 0;
  // Executes the stream's head. Releases the mutex meanwhile.
  virtual void run(Engine& engine, Stream& stream, Lock& lock) = 0;
  // Returns how long an idle engine may sleep, in nanoseconds; 0 means until it is woken.
  virtual uint64_t longest_sleep() = 0;
  // Completes the delay at the stream's head.
  virtual void end_delay(Stream& stream) = 0;

 protected:
  ~EngineClient() = default;
};

}  // namespace openreg::driver
