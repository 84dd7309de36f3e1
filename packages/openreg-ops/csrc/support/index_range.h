// SPDX-License-Identifier: BSD-3-Clause
// The check of the values of an index tensor. CPU kernels that follow an index without looking at it would access
// memory out of bounds.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>

#include <cstdint>

namespace openreg::ops {

// Returns true if every element of `indices`, a CPU tensor of integers, is in [first, end), and for an empty tensor.
// Takes the time of one pass over the elements, so kernels call it on the engine thread.
inline bool are_within(const at::Tensor& indices, int64_t first, int64_t end) {
  if (indices.numel() == 0) {
    return true;
  }
  const auto [least, greatest] = at::aminmax(indices);
  return least.item<int64_t>() >= first && greatest.item<int64_t>() < end;
}

}  // namespace openreg::ops
