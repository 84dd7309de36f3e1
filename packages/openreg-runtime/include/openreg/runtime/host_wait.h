// SPDX-License-Identifier: BSD-3-Clause
// A guard for a thread that is about to block on the device: it releases the GIL and ends the thread's OpenMP threads.
#pragma once

#include "openreg/runtime/export.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// Ends the OpenMP threads of the calling thread, if it has any. Its next parallel CPU operator starts new ones, which
// takes about 50 us. They are ended because of the engine that executes kernels: GNU OpenMP counts all its threads in
// the process, and if there are more than cores, the engine's OpenMP threads sleep instead of spin between two parallel
// kernels. Waking them takes four times as long as a small kernel. Does nothing if GNU OpenMP has no
// omp_pause_resource_all(), and with LLVM's and Microsoft's OpenMP, whose threads spin in any case. Thread-safe.
OPENREG_RUNTIME_API void release_openmp_threads() noexcept;

// A guard that ends the OpenMP threads of the calling thread and releases the GIL. Its destructor acquires the GIL
// again; while Python is being finalized, that ends the thread by unwinding its stack (see gil.h).
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
