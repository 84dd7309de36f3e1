// SPDX-License-Identifier: BSD-3-Clause
// The includes of PyTorch that registrations need: every operator (at::_ops), the meta functions of structured ones
// (at::meta), the CPU kernels (at::cpu) and the composite functions of foreach operators. Precompiled, so that a file
// needs no include for each operator.
#pragma once

#include <ATen/CPUFunctions.h>
#include <ATen/CompositeExplicitAutogradFunctions.h>
#include <ATen/Operators.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "meta_functions.h"  // CMakeLists.txt writes it
