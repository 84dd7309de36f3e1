// SPDX-License-Identifier: BSD-3-Clause
// Releases the GIL and the calling thread's OpenMP threads while the calling thread blocks on the device.
#pragma once

#include "openreg/runtime/export.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// Ends the OpenMP threads of the calling thread, if it has any. Its next parallel CPU operator starts new ones, which
// takes about 50 us. The reason is that OpenMP counts all threads of the process. If they exceed the cores, the
// engine's threads sleep between two parallel kernels. To wake them takes four times as long as a small kernel. Does
// nothing if the OpenMP library has no such call. Thread-safe.
OPENREG_RUNTIME_API void release_openmp_threads() noexcept;

// A guard that ends the OpenMP threads of the calling thread and releases the GIL. Its destructor acquires the GIL as
// that of GilRelease does.
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
