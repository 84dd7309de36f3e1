// SPDX-License-Identifier: BSD-3-Clause
// Sparse results whose elements are those of an operand: the indices are copied on the host's order, and a launch fills
// in the values.
#pragma once

#include <ATen/core/Tensor.h>

#include "launch/launch.h"
#include "support/sparse_components.h"

namespace openreg::ops {

// A new sparse tensor with the indices, the sizes and the layout of another, and values of this dtype that are not yet
// set; the indices in another dtype, where one is given. The other must be coalesced, if it is COO.
at::Tensor empty_of_pattern(const at::Tensor& sparse, c10::ScalarType dtype,
                            std::optional<c10::ScalarType> index_dtype = std::nullopt);

// Puts the values of what the CPU's function under `kKey` computes into those that the host made. Throws c10::Error
// that names the operator where there are more or fewer of them.
template <class Op, c10::DispatchKey kKey, class Schema = typename Op::schema>
struct ValuesKernel;
template <class Op, c10::DispatchKey kKey, class... Args>
struct ValuesKernel<Op, kKey, at::Tensor(Args...)> {
  static void run(Args... args, at::Tensor& values) {
    put_result(Op::name, sparse_components(Op::redispatch(c10::DispatchKeySet(kKey), args...))[2], values);
  }
};

// Launches it for a result that has its indices.
template <class Op, c10::DispatchKey kKey, class... Args>
void launch_values(c10::Device device, const at::Tensor& result, const Args&... args) {
  launch({Op::name}, device, &ValuesKernel<Op, kKey>::run, args..., sparse_components(result)[2]);
}

}  // namespace openreg::ops
