// SPDX-License-Identifier: BSD-3-Clause
// Several tensors as one piece of memory. All functions enqueue on the current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace openreg::distributed {

// Whether the transport must not work on operands themselves, but on copies that are made on the lane: with
// OPENREG_SCHEDULE_SEED. What a program sees that forgets to wait then follows from the seed, not from how fast the
// messages are.
bool copies_operands();

// The values of the tensors one after the other, in one dimension: a view where they lie so already, else a copy. At
// least one tensor, all of one dtype.
at::Tensor pack(const std::vector<at::Tensor>& tensors);
// Room for the values of the tensors one after the other: their own memory where they lie so, else new memory.
at::Tensor room_for(const std::vector<at::Tensor>& tensors);
// Brings what is in the room where it belongs; nothing to do where that is the tensors' own memory.
void unpack(const at::Tensor& room, const std::vector<at::Tensor>& tensors);

}  // namespace openreg::distributed
