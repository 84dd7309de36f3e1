// SPDX-License-Identifier: BSD-3-Clause
// The differences between the supported releases of PyTorch that this package uses: one macro per feature, with the
// first release that has it. When the support of a release ends, the macros that are always true are deleted.
#pragma once

#include <torch/headeronly/version.h>

// True if the headers are those of torch 2.`minor` or of a later release.
#define OPENREG_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

// True if c10::GeneratorImpl has philox_state(), which reserves random numbers and returns their start, a seed and an
// offset, in tensors.
#define OPENREG_TORCH_HAS_PHILOX_STATE OPENREG_TORCH_AT_LEAST(14)
