// SPDX-License-Identifier: BSD-3-Clause
// The indices of x[...], as index() and index_put() take them.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace openreg::ops {

using Indices = c10::List<std::optional<at::Tensor>>;

// Indices may be on the host, as in x[torch.tensor([0, 2])]: gives them with those moved to the device.
inline Indices move_indices(const at::Tensor& self, const Indices& indices) {
  Indices moved;
  moved.reserve(indices.size());
  for (const std::optional<at::Tensor> index : indices) {
    const bool on_host = index.has_value() && index->defined() && index->device().is_cpu();
    moved.push_back(on_host ? std::optional<at::Tensor>(index->to(self.device())) : index);
  }
  return moved;
}

}  // namespace openreg::ops
