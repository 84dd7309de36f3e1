// SPDX-License-Identifier: BSD-3-Clause
// The launch of kernels that torch.compile generated.
#pragma once

#include <ATen/core/Tensor.h>

#include <variant>
#include <vector>

#include "device.h"

namespace pocket {

// An argument that generated Python passes to a kernel.
using Argument = std::variant<at::Tensor, int64_t, double>;

// Enqueues a kernel on the current stream of a device and returns. `address` is that of a function that takes a block
// with 16 bytes for each argument: the address of a tensor's first element; the element itself if the tensor is on the
// host, where the program may change it before the kernel runs; an int64_t; or a double.
void launch_compiled(uintptr_t address, int device, const std::vector<Argument>& arguments);

}  // namespace pocket
