// SPDX-License-Identifier: BSD-3-Clause
// Sparse results whose elements are those of an operand: the indices are copied on the host's order, and a launch fills
// in the values.
#pragma once

#include <ATen/core/Tensor.h>

#include "common/sparse_members.h"
#include "declare/launch.h"

namespace openreg::ops {

// A new sparse tensor with the indices, the sizes and the layout of another, and values of this dtype that are not yet
// set; the indices in another dtype, where one is given. The other must be coalesced, if it is COO.
at::Tensor empty_of_pattern(const at::Tensor& sparse, c10::ScalarType dtype,
                            std::optional<c10::ScalarType> index_dtype = std::nullopt);

// For kernels: puts the values of what the CPU computed into those that the host made. Throws c10::Error that names the
// operator where there are more or fewer of them.
void put_values(const Operator& op, const at::Tensor& computed, at::Tensor& values);

}  // namespace openreg::ops
