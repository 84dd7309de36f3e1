// SPDX-License-Identifier: BSD-3-Clause
// A guard for a thread that is about to block on the device: it releases the GIL and ends the thread's OpenMP threads.
#pragma once

#include "openreg/runtime/export.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// Ends the OpenMP threads of the calling thread, if it has any. Its next parallel CPU operator starts new ones, which
// takes about 50 us. The threads are ended because GNU OpenMP counts those of the whole process. If they outnumber the
// cores, the OpenMP threads of the engine, which executes kernels, sleep instead of spin between two parallel kernels.
// Waking them takes four times as long as a small kernel. Does nothing if the OpenMP library has no such call.
// Thread-safe.
OPENREG_RUNTIME_API void release_openmp_threads() noexcept;

// A guard that ends the OpenMP threads of the calling thread and releases the GIL. Its destructor acquires the GIL in
// the same way as that of GilRelease.
class HostWait {
 public:
  HostWait() = default;

 private:
  struct OpenMpRelease {
    OpenMpRelease() { release_openmp_threads(); }
  };
  OpenMpRelease openmp_;
  GilRelease gil_;
};

}  // namespace openreg::runtime
