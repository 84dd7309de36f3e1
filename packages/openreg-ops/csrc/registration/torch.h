// SPDX-License-Identifier: BSD-3-Clause
// What declarations name of PyTorch: every operator (at::_ops), the meta functions of structured ones (at::meta), the
// CPU's kernels (at::cpu) and the composite forms of those on lists. Precompiled, so that a file needs no line for
// each.
#pragma once

#include <ATen/CPUFunctions.h>
#include <ATen/CompositeExplicitAutogradFunctions.h>
#include <ATen/Operators.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "meta_functions.h"  // CMakeLists.txt writes it
