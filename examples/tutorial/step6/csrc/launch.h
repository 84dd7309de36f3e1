// SPDX-License-Identifier: BSD-3-Clause
// How a kernel reaches the device and its operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "device.h"

namespace pocket {

// Enqueues a kernel on the current stream of a device and returns. The kernel runs later. So it captures copies, no
// references, and instead of a tensor of the caller its host_view().
void launch(c10::Device device, std::function<void()> kernel);

// Returns a CPU tensor over the memory of a tensor, for kernels. It owns sizes and strides, and not the memory: the
// allocator keeps that until the kernels that were launched before its release have run.
at::Tensor host_view(const at::Tensor& tensor);

}  // namespace pocket
