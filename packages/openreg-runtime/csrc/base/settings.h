// SPDX-License-Identifier: BSD-3-Clause
// Environment variables that this library reads; the driver reads its own.
#pragma once

namespace openreg::runtime {

struct Settings {
  bool poison;      // OPENREG_POISON: fill memory on allocation and on release
  int num_threads;  // OPENREG_NUM_THREADS: of the compute engine's kernels; 0 when unset: as many as PyTorch uses
};

// Read once. Throws c10::ValueError that names variable, value and the accepted form.
const Settings& settings();

}  // namespace openreg::runtime
