// SPDX-License-Identifier: BSD-3-Clause
// The differences between the releases of PyTorch with which this package can be compiled. A line is deleted when the
// releases without its feature are no longer supported.
#pragma once

#include "openreg/runtime/torch_versions.h"

// True if PyTorch has the operator aten::linalg_matrix_sqrth.
#define OPENREG_TORCH_HAS_MATRIX_SQRTH OPENREG_TORCH_AT_LEAST(14)
