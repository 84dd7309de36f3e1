// SPDX-License-Identifier: BSD-3-Clause
// Releases Python's GIL while a thread blocks on the device. This library does not link Python, so the Python module
// passes it the functions that release and acquire the GIL.
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The functions of the Python module. `release` returns a token for `acquire`, or null if the calling thread does not
// hold the GIL. `interpreter_ended_elsewhere` returns true if another thread has finalized Python, so that the calling
// thread can never acquire the GIL again.
struct GilHooks {
  void* (*release)();
  void (*acquire)(void* token);
  bool (*interpreter_ended_elsewhere)();
};

// Sets the functions. The library copies them. The Python module calls this once. Thread-safe.
OPENREG_RUNTIME_API void set_gil_hooks(const GilHooks& hooks);

// Blocks until the process ends if another thread has finalized Python, and returns at once otherwise. If the function
// returned, the calling thread's next attempt to acquire the GIL would, before Python 3.14, end the thread by unwinding
// its stack. PyTorch acquires the GIL in destructors, in which unwinding aborts the process. Thread-safe.
OPENREG_RUNTIME_API void park_if_finalized();

// A guard that releases the GIL, if the calling thread holds it, and acquires it again in its destructor.
class OPENREG_RUNTIME_API GilRelease {
 public:
  GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  // Acquires the GIL, if the constructor released it. While another thread finalizes Python, this never returns: Python
  // ends the calling thread by unwinding its stack (pthread_exit()) or, from 3.14 on, blocks it forever.
  ~GilRelease() noexcept(false);

 private:
  void* token_;
};

}  // namespace openreg::runtime
