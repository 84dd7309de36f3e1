// SPDX-License-Identifier: BSD-3-Clause
// Way: fallthrough. A dispatch key that concerns a few operators lets all others pass, as if it were not there: the
// dispatcher skips it when it computes an operator's table, and a call pays nothing.
//
// The key is the one by which kernels of the CPU get the memory of our outputs (common/results_in_place.cpp): it has
// kernels for at::empty and at::empty_strided alone.
#include <torch/library.h>

namespace {

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace
