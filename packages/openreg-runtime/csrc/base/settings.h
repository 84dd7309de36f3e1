// SPDX-License-Identifier: BSD-3-Clause
// Environment variables that this library reads. The driver reads its own variables.
#pragma once

namespace openreg::runtime {

struct Settings {
  bool poison;      // OPENREG_POISON: fill memory with the poison pattern on allocation and release
  int num_threads;  // OPENREG_NUM_THREADS: threads of the compute engine's kernels; 0 if unset: PyTorch's default
};

// Returns the settings, which it reads at the first call. Throws c10::ValueError if a variable is invalid, with its
// name, its value and the accepted form. Thread-safe.
const Settings& settings();

}  // namespace openreg::runtime
