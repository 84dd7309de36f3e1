// SPDX-License-Identifier: BSD-3-Clause
// The choice between PyTorch's CPU kernels and the kernels of csrc/kernels, for operators that have both.
#pragma once

namespace openreg::ops {

// Returns true if OPENREG_KERNELS is "raw", which selects the kernels of csrc/kernels. An invalid value counts as
// "aten", the default, because registrations call this while the library loads and must not throw.
bool raw_kernels_chosen();

// Throws c10::ValueError, with the accepted values, if the value of OPENREG_KERNELS is invalid.
void check_kernel_choice();

}  // namespace openreg::ops
