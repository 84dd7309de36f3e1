// SPDX-License-Identifier: BSD-3-Clause
// What a thread of the host gives away before it waits for the device.
#pragma once

#include "openreg/runtime/export.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// Ends the OpenMP threads that belong to the calling thread, if it has any; its next parallel operator on the CPU
// starts them again, which takes about 50 us. OpenMP counts all threads of the process: while there are more than
// cores, those of the device sleep between two parallel kernels, and waking them takes four times what a small kernel
// does. Nothing happens where the OpenMP library has no such call.
OPENREG_RUNTIME_API void release_openmp_threads() noexcept;

// Gives away the OpenMP threads and, for its lifetime, the GIL.
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
