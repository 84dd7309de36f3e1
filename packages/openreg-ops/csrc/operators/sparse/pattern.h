// SPDX-License-Identifier: BSD-3-Clause
// Functions for sparse results that have the sparsity pattern of an operand, which is its indices. The host enqueues
// the copy of the indices, and a launch computes the values.
#pragma once

#include <ATen/core/Tensor.h>

#include "launch/launch.h"
#include "support/output_spec.h"
#include "support/sparse_components.h"

namespace openreg::ops {

// Returns a new sparse tensor with the indices, sizes and layout of `sparse`, and values of `dtype` with undefined
// content. The indices have `index_dtype` if it is passed. A COO tensor must be coalesced.
at::Tensor empty_of_pattern(const at::Tensor& sparse, c10::ScalarType dtype,
                            std::optional<c10::ScalarType> index_dtype = std::nullopt);

// A kernel that calls the CPU's function under `kKey`, and copies the values of its result to `values`. Throws
// c10::Error, with the operator, if the numbers of values differ.
template <class Op, c10::DispatchKey kKey, class Schema = typename Op::schema>
struct ValuesKernel;
template <class Op, c10::DispatchKey kKey, class... Args>
struct ValuesKernel<Op, kKey, at::Tensor(Args...)> {
  static void run(Args... args, at::Tensor& values) {
    put_result(Op::name, sparse_components(Op::redispatch(c10::DispatchKeySet(kKey), args...))[2], values);
  }
};

// Launches ValuesKernel for `result`, which has its indices already.
template <class Op, c10::DispatchKey kKey, class... Args>
void launch_values(c10::Device device, const at::Tensor& result, const Args&... args) {
  launch({Op::name}, device, &ValuesKernel<Op, kKey>::run, args..., sparse_components(result)[2]);
}

}  // namespace openreg::ops
