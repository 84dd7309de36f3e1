// SPDX-License-Identifier: BSD-3-Clause
// Several tensors as one piece of memory. All functions enqueue on the current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg::distributed {

// The values of the tensors one after the other, in one dimension: a view where they lie so already
// and no copy is asked for, else a copy. At least one tensor, all of one dtype.
at::Tensor pack(const std::vector<at::Tensor>& tensors, bool copy);
// Room for the values of the tensors one after the other: their own memory where they lie so and no copy is
// asked for, else new memory.
at::Tensor room_for(const std::vector<at::Tensor>& tensors, bool copy);
// Brings what is in the room where it belongs; nothing to do where that is the tensors' own memory.
void unpack(const at::Tensor& room, const std::vector<at::Tensor>& tensors);

}  // namespace openreg::distributed
