// SPDX-License-Identifier: BSD-3-Clause
// A flat buffer is one contiguous tensor with the values of several tensors, as in DDP and FSDP. Copies are enqueued on
// the current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg::distributed {

// Returns a tensor of one dimension with the values of `tensors` in order. It is a view if the tensors are adjacent in
// memory and `copy` is false, otherwise a copy. `tensors` has at least one tensor, and all have one dtype.
at::Tensor flatten(const std::vector<at::Tensor>& tensors, bool copy);
// Returns a tensor of one dimension with room for the values of `tensors`. It is their own memory if they are adjacent
// and `copy` is false, otherwise new memory with undefined content.
at::Tensor flat_buffer_for(const std::vector<at::Tensor>& tensors, bool copy);
// Copies the values of `buffer` into `tensors`; does nothing if `buffer` is the tensors' own memory.
void unflatten_into(const at::Tensor& buffer, const std::vector<at::Tensor>& tensors);

}  // namespace openreg::distributed
