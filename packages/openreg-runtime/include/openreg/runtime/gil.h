// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// How to give the GIL away and take it back; this library itself does not know Python. `release` returns a token for
// `acquire`, null when the calling thread does not hold the GIL. `interpreter_ended_elsewhere` tells whether another
// thread has finalised Python, so that the calling one will never get the GIL again.
struct GilHooks {
  void* (*release)();
  void (*acquire)(void* token);
  bool (*interpreter_ended_elsewhere)();
};

// Called once by the Python module; the hooks live as long as the process.
OPENREG_RUNTIME_API void set_gil_hooks(const GilHooks& hooks);

// Does not return where Python was finalised by another thread: the calling thread sleeps until the process has ended.
// Were it to go on, its next attempt to take the GIL would end it by unwinding its stack, and where PyTorch takes the
// GIL in a destructor that aborts the process.
OPENREG_RUNTIME_API void rest_if_interpreter_ended();

// Gives the GIL away, if this thread holds it, for the time of a wait.
class OPENREG_RUNTIME_API GilRelease {
 public:
  GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  // While the interpreter shuts down, taking the GIL back ends the calling thread by unwinding its stack
  // (pthread_exit()).
  ~GilRelease() noexcept(false);

 private:
  void* token_;
};

}  // namespace openreg::runtime
