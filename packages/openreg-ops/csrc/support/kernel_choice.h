// SPDX-License-Identifier: BSD-3-Clause
// Which kernels run where there are two: PyTorch's for the CPU, or our own of csrc/kernels.
#pragma once

namespace openreg::ops {

// Whether OPENREG_KERNELS asks for our own. Registrations ask; a value that is not accepted counts as unset here, for
// nothing may be thrown while a library loads.
bool raw_kernels_chosen();

// Throws c10::ValueError with the accepted form where the value of OPENREG_KERNELS is none.
void check_kernel_choice();

}  // namespace openreg::ops
