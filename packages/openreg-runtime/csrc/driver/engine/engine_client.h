// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"

namespace openreg::driver {

// What the threads of the engines and the timer are given to do. All is called with the scheduler's mutex held.
class EngineClient {
 public:
  // The stream whose head the engine runs now; null when there is nothing for it.
  virtual Stream* next(Engine& engine) = 0;
  // Runs the head; gives the mutex up meanwhile.
  virtual void run(Engine& engine, Stream& stream, Lock& lock) = 0;
  // How long an engine without work may sleep, in nanoseconds; 0: until it is woken.
  virtual uint64_t longest_sleep() = 0;
  // The delay at the stream's head is over.
  virtual void end_delay(Stream& stream) = 0;

 protected:
  ~EngineClient() = default;
};

}  // namespace openreg::driver
