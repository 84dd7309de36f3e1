// SPDX-License-Identifier: BSD-3-Clause
// The environment variables that the runtime library reads. The driver reads its own in driver/base/settings.h, among
// them OPENREG_POISON, too.
#pragma once

namespace openreg::runtime {

// The values of the environment variables.
struct RuntimeSettings {
  bool poison;      // OPENREG_POISON: fill memory with the poison pattern on allocation and release
  int num_threads;  // OPENREG_NUM_THREADS: threads of the compute engine's kernels; 0 if unset: PyTorch's default
};

// Returns the settings, which the first call reads. Throws c10::ValueError if OPENREG_NUM_THREADS is invalid, with its
// name, its value and the accepted form. Thread-safe.
const RuntimeSettings& settings();

}  // namespace openreg::runtime
