// SPDX-License-Identifier: BSD-3-Clause
// What differs between the releases of PyTorch that this source is compiled against: one line for each thing, which
// says since when it is there. A release that is no longer served leaves by deleting the lines that are always true.
#pragma once

#include <torch/headeronly/version.h>

// Whether the headers are those of torch 2.`minor` or a later one.
#define OPENREG_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

// c10::GeneratorImpl::philox_state(): a reserved place in the sequence, as tensors.
#define OPENREG_TORCH_HAS_PHILOX_STATE OPENREG_TORCH_AT_LEAST(14)
