// SPDX-License-Identifier: BSD-3-Clause
// What differs between the releases of PyTorch that this source is compiled against. A release that is no longer served
// leaves by deleting its line.
#pragma once

#include "openreg/runtime/torch_versions.h"

// The operator aten::linalg_matrix_sqrth.
#define OPENREG_TORCH_HAS_MATRIX_SQRTH OPENREG_TORCH_AT_LEAST(14)
